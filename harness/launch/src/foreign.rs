//! A script without the protocol: its output is read here, kept in its log, and translated.
//!
//! Whatever it prints, its supervisor stays responsive: a turn reads a limited amount, a line is searched once, and one too long
//! for an epoch's is ignored.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use collo_store::monotonic_ns;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::adapter::{Adapter, Translator};

/// The default capacity of a pipe (pipe(7)).
const PIECE: usize = 1 << 16;
/// Pieces read per turn; then the supervisor checks whether its member has ended and whether collo wants its end.
const PIECES: usize = 16;
/// Maximum length of a line that reports an epoch.
const LONGEST: usize = 1 << 14;

pub struct Foreign {
    output: File,
    log: File,
    lines: OutputLines,
    translator: Translator,
    channel: UnixStream,
    open: bool,
}

impl Foreign {
    pub fn new(adapter: &Adapter, output: File, log: File, channel: UnixStream, started_ns: u64) -> Result<Foreign, String> {
        non_blocking(&output).map_err(|e| e.to_string())?;
        let translator = Translator::new(adapter, started_ns).map_err(|e| e.to_string())?;
        Ok(Foreign { output, log, lines: OutputLines::default(), translator, channel, open: true })
    }

    /// The channel from collo to the member.
    pub fn channel(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// Its output, as long as any process may still write to it.
    pub fn output(&self) -> Option<BorrowedFd<'_>> {
        self.open.then(|| self.output.as_fd())
    }

    /// Read available output, up to a limit: append it to the log, and translate it. True if there may be more.
    pub fn pump(&mut self) -> bool {
        let mut piece = [0; PIECE];
        for _ in 0..PIECES {
            match self.output.read(&mut piece) {
                Ok(n) if n > 0 => {
                    let at_ns = monotonic_ns();
                    let _ = self.log.write_all(&piece[..n]);
                    let (translator, channel) = (&mut self.translator, &mut self.channel);
                    self.lines.take(&piece[..n], &mut |line| {
                        for message in translator.line(line, at_ns) {
                            // If nobody listens any more, the lifeline says so too.
                            let _ = channel.write_all(format!("{message}\n").as_bytes());
                        }
                    });
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return false,
                Ok(_) | Err(_) => {
                    self.open = false;
                    return false;
                }
            }
        }
        true
    }

    /// Read the rest after its end. Root may enlarge a pipe further than others, but not endlessly.
    pub fn finish(&mut self) {
        (0..PIECES).any(|_| !self.pump());
    }
}

/// Splits output that arrives in pieces into lines.
#[derive(Default)]
struct OutputLines {
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
    /// It is too long already.
    lost: bool,
}

impl OutputLines {
    /// Pass on the lines that end in this piece. Progress bars end theirs with a carriage return.
    fn take(&mut self, mut piece: &[u8], hand: &mut dyn FnMut(&str)) {
        while let Some(end) = piece.iter().position(|&b| b == b'\n' || b == b'\r') {
            let (line, rest) = (&piece[..end], &piece[end + 1..]);
            if !std::mem::take(&mut self.lost) && self.begun.len() + line.len() <= LONGEST {
                if self.begun.is_empty() {
                    hand(String::from_utf8_lossy(line).trim_end());
                } else {
                    self.begun.extend_from_slice(line);
                    hand(String::from_utf8_lossy(&self.begun).trim_end());
                }
            }
            self.begun.clear();
            piece = rest;
        }
        self.lost |= self.begun.len() + piece.len() > LONGEST;
        match self.lost {
            true => self.begun.clear(),
            false => self.begun.extend_from_slice(piece),
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

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut found) = (OutputLines::default(), Vec::new());
        for piece in pieces {
            lines.take(piece, &mut |line| found.push(line.to_string()));
        }
        found
    }

    #[test]
    fn lines_come_whole_however_their_pieces_come() {
        assert_eq!(lines(&[b"epoch 1 took", b" 2 s\nepoch", b" ", b"2\r\n", b"torn"]), ["epoch 1 took 2 s", "epoch 2", ""]);
        assert_eq!(lines(&[b"10 %\r20 %\r", b"\xff\n"]), ["10 %", "20 %", "\u{fffd}"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_none_and_the_one_after_it_is_one() {
        let long = vec![b'x'; LONGEST / 2 + 1];
        assert_eq!(lines(&[&long, &long, b" epoch 1\n", b"epoch 2\n"]), ["epoch 2"]);
        let (mut all, mut lines) = (0, OutputLines::default());
        for _ in 0..3200 {
            lines.take(&[b'x'; PIECE], &mut |_| all += 1);
            assert!(lines.begun.len() <= LONGEST);
        }
        assert_eq!(all, 0, "200 MB without an end");
    }

    #[test]
    fn a_script_that_never_stops_printing_does_not_keep_its_supervisor() {
        let (output, input) = std::io::pipe().unwrap();
        let log = tempfile::NamedTempFile::new().unwrap();
        let adapter = Adapter {
            pattern: r"^epoch (?P<epoch>\d+) took (?P<seconds>[\d.]+) s".into(),
            items: None,
            goal: EpochGoal { epochs: 2, measure_for_ns: 0 },
        };
        let (channel, heard) = UnixStream::pair().unwrap();
        let output = File::from(std::os::fd::OwnedFd::from(output));
        let mut foreign = Foreign::new(&adapter, output, log.reopen().unwrap(), channel, 0).unwrap();
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
