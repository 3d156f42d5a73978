//! What is wrong, why, and the hint: the one form of every error that a person reads.
//!
//! In: what is wrong, its place in a source text, causes, the hint. Out: lines in collo's format: `error:` with the thing and the
//! reason, the source line with carets, `caused by:`, `hint:`. It does not know what an experiment is, and never colours or
//! prints. Errors that callers match on have types of their own, and define how they are shown: `impl From<E> for Diagnostic`.

mod source;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use self::source::Source;
use self::source::excerpt;
use crate::quoting;

/// Who can fix it, which is also the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitClass {
    /// The command line or a file is wrong; nothing was touched.
    Usage,
    /// This machine cannot; nothing was touched.
    Machine,
    /// It was stopped, or could not continue: incomplete and resumable.
    Incomplete,
    /// Stopped by the user with Ctrl-C.
    Interrupted,
    /// A run failed, or the answer is no.
    Failed,
}

impl ExitClass {
    pub const fn code(self) -> u8 {
        match self {
            ExitClass::Failed => 1,
            ExitClass::Usage => 2,
            ExitClass::Machine => 3,
            ExitClass::Incomplete => 4,
            ExitClass::Interrupted => 130,
        }
    }
}

/// The label at the start of a line of collo's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    Error,
    Warning,
    Hint,
}

impl Label {
    pub fn as_str(self) -> &'static str {
        match self {
            Label::Error => "error",
            Label::Warning => "warning",
            Label::Hint => "hint",
        }
    }
}

/// A line, separate from its label, which a terminal may colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub label: Option<Label>,
    pub text: String,
}

impl Line {
    pub fn of(label: Label, text: impl Into<String>) -> Line {
        Line { label: Some(label), text: text.into() }
    }

    pub fn plain(text: impl Into<String>) -> Line {
        Line { label: None, text: text.into() }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.label {
            Some(label) => write!(f, "{}: {}", label.as_str(), self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// One problem, with its reason and a hint.
#[derive(Debug, Clone)]
pub struct Diagnostic(Box<Parts>);

/// Boxed, since every fallible function returns one.
#[derive(Debug, Clone)]
struct Parts {
    what: String,
    place: Option<(Arc<Source>, Range<usize>)>,
    note: Option<String>,
    causes: Vec<String>,
    hints: Vec<String>,
    resume: Option<String>,
    class: ExitClass,
}

impl Diagnostic {
    /// The thing and what is wrong with it, lower case, no full stop.
    pub fn new(what: impl Into<String>) -> Diagnostic {
        Diagnostic(Box::new(Parts {
            what: what.into(),
            place: None,
            note: None,
            causes: Vec::new(),
            hints: Vec::new(),
            resume: None,
            class: ExitClass::Usage,
        }))
    }

    /// Its place. A problem of another file stays there, where it is to be corrected; what names that file is a hint.
    pub fn at(mut self, source: &Arc<Source>, span: Range<usize>) -> Diagnostic {
        let (part, start) = source.part(span.start);
        if self.0.place.as_ref().is_some_and(|(own, _)| own.numbered && own.name != part.name) {
            return self.hint(format!("{} names this file", source.line_of(span.start)));
        }
        self.0.place = Some((part, span.start - start..span.end.max(span.start) - start));
        self
    }

    /// The hint in a few words, shown beside the carets if there is room.
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.0.note = Some(note.into());
        self
    }

    /// The hint; further ones follow below the first.
    pub fn hint(mut self, hint: impl fmt::Display) -> Diagnostic {
        self.0.hints.push(hint.to_string());
        self
    }

    /// Replaces all hints given so far.
    pub fn only_hint(mut self, hint: impl fmt::Display) -> Diagnostic {
        (self.0.note, self.0.hints) = (None, vec![hint.to_string()]);
        self
    }

    /// The command that resumes unfinished work.
    pub fn resume(mut self, command: impl Into<String>) -> Diagnostic {
        self.0.resume = Some(command.into());
        self
    }

    pub fn caused_by(mut self, cause: impl fmt::Display) -> Diagnostic {
        self.0.causes.push(cause.to_string());
        self
    }

    /// The same with the way out of an error of the file system, where its kind shows one.
    pub fn way_out_of(self, e: &std::io::Error) -> Diagnostic {
        use std::io::ErrorKind;
        let hint = match e.kind() {
            ErrorKind::PermissionDenied => "this user may not use it: change its owner or its rights, or name another place",
            ErrorKind::ReadOnlyFilesystem => "nothing can be written on that file system: name a place on another",
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                "a file lies where a folder is needed: move it away, or name another place"
            }
            ErrorKind::IsADirectory => "a folder lies where a file is needed: move it away, or name another place",
            ErrorKind::NotFound => "check the path, and that its folder exists",
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                "free space there, or name a place on another disk"
            }
            _ => return self,
        };
        self.hint(hint)
    }

    /// The same, with another exit code.
    pub fn of(mut self, class: ExitClass) -> Diagnostic {
        self.0.class = class;
        self
    }

    /// The same, but it is this machine that cannot.
    pub fn of_machine(self) -> Diagnostic {
        self.of(ExitClass::Machine)
    }

    /// Becomes the first cause of a larger problem; its hint is kept.
    pub fn under(mut self, what: impl Into<String>) -> Diagnostic {
        let (mut first, left) = (vec![Line::plain(self.title())], self.0.note.take());
        match &self.0.place {
            Some((source, span)) => {
                let (shown, left) = excerpt(source, span, left.as_deref());
                first.extend(shown);
                self.0.hints.splice(0..0, left);
            }
            None => self.0.hints.splice(0..0, left).for_each(drop),
        }
        let first: Vec<String> = first.into_iter().map(|line| line.text).collect();
        self.0.causes.insert(0, first.join("\n"));
        (self.0.what, self.0.place) = (what.into(), None);
        self
    }

    /// The same inside a larger text: from `offset` on if the smaller text occurs there unchanged, else at all of `span`.
    pub fn moved(self, source: &Arc<Source>, span: &Range<usize>, offset: Option<usize>) -> Diagnostic {
        let inner = self.0.place.as_ref().map(|(_, inner)| inner.clone());
        let span = match (inner, offset) {
            (Some(inner), Some(offset)) => inner.start + offset..inner.end + offset,
            _ => span.clone(),
        };
        self.at(source, span)
    }

    /// What is wrong, without its place.
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// The first cause, if one is given.
    pub fn cause(&self) -> Option<&str> {
        self.0.causes.first().map(String::as_str)
    }

    /// The hint or the note.
    pub fn way_out(&self) -> Option<&str> {
        self.0.hints.first().or(self.0.note.as_ref()).map(String::as_str)
    }

    pub fn class(&self) -> ExitClass {
        self.0.class
    }

    /// The text that its place is in.
    fn file(&self) -> Option<String> {
        self.0.place.as_ref().map(|(source, _)| source.name.clone())
    }

    fn offset(&self) -> usize {
        self.0.place.as_ref().map_or(usize::MAX, |(_, span)| span.start)
    }

    /// What is wrong, and where.
    pub fn title(&self) -> String {
        let what = quoting::line(&self.0.what);
        let Some((source, span)) = &self.0.place else { return what.into_owned() };
        // A title with a clause of its own is separated from its place.
        let comma = if self.0.what.contains(", ") { "," } else { "" };
        let ((line, column), name) = (source.position(span.start), quoting::line(&source.name));
        match source.numbered {
            true => format!("{what}{comma} at {name}:{line}:{column}"),
            false => format!("{what}{comma} at column {column} of {name}"),
        }
    }

    /// All of it, line by line.
    pub fn lines(&self) -> Vec<Line> {
        let parts = &*self.0;
        let mut lines = vec![Line::of(Label::Error, self.title())];
        let left = match &parts.place {
            None => parts.note.clone(),
            Some((source, span)) => {
                let (shown, left) = excerpt(source, span, parts.note.as_deref());
                lines.extend(shown);
                left
            }
        };
        for cause in &parts.causes {
            lines.extend(format!("  caused by: {}", further(cause)).split('\n').map(Line::plain));
        }
        lines.extend(left.iter().chain(&parts.hints).map(|hint| Line::of(Label::Hint, quoting::line(hint))));
        lines.extend(parts.resume.iter().map(|command| Line::plain(format!("resume: {}", quoting::line(command)))));
        lines
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        joined(f, &self.lines())
    }
}

fn joined(f: &mut fmt::Formatter<'_>, lines: &[Line]) -> fmt::Result {
    lines.iter().enumerate().try_for_each(|(i, line)| write!(f, "{}{line}", if i > 0 { "\n" } else { "" }))
}

/// A cause, possibly quoted from another program: its further lines are indented below its first, so that none looks like one of
/// ours.
fn further(cause: &str) -> String {
    quoting::lines(cause.trim_end()).replace('\n', "\n    ")
}

/// All problems found in one reading, in the order of their places.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics(Vec<Diagnostic>);

const SHOWN: usize = 10;

impl Diagnostics {
    pub fn push(&mut self, one: Diagnostic) {
        self.0.push(one);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }

