//! Signals that ask collo to end: what one does before there is a campaign, and between campaigns.
//!
//! In: signals, from the first moment of the command. Out: while a step notes them ([`Noted`]), that step ends cleanly with a message;
//! while a campaign listens (`interrupt.rs`) it decides; else nothing is started that has to be ended, and the process exits at
//! once, with the exit code of every other end by such a signal.

use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use collo_text::{Diagnostic, ExitClass};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// The signals that ask collo to end. All but the first are from service managers, sessions, batch systems and limits: Slurm's
/// `--signal` sends any of them (sbatch(1)), `ulimit -t` sends SIGXCPU (setrlimit(2)), timers the other two (setitimer(2)). The
/// default action of each ends the process on the spot (signal(7)).
pub const ENDING: [Signal; 8] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGXCPU,
    Signal::SIGVTALRM,
];

/// Those of [`ENDING`] that end this process: one that was ignored from the start, as `nohup` wants it of SIGHUP, stays ignored.
pub fn ending_here() -> impl Iterator<Item = Signal> {
    let always = |signal: &Signal| matches!(signal, Signal::SIGINT | Signal::SIGTERM);
    ENDING.into_iter().filter(move |signal| always(signal) || !is_ignored(*signal as i32))
}

/// Whether a signal was ignored when this process began, from proc(5): `SigIgn`, a bit for each signal from 1.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).and_then(|m| u64::from_str_radix(m.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The last signal noted; 0 for none.
static CAME: AtomicI32 = AtomicI32::new(0);
/// How many steps note signals now, and how many campaigns listen.
static NOTING: AtomicU32 = AtomicU32::new(0);
static LISTENING: AtomicU32 = AtomicU32::new(0);

extern "C" fn handle(signal: i32) {
    if NOTING.load(Ordering::SeqCst) > 0 {
        CAME.store(signal, Ordering::SeqCst);
    } else if LISTENING.load(Ordering::SeqCst) == 0 {
        const WORDS: &[u8] = b"error: collo was asked to end by a signal\n";
        let code = if signal == Signal::SIGINT as i32 { ExitClass::Interrupted } else { ExitClass::Incomplete }.code();
        // SAFETY: both are async-signal-safe (signal-safety(7)), and the text is static.
        unsafe {
            nix::libc::write(2, WORDS.as_ptr().cast(), WORDS.len());
            nix::libc::_exit(i32::from(code));
        }
    }
}

/// From now on, and to the end of the process, no signal of [`ENDING`] ends it without an exit code. Runtimes that listen later call
/// this handler before their own (signal-hook-registry, `src/lib.rs`: a previous handler "is chained").
pub fn install_handlers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in ending_here() {
            let action = SigAction::new(SigHandler::Handler(handle), SaFlags::SA_RESTART, SigSet::empty());
            // SAFETY: the handler stores a number, or writes a static text and exits.
            let _ = unsafe { sigaction(signal, &action) };
        }
    });
}

/// Until dropped, a campaign decides what follows from a signal.
#[derive(Debug)]
pub(crate) struct Listening(());

impl Listening {
    pub(crate) fn begin() -> Listening {
        LISTENING.fetch_add(1, Ordering::SeqCst);
        Listening(())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENING.fetch_sub(1, Ordering::SeqCst);
    }
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

    /// The error of what was stopped by it: `planning was stopped`.
    pub fn error(self, what: impl Into<String>) -> Diagnostic {
        Diagnostic::new(what).of(self.class()).caused_by(self)
    }
}

/// Until dropped, the signals do not end collo but are noted, for the code to check: the current step then ends cleanly.
#[derive(Debug)]
pub struct Noted(());

impl Noted {
    pub fn begin() -> Noted {
        install_handlers();
        NOTING.fetch_add(1, Ordering::SeqCst);
        Noted(())
    }

    /// The signal received, if any.
    pub fn came(&self) -> Option<Signal> {
        Signal::try_from(CAME.load(Ordering::SeqCst)).ok()
    }

    /// An error once a signal was received.
    pub fn go_on(&self) -> Result<(), Stopped> {
        self.came().map_or(Ok(()), |signal| Err(Stopped(signal)))
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        NOTING.fetch_sub(1, Ordering::SeqCst);
    }
}
