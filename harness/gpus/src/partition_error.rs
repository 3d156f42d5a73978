//! Why a GPU could not be partitioned as wanted, in the terms that its user can act on.

use std::fmt;

use collo_text::Diagnostic;

use crate::partition::Partition;

/// Why a GPU could not be partitioned as wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct PartitionError {
    pub what: String,
    pub cause: Option<String>,
    pub hint: Option<String>,
    /// The GPU itself disappeared.
    pub lost: bool,
    /// It is in use.
    pub in_use: bool,
    /// This user lacks the permission.
    pub denied: bool,
    /// It would lose something permanently, so it is not tried.
    pub forgets: bool,
}

impl PartitionError {
    /// For this reason alone.
    pub fn new(what: impl Into<String>) -> PartitionError {
        PartitionError { what: what.into(), cause: None, hint: None, lost: false, in_use: false, denied: false, forgets: false }
    }

    /// With what caused it.
    pub fn new_with(what: String, cause: impl fmt::Display) -> PartitionError {
        PartitionError { cause: Some(cause.to_string()), ..PartitionError::new(what) }
    }

    /// The administrator's partition is not the one needed.
    pub fn as_found(label: &str, wanted: &Partition, found: &Partition) -> PartitionError {
        let mut error =
            PartitionError::new(format!("{label} is used as found, but does not match: asked {wanted}, found {found}"));
        error.hint = Some("leave out `--as-found`, or run `collo mig apply LAYOUT` first".into());
        error
    }

    /// What and why, without the hint.
    pub fn reason(&self) -> String {
        let cause = self.cause.as_ref().map(|c| format!(": {c}")).unwrap_or_default();
        format!("{}{cause}", self.what)
    }

    /// All of it in one line.
    pub fn line(&self) -> String {
        let hint = self.hint.as_ref().map(|h| format!("; hint: {h}")).unwrap_or_default();
        format!("{}{hint}", self.reason())
    }
}

impl From<PartitionError> for Diagnostic {
    fn from(e: PartitionError) -> Diagnostic {
        let shown = e.cause.into_iter().fold(Diagnostic::new(e.what).of_machine(), Diagnostic::caused_by);
        e.hint.into_iter().fold(shown, Diagnostic::hint)
    }
}
