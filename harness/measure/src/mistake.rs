//! What a person wrote wrong, shown where it stands.
//!
//! In: a source text, a span in it, what is wrong, the way out. Out: text in the form of the house: `error:` with the thing and the
//! reason, the line with carets, a hint. It does not know what an experiment is, and never colours or prints.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use collo_store::text;

use crate::noted::Stopped;

/// A text that mistakes point into: a file, or an argument of the command line.
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
pub enum Fault {
    /// The command line or a file is wrong: exit code 2.
    Usage,
    /// This machine cannot: exit code 3.
    Machine,
    /// Somebody stopped it with SIGTERM or SIGHUP: exit code 4.
    Terminated,
    /// Somebody stopped it with Ctrl-C: exit code 130.
    Interrupted,
}

impl Fault {
    pub fn exit_code(self) -> u8 {
        match self {
            Fault::Usage => 2,
            Fault::Machine => 3,
            Fault::Terminated => 4,
            Fault::Interrupted => 130,
        }
    }
}

/// One thing that is wrong, with its reason and the way out.
#[derive(Debug, Clone)]
pub struct Mistake(Box<Parts>);

/// In a box, as every function that can go wrong hands one back.
#[derive(Debug, Clone)]
struct Parts {
    what: String,
    place: Option<(Arc<Source>, Range<usize>)>,
    note: Option<String>,
    causes: Vec<String>,
    hint: Option<String>,
    fault: Fault,
}

impl Mistake {
    /// The thing and what is wrong with it, lower case, no full stop.
    pub fn new(what: impl Into<String>) -> Mistake {
        Mistake(Box::new(Parts {
            what: what.into(),
            place: None,
            note: None,
            causes: Vec::new(),
            hint: None,
            fault: Fault::Usage,
        }))
    }

    pub fn at(mut self, source: &Arc<Source>, span: Range<usize>) -> Mistake {
        self.0.place = Some((source.clone(), span));
        self
    }

