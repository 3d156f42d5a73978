//! What a training will need of a GPU, before it has run. Pure: no process, no device, no clock, no printing.
//!
//! In: a description of a member's training step, traced without a GPU; a predictor file. Out: bytes with bounds; the estimators
//! of the literature on the same description, for comparison; how well each of them did on measured rows.
//!
//! ```text
//! description ──replay──▶ reserved bytes ──predictor──▶ estimate, upper bound
//!             └─peers──▶ Horus, FakeTensor, DeepSpeed
//! measured rows ──fit──▶ coefficients ──conformal──▶ widths ──▶ predictor file
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod allocator;
mod conformal;
mod description;
mod evaluate;
mod fit;
mod json;
mod memory;
mod peers;
mod predictor;
pub mod published;

pub use conformal::{Bounds, Residual, Width, WidthFrom};
pub use description::{Allocation, Description, FakeTensorLine, Layer, ModelFeatures, OperationCost, Workspace};
pub use evaluate::{BoundScore, MeasuredRow, MemoryFit, Score, Scored, fit_memory, refit_context, score};
pub use fit::Unfit;
pub use memory::{Basis, Coefficients, Footprint, Part, Peaks, Replay, replay};
pub use peers::{DeepSpeed, Peer};
pub use predictor::{Conditions, LeftOut, Mark, Prediction, Predictor};

/// The schema of predictor files that this build writes, and the newest that it reads.
pub const PREDICTOR_SCHEMA: u32 = 1;
/// The newest schema of descriptions that this build reads.
pub const DESCRIPTION_SCHEMA: u32 = 1;
