//! A script without the protocol: its output is read here, kept in its log, and translated.
//!
//! Its two streams are two pipes, because a progress bar on one has no end of line and would swallow the beginning of a line on the other.
//! Whatever it prints, its supervisor stays responsive: a turn reads a limited amount, a line is searched once, and one too long
//! for an epoch's is ignored. Where no line matches, a pattern that does is proposed.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use collo_store::monotonic_ns;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use serde_json::{Value, json};

use super::adapter::{Adapter, Translator};
use super::find_progress::{FoundProgress, LATE_S, OutputLine, find_progress};
use super::output::OutputLines;

/// The default capacity of a pipe (pipe(7)).
const PIECE: usize = 1 << 16;
/// Pieces of each stream read per turn; then the supervisor checks whether its member has ended and whether collo wants its end.
const PIECES: usize = 16;
/// The first lines that are searched for progress if none matches.
const SEARCHED: usize = 2000;

pub struct Foreign {
    streams: [Stream; 2],
    log: SharedLog,
    translator: Translator,
    channel: UnixStream,
    started_ns: u64,
    /// The first lines, until one matches.
    unmatched: Vec<OutputLine>,
    has_matched: bool,
}

/// Standard output, or standard error.
struct Stream {
    /// `None` once nothing can write to it any more.
    output: Option<File>,
    lines: OutputLines,
}

impl Foreign {
    /// `outputs` are the reading ends of its standard output and standard error.
    pub fn new(
        adapter: &Adapter,
        outputs: [File; 2],
        log: File,
        channel: UnixStream,
        started_ns: u64,
    ) -> Result<Foreign, String> {
        for output in &outputs {
            non_blocking(output).map_err(|e| e.to_string())?;
        }
        let translator = Translator::new(adapter, started_ns).map_err(|e| e.to_string())?;
        let streams = outputs.map(|output| Stream { output: Some(output), lines: OutputLines::default() });
        let (log, unmatched) = (SharedLog::new(log), Vec::new());
        Ok(Foreign { streams, log, translator, channel, started_ns, unmatched, has_matched: false })
    }

