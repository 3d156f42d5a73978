//! What members that share a device cost one another. In: each member as it is alone. Out: how many times as long each takes in
//! company, the group's throughput gain, ANTT and fairness, with intervals.
//!
//! ```text
//! members alone ──terms──▶ law: three coefficients per sharing mode ──▶ slowdowns ──▶ gain, ANTT, fairness
//! measured groups ──fit, families left out──▶ coefficients, widths ──▶ predictor file
//! ```
//!
//! To add a term: `law.rs`; a number of members that it takes: a field of [`Alone`], and its reading in `laboratory/src/company`, from
//! `pairs.rs` and `campaigns.rs`.

mod evaluate;
mod fit;
mod law;
mod left_out;
mod modes;
mod pair;
mod prediction;

use std::fmt;

use collo_store::Sharing;

pub use evaluate::{CompanyScore, GroupEstimate, NamedScore, score_company, score_left_out};
pub use fit::{CompanyFit, LeftOutBy, fit_company};
pub use law::{Law, SliceLaw};
pub use left_out::Unseen;
pub use modes::{CompanyLeftOut, CompanyModes, CompanyPredictor, ModeFit};
pub use pair::{Impossible, PairTimes, Together};
pub use prediction::{Assumed, CompanyPrediction, Extrapolated, GroupQuantities, NotPredicted, Widths, why_uncertain};

/// A member as it is alone on the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alone {
    /// Seconds of a training step. None: not known.
    pub step_s: Option<f64>,
    /// SMACT as a share; on a CPU the share of the cores that it kept busy.
    pub compute: f64,
    /// GPU utilisation as a share; on a CPU the same as `compute`.
    pub busy: f64,
    /// Which of the two was not read, and is the other.
    pub stand_in: Option<StandIn>,
    /// DRAMA, the share of cycles in which memory moved.
    pub dram: Option<f64>,
    /// What its process holds of the device.
    pub memory_bytes: Option<f64>,
}

/// The reading of a member alone in whose place the other one stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandIn {
    Compute,
    Busy,
}

impl StandIn {
    /// Of these readings, as they were taken.
    pub fn of(compute: Option<f64>, busy: Option<f64>) -> Option<StandIn> {
        match (compute, busy) {
            (None, Some(_)) => Some(StandIn::Compute),
            (Some(_), None) => Some(StandIn::Busy),
            _ => None,
        }
    }
}

/// A member's own part of a partitioned device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    /// Of the SMs of the whole device.
    pub sm_share: f64,
    /// How many times as long the same member takes alone on such a slice as on the whole device, where that was measured.
    pub slowdown: Option<f64>,
}

/// How members share a device, as far as it has coefficients of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompanyMode {
    /// Time slicing by the driver; of a CPU, by the kernel.
    Naive,
    /// Through an MPS daemon.
    Mps,
    /// Each on an instance of its own.
    Mig,
    /// Of published figures that do not say it.
    Unrecorded,
}

/// A member of a measured group.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredMember {
    pub alone: Alone,
    /// The architecture.
    pub family: String,
    /// Time in company ÷ time alone; above 0.
    pub slowdown: f64,
    /// Under MIG, the part of the device that it had.
    pub sm_share: Option<f64>,
}

/// Members that shared a device.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredGroup {
    /// For people: `resnet50 b32 + vgg16 b64`.
    pub label: String,
    pub members: Vec<MeasuredMember>,
}

impl MeasuredGroup {
    /// Its members as they are alone.
    pub fn alone(&self) -> Vec<Alone> {
        self.members.iter().map(|member| member.alone).collect()
    }
}

impl Alone {
    /// Numbers of something that can be.
    pub fn is_right(&self) -> bool {
        let is = |number: f64, most: f64| (0.0..=most).contains(&number);
        is(self.compute, 1.5)
            && is(self.busy, 1.5)
            && self.step_s.is_none_or(|s| s > 0.0 && s.is_finite())
            && self.memory_bytes.is_none_or(|bytes| bytes > 0.0 && bytes.is_finite())
            && self.dram.is_none_or(f64::is_finite)
    }
}

impl CompanyMode {
    pub const ALL: [CompanyMode; 4] = [CompanyMode::Naive, CompanyMode::Mps, CompanyMode::Mig, CompanyMode::Unrecorded];

    /// As in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            CompanyMode::Naive => "naive",
            CompanyMode::Mps => "mps",
            CompanyMode::Mig => "mig",
            CompanyMode::Unrecorded => "unrecorded",
        }
    }

    /// None: of limited clients, clients inside an instance, and modes that are not known nothing is claimed.
    pub fn of(sharing: &Sharing) -> Option<CompanyMode> {
        match sharing {
            Sharing { partitioned: true, isolated: true, .. } => Some(CompanyMode::Mig),
            Sharing { partitioned: false, mps: true, limited: false, .. } => Some(CompanyMode::Mps),
            Sharing { partitioned: false, mps: false, family, .. } if family == "naive" => Some(CompanyMode::Naive),
            _ => None,
        }
    }
}

impl fmt::Display for CompanyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
