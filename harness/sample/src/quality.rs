//! How often a metric's value really changed: a counter that updates ten times slower than it is read is reported as such.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_store::Sample;

/// The last value of each metric of one scope.
type Values = Vec<(&'static str, f64)>;

/// Counts, per metric, the readings and those that differ from the one before in the same scope.
#[derive(Default)]
pub struct Movement {
    /// By scope, then by metric: a handful of each, found by linear search, which costs less than hashing two texts per reading.
    last: Vec<(Arc<str>, Values)>,
    counts: BTreeMap<&'static str, (u64, u64)>,
}

impl Movement {
    /// Count one tick's samples.
    pub fn see(&mut self, samples: &[Sample]) {
        for s in samples {
            let Some(value) = s.value else { continue };
            if let Some(before) = self.remember(s, value) {
                let (seen, moved) = self.counts.entry(s.metric).or_default();
                *seen += 1;
                *moved += u64::from(before != value);
            }
        }
    }

    /// Keep the value of a metric in a scope; returns the one before.
    fn remember(&mut self, s: &Sample, value: f64) -> Option<f64> {
        // Samplers clone a scope, so the same text is mostly the same place in memory.
        let known = |(scope, _): &(Arc<str>, _)| Arc::ptr_eq(scope, &s.scope) || *scope == s.scope;
        let at = self.last.iter().position(known).unwrap_or_else(|| {
            self.last.push((s.scope.clone(), Vec::new()));
            self.last.len() - 1
        });
        let metrics = &mut self.last[at].1;
        match metrics.iter_mut().find(|(metric, _)| std::ptr::eq(*metric, s.metric) || *metric == s.metric) {
            Some((_, before)) => Some(std::mem::replace(before, value)),
            None => {
                metrics.push((s.metric, value));
                None
            }
        }
    }

    /// The share of readings that moved, by metric.
    pub fn ratios(&self) -> BTreeMap<String, f64> {
        self.counts.iter().map(|(m, (seen, moved))| (m.to_string(), *moved as f64 / *seen as f64)).collect()
    }
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
}
