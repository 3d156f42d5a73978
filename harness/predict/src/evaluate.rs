//! How well estimates agree with measurements, and the coefficients that agree best. In: measured rows with what the formula takes
//! of each. Out: coefficients; a prediction of every row by a fit without its family; scores.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::conformal::{Bounds, Residual, Width};
use crate::covariance::Covariance;
use crate::file::TargetDevice;
use crate::fit::{Unfit, fit_absolute};
use crate::folds::Folds;
use crate::memory::Coefficients;
use crate::memory_law::{Factors, LeftOut, MemoryLaw};
use crate::quantile::quantile;

/// A training whose memory was measured, with the inputs of the formula.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRow {
    /// For people: `resnet50 b32`.
    pub label: String,
    /// The architecture: rows of one are left out together.
    pub family: String,
    /// Above 0.
    pub measured_bytes: f64,
    /// R at the row's batch size.
    pub held_bytes: u64,
    /// X at the row's batch size.
    pub workspace_bytes: u64,
}

/// A measured row beside an estimate of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    pub label: String,
    pub measured_bytes: f64,
    /// None: the estimator has none for this row.
    pub estimate_bytes: Option<f64>,
    pub bounds: Option<Bounds>,
}

/// An estimator's agreement with measurements. Relative errors are shares of the measured value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    pub rows: usize,
    /// Rows for which it has no estimate; they are in no other number.
    pub without: usize,
    pub median_error_bytes: f64,
    pub median_relative_error: f64,
    pub p90_relative_error: f64,
    pub worst_relative_error: f64,
    pub worst_row: String,
    /// Estimated too low.
    pub under: usize,
    /// Measured at more than twice the estimate: what cuDNN's search leaves behind looks like this.
    pub spikes: usize,
    /// Of the rows that have bounds.
    pub bounded: Option<BoundScore>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoundScore {
    pub rows: usize,
    /// Measured between the two-sided bounds.
    pub covered: usize,
    /// Measured above the upper bound.
    pub exceeded: usize,
    /// By how much the worst of these did.
    pub worst_excess_bytes: f64,
    /// The upper bound above the measured value, as a share of it.
    pub median_over_reservation: f64,
}

/// A law, and how well it does on families that it has not seen.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryFit {
    /// From all rows.
    pub law: MemoryLaw,
    /// Each row by a fit without its family, in the order of the rows.
    pub left_out: Vec<Scored>,
}

/// Without one of them there are still as many as coefficients.
pub const FEWEST_TO_FIT: usize = 4;

/// A byte for each byte that is held: a CPU has no allocator that caches and no cuDNN, and neither has the simulation.
const ONE: Coefficients = Coefficients { context_bytes: 0.0, per_reserved_byte: 1.0, per_workspace_byte: 0.0 };

/// All coefficients, or the context alone: on a CPU, and where there are too few architectures, for which a GPU's others are the published.
pub fn fit_memory_of(
    rows: &[MeasuredRow],
    device: TargetDevice,
    simulated: bool,
    published: Coefficients,
) -> Result<MemoryFit, Unfit> {
    if device == TargetDevice::Cpu {
        return fit_context(rows, ONE, Factors::One);
    }
    match fit_memory(rows) {
        Err(Unfit::TooFewFamilies { .. }) if simulated => fit_context(rows, ONE, Factors::One),
        Err(Unfit::TooFewFamilies { .. }) => fit_context(rows, published, Factors::Published),
        fitted => fitted,
    }
}

/// Coefficients, and bounds from what they miss on families left out.
pub fn fit_memory(rows: &[MeasuredRow]) -> Result<MemoryFit, Unfit> {
    check(rows)?;
    let (folds, families) = (folds(rows), by_family(rows));
    if (1..FEWEST_TO_FIT).contains(&families.len()) {
        return Err(Unfit::TooFewFamilies { families: families.len(), needed: FEWEST_TO_FIT });
    }
    let covariance = Covariance::by_resampling(&families, |rows| coefficients(rows).ok());
    let mut fit = left_out(rows, &folds?, Factors::Fitted, coefficients)?;
    fit.law.covariance = covariance;
    Ok(fit)
}

