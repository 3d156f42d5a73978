//! How things are printed: results on stdout, everything else on stderr, colour as an accent that may be missing.

use std::sync::OnceLock;

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};

use crate::args::{Arguments, Colour};
use crate::exit::Failure;

static QUIET: OnceLock<bool> = OnceLock::new();

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
    anstream::println!("{text}");
}

/// A result as JSON.
pub fn json(value: &serde_json::Value) {
    // An object in memory always has a text.
    anstream::println!("{}", serde_json::to_string_pretty(value).unwrap_or_default());
}

/// A remark on stderr; silent with `-q`.
pub fn remark(text: impl std::fmt::Display) {
    if !QUIET.get().copied().unwrap_or(false) {
        anstream::eprintln!("{text}");
    }
}

/// `warning: …` on stderr.
pub fn warning(text: impl std::fmt::Display) {
    anstream::eprintln!("{}: {text}", paint("warning", AnsiColor::Yellow));
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
        anstream::eprintln!("{painted}");
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
