//! What is wrong, why, and the way out: the one form of every error that a person reads.
//!
//! In: what is wrong, its place in a source text, causes, the way out. Out: lines in the form of the house: `error:` with the thing and the
//! reason, the line of the source with carets, `caused by:`, `hint:`. It does not know what an experiment is, and never colours or prints.
//! Errors that somebody matches on have types of their own, and say beside these how they are shown: `impl From<E> for Diagnostic`.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::text;

/// A text that diagnostics point into: a file, or an argument of the command line.
#[derive(Debug, Clone)]
pub struct Source {
    name: String,
    text: String,
    numbered: bool,
}

impl Source {
    /// A file under the name that people know it by.
    pub fn file(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), text: text.into(), numbered: true })
    }

    /// An argument, such as `--where`: one line, so places in it need no line number.
    pub fn argument(name: &str, text: &str) -> Arc<Source> {
        Arc::new(Source { name: format!("`{name}`"), text: text.into(), numbered: false })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column from 1, the column in characters.
    fn position(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..self.boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// `experiments/mine.toml:4`, the place without its column.
    pub fn line_of(&self, offset: usize) -> String {
        format!("{}:{}", self.name, self.position(offset).0)
    }

    fn boundary(&self, offset: usize) -> usize {
        (0..=offset.min(self.text.len())).rev().find(|&i| self.text.is_char_boundary(i)).unwrap_or(0)
    }
}

/// Who can put it right, which is also the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitClass {
    /// The command line or a file is wrong; nothing was touched.
    Usage,
    /// This machine cannot; nothing was touched.
    Machine,
    /// It was stopped, or could not go on: incomplete and resumable.
    Incomplete,
    /// Somebody stopped it with Ctrl-C.
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

/// What begins a line of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    Error,
    Warning,
    Hint,
}

impl Label {
    pub fn word(self) -> &'static str {
        match self {
            Label::Error => "error",
            Label::Warning => "warning",
            Label::Hint => "hint",
        }
    }
}

