//! How busy a training alone keeps a card, in percent. In: measured rows. Out: a log-linear law for each activity, and what it says of
//! each row without having seen its family.

use std::collections::BTreeMap;

use collo_gpus::Peaks;
use serde::{Deserialize, Serialize};

use crate::conformal::{Interval, Residual, Width};
use crate::fit::Unfit;
use crate::folds::Folds;
use crate::json::amount;
use crate::linear::{Line, ridge};

use super::work::Work;
use super::{Estimated, LawFit, Row};

/// What of a card is busy, as a share of the time or of the peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// SMACT: the share of the SMs that have a warp, on average.
    SmActive,
    /// The share of the time in which a kernel runs, as nvidia-smi says it.
    GpuUtilisation,
    /// DRAMA: the share of the cycles in which the memory moves data.
    DramActive,
}

/// What the laws are linear in: logarithms of shares of a card, so that a law of one card means something on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// ln of how full a mean kernel has the card.
    LnFilled,
    /// ln(1 + percent) of the step in which the card computes, by its published peaks.
    LnBusy,
    /// ln(1 + percent) of its bandwidth that the step needs beyond the L2 cache.
    LnTraffic,
}

impl Activity {
    pub const ALL: [Activity; 3] = [Activity::SmActive, Activity::GpuUtilisation, Activity::DramActive];

    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Activity::SmActive => "SM active",
            Activity::GpuUtilisation => "GPU utilisation",
            Activity::DramActive => "DRAM active",
        }
    }

    /// In files.
    pub fn key(self) -> &'static str {
        match self {
            Activity::SmActive => "sm_active",
            Activity::GpuUtilisation => "gpu_utilisation",
            Activity::DramActive => "dram_active",
        }
    }

    /// What its law is linear in. Chosen on the published profiles with architectures left out: a further feature gains nothing for the
    /// first two, and without both of its own the error of the last is three times as large.
    pub fn features(self) -> &'static [Feature] {
        match self {
            Activity::SmActive | Activity::GpuUtilisation => &[Feature::LnFilled],
            Activity::DramActive => &[Feature::LnBusy, Feature::LnTraffic],
        }
    }
}

impl Feature {
    pub fn of(self, work: &Work, peaks: &Peaks) -> f64 {
        match self {
            // A step that moves nothing is as empty as one that moves a byte.
            Feature::LnFilled => work.filled(peaks).max(1e-12).ln(),
            Feature::LnBusy => log(100.0 * work.busy(peaks)),
            Feature::LnTraffic => log(100.0 * work.traffic(peaks)),
        }
    }
}

/// What an error of a percentage is counted in, as the literature does: ln(1 + percent).
pub fn log(percent: f64) -> f64 {
    percent.ln_1p()
}

/// The root of the mean squared difference of ln(1 + percent). None: there are no pairs.
pub fn rmsle(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let squares: Vec<f64> = pairs.into_iter().map(|(said, is)| (log(said.max(0.0)) - log(is)).powi(2)).collect();
    (!squares.is_empty()).then(|| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
}

/// `ln(1 + percent) = intercept + Σ coefficient · feature`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActivityLaw {
    pub intercept: f64,
    pub coefficients: BTreeMap<Feature, f64>,
    /// Of the ridge, as left-out families chose it.
    #[serde(deserialize_with = "amount")]
    pub penalty: f64,
    pub width: Width,
    pub left_out: LogScore,
}

/// How well a law does on families that its fit has not seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogScore {
    pub rows: usize,
    pub families: usize,
    /// Of the law.
    #[serde(deserialize_with = "amount")]
    pub rmsle: f64,
    /// Of the mean of the other families.
    #[serde(deserialize_with = "amount")]
    pub constant_rmsle: f64,
}

/// Without one of them there are still two to choose a penalty by.
pub const FEWEST_TO_FIT: usize = 3;
const PENALTIES: [f64; 6] = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
const LARGEST_COEFFICIENT: f64 = 1e3;

/// A measured row as the regression takes it.
#[derive(Clone)]
struct Sample<'a> {
    family: &'a str,
    inputs: Vec<f64>,
    target: f64,
}