    /// The channel from collo to the member.
    pub fn channel(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// Its streams, as long as any process may still write to them.
    pub fn outputs(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.iter().filter_map(|stream| stream.output.as_ref()).map(AsFd::as_fd)
    }

    /// When to look again even if nothing happens.
    pub fn due_ns(&self) -> Option<u64> {
        self.streams.iter().filter_map(|stream| stream.lines.complete_at_ns()).min()
    }

    /// Read available output, up to a limit: append it to the log, and translate it. True if there may be more.
    pub fn pump(&mut self) -> bool {
        let mut piece = [0; PIECE];
        let mut more = true;
        for _ in 0..PIECES {
            // One piece of each in turn, so that the log has them in the order in which they arrive.
            more = false;
            for stream in 0..self.streams.len() {
                more |= self.read(stream, &mut piece);
            }
            if !more {
                let now_ns = monotonic_ns();
                for stream in 0..self.streams.len() {
                    self.translate(stream, |lines, pass| lines.settle(now_ns, pass));
                }
                break;
            }
        }
        let report = self.translator.wait(monotonic_ns()).map(|report| self.propose(report, Some(monotonic_ns())));
        self.send(report);
        more
    }

    /// Read the rest after its end; `ended_well` if it ended with 0 by itself. Root may enlarge a pipe further than others, but not endlessly.
    pub fn finish(&mut self, ended_well: bool) {
        (0..PIECES).any(|_| !self.pump());
        for stream in 0..self.streams.len() {
            self.translate(stream, OutputLines::end);
        }
        let messages: Vec<Value> = self.translator.end(ended_well);
        let messages: Vec<Value> = messages.into_iter().map(|message| self.propose(message, None)).collect();
        self.send(messages);
    }

    /// Read a piece of a stream. True if there may be more.
    fn read(&mut self, stream: usize, piece: &mut [u8]) -> bool {
        let Some(output) = &mut self.streams[stream].output else { return false };
        match output.read(piece) {
            Ok(n) if n > 0 => {
                let at_ns = monotonic_ns();
                self.log.append(stream, &piece[..n]);
                self.translate(stream, |lines, pass| lines.take(&piece[..n], at_ns, pass));
                true
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => true,
            Err(e) if e.kind() == ErrorKind::WouldBlock => false,
            Ok(_) | Err(_) => {
                self.streams[stream].output = None;
                self.translate(stream, OutputLines::end);
                false
            }
        }
    }

    /// Send what the lines translate to that `step` passes on.
    fn translate(&mut self, stream: usize, step: impl FnOnce(&mut OutputLines, &mut dyn FnMut(&str, u64))) {
        let mut messages = Vec::new();
        let (translator, unmatched) = (&mut self.translator, &mut self.unmatched);
        let has_matched = self.has_matched;
        step(&mut self.streams[stream].lines, &mut |line, at_ns| {
            messages.extend(translator.line(line, at_ns));
            if !has_matched && unmatched.len() < SEARCHED {
                unmatched.push(OutputLine { at_ns, text: line.to_string() });
            }
        });
        if !messages.is_empty() {
            (self.has_matched, self.unmatched) = (true, Vec::new());
        }
        self.send(messages);
    }

    /// A report of what its output lacks, with a pattern that its first lines match, if there is one. While it runs, what its set-up
    /// printed before it fell silent is none.
    fn propose(&self, mut report: Value, runs_at_ns: Option<u64>) -> Value {
        if report["event"] != "shortfall" || report["newest"].as_array().is_none_or(Vec::is_empty) {
            return report;
        }
        let after_s = |ns: u64| ns.saturating_sub(self.started_ns) as f64 / 1e9;
        let found = find_progress(&self.unmatched, self.started_ns);
        let goes_on = |found: &&FoundProgress| runs_at_ns.is_none_or(|ns| found.may_go_on_at(after_s(ns), LATE_S));
        if let Some(found) = found.iter().find(goes_on)
            && let Some(message) = report["message"].as_str()
        {
            let (toml, line) = (found.toml(), found.lines.last().map_or("", |line| line.trim()));
            report["message"] = json!(format!("{message}; `{toml}` in `[epochs]` matches lines such as `{line}`"));
            report["proposal"] = json!(toml);
        }
        report
    }

    fn send(&mut self, messages: impl IntoIterator<Item = Value>) {
        for message in messages {
            // If the other end is closed, so is the lifeline.
            let _ = self.channel.write_all(format!("{message}\n").as_bytes());
        }
    }
}

/// The one log of two streams: what comes from the other begins a line.
struct SharedLog {
    file: File,
    newest: usize,
    /// The newest piece ended a line.
    is_ended: bool,
    /// The streams whose line was ended here, by the other.
    broken: [bool; 2],
}

impl SharedLog {
    fn new(file: File) -> Self {
        SharedLog { file, newest: 0, is_ended: true, broken: [false; 2] }
    }

    fn append(&mut self, stream: usize, piece: &[u8]) {
        if stream != self.newest && !self.is_ended {
            let _ = self.file.write_all(b"\n");
            (self.broken[self.newest], self.is_ended) = (true, true);
        }
        self.newest = stream;
        // `print` writes the end of a line on its own: it stands there already.
        let piece = match std::mem::take(&mut self.broken[stream]) {
            true => piece.strip_prefix(b"\n").unwrap_or(piece),
            false => piece,
        };
        if let Some(last) = piece.last() {
            let _ = self.file.write_all(piece);
            self.is_ended = matches!(last, b'\n' | b'\r');
        }
    }
}

fn non_blocking(file: &File) -> nix::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFL)?);
    fcntl(file, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_plan::goal::EpochGoal;

    #[test]
    fn the_log_of_two_streams_has_their_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut log = SharedLog::new(file.reopen().unwrap());
        let pieces = [
            (1, "\r 25%|#  |"),
            (0, "epoch 1"),
            (0, "\n"),
            (1, "\r 50%|## |"),
            (0, "epo"),
            (1, "\r 75%|###|"),
            (0, "\n"),
            (0, "end\n"),
        ];
        pieces.iter().for_each(|(stream, piece)| log.append(*stream, piece.as_bytes()));
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(text, "\r 25%|#  |\nepoch 1\n\r 50%|## |\nepo\n\r 75%|###|\nend\n");
    }

    #[test]
    fn a_script_that_never_stops_printing_does_not_keep_its_supervisor() {
        let (output, input) = std::io::pipe().unwrap();
        let log = tempfile::NamedTempFile::new().unwrap();
        let adapter = Adapter {
            pattern: r"^epoch (?P<epoch>\d+) took (?P<seconds>[\d.]+) s".into(),
            preset: None,
            items: None,
            goal: EpochGoal { epochs: 2, measure_for_ns: 0 },
            measures_on: false,
        };
        let (channel, heard) = UnixStream::pair().unwrap();
        let outputs = [File::from(std::os::fd::OwnedFd::from(output)), File::open("/dev/null").unwrap()];
        let mut foreign = Foreign::new(&adapter, outputs, log.reopen().unwrap(), channel, 0).unwrap();
        let writer = std::thread::spawn(move || {
            let mut input = input;
            let text = "step 17: loss 0.25\n".repeat(10_000);
            while input.write_all(text.as_bytes()).is_ok() {}
        });
        for _ in 0..3 {
            foreign.pump();
        }
        drop((foreign, heard));
        writer.join().unwrap();
        let kept = log.as_file().metadata().unwrap().len();
        assert!(kept <= (3 * PIECES * PIECE) as u64, "{kept}");
    }
}
