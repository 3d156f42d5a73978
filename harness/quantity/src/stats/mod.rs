//! Statistics of few repetitions of many cells, on logarithms. In: one number per repetition. Out: estimates with 95 % intervals,
//! p-values, verdicts. It knows nothing of cells or epochs.
//!
//! The unit of independence is the repetition. Each cell's variance is shrunk towards that of the others (moderated t, Smyth 2004,
//! doi 10.2202/1544-6115.1027); below eight variances there is too little to fit a prior, so one pooled variance serves all.

pub mod devices;
pub mod moves;
pub mod orders;
mod outliers;
pub mod pace;
mod pool;
pub mod robust;
pub mod seats;
mod verdict;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};

pub use outliers::outliers;
pub use pool::{Pool, Variance};
pub use verdict::{RatioTest, RatioVerdict, compare, compare_changes, holm, p_beyond, repetitions_to_decide};

/// A measured quantity: a geometric mean over repetitions with its 95 % interval.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(expecting = "a quantity")]
#[schemars(rename = "quantity", deny_unknown_fields)]
pub struct Quantity {
    pub estimate: f64,
    /// Absent when there is only one repetition.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Repetitions that it rests on.
    #[serde(rename = "repetitions")]
    #[schemars(range(min = 1))]
    pub n: usize,
    /// Degrees of freedom of the interval.
    pub df: Option<f64>,
}

/// A value that is not finite is absent, and null.
impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.estimate.is_finite() {
            return serializer.serialize_none();
        }
        let mut object = serializer.serialize_struct("Quantity", 5)?;
        object.serialize_field("estimate", &self.estimate)?;
        object.serialize_field("low", &self.low)?;
        object.serialize_field("high", &self.high)?;
        object.serialize_field("repetitions", &self.n)?;
        object.serialize_field("df", &self.df)?;
        object.end()
    }
}

impl Quantity {
    /// A baseline compared with itself.
    pub fn one(n: usize) -> Self {
        Quantity { estimate: 1.0, low: Some(1.0), high: Some(1.0), n, df: None }
    }

    /// One over it, with the ends of its interval exchanged.
    pub fn inverse(&self) -> Self {
        Quantity {
            estimate: self.estimate.recip(),
            low: self.high.map(f64::recip),
            high: self.low.map(f64::recip),
            ..self.clone()
        }
    }

    /// Limit a share to 1: the logarithm has no upper end.
    pub fn capped_at_one(mut self) -> Self {
        self.estimate = self.estimate.min(1.0);
        self.low = self.low.map(|x| x.min(1.0));
        self.high = self.high.map(|x| x.min(1.0));
        self
    }

    /// This one ÷ another one. Their common dependence is not removed, so the interval is wide rather than narrow; its degrees of
    /// freedom are those of the weaker.
    pub fn over(&self, other: &Quantity) -> Option<Quantity> {
        let se = (self.log_se()?.powi(2) + other.log_se()?.powi(2)).sqrt();
        let df = self.df?.min(other.df?);
        let (log, half) = ((self.estimate / other.estimate).ln(), t_quantile(0.975, df) * se);
        let (low, high) = (Some((log - half).exp()), Some((log + half).exp()));
        Some(Quantity { estimate: log.exp(), low, high, n: self.n.min(other.n), df: Some(df) })
    }

    /// The interval that covers whichever of `n` quantities is picked for its value: each has an error of 5 % ÷ n (Bonferroni), because
    /// the largest of many estimates is too large on average.
    pub fn picked_from(&self, n: usize) -> Quantity {
        let Some(((low, high), df)) = self.low.zip(self.high).zip(self.df) else { return self.clone() };
        // A bound that was cut, as of a share at 1, must not make the number more certain: the wider side counts.
        let log = self.estimate.ln();
        let half = (log - low.ln()).max(high.ln() - log) * t_quantile(1.0 - 0.025 / n.max(1) as f64, df) / t_quantile(0.975, df);
        Quantity { low: Some((log - half).exp()), high: Some((log + half).exp()), ..self.clone() }
    }

    /// Standard error of the logarithm.
    pub fn log_se(&self) -> Option<f64> {
        let (low, high, df) = (self.low?, self.high?, self.df?);
        Some((high / low).ln() / 2.0 / t_quantile(0.975, df))
    }
}

