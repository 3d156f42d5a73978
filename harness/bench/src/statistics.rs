//! The few statistics that the figures need.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// An estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

/// The value at a quantile (nearest rank); `None` for no values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[((q * sorted.len() as f64).ceil() as usize).saturating_sub(1).min(last)])
}

/// The middle value, or the mean of the middle two.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let upper = sorted.get(n / 2)?;
    Some(if n % 2 == 1 { *upper } else { (sorted[n / 2 - 1] + upper) / 2.0 })
}

/// The mean, without an interval for fewer than two values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Geometric mean of ratios of pairs, with the interval of Student's t on their logarithms; `None` below three pairs.
pub fn ratio_of_pairs(pairs: &[(f64, f64)]) -> Option<Interval> {
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln()).collect();
    let n = logs.len() as f64;
    if logs.len() < 3 {
        return None;
    }
    let centre = mean(&logs)?;
    let variance = logs.iter().map(|l| (l - centre).powi(2)).sum::<f64>() / (n - 1.0);
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.975);
    let half = t * (variance / n).sqrt();
    Some(Interval { estimate: centre.exp(), low: (centre - half).exp(), high: (centre + half).exp() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks_and_the_median_of_an_even_number_lies_between() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!((quantile(&hundred, 0.99), quantile(&hundred, 1.0)), (Some(99.0), Some(100.0)));
        assert_eq!((median(&hundred), median(&[3.0, 1.0, 2.0])), (Some(50.5), Some(2.0)));
        assert_eq!((quantile(&[], 0.5), median(&[]), mean(&[])), (None, None, None));
    }

    #[test]
    fn the_interval_of_known_ratios_is_that_of_student() {
        // Logarithms 0.0, 0.1, 0.2: mean 0.1, standard error 0.1/√3, t(0.975, 2) = 4.30265.
        let pairs = [(1.0, 1.0), (0.1_f64.exp(), 1.0), (2.0 * 0.2_f64.exp(), 2.0)];
        let found = ratio_of_pairs(&pairs).unwrap();
        let half = 4.30265 * 0.1 / 3.0_f64.sqrt();
        assert!((found.estimate.ln() - 0.1).abs() < 1e-9);
        assert!((found.low.ln() - (0.1 - half)).abs() < 1e-5 && (found.high.ln() - (0.1 + half)).abs() < 1e-5);
        assert_eq!(ratio_of_pairs(&pairs[..2]), None);
    }
}
