//! How long a training's step takes alone. In: measured steps, or stored ones of the same workload. Out: seconds, and by which rung of the
//! ladder they are known.
//!
//! ```text
//! a stored cell of the same workload, settings, card and batch size
//!   → others of its batch sizes: a line through two, or one scaled by what grows with the batch
//!   → the roofline: times · Σ max(FLOPs ÷ peak, bytes ÷ bandwidth) + launch · kernels
//!   → absent, with its reason
//! ```

use std::fmt;

use collo_gpus::Peaks;
use collo_quantity::stats::quantile;
use serde::{Deserialize, Serialize};

use crate::conformal::{Interval, Residual, Width};
use crate::fit::{Unfit, dot, fit_absolute};
use crate::folds::Folds;
use crate::json::amount;

use super::work::Work;
use super::{Estimated, LawFit, RelativeScore, Row};

/// `seconds = times · roofline + launch_s · kernels`, the roofline by the published peaks of whichever card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeLaw {
    /// How many times as long the card takes as at its peaks: one over the efficiency.
    #[serde(deserialize_with = "amount")]
    pub times: f64,
    #[serde(deserialize_with = "amount")]
    pub launch_s: f64,
    /// The cards that the steps were measured on, by their drivers' names. Of others the seconds are scaled by published peaks.
    pub cards: Vec<String>,
    pub width: Width,
    pub left_out: RelativeScore,
}

/// Without one of them there are as many as coefficients.
const FEWEST_TO_FIT: usize = 3;

/// The roofline of the rows whose step was timed.
pub fn fit_time(rows: &[Row]) -> Result<LawFit<TimeLaw>, Unfit> {
    let timed: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].measured.step_s.is_some()).collect();
    let sample = |&row: &usize| (inputs(&rows[row].work, rows[row].peaks), rows[row].measured.step_s.unwrap_or_default());
    let samples: Vec<([f64; 2], f64)> = timed.iter().map(sample).collect();
    let families: Vec<&str> = timed.iter().map(|row| rows[*row].family.as_str()).collect();
    let mut distinct = families.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() < FEWEST_TO_FIT {
        return Err(Unfit::TooFewFamilies { families: distinct.len(), needed: FEWEST_TO_FIT });
    }
    let folds = Folds::of(&families)?;
    let said = folds.left_out(&samples, coefficients, |fit, (inputs, _)| dot(fit, inputs))?;
    let ratio = |place: usize| samples[place].1 / said[place];
    let residual = |place: usize| Residual { family: families[place].into(), log_ratio: ratio(place).ln() };
    let residuals: Vec<Residual> = (0..samples.len()).map(residual).collect();
    let estimated = Estimated { rows: rows.len(), measured: &timed, estimates: &said, residuals: &residuals, folds: &folds };
    let (width, left_out) = estimated.intervals(Interval::around)?;
    let [times, launch_s] = coefficients(&samples)?;
    let mut cards: Vec<String> = timed.iter().map(|row| rows[*row].gpu()).collect();
    cards.sort_unstable();
    cards.dedup();
    Ok(LawFit {
        law: TimeLaw {
            times,
            launch_s,
            cards,
            width,
            left_out: RelativeScore::of(&families, (0..samples.len()).map(|place| 1.0 / ratio(place))),
        },
        left_out,
    })
}

/// Seconds at the card's peaks, and kernels.
fn inputs(work: &Work, peaks: &Peaks) -> [f64; 2] {
    [work.roofline_s(peaks, 1.0, 1.0), work.kernels]
}

/// A row's error counts as a share of what was measured.
fn coefficients(samples: &[([f64; 2], f64)]) -> Result<[f64; 2], Unfit> {
    let input = |(inputs, seconds): &([f64; 2], f64)| inputs.map(|x| x / seconds).to_vec();
    let fitted = fit_absolute(&samples.iter().map(input).collect::<Vec<_>>(), &vec![1.0; samples.len()])?;
    Ok([fitted[0], fitted[1]])
}

impl TimeLaw {
    pub fn predict(&self, work: &Work, peaks: &Peaks, widened: f64) -> Interval {
        Interval::around(self.seconds(work, peaks), self.width.times(widened))
    }

    fn seconds(&self, work: &Work, peaks: &Peaks) -> f64 {
        dot(&[self.times, self.launch_s], &inputs(work, peaks))
    }

    /// Whether a step on this card is scaled from others.
    pub fn is_scaled(&self, peaks: &Peaks) -> bool {
        !self.cards.iter().any(|known| peaks.are_of(known))
    }

