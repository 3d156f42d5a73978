//! Exit codes, and the failures that end a verb with one.

use std::process::ExitCode;

use collo_measure::{Mistake, Mistakes, RunError, further, observe, python::PythonError};
use collo_store::{Error as StoreError, text};

/// Everything planned is accounted for.
pub const DONE: u8 = 0;
/// A run failed, or the answer is no.
pub const FAILED: u8 = 1;
/// The command line or the experiment is wrong; nothing was touched.
pub const USAGE: u8 = 2;
/// This machine cannot; nothing was touched.
pub const MACHINE: u8 = 3;
/// Incomplete and resumable.
pub const INCOMPLETE: u8 = 4;
/// Ctrl-C; otherwise as incomplete.
pub const INTERRUPTED: u8 = 130;

/// The code as the process returns it.
pub fn code(code: u8) -> ExitCode {
    ExitCode::from(code)
}

/// Why a verb ends early: a text that is ready to print, and the code.
#[derive(Debug)]
pub struct Failure {
    /// `error: …` with its causes and its hint, in several blocks if there are several mistakes.
    pub text: String,
    pub exit: u8,
}

impl Failure {
    /// One error with its causes.
    pub fn new(exit: u8, what: impl Into<String>) -> Self {
        Failure { text: format!("error: {}", text::line(&what.into())), exit }
    }

    /// Add a cause.
    pub fn because(mut self, cause: impl std::fmt::Display) -> Self {
        self.text.push_str(&format!("\n  caused by: {}", further(&cause.to_string())));
        self
    }

    /// Add the way out.
    pub fn hint(mut self, hint: impl std::fmt::Display) -> Self {
        self.text.push_str(&format!("\nhint: {}", text::line(&hint.to_string())));
        self
    }
}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Self {
        Failure { exit: mistake.fault().exit_code(), text: mistake.to_string() }
    }
}

impl From<Mistakes> for Failure {
    fn from(mistakes: Mistakes) -> Self {
        Failure { exit: mistakes.fault().exit_code(), text: mistakes.to_string() }
    }
}

impl From<PythonError> for Failure {
    fn from(e: PythonError) -> Self {
        let failure = Failure::new(e.fault().exit_code(), e.to_string());
        let failure = match &e {
            PythonError::Unusable { reason, .. } => failure.because(reason),
            _ => failure,
        };
        match e.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(e: StoreError) -> Self {
        match &e {
            StoreError::NotFound { .. } => Failure::new(USAGE, e.to_string()).hint("all of them: `collo list`"),
            StoreError::Ambiguous { candidates, .. } => {
                let last = candidates.first().and_then(|c| c.rsplit('-').next()).unwrap_or_default();
                Failure::new(USAGE, e.to_string()).hint(format!("give the last part, `{last}`, or `last`"))
            }
            StoreError::NewerSchema { .. } => Failure::new(MACHINE, e.to_string()).hint("update collo; nothing was changed"),
            StoreError::Busy { campaign, .. } => {
                Failure::new(MACHINE, e.to_string()).hint(format!("watch it with `collo status {campaign}`"))
            }
            StoreError::Changed { .. } | StoreError::NoDigest { .. } => Failure::new(MACHINE, e.to_string())
                .hint("put the file back as it was; what else is not as it was recorded: `collo verify`"),
            StoreError::Corrupt { .. } => {
                Failure::new(MACHINE, e.to_string()).hint("move it out of `runs/`; nothing was changed")
            }
            StoreError::Io(_) | StoreError::Table { .. } => Failure::new(MACHINE, e.to_string()),
        }
    }
}

impl From<collo_report::Error> for Failure {
    fn from(e: collo_report::Error) -> Self {
        match e {
            collo_report::Error::Store(e) => e.into(),
            other => Failure::new(MACHINE, other.to_string()),
        }
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Self {
        match e {
            RunError::Mistake(mistake) => mistake.into(),
            RunError::Python(e) => e.into(),
            RunError::Store(e) | RunError::Observe(observe::ObserveError::Store(e)) => e.into(),
            RunError::Observe(observe::ObserveError::Launch(e)) => Failure::new(MACHINE, e.to_string()).because(e.source),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Self {
        Failure::new(MACHINE, e.to_string())
    }
}
