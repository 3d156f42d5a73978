//! A source text, and one line of it with the problem underlined.

use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Line;
use crate::quoting;

/// A text that diagnostics point into: a file, or an argument of the command line; or several of them in one.
#[derive(Debug, Clone, Default)]
pub struct Source {
    pub(super) name: String,
    text: String,
    pub(super) numbered: bool,
    /// Where each of several texts begins in this one.
    parts: Vec<(usize, Arc<Source>)>,
}

impl Source {
    /// A file, under the name that its user knows.
    pub fn file(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), text: text.into(), numbered: true, parts: Vec::new() })
    }

    /// An argument, such as `--where`: one line, so places in it need no line number.
    pub fn argument(name: &str, text: &str) -> Arc<Source> {
        Arc::new(Source { name: format!("`{name}`"), text: text.into(), numbered: false, parts: Vec::new() })
    }

    /// Several texts under the name of the first: a place in it is shown as a place in its part.
    pub fn joined(parts: &[Arc<Source>]) -> Arc<Source> {
        let mut all = Source { name: String::new(), text: String::new(), numbered: true, parts: Vec::new() };
        for part in parts {
            all.parts.push((all.text.len(), part.clone()));
            all.text.push_str(&part.text);
            all.text.push('\n');
        }
        all.name = parts.first().map(|first| first.name.clone()).unwrap_or_default();
        Arc::new(all)
    }

    /// The texts that it was joined of, each with its offset.
    pub fn parts(&self) -> &[(usize, Arc<Source>)] {
        &self.parts
    }

    /// The text that a place is in, and the offset of its beginning.
    pub(super) fn part(self: &Arc<Source>, offset: usize) -> (Arc<Source>, usize) {
        let found = self.parts.iter().rev().find(|(start, _)| *start <= offset);
        found.map_or_else(|| (self.clone(), 0), |(start, part)| (part.clone(), *start))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column from 1, the column in characters.
    pub(super) fn position(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..self.boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// `experiments/mine.toml:4`, the place without its column; of an argument, its name.
    pub fn line_of(self: &Arc<Source>, offset: usize) -> String {
        let (part, start) = self.part(offset);
        match part.numbered {
            true => format!("{}:{}", part.name, part.position(offset - start).0),
            false => part.name.trim_matches('`').to_string(),
        }
    }

    /// The file, from its name.
    fn path(&self) -> PathBuf {
        match (self.name.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(below), Some(home)) => Path::new(&home).join(below),
            _ => PathBuf::from(&self.name),
        }
    }

    fn boundary(&self, offset: usize) -> usize {
        (0..=offset.min(self.text.len())).rev().find(|&i| self.text.is_char_boundary(i)).unwrap_or(0)
    }
}

const WIDTH: usize = 100;

/// What stands in place of a line of such a file.
const PRIVATE: &str = "not shown: a link leads to this file, and not every user may read it";

/// Whether a path leads over a link to a file that is not readable for others. What root reads there for a project need not be the
/// project's: its lines are in no error, which others may read.
fn is_private(path: &Path) -> bool {
    let (Ok(whole), Ok(real)) = (std::path::absolute(path), std::fs::canonicalize(path)) else { return false };
    whole != real
        && whole.ancestors().any(Path::is_symlink)
        && std::fs::metadata(&real).is_ok_and(|file| file.permissions().mode() & 0o004 == 0)
}

/// The line with carets under the span, and the note if it did not fit beside them.
pub(super) fn excerpt(source: &Source, span: &Range<usize>, note: Option<&str>) -> ([Line; 2], Option<String>) {
    let (line, column) = source.position(span.start);
    if source.numbered && nix::unistd::geteuid().is_root() && is_private(&source.path()) {
        let blank = " ".repeat(format!("{line:>2}").len());
        return ([Line::plain(format!("{line:>2} | …")), Line::plain(format!("{blank} | {PRIVATE}"))], note.map(str::to_string));
    }
    let shown = source.text.lines().nth(line - 1).unwrap_or_default();
    let end = source.boundary(span.end.max(span.start));
    let length = source.text[source.boundary(span.start)..end].lines().next().unwrap_or_default().chars().count().max(1);
    // Control characters would move the cursor, and so the carets, of a terminal.
    let characters: Vec<char> = shown.chars().map(|c| if quoting::is_unseen(c) { ' ' } else { c }).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_behind_a_link_that_others_may_not_read_is_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().canonicalize().expect("it is there");
        let (file, link) = (home.join("secret.toml"), home.join("link.toml"));
        std::fs::write(&file, "root:*:20228").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        let open_to = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("its mode");
        open_to(0o600);
        assert!(is_private(&link) && !is_private(&file));
        open_to(0o644);
        assert!(!is_private(&link));
    }
}
