//! The utilisation predictor of the literature (Yeung and others, HotCloud'20): seven features of the computation graph, four
//! regressors, RMSLE of percentages on a random split. In: measured rows. Out: scores by its protocol, and with architectures left out.
//!
//! Its gradient boosting is LightGBM's and XGBoost's; here trees on residuals (Friedman 2001, doi 10.1214/aos/1013203451) stand for the
//! first, and smartcore's second-order boosting for the second.

use std::fmt;

use collo_quantity::stats::quantile;
use smartcore::ensemble::random_forest_regressor::{RandomForestRegressor, RandomForestRegressorParameters};
use smartcore::linalg::basic::matrix::DenseMatrix;
use smartcore::tree::decision_tree_regressor::{DecisionTreeRegressor, DecisionTreeRegressorParameters};
use smartcore::xgboost::{XGRegressor, XGRegressorParameters};

use crate::description::Description;
use crate::fit::Unfit;
use crate::folds::Folds;
use crate::linear::ridge;
use crate::seeded::mixed;

use super::Row;
use super::activity::{Activity, fit_activity, rmsle};

/// The seven features, of a model at a batch size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SevenFeatures {
    pub convolutions: f64,
    pub linear: f64,
    pub activations: f64,
    pub other: f64,
    pub model_mb: f64,
    /// Of a forward pass for the whole batch.
    pub gflops: f64,
    pub batch_size: f64,
}

impl SevenFeatures {
    pub fn of(description: &Description, batch: u64) -> SevenFeatures {
        let features = &description.features;
        SevenFeatures {
            convolutions: features.convolutions as f64,
            linear: features.linear as f64,
            activations: features.activations as f64,
            other: features.other as f64,
            model_mb: features.model_mb,
            gflops: description.forward_flops_per_item * batch as f64 / 1e9,
            batch_size: batch as f64,
        }
    }

    fn values(self) -> Vec<f64> {
        let SevenFeatures { convolutions, linear, activations, other, model_mb, gflops, batch_size } = self;
        vec![convolutions, linear, activations, other, model_mb, gflops, batch_size]
    }
}

/// What learns from the seven features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regressor {
    Linear,
    Forest,
    /// Trees on the residuals of those before.
    Boosted,
    /// The same by gradients of first and second order.
    XgBoosted,
}

impl Regressor {
    pub const ALL: [Regressor; 4] = [Regressor::Linear, Regressor::Boosted, Regressor::XgBoosted, Regressor::Forest];

    /// As the paper has it.
    pub fn published_rmsle(self) -> f64 {
        match self {
            Regressor::Linear => 0.291,
            Regressor::Boosted => 0.255,
            Regressor::XgBoosted => 0.197,
            Regressor::Forest => 0.154,
        }
    }
}

impl fmt::Display for Regressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Regressor::Linear => "linear regression",
            Regressor::Forest => "random forest",
            Regressor::Boosted => "gradient boosting",
            Regressor::XgBoosted => "second-order boosting",
        })
    }
}

/// Scores of one estimator, RMSLE of percentages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// The median of the seeds: 80 % to learn from, 20 % to be judged by, rows of one architecture in both.
    pub shuffled: Option<f64>,
    /// Each architecture by what was learned from the others.
    pub left_out: Option<f64>,
}

/// What is tried on the training part.
#[derive(Debug, Clone, Copy)]
struct Setting {
    trees: usize,
    depth: u16,
}

const TREES: [usize; 2] = [50, 150];
const DEPTHS: [u16; 3] = [2, 4, 8];
const GRID_FOLDS: usize = 5;
/// Of each five rows one judges.
const TEST_SHARE: usize = 5;
/// With fewer the test part would be of one row.
const FEWEST_ROWS: usize = 10;
const LEARNING_RATE: f64 = 0.1;

#[derive(Clone)]
struct Sample {
    family: String,
    features: Vec<f64>,
    percent: f64,
}

