//! Queries that may hang: each has a limit of fifteen seconds, and after three the user is told the reason for the wait.

use std::sync::mpsc;
use std::time::Duration;

use collo_launch::Errand;

/// Without persistence mode the driver initialises its GPUs on a query; eight of them take many seconds (NVIDIA's driver
/// persistence document).
pub const TIMEOUT: Duration = Duration::from_secs(15);
/// A wait longer than this is explained.
const SOON: Duration = Duration::from_secs(3);

/// The answer, if it comes in time; a long wait is explained. A query that hangs is abandoned; it ends with this process.
pub fn within<T: Send + 'static>(waiting: impl FnOnce(), question: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(question()));
    match receiver.recv_timeout(SOON) {
        Err(mpsc::RecvTimeoutError::Timeout) => {
            waiting();
            receiver.recv_timeout(TIMEOUT - SOON).ok()
        }
        answer => answer.ok(),
    }
}

/// A program's output on both streams, and whether it succeeded; `None` if it is missing or takes too long.
pub fn ask(program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let said = errand(program, arguments, TIMEOUT).ask().ok()?;
    said.status.map(|_| (said.success(), said.out() + &said.err()))
}

/// A query to a program of the driver or of DCGM: without `CUDA_VISIBLE_DEVICES`, about which the newest tools complain.
pub fn errand(program: &str, arguments: &[&str], patience: Duration) -> Errand {
    Errand::to(program, patience).args(arguments).env("CUDA_VISIBLE_DEVICES", None::<String>)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_asked_and_one_that_is_not_there_says_nothing() {
        assert_eq!(ask("echo", &["a"]), Some((true, "a\n".into())));
        assert_eq!(ask("/no/such/program", &[]), None);
        let never = || panic!("nobody waits");
        assert_eq!(within(never, || 3), Some(3));
    }

    #[test]
    fn who_waits_long_is_told_what_for() {
        let told = std::cell::Cell::new(false);
        let slow = || std::thread::sleep(SOON + Duration::from_millis(300));
        assert_eq!(within(|| told.set(true), slow), Some(()));
        assert!(told.get());
    }
}
