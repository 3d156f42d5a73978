//! How far off predictions are, as widths around them. In: measured over predicted of rows that the fit had not seen, by family.
//! Out: factors, as logarithms.
//!
//! Split-conformal with families as the unit: rows of one architecture err alike, so each family has the weight of one, shared by
//! its rows, and so has the family that is yet to come (Lee, Barber and Willett 2023, arXiv 2306.06342). How much of that last weight it
//! takes depends on how alike the rows of a family err, and is tried on families left out. Each end of an interval is a quantile of its own.

use std::collections::BTreeMap;

use collo_quantity::stats::quantile;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::erf::erfc;

use crate::json::amount;

/// ln(measured ÷ predicted) of a row whose family was left out of the fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Residual {
    pub family: String,
    pub log_ratio: f64,
}

/// Where a width comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WidthFrom {
    /// From enough families of the fit's own rows.
    Families,
    /// From the published jobs, since there were too few families; or from what these show, if that is more.
    Published,
    /// From the spread of few families: Student's t of so many, as if they were normal.
    Spread,
}

/// 95 % of measurements are below `estimate · exp(upper_log)`, and 95 % between `estimate · exp(-below_log)` and
/// `estimate · exp(above_log)`: 2.5 % are below the one, and 2.5 % above the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Width {
    #[serde(deserialize_with = "amount")]
    pub upper_log: f64,
    #[serde(deserialize_with = "amount")]
    pub below_log: f64,
    #[serde(deserialize_with = "amount")]
    pub above_log: f64,
    pub from: WidthFrom,
    /// Of the residuals.
    pub families: usize,
    pub rows: usize,
}

/// An estimate of whatever unit, and what 95 % of measurements are meant to be between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

/// The bounds of an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub low_bytes: f64,
    pub high_bytes: f64,
    pub upper_bytes: f64,
}

const COVERAGE: f64 = 0.95;
/// The share of measurements on the inner side of either end of an interval.
const COVERAGE_OF_AN_END: f64 = 0.975;
/// A factor of 20, which no useful predictor needs.
pub const WIDEST_LOG: f64 = 3.0;
/// With fewer, one family more could be the one of twenty that is outside: the width is that of the published jobs, and no share is
/// promised.
pub const FEWEST_FAMILIES: usize = 20;

impl Width {
    /// The largest error of the 30 published jobs against either of their two measurements, each job predicted by a fit without its
    /// family: of so few rows the 95 % bound is the largest.
    pub const PUBLISHED: Width =
        Width { upper_log: 0.11, below_log: 0.11, above_log: 0.11, from: WidthFrom::Published, families: 6, rows: 30 };

    /// From the rows' own families if there are enough, else the published width, or what the rows show if that is more.
    pub fn of(residuals: &[Residual]) -> Width {
        if let Some(width) = Width::by_family(residuals) {
            return width;
        }
        let by_family = families(residuals);
        let seen = |score: fn(f64) -> f64| Ranked::of(&by_family, score).quantile(COVERAGE, None, 0.0).unwrap_or(0.0);
        let either_side = seen(f64::abs).max(Width::PUBLISHED.above_log);
        Width {
            upper_log: seen(|ratio| ratio).max(Width::PUBLISHED.upper_log),
            below_log: either_side,
            above_log: either_side,
            from: WidthFrom::Published,
            families: by_family.len(),
            rows: residuals.len(),
        }
    }

    /// From the rows' own families if there are enough, else from their spread. None: there is only one.
    pub fn of_spread(residuals: &[Residual]) -> Option<Width> {
        if let Some(width) = Width::by_family(residuals) {
            return Some(width);
        }
        let by_family = families(residuals);
        let student = StudentsT::new(0.0, 1.0, by_family.len().checked_sub(1)? as f64).ok()?;
        let ranked = Ranked::of(&by_family, |ratio| ratio);
        let squares = ranked.rows.iter().map(|(_, ratio, part)| part * ratio * ratio);
        let spread = (squares.sum::<f64>() / ranked.weight).sqrt();
        let times = |share: f64| (student.inverse_cdf(share) * spread).min(WIDEST_LOG);
        Some(Width {
            upper_log: times(COVERAGE),
            below_log: times(COVERAGE_OF_AN_END),
            above_log: times(COVERAGE_OF_AN_END),
            from: WidthFrom::Spread,
            families: by_family.len(),
            rows: residuals.len(),
        })
    }

