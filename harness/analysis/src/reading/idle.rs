//! The GPU's idle power. In: the readings of each run before its members started. Out: one value for each state of the GPU,
//! assigned to every run of that state.
//!
//! A run reads it for a second or two only, so the median over the campaign's runs is taken. Partitioning a GPU changes its idle
//! power, so those runs are kept separate.

use std::collections::BTreeMap;

use collo_quantity::stats;

use super::repetition::Repetition;

/// Assign the campaign's idle power of its state to every run, and return it; over
/// several GPUs their mean.
pub fn level(repetitions: &mut [Repetition]) -> BTreeMap<&'static str, f64> {
    // Each GPU has its own.
    let mut read = BTreeMap::<(usize, &'static str), Vec<f64>>::new();
    for r in repetitions.iter() {
        if let Some(watts) = r.idle_w.filter(|w| w.is_finite()) {
            read.entry((r.device, state(r))).or_default().push(watts);
        }
    }
    let medians: BTreeMap<(usize, &'static str), f64> =
        read.into_iter().filter_map(|(state, mut watts)| Some((state, stats::median(&mut watts)?))).collect();
    for r in repetitions {
        r.idle_w = medians.get(&(r.device, state(r))).copied();
    }
    let mut by_state = BTreeMap::<&'static str, Vec<f64>>::new();
    for ((_, state), watts) in medians {
        by_state.entry(state).or_default().push(watts);
    }
    by_state.into_iter().map(|(state, watts)| (state, watts.iter().sum::<f64>() / watts.len() as f64)).collect()
}

fn state(r: &Repetition) -> &'static str {
    if r.record().cell.mode.partitioned { "partitioned" } else { "whole" }
}
