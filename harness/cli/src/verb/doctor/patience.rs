//! Questions that may get no answer: each has three seconds, the driver's first one fifteen.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(3);

/// Without persistence mode the driver starts its cards when it is asked; eight of them take many seconds (NVIDIA's driver persistence
/// document).
pub const OF_DRIVER: Duration = Duration::from_secs(15);

/// The answer, if it comes in time; who waits long is told what for. A question that hangs is left to itself; it ends with this process.
pub fn within<T: Send + 'static>(
    patience: Duration,
    waiting: impl FnOnce(),
    question: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(question()));
    let soon = patience.min(PATIENCE);
    match receiver.recv_timeout(soon) {
        Err(mpsc::RecvTimeoutError::Timeout) if patience > soon => {
            waiting();
            receiver.recv_timeout(patience - soon).ok()
        }
        answer => answer.ok(),
    }
}

/// What a program said on both streams, and whether it was content; none if it is not there or takes too long.
pub fn ask(program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let mut command = Command::new(program);
    let mut child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let read = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = stream.map(|s| s.take(1 << 20).read_to_end(&mut said));
            String::from_utf8_lossy(&said).into_owned()
        })
    };
    let out = read(out.map(|s| Box::new(s) as Box<dyn Read + Send>));
    let err = read(err.map(|s| Box::new(s) as Box<dyn Read + Send>));
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                let said = out.join().unwrap_or_default() + &err.join().unwrap_or_default();
                return Some((status.success(), said));
            }
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_asked_and_one_that_is_not_there_says_nothing() {
        assert_eq!(ask("echo", &["a"]), Some((true, "a\n".into())));
        assert_eq!(ask("/no/such/program", &[]), None);
        let never = || panic!("nobody waits");
        assert_eq!(within(PATIENCE, never, || 3), Some(3));
    }

    #[test]
    fn who_waits_long_is_told_what_for() {
        let told = std::cell::Cell::new(false);
        let slow = || std::thread::sleep(PATIENCE + Duration::from_millis(300));
        assert_eq!(within(OF_DRIVER, || told.set(true), slow), Some(()));
        assert!(told.get());
    }
}