/// The four regressors on these rows, by so many shuffles; the seeds are 1, 2 and so on.
pub fn regressors(rows: &[Row], activity: Activity, seeds: u64) -> Vec<(Regressor, Scores)> {
    let samples = samples(rows, activity);
    let score = |regressor: Regressor| Scores {
        shuffled: median((1..=seeds).filter_map(|seed| shuffled(&samples, seed, |t, j| searched(regressor, t, j, seed)))),
        left_out: left_out(&samples, |train, judged| searched(regressor, train, judged, 1)),
    };
    Regressor::ALL.map(|regressor| (regressor, score(regressor))).into()
}

/// One regressor with architectures left out, for comparison.
pub fn regressor_left_out(rows: &[Row], activity: Activity, regressor: Regressor) -> Option<f64> {
    let samples = samples(rows, activity);
    left_out(&samples, |train, judged| searched(regressor, train, judged, 1))
}

fn samples(rows: &[Row], activity: Activity) -> Vec<Sample> {
    let sample = |row: &Row| {
        let percent = row.measured.percent(activity)?;
        Some(Sample { family: row.family.clone(), features: row.seven.values(), percent })
    };
    rows.iter().filter_map(sample).collect()
}

/// The log-linear law by both protocols.
pub fn law(rows: &[Row], activity: Activity, seeds: u64) -> Result<Scores, Unfit> {
    let rows: Vec<Row> = rows.iter().filter(|row| row.measured.percent(activity).is_some()).cloned().collect();
    let fitted = fit_activity(&rows, activity)?;
    let by_seed = |seed: u64| {
        let (judged, train) = split(rows.len(), seed)?;
        let train: Vec<Row> = train.iter().map(|row| rows[*row].clone()).collect();
        let law = fit_activity(&train, activity).ok()?.law;
        rmsle(judged.iter().filter_map(|row| {
            let row = &rows[*row];
            Some((law.estimate_percent(&row.work, row.peaks), row.measured.percent(activity)?))
        }))
    };
    Ok(Scores { shuffled: median((1..=seeds).filter_map(by_seed)), left_out: Some(fitted.law.left_out.rmsle) })
}

/// Rows to judge by, and rows to learn from.
fn split(rows: usize, seed: u64) -> Option<(Vec<usize>, Vec<usize>)> {
    if rows < FEWEST_ROWS {
        return None;
    }
    let order = shuffle(rows, seed);
    let (judged, train) = order.split_at(rows / TEST_SHARE);
    Some((judged.into(), train.into()))
}

fn shuffle(rows: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by_key(|row| mixed(seed.wrapping_mul(0x1_0000_0001).wrapping_add(*row as u64)));
    order
}

fn shuffled(samples: &[Sample], seed: u64, said: impl Fn(&[Sample], &[Sample]) -> Option<Vec<f64>>) -> Option<f64> {
    let (judged, train) = split(samples.len(), seed)?;
    let of = |rows: &[usize]| rows.iter().map(|row| samples[*row].clone()).collect::<Vec<_>>();
    let (judged, train) = (of(&judged), of(&train));
    rmsle(said(&train, &judged)?.into_iter().zip(judged.iter().map(|sample| sample.percent)))
}

fn left_out(samples: &[Sample], said: impl Fn(&[Sample], &[Sample]) -> Option<Vec<f64>>) -> Option<f64> {
    let folds = Folds::of(&samples.iter().map(|sample| sample.family.as_str()).collect::<Vec<_>>()).ok()?;
    let mut pairs = Vec::new();
    for fold in 0..folds.count {
        let judged: Vec<&Sample> = samples.iter().zip(&folds.of_row).filter(|(_, of)| **of == fold).map(|(s, _)| s).collect();
        let judged: Vec<Sample> = judged.into_iter().cloned().collect();
        pairs.extend(said(&folds.others(samples, fold), &judged)?.into_iter().zip(judged.iter().map(|s| s.percent)));
    }
    rmsle(pairs)
}

