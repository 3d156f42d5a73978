//! Ctrl-C and SIGTERM: the first asks, the second forces.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How urgently a run is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    No,
    /// The first Ctrl-C: stop the members, record the run as interrupted.
    Gently,
    /// The second: kill at once.
    Now,
}

/// Listens for signals until dropped.
pub struct Interrupts {
    stop: watch::Receiver<Stop>,
    first: Arc<Mutex<Option<(Instant, bool)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Interrupts {
    /// From now on the signals no longer end this process; the caller must check them.
    pub fn listen() -> std::io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // Who started it with `nohup` wants it to go on when the terminal is closed: that is a signal that is ignored from the start.
        let mut hang_up = if is_ignored(nix::libc::SIGHUP) { None } else { Some(signal(SignalKind::hangup())?) };
        let (sender, stop) = watch::channel(Stop::No);
        let first = Arc::new(Mutex::new(None));
        let told = first.clone();
        let task = tokio::spawn(async move {
            loop {
                let by_hand = tokio::select! {
                    _ = interrupt.recv() => true,
                    _ = terminate.recv() => false,
                    () = next(&mut hang_up) => false,
                };
                lock(&told).get_or_insert((Instant::now(), by_hand));
                let next = if *sender.borrow() == Stop::No { Stop::Gently } else { Stop::Now };
                if sender.send(next).is_err() {
                    return;
                }
            }
        });
        Ok(Interrupts { stop, first, task })
    }

    /// For code that has to react immediately.
    pub fn receiver(&self) -> watch::Receiver<Stop> {
        self.stop.clone()
    }

    /// What has been requested so far.
    pub fn asked(&self) -> Stop {
        *self.stop.borrow()
    }

    /// Time since the first signal.
    pub fn since(&self) -> Option<Duration> {
        lock(&self.first).map(|(at, _)| at.elapsed())
    }

    /// Whether the first signal was a Ctrl-C, not one from a service manager or session.
    pub fn is_by_hand(&self) -> bool {
        lock(&self.first).is_none_or(|(_, by_hand)| by_hand)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn next(signals: &mut Option<Signal>) {
    match signals {
        Some(signals) => drop(signals.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether a signal was ignored when this process began, from proc(5): `SigIgn`, a bit for each signal from 1.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).and_then(|m| u64::from_str_radix(m.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
