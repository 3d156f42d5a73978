//! How far off predictions are, as widths around them. In: measured over predicted of rows that the fit had not seen, by family.
//! Out: factors, as logarithms.
//!
//! Split-conformal with families as the unit: rows of one architecture err alike, so each family has the weight of one, shared by
//! its rows, and so has the family that is yet to come (Lee, Barber and Willett 2023, arXiv 2306.06342).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

/// The bounds of an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub low_bytes: f64,
    pub high_bytes: f64,
    pub upper_bytes: f64,
}

const COVERAGE: f64 = 0.95;
/// With fewer, one family more could be the one of twenty that is outside.
const FEWEST_FAMILIES: usize = 20;

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
        let seen = |score: fn(f64) -> f64| quantile(&by_family, 1.0 / by_family.len() as f64, score).unwrap_or(0.0);
        Width {
            upper_log: seen(|ratio| ratio).max(Width::PUBLISHED.upper_log),
            two_sided_log: seen(f64::abs).max(Width::PUBLISHED.two_sided_log),
            from: WidthFrom::Published,
            families: by_family.len(),
            rows: residuals.len(),
        }
    }

    /// None: too few families.
    pub fn by_family(residuals: &[Residual]) -> Option<Width> {
        let by_family = families(residuals);
        if by_family.len() < FEWEST_FAMILIES {
            return None;
        }
        // The family to come is above all that were seen.
        let share = 1.0 / (by_family.len() + 1) as f64;
        Some(Width {
            // An upper bound is at least the estimate.
            upper_log: quantile(&by_family, share, |ratio| ratio)?.max(0.0),
            two_sided_log: quantile(&by_family, share, f64::abs)?,
            from: WidthFrom::Families,
            families: by_family.len(),
            rows: residuals.len(),
        })
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

fn families(residuals: &[Residual]) -> BTreeMap<&str, Vec<f64>> {
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for one in residuals.iter().filter(|one| one.log_ratio.is_finite()) {
        all.entry(&one.family).or_default().push(one.log_ratio);
    }
    all
}

/// The least score at or below which 95 % of the weight is, if each family has this share of it.
fn quantile(by_family: &BTreeMap<&str, Vec<f64>>, share: f64, score: impl Fn(f64) -> f64) -> Option<f64> {
    let weighted = by_family.values().flat_map(|rows| rows.iter().map(|&row| (score(row), share / rows.len() as f64)));
    let mut weighted: Vec<(f64, f64)> = weighted.collect();
    weighted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut below = 0.0;
    for (score, weight) in weighted {
        below += weight;
        if below >= COVERAGE - 1e-9 {
            return Some(score);
        }
    }
    None
}

#[cfg(test)]
mod tests;
