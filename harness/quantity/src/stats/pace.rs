//! The pace of a machine over a campaign: what runs at one time would have taken at another. In: the logarithm of a time of each run, in
//! the order in which they ran, and the cell of each. Out: the time of a cell at the pace of any run, and the uncertainty of the
//! difference between cells that were measured at different times.
//!
//! A logarithm is its cell's mean, plus the pace, plus noise. Three kinds of pace are considered: a trend alone; a trend with a
//! deviation that forgets itself (autoregressive of the first order, [`CORRELATIONS`] from run to run, with [`RATIOS`] times the variance of
//! the noise); one step between two runs. Each is weighted by its restricted likelihood, so that the uncertainty about the kind of pace
//! is part of the interval.

mod matrix;

use std::iter;

use super::Variance;
use matrix::{Factor, Tridiagonal, dot};

/// Correlation of the deviation between two successive runs.
const CORRELATIONS: [f64; 6] = [0.5, 0.8, 0.9, 0.95, 0.98, 0.99];
/// Variance of the deviation ÷ variance of the noise.
const RATIOS: [f64; 6] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0];
/// Weights of the kinds before anything is measured: the trend alone, all deviations together, all steps together.
const TREND: f64 = 1.0;
const DEVIATIONS: f64 = 4.0;
const STEPS: f64 = 1.0;
/// Below this relative weight a kind of pace adds nothing.
const NEGLIGIBLE: f64 = 1e-12;
/// No noise is smaller: logarithms have rounding errors.
const LEAST_VARIANCE: f64 = 1e-20;

/// One run: its cell, numbered from 0, and the logarithm of its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacedRun {
    pub cell: usize,
    pub log: f64,
}

/// The pace of a machine.
#[derive(Debug, Clone)]
pub struct Pace {
    models: Vec<Model>,
    /// Of the variance of the noise.
    df: f64,
}

/// One kind of pace, fitted.
#[derive(Debug, Clone)]
struct Model {
    /// First a logarithm, relative to nothing; in the end its share.
    weight: f64,
    /// Mean logarithm of each cell.
    cells: Vec<f64>,
    /// The pace in each run.
    paces: Vec<f64>,
    /// Variance of the noise.
    s2: f64,
    /// Of the means of the cells: information without the trend or step, and its part in each.
    factor: usize,
    lean: Vec<f64>,
    information: f64,
}

/// Runs in order, ready to be fitted.
struct Runs<'a> {
    of: &'a [PacedRun],
    cells: usize,
    df: f64,
}

impl Pace {
    /// Fit the pace to runs in the order in which they ran. `None` where there are too few to tell a trend from noise, or where no cell
    /// was measured at two times.
    pub fn fit(of: &[PacedRun]) -> Option<FittedPace> {
        let cells = 1 + of.iter().map(|run| run.cell).max()?;
        let df = of.len() as f64 - cells as f64 - 1.0;
        if df < 1.0 {
            return None;
        }
        let runs = Runs { of, cells, df };
        let trend = scaled(&(0..of.len()).map(|at| at as f64).collect::<Vec<_>>())?;
        let mut factors = vec![Weighing::equal(&runs)?];
        let mut models = vec![runs.model(&factors[0], 0, &trend, TREND)?];
        for at in 1..of.len() {
            let step = scaled(&(0..of.len()).map(|run| f64::from(u8::from(run >= at))).collect::<Vec<_>>());
            let prior = STEPS / (of.len() - 1) as f64;
            models.extend(step.and_then(|step| runs.model(&factors[0], 0, &step, prior)));
        }
        for (correlation, ratio) in CORRELATIONS.into_iter().flat_map(|c| RATIOS.map(|r| (c, r))) {
            let weighing = Weighing::deviating(&runs, correlation, ratio)?;
            let prior = DEVIATIONS / (CORRELATIONS.len() * RATIOS.len()) as f64;
            models.extend(runs.model(&weighing, factors.len(), &trend, prior));
            factors.push(weighing);
        }
        let most = models.iter().map(|m| m.weight).fold(f64::NEG_INFINITY, f64::max);
        models.iter_mut().for_each(|m| m.weight = (m.weight - most).exp());
        models.retain(|m| m.weight > NEGLIGIBLE);
        let whole: f64 = models.iter().map(|m| m.weight).sum();
        models.iter_mut().for_each(|m| m.weight /= whole);
        let factors = factors.into_iter().map(|weighing| weighing.factor).collect();
        Some(FittedPace { pace: Pace { models, df }, factors })
    }
}

/// A pace with what its uncertainty is computed from.
#[derive(Debug, Clone)]
pub struct FittedPace {
    pace: Pace,
    factors: Vec<Factor>,
}

impl FittedPace {
    /// The logarithm of what a cell takes at the pace of a run.
    pub fn log_at(&self, cell: usize, run: usize) -> f64 {
        self.pace.models.iter().map(|m| m.weight * (m.cells[cell] + m.paces[run])).sum()
    }

