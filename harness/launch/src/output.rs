//! The lines of one stream of a foreign script, each with the moment at which its text was complete. Pure.
//!
//! In: pieces of output, and when each arrived. Out: lines of visible text. A line happened when the last byte of its text arrived, not
//! when something came that ends it: scripts that redraw a line (`"\repoch 2 …"`) end one with the beginning of the next.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Maximum length of a line that reports an epoch.
const LONGEST: usize = 1 << 14;
/// After this, a line of a script that ends none of them is complete.
const QUIET_NS: u64 = 200_000_000;

/// Control sequences of terminals: CSI, with its final byte; strings such as titles and links; other escapes. ECMA-48, 5.3 to 5.6
/// (https://ecma-international.org/publications-and-standards/standards/ecma-48/).
static SEQUENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\x1b(?:\[[0-?]*[ -/]*([@-~])|\[[ -?]*$|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]|$)").ok()
});

/// Final bytes of the sequences that move the cursor to another line, or to a column of this one: ECMA-48, 8.3 (CUU, CUD, CNL, CPL,
/// CHA, CUP).
const MOVES: &str = "ABEFGH";

/// Splits output that arrives in pieces into lines.
#[derive(Default)]
pub struct OutputLines {
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
    /// It is too long already.
    lost: bool,
    /// When the newest piece of its text arrived, and how many there were.
    at_ns: u64,
    pieces: u32,
    /// It was passed on: what comes now comes too late.
    passed: bool,
    /// How sure it is that its lines are ended by the beginning of the next: 2 suffice.
    begins_with_end: u32,
}

impl OutputLines {
    /// Pass on the lines that end in this piece. Progress bars end theirs with a carriage return.
    pub fn take(&mut self, piece: &[u8], at_ns: u64, pass: &mut dyn FnMut(&str, u64)) {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|&b| is_end(b)) {
            self.add(&rest[..end], at_ns);
            self.learn(end == 0 && rest.len() == piece.len(), rest);
            self.end(pass);
            rest = &rest[end + 1..];
        }
        self.add(rest, at_ns);
    }

    /// When the line that is begun counts as complete unless more of it arrives; `None` for lines that will be ended.
    pub fn complete_at_ns(&self) -> Option<u64> {
        let is_whole = self.begins_with_end >= 2 && self.pieces == 1 && !self.passed;
        is_whole.then_some(self.at_ns + QUIET_NS)
    }

    /// Nothing more had arrived at this time.
    pub fn settle(&mut self, now_ns: u64, pass: &mut dyn FnMut(&str, u64)) {
        if self.complete_at_ns().is_some_and(|at| at <= now_ns) {
            self.pass_on(pass);
            self.passed = true;
        }
    }

    /// The output has ended, and with it its last line.
    pub fn end(&mut self, pass: &mut dyn FnMut(&str, u64)) {
        if !self.lost && !self.passed {
            self.pass_on(pass);
        }
        self.begun.clear();
        (self.lost, self.passed, self.pieces) = (false, false, 0);
    }

    fn add(&mut self, part: &[u8], at_ns: u64) {
        if part.is_empty() {
            return;
        }
        self.lost |= self.begun.len() + part.len() > LONGEST;
        if self.lost {
            self.begun.clear();
            return;
        }
        self.begun.extend_from_slice(part);
        if !visible(part).trim().is_empty() {
            (self.at_ns, self.pieces) = (at_ns, self.pieces.saturating_add(1));
        }
    }

    /// Whether this script begins each piece with what ends the line before: `rest` begins with an end of line, `first` of its piece.
    fn learn(&mut self, first: bool, rest: &[u8]) {
        if self.pieces == 0 {
            return; // a blank line
        }
        let begins_next = first && self.pieces == 1 && rest.get(1).is_some_and(|&b| !is_end(b));
        // A line feed may also be the one that `print` writes on its own, read together with the next line: one is no proof.
        self.begins_with_end = match (begins_next, rest.first()) {
            (true, Some(b'\n')) => self.begins_with_end.saturating_add(1),
            (true, _) => 2,
            (false, _) => 0,
        };
    }

    fn pass_on(&self, pass: &mut dyn FnMut(&str, u64)) {
        for line in visible(&self.begun).split('\n').map(str::trim_end).filter(|line| !line.is_empty()) {
            pass(line, self.at_ns);
        }
    }
}

