//! Ctrl-C, SIGTERM and SIGHUP: in a campaign the first asks and the second insists; before it the first ends what runs.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::campaign::End;
use crate::mistake::Fault;
use crate::observe::Stop;

/// Listens for signals as long as it lives.
pub struct Interrupts {
    stop: watch::Receiver<Stop>,
    first: Arc<Mutex<Option<(Instant, bool)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Interrupts {
    /// From now on the signals no longer end this process; whoever listens must.
    pub fn listen() -> std::io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // Under `nohup` the end of a terminal is nobody's wish.
        let mut hang_up = if is_ignored(Signal::SIGHUP) { None } else { Some(signal(SignalKind::hangup())?) };
        let (sender, stop) = watch::channel(Stop::No);
        let first = Arc::new(Mutex::new(None));
        let told = first.clone();
        let task = tokio::spawn(async move {
            loop {
                let by_hand = tokio::select! {
                    _ = interrupt.recv() => true,
                    _ = terminate.recv() => false,
                    _ = async { hang_up.as_mut()?.recv().await }, if hang_up.is_some() => false,
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

    /// For whoever wants to know at once.
    pub fn receiver(&self) -> watch::Receiver<Stop> {
        self.stop.clone()
    }

    /// What was asked for so far.
    pub fn asked(&self) -> Stop {
        *self.stop.borrow()
    }

    /// How long ago the first signal came.
    pub fn since(&self) -> Option<Duration> {
        lock(&self.first).map(|(at, _)| at.elapsed())
    }

    /// The end that follows from the first signal.
    pub fn end(&self, killed: bool) -> End {
        match *lock(&self.first) {
            Some((_, false)) => End::Terminated,
            _ => End::Interrupted { killed },
        }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn is_ignored(signal: Signal) -> bool {
    let mut now = std::mem::MaybeUninit::<nix::libc::sigaction>::zeroed();
    // SAFETY: without a new action it only writes the present one.
    unsafe {
        let asked = nix::libc::sigaction(signal as i32, std::ptr::null(), now.as_mut_ptr());
        asked == 0 && now.assume_init().sa_sigaction == nix::libc::SIG_IGN
    }
}

/// The last that came while somebody noted; 0 for none.
static CAME: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: i32) {
    CAME.store(signal, Ordering::Relaxed);
}

/// A signal came that asks collo to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} came", .0.as_str())]
pub struct Stopped(pub Signal);

impl Stopped {
    /// Ctrl-C is told from a word of whoever manages this machine or this session.
    pub fn fault(self) -> Fault {
        if self.0 == Signal::SIGINT { Fault::Interrupted } else { Fault::Terminated }
    }
}

/// While this is kept the signals do not end collo but are noted, for whoever looks: what runs then is ended in good order.
#[derive(Debug)]
pub struct Noted {
    before: Vec<(Signal, SigAction)>,
}

impl Noted {
    pub fn begin() -> Noted {
        let mut before = Vec::new();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            if signal == Signal::SIGHUP && is_ignored(signal) {
                continue;
            }
            let note = SigAction::new(SigHandler::Handler(note), SaFlags::empty(), SigSet::empty());
            // SAFETY: the handler does nothing but store a number.
            if let Ok(was) = unsafe { sigaction(signal, &note) } {
                before.push((signal, was));
            }
        }
        Noted { before }
    }

    /// The signal that came, if one did.
    pub fn came(&self) -> Option<Signal> {
        Signal::try_from(CAME.load(Ordering::Relaxed)).ok()
    }

    /// An error once one came.
    pub fn go_on(&self) -> Result<(), Stopped> {
        self.came().map_or(Ok(()), |signal| Err(Stopped(signal)))
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        for (signal, was) in &self.before {
            // SAFETY: what was there is put back.
            let _ = unsafe { sigaction(*signal, was) };
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
