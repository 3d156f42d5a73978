//! What nobody planned: a limit of this machine that a library answers with a panic, or a mistake of collo's own. Neither is silent, and
//! neither leaves a trace of the stack where a sentence is wanted; `RUST_BACKTRACE=1` shows that as well.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use collo_store::{Diagnostic, Diagnostics, ExitClass};

use crate::say;

/// Where the last panic of the main thread was.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Run a verb; what panics in it is a failure as any other.
pub fn caught(verb: impl FnOnce() -> Result<u8, Diagnostics>) -> Result<u8, Diagnostics> {
    if std::env::var_os("RUST_BACKTRACE").is_none_or(|v| v == "0") {
        panic::set_hook(Box::new(hook));
    }
    panic::catch_unwind(AssertUnwindSafe(verb)).unwrap_or_else(|panic| Err(failure(&words(&*panic)).into()))
}

fn hook(info: &PanicHookInfo<'_>) {
    let place = info.location().map(|l| format!("{}:{}", l.file(), l.line()));
    if std::thread::current().name() == Some("main") {
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
    } else {
        let place = place.map(|p| format!(" at {p}")).unwrap_or_default();
        say::warning(format!("a thread of collo ended unexpectedly{place}: {}", words(info.payload())));
    }
}

/// What a panic says.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string()).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it said nothing".into())
}

fn failure(said: &str) -> Diagnostic {
    if collo_measure::is_want_of_threads(said) {
        return Diagnostic::new("this machine lets collo start no further thread")
            .of_machine()
            .caused_by(said)
            .hint("`ulimit -u`, or the limit of processes of the container, is too low; what is stored is safe");
    }
    let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let place = place.map(|p| format!(" at {p}")).unwrap_or_default();
    Diagnostic::new(format!("collo met something that nobody planned{place}"))
        .of(ExitClass::Incomplete)
        .caused_by(said)
        .hint("what is stored is safe; `collo status` says how things stand, and RUST_BACKTRACE=1 shows more for a bug report")
}

/// A file that grows past `ulimit -f` is an error of the write, EFBIG, and no end by SIGXFSZ: so it is where a process catches the signal
/// (setrlimit(2)). A handler is not inherited by the programs that collo starts, as a signal that is ignored would be (signal(7)).
pub fn files_end_in_errors() {
    extern "C" fn nothing(_: nix::libc::c_int) {}
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: a handler that does nothing is async-signal-safe. Without it, everything is as it was.
    let _ = unsafe { sigaction(Signal::SIGXFSZ, &action) };
}
