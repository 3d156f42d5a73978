//! A policy, an estimate and a sharing mode: what a trace's runs are compared by. In: runs. Out: its values by order.

use std::collections::BTreeMap;

use collo_figures::modes::mode_label;
use collo_quantity::Key;
use collo_quantity::stats::orders::Values;
use collo_quantity::stats::{self, Quantity, log_moments};
use collo_quantity::unit::COUNT;
use collo_store::{Validity, Verdict};

use super::TraceRun;
use super::policies::RatioToReference;

/// The policy that uses idle cards only: what the others are compared with.
const EXCLUSIVE: &str = "exclusive";
/// Who estimates where nobody does.
const NOBODY: &str = "none";

/// Where a value belongs: the merged campaign that it comes from, and the order of the trace.
pub type Order = (usize, u64);

/// A policy, an estimate and a sharing mode: what is compared.
#[derive(Debug)]
pub struct Arm {
    pub policy: String,
    pub estimate: String,
    pub sharing: String,
    /// It is measured under several modes, so that its name says which.
    pub in_modes: bool,
    pub validity: Validity,
    /// By order; the valid ones, or if there is none the indicative ones.
    pub by_order: Vec<ArmValues>,
    /// Means over orders: geometric, of counts arithmetic and without an interval.
    pub quantities: BTreeMap<Key, Quantity>,
    /// Ratios to the reference within orders; none for the reference itself.
    pub ratios: BTreeMap<Key, RatioToReference>,
}

/// An arm in one order: means over its repeats.
#[derive(Debug, Clone)]
pub struct ArmValues {
    pub order: Order,
    pub repetitions: usize,
    pub values: BTreeMap<Key, f64>,
}

impl Arm {
    /// `magm:sm=80%,free=5GB measured MPS`.
    pub fn name(&self) -> String {
        let estimate = if self.estimate == NOBODY { String::new() } else { format!(" {}", self.estimate) };
        match self.is_exclusive() && !self.in_modes {
            true => self.policy.clone(),
            false => format!("{}{estimate} {}", self.policy, mode_label(&self.sharing)),
        }
    }

    /// Its policy's order over the cards: `magm`.
    pub fn picks(&self) -> &str {
        self.policy.split(':').next().unwrap_or_default()
    }

    /// A parameter of its policy: the `80%` of `sm`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let parameters = self.policy.split_once(':')?.1;
        parameters.split(',').find_map(|p| p.trim().strip_prefix(name)?.strip_prefix('='))
    }

    /// Policy and estimate in a few words, where there is no room for a label: `magm 80% 5GB, measured`.
    pub fn short(&self) -> String {
        let parameters = self.policy.split_once(':').map_or("", |(_, parameters)| parameters);
        let values = parameters.split(',').map(|p| p.split_once('=').map_or(p, |(_, value)| value));
        let words: Vec<&str> = std::iter::once(self.picks()).chain(values).filter(|word| !word.is_empty()).collect();
        let estimate = if self.is_estimated() { format!(", {}", self.estimate) } else { String::new() };
        format!("{}{estimate}", words.join(" "))
    }

    /// True if its policy has conditions on the cards.
    pub fn is_conditional(&self) -> bool {
        self.policy.contains(':')
    }

    /// True if somebody estimates memory.
    pub fn is_estimated(&self) -> bool {
        self.estimate != NOBODY
    }

    /// True if no task has company.
    pub fn is_exclusive(&self) -> bool {
        self.picks() == EXCLUSIVE
    }

    /// True if its numbers may support a guideline.
    pub fn is_valid(&self) -> bool {
        self.validity.verdict == Verdict::Valid && !self.by_order.is_empty()
    }

    pub fn get(&self, key: Key) -> Option<&Quantity> {
        self.quantities.get(&key)
    }

    /// A quantity by order.
    pub fn values(&self, key: Key) -> Values<Order> {
        self.by_order.iter().filter_map(|at| Some((at.order, *at.values.get(&key)?))).collect()
    }

    fn plays(&self, run: &TraceRun) -> bool {
        (&run.of.policy, &run.of.estimate, &run.sharing) == (&self.policy, &self.estimate, &self.sharing)
    }

    /// Choose its runs, and average the repeats of each order. Returns how much repeats of one order vary in their total.
    pub(super) fn take(&mut self, runs: &[&TraceRun]) -> Vec<stats::Variance> {
        let own: Vec<&TraceRun> = runs.iter().copied().filter(|run| self.plays(run)).collect();
        let is = |verdict: Verdict| own.iter().any(|run| run.validity.verdict == verdict);
        let wanted = if is(Verdict::Valid) { Verdict::Valid } else { Verdict::Indicative };
        let mut orders = BTreeMap::<Order, Vec<&TraceRun>>::new();
        for run in own.iter().filter(|run| run.validity.verdict == wanted) {
            orders.entry((run.origin, run.of.order)).or_default().push(run);
        }
        let mut reasons: Vec<&String> = Vec::new();
        for why in own.iter().flat_map(|run| &run.validity.reasons) {
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
        let reasons = reasons.into_iter().take(3).cloned().collect::<Vec<_>>().join("; ");
        if own.is_empty() {
            self.validity.lower(Verdict::Discarded, "no run of it can be used");
        } else if wanted == Verdict::Indicative {
            self.validity.lower(Verdict::Indicative, reasons);
        } else if is(Verdict::Indicative) {
            self.validity.reasons.push(format!("orders left out: {reasons}"));
        }
        let mut noise = Vec::new();
        for (order, runs) in orders {
            let of = |key: Key| -> Vec<f64> { runs.iter().filter_map(|run| run.values.get(&key).copied()).collect() };
            noise.extend(log_moments(&of(Key::Total)).and_then(|m| m.1));
            // A repeat without a reading says nothing of it, but neither do the others then: they are not the same runs.
            let mean = |key: Key| Some((key, mean_of_repeats(&of(key), key)?)).filter(|_| of(key).len() == runs.len());
            self.by_order.push(ArmValues { order, repetitions: runs.len(), values: Key::of_traces().filter_map(mean).collect() });
        }
        noise
    }
}

fn mean_of_repeats(of: &[f64], key: Key) -> Option<f64> {
    match log_moments(of).filter(|_| key.unit != COUNT) {
        Some((mean, _)) => Some(mean.exp()),
        None if of.is_empty() => None,
        None => Some(of.iter().sum::<f64>() / of.len() as f64),
    }
}