    /// So many times as wide, up to the widest that a file may have.
    pub fn times(self, factor: f64) -> Width {
        let wider = |log: f64| (log * factor).min(WIDEST_LOG.max(log));
        let [upper_log, below_log, above_log] = [self.upper_log, self.below_log, self.above_log].map(wider);
        Width { upper_log, below_log, above_log, ..self }
    }

    /// As a file may have it.
    pub fn check(&self) -> Result<(), String> {
        for (what, value) in [("upper_log", self.upper_log), ("below_log", self.below_log), ("above_log", self.above_log)] {
            if !(0.0..=WIDEST_LOG).contains(&value) {
                return Err(format!("`{what}` is {value}, not from 0 to {WIDEST_LOG}"));
            }
        }
        Ok(())
    }

    /// None: too few families.
    pub fn by_family(residuals: &[Residual]) -> Option<Width> {
        let by_family = families(residuals);
        if by_family.len() < FEWEST_FAMILIES {
            return None;
        }
        let covering = |score: fn(f64) -> f64, share| Ranked::of(&by_family, score).covering(share);
        // Each end by itself: a few rows that are far too low say nothing about how far measurements are above.
        let ends = covering(|ratio| -ratio, COVERAGE_OF_AN_END).zip(covering(|ratio| ratio, COVERAGE_OF_AN_END));
        let (below_log, above_log) = match ends {
            Some(ends) => ends,
            // Of fewer than about forty families one alone is more than 2.5 %.
            None => covering(f64::abs, COVERAGE).map(|log| (log, log))?,
        };
        Some(Width {
            // The estimate itself is within.
            upper_log: covering(|ratio| ratio, COVERAGE)?.max(0.0),
            below_log: below_log.max(0.0),
            above_log: above_log.max(0.0),
            from: WidthFrom::Families,
            families: by_family.len(),
            rows: residuals.len(),
        })
    }

    /// The places of the residuals that an interval so wide ends at, or leaves outside, the farthest first.
    pub fn decided_by(&self, log_ratios: &[f64]) -> Vec<usize> {
        let excess = |ratio: f64| if ratio < 0.0 { -ratio - self.below_log } else { ratio - self.above_log };
        let mut places: Vec<usize> = (0..log_ratios.len()).filter(|place| excess(log_ratios[*place]) >= -1e-9).collect();
        places.sort_by(|a, b| log_ratios[*b].abs().total_cmp(&log_ratios[*a].abs()));
        places
    }
}

impl Interval {
    pub fn around(estimate: f64, width: Width) -> Interval {
        Interval { estimate, low: estimate * (-width.below_log).exp(), high: estimate * width.above_log.exp() }
    }

    /// As far to either side, as logarithms.
    pub fn within(estimate: f64, log: f64) -> Interval {
        Interval { estimate, low: estimate * (-log).exp(), high: estimate * log.exp() }
    }

    pub fn contains(&self, measured: f64) -> bool {
        (self.low..=self.high).contains(&measured)
    }
}

impl Bounds {
    pub fn around(estimate_bytes: f64, width: Width) -> Bounds {
        let Interval { low: low_bytes, high: high_bytes, .. } = Interval::around(estimate_bytes, width);
        Bounds { low_bytes, high_bytes, upper_bytes: estimate_bytes * width.upper_log.exp() }
    }
}

