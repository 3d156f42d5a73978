//! Ctrl-C, SIGTERM and the other signals of [`crate::interrupted::ENDING`] during a campaign: the first asks, the second forces.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::interrupted::{Listening, ending_here, install_handlers};

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
    tasks: tokio::task::JoinSet<()>,
    _listening: Listening,
}

impl Interrupts {
    /// From now on the signals no longer end this process; the caller must check them.
    pub fn listen() -> std::io::Result<Self> {
        install_handlers();
        let (came, mut coming) = mpsc::unbounded_channel();
        let mut tasks = tokio::task::JoinSet::new();
        for kind in ending_here() {
            let (mut signals, came) = (signal(SignalKind::from_raw(kind as i32))?, came.clone());
            tasks.spawn(async move { while signals.recv().await.is_some() && came.send(kind).is_ok() {} });
        }
        // Until here a signal ends the process: nothing is changed yet.
        let listening = Listening::begin();
        let (sender, stop) = watch::channel(Stop::No);
        let first = Arc::new(Mutex::new(None));
        let told = first.clone();
        tasks.spawn(async move {
            while let Some(kind) = coming.recv().await {
                lock(&told).get_or_insert((Instant::now(), kind == Signal::SIGINT));
                let next = match *sender.borrow() {
                    Stop::No => Stop::Gently,
                    // The limit of CPU time sends one for each further second of it (setrlimit(2)): that is one request, not several.
                    asked if kind == Signal::SIGXCPU => asked,
                    Stop::Gently | Stop::Now => Stop::Now,
                };
                if sender.send(next).is_err() {
                    return;
                }
            }
        });
        Ok(Interrupts { stop, first, tasks, _listening: listening })
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

    /// Whether the first signal was a Ctrl-C, not one from a service manager, a session or a limit.
    pub fn is_by_hand(&self) -> bool {
        lock(&self.first).is_none_or(|(_, by_hand)| by_hand)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.tasks.abort_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
