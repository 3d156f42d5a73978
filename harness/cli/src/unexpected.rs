//! Panics: a limit of this machine on which a library panics, or a bug of collo. Neither is silent, and neither prints a stack
//! trace in place of an error message; `RUST_BACKTRACE=1` shows that as well.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use collo_text::{Diagnostic, Diagnostics, ExitClass, PROCESS_LIMIT};

use crate::output;

/// Location of the last panic of the main thread.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Run a verb; a panic in it becomes an ordinary failure.
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
        output::warning(format!("a thread of collo ended unexpectedly{place}: {}", words(info.payload())));
    }
}

/// The message of a panic.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string()).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it gave no message".into())
}

fn failure(said: &str) -> Diagnostic {
    if collo_measure::campaign::is_want_of_threads(said) {
        return Diagnostic::new("this machine lets collo start no more threads")
            .of_machine()
            .caused_by(said)
            .hint(format!("{PROCESS_LIMIT}; what is stored is safe"));
    }
    let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let place = place.map(|p| format!(" at {p}")).unwrap_or_default();
    Diagnostic::new(format!("an unexpected error in collo{place}"))
        .of(ExitClass::Incomplete)
        .caused_by(said)
        .hint("what is stored is safe; `collo status` shows it, and RUST_BACKTRACE=1 shows more for a bug report")
}

/// Make exceeding `ulimit -f` an error of the write, EFBIG, instead of an end by SIGXFSZ: that takes a handler for the signal
/// (setrlimit(2)). A handler is not inherited by the programs that collo starts, as an ignored signal would be (signal(7)).
pub fn files_end_in_errors() {
    extern "C" fn nothing(_: nix::libc::c_int) {}
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: a handler that does nothing is async-signal-safe. Without it, everything is as it was.
    let _ = unsafe { sigaction(Signal::SIGXFSZ, &action) };
}
