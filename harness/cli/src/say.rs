//! How things are printed: results on stdout, everything else on stderr, colour as an accent that may be missing.
//!
//! SIGPIPE stays ignored, as Rust has it: a signal that ends collo where somebody does not read would end a campaign in the middle, by a
//! control program that exits early as well as by a closed terminal. So a reader that has seen enough (`collo list | head`) is found
//! here: what follows is not printed, and nothing else happens.

use std::io::{ErrorKind, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};

use crate::args::{Arguments, Colour};
use crate::exit::{self, Failure};

static QUIET: OnceLock<bool> = OnceLock::new();
/// Why a result did not reach stdout, if one did not.
static UNWRITTEN: Mutex<Option<String>> = Mutex::new(None);

/// Take note of `--color` and `-q`.
pub fn set_up(arguments: &Arguments) {
    let choice = match arguments.color {
        Colour::Auto => ColorChoice::Auto,
        Colour::Always => ColorChoice::Always,
        Colour::Never => ColorChoice::Never,
    };
    choice.write_global();
    let _ = QUIET.set(arguments.quiet);
}

/// A result.
pub fn result(text: impl std::fmt::Display) {
    let written = writeln!(anstream::stdout(), "{text}");
    took(written);
}

/// A result as it is, without a line's end.
pub fn bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    took(out.write_all(bytes).and_then(|()| out.flush()));
}

fn took(written: std::io::Result<()>) {
    match written {
        // A reader that has seen enough.
        Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
        Err(e) => *UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(e.to_string()),
        Ok(()) => {}
    }
}

/// The failure of a result that could not be written, to be asked for at the end.
pub fn unwritten() -> Option<Failure> {
    let reason = UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    Some(Failure::new(exit::MACHINE, "the result cannot be written to stdout").because(reason))
}

/// On stderr; a terminal that is gone, or a full disk behind it, is no reason to end what is being measured.
fn aside(text: impl std::fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// A result as JSON.
pub fn json(value: &serde_json::Value) {
    // An object in memory always has a text.
    result(serde_json::to_string_pretty(value).unwrap_or_default());
}

/// A remark on stderr; silent with `-q`.
pub fn remark(text: impl std::fmt::Display) {
    if !QUIET.get().copied().unwrap_or(false) {
        aside(text);
    }
}

/// `warning: …` on stderr.
pub fn warning(text: impl std::fmt::Display) {
    aside(format!("{}: {text}", paint("warning", AnsiColor::Yellow)));
}

/// `hint: …` on stderr.
pub fn hint(text: impl std::fmt::Display) {
    remark(format!("{}: {text}", paint("hint", AnsiColor::Cyan)));
}

/// An error, its words coloured by what they are.
pub fn failure(failure: &Failure) {
    for line in failure.text.lines() {
        let painted = match line {
            l if l.starts_with("error:") => l.replacen("error", &paint("error", AnsiColor::Red), 1),
            l if l.starts_with("hint:") => l.replacen("hint", &paint("hint", AnsiColor::Cyan), 1),
            l => l.to_string(),
        };
        aside(painted);
    }
}

/// A word in a colour; the stream drops it where colour is not wanted.
pub fn paint(word: &str, colour: AnsiColor) -> String {
    let style = Style::new().fg_color(Some(colour.into())).bold();
    format!("{style}{word}{style:#}")
}

/// The width that tables may have.
pub fn width() -> usize {
    let columns = terminal_size::terminal_size().map_or(100, |(w, _)| usize::from(w.0));
    columns.clamp(40, 100)
}
