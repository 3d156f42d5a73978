//! All printing: results on stdout, everything else on stderr, colour as an optional accent. A stream that is lost, full or
//! closed ends nothing. Untrusted text reaches a terminal through `collo_text::quoting` alone.
//!
//! SIGPIPE stays ignored, as is Rust's default: otherwise a closed reader would end a campaign in the middle, be it a control
//! program that exits early or a closed terminal. So a reader that has seen enough (`collo list | head`) is detected here: the
//! rest is not printed, and nothing else happens.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use clap::CommandFactory;
use collo_text::commands::{self, COLLO};
use collo_text::diagnostic::{Label, Line};
use collo_text::{Diagnostic, Diagnostics, Remark, quoting};

use crate::args::{Arguments, Colour};
use crate::shell;

static QUIET: OnceLock<bool> = OnceLock::new();
/// The folder that the command works in, if that is not the current one.
static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);
/// Why a result could not be written to stdout, if so.
static UNWRITTEN: Mutex<Option<String>> = Mutex::new(None);

/// Apply `--color` and `-q`.
pub fn set_up(arguments: &Arguments) {
    let choice = match arguments.color {
        Colour::Auto => ColorChoice::Auto,
        Colour::Always => ColorChoice::Always,
        Colour::Never => ColorChoice::Never,
    };
    choice.write_global();
    let _ = QUIET.set(arguments.quiet);
    arguments.folder.iter().for_each(|folder| work_in(folder));
}

/// From now on hints lead to this folder.
pub fn work_in(folder: &Path) {
    let here = std::env::current_dir().ok();
    let below = here.as_ref().and_then(|here| folder.strip_prefix(here).ok()).filter(|below| !below.as_os_str().is_empty());
    *FOLDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(below.unwrap_or(folder).to_path_buf());
}

/// A result, possibly several lines; callers make sure that untrusted text in it stays within one line.
pub fn result(text: impl std::fmt::Display) {
    print(&format!("{}\n", quoting::lines(&text.to_string())));
}

/// A result of one line, whatever it contains.
pub fn line(text: impl std::fmt::Display) {
    print(&format!("{}\n", quoting::line(&text.to_string())));
}

/// A raw result, without a line end; a terminal gets it escaped, as any other text.
pub fn bytes(bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) if std::io::stdout().is_terminal() => print(&quoting::lines(text)),
        _ => took(write_out(bytes)),
    }
}

/// Clap's output, a help page or a usage error, in its colours.
pub fn of_clap(said: &clap::Error) {
    let text = said.render().ansi().to_string();
    match said.use_stderr() {
        true => drop(write!(anstream::stderr(), "{text}")),
        false => print(&text),
    }
}

fn print(text: &str) {
    let mut out = anstream::stdout().lock();
    took(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

fn write_out(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

fn took(written: std::io::Result<()>) {
    match written {
        // A reader that has seen enough.
        Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
        Err(e) => *UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(e.to_string()),
        Ok(()) => {}
    }
}

/// The error of a result that could not be written, to be checked at the end.
pub fn unwritten() -> Option<Diagnostic> {
    let reason = UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    Some(Diagnostic::new("the result cannot be written to stdout").of_machine().caused_by(reason))
}

/// The command that the user types, where a program starts collo under another name: it says so in this variable.
pub const COMMAND: &str = "COLLO_COMMAND";

/// What the user types for `collo`.
pub fn command() -> String {
    std::env::var(COMMAND).ok().filter(|command| !command.is_empty()).unwrap_or_else(|| COLLO.into())
}

/// A text with every command of collo as the user would type it: in backticks, or after a label as in `next: collo show last`.
pub fn as_typed(text: &str) -> Cow<'_, str> {
    let own = command();
    let command = match &*FOLDER.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(folder) => format!("{own} -C {}", shell::quoted(folder)),
        None => own,
    };
    let is_verb = |_, word: &str| Arguments::command().find_subcommand(word).is_some();
    // Who simulates that model already needs no second word for it.
    let simulated = std::env::var(collo_store::SIMULATED_MODEL).ok().filter(|_| command != COLLO);
    let text = simulated.map_or(Cow::Borrowed(text), |model| commands::without_simulation(text, &shell::quoted(model)));
    match text {
        Cow::Borrowed(text) => commands::in_place_of_collo(text, &command, is_verb),
        Cow::Owned(text) => Cow::Owned(commands::in_place_of_collo(&text, &command, is_verb).into_owned()),
    }
}

/// On stderr; a lost terminal, or a full disk behind it, must not end a measurement.
fn aside(text: impl std::fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{}", as_typed(&text.to_string()));
}

/// A result as JSON, with invisible characters escaped.
pub fn json(value: &serde_json::Value) {
    // An object in memory always has a text.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    print(&format!("{}\n", visible(&text)));
}

/// JSON can escape any character in a string, and outside of strings its only invisible characters are spaces and line ends.
fn visible(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        match quoting::is_unseen(c) && c != '\n' {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}"))),
            false => shown.push(c),
        }
    }
    shown
}

