//! How often a metric's value really moved: a counter that updates ten times slower than it is read says so in the report.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use collo_store::Sample;

/// Counts, per metric, the readings and those that differ from the one before in the same scope.
#[derive(Default)]
pub struct Movement {
    last: HashMap<(Arc<str>, &'static str), f64>,
    counts: BTreeMap<&'static str, (u64, u64)>,
}

impl Movement {
    /// Take one tick's samples in.
    pub fn see(&mut self, samples: &[Sample]) {
        for s in samples {
            let Some(value) = s.value else { continue };
            if let Some(before) = self.last.insert((s.scope.clone(), s.metric), value) {
                let (seen, moved) = self.counts.entry(s.metric).or_default();
                *seen += 1;
                *moved += u64::from(before != value);
            }
        }
    }

    /// The share of readings that moved, by metric.
    pub fn ratios(&self) -> BTreeMap<String, f64> {
        self.counts.iter().map(|(m, (seen, moved))| (m.to_string(), *moved as f64 / *seen as f64)).collect()
    }
}

/// The value at a quantile of sorted values (nearest rank).
pub fn quantile(sorted: &[u32], q: f64) -> Option<u32> {
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[((q * sorted.len() as f64).ceil() as usize).saturating_sub(1).min(last)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_moves_every_second_tick_has_moved_half_the_time() {
        let mut m = Movement::default();
        for v in [1.0, 1.0, 2.0, 2.0, 3.0] {
            let value = Some(v);
            m.see(&[Sample { at_ns: 0, window_ns: 0, source: "x", scope: "host".into(), metric: "e_j", value }]);
        }
        assert_eq!(m.ratios()["e_j"], 0.5);
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let v: Vec<u32> = (1..=100).collect();
        assert_eq!((quantile(&v, 0.5), quantile(&v, 0.99), quantile(&v, 1.0)), (Some(50), Some(99), Some(100)));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
