//! Collocate or not, and up to how many members: the knee of the throughput gain.

use collo_store::without_mode;

use super::{Evidence, Guideline, Holds, Published, STUDY, agreement, command, without, worded};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::quantity::Key;
use crate::stats::{Quantity, RatioVerdict as VariableContent};

const PUBLISHED: Published = Published {
    statement: "Collocate when the aggregate compute and memory needs fit the device; the gain diminishes when one run alone \
                already fills it. Two small or medium models take about the time of one.",
    short: "two small ones in about the time of one",
    source: STUDY,
};

/// Where more members stop adding throughput, for one workload and mode.
pub struct Knee<'a> {
    /// The solo cell's label.
    pub workload: &'a str,
    pub sharing: &'a str,
    /// Groups by degree, each with a gain.
    pub groups: Vec<&'a Cell>,
    /// Index of the group beyond which nothing relevant is added.
    pub at: usize,
    /// The factor from which a difference is worth acting on.
    relevant: f64,
}

impl Knee<'_> {
    /// The group at the knee.
    pub fn cell(&self) -> &Cell {
        self.groups[self.at]
    }

    /// `Two together have 1.96× the throughput of running in turn; a third adds nothing measurable.`
    fn brief(&self) -> Option<String> {
        let cell = self.cell();
        let gain = number::estimate(cell.get(Key::ThroughputGain)?);
        let first =
            format!("{} together have {gain}× the throughput of running in turn", capital(&number::word(cell.record.degree)));
        Some(self.next().map_or_else(|| format!("{first}."), |next| format!("{first}; {next}.")))
    }

    /// `2 together have 1.96× the throughput of running in turn; a third adds nothing measurable`.
    pub fn sentence(&self) -> Option<String> {
        let cell = self.cell();
        let gain = number::estimate(cell.get(Key::ThroughputGain)?);
        let degree = cell.record.degree;
        let first = match cell.gain_verdict.as_ref()?.verdict {
            VariableContent::Better => format!("{degree} together have {gain}× the throughput of running in turn"),
            VariableContent::Worse => format!("{degree} together have only {gain}× the throughput of running in turn"),
            VariableContent::Same => {
                format!("{degree} together cannot be distinguished from running in turn ({gain}× the throughput)")
            }
            VariableContent::CannotTell { .. } => {
                format!("whether {degree} together do more work per second than in turn is open")
            }
        };
        Some(self.next().map_or_else(|| first.clone(), |next| format!("{first}; {next}")))
    }

    /// What the next larger group adds: `a third adds nothing measurable`; `None` if there is none.
    fn next(&self) -> Option<String> {
        let cell = self.cell();
        let degree = cell.record.degree;
        let next = self.groups.get(self.at + 1)?;
        let step = step(cell, next)?;
        let (low, high) = (step.low?, step.high?);
        let more = next.record.degree - degree;
        let who = match more {
            1 if degree < 7 => format!("a {}", ["", "second", "third", "fourth", "fifth", "sixth", "seventh"][degree as usize]),
            1 => "one more".into(),
            more => format!("{more} more"),
        };
        let s = |one: &str, many: &str| if more > 1 { many.to_string() } else { one.to_string() };
        Some(if high < 1.0 && step.estimate < 1.0 / self.relevant {
            format!("{who} {} that by {}", s("lowers", "lower"), number::percent(1.0 - step.estimate))
        } else if low < 1.0 && high > 1.0 {
            format!("{who} {} nothing measurable", s("adds", "add"))
        } else {
            format!("{who} {} that by less than {}", s("changes", "change"), number::percent(self.relevant - 1.0))
        })
    }
}

/// The ratio of two groups' gains. Their common baseline cancels, but not in the interval, which is wide rather than narrow.
pub fn step(from: &Cell, to: &Cell) -> Option<Quantity> {
    to.get(Key::ThroughputGain)?.over(from.get(Key::ThroughputGain)?)
}

