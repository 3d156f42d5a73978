//! Why a campaign cannot go on.

use collo_launch::LaunchError;
use collo_prepare::python::PythonError;
use collo_text::Diagnostic;

/// Failed preparation, or a run that could not be started or stored.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] collo_store::Error),
    #[error(transparent)]
    Diagnostic(#[from] Diagnostic),
}

impl From<LaunchError> for RunError {
    fn from(e: LaunchError) -> RunError {
        RunError::Diagnostic(e.into())
    }
}

impl From<PythonError> for RunError {
    fn from(e: PythonError) -> RunError {
        RunError::Diagnostic(e.into())
    }
}

impl From<RunError> for Diagnostic {
    fn from(e: RunError) -> Diagnostic {
        match e {
            RunError::Store(e) => e.into(),
            RunError::Diagnostic(shown) => shown,
        }
    }
}