    /// The variance of Σ weight × mean logarithm over cells: their noise, and that they were measured at different times.
    pub fn variance(&self, weights: &[(usize, f64)]) -> Variance {
        let models = &self.pace.models;
        let value = |m: &Model| weights.iter().map(|(cell, weight)| weight * m.cells[*cell]).sum::<f64>();
        let mean: f64 = models.iter().map(|m| m.weight * value(m)).sum();
        let of = |m: &Model| {
            let lean: f64 = weights.iter().map(|(cell, weight)| weight * m.lean[*cell]).sum();
            let own = self.factors[m.factor].inverse_form(weights);
            m.weight * (m.s2 * (own + lean.powi(2) / m.information) + (value(m) - mean).powi(2))
        };
        Variance { s2: models.iter().map(of).sum(), df: self.pace.df }
    }

    /// The variance of one run around its cell's mean at its pace.
    pub fn noise(&self) -> f64 {
        self.pace.models.iter().map(|m| m.weight * m.s2).sum()
    }
}

/// Mean 0 and standard deviation 1; `None` for what does not change.
fn scaled(values: &[f64]) -> Option<Vec<f64>> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sd = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    (sd > 0.0).then(|| values.iter().map(|v| (v - mean) / sd).collect())
}

/// How the runs are weighed under one kind of deviation: the inverse of V, the covariance of their logarithms ÷ that of the noise.
struct Weighing {
    /// `None` where runs deviate independently.
    deviation: Option<Tridiagonal>,
    /// ln |V|.
    log_determinant: f64,
    /// Of the information about the cells' means.
    factor: Factor,
}

impl Weighing {
    fn equal(runs: &Runs<'_>) -> Option<Weighing> {
        let counts = runs.sums(&vec![1.0; runs.of.len()]);
        Some(Weighing { deviation: None, log_determinant: 0.0, factor: Factor::diagonal(counts)? })
    }

    /// V = I + K with K = ratio × correlation^distance, whose inverse Q is tridiagonal: V⁻¹ = I − (I + Q)⁻¹.
    fn deviating(runs: &Runs<'_>, correlation: f64, ratio: f64) -> Option<Weighing> {
        let n = runs.of.len();
        let precision = Tridiagonal::autoregressive(n, correlation, ratio);
        let log_k = n as f64 * ratio.ln() + (n - 1) as f64 * (1.0 - correlation.powi(2)).ln();
        let with_noise = precision.plus_identity();
        let log_determinant = with_noise.log_determinant() + log_k;
        let mut found = Weighing { deviation: Some(with_noise), log_determinant, factor: Factor::diagonal(vec![1.0])? };
        let column = |cell: usize| {
            let indicator: Vec<f64> = runs.of.iter().map(|run| f64::from(u8::from(run.cell == cell))).collect();
            runs.sums(&found.weigh(&indicator))
        };
        found.factor = Factor::cholesky((0..runs.cells).map(column).collect())?;
        Some(found)
    }

    /// V⁻¹ × a vector.
    fn weigh(&self, vector: &[f64]) -> Vec<f64> {
        match &self.deviation {
            None => vector.to_vec(),
            Some(with_noise) => vector.iter().zip(with_noise.solve(vector)).map(|(v, smooth)| v - smooth).collect(),
        }
    }
}

impl Runs<'_> {
    /// The sum over the runs of each cell.
    fn sums(&self, of: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.cells];
        self.of.iter().zip(of).for_each(|(run, value)| sums[run.cell] += value);
        sums
    }

    /// Generalised least squares of the cells' means and of one change over time; `None` where that cannot be told from the cells.
    fn model(&self, weighing: &Weighing, factor: usize, change: &[f64], prior: f64) -> Option<Model> {
        let logs: Vec<f64> = self.of.iter().map(|run| run.log).collect();
        let weighed_change = weighing.weigh(change);
        let (of_logs, of_change) = (self.sums(&weighing.weigh(&logs)), self.sums(&weighed_change));
        let lean = weighing.factor.solve(&of_change);
        let whole = dot(&weighed_change, change);
        let information = whole - dot(&of_change, &lean);
        if information <= 1e-9 * whole {
            return None;
        }
        let size = (dot(&weighed_change, &logs) - dot(&lean, &of_logs)) / information;
        let means = weighing.factor.solve(&of_logs);
        let cells: Vec<f64> = means.iter().zip(&lean).map(|(mean, lean)| mean - lean * size).collect();
        let residuals: Vec<f64> =
            self.of.iter().zip(change).map(|(run, change)| run.log - cells[run.cell] - size * change).collect();
        let noise = weighing.weigh(&residuals);
        let s2 = (dot(&noise, &residuals) / self.df).max(LEAST_VARIANCE);
        let log_information = weighing.factor.log_determinant() + information.ln();
        let log_likelihood = -0.5 * (weighing.log_determinant + log_information + self.df * s2.ln());
        let deviations = residuals.iter().zip(&noise).map(|(residual, noise)| residual - noise);
        let paces = iter::zip(change, deviations).map(|(change, deviation)| size * change + deviation).collect();
        Some(Model { weight: log_likelihood + prior.ln(), cells, paces, s2, factor, lean, information })
    }
}

#[cfg(test)]
mod tests;
