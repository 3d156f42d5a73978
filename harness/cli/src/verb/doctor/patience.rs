//! Questions that may get no answer: each has fifteen seconds, and whoever waits longer than three is told what for.

use std::sync::mpsc;
use std::time::Duration;

use collo_measure::launch::Errand;

/// Without persistence mode the driver starts its cards when it is asked; eight of them take many seconds (NVIDIA's driver persistence
/// document).
pub const PATIENCE: Duration = Duration::from_secs(15);
/// How long anybody waits without asking what for.
const SOON: Duration = Duration::from_secs(3);

/// The answer, if it comes in time; who waits long is told what for. A question that hangs is left to itself; it ends with this process.
pub fn within<T: Send + 'static>(waiting: impl FnOnce(), question: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(question()));
    match receiver.recv_timeout(SOON) {
        Err(mpsc::RecvTimeoutError::Timeout) => {
            waiting();
            receiver.recv_timeout(PATIENCE - SOON).ok()
        }
        answer => answer.ok(),
    }
}

/// What a program said on both streams, and whether it was content; none if it is not there or takes too long.
pub fn ask(program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let said = errand(program, arguments, PATIENCE).ask().ok()?;
    said.status.map(|_| (said.success(), said.out() + &said.err()))
}

/// A question to a program of the driver's, or of DCGM's: what is for programs that compute is not for it, and the newest tools complain.
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