/// With the setting that does best in five folds of what it learns from.
fn searched(regressor: Regressor, train: &[Sample], judged: &[Sample], seed: u64) -> Option<Vec<f64>> {
    if regressor == Regressor::Linear {
        return linear(train, judged);
    }
    let order = shuffle(train.len(), seed ^ 0x5eed);
    let mut best: Option<(f64, Setting)> = None;
    for setting in TREES.into_iter().flat_map(|trees| DEPTHS.map(|depth| Setting { trees, depth })) {
        let mut pairs = Vec::new();
        for fold in 0..GRID_FOLDS {
            let part = |inside: bool| -> Vec<Sample> {
                let rows = order.iter().enumerate().filter(|(place, _)| (place % GRID_FOLDS == fold) == inside);
                rows.map(|(_, row)| train[*row].clone()).collect()
            };
            let (inner, outer) = (part(true), part(false));
            if inner.is_empty() || outer.len() < 2 {
                continue;
            }
            pairs.extend(trees(regressor, setting, &outer, &inner, seed)?.into_iter().zip(inner.iter().map(|s| s.percent)));
        }
        let error = rmsle(pairs)?;
        if best.is_none_or(|(least, _)| error < least) {
            best = Some((error, setting));
        }
    }
    trees(regressor, best?.1, train, judged, seed)
}

fn linear(train: &[Sample], judged: &[Sample]) -> Option<Vec<f64>> {
    let inputs: Vec<Vec<f64>> = train.iter().map(|sample| sample.features.clone()).collect();
    let targets: Vec<f64> = train.iter().map(|sample| sample.percent).collect();
    let line = ridge(&inputs, &targets, 0.0).ok()?;
    Some(judged.iter().map(|sample| line.at(&sample.features)).collect())
}

type Trees = DenseMatrix<f64>;

fn trees(regressor: Regressor, setting: Setting, train: &[Sample], judged: &[Sample], seed: u64) -> Option<Vec<f64>> {
    let matrix = |samples: &[Sample]| DenseMatrix::from_2d_vec(&samples.iter().map(|s| s.features.clone()).collect()).ok();
    let (inputs, asked) = (matrix(train)?, matrix(judged)?);
    let targets: Vec<f64> = train.iter().map(|sample| sample.percent).collect();
    match regressor {
        Regressor::Linear => linear(train, judged),
        Regressor::Forest => {
            let wanted = RandomForestRegressorParameters::default();
            let wanted = wanted.with_n_trees(setting.trees).with_max_depth(setting.depth).with_seed(seed);
            let forest: RandomForestRegressor<f64, f64, Trees, Vec<f64>> =
                RandomForestRegressor::fit(&inputs, &targets, wanted).ok()?;
            forest.predict(&asked).ok()
        }
        Regressor::Boosted => boosted(setting, &inputs, &targets, &asked, seed),
        Regressor::XgBoosted => {
            let mean = targets.iter().sum::<f64>() / targets.len() as f64;
            let wanted = XGRegressorParameters::default();
            let wanted = wanted.with_n_estimators(setting.trees).with_max_depth(setting.depth).with_learning_rate(LEARNING_RATE);
            let wanted = wanted.with_base_score(mean).with_seed(seed);
            let boosted: XGRegressor<f64, f64, Trees, Vec<f64>> = XGRegressor::fit(&inputs, &targets, wanted).ok()?;
            boosted.predict(&asked).ok()
        }
    }
}

fn boosted(setting: Setting, inputs: &Trees, targets: &[f64], asked: &Trees, seed: u64) -> Option<Vec<f64>> {
    let mean = targets.iter().sum::<f64>() / targets.len() as f64;
    let mut left: Vec<f64> = targets.iter().map(|y| y - mean).collect();
    let mut said: Option<Vec<f64>> = None;
    for tree in 0..setting.trees {
        let mut wanted = DecisionTreeRegressorParameters::default().with_max_depth(setting.depth);
        wanted.seed = Some(seed.wrapping_add(tree as u64));
        let fitted: DecisionTreeRegressor<f64, f64, Trees, Vec<f64>> = DecisionTreeRegressor::fit(inputs, &left, wanted).ok()?;
        left.iter_mut().zip(fitted.predict(inputs).ok()?).for_each(|(left, step)| *left -= LEARNING_RATE * step);
        let steps = fitted.predict(asked).ok()?;
        let so_far = said.get_or_insert_with(|| vec![mean; steps.len()]);
        so_far.iter_mut().zip(steps).for_each(|(said, step)| *said += LEARNING_RATE * step);
    }
    said
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    quantile(values.collect(), 0.5)
}
