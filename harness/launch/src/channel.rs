//! Reading lines from a member that may say anything: nothing, half a line, or a line without end.

use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest line that a member may send.
pub const LONGEST_LINE: usize = 1 << 20;

/// An item read from the channel.
#[derive(Debug, PartialEq)]
pub enum ChannelLine {
    /// A whole line, without its end.
    Whole(Vec<u8>),
    /// More than [`LONGEST_LINE`] bytes without an end.
    TooLong,
    /// The other side closed; `cut_off` if in the middle of a line, `unread` if it had not read all that was sent to it: the kernel
    /// then resets the connection (`unix_release_sock` in Linux's net/unix/af_unix.c).
    Closed { cut_off: bool, unread: bool },
}

/// Splits a stream into lines within bounded memory.
pub struct ChannelLines<R> {
    stream: R,
    buffer: Vec<u8>,
    piece: Box<[u8; 1 << 14]>,
    deaf: bool,
}

impl<R: AsyncRead + Unpin> ChannelLines<R> {
    /// Read lines from a stream.
    pub fn new(stream: R) -> Self {
        ChannelLines { stream, buffer: Vec::new(), piece: Box::new([0; 1 << 14]), deaf: false }
    }

    /// The next line. An error of the stream counts as its end: the supervisor reports what happened to the member.
    pub async fn next(&mut self) -> ChannelLine {
        loop {
            if let Some(end) = self.buffer.iter().position(|&b| b == b'\n') {
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                line.pop();
                return ChannelLine::Whole(line);
            }
            if self.buffer.len() > LONGEST_LINE {
                return ChannelLine::TooLong;
            }
            match self.stream.read(&mut self.piece[..]).await {
                Ok(0) => return ChannelLine::Closed { cut_off: !self.buffer.is_empty(), unread: false },
                Err(e) => {
                    let unread = e.kind() == std::io::ErrorKind::ConnectionReset;
                    return ChannelLine::Closed { cut_off: !self.buffer.is_empty(), unread };
                }
                Ok(_) if self.deaf => {}
                Ok(n) => self.buffer.extend_from_slice(&self.piece[..n]),
            }
        }
    }

    /// Discard all further input: a process about to be ended must not hang in its `write`, least of all a supervisor that writes
    /// for its script.
    pub fn go_deaf(&mut self) {
        (self.buffer, self.deaf) = (Vec::new(), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: Vec<u8>) -> Vec<ChannelLine> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut lines = ChannelLines::new(&bytes[..]);
            let mut found = Vec::new();
            loop {
                let line = lines.next().await;
                let last = !matches!(line, ChannelLine::Whole(_));
                found.push(line);
                if last {
                    return found;
                }
            }
        })
    }

    #[test]
    fn half_a_line_is_told_from_a_whole_one() {
        let found = read(b"one\ntwo\nthr".to_vec());
        assert_eq!(
            found,
            [
                ChannelLine::Whole(b"one".to_vec()),
                ChannelLine::Whole(b"two".to_vec()),
                ChannelLine::Closed { cut_off: true, unread: false }
            ]
        );
    }

    #[test]
    fn who_is_not_believed_any_more_is_read_to_its_end_and_not_heard() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let bytes = "flood\n".repeat(1 << 20);
            let mut lines = ChannelLines::new(bytes.as_bytes());
            assert_eq!(lines.next().await, ChannelLine::Whole(b"flood".to_vec()));
            lines.go_deaf();
            assert_eq!(lines.next().await, ChannelLine::Closed { cut_off: false, unread: false });
        });
    }

    #[test]
    fn a_line_without_end_is_given_up_long_before_it_fills_the_memory() {
        assert_eq!(read(vec![b'x'; 100 << 20]), [ChannelLine::TooLong]);
    }
}
