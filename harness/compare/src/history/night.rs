//! One night of a history. In: nothing. Out: types. It does not know where a night was read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One campaign of the experiment, reduced to what its history needs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NightlyRun {
    /// The campaign's id.
    pub id: String,
    pub created_utc: String,
    /// The device by content: nights on different devices are never compared.
    pub place: String,
    /// The device as people read it.
    pub device: String,
    pub simulated: bool,
    /// Why the night is incomplete, and is therefore not judged; absent for a complete one.
    pub incomplete: Option<String>,
    /// Possible explanations of a change, by name.
    pub environment: BTreeMap<String, String>,
    pub cells: Vec<CellNight>,
}

/// One cell of one night.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CellNight {
    /// Its label.
    pub cell: String,
    pub sharing: String,
    /// What is measured, by content: a cell with other settings under the same label has a history of its own.
    pub content: String,
    /// `epoch_time_s`, `makespan_s` or `latency_p99_s`.
    pub quantity: String,
    /// `completed`, or the most frequent outcome of its runs.
    pub outcome: String,
    /// Labels of the cells that it is compared with, which are re-measured with it.
    pub against: Vec<String>,
    /// The planned repetitions; absent if none can be used.
    pub first: Option<Mean>,
    /// The repetitions added after the night was complete.
    pub again: Option<Mean>,
}

/// Repetitions of one cell in one night, on logarithms. Stored as a list of the three: there are very many of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "(f64, usize, Option<f64>)", try_from = "(f64, usize, Option<f64>)")]
pub struct Mean {
    /// Mean of the logarithms of the times in seconds.
    pub log_mean: f64,
    pub n: usize,
    /// Variance between repetitions; absent for a single one.
    pub variance: Option<f64>,
}

impl From<Mean> for (f64, usize, Option<f64>) {
    fn from(m: Mean) -> Self {
        (m.log_mean, m.n, m.variance)
    }
}

impl TryFrom<(f64, usize, Option<f64>)> for Mean {
    type Error = &'static str;

    fn try_from((log_mean, n, variance): (f64, usize, Option<f64>)) -> Result<Self, Self::Error> {
        if n == 0 { Err("a mean of nothing") } else { Ok(Mean { log_mean, n, variance }) }
    }
}

impl Mean {
    /// From times, leaving out those that are not positive and finite; `None` if none is left.
    pub fn of(times_s: &[f64]) -> Option<Mean> {
        let logs: Vec<f64> = times_s.iter().filter(|t| t.is_finite() && **t > 0.0).map(|t| t.ln()).collect();
        let n = logs.len();
        if n == 0 {
            return None;
        }
        let log_mean = logs.iter().sum::<f64>() / n as f64;
        let variance = (n > 1).then(|| logs.iter().map(|l| (l - log_mean).powi(2)).sum::<f64>() / (n - 1) as f64);
        Some(Mean { log_mean, n, variance })
    }

    /// Both together, each weighted by its repetitions; the variance stays the one within each.
    pub fn with(self, other: Option<Mean>) -> Mean {
        let Some(other) = other else { return self };
        let n = self.n + other.n;
        let log_mean = (self.log_mean * self.n as f64 + other.log_mean * other.n as f64) / n as f64;
        let squares = |m: &Mean| m.variance.map_or(0.0, |v| v * (m.n - 1) as f64);
        let df = (self.n - 1) + (other.n - 1);
        let variance = (df > 0).then(|| (squares(&self) + squares(&other)) / df as f64);
        Mean { log_mean, n, variance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_none_are_left_out() {
        let mean = Mean::of(&[1.0, f64::NAN, 0.0, 1.0, -3.0]).unwrap();
        assert_eq!((mean.log_mean, mean.n, mean.variance), (0.0, 2, Some(0.0)));
        assert_eq!((Mean::of(&[]), Mean::of(&[0.0, f64::INFINITY])), (None, None));
        assert_eq!(Mean::of(&[2.0]).unwrap().variance, None);
    }

    #[test]
    fn two_means_are_weighted_by_their_repetitions() {
        let both =
            Mean { log_mean: 0.0, n: 3, variance: Some(0.01) }.with(Some(Mean { log_mean: 0.4, n: 9, variance: Some(0.02) }));
        assert!((both.log_mean - 0.3).abs() < 1e-12);
        assert_eq!(both.n, 12);
        assert!((both.variance.unwrap() - 0.18 / 10.0).abs() < 1e-12);
    }
}
