//! How busy a training alone keeps a card, in percent. In: measured rows. Out: a log-linear law for each activity, and its prediction of
//! each row without having seen its family.

use std::collections::BTreeMap;

use collo_gpus::Peaks;
use serde::{Deserialize, Serialize};

use crate::conformal::{Interval, Residual, Width};
use crate::fit::Unfit;
use crate::folds::Folds;
use crate::json::amount;
use crate::linear::{Line, ridge};

use super::range::{self, FittedRanges, RangeExcess};
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
    /// ln of the share of a step in which SMs compute.
    LnActive,
    /// ln of the share of its bandwidth that the step needs beyond the L2 cache.
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

    /// What its law is linear in. Chosen on published profiles with architectures, and kinds of networks, left out: two features do better
    /// on the architectures and far worse on kinds that the fit has not seen.
    pub fn features(self) -> &'static [Feature] {
        match self {
            Activity::SmActive | Activity::GpuUtilisation => &[Feature::LnActive],
            Activity::DramActive => &[Feature::LnTraffic],
        }
    }
}

impl Feature {
    pub fn of(self, work: &Work, peaks: &Peaks) -> f64 {
        match self {
            // A step that does nothing is as empty as one that computes a picosecond in a second.
            Feature::LnActive => work.active(peaks).max(1e-12).ln(),
            Feature::LnTraffic => work.traffic(peaks).max(1e-12).ln(),
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
    /// What the rows of the fit were like: of others intervals are wider, or there is no prediction.
    pub fitted: FittedRanges,
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
    let (measured, samples) = samples(rows, activity);
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
    // As predictions are made: no percentage is below 0 or above 100.
    let error = |said: &[f64]| {
        let pairs =
            measured.iter().zip(said).filter_map(|(row, said)| Some((percent_of(*said), rows[*row].measured.percent(activity)?)));
        rmsle(pairs).unwrap_or_default()
    };
    Ok(LawFit {
        law: ActivityLaw {
            intercept: line.intercept,
            coefficients: activity.features().iter().copied().zip(line.coefficients).collect(),
            fitted: range::ranges(measured.iter().map(|row| &rows[*row])),
            penalty,
            width,
            left_out: LogScore { rows: samples.len(), families, rmsle: error(&said), constant_rmsle: error(&constant) },
        },
        left_out,
    })
}

/// Each row by a fit that has seen no network of its kind, between bounds made of the errors on other kinds; absent for rows that were not
/// measured. None: the rows are of one kind, or the others are too few to be fitted.
pub fn predict_kinds_left_out(rows: &[Row], activity: Activity) -> Option<Vec<Option<Interval>>> {
    let (measured, samples) = samples(rows, activity);
    let kinds = Folds::of(&measured.iter().map(|row| rows[*row].kind.as_str()).collect::<Vec<_>>()).ok()?;
    let said = kinds.left_out(&samples, fit_penalised, |(line, _), sample| line.at(&sample.inputs)).ok()?;
    let residuals: Vec<Residual> = samples.iter().zip(&said).map(|(sample, said)| sample.residual(*said)).collect();
    let estimated = Estimated { rows: rows.len(), measured: &measured, estimates: &said, residuals: &residuals, folds: &kinds };
    Some(estimated.intervals(percent_around).ok()?.1)
}

/// The rows whose activity was measured, and what the regression takes of each.
fn samples(rows: &[Row], activity: Activity) -> (Vec<usize>, Vec<Sample<'_>>) {
    let measured: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].measured.percent(activity).is_some()).collect();
    let sample = |&row: &usize| Sample {
        family: &rows[row].family,
        inputs: activity.features().iter().map(|feature| feature.of(&rows[row].work, rows[row].peaks)).collect(),
        target: log(rows[row].measured.percent(activity).unwrap_or_default()),
    };
    let samples = measured.iter().map(sample).collect();
    (measured, samples)
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
fn percent_around(log: f64, width: Width) -> Interval {
    Interval { estimate: percent_of(log), low: percent_of(log - width.below_log), high: percent_of(log + width.above_log) }
}

fn percent_of(log: f64) -> f64 {
    log.exp_m1().clamp(0.0, 100.0)
}

impl ActivityLaw {
    /// How far the training is beyond those of the fit. None: it is not.
    pub fn beyond(&self, work: &Work, peaks: &Peaks) -> Option<RangeExcess> {
        range::beyond(&self.fitted, work, peaks)
    }

    /// In percent; the interval so many times as wide, as a logarithm, and wider beyond the range of the fit. None: it is out of range.
    pub fn predict(&self, work: &Work, peaks: &Peaks, widened: f64) -> Option<Interval> {
        let beyond = self.beyond(work, peaks);
        if beyond.is_some_and(|beyond| beyond.is_out_of_range()) {
            return None;
        }
        let widened = widened * beyond.map_or(1.0, |beyond| beyond.widening());
        Some(percent_around(self.log_percent(work, peaks), self.width.times(widened)))
    }

    /// Whether or not it is within the range of the fit.
    pub(super) fn estimate_percent(&self, work: &Work, peaks: &Peaks) -> f64 {
        percent_of(self.log_percent(work, peaks))
    }

    fn log_percent(&self, work: &Work, peaks: &Peaks) -> f64 {
        let features = self.coefficients.iter().map(|(feature, coefficient)| coefficient * feature.of(work, peaks));
        self.intercept + features.sum::<f64>()
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
        range::check(&self.fitted)?;
        self.width.check()
    }
}
