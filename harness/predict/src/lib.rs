//! What a training will need of a GPU, before it has run. Pure: no process, no device, no clock, no printing.
//!
//! In: a description of a member's training step, traced without a GPU; a predictor file. Out: bytes, percentages and seconds with
//! bounds; the estimators of the literature on the same description, for comparison; how well each of them did on measured rows.
//!
//! ```text
//! description ──replay──▶ reserved bytes ──predictor──▶ estimate, upper bound
//!             └─peers──▶ Horus, FakeTensor, DeepSpeed
//! measured rows ──fit──▶ coefficients ──conformal──▶ widths ──▶ predictor file
//! description, card ──utilisation──▶ SM active, DRAM active, power, step time
//! predictor files ──choose──▶ the one for a device, its intervals widened
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod allocator;
mod any;
mod bins;
mod choice;
mod company;
mod conformal;
mod covariance;
mod description;
mod estimate;
mod estimators;
mod evaluate;
mod file;
mod fit;
mod folds;
mod json;
mod linear;
mod memory;
mod memory_law;
mod peers;
pub mod published;
mod seeded;
pub mod utilisation;

pub use any::{AnyLaw, AnyPredictor};
pub use bins::{BinScore, CommonestBin};
pub use choice::{Because, Chosen, Target, choose};
pub use company::{
    Alone, Assumed, CompanyFit, CompanyLeftOut, CompanyMode, CompanyModes, CompanyPrediction, CompanyPredictor, CompanyScore,
    Extrapolated, GroupEstimate, GroupQuantities, Impossible, Law, LeftOutBy, MeasuredGroup, MeasuredMember, ModeFit, NamedScore,
    NotPredicted, PairTimes, Slice, SliceLaw, StandIn, Together, Unseen, Widths, fit_company, score_company, score_left_out,
    why_uncertain,
};
pub use conformal::{Bounds, FEWEST_FAMILIES, Interval, Residual, Width, WidthFrom, probability_above};
pub use covariance::Covariance;
pub use description::{Allocation, Description, FakeTensorLine, Generated, Layer, ModelFeatures, OperationCost, Workspace};
pub use estimate::EstimateSource;
pub use estimators::{MemoryCase, MemoryCases, NamedEstimates};
pub use evaluate::{BoundScore, FEWEST_TO_FIT, MeasuredRow, MemoryFit, Score, Scored, fit_memory, score};
pub use file::{Conditions, Mark, PredictorFile, PredictorLaw, Quantity, TargetDevice};
pub use fit::Unfit;
pub use json::{JsonKind, read as read_json};
pub use memory::{Basis, Coefficients, DoesNotFit, Footprint, NotReplayed, Part, Peaks, Replay, replay};
pub use memory_law::{Factors, LeftOut, MemoryLaw, MemoryPredictor, Prediction};
pub use peers::{DeepSpeed, Peer};
pub use utilisation::{UtilisationLaw, UtilisationPredictor};

/// The schema of predictor files that this build writes, and the newest that it reads.
pub const PREDICTOR_SCHEMA: u32 = 1;
/// The newest schema of descriptions that this build reads.
pub const DESCRIPTION_SCHEMA: u32 = 1;