    /// The way out in a few words, shown beside the carets where there is room.
    pub fn note(mut self, note: impl Into<String>) -> Mistake {
        self.0.note = Some(note.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Mistake {
        self.0.hint = Some(hint.into());
        self
    }

    pub fn caused_by(mut self, cause: impl Into<String>) -> Mistake {
        self.0.causes.push(cause.into());
        self
    }

    /// The same, but it is this machine that cannot.
    pub fn of_machine(mut self) -> Mistake {
        self.0.fault = Fault::Machine;
        self
    }

    /// The same, but nobody is to blame: it was stopped.
    pub fn stopped(mut self, stopped: Stopped) -> Mistake {
        self.0.fault = stopped.fault();
        self
    }

    /// The same inside a larger text: from `offset` on if the smaller text stands there as it is, else at all of `span`.
    pub fn moved(self, source: &Arc<Source>, span: &Range<usize>, offset: Option<usize>) -> Mistake {
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
        self.0.hint.as_deref().or(self.0.note.as_deref())
    }

    pub fn fault(&self) -> Fault {
        self.0.fault
    }

    fn offset(&self) -> usize {
        self.0.place.as_ref().map_or(usize::MAX, |(_, span)| span.start)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut below = Vec::new();
        match &self.0.place {
            None => {
                write!(f, "error: {}", text::line(&self.0.what))?;
                below.extend(self.0.note.clone());
            }
            Some((source, span)) => {
                // A title with a clause of its own is separated from its place.
                let comma = if self.0.what.contains(", ") { "," } else { "" };
                let (line, column) = source.position(span.start);
                let (what, name) = (text::line(&self.0.what), text::line(&source.name));
                if source.numbered {
                    write!(f, "error: {what}{comma} at {name}:{line}:{column}")?;
                } else {
                    write!(f, "error: {what}{comma} at column {column} of {name}")?;
                }
                below.extend(excerpt(f, source, span, self.0.note.as_deref())?);
            }
        }
        for cause in &self.0.causes {
            write!(f, "\n  caused by: {}", further(cause))?;
        }
        below.extend(self.0.hint.clone());
        below.iter().try_for_each(|hint| write!(f, "\nhint: {}", text::line(hint)))
    }
}

/// A cause, which may be somebody else's words: its further lines stand below its first, so that none looks like one of ours.
pub fn further(cause: &str) -> String {
    text::lines(cause.trim_end()).replace('\n', "\n    ")
}

const WIDTH: usize = 100;

/// Write the line with carets under the span; gives back the note if it did not fit beside them.
fn excerpt(
    f: &mut fmt::Formatter<'_>,
    source: &Source,
    span: &Range<usize>,
    note: Option<&str>,
) -> Result<Option<String>, fmt::Error> {
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
    write!(f, "\n{gutter} | {text}\n{blank} | {pad}{carets}")?;
    let Some(note) = note else { return Ok(None) };
    let used = gutter.len() + 3 + pad.len() + carets.len() + 1;
    if used + note.chars().count() <= WIDTH {
        write!(f, " {note}")?;
        return Ok(None);
    }
    Ok(Some(note.to_string()))
}

/// All mistakes of one reading, in the order of their places.
#[derive(Debug, Clone, Default)]
pub struct Mistakes(Vec<Mistake>);

const SHOWN: usize = 10;

impl Mistakes {
    pub fn push(&mut self, mistake: Mistake) {
        self.0.push(mistake);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.0.iter()
    }

    pub fn extend(&mut self, others: Mistakes) {
        self.0.extend(others.0);
    }

    /// The value, unless anything was wrong.
    pub fn into_result<T>(mut self, value: T) -> Result<T, Mistakes> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by_key(Mistake::offset);
        Err(self)
    }

    /// The graver of all: a wrong file is said before a machine that cannot.
    pub fn fault(&self) -> Fault {
        self.0.iter().map(Mistake::fault).min().unwrap_or(Fault::Usage)
    }
}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Mistakes {
        Mistakes(vec![mistake])
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, mistake) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{mistake}", if i > 0 { "\n" } else { "" })?;
        }
        if self.0.len() > SHOWN {
            write!(f, "\nhint: {} more are not shown; put these right first", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistake {}
impl std::error::Error for Mistakes {}

/// A value as it was written, in backticks: control characters escaped, cut where it would fill the screen.
pub fn quoted(text: &str) -> String {
    let begin: String = text.chars().take(61).collect();
    let mut shown = text::line(&begin).into_owned();
    if text.chars().count() > 60 {
        shown = shown.chars().take(60).chain(['…']).collect();
    }
    format!("`{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mine() -> Arc<Source> {
        Source::file("experiments/mine.toml", "schema = 1\n\n\nrepetition = 3\nname = \"ä\"; x\n")
    }

    #[test]
    fn a_mistake_shows_its_line_with_carets_and_the_way_out() {
        let m = Mistake::new("unknown key `repetition`").at(&mine(), 13..23).note("did you mean `repetitions`?");
        insta::assert_snapshot!(m, @"
        error: unknown key `repetition` at experiments/mine.toml:4:1
         4 | repetition = 3
           | ^^^^^^^^^^ did you mean `repetitions`?
        ");
    }

    #[test]
    fn what_somebody_else_said_is_one_line_of_ours_at_most() {
        let m = Mistake::new("\x1b]0;title\x07").caused_by("one\n✓ 6/6 runs completed\nhint: \u{202e}x").hint("a\nerror: b");
        insta::assert_snapshot!(m, @r"
        error: \x1b]0;title\x07
          caused by: one
            ✓ 6/6 runs completed
            hint: \u{202e}x
        hint: a\x0aerror: b
        ");
    }

    #[test]
    fn columns_count_characters_and_not_bytes() {
        let offset = mine().text().find("; x").expect("it is there");
        assert!(
            Mistake::new("a").at(&mine(), offset..offset + 1).to_string().starts_with("error: a at experiments/mine.toml:5:11\n")
        );
    }

    #[test]
    fn a_way_out_that_does_not_fit_beside_the_carets_follows_as_a_hint() {
        let m = Mistake::new("a, b").at(&mine(), 13..23).note("x".repeat(90)).caused_by("the disk is full");
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
        let shown = Mistake::new("x").at(&Source::file("f", text), 500_000..500_004).to_string();
        assert!(shown.lines().all(|l| l.chars().count() <= 100), "{shown}");
        let line = shown.lines().nth(1).expect("the line");
        let carets = shown.lines().nth(2).expect("the carets");
        let at = line.chars().collect::<Vec<_>>().windows(4).position(|w| w == ['h', 'e', 'r', 'e']);
        assert_eq!(at, carets.find('^'));
    }

    #[test]
    fn at_most_ten_are_shown_in_the_order_of_their_places() {
        let mut all = Mistakes::default();
        (0..12).rev().for_each(|i| all.push(Mistake::new(format!("m{i}")).at(&mine(), i..i + 1)));
        let text = all.into_result(()).expect_err("there are mistakes").to_string();
        let titles: Vec<&str> = text.lines().filter(|l| l.starts_with("error")).map(|l| &l[7..9]).collect();
        assert_eq!(titles, ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"]);
        assert!(text.ends_with("hint: 2 more are not shown; put these right first"));
    }

    #[test]
    fn a_span_past_the_end_or_inside_a_character_is_no_panic() {
        for span in [0..usize::MAX, 500..600, 31..32, 32..33, 33..34] {
            Mistake::new("x").at(&mine(), span).to_string();
        }
    }
}
