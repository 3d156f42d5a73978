//! How far a training is from those that a law was fitted on. In: the rows of the fit; a training. Out: by what factor it is beyond them, and
//! how many times as wide its interval is.

use std::collections::BTreeMap;
use std::fmt;

use collo_gpus::Peaks;
use collo_quantity::number::short_time;
use serde::{Deserialize, Serialize};

use super::Row;
use super::work::Work;

/// What the range of a law is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Operations in a training step.
    Operations,
    /// Items in a training step.
    Items,
    /// Seconds of a training step in which SMs compute, as the features count them.
    ComputesS,
}

/// The least and the largest value among the rows of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FittedRange {
    pub least: f64,
    pub most: f64,
}

pub type FittedRanges = BTreeMap<Extent, FittedRange>;

/// By how much a training is beyond what a law was fitted on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RangeExcess {
    pub extent: Extent,
    pub value: f64,
    pub range: FittedRange,
    /// The value ÷ the largest of the range, or the least ÷ the value; above 1.
    pub factor: f64,
}

/// A law predicts nothing for a training that is beyond its range by more than this factor: chosen, not measured.
const FARTHEST: f64 = 100.0;
/// What has no operation, or computes nothing, is as small as this.
const LEAST: f64 = 1e-12;
const LARGEST: f64 = 1e15;

impl Extent {
    pub const ALL: [Extent; 3] = [Extent::Operations, Extent::Items, Extent::ComputesS];

    fn of(self, work: &Work, peaks: &Peaks) -> f64 {
        let value = match self {
            Extent::Operations => work.kernels,
            Extent::Items => work.batch as f64,
            Extent::ComputesS => work.active_s(peaks),
        };
        value.clamp(LEAST, LARGEST)
    }

    fn text(self, value: f64) -> String {
        match self {
            Extent::Operations | Extent::Items => format!("{value:.0}"),
            Extent::ComputesS => short_time(value),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Extent::Operations => "operations in a step",
            Extent::Items => "items in a step",
            Extent::ComputesS => "of computing in a step",
        }
    }
}

impl FittedRange {
    fn factor_beyond(&self, value: f64) -> f64 {
        (self.least / value).max(value / self.most)
    }

    fn check(&self, extent: Extent) -> Result<(), String> {
        match LEAST <= self.least && self.least <= self.most && self.most <= LARGEST {
            true => Ok(()),
            false => Err(format!("the range of {} is from {} to {}", extent.as_str(), self.least, self.most)),
        }
    }
}

impl RangeExcess {
    pub fn is_out_of_range(&self) -> bool {
        self.factor > FARTHEST
    }

    /// How many times as wide an interval is, as a logarithm: twice at ten times the end of the range. Chosen, not measured.
    pub fn widening(&self) -> f64 {
        1.0 + self.factor.log10()
    }
}

/// The ranges of these rows. There is at least one.
pub fn ranges<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> FittedRanges {
    let range = |extent: Extent| {
        let values = rows.clone().map(|row| extent.of(&row.work, row.peaks));
        let (least, most) = values.fold((f64::INFINITY, 0.0f64), |(least, most), value| (least.min(value), most.max(value)));
        (extent, FittedRange { least, most })
    };
    Extent::ALL.into_iter().map(range).collect()
}

/// The range that the training is farthest beyond. None: it is within all of them.
pub fn beyond(ranges: &FittedRanges, work: &Work, peaks: &Peaks) -> Option<RangeExcess> {
    let of = |(&extent, &range): (&Extent, &FittedRange)| {
        let value = extent.of(work, peaks);
        RangeExcess { extent, value, range, factor: range.factor_beyond(value) }
    };
    let farthest = ranges.iter().map(of).max_by(|a, b| a.factor.total_cmp(&b.factor))?;
    (farthest.factor > 1.0).then_some(farthest)
}

pub fn check(ranges: &FittedRanges) -> Result<(), String> {
    if ranges.len() != Extent::ALL.len() {
        return Err(format!("`fitted` has {} ranges, not {}", ranges.len(), Extent::ALL.len()));
    }
    ranges.iter().try_for_each(|(extent, range)| range.check(*extent))
}

impl fmt::Display for RangeExcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: f64| self.extent.text(value);
        let (what, least, most) = (self.extent.as_str(), text(self.range.least), text(self.range.most));
        write!(f, "{} {what}, fitted on {least} to {most}", text(self.value))
    }
}