/// Knees of every workload and mode, from cells whose gain has an interval. The guideline reads the valid ones.
pub fn knees(analysis: &Analysis) -> Vec<Knee<'_>> {
    let mut found = Vec::new();
    for workload in analysis.workloads() {
        let mut modes: Vec<&str> = Vec::new();
        for cell in analysis.of_workload(workload).filter(|c| !c.is_solo()) {
            if !modes.contains(&cell.record.sharing.as_str()) {
                modes.push(&cell.record.sharing);
            }
        }
        for sharing in modes {
            let has_gain = |c: &&Cell| c.gain_verdict.is_some() && c.record.degree > 1 && c.record.sharing == sharing;
            let mut groups: Vec<&Cell> = analysis.of_workload(workload).filter(has_gain).collect();
            groups.sort_by_key(|c| c.record.degree);
            if groups.is_empty() {
                continue;
            }
            let relevant = 1.0 + analysis.campaign.thresholds.relevant_ratio;
            let mut at = 0;
            for i in 1..groups.len() {
                let grows = |s: Quantity| s.low.is_some_and(|l| l > 1.0) && s.estimate > relevant;
                if step(groups[at], groups[i]).is_some_and(grows) {
                    at = i;
                }
            }
            found.push(Knee { workload, sharing, groups, at, relevant });
        }
    }
    found
}

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if super::only_mixed(analysis) {
        return None;
    }
    let threshold = number::percent(analysis.campaign.thresholds.relevant_ratio);
    let knees: Vec<Knee> = knees(analysis).into_iter().filter(|k| k.groups.iter().all(|c| c.is_valid())).collect();
    let verdicts: Vec<VariableContent> = knees.iter().filter_map(|k| Some(k.cell().gain_verdict.as_ref()?.verdict)).collect();
    let best = knees.iter().max_by(|a, b| gain(a.cell()).total_cmp(&gain(b.cell())));
    let holds = if verdicts.contains(&VariableContent::Better) {
        Holds::Yes
    } else if !verdicts.is_empty() && verdicts.iter().all(|v| matches!(v, VariableContent::Same | VariableContent::Worse)) {
        Holds::No
    } else {
        Holds::Open
    };
    let advice = best.map_or_else(String::new, |k| {
        let degree = number::word(k.cell().record.degree);
        if k.at + 1 < k.groups.len() {
            format!("Stop at {degree} members of `{}` under {}.", without_mode(k.workload), mode_name(k.sharing))
        } else {
            format!("Collocate `{}` under {}, up to {degree} members.", without_mode(k.workload), mode_name(k.sharing))
        }
    });
    let finding = best.and_then(Knee::brief).unwrap_or_else(|| without(analysis, "a throughput gain"));
    let (statement, finding) = worded(holds, "Does sharing pay off?", advice, "run these workloads in turn.", finding);
    Some(Guideline {
        id: "collocate",
        statement,
        finding,
        agrees: agreement(analysis, holds),
        key: best.and_then(|k| Evidence::of(k.cell(), Key::ThroughputGain)),
        tested: format!(
            "throughput gain over running in turn above 1 by more than {threshold}, Holm-corrected over all groups; a further \
             member counts if it adds more than {threshold} and its interval excludes no change"
        ),
        holds,
        evidence: knees.iter().flat_map(|k| k.groups.iter().filter_map(|c| Evidence::of(c, Key::ThroughputGain))).collect(),
        published: Some(PUBLISHED),
        command: (holds == Holds::Open).then(|| command(analysis)).flatten(),
        summary: false,
    })
}

fn gain(cell: &Cell) -> f64 {
    cell.get(Key::ThroughputGain).map_or(f64::NEG_INFINITY, |q| q.estimate)
}

/// A sentence with a capital first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().collect::<String>() + chars.as_str())
}

/// A mode's name in sentences: `MPS`, `naive sharing`.
pub(crate) fn mode_name(sharing: &str) -> String {
    match sharing {
        "naive" => "naive sharing".into(),
        "mps" => "MPS".into(),
        "mig" => "MIG".into(),
        "threads" => "threads of one process".into(),
        other => format!("`{other}`"),
    }
}