/// The text without control sequences; where one moves the cursor elsewhere a line ends.
fn visible(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let Some(sequence) = SEQUENCE.as_ref().filter(|_| text.contains('\x1b')) else { return text.into_owned() };
    let is_move = |found: &Captures<'_>| found.get(1).is_some_and(|last| MOVES.contains(last.as_str()));
    sequence.replace_all(&text, |found: &Captures<'_>| if is_move(found) { "\n" } else { "" }).into_owned()
}

fn is_end(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The lines of pieces that arrive at these milliseconds, each with that of its own.
    fn timed(pieces: &[(u64, &str)]) -> Vec<(u64, String)> {
        let (mut lines, mut found) = (OutputLines::default(), Vec::new());
        for (at_ms, piece) in pieces {
            lines.settle(at_ms * MS, &mut |line, at_ns| found.push((at_ns / MS, line.to_string())));
            lines.take(piece.as_bytes(), at_ms * MS, &mut |line, at_ns| found.push((at_ns / MS, line.to_string())));
        }
        lines.end(&mut |line, at_ns| found.push((at_ns / MS, line.to_string())));
        found
    }

    fn lines(pieces: &[&str]) -> Vec<String> {
        timed(&pieces.iter().map(|piece| (0, *piece)).collect::<Vec<_>>()).into_iter().map(|(_, line)| line).collect()
    }

    fn at(at_ms: u64, line: &str) -> (u64, String) {
        (at_ms, line.to_string())
    }

    #[test]
    fn lines_come_whole_however_their_pieces_come() {
        assert_eq!(lines(&["epoch 1 took", " 2 s\nepoch", " ", "2\r\n", "\n", "last"]), ["epoch 1 took 2 s", "epoch 2", "last"]);
        let (mut bytes, mut found) = (OutputLines::default(), Vec::new());
        bytes.take(b"10 %\r20 %\r", 0, &mut |line, _| found.push(line.to_string()));
        bytes.take(b"\xff\n", 0, &mut |line, _| found.push(line.to_string()));
        assert_eq!(found, ["10 %", "20 %", "\u{fffd}"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_none_and_the_one_after_it_is_one() {
        let long = "x".repeat(LONGEST / 2 + 1);
        assert_eq!(lines(&[&long, &long, " epoch 1\n", "epoch 2\n"]), ["epoch 2"]);
        let (mut all, mut lines) = (0, OutputLines::default());
        for _ in 0..3200 {
            lines.take(&[b'x'; 1 << 16], 0, &mut |_, _| all += 1);
            assert!(lines.begun.len() <= LONGEST);
        }
        assert_eq!(all, 0, "200 MB without an end");
    }

    #[test]
    fn a_line_happened_when_its_text_was_complete() {
        let redrawn = [(500, "\repoch 1 took 0.5 s"), (1500, "\repoch 2 took 1.0 s"), (3000, "\repoch 3 took 1.5 s")];
        assert_eq!(
            timed(&redrawn),
            [at(500, "epoch 1 took 0.5 s"), at(1500, "epoch 2 took 1.0 s"), at(3000, "epoch 3 took 1.5 s")]
        );
        let fed = [(500, "\nTest set: 97 %"), (1500, "\nTest set: 98 %")];
        assert_eq!(timed(&fed), [at(500, "Test set: 97 %"), at(1500, "Test set: 98 %")]);
        let in_parts =
            [(100, "Epoch 1:"), (900, " loss 0.5"), (901, "\n"), (950, "Epoch 2:"), (1700, " loss 0.4"), (2500, "  \x1b[0m\n")];
        assert_eq!(timed(&in_parts), [at(900, "Epoch 1: loss 0.5"), at(1700, "Epoch 2: loss 0.4")]);
    }

    #[test]
    fn a_line_that_no_end_follows_is_complete_when_nothing_more_arrives() {
        let (mut lines, mut found) = (OutputLines::default(), Vec::new());
        let mut arrives = |at_ms: u64, piece: &str| {
            lines.settle(at_ms * MS, &mut |line, _| found.push(line.to_string()));
            lines.take(piece.as_bytes(), at_ms * MS, &mut |line, _| found.push(line.to_string()));
            (found.len(), lines.complete_at_ns().map(|at| at / MS))
        };
        assert_eq!(arrives(0, "\repoch 1"), (0, None), "the first may be a beginning");
        assert_eq!(arrives(1000, "\repoch 2"), (1, Some(1200)));
        assert_eq!(arrives(1201, ""), (2, None), "as the one before was");
        assert_eq!(arrives(2000, "\repoch 3"), (2, Some(2200)), "and it is passed on once");
        assert_eq!(arrives(2100, " of 9"), (2, None), "it was not complete");
        assert_eq!(arrives(3000, "\n"), (3, None));
        assert_eq!(found.last().unwrap(), "epoch 3 of 9");
    }

    #[test]
    fn a_beginning_is_not_taken_for_a_line() {
        let (mut lines, mut found) = (OutputLines::default(), 0);
        // `print("data")`, then `print("Epoch 1:", end=" ")`, read together with the end of the former.
        for (at_ms, piece) in [(0, "data"), (1, "\nEpoch 1:"), (900, " loss 0.5"), (901, "\nEpoch 2:")] {
            lines.take(piece.as_bytes(), at_ms * MS, &mut |_, _| found += 1);
            assert_eq!(lines.complete_at_ns(), None, "{piece}");
        }
        assert_eq!(found, 2);
    }

    #[test]
    fn colours_and_other_sequences_of_terminals_are_no_text() {
        let colours = "\x1b[32m2026-11-25\x1b[0m | \x1b[1mINFO\x1b[0m - \x1b[38;2;1;2;3mepoch 1\x1b[0m\n";
        assert_eq!(lines(&[colours]), ["2026-11-25 | INFO - epoch 1"]);
        assert_eq!(lines(&["\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\x1b(B\n"]), ["alink"]);
        assert_eq!(
            lines(&["\x1b[2K\x1b[1Gepoch 1\x1b[K\x1b[1Gepoch 2\x1b["]),
            ["epoch 1", "epoch 2"],
            "a line may be redrawn by them"
        );
        assert_eq!(lines(&["bar 100%\x1b[A{'loss': 0.5}\n"]), ["bar 100%", "{'loss': 0.5}"]);
    }
}