/// A line, apart from the word that begins it, which a terminal may show in colour.
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
            Some(label) => write!(f, "{}: {}", label.word(), self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// One thing that is wrong, with its reason and the way out.
#[derive(Debug, Clone)]
pub struct Diagnostic(Box<Parts>);

/// In a box, as every function that can go wrong hands one back.
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

    pub fn at(mut self, source: &Arc<Source>, span: Range<usize>) -> Diagnostic {
        self.0.place = Some((source.clone(), span));
        self
    }

    /// The way out in a few words, shown beside the carets where there is room.
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.0.note = Some(note.into());
        self
    }

    /// The way out; a further one stands below the first.
    pub fn hint(mut self, hint: impl fmt::Display) -> Diagnostic {
        self.0.hints.push(hint.to_string());
        self
    }

    /// The way out in place of all that were named.
    pub fn only_hint(mut self, hint: impl fmt::Display) -> Diagnostic {
        (self.0.note, self.0.hints) = (None, vec![hint.to_string()]);
        self
    }

    /// The command that goes on with what is unfinished.
    pub fn resume(mut self, command: impl Into<String>) -> Diagnostic {
        self.0.resume = Some(command.into());
        self
    }

    pub fn caused_by(mut self, cause: impl fmt::Display) -> Diagnostic {
        self.0.causes.push(cause.to_string());
        self
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

    /// What this means for something larger: it becomes the first cause of that, its way out stays.
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

    /// The same inside a larger text: from `offset` on if the smaller text stands there as it is, else at all of `span`.
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

    /// The first cause, if one is told.
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

    fn offset(&self) -> usize {
        self.0.place.as_ref().map_or(usize::MAX, |(_, span)| span.start)
    }

    /// What is wrong, and where.
    pub fn title(&self) -> String {
        let what = text::line(&self.0.what);
        let Some((source, span)) = &self.0.place else { return what.into_owned() };
        // A title with a clause of its own is separated from its place.
        let comma = if self.0.what.contains(", ") { "," } else { "" };
        let ((line, column), name) = (source.position(span.start), text::line(&source.name));
        match source.numbered {
            true => format!("{what}{comma} at {name}:{line}:{column}"),
            false => format!("{what}{comma} at column {column} of {name}"),
        }
    }

    /// All of it, a line each.
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
        lines.extend(left.iter().chain(&parts.hints).map(|hint| Line::of(Label::Hint, text::line(hint))));
        lines.extend(parts.resume.iter().map(|command| Line::plain(format!("resume: {}", text::line(command)))));
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

/// A cause, which may be somebody else's words: its further lines stand below its first, so that none looks like one of ours.
fn further(cause: &str) -> String {
    text::lines(cause.trim_end()).replace('\n', "\n    ")
}

const WIDTH: usize = 100;

/// The line with carets under the span, and the note if it did not fit beside them.
fn excerpt(source: &Source, span: &Range<usize>, note: Option<&str>) -> ([Line; 2], Option<String>) {
    let (line, column) = source.position(span.start);
    let shown = source.text.lines().nth(line - 1).unwrap_or_default();
    let end = source.boundary(span.end.max(span.start));
    let length = source.text[source.boundary(span.start)..end].lines().next().unwrap_or_default().chars().count().max(1);
    // Control characters would move the cursor, and so the carets, of a terminal.
    let characters: Vec<char> = shown.chars().map(|c| if text::is_unseen(c) { ' ' } else { c }).collect();
    let gutter = if source.numbered { format!("{line:>2}") } else { "  ".into() };
    let room = WIDTH - gutter.len() - 3;
    let first = if characters.len() <= room { 0 } else { (column - 1).saturating_sub(room / 2) };
    let mut text: String = characters.iter().skip(first).take(room).collect();
    if first > 0 {
        text = format!("…{}", text.chars().skip(1).collect::<String>());
    }
    let pad = " ".repeat(column - 1 - first);
    let carets = "^".repeat(length.min(room.saturating_sub(column - 1 - first)).max(1));
    let blank = " ".repeat(gutter.len());
    let mut under = format!("{blank} | {pad}{carets}");
    let used = gutter.len() + 3 + pad.len() + carets.len() + 1;
    let left = note.filter(|note| used + note.chars().count() > WIDTH);
    if let (Some(note), None) = (note, left) {
        under.push_str(&format!(" {note}"));
    }
    ([Line::plain(format!("{gutter} | {text}")), Line::plain(under)], left.map(str::to_string))
}

/// All that is wrong in one reading, in the order of their places.
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

    /// The value, unless anything was wrong.
    pub fn into_result<T>(mut self, value: T) -> Result<T, Diagnostics> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by_key(Diagnostic::offset);
        Err(self)
    }

    /// The graver of all: a wrong file is said before a machine that cannot.
    pub fn class(&self) -> ExitClass {
        self.0.iter().map(Diagnostic::class).min().unwrap_or(ExitClass::Usage)
    }

    /// What is wrong, and where, in one line.
    pub fn titles(&self) -> String {
        self.0.iter().map(Diagnostic::title).collect::<Vec<_>>().join("; ")
    }

    /// All of them, a line each.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.0.iter().take(SHOWN).flat_map(Diagnostic::lines).collect();
        if self.0.len() > SHOWN {
            lines.push(Line::of(Label::Hint, format!("{} more are not shown; put these right first", self.0.len() - SHOWN)));
        }
        lines
    }
}

/// Whatever is shown as one diagnostic is shown as several, too.
impl<E: Into<Diagnostic>> From<E> for Diagnostics {
    fn from(one: E) -> Diagnostics {
        Diagnostics(vec![one.into()])
    }
}

impl From<std::io::Error> for Diagnostic {
    fn from(e: std::io::Error) -> Diagnostic {
        Diagnostic::new(e.to_string()).of_machine()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        joined(f, &self.lines())
    }
}

