//! A trace in short: arrivals divided, so that a study of days is a test of hours.

use std::fmt;
use std::num::NonZeroU32;

use collo_text::{Diagnostic, Source, quoted};

/// `1:N`: everything takes an N-th of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale(NonZeroU32);

impl Scale {
    pub const ONE: Scale = Scale(NonZeroU32::MIN);

    pub fn parse(text: &str) -> Result<Scale, Diagnostic> {
        let by = text.strip_prefix("1:").and_then(|by| by.parse().ok());
        by.map(Scale).ok_or_else(|| {
            let wrong = Diagnostic::new(format!("invalid scale {}", quoted(text)));
            wrong.at(&Source::argument("scale", text), 0..text.len()).note("write `1:10` for a tenth of the time")
        })
    }

    pub fn by(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1:{}", self.by())
    }
}
