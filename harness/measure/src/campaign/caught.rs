//! Panics while a campaign is measured: the GPU must still be restored as found.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// The result, or the panic: then everything that was running has been ended, members included, and only measurements remain.
pub(super) async fn caught<T>(work: impl Future<Output = T>) -> std::thread::Result<T> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(state) => state.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// Whether a panic was caused by a failure to start a thread: the messages of the standard library and thread pools if the system
/// refuses one (EAGAIN, pthread_create(3)).
pub fn is_want_of_threads(said: &str) -> bool {
    said.contains("thread") && (said.contains("WouldBlock") || said.contains("Resource temporarily unavailable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct LeasedGpu<'a>(&'a std::cell::Cell<bool>);

    impl Drop for LeasedGpu<'_> {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }

    #[tokio::test]
    async fn what_panics_is_handed_back_and_what_it_held_is_let_go() {
        let gone = std::cell::Cell::new(false);
        let result = caught(async {
            let _card = LeasedGpu(&gone);
            tokio::task::yield_now().await;
            let refused = std::io::Error::from_raw_os_error(nix::libc::EAGAIN);
            panic!("failed to spawn thread: {refused:?}")
        })
        .await;
        let said = result.expect_err("it panicked").downcast_ref::<String>().cloned().expect("a text");
        assert!(is_want_of_threads(&said), "{said}");
        assert!(gone.get());
        assert_eq!(caught(async { 1 }).await.expect("it did not"), 1);
    }
}