    pub fn check(&self) -> Result<(), String> {
        if !(self.times <= 1e3 && self.launch_s <= 1.0) {
            return Err(format!("a step of {} times the roofline and {} s a kernel is none", self.times, self.launch_s));
        }
        if self.times == 0.0 && self.launch_s == 0.0 {
            return Err("`times` and `launch_s` are 0, so no step would take any time".into());
        }
        self.width.check()
    }
}

/// By what a step's time is known, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    Stored,
    OtherBatches,
    OtherBatch,
    Roofline,
    /// The roofline of another card, scaled by published peaks.
    ScaledRoofline,
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rung::Stored => "measured alone on this card",
            Rung::OtherBatches => "a line through its other batch sizes on this card",
            Rung::OtherBatch => "another of its batch sizes on this card, scaled",
            Rung::Roofline => "the roofline of this card",
            Rung::ScaledRoofline => "the roofline of another card, scaled by published peaks",
        })
    }
}

/// A step that was measured alone, of the same workload, settings and card.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoredStep {
    pub batch_size: u64,
    pub step_s: f64,
}

/// The time of a step, and by what it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepTime {
    pub seconds: Interval,
    pub rung: Rung,
}

/// What is known of a step before it is measured. Work is asked for at a batch size.
#[derive(Clone, Copy)]
pub struct Unmeasured<'a> {
    pub work: &'a dyn Fn(u64) -> Work,
    pub peaks: &'a Peaks,
    pub law: &'a TimeLaw,
    pub widened: f64,
}

/// The error of a line through other batch sizes, as a logarithm: chosen, not measured.
const OTHER_BATCHES_LOG: f64 = 0.2;
const OTHER_BATCH_LOG: f64 = 0.4;

/// Down the ladder; the reason in words where there is no time.
pub fn step_time(batch: u64, stored: &[StoredStep], unmeasured: Option<Unmeasured<'_>>) -> Result<StepTime, &'static str> {
    let stored: Vec<StoredStep> = stored.iter().copied().filter(|step| step.step_s > 0.0 && step.batch_size > 0).collect();
    let mut same: Vec<f64> = stored.iter().filter(|step| step.batch_size == batch).map(|step| step.step_s).collect();
    same.sort_unstable_by(f64::total_cmp);
    if let (Some(&low), Some(&high)) = (same.first(), same.last()) {
        let estimate = quantile(same, 0.5).unwrap_or(low);
        return Ok(StepTime { seconds: Interval { estimate, low, high }, rung: Rung::Stored });
    }
    if let Some(seconds) = line_through(batch, &stored) {
        return Ok(StepTime { seconds: Interval::within(seconds, OTHER_BATCHES_LOG), rung: Rung::OtherBatches });
    }
    if let Some(known) = stored.first() {
        let seconds = known.step_s * growth(known.batch_size, batch, unmeasured);
        return Ok(StepTime { seconds: Interval::within(seconds, OTHER_BATCH_LOG), rung: Rung::OtherBatch });
    }
    let Some(Unmeasured { work, peaks, law, widened }) = unmeasured else {
        return Err("neither it nor another of its batch sizes was measured alone on this card, and there is no roofline for it");
    };
    let rung = if law.is_scaled(peaks) { Rung::ScaledRoofline } else { Rung::Roofline };
    Ok(StepTime { seconds: law.predict(&work(batch), peaks, widened), rung })
}

/// Neither part of the line is negative. None: of fewer than two batch sizes.
fn line_through(batch: u64, stored: &[StoredStep]) -> Option<f64> {
    if stored.iter().all(|step| Some(step.batch_size) == stored.first().map(|first| first.batch_size)) {
        return None;
    }
    let inputs: Vec<Vec<f64>> = stored.iter().map(|s| vec![1.0 / s.step_s, s.batch_size as f64 / s.step_s]).collect();
    let fitted = fit_absolute(&inputs, &vec![1.0; stored.len()]).ok()?;
    Some(fitted[0] + fitted[1] * batch as f64).filter(|seconds| *seconds > 0.0)
}

/// How many times as long a step takes at another batch size: as the roofline says, and without one as the items.
fn growth(from: u64, to: u64, unmeasured: Option<Unmeasured<'_>>) -> f64 {
    match unmeasured {
        Some(Unmeasured { work, peaks, law, .. }) => law.seconds(&work(to), peaks) / law.seconds(&work(from), peaks),
        None => to as f64 / from as f64,
    }
}
