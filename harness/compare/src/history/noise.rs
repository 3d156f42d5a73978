//! The noise of each cell, estimated from its own history and shrunk towards the others'. In: nightly values since the last step,
//! and the variances between repetitions. Out: a variance between repetitions and one between nights, per cell.
//!
//! What repetitions of one night do not explain is the night's own noise. Nights are not independent: the night's part is assumed
//! to be correlated by .8 from one night to the next, which is the worst that was simulated, so a run of odd nights is no step.

use collo_quantity::stats::{self, Pool, Variance, robust};

use super::track::{Past, SegmentLevel};

/// Correlation of the night's own noise with the next night's.
const PERSISTENCE: f64 = 0.8;

/// How a cell's times scatter, on logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Variance between repetitions of one night.
    pub repeat: Variance,
    /// Variance of the night's own part.
    pub night: f64,
    /// Repetitions of a usual night.
    pub n: f64,
}

impl Noise {
    /// Variance of the difference between the mean of `window` nights and the level of a history. `repeats` is the sum over the
    /// history's nights of 1 ÷ repetitions. The correlation of the two through neighbouring nights would make it smaller, and is
    /// ignored.
    pub fn of_difference(&self, window: usize, history: usize, repeats: f64) -> f64 {
        let h = history.max(1) as f64;
        self.night * (persistent(window) + persistent(history))
            + self.repeat.s2 * (1.0 / (self.n * window as f64) + repeats / (h * h))
    }

    /// The same for `window` nights with given repetitions: `repeats` is the sum of their variances of a mean.
    pub fn of_nights(&self, window: usize, repeats: f64, level: &SegmentLevel) -> f64 {
        let (w, h) = (window as f64, level.nights.max(1) as f64);
        self.night * (persistent(window) + persistent(level.nights))
            + repeats / (w * w)
            + self.repeat.s2 * level.repeats / (h * h)
    }

    /// Standard deviation of a nightly mean.
    pub fn nightly_sd(&self) -> f64 {
        (self.night + self.repeat.s2 / self.n).sqrt()
    }
}

/// Variance of the mean of `k` nights of persistent noise, as a share of one night's.
pub fn persistent(k: usize) -> f64 {
    let k = k.max(1);
    let (mut sum, mut power) = (k as f64, 1.0);
    for lag in 1..k {
        power *= PERSISTENCE;
        sum += 2.0 * (k - lag) as f64 * power;
    }
    sum / (k * k) as f64
}

/// Nights that a segment must have to contribute to the spread.
const NIGHTS_FOR_A_SPREAD: usize = 4;

/// Estimate every cell's noise; `None` for a cell whose history is too short.
pub fn learn(pasts: &[Past]) -> Vec<Option<Noise>> {
    let within: Vec<Option<Variance>> = pasts.iter().map(within).collect();
    let between: Vec<Option<(Variance, f64)>> = pasts.iter().map(between).collect();
    let own = |v: &[Option<Variance>]| Pool::fit(&v.iter().flatten().copied().collect::<Vec<_>>());
    let totals: Vec<Option<Variance>> = between.iter().map(|b| b.map(|(v, _)| v)).collect();
    let (within_pool, total_pool) = (own(&within), own(&totals));
    // How much more nights scatter than their repetitions explain, over all cells: a single cell's own figure is very uncertain.
    let mut ratios: Vec<f64> = (0..pasts.len())
        .filter_map(|i| {
            let (total, share) = between[i]?;
            let explained = within[i]?.s2 / pasts[i].n;
            (explained > 0.0).then(|| (total.s2 / explained - 1.0) / share)
        })
        .collect();
    let usual = stats::median(&mut ratios).unwrap_or(0.0).max(0.0);
    (0..pasts.len())
        .map(|i| {
            let ((total, share), n) = (between[i]?, pasts[i].n);
            let total = total_pool.map_or(total, |p| steadied(p, total));
            let repeat = match (within[i], within_pool) {
                (Some(own), Some(pool)) => steadied(pool, own),
                // A single repetition a night: all scatter is the night's.
                _ => Variance { s2: 0.0, df: total.df },
            };
            let explained = repeat.s2 / n;
            // A cell's own excess counts as far as it is beyond the uncertainty of its variance.
            let sure = total.s2 / (1.0 + (2.0 / total.df).sqrt());
            let night = ((sure - explained) / share).max(usual * explained).max(0.0);
            Some(Noise { repeat: Variance { df: repeat.df.min(total.df), ..repeat }, night, n })
        })
        .collect()
}

/// A variance shrunk towards the other cells', unless it is far beyond them: a noisy cell must not look quiet because of quiet
/// neighbours.
fn steadied(pool: Pool, own: Variance) -> Variance {
    const FAR: f64 = 3.0;
    let shrunk = pool.shrink(own);
    if own.s2 > FAR * shrunk.s2 { own } else { shrunk }
}

/// The variance between repetitions, with those of wild nights capped.
fn within(past: &Past) -> Option<Variance> {
    let df = past.n - 1.0;
    let known = past.within.len() as f64;
    if past.within.is_empty() || df < 0.5 {
        return None;
    }
    // The median of a χ² with so many degrees of freedom, by Wilson and Hilferty.
    let below = (1.0 - 2.0 / (9.0 * df)).powi(3);
    let usual = stats::median(&mut past.within.clone())? / below;
    let fence = if usual > 0.0 { 6.0 * usual } else { f64::INFINITY };
    Some(Variance { s2: past.within.iter().map(|v| v.min(fence)).sum::<f64>() / known, df: df * known })
}

/// The variance of nightly values around their segment's level, and the share of the night's own variance that it shows: a level
/// that follows persistent noise hides some of it.
fn between(past: &Past) -> Option<(Variance, f64)> {
    let (mut squares, mut df, mut shown) = (0.0, 0.0, 0.0);
    for segment in past.segments.iter().filter(|s| s.len() >= NIGHTS_FOR_A_SPREAD) {
        let (_, s) = robust::level(segment)?;
        let n = segment.len();
        squares += s;
        df += (n - 1) as f64;
        shown += (1.0 - persistent(n)) * n as f64;
    }
    (df > 0.0).then(|| (Variance { s2: squares / df, df }, shown / df))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persistent_nights_average_out_slowly() {
        assert_eq!(persistent(1), 1.0);
        assert!((persistent(2) - 0.9).abs() < 1e-12);
        // By hand for five nights: (5 + 2 (4·.8 + 3·.64 + 2·.512 + .4096)) ÷ 25.
        assert!((persistent(5) - (5.0 + 2.0 * 6.5536) / 25.0).abs() < 1e-12);
        assert!(persistent(40) > 0.15, "forty nights are worth fewer than seven independent ones");
    }

    #[test]
    fn a_cell_without_history_has_no_noise_yet() {
        assert_eq!(learn(&[Past { segments: vec![vec![0.0; 3]], within: vec![1e-4; 3], n: 3.0 }]), [None]);
        assert_eq!(learn(&[Past::default()]), [None]);
    }

    #[test]
    fn what_repetitions_explain_is_not_counted_twice() {
        let values: Vec<f64> = (0..20).map(|i| if i % 2 == 0 { 0.01 } else { -0.01 }).collect();
        // Repetitions of sd √3 %, so a mean of three has 1 %: nothing is left for the night.
        let past = Past { segments: vec![values], within: vec![3e-4; 20], n: 3.0 };
        let noise = learn(&[past])[0].unwrap();
        assert!(noise.night < 2e-5 && (noise.nightly_sd() - 0.01).abs() < 0.002, "{noise:?}");
    }
}