impl std::error::Error for Diagnostic {}
impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    fn mine() -> Arc<Source> {
        Source::file("experiments/mine.toml", "schema = 1\n\n\nrepetition = 3\nname = \"ä\"; x\n")
    }

    #[test]
    fn a_mistake_shows_its_line_with_carets_and_the_way_out() {
        let m = Diagnostic::new("unknown key `repetition`").at(&mine(), 13..23).note("did you mean `repetitions`?");
        insta::assert_snapshot!(m, @"
        error: unknown key `repetition` at experiments/mine.toml:4:1
         4 | repetition = 3
           | ^^^^^^^^^^ did you mean `repetitions`?
        ");
    }

    #[test]
    fn what_somebody_else_said_is_one_line_of_ours_at_most() {
        let m = Diagnostic::new("\x1b]0;title\x07").caused_by("one\n✓ 6/6 runs completed\nhint: \u{202e}x").hint("a\nerror: b");
        insta::assert_snapshot!(m, @r"
        error: \x1b]0;title\x07
          caused by: one
            ✓ 6/6 runs completed
            hint: \u{202e}x
        hint: a\x0aerror: b
        ");
    }

    #[test]
    fn what_is_below_something_larger_is_its_first_cause_and_keeps_its_way_out() {
        let inner = Diagnostic::new("a, b").at(&mine(), 13..23).note("do c").caused_by("d").of_machine().hint("e");
        let outer = inner.under("cannot go on").of(ExitClass::Incomplete).resume("collo run x");
        assert_eq!(outer.class().code(), 4);
        insta::assert_snapshot!(outer, @"
        error: cannot go on
          caused by: a, b, at experiments/mine.toml:4:1
             4 | repetition = 3
               | ^^^^^^^^^^ do c
          caused by: d
        hint: e
        resume: collo run x
        ");
        let noted = Diagnostic::new("a").note("do b").hint("or c").under("larger");
        insta::assert_snapshot!(noted, @"
        error: larger
          caused by: a
        hint: do b
        hint: or c
        ");
        insta::assert_snapshot!(noted.only_hint("d"), @"
        error: larger
          caused by: a
        hint: d
        ");
    }

    #[test]
    fn columns_count_characters_and_not_bytes() {
        let offset = mine().text().find("; x").expect("it is there");
        assert!(
            Diagnostic::new("a")
                .at(&mine(), offset..offset + 1)
                .to_string()
                .starts_with("error: a at experiments/mine.toml:5:11\n")
        );
    }

    #[test]
    fn a_way_out_that_does_not_fit_beside_the_carets_follows_as_a_hint() {
        let m = Diagnostic::new("a, b").at(&mine(), 13..23).note("x".repeat(90)).caused_by("the disk is full");
        insta::assert_snapshot!(m, @"
        error: a, b, at experiments/mine.toml:4:1
         4 | repetition = 3
           | ^^^^^^^^^^
          caused by: the disk is full
        hint: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        ");
    }

    #[test]
    fn a_line_of_a_million_characters_is_shown_around_the_mistake() {
        let text = format!("{}here{}", "a".repeat(500_000), "b".repeat(500_000));
        let shown = Diagnostic::new("x").at(&Source::file("f", text), 500_000..500_004).to_string();
        assert!(shown.lines().all(|l| l.chars().count() <= 100), "{shown}");
        let line = shown.lines().nth(1).expect("the line");
        let carets = shown.lines().nth(2).expect("the carets");
        let at = line.chars().collect::<Vec<_>>().windows(4).position(|w| w == ['h', 'e', 'r', 'e']);
        assert_eq!(at, carets.find('^'));
    }

    #[test]
    fn at_most_ten_are_shown_in_the_order_of_their_places() {
        let mut all = Diagnostics::default();
        (0..12).rev().for_each(|i| all.push(Diagnostic::new(format!("m{i}")).at(&mine(), i..i + 1)));
        let text = all.into_result(()).expect_err("there are mistakes").to_string();
        let titles: Vec<&str> = text.lines().filter(|l| l.starts_with("error")).map(|l| &l[7..9]).collect();
        assert_eq!(titles, ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"]);
        assert!(text.ends_with("hint: 2 more are not shown; put these right first"));
    }

    #[test]
    fn a_span_past_the_end_or_inside_a_character_is_no_panic() {
        for span in [0..usize::MAX, 500..600, 31..32, 32..33, 33..34] {
            Diagnostic::new("x").at(&mine(), span).to_string();
        }
    }
}
