//! How certain fitted coefficients are. In: rows in groups that err alike, a fit. Out: the covariance of what fits of resampled groups
//! give.
//!
//! Whole families are drawn, with replacement: rows of one architecture are no independent measurements, and the asymptotic formula for
//! absolute deviations takes them for such (Hagemann 2017, doi 10.1080/01621459.2016.1148610).

use serde::{Deserialize, Serialize};

use crate::memory::Coefficients;
use crate::seeded::share;

/// Of `context_bytes`, `per_reserved_byte`, `per_workspace_byte`, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Covariance(pub [[f64; 3]; 3]);

/// Enough for a standard error within 5 %.
const RESAMPLES: usize = 200;
const FEWEST_RESAMPLES: usize = 20;
/// Of all resamples: a fit of a million rows takes seconds.
const MOST_ROWS: usize = 4_000_000;
/// A context of a pebibyte, squared.
const LARGEST: f64 = 1e31;

impl Covariance {
    /// None: there are too few groups, or most of their resamples have no fit.
    pub fn by_resampling<T: Clone>(groups: &[Vec<T>], fit: impl Fn(&[T]) -> Option<Coefficients>) -> Option<Covariance> {
        let rows: usize = groups.iter().map(Vec::len).sum();
        if groups.len() < 2 {
            return None;
        }
        let resamples = (MOST_ROWS / rows.max(1)).clamp(FEWEST_RESAMPLES, RESAMPLES);
        let drawn = |resample: usize, place: usize| {
            let number = (resample * groups.len() + place) as u64;
            (share(number + 1) * groups.len() as f64) as usize
        };
        let resample = |resample: usize| {
            let rows: Vec<T> = (0..groups.len()).flat_map(|place| groups[drawn(resample, place)].iter().cloned()).collect();
            fit(&rows)
        };
        let found: Vec<Coefficients> = (0..resamples).filter_map(resample).collect();
        if found.len() * 2 < resamples { None } else { Covariance::of(&found) }
    }

    /// None: there are fewer than two.
    fn of(found: &[Coefficients]) -> Option<Covariance> {
        let each: Vec<[f64; 3]> = found.iter().map(|c| [c.context_bytes, c.per_reserved_byte, c.per_workspace_byte]).collect();
        let count = each.len() as f64;
        let mean: [f64; 3] = std::array::from_fn(|i| each.iter().map(|c| c[i]).sum::<f64>() / count);
        let product = |i: usize, j: usize| each.iter().map(|c| (c[i] - mean[i]) * (c[j] - mean[j])).sum::<f64>();
        let all = std::array::from_fn(|i| std::array::from_fn(|j| product(i, j) / (count - 1.0)));
        Some(Covariance(all)).filter(|_| each.len() > 1)
    }

    /// Of the context, in bytes, and of the two factors.
    pub fn standard_errors(&self) -> [f64; 3] {
        std::array::from_fn(|i| self.0[i][i].sqrt())
    }

    pub fn check(&self) -> Result<(), String> {
        let all = &self.0;
        if all.iter().flatten().any(|value| value.is_nan() || value.abs() > LARGEST) {
            return Err(format!("`covariance` has a number beyond {LARGEST:e}"));
        }
        if (0..3).any(|i| all[i][i] < 0.0) {
            return Err("`covariance` has a negative variance".into());
        }
        // Of sums in another order the last digits may differ.
        let differ = |a: f64, b: f64| (a - b).abs() > 1e-9 * a.abs().max(b.abs());
        match (0..3).any(|i| (0..i).any(|j| differ(all[i][j], all[j][i]))) {
            true => Err("`covariance` is not symmetric".into()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(context: f64, reserved: f64) -> Coefficients {
        Coefficients { context_bytes: context, per_reserved_byte: reserved, per_workspace_byte: 1.5 }
    }

    #[test]
    fn coefficients_that_move_together_covary() {
        let Covariance(all) = Covariance::of(&[at(1.0, 10.0), at(3.0, 30.0), at(2.0, 20.0)]).expect("three");
        assert_eq!(all, [[1.0, 10.0, 0.0], [10.0, 100.0, 0.0], [0.0, 0.0, 0.0]]);
        assert_eq!(Covariance(all).standard_errors(), [1.0, 10.0, 0.0]);
        assert_eq!(Covariance::of(&[at(1.0, 1.0)]), None);
    }

    /// The standard error of a mean of `n` is the spread over the root of `n`.
    #[test]
    fn resampling_finds_the_standard_error_of_a_mean() {
        let groups: Vec<Vec<f64>> = (0..100).map(|i| vec![f64::from(i % 10)]).collect();
        let mean = |rows: &[f64]| Some(at(rows.iter().sum::<f64>() / rows.len() as f64, 1.0));
        let found = Covariance::by_resampling(&groups, mean).expect("enough");
        let spread = (groups.iter().map(|g| (g[0] - 4.5).powi(2)).sum::<f64>() / 100.0).sqrt();
        let ratio = found.standard_errors()[0] / (spread / 10.0);
        assert!((0.85..1.15).contains(&ratio), "{ratio}");
        assert_eq!(Covariance::by_resampling(&groups, mean), Some(found), "the same every time");
    }

    #[test]
    fn rows_of_one_group_are_no_independent_measurements() {
        let groups = |copies: usize| (0..20).map(|i| vec![f64::from(i); copies]).collect::<Vec<_>>();
        let mean = |rows: &[f64]| Some(at(rows.iter().sum::<f64>() / rows.len() as f64, 1.0));
        let error = |copies| Covariance::by_resampling(&groups(copies), mean).expect("enough").standard_errors()[0];
        assert!((error(1) - error(50)).abs() < 1e-9);
    }

    #[test]
    fn without_groups_or_fits_nothing_is_said() {
        assert_eq!(Covariance::by_resampling(&[vec![1.0, 2.0]], |_| Some(at(1.0, 1.0))), None);
        assert_eq!(Covariance::by_resampling::<f64>(&[vec![1.0], vec![2.0]], |_| None), None);
    }

    #[test]
    fn what_is_no_covariance_is_refused() {
        let with = |i: usize, j: usize, value: f64| {
            let mut all = [[4.0, 1.0, 0.0], [1.0, 4.0, 0.0], [0.0, 0.0, 4.0]];
            all[i][j] = value;
            Covariance(all).check()
        };
        assert_eq!(with(0, 1, 1.0), Ok(()));
        assert!(with(0, 1, 2.0).unwrap_err().contains("symmetric"));
        assert!(with(2, 2, -1.0).unwrap_err().contains("negative"));
        assert!(with(2, 2, f64::NAN).is_err() && with(2, 2, f64::INFINITY).is_err());
    }
}
