//! The answer in one paragraph per workload or mix: which mode, how many members, how much is gained, and when not. In: what was
//! decided for each subject. Out: sentences.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::cell::verdict::CellVerdict;
use collo_analysis::words::capital;
use collo_guidelines::groups::collocate::mode_name;
use collo_guidelines::verdict::Groups;
use collo_quantity::{Key, number};

use super::decision::{Choice, Subject, is_within};
use crate::parts::panels::mode_and_degree;

/// Subjects named in one paragraph.
const NAMES: usize = 6;
/// Answers that have a paragraph in common for what is the same in all of them: as many as a page shows beside it.
const ALIKE: std::ops::RangeInclusive<usize> = 2..=3;

/// A paragraph about each subject; those with the same answer are in one.
pub fn paragraphs(analysis: &Analysis, subjects: &[Subject]) -> Vec<String> {
    let mut found: Vec<([String; 2], Vec<&str>)> = Vec::new();
    for subject in subjects {
        let text = text(analysis, subject);
        match found.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(&subject.name),
            None => found.push((text, vec![&subject.name])),
        }
    }
    // What is true of each of a few subjects is said once.
    let rest = found.first().map_or_else(String::new, |([_, rest], _)| rest.clone());
    let is_common = ALIKE.contains(&found.len()) && !rest.is_empty() && found.iter().all(|([_, other], _)| *other == rest);
    let paragraph = |([first, rest], names): &([String; 2], Vec<&str>)| {
        let named: Vec<String> = names.iter().take(NAMES).map(|name| format!("`{name}`")).collect();
        let more = if names.len() > NAMES { format!(" and {} more", names.len() - NAMES) } else { String::new() };
        let rest = if is_common || rest.is_empty() { String::new() } else { format!(" {rest}") };
        format!("{}{more}: {first}{rest}", named.join(", "))
    };
    found.iter().map(paragraph).chain(is_common.then(|| format!("For each of them: {rest}"))).collect()
}

/// The answer for one subject: what to run, and what else there is to it.
fn text(analysis: &Analysis, subject: &Subject) -> [String; 2] {
    let throughput = subject.throughput(analysis);
    let mut sentences = Vec::new();
    if let Choice::Run { leaders, .. } = &throughput {
        sentences.extend(beyond(subject, leaders));
        sentences.extend(limit(analysis, subject, leaders));
    }
    sentences.extend(out_of_memory(subject));
    [first(analysis, subject, &throughput), sentences.join(" ")]
}

/// What to run for the most throughput.
fn first(analysis: &Analysis, subject: &Subject, throughput: &Choice) -> String {
    match throughput {
        Choice::Run { leaders, tie } => {
            let tie = tie.as_ref().map_or_else(String::new, |tie| format!(" ({tie})"));
            format!("run {}{tie}: {} the throughput of running in turn.", groups(leaders), gains(subject, leaders))
        }
        Choice::InTurn { nearest } => {
            let nearest = nearest
                .and_then(|c| nearest_gain(subject, c))
                .map_or_else(String::new, |text| format!("; the nearest is {text}"));
            let relevant = number::percent_as_written(analysis.campaign.thresholds.relevant_ratio);
            let fewer = fewer(subject).map_or_else(String::new, |fewer| format!(" {}.", capital(&fewer)));
            format!("run in turn. No measured group gains {relevant} or more{nearest}.{fewer}")
        }
        Choice::Open { nearest, cause } => {
            // Its interval is above 1, and the test of all groups of the campaign together is not decided.
            let limit = 1.0 + analysis.campaign.thresholds.relevant_ratio;
            let is_above = |c: &Cell| {
                c.is_valid() && subject.picked(c, Key::ThroughputGain).and_then(|q| q.low).is_some_and(|low| low > limit)
            };
            let but = if nearest.is_some_and(is_above) { ", not certain when all groups are tested together" } else { "" };
            let nearest = nearest
                .and_then(|c| nearest_gain(subject, c))
                .map_or_else(String::new, |text| format!("; the nearest is {text}{but}"));
            let why = cause.as_ref().map_or_else(String::new, |cause| {
                let reason = cause.reason().map_or_else(String::new, |reason| format!(" ({reason})"));
                let judged = Groups::of(analysis, subject.groups.iter().copied(), Key::ThroughputGain).judged;
                let which = if judged.is_empty() { "None is judged" } else { "Some groups are not judged" };
                format!(" {which}: {}{reason}.", cause.text())
            });
            format!("open. No group is shown to have more throughput than running in turn{nearest}.{why}")
        }
        Choice::Absent(why) => format!("open: {why}."),
    }
}

