//! Questions that may get no answer: each has fifteen seconds, for a driver of eight cards that must be woken takes that long.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(15);

/// The answer, if it comes in time. A question that hangs is left to itself; it ends with this process.
pub fn within<T: Send + 'static>(question: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(question()));
    receiver.recv_timeout(PATIENCE).ok()
}

/// What a program said on both streams, and whether it was content; none if it is not there or takes too long.
pub fn ask(program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let mut command = Command::new(program);
    // It is for programs that compute, and the newest tools of DCGM complain of it.
    command.env_remove("CUDA_VISIBLE_DEVICES");
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
        assert_eq!(within(|| 3), Some(3));
    }
}
