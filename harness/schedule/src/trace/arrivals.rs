//! When tasks arrive, as processes: by chance, at once, at intervals.
//!
//! To add a process: a variant of [`Process`], its key in `PROCESS` of `read.rs`.

use collo_store::Shuffle;

/// A process that makes arrivals, the first at 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Process {
    /// Gaps are exponential with this mean, drawn by a seed of the trace's own: all its orders have the same arrivals.
    Poisson {
        mean_s: f64,
        seed: u64,
    },
    Burst,
    Every {
        ns: u64,
    },
}

impl Process {
    pub fn arrivals_ns(self, count: usize) -> Vec<u64> {
        match self {
            Process::Burst => vec![0; count],
            Process::Every { ns } => (0..count as u64).map(|n| n.saturating_mul(ns)).collect(),
            Process::Poisson { mean_s, seed } => {
                let mut dice = Shuffle::seeded(seed);
                let mut at_s = 0.0;
                let mut next = |n: usize| {
                    // Never the logarithm of 0: a share is below 1.
                    at_s += if n == 0 { 0.0 } else { -mean_s * (1.0 - dice.share()).ln() };
                    (at_s * 1e9).round() as u64
                };
                (0..count).map(&mut next).collect()
            }
        }
    }
}

/// `20/h`, `3/m`, `0.5/s`, `100/d`: the mean gap in seconds.
pub(super) fn mean_gap_s(rate: &str) -> Option<f64> {
    let (number, unit) = rate.split_once('/')?;
    let unit_s = match unit {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let plain = number.starts_with(|c: char| c.is_ascii_digit());
    number.parse().ok().filter(|rate: &f64| plain && rate.is_finite() && *rate > 1e-6).map(|rate| unit_s / rate)
}