/// The context of these rows with the other coefficients as known: of another machine, or where there are few architectures. With one
/// family alone its rows are left out one by one.
pub fn fit_context(rows: &[MeasuredRow], known: Coefficients, factors: Factors) -> Result<MemoryFit, Unfit> {
    check(rows)?;
    let folds = match folds(rows) {
        Err(Unfit::OneFamily) => Folds::one_by_one(rows.len()),
        folds => folds?,
    };
    // Of one row alone nothing is left to learn from.
    left_out(rows, &folds, factors, |others| if others.is_empty() { Ok(known) } else { context(others, known) })
}

/// A fit of all rows, and of each row one without its fold.
fn left_out(
    rows: &[MeasuredRow],
    folds: &Folds,
    factors: Factors,
    fit: impl Fn(&[MeasuredRow]) -> Result<Coefficients, Unfit>,
) -> Result<MemoryFit, Unfit> {
    let estimates = estimates(folds, rows, &fit)?;
    let residual = |(row, estimate): (&MeasuredRow, &f64)| Residual {
        family: row.family.clone(),
        log_ratio: (row.measured_bytes / estimate).ln(),
    };
    let residuals: Vec<Residual> = rows.iter().zip(&estimates).map(residual).collect();
    let widths: Vec<Width> = (0..folds.count).map(|fold| Width::of(&folds.others(&residuals, fold))).collect();
    let scored = |(place, row): (usize, &MeasuredRow)| row.scored(estimates[place], widths[folds.of_row[place]]);
    let width = Width::of(&residuals);
    let judged: Vec<Scored> = rows.iter().enumerate().map(scored).collect();
    let score = LeftOut::of(&judged, width.families).ok_or(Unfit::Unsettled)?;
    let law = MemoryLaw { coefficients: fit(rows)?, factors, covariance: None, width, left_out: score };
    Ok(MemoryFit { law, left_out: judged })
}

/// Each row by known coefficients of which only the context was fitted again, without the row's family, in a width that is given.
pub fn refit_context(rows: &[MeasuredRow], known: Coefficients, width: Width) -> Result<Vec<Scored>, Unfit> {
    check(rows)?;
    let estimates = estimates(&folds(rows)?, rows, |others| context(others, known))?;
    Ok(rows.iter().zip(estimates).map(|(row, estimate)| row.scored(estimate, width)).collect())
}

fn check(rows: &[MeasuredRow]) -> Result<(), Unfit> {
    match rows.iter().position(|row| !(row.measured_bytes > 0.0 && row.measured_bytes.is_finite())) {
        Some(row) => Err(Unfit::NotMeasured { row: row + 1 }),
        None => Ok(()),
    }
}

/// The three coefficients. A row's error counts as a share of what was measured, so that small trainings weigh as much as large.
fn coefficients(rows: &[MeasuredRow]) -> Result<Coefficients, Unfit> {
    // The device has at least what the allocator holds, so the factor is fitted from 1 on.
    let input = |row: &MeasuredRow| {
        let of = |bytes: f64| bytes / row.measured_bytes;
        vec![of(1.0), of(row.held_bytes as f64), of(row.workspace_bytes as f64)]
    };
    let inputs: Vec<Vec<f64>> = rows.iter().map(input).collect();
    let targets: Vec<f64> = rows.iter().map(|row| 1.0 - row.held_bytes as f64 / row.measured_bytes).collect();
    let fitted = fit_absolute(&inputs, &targets)?;
    Ok(Coefficients { context_bytes: fitted[0], per_reserved_byte: 1.0 + fitted[1], per_workspace_byte: fitted[2] })
}

/// The known coefficients with the context of these rows.
fn context(rows: &[MeasuredRow], known: Coefficients) -> Result<Coefficients, Unfit> {
    let without = Coefficients { context_bytes: 0.0, ..known };
    let inputs: Vec<Vec<f64>> = rows.iter().map(|row| vec![1.0 / row.measured_bytes]).collect();
    let left = |row: &MeasuredRow| 1.0 - without.bytes(row.held_bytes, row.workspace_bytes) / row.measured_bytes;
    let targets: Vec<f64> = rows.iter().map(left).collect();
    Ok(Coefficients { context_bytes: fit_absolute(&inputs, &targets)?[0], ..known })
}

fn by_family(rows: &[MeasuredRow]) -> Vec<Vec<MeasuredRow>> {
    let mut families: BTreeMap<&str, Vec<MeasuredRow>> = BTreeMap::new();
    for row in rows {
        families.entry(&row.family).or_default().push(row.clone());
    }
    families.into_values().collect()
}

