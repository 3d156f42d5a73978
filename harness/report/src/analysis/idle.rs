//! What the card draws while nobody is on it. In: what each run read before its members came. Out: one value for each state of the
//! card, given back to every run of that state.
//!
//! A run reads it for a second or two only, so the median over the campaign's runs is taken. Cutting a card into instances changes what it
//! draws, so those runs are kept apart.

use std::collections::BTreeMap;

use super::repetition::Repetition;
use crate::stats;

/// Give every run the campaign's idle power of its state, and tell it.
pub fn level(repetitions: &mut [Repetition]) -> BTreeMap<&'static str, f64> {
    let mut read = BTreeMap::<&'static str, Vec<f64>>::new();
    for r in repetitions.iter() {
        if let Some(watts) = r.idle_w.filter(|w| w.is_finite()) {
            read.entry(state(r)).or_default().push(watts);
        }
    }
    let medians: BTreeMap<&'static str, f64> =
        read.into_iter().filter_map(|(state, mut watts)| Some((state, stats::median(&mut watts)?))).collect();
    for r in repetitions {
        r.idle_w = medians.get(state(r)).copied();
    }
    medians
}

fn state(r: &Repetition) -> &'static str {
    if r.record().cell.mode.partitioned { "cut" } else { "whole" }
}