    pub fn extend(&mut self, others: Diagnostics) {
        self.0.extend(others.0);
    }

    /// The value, unless there are problems.
    pub fn into_result<T>(mut self, value: T) -> Result<T, Diagnostics> {
        if self.0.is_empty() {
            return Ok(value);
        }
        // Of several files one after the other.
        let mut files: Vec<String> = self.0.iter().filter_map(Diagnostic::file).collect();
        files.dedup();
        self.0.sort_by_key(|one| {
            let file = one.file().map(|name| files.iter().position(|file| *file == name));
            (file.is_none(), file, one.offset())
        });
        Err(self)
    }

    /// The most severe class of all: a wrong file takes precedence over an unsuitable machine.
    pub fn class(&self) -> ExitClass {
        self.0.iter().map(Diagnostic::class).min().unwrap_or(ExitClass::Usage)
    }

    /// What is wrong, and where, in one line.
    pub fn titles(&self) -> String {
        self.0.iter().map(Diagnostic::title).collect::<Vec<_>>().join("; ")
    }

    /// All of them, line by line.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.0.iter().take(SHOWN).flat_map(Diagnostic::lines).collect();
        if self.0.len() > SHOWN {
            lines.push(Line::of(Label::Hint, format!("{} more are not shown; fix these first", self.0.len() - SHOWN)));
        }
        lines
    }
}

/// Whatever converts into one diagnostic also converts into several.
impl<E: Into<Diagnostic>> From<E> for Diagnostics {
    fn from(one: E) -> Diagnostics {
        Diagnostics(vec![one.into()])
    }
}

impl From<std::io::Error> for Diagnostic {
    fn from(e: std::io::Error) -> Diagnostic {
        Diagnostic::new(e.to_string()).of_machine().way_out_of(&e)
    }
}

/// The limits that EAGAIN stands for where a process or a thread is started (clone(2), pthread_create(3)), and the way out.
pub const PROCESS_LIMIT: &str =
    "`ulimit -u` of this user, or `pids.max` of a container, allows no more processes and threads: raise it, or end some";

/// Whether the error of starting a process or a thread is that a limit on their number is reached.
pub fn is_process_limit(e: &std::io::Error) -> bool {
    e.kind() == std::io::ErrorKind::WouldBlock
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        joined(f, &self.lines())
    }
}

impl std::error::Error for Diagnostic {}
impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests;