/// `seven together under MPS`, `seven together under MPS or under MIG`, `MPS ×7 or MIG ×3`.
fn groups(leaders: &[&Cell]) -> String {
    let Some(first) = leaders.first() else { return String::new() };
    if leaders.iter().any(|c| c.record.degree != first.record.degree) {
        return alternatives(leaders.iter().map(|c| mode_and_degree(c)).collect());
    }
    let modes = alternatives(leaders.iter().map(|c| how(&c.record.sharing)).collect());
    format!("{} together {modes}", number::word(first.record.degree))
}

/// `under MPS`, `as threads of one process`.
fn how(sharing: &str) -> String {
    let preposition = if sharing == "threads" { "as" } else { "under" };
    format!("{preposition} {}", mode_name(sharing))
}

fn alternatives(mut names: Vec<String>) -> String {
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} or {last}", names.join(", ")),
        last => last.unwrap_or_default(),
    }
}

/// `5.35× [5.22, 5.49]`; the interval covers whichever group is picked.
fn gain(subject: &Subject, cell: &Cell) -> Option<String> {
    let gain = subject.picked(cell, Key::ThroughputGain)?;
    Some(format!("{}× {}", number::estimate(&gain), number::bounds(&gain)))
}

fn gains(subject: &Subject, leaders: &[&Cell]) -> String {
    leaders.iter().filter_map(|c| gain(subject, c)).collect::<Vec<_>>().join(" and ")
}

fn nearest_gain(subject: &Subject, cell: &Cell) -> Option<String> {
    Some(format!("{}, {}", mode_and_degree(cell), gain(subject, cell)?))
}

/// What to run where no member may be slowed much.
fn limit(analysis: &Analysis, subject: &Subject, leaders: &[&Cell]) -> Option<String> {
    let limit = analysis.campaign.thresholds.slowdown;
    let slowdown = number::percent_as_written(limit - 1.0);
    let within: Vec<&Cell> = leaders.iter().copied().filter(|c| is_within(c, limit)).collect();
    if !within.is_empty() {
        let which = if within.len() == leaders.len() {
            "No".into()
        } else {
            format!("With {} no", alternatives(within.iter().map(|c| mode_and_degree(c)).collect()))
        };
        return Some(format!("{which} member is slowed by more than {slowdown}."));
    }
    match subject.gentle(analysis) {
        Choice::Run { leaders: gentle, .. } => {
            Some(format!("Where no member may be slowed by more than {slowdown}, run {}.", groups(&gentle)))
        }
        // Of modes and degrees that were not measured nothing is known.
        Choice::InTurn { .. } => {
            let fewer = fewer(subject).map_or_else(String::new, |fewer| format!("; {fewer}"));
            Some(format!("No measured group keeps the slowdown of every member within {slowdown}{fewer}."))
        }
        Choice::Open { .. } | Choice::Absent(_) => None,
    }
}

/// A caveat where the smallest group has more than two members: what holds for all groups need not hold for smaller ones.
fn fewer(subject: &Subject) -> Option<String> {
    let is_uniform = subject.groups.iter().all(|c| c.record.is_uniform());
    let least = subject.groups.iter().map(|c| c.record.degree).min().filter(|least| is_uniform && *least > 2)?;
    Some(format!("fewer than {} were not tried", number::word(least)))
}

/// What more members add, or that they were not tried.
fn beyond(subject: &Subject, leaders: &[&Cell]) -> Option<String> {
    if let [only] = leaders
        && let Some(text) = subject.beyond(only)
    {
        return Some(format!("{}.", capital(text)));
    }
    let largest = leaders.iter().map(|c| c.record.degree).max()?;
    let is_uniform = subject.groups.iter().all(|c| c.record.is_uniform());
    let is_last = subject.groups.iter().all(|c| c.record.degree <= largest);
    (is_uniform && is_last).then(|| format!("More than {} were not tried.", number::word(largest)))
}

/// The groups that do not fit into memory.
fn out_of_memory(subject: &Subject) -> Option<String> {
    let failed = subject.groups.iter().filter(|c| c.verdict() == CellVerdict::OutOfMemory);
    let names: Vec<String> = failed.map(|c| mode_and_degree(c)).collect();
    (!names.is_empty()).then(|| format!("Out of memory: {}.", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_joined_by_or() {
        let of = |names: &[&str]| alternatives(names.iter().map(|n| (*n).to_string()).collect());
        assert_eq!([of(&[]), of(&["MPS"]), of(&["MPS", "MIG"])], ["", "MPS", "MPS or MIG"]);
        assert_eq!(of(&["naive sharing", "MPS", "MIG"]), "naive sharing, MPS or MIG");
    }
}