/// One source of uncertainty of a quantity: `weight`² · variance ÷ n.
#[derive(Debug, Clone, Copy)]
pub struct Term {
    pub weight: f64,
    pub variance: Variance,
    pub n: usize,
}

/// The quantity exp(`log_mean`) with the interval resulting from its terms.
///
/// The degrees of freedom are those of the weakest term: terms share a prior or a pool, so adding theirs up would promise too
/// much.
pub fn quantity(log_mean: f64, n: usize, terms: &[Term]) -> Quantity {
    let estimate = log_mean.exp();
    let used = || terms.iter().filter(|t| t.weight != 0.0);
    if terms.is_empty() || used().any(|t| t.n < 2) {
        return Quantity { estimate, low: None, high: None, n, df: None };
    }
    let variance: f64 = used().map(|t| t.weight.powi(2) * t.variance.s2 / t.n as f64).sum();
    // A term without any scatter makes nothing less certain.
    let least = |df: f64, t: &Term| df.min(t.variance.df);
    let scattered = used().filter(|t| t.variance.s2 > 0.0).fold(f64::INFINITY, least);
    let df = if scattered.is_finite() { scattered } else { used().fold(f64::INFINITY, least) };
    let half = t_quantile(0.975, df) * variance.sqrt();
    Quantity { estimate, low: Some((log_mean - half).exp()), high: Some((log_mean + half).exp()), n, df: Some(df) }
}

/// Quantile of Student's t.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, df) {
        Ok(t) if df < 1e5 => t.inverse_cdf(p),
        _ => Normal::standard().inverse_cdf(p),
    }
}

/// Two-sided p-value of a t statistic.
pub fn t_p(t: f64, df: f64) -> f64 {
    let upper = match StudentsT::new(0.0, 1.0, df) {
        Ok(d) if df < 1e5 => d.sf(t.abs()),
        _ => Normal::standard().sf(t.abs()),
    };
    (2.0 * upper).min(1.0)
}

/// Mean and variance of logarithms; `None` if a value is not positive or there is no value. Values that differ by rounding only have a
/// variance of 0: the squares of rounding errors would decide the prior of all cells.
pub fn log_moments(values: &[f64]) -> Option<(f64, Option<Variance>)> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite() || *v <= 0.0) {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().map(|v| v.ln()).sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v.ln() - mean).powi(2)).sum();
    let (least, most) = values.iter().fold((f64::INFINITY, 0.0), |(l, m): (f64, f64), v| (l.min(*v), m.max(*v)));
    let s2 = if most - least <= ROUNDING * most { 0.0 } else { squares / (n - 1.0) };
    Some((mean, (values.len() > 1).then_some(Variance { s2, df: n - 1.0 })))
}

/// Largest relative difference of numbers that are computed from equal ones in different orders.
const ROUNDING: f64 = 1e-13;

/// The median; `None` for no values. The order of the values is lost.
pub fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let (middle, odd) = (values.len() / 2, values.len() % 2 == 1);
    let (below, at, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let at = *at;
    if odd {
        return Some(at);
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some((lower + at) / 2.0)
}

/// The quantile by nearest rank (Hyndman and Fan 1996, definition 1): the smallest value that a share `p` of them does not exceed;
/// `None` for no values. The order of the values is lost.
pub fn nearest_rank(values: &mut [f64], p: f64) -> Option<f64> {
    let rank = ((p * values.len() as f64 - 1e-9).ceil() as usize).max(1);
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(rank.min(values.len()) - 1, f64::total_cmp).1)
}

/// The 95 % interval of the median by order statistics, for any continuous distribution (Conover, Practical Nonparametric Statistics,
/// 3rd ed., §3.2); `None` for fewer than six values, which have none.
pub fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let below = Binomial::new(0.5, values.len() as u64).ok()?;
    let rank = (0..values.len()).take_while(|rank| below.cdf(*rank as u64) <= 0.025).count().checked_sub(1)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some((sorted[rank], sorted[values.len() - 1 - rank]))
}

/// The quantile on the line between its two neighbours (Hyndman and Fan 1996, definition 7); `None` for no values.
pub fn quantile(mut values: Vec<f64>, p: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let at = p * values.len().checked_sub(1)? as f64;
    let (below, above) = (values[at.floor() as usize], values[at.ceil() as usize]);
    Some(below + (above - below) * at.fract())
}

#[cfg(test)]
#[path = "../../tests/support/random.rs"]
pub mod random;

