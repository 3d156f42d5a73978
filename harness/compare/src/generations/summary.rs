//! What changed from the first GPU model to each other one, in a sentence. In: the best ways. Out: sentences that claim only what has an
//! interval on both, and why nothing is known of the others.

use collo_quantity::number;

use super::best::{Best, BestRow};
use super::{Generations, ModelColumn};

/// Workloads and mixes that a sentence names.
const NAMED: usize = 4;

/// A sentence for each GPU model but the first; how much is known of the others is another.
pub fn sentences(found: &Generations) -> Vec<String> {
    let Some((first, others)) = found.cards.split_first() else { return Vec::new() };
    if found.best.is_empty() {
        return vec![format!("Nothing is known about the best way to share: {}.", without(found))];
    }
    let sentence = |(at, other): (usize, &ModelColumn)| between(&found.best, at + 1, [first, other]);
    others.iter().enumerate().flat_map(sentence).collect()
}

fn without(found: &Generations) -> &'static str {
    if found.cards.iter().any(|card| card.is_older) {
        "earlier versions wrote these reports, without decisions; `collo report` writes them again"
    } else {
        "none of these reports has a group with a throughput gain"
    }
}

/// From the first GPU model to another one.
fn between(rows: &[BestRow], at: usize, both: [&ModelColumn; 2]) -> Vec<String> {
    let absent = |card: &ModelColumn| match card.is_older {
        false => format!("no groups of it were measured on {}", card.name()),
        true => {
            format!("an earlier version wrote the report of {}, without decisions; `collo report` writes it again", card.name())
        }
    };
    let (mut compared, mut silent) = (Vec::new(), Vec::new());
    for row in rows {
        let (ours, theirs) = (row.on.first().and_then(Option::as_ref), row.on.get(at).and_then(Option::as_ref));
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => match &theirs.ratio {
                Some(ratio) => {
                    let unit = if compared.is_empty() { " the items per second" } else { "" };
                    let times = format!("{}× {}{unit}", number::estimate(ratio), number::bounds(ratio));
                    compared.push(format!("{times} for `{}` ({})", row.subject, ways(ours, theirs)));
                }
                None => silent.push((theirs.no_ratio.clone().unwrap_or_default(), row.subject.as_str())),
            },
            (None, _) => silent.push((absent(both[0]), &row.subject)),
            (_, None) => silent.push((absent(both[1]), &row.subject)),
        }
    }
    let [first, other] = both.map(ModelColumn::name);
    let mut sentences = Vec::new();
    if !compared.is_empty() {
        let has = format!("the best measured way to run a workload has {}", listed(&compared, "are in the table"));
        sentences.push(format!("From {first} to {other}, {has}."));
    }
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (why, subject) in &silent {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, subjects)) => subjects.push(format!("`{subject}`")),
            None => reasons.push((why, vec![format!("`{subject}`")])),
        }
    }
    for (why, subjects) in reasons {
        let nothing = if compared.is_empty() { format!("From {first} to {other}, nothing") } else { "Nothing".into() };
        sentences.push(format!("{nothing} is known about the throughput of {}: {why}.", listed(&subjects, "in the table")));
    }
    sentences
}

/// `MPS ×7 on both`, `MPS ×2, then MPS ×7`.
fn ways(ours: &Best, theirs: &Best) -> String {
    if ours.way == theirs.way { format!("{} on both", ours.way) } else { format!("{}, then {}", ours.way, theirs.way) }
}

/// A list in a sentence, of which the first are named.
fn listed(all: &[String], rest: &str) -> String {
    let more = all.len().saturating_sub(NAMED);
    if more > 0 {
        return format!("{}; {more} more {rest}", all[..NAMED].join(", "));
    }
    match all {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => all.join(""),
    }
}