/// A remark of one line on stderr; silent with `-q`.
pub fn note(text: impl std::fmt::Display) {
    if !is_quiet() {
        aside(quoting::line(&text.to_string()));
    }
}

/// The same, with commands for another machine: this folder is not there.
pub fn elsewhere(text: impl std::fmt::Display) {
    if !is_quiet() {
        let _ = writeln!(anstream::stderr(), "{}", quoting::line(&text.to_string()));
    }
}

/// `warning: …` on stderr.
pub fn warning(text: impl std::fmt::Display) {
    noticed(&Line::of(Label::Warning, text.to_string()));
}

/// `hint: …` on stderr.
pub fn hint(text: impl std::fmt::Display) {
    if !is_quiet() {
        noticed(&Line::of(Label::Hint, text.to_string()));
    }
}

/// A line on stderr, with its label.
pub fn noticed(line: &Line) {
    aside(painted(line));
}

fn is_quiet() -> bool {
    QUIET.get().copied().unwrap_or(false)
}

/// A failure, with its causes and hints.
pub fn failure(failure: &Diagnostics) {
    failure.lines().iter().for_each(noticed);
}

/// What should be known before a result.
pub fn remark(remark: &Remark) {
    match remark {
        Remark::Note(text) => note(text),
        Remark::Warning(text) => warning(text),
        Remark::Failure(wrong) => failure(wrong),
    }
}

/// A line for stderr, its label coloured if colour is wanted there.
pub fn painted(line: &Line) -> String {
    let text = quoting::line(&line.text);
    let Some(label) = line.label else { return text.into_owned() };
    let colour = match label {
        Label::Error => AnsiColor::Red,
        Label::Warning => AnsiColor::Yellow,
        Label::Hint => AnsiColor::Cyan,
    };
    match anstream::AutoStream::choice(&std::io::stderr()) {
        ColorChoice::Never => format!("{}: {text}", label.as_str()),
        _ => format!("{}: {text}", paint(label.as_str(), colour)),
    }
}

/// A word in a colour.
fn paint(word: &str, colour: AnsiColor) -> String {
    let style = Style::new().fg_color(Some(colour.into())).bold();
    format!("{style}{word}{style:#}")
}

/// The maximum width of tables: the terminal's; in a pipe or a file as wide as they are.
pub fn width() -> usize {
    match terminal_size::terminal_size_of(std::io::stdout()) {
        Some((columns, _)) => usize::from(columns.0).max(40),
        None => IN_A_FILE,
    }
}

/// Wider than any table, and far from what a sum of widths could overflow.
const IN_A_FILE: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_same_value_in_visible_characters() {
        let value = serde_json::json!({"a\u{202e}": "b\u{9b}2J\u{e0041}\u{7f} \u{1b}]0;x\u{7} ×"});
        let shown = visible(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!shown.chars().any(|c| quoting::is_unseen(c) && c != '\n'), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn what_stands_in_a_line_is_not_what_begins_it() {
        assert!(painted(&Line::of(Label::Error, "a\nerror: b")).ends_with(": a\\x0aerror: b"));
        assert_eq!(painted(&Line::plain("error: a")), "error: a");
    }
}