/// The law of an activity.
pub fn fit_activity(rows: &[Row], activity: Activity) -> Result<LawFit<ActivityLaw>, Unfit> {
    let measured: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].measured.percent(activity).is_some()).collect();
    let sample = |&row: &usize| Sample {
        family: &rows[row].family,
        inputs: activity.features().iter().map(|feature| feature.of(&rows[row].work, rows[row].peaks)).collect(),
        target: log(rows[row].measured.percent(activity).unwrap_or_default()),
    };
    let samples: Vec<Sample<'_>> = measured.iter().map(sample).collect();
    let families = families(&samples).len();
    if families < FEWEST_TO_FIT {
        return Err(Unfit::TooFewFamilies { families, needed: FEWEST_TO_FIT });
    }
    let folds = folds(&samples)?;
    let said = folds.left_out(&samples, fit_penalised, |(line, _), sample| line.at(&sample.inputs))?;
    let constant =
        folds.left_out(&samples, |others| ridge_of(others, f64::MAX.sqrt()), |line, sample| line.at(&sample.inputs))?;
    let residuals: Vec<Residual> = samples.iter().zip(&said).map(|(sample, said)| sample.residual(*said)).collect();
    let estimated = Estimated { rows: rows.len(), measured: &measured, estimates: &said, residuals: &residuals, folds: &folds };
    let (width, left_out) = estimated.intervals(percent_around)?;
    let (line, penalty) = fit_penalised(&samples)?;
    let root = |said: &[f64]| {
        let squares = samples.iter().zip(said).map(|(sample, said)| (sample.target - said).powi(2));
        (squares.sum::<f64>() / samples.len() as f64).sqrt()
    };
    Ok(LawFit {
        law: ActivityLaw {
            intercept: line.intercept,
            coefficients: activity.features().iter().copied().zip(line.coefficients).collect(),
            penalty,
            width,
            left_out: LogScore { rows: samples.len(), families, rmsle: root(&said), constant_rmsle: root(&constant) },
        },
        left_out,
    })
}

impl Sample<'_> {
    fn residual(&self, said: f64) -> Residual {
        Residual { family: self.family.into(), log_ratio: self.target - said }
    }
}

fn families<'a>(samples: &[Sample<'a>]) -> std::collections::BTreeSet<&'a str> {
    samples.iter().map(|sample| sample.family).collect()
}

fn folds(samples: &[Sample<'_>]) -> Result<Folds, Unfit> {
    Folds::of(&samples.iter().map(|sample| sample.family).collect::<Vec<_>>())
}

fn ridge_of(samples: &[Sample<'_>], penalty: f64) -> Result<Line, Unfit> {
    let inputs: Vec<Vec<f64>> = samples.iter().map(|sample| sample.inputs.clone()).collect();
    let targets: Vec<f64> = samples.iter().map(|sample| sample.target).collect();
    ridge(&inputs, &targets, penalty)
}

/// With the penalty that predicts left-out families of these samples best.
fn fit_penalised(samples: &[Sample<'_>]) -> Result<(Line, f64), Unfit> {
    let folds = folds(samples)?;
    let mut best = (f64::INFINITY, PENALTIES[0]);
    for penalty in PENALTIES {
        let said = folds.left_out(samples, |others| ridge_of(others, penalty), |line, sample| line.at(&sample.inputs))?;
        let sum: f64 = samples.iter().zip(&said).map(|(sample, said)| (sample.target - said).powi(2)).sum();
        if sum < best.0 {
            best = (sum, penalty);
        }
    }
    Ok((ridge_of(samples, best.1)?, best.1))
}

/// From 0 to 100 around a logarithm.
fn percent_around(log: f64, width: f64) -> Interval {
    let percent = |log: f64| log.exp_m1().clamp(0.0, 100.0);
    Interval { estimate: percent(log), low: percent(log - width), high: percent(log + width) }
}

impl ActivityLaw {
    /// In percent; the interval so many times as wide, as a logarithm.
    pub fn predict(&self, work: &Work, peaks: &Peaks, widened: f64) -> Interval {
        let features = self.coefficients.iter().map(|(feature, coefficient)| coefficient * feature.of(work, peaks));
        percent_around(self.intercept + features.sum::<f64>(), self.width.times(widened).two_sided_log)
    }

    pub fn check(&self, activity: Activity) -> Result<(), String> {
        let known = activity.features();
        if self.coefficients.keys().copied().collect::<Vec<_>>() != known {
            return Err(format!("the coefficients of {} are not those of {known:?}", activity.key()));
        }
        for value in self.coefficients.values().chain([&self.intercept]) {
            if !(-LARGEST_COEFFICIENT..=LARGEST_COEFFICIENT).contains(value) {
                return Err(format!("a coefficient of {} is {value}, not from -1000 to 1000", activity.key()));
            }
        }
        self.width.check()
    }
}
