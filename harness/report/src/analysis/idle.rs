//! What the card draws while nobody is on it. In: what each run read before its members came. Out: one value for each state of the
//! card, given back to every run of that state.
//!
//! A run reads it for a second or two only, so the median over the campaign's runs is taken. Cutting a card into instances changes what it
//! draws, so those runs are kept apart.

use std::collections::BTreeMap;

use super::repetition::Repetition;

/// Give every run the campaign's idle power of its state, and tell it.
pub fn level(repetitions: &mut [Repetition]) -> BTreeMap<&'static str, f64> {
    let mut read = BTreeMap::<&'static str, Vec<f64>>::new();
    for r in repetitions.iter() {
        if let Some(watts) = r.idle_w {
            read.entry(state(r)).or_default().push(watts);
        }
    }
    let medians: BTreeMap<&'static str, f64> =
        read.into_iter().filter_map(|(state, watts)| Some((state, median(watts)?))).collect();
    for r in repetitions {
        r.idle_w = medians.get(state(r)).copied();
    }
    medians
}

fn state(r: &Repetition) -> &'static str {
    if r.record().cell.sharing.starts_with("mig") { "cut" } else { "whole" }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|v| v.is_finite());
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_median_stands_for_a_state_and_nothing_stands_for_none() {
        assert_eq!(super::median(vec![52.0, 90.0, 50.0]), Some(52.0));
        assert_eq!(super::median(vec![52.0, 50.0]), Some(51.0));
        assert_eq!(super::median(vec![f64::NAN]), None);
    }
}
