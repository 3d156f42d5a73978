//! How far off predictions are, as widths around them. In: measured over predicted of rows that the fit had not seen, by family.
//! Out: factors, as logarithms.
//!
//! Split-conformal with families as the unit: rows of one architecture err alike, so each family has the weight of one, shared by
//! its rows, and so has the family that is yet to come (Lee, Barber and Willett 2023, arXiv 2306.06342). How much of that last weight it
//! takes depends on how alike the rows of a family err, and is tried on families left out.

use std::collections::BTreeMap;

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

/// 95 % of measurements are below `estimate · exp(upper_log)`, and 95 % within `estimate · exp(±two_sided_log)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Width {
    #[serde(deserialize_with = "amount")]
    pub upper_log: f64,
    #[serde(deserialize_with = "amount")]
    pub two_sided_log: f64,
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
/// A factor of 20, which no useful predictor needs.
pub const WIDEST_LOG: f64 = 3.0;
/// With fewer, one family more could be the one of twenty that is outside: the width is that of the published jobs, and no share is
/// promised.
pub const FEWEST_FAMILIES: usize = 20;

impl Width {
    /// The largest error of the 30 published jobs against either of their two measurements, each job predicted by a fit without its
    /// family: of so few rows the 95 % bound is the largest.
    pub const PUBLISHED: Width =
        Width { upper_log: 0.11, two_sided_log: 0.11, from: WidthFrom::Published, families: 6, rows: 30 };

    /// From the rows' own families if there are enough, else the published width, or what the rows show if that is more.
    pub fn of(residuals: &[Residual]) -> Width {
        if let Some(width) = Width::by_family(residuals) {
            return width;
        }
        let by_family = families(residuals);
        let seen = |score: fn(f64) -> f64| Ranked::of(&by_family, score).quantile(None, 0.0).unwrap_or(0.0);
        Width {
            upper_log: seen(|ratio| ratio).max(Width::PUBLISHED.upper_log),
            two_sided_log: seen(f64::abs).max(Width::PUBLISHED.two_sided_log),
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
        let square = |rows: &Vec<f64>| rows.iter().map(|row| row * row).sum::<f64>() / rows.len() as f64;
        let spread = (by_family.values().map(square).sum::<f64>() / by_family.len() as f64).sqrt();
        let times = |share: f64| (student.inverse_cdf(share) * spread).min(WIDEST_LOG);
        Some(Width {
            upper_log: times(COVERAGE),
            two_sided_log: times(0.5 + COVERAGE / 2.0),
            from: WidthFrom::Spread,
            families: by_family.len(),
            rows: residuals.len(),
        })
    }

    /// So many times as wide, up to the widest that a file may have.
    pub fn times(self, factor: f64) -> Width {
        let wider = |log: f64| (log * factor).min(WIDEST_LOG.max(log));
        Width { upper_log: wider(self.upper_log), two_sided_log: wider(self.two_sided_log), ..self }
    }

    /// As a file may have it.
    pub fn check(&self) -> Result<(), String> {
        for (what, value) in [("upper_log", self.upper_log), ("two_sided_log", self.two_sided_log)] {
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
        Some(Width {
            // An upper bound is at least the estimate.
            upper_log: Ranked::of(&by_family, |ratio| ratio).covering()?.max(0.0),
            two_sided_log: Ranked::of(&by_family, f64::abs).covering()?,
            from: WidthFrom::Families,
            families: by_family.len(),
            rows: residuals.len(),
        })
    }
}

impl Interval {
    /// As far to either side, as logarithms.
    pub fn around(estimate: f64, two_sided_log: f64) -> Interval {
        Interval { estimate, low: estimate * (-two_sided_log).exp(), high: estimate * two_sided_log.exp() }
    }

    pub fn contains(&self, measured: f64) -> bool {
        (self.low..=self.high).contains(&measured)
    }
}

impl Bounds {
    pub fn around(estimate_bytes: f64, width: Width) -> Bounds {
        let times = |log: f64| estimate_bytes * log.exp();
        Bounds {
            low_bytes: times(-width.two_sided_log),
            high_bytes: times(width.two_sided_log),
            upper_bytes: times(width.upper_log),
        }
    }
}

/// The probability that a measurement is above a limit, if errors are log-normal and 95 % of them within `±two_sided_log`. The shape
/// is an assumption; with an interval of few families so is the width.
pub fn probability_above(estimate_bytes: f64, two_sided_log: f64, limit_bytes: f64) -> f64 {
    if limit_bytes <= 0.0 {
        return 1.0;
    }
    let distance = (limit_bytes / estimate_bytes.max(1.0)).ln();
    if two_sided_log <= 0.0 {
        return if distance < 0.0 { 1.0 } else { 0.0 };
    }
    // 95 % of a normal distribution are within 1.96 standard deviations.
    let standard = distance / (two_sided_log / 1.959_964);
    0.5 * erfc(standard / std::f64::consts::SQRT_2)
}

fn families(residuals: &[Residual]) -> BTreeMap<&str, Vec<f64>> {
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for one in residuals.iter().filter(|one| one.log_ratio.is_finite()) {
        all.entry(&one.family).or_default().push(one.log_ratio);
    }
    all
}

/// Scores in order, each with its family and the part of the family that it is.
struct Ranked {
    families: usize,
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
    fn of(by_family: &BTreeMap<&str, Vec<f64>>, score: impl Fn(f64) -> f64) -> Ranked {
        let each = by_family.values().enumerate();
        let of_family = |(family, rows): (usize, &Vec<f64>)| -> Vec<(usize, f64, f64)> {
            rows.iter().map(|&row| (family, score(row), 1.0 / rows.len() as f64)).collect()
        };
        let mut rows: Vec<(usize, f64, f64)> = each.flat_map(of_family).collect();
        rows.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
        Ranked { families: by_family.len(), rows }
    }

    /// The least score that covers 95 % of each family when it is left out, on average.
    fn covering(&self) -> Option<f64> {
        let is_large = self.families > MOST_FAMILIES || self.rows.len() > MOST_ROWS;
        let enough = TO_COME.into_iter().find(|&to_come| !is_large && self.covered_left_out(to_come) >= COVERAGE);
        self.quantile(None, enough.unwrap_or(1.0))
    }

    /// The mean part of a family that is at or below the quantile of the others.
    fn covered_left_out(&self, to_come: f64) -> f64 {
        let limits: Vec<f64> =
            (0..self.families).map(|family| self.quantile(Some(family), to_come).unwrap_or(f64::INFINITY)).collect();
        let covered = self.rows.iter().filter(|(family, score, _)| *score <= limits[*family]).map(|(_, _, part)| part);
        // The mean is in steps, each a row's part of its family, and the row to come counts as one that is missed.
        let step = self.families as f64 / self.rows.len() as f64;
        covered.sum::<f64>() / (self.families as f64 + step)
    }

    /// The least score at or below which 95 % of the weight is, if each family and that to come share it.
    fn quantile(&self, without: Option<usize>, to_come: f64) -> Option<f64> {
        let families = (self.families - usize::from(without.is_some())) as f64;
        let wanted = COVERAGE * (families + to_come) - 1e-9;
        let mut below = 0.0;
        for (_, score, part) in self.rows.iter().filter(|(family, ..)| Some(*family) != without) {
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