/// The probability that a measurement is above a limit, if errors are log-normal on either side of the estimate, with half of them on each
/// and 2.5 % outside of each end of the interval. The shape is an assumption; with an interval of few families so is the width.
pub fn probability_above(interval: Interval, limit: f64) -> f64 {
    if limit <= 0.0 {
        return 1.0;
    }
    let estimate = interval.estimate.max(1.0);
    let distance = (limit / estimate).ln();
    let end = if distance < 0.0 { interval.low.max(1.0) } else { interval.high };
    let width = (end / estimate).ln().abs();
    if width <= 0.0 {
        return if distance < 0.0 { 1.0 } else { 0.0 };
    }
    // 95 % of a normal distribution are within 1.96 standard deviations.
    let standard = distance / (width / 1.959_964);
    0.5 * erfc(standard / std::f64::consts::SQRT_2)
}

fn families(residuals: &[Residual]) -> BTreeMap<&str, Vec<f64>> {
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for one in residuals.iter().filter(|one| one.log_ratio.is_finite()) {
        all.entry(&one.family).or_default().push(one.log_ratio);
    }
    all
}

/// Scores in order, each with its family and the part of all families that it is.
struct Ranked {
    families: usize,
    /// The sum of what the families weigh.
    weight: f64,
    /// The family's place, the score, its part.
    rows: Vec<(usize, f64, f64)>,
}

/// How much the family to come is taken to be above all that were seen, least first: as if it were a whole one, it is the bound that
/// holds however alike the rows of a family err (Lee, Barber and Willett 2023); as if it were none, one that holds if they err
/// independently.
const TO_COME: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// With more families, or rows, the difference is not worth its time.
const MOST_FAMILIES: usize = 100;
const MOST_ROWS: usize = 20_000;

impl Ranked {
    /// A family weighs as one, shared by its rows; one with fewer rows than the median family weighs as the share of that number that it
    /// has, or a row that is a family of its own would count as much as all rows of another.
    fn of(by_family: &BTreeMap<&str, Vec<f64>>, score: impl Fn(f64) -> f64) -> Ranked {
        let median = quantile(by_family.values().map(|rows| rows.len() as f64).collect(), 0.5).unwrap_or(1.0);
        let each = by_family.values().enumerate();
        let of_family = |(family, rows): (usize, &Vec<f64>)| -> Vec<(usize, f64, f64)> {
            let part = (1.0 / rows.len() as f64).min(1.0 / median);
            rows.iter().map(|&row| (family, score(row), part)).collect()
        };
        let mut rows: Vec<(usize, f64, f64)> = each.flat_map(of_family).collect();
        rows.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
        Ranked { families: by_family.len(), weight: rows.iter().map(|(.., part)| part).sum(), rows }
    }

    /// The least score that covers this share of each family when it is left out, on average.
    fn covering(&self, share: f64) -> Option<f64> {
        let is_large = self.families > MOST_FAMILIES || self.rows.len() > MOST_ROWS;
        let enough = TO_COME.into_iter().find(|&to_come| !is_large && self.covered_left_out(share, to_come) >= share);
        self.quantile(share, None, enough.unwrap_or(1.0))
    }

    /// The mean part of a family that is at or below the quantile of the others.
    fn covered_left_out(&self, share: f64, to_come: f64) -> f64 {
        let limit = |family: usize| self.quantile(share, Some(family), to_come).unwrap_or(f64::INFINITY);
        let limits: Vec<f64> = (0..self.families).map(limit).collect();
        let covered = self.rows.iter().filter(|(family, score, _)| *score <= limits[*family]).map(|(.., part)| part);
        // The mean is in steps, each a row's part of its family, and the row to come counts as one that is missed.
        let step = self.weight / self.rows.len() as f64;
        covered.sum::<f64>() / (self.weight + step)
    }

    /// The least score at or below which this share of the weight is, if the families and that to come share it.
    fn quantile(&self, share: f64, without: Option<usize>, to_come: f64) -> Option<f64> {
        let others = || self.rows.iter().filter(|(family, ..)| Some(*family) != without);
        let wanted = share * (others().map(|(.., part)| part).sum::<f64>() + to_come) - 1e-9;
        let mut below = 0.0;
        for (_, score, part) in others() {
            below += part;
            if below >= wanted {
                return Some(*score);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
