//! From quantities of repetitions to quantities with intervals. In: one value per repetition, with its dependence on baselines.
//! Out: an estimate whose interval includes the spread of its own repetitions, of the other cells', and of its baselines.

use std::collections::{BTreeMap, BTreeSet};

use collo_quantity::stats::devices::{DeviceValue, log_moments_by_device};
use collo_quantity::stats::{self, Pool, Quantity, Term, Variance};
use collo_quantity::{Key, Trait};

use super::quantities::{BaselineQuantity, Baselines, Lean, RepetitionValue, Values, is_of_all};

/// The pools of every quantity: cells (or members) of a campaign share information about their variance.
#[derive(Debug, Default)]
pub struct Pools {
    known: BTreeMap<Key, Pool>,
    /// Quantities that differ between devices.
    differing: BTreeSet<Key>,
    /// Baselines with a run far from their others, by device and label.
    pub far_baselines: BTreeSet<(usize, String)>,
}

impl Pools {
    /// Fit one pool per quantity from the repetitions of each cell (or member), which is a solo baseline or not. What differs between
    /// devices scatters less on each.
    pub fn fit<'a>(cells: impl Iterator<Item = (&'a [Values], bool)>, differing: &BTreeSet<Key>) -> Self {
        let mut variances = BTreeMap::<Key, Vec<Variance>>::new();
        for (group, is_solo) in cells {
            // What a baseline differs by from itself is not what a group differs by from it.
            let tells = |key: &Key| key.is_pooled() && !(is_solo && key.has(Trait::NeedsBaseline));
            for name in Key::ALL.iter().copied().filter(tells) {
                let values: Vec<DeviceValue> =
                    group.iter().filter_map(|v| v.get(&name).map(RepetitionValue::on_device)).collect();
                let of_devices = log_moments_by_device(&values).filter(|_| differing.contains(&name)).map(|m| m.within);
                let plain: Vec<f64> = values.iter().map(|v| v.value).collect();
                if let Some(variance) = of_devices.or_else(|| stats::log_moments(&plain)?.1) {
                    variances.entry(name).or_default().push(variance);
                }
            }
        }
        let known = variances.into_iter().filter_map(|(name, v)| Some((name, Pool::fit(&v)?))).collect();
        Pools { known, differing: differing.clone(), far_baselines: BTreeSet::new() }
    }

    /// The method behind a quantity's interval.
    pub fn method(&self, name: Key) -> Option<&'static str> {
        self.known.get(&name).map(Pool::name)
    }

    /// A variance after shrinking; one with a far run in it is not made smaller by the others, which have none.
    fn steadied(&self, name: Key, own: Variance, has_far_run: bool) -> Variance {
        let shrunk = self.known.get(&name).map_or(own, |pool| pool.shrink(own));
        if has_far_run && own.s2 > shrunk.s2 { own } else { shrunk }
    }

    /// A quantity over repetitions; `has_far_run` if one of the values is of a run far from the others, or compared with one.
    pub fn quantity(
        &self,
        name: Key,
        group: &[Values],
        has_far_run: bool,
        (baselines, baseline_pools): (&Baselines, &Pools),
    ) -> Option<Quantity> {
        let values: Vec<&RepetitionValue> = group.iter().filter_map(|v| v.get(&name)).collect();
        if is_of_all(name) && values.len() < group.len() {
            return None;
        }
        let plain: Vec<f64> = values.iter().map(|v| v.value).collect();
        let Some((mean, own)) = stats::log_moments(&plain) else {
            // Zeros have no logarithm: their mean is still a reading, without an interval.
            let finite = !plain.is_empty() && plain.iter().all(|v| v.is_finite() && *v >= 0.0);
            let estimate = plain.iter().sum::<f64>() / plain.len() as f64;
            return finite.then_some(Quantity { estimate, low: None, high: None, n: plain.len(), df: None });
        };
        let n = plain.len();
        let Some(own) = own else { return Some(stats::quantity(mean, n, &[])) };
        let on_devices: Vec<DeviceValue> = values.iter().map(|v| v.on_device()).collect();
        let of_devices = log_moments_by_device(&on_devices).filter(|_| self.differing.contains(&name));
        let own = of_devices.map_or(own, |m| m.within);
        let mut variance = self.steadied(name, own, has_far_run);
        // The steps of a counter are part of what differs between runs; few runs may happen to show less of it than there is.
        variance.s2 = variance.s2.max(values.iter().map(|v| v.resolution.powi(2)).sum::<f64>() / n as f64);
        let mean = of_devices.map_or(mean, |m| m.log_mean);
        let mut terms = of_devices.map_or_else(|| vec![Term { weight: 1.0, variance, n }], |m| m.terms(variance, n));
        let mut leans = BTreeMap::<&Lean, f64>::new();
        for (source, weight) in values.iter().flat_map(|v| &v.leans_on) {
            *leans.entry(source).or_default() += weight / n as f64;
        }
        // At one pace all baselines of a device deviate together.
        let mut paced = BTreeMap::<(usize, &str), Vec<(&BaselineQuantity, f64)>>::new();
        for (source, weight) in leans {
            let source = match source {
                Lean::Mean(source) => source,
                Lean::Pace(cell, source) => {
                    paced.entry((source.0, cell)).or_default().push((source, weight));
                    continue;
                }
            };
            let known = baselines.known.get(source)?;
            let far = baseline_pools.far_baselines.contains(&(source.0, source.1.clone()));
            // One repetition of a baseline: the term's n of 1 already forbids an interval.
            let none = Variance { s2: 0.0, df: f64::INFINITY };
            let mut variance = known.variance.map_or(none, |own| baseline_pools.steadied(source.2, own, far));
            variance.s2 = variance.s2.max(known.resolution_s2);
            terms.push(Term { weight, variance, n: known.repetitions });
        }
        for ((_, cell), weights) in paced {
            let Variance { s2, df } = baselines.paces.variance(cell, &weights)?;
            // It is of the mean already.
            terms.push(Term { weight: 1.0, variance: Variance { s2: s2 * n as f64, df }, n });
        }
        Some(stats::quantity(mean, n, &terms))
    }
}
