//! How busy a training alone keeps a GPU, and how long its step takes. In: a description, a card; a predictor file. Out: SM active, GPU
//! utilisation and DRAM active in percent, power, step time, each between bounds; and how well that agrees with measured rows.
//!
//! What it does not know: a job that waits for its data. It is predicted as if data were there.

mod activity;
mod evaluate;
mod hotcloud;
mod law;
mod peaks;
mod power;
mod range;
mod time;
mod work;

use std::collections::BTreeSet;

use collo_gpus::Peaks;
use collo_quantity::stats::quantile;
use serde::{Deserialize, Serialize};

use crate::conformal::{Interval, Residual, Width};
use crate::description::Description;
use crate::fit::Unfit;
use crate::folds::Folds;
use crate::json::amount;

pub use activity::{Activity, ActivityLaw, Feature, LogScore, fit_activity, predict_kinds_left_out, rmsle};
pub use evaluate::{Covered, Judged, ProtocolScore, judged, protocols};
pub use hotcloud::{Regressor, Scores, SevenFeatures, law as law_scores, regressor_left_out, regressors};
pub use law::{UtilisationFit, UtilisationLaw, UtilisationPrediction, UtilisationPredictor, fit_utilisation};
pub use peaks::{peak, peaks_of, unknown_peaks};
pub use power::{PowerLaw, fit_power};
pub use range::{Extent, FittedRange, RangeExcess};
pub use time::{Rung, StepTime, StoredStep, TimeLaw, Unmeasured, fit_time, step_time};
pub use work::{Arithmetic, OperationKind, Work, WorkOfKind};

/// A training that was measured alone, with all that its prediction takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// For people: `resnet50 b32`.
    pub label: String,
    /// The architecture: rows of one are left out together.
    pub family: String,
    /// What sort of network it is: convolutional, a transformer, drawn at random.
    pub kind: String,
    /// Of the card that it was measured on.
    pub peaks: &'static Peaks,
    pub work: Work,
    pub seven: SevenFeatures,
    pub measured: Measured,
}

/// What was read of a training alone; absent is what was not.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    pub sm_active_percent: Option<f64>,
    pub gpu_utilisation_percent: Option<f64>,
    pub dram_active_percent: Option<f64>,
    pub power_w: Option<f64>,
    pub step_s: Option<f64>,
}

impl Row {
    pub fn of(
        label: String,
        family: String,
        peaks: &'static Peaks,
        description: &Description,
        batch: u64,
        measured: Measured,
    ) -> Row {
        let (work, seven) = (Work::of(description, batch), SevenFeatures::of(description, batch));
        Row { label, family, kind: kind_of(description), peaks, work, seven, measured }
    }

    /// The name of its card, which stands for all boards of which the same is promised.
    pub fn gpu(&self) -> String {
        self.peaks.product_names.first().cloned().unwrap_or_default()
    }

    /// Of one.
    fn share(&self, activity: Activity) -> Option<f64> {
        self.measured.percent(activity).map(|percent| percent / 100.0)
    }
}

/// Networks drawn at random are a kind for each way of drawing. Transformers normalise and have no convolution.
fn kind_of(description: &Description) -> String {
    if let Some(drawn) = &description.generated {
        return format!("random {}", drawn.kind);
    }
    let counted = |name: &str| description.operations.get(name).map_or(0, |cost| cost.count);
    match (counted("convolution"), counted("normalisation")) {
        (1.., _) => "convolutional",
        (0, 1..) => "transformer",
        (0, 0) => "other",
    }
    .into()
}

/// How well a law does on families that its fit has not seen; errors are shares of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelativeScore {
    pub rows: usize,
    pub families: usize,
    #[serde(deserialize_with = "amount")]
    pub median_relative_error: f64,
    #[serde(deserialize_with = "amount")]
    pub worst_relative_error: f64,
}

impl RelativeScore {
    /// Of the family of each row, and what was said of it over what was measured.
    fn of(families: &[&str], ratios: impl Iterator<Item = f64>) -> RelativeScore {
        let errors: Vec<f64> = ratios.map(|ratio| (ratio - 1.0).abs()).collect();
        RelativeScore {
            rows: errors.len(),
            families: families.iter().collect::<BTreeSet<_>>().len(),
            worst_relative_error: errors.iter().copied().fold(0.0, f64::max),
            median_relative_error: quantile(errors, 0.5).unwrap_or(0.0),
        }
    }
}

/// A law, and around what fits without its family estimate of each row an interval; absent for rows that were not measured.
#[derive(Debug, Clone, PartialEq)]
pub struct LawFit<L> {
    pub law: L,
    pub left_out: Vec<Option<Interval>>,
}

/// Rows that were measured, each with what a fit without its family estimates.
struct Estimated<'a> {
    rows: usize,
    /// The place of each among the rows.
    measured: &'a [usize],
    estimates: &'a [f64],
    residuals: &'a [Residual],
    folds: &'a Folds,
}

impl Estimated<'_> {
    /// The width of all residuals, and of each row an interval as wide as the residuals of other families are.
    fn intervals(&self, around: impl Fn(f64, Width) -> Interval) -> Result<(Width, Vec<Option<Interval>>), Unfit> {
        let width = |residuals: &[Residual]| Width::of_spread(residuals).ok_or(Unfit::OneFamily);
        let others = |fold: usize| width(&self.folds.others(self.residuals, fold));
        let widths = (0..self.folds.count).map(others).collect::<Result<Vec<Width>, Unfit>>()?;
        let mut intervals = vec![None; self.rows];
        for (place, &row) in self.measured.iter().enumerate() {
            intervals[row] = Some(around(self.estimates[place], widths[self.folds.of_row[place]]));
        }
        Ok((width(self.residuals)?, intervals))
    }
}

impl Measured {
    pub fn percent(&self, activity: Activity) -> Option<f64> {
        match activity {
            Activity::SmActive => self.sm_active_percent,
            Activity::GpuUtilisation => self.gpu_utilisation_percent,
            Activity::DramActive => self.dram_active_percent,
        }
    }
}

#[cfg(test)]
mod tests;
