//! What a loop that watches members receives, the most urgent first.

use std::time::Duration;

use collo_store::monotonic_ns;
use tokio::sync::{mpsc, watch};
use tokio::time::{Interval, MissedTickBehavior};

use collo_launch::Signal;
use collo_launch::interrupt::Stop;

/// How often the display and the time limits are updated.
const LOOK: Duration = Duration::from_millis(250);

/// A tick this late means that collo itself was suspended: stopped by a signal, or without a processor.
const LATE: Duration = Duration::from_secs(1);

/// What a loop received.
pub enum Received<E> {
    Stop(Stop),
    /// It is time to update the display and the time limits.
    Look {
        now_ns: u64,
        /// For how long collo was suspended before, if it was. What follows `now_ns` is not in it.
        suspended: Option<Duration>,
    },
    Signal(usize, Signal),
    /// What only this loop waits for.
    Own(E),
}

/// Where a loop receives from.
pub struct Inbox {
    stop: watch::Receiver<Stop>,
    stop_open: bool,
    look: Interval,
    looked_ns: u64,
    signals: mpsc::Receiver<(usize, Signal)>,
}

impl Inbox {
    /// The looks count from `begun_ns`.
    pub fn open(signals: mpsc::Receiver<(usize, Signal)>, stop: watch::Receiver<Stop>, begun_ns: u64) -> Inbox {
        let mut look = tokio::time::interval(LOOK);
        // The looks that were missed are not made up for.
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Inbox { stop, stop_open: true, look, looked_ns: begun_ns, signals }
    }

    /// The next event. Time and requests to stop come first: no member can talk them down. Of the loop's own, one comes before members'
    /// messages, one after.
    pub async fn next<E>(&mut self, before: impl Future<Output = E>, after: impl Future<Output = E>) -> Received<E> {
        tokio::select! {
            biased;
            changed = self.stop.changed(), if self.stop_open => {
                self.stop_open = changed.is_ok();
                Received::Stop(*self.stop.borrow())
            }
            _ = self.look.tick() => {
                let now_ns = monotonic_ns();
                let since = Duration::from_nanos(now_ns.saturating_sub(std::mem::replace(&mut self.looked_ns, now_ns)));
                Received::Look { now_ns, suspended: (since > LATE).then(|| since - LOOK) }
            }
            own = before => Received::Own(own),
            Some((member, signal)) = self.signals.recv() => Received::Signal(member, signal),
            own = after => Received::Own(own),
        }
    }
}