#[cfg(test)]
mod coverage;
#[cfg(test)]
mod drift_coverage;
#[cfg(test)]
mod pace_coverage;
#[cfg(test)]
mod until_coverage;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_printed_table() {
        for (df, t) in [(1.0, 12.7062), (2.0, 4.30265), (4.0, 2.77645), (9.0, 2.26216), (30.0, 2.04227), (1e9, 1.95996)] {
            assert!((t_quantile(0.975, df) - t).abs() < 1e-4, "{df}: {}", t_quantile(0.975, df));
        }
        assert!((t_p(2.26216, 9.0) - 0.05).abs() < 1e-5);
    }

    #[test]
    fn values_that_differ_by_rounding_only_have_no_variance() {
        let s2 = |values: &[f64]| log_moments(values).unwrap().1.unwrap().s2;
        let (plain, again) = (0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1);
        assert!(plain != again);
        assert_eq!(s2(&[plain, again, plain]), 0.0);
        assert_eq!(s2(&[1.7e9, 1.7e9, 1.7e9]), 0.0);
        assert!(s2(&[1.0, 1.0, 1.0 + 1e-9]) > 0.0);
    }

    #[test]
    fn an_interval_agrees_with_one_worked_by_hand() {
        // Logs 0.0, 0.1, 0.2: mean 0.1, variance 0.01, se 0.1/√3, t(2) = 4.30265: half-width 0.24841.
        let values = [1.0, 0.1f64.exp(), 0.2f64.exp()];
        let (mean, variance) = log_moments(&values).unwrap();
        let q = quantity(mean, 3, &[Term { weight: 1.0, variance: variance.unwrap(), n: 3 }]);
        assert!((q.estimate - 0.1f64.exp()).abs() < 1e-12);
        assert!((q.high.unwrap() - (0.1 + 0.248414f64).exp()).abs() < 1e-5, "{q:?}");
        assert!((q.low.unwrap() - (0.1 - 0.248414f64).exp()).abs() < 1e-5);
        assert!((q.log_se().unwrap() - 0.1 / 3f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn one_repetition_never_has_an_interval() {
        let variance = Variance { s2: 0.01, df: 9.0 };
        assert_eq!(quantity(0.0, 1, &[Term { weight: 1.0, variance, n: 1 }]).low, None);
        let terms = [Term { weight: 1.0, variance, n: 3 }, Term { weight: -1.0, variance, n: 1 }];
        assert_eq!(quantity(0.0, 3, &terms).high, None, "nor does one against a single baseline");
    }

    #[test]
    fn medians_of_odd_even_one_and_none() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!((median(&mut [7.0]), median(&mut [])), (Some(7.0), None));
    }

    #[test]
    fn the_interval_of_a_median_has_the_ranks_of_the_printed_table() {
        // Binomial ranks for 95 % or more, as in Conover's table A3: 6 values 1 and 6, 10 values 2 and 9, 20 values 6 and 15.
        for (n, ranks) in
            [(5, None), (6, Some((1.0, 6.0))), (10, Some((2.0, 9.0))), (20, Some((6.0, 15.0))), (50, Some((18.0, 33.0)))]
        {
            let values: Vec<f64> = (1..=n).rev().map(f64::from).collect();
            assert_eq!(median_interval(&values), ranks, "{n}");
        }
    }

    #[test]
    fn a_quantile_by_nearest_rank_is_one_of_the_values() {
        let mut twenty: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!((nearest_rank(&mut twenty, 0.95), nearest_rank(&mut twenty, 0.5)), (Some(19.0), Some(10.0)));
        assert_eq!((nearest_rank(&mut [7.0], 0.95), nearest_rank(&mut [], 0.95)), (Some(7.0), None));
    }

    #[test]
    fn a_quantile_lies_on_the_line_between_its_neighbours() {
        let values: Vec<f64> = (0..=40).rev().map(f64::from).collect();
        assert_eq!((quantile(values.clone(), 0.025), quantile(values, 0.51)), (Some(1.0), Some(20.4)));
        assert_eq!((quantile(vec![7.0], 0.9), quantile(Vec::new(), 0.9)), (Some(7.0), None));
    }

    #[test]
    fn values_without_a_logarithm_have_no_moments() {
        assert!(log_moments(&[1.0, 0.0]).is_none() && log_moments(&[1.0, f64::NAN]).is_none() && log_moments(&[]).is_none());
    }
}
