//! Errors of comparisons and of histories.

use std::io;

use collo_text::Diagnostic;

/// Errors of this package; every variant names what it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A campaign could not be read.
    #[error(transparent)]
    Store(#[from] collo_store::Error),
    /// A file could not be read or written; the message names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A report could not be read.
    #[error(transparent)]
    Guidelines(#[from] collo_guidelines::Error),
    /// A document could not be written.
    #[error(transparent)]
    Figures(#[from] collo_figures::Error),
    /// Two sides without a common cell.
    #[error("`{left}` and `{right}` have no cell in common: {left_has}, {right_has}")]
    NothingInCommon { left: String, right: String, left_has: String, right_has: String },
    /// A quantity that is meaningless between different devices.
    #[error("`{quantity}` is not compared between different devices, {left} and {right}")]
    AcrossDevices { quantity: String, left: String, right: String },
    /// A quantity that no cell of either side has.
    #[error("no cell of either side has a quantity `{asked}`")]
    NoQuantity { asked: String, known: Vec<String> },
}

impl From<Error> for Diagnostic {
    fn from(e: Error) -> Diagnostic {
        let shown = Diagnostic::new(e.to_string());
        match e {
            Error::Store(e) => e.into(),
            Error::Guidelines(e) => e.into(),
            Error::Figures(e) => e.into(),
            Error::Io(e) => shown.of_machine().way_out_of(&e),
            Error::NothingInCommon { .. } => shown.hint("what each has: `collo show CAMPAIGN`"),
            Error::AcrossDevices { .. } => shown.hint("`--quantity throughput_gain`, or another ratio"),
            Error::NoQuantity { known, .. } => shown.hint(format!("there are {}", known.join(", "))),
        }
    }
}

/// The result of every fallible call of this package.
pub type Result<T, E = Error> = std::result::Result<T, E>;
