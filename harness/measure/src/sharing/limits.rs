//! The limits of one member on a device that it shares through MPS.

use std::fmt;

use crate::units;

/// The limits of one member; absent means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub active_thread_percent: Option<u8>,
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// `50%`, `50%,mem=4GB`, `mem=4GB`; the error says what is wrong.
    pub fn parse(text: &str) -> Result<Limits, String> {
        let mut limits = Limits::default();
        let (percent, memory) = match text.split_once(',') {
            Some((percent, memory)) => (Some(percent), Some(memory)),
            None if text.starts_with("mem=") => (None, Some(text)),
            None => (Some(text), None),
        };
        if let Some(percent) = percent {
            let digits = percent.strip_suffix('%').filter(|d| d.chars().all(|c| c.is_ascii_digit()));
            let number = digits.and_then(|d| d.parse().ok()).filter(|p| (1..=100).contains(p));
            limits.active_thread_percent =
                Some(number.ok_or("the share of threads is between `1%` and `100%`, as in `mps:50%`")?);
        }
        if let Some(memory) = memory {
            let size = memory.strip_prefix("mem=").and_then(units::size_bytes).filter(|b| *b > 0);
            limits.memory_bytes = Some(size.ok_or(format!("memory is as in `mps:50%,mem=4GB`; {}", units::SIZE_HELP))?);
        }
        Ok(limits)
    }

    /// The environment of the daemon and its clients, in the MPS guide's own variables.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let percent = self.active_thread_percent.map(|p| ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", p.to_string()));
        let memory = self.memory_bytes.map(|b| ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", format!("0={}M", b >> 20)));
        percent.into_iter().chain(memory).collect()
    }
}

/// The format of [`Limits::parse`]; empty without a limit.
impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.active_thread_percent.map(|p| format!("{p}%"));
        let memory = self.memory_bytes.map(|b| format!("mem={}", units::size_text(b)));
        f.write_str(&percent.into_iter().chain(memory).collect::<Vec<_>>().join(","))
    }
}
