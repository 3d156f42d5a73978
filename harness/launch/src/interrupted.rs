//! Ctrl-C, SIGTERM and SIGHUP before there is a campaign: the first ends the current step, with a message.

use std::sync::atomic::{AtomicI32, Ordering};

use collo_text::ExitClass;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::interrupt::is_ignored;

/// The last signal noted; 0 for none.
static CAME: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: i32) {
    CAME.store(signal, Ordering::Relaxed);
}

/// A signal asked collo to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("received {}", .0.as_str())]
pub struct Stopped(pub Signal);

impl Stopped {
    /// Distinguishes Ctrl-C from a signal of a service manager or session.
    pub fn class(self) -> ExitClass {
        if self.0 == Signal::SIGINT { ExitClass::Interrupted } else { ExitClass::Incomplete }
    }
}

/// Until dropped, the signals do not end collo but are noted, for the code to check: the current step then ends cleanly.
#[derive(Debug)]
pub struct Noted {
    before: Vec<(Signal, SigAction)>,
}

impl Noted {
    pub fn begin() -> Noted {
        let mut before = Vec::new();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            if signal == Signal::SIGHUP && is_ignored(signal as i32) {
                // As `nohup` wants it.
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

    /// The signal received, if any.
    pub fn came(&self) -> Option<Signal> {
        Signal::try_from(CAME.load(Ordering::Relaxed)).ok()
    }

    /// An error once a signal was received.
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