fn folds(rows: &[MeasuredRow]) -> Result<Folds, Unfit> {
    Folds::of(&rows.iter().map(|row| row.family.as_str()).collect::<Vec<_>>())
}

/// In bytes, each row by coefficients from the rows of the other folds.
fn estimates(
    folds: &Folds,
    rows: &[MeasuredRow],
    fit: impl Fn(&[MeasuredRow]) -> Result<Coefficients, Unfit>,
) -> Result<Vec<f64>, Unfit> {
    folds.left_out(rows, fit, |coefficients, row| coefficients.bytes(row.held_bytes, row.workspace_bytes))
}

impl MeasuredRow {
    fn scored(&self, estimate_bytes: f64, width: Width) -> Scored {
        Scored {
            label: self.label.clone(),
            measured_bytes: self.measured_bytes,
            estimate_bytes: Some(estimate_bytes),
            bounds: Some(Bounds::around(estimate_bytes, width)),
        }
    }
}

impl LeftOut {
    /// None: no row has an estimate.
    fn of(rows: &[Scored], families: usize) -> Option<LeftOut> {
        let found = score(rows)?;
        Some(LeftOut {
            rows: found.rows,
            families,
            median_error_bytes: found.median_error_bytes,
            median_relative_error: found.median_relative_error,
            worst_relative_error: found.worst_relative_error,
            under: found.under,
            exceeded: found.bounded.map_or(0, |bounded| bounded.exceeded),
        })
    }
}

fn is_measured(row: &&Scored) -> bool {
    row.measured_bytes > 0.0 && row.measured_bytes.is_finite()
}

/// None: no row has an estimate.
pub fn score(rows: &[Scored]) -> Option<Score> {
    let estimated = rows.iter().filter(is_measured).filter_map(|row| Some((row, row.estimate_bytes?)));
    let estimated: Vec<(&Scored, f64)> = estimated.filter(|(_, estimate)| estimate.is_finite()).collect();
    let relative = |(row, estimate): &(&Scored, f64)| (estimate - row.measured_bytes).abs() / row.measured_bytes;
    let worst = estimated.iter().max_by(|a, b| relative(a).total_cmp(&relative(b)))?;
    let relatives = || estimated.iter().map(relative).collect();
    Some(Score {
        rows: estimated.len(),
        without: rows.len() - estimated.len(),
        median_error_bytes: quantile(
            estimated.iter().map(|(row, estimate)| (estimate - row.measured_bytes).abs()).collect(),
            0.5,
        )?,
        median_relative_error: quantile(relatives(), 0.5)?,
        p90_relative_error: quantile(relatives(), 0.9)?,
        worst_relative_error: relative(worst),
        worst_row: worst.0.label.clone(),
        under: estimated.iter().filter(|(row, estimate)| *estimate < row.measured_bytes).count(),
        spikes: estimated.iter().filter(|(row, estimate)| row.measured_bytes > 2.0 * estimate).count(),
        bounded: BoundScore::of(rows),
    })
}

impl BoundScore {
    fn of(rows: &[Scored]) -> Option<BoundScore> {
        let finite = |(_, bounds): &(f64, Bounds)| bounds.low_bytes.is_finite() && bounds.upper_bytes.is_finite();
        let bounded = rows.iter().filter(is_measured).filter_map(|row| Some((row.measured_bytes, row.bounds?)));
        let bounded: Vec<(f64, Bounds)> = bounded.filter(finite).collect();
        let excess = |(measured, bounds): &(f64, Bounds)| measured - bounds.upper_bytes;
        let over = bounded.iter().map(|(measured, bounds)| bounds.upper_bytes / measured - 1.0).collect();
        Some(BoundScore {
            rows: bounded.len(),
            covered: bounded.iter().filter(|(x, bounds)| (bounds.low_bytes..=bounds.high_bytes).contains(x)).count(),
            exceeded: bounded.iter().filter(|one| excess(one) > 0.0).count(),
            worst_excess_bytes: bounded.iter().map(excess).fold(0.0, f64::max),
            median_over_reservation: quantile(over, 0.5)?,
        })
    }
}

#[cfg(test)]
mod tests;
