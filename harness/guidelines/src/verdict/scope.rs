//! What a sentence is based on: how many workloads, degrees, devices and repetitions, and what could not be judged. In: groups. Out:
//! their counts, and a sentence.

use std::collections::{BTreeMap, BTreeSet};

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::number;
use collo_store::without_mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Cause;

/// With fewer workloads a sentence names them.
const NAMED: usize = 3;

/// The basis of a sentence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Scope {
    /// Groups that were judged.
    pub judged: usize,
    /// Groups that could not be judged, by cause.
    pub unjudged: BTreeMap<String, usize>,
    pub out_of_memory: usize,
    /// Different members, by the labels of their solo runs without the mode.
    pub workloads: Vec<String>,
    pub degrees: Vec<u32>,
    /// GPUs or machines.
    pub devices: usize,
    /// Fewest and most repetitions of a judged group.
    pub repetitions_min: Option<usize>,
    pub repetitions_max: Option<usize>,
    /// The same as a sentence; null where no group was judged: the finding has the reason.
    pub text: Option<String>,
}

impl Scope {
    pub fn of<'c>(analysis: &Analysis, judged: &[&Cell], causes: impl Iterator<Item = &'c Cause>, out_of_memory: usize) -> Scope {
        let mut workloads: Vec<String> = Vec::new();
        for member in judged.iter().flat_map(|c| &c.record.members) {
            let name = without_mode(&member.solo);
            if !workloads.contains(&name) {
                workloads.push(name);
            }
        }
        let degrees: BTreeSet<u32> = judged.iter().map(|c| c.record.degree).collect();
        let devices: BTreeSet<usize> = judged.iter().flat_map(|c| c.counted()).map(|r| r.device).collect();
        let counted = || judged.iter().map(|c| c.count());
        let unjudged = count(causes);
        let scope = Scope {
            judged: judged.len(),
            unjudged: unjudged.iter().cloned().collect(),
            out_of_memory,
            workloads,
            degrees: degrees.into_iter().collect(),
            devices: devices.len(),
            repetitions_min: counted().min(),
            repetitions_max: counted().max(),
            text: None,
        };
        let noun = if analysis.campaign.device.kind == "gpu" { "GPU" } else { "machine" };
        Scope { text: scope.sentence(&unjudged, noun), ..scope }
    }

    /// The number of groups that could not be judged.
    pub fn missing(&self) -> usize {
        self.unjudged.values().sum()
    }

    /// `Based on 3 of 5 groups: 1 workload, ×7, 1 GPU, 3 repetitions; not judged: 2 not run.` `None` where no group was judged.
    fn sentence(&self, unjudged: &[(String, usize)], device_noun: &str) -> Option<String> {
        let missing = self.missing();
        let all = self.judged + missing;
        if all + self.out_of_memory == 0 {
            return None;
        }
        // Where none was judged, the finding has the reason.
        let partly = missing > 0 && self.judged > 0;
        let not_judged = if partly { format!("not judged: {}", counted(unjudged)) } else { String::new() };
        let memory = if self.out_of_memory > 0 { format!("{} out of memory", self.out_of_memory) } else { String::new() };
        let basis = self.repetitions_min.zip(self.repetitions_max).map(|(least, most)| {
            let repetitions =
                if least == most { number::count(most, "repetition") } else { format!("{least} to {most} repetitions") };
            let groups = if missing > 0 {
                format!("{} of {}", self.judged, number::count(all, "group"))
            } else {
                number::count(all, "group")
            };
            format!(
                "based on {groups}: {}, {}, {}, {repetitions}",
                number::count(self.workloads.len(), "workload"),
                degrees(&self.degrees),
                number::count(self.devices, device_noun)
            )
        });
        let parts: Vec<String> = basis.into_iter().chain([not_judged, memory]).filter(|part| !part.is_empty()).collect();
        (!parts.is_empty()).then(|| format!("{}.", collo_analysis::words::capital(&parts.join("; "))))
    }

    /// An instruction, limited to the workloads that it was found with where these are few: `For small b32: choose MPS.`
    pub fn limit(&self, advice: &str) -> String {
        let names_one = advice.contains('`');
        if self.workloads.is_empty() || self.workloads.len() >= NAMED || names_one {
            return advice.into();
        }
        let names: Vec<String> = self.workloads.iter().map(|w| format!("`{w}`")).collect();
        let mut rest = advice.chars();
        let acronym = advice.chars().nth(1).is_some_and(char::is_uppercase);
        let first = rest.next().map_or_else(String::new, |c| if acronym { c.to_string() } else { c.to_lowercase().to_string() });
        format!("For {}: {first}{}", names.join(" and "), rest.as_str())
    }
}

/// `×2, ×3 and ×7`.
fn degrees(of: &[u32]) -> String {
    let texts: Vec<String> = of.iter().map(|d| format!("×{d}")).collect();
    match &texts[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first, .., last] if texts.len() > 3 => format!("{} degrees from {first} to {last}", texts.len()),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// Causes with how many groups each has.
pub(super) fn count<'c>(causes: impl Iterator<Item = &'c Cause>) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    for cause in causes {
        let text = cause.text();
        match found.iter_mut().find(|(known, _)| *known == text) {
            Some((_, n)) => *n += 1,
            None => found.push((text, 1)),
        }
    }
    found.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    found
}

/// `2 not run, 1 crashed`.
pub(super) fn counted(causes: &[(String, usize)]) -> String {
    causes.iter().map(|(text, n)| format!("{n} {text}")).collect::<Vec<_>>().join(", ")
}

/// What a report must say first where the campaign is not the whole experiment: runs that were not made, and a selection of cells.
pub fn unfinished(analysis: &Analysis) -> Vec<String> {
    let mut found = Vec::new();
    let missing = analysis.count("missing") + analysis.count("interrupted");
    if missing > 0 {
        let mut modes: Vec<&str> = Vec::new();
        for cell in analysis.groups().filter(|c| c.record.degree > 1) {
            let family = cell.family();
            let none = || analysis.groups().filter(|c| c.family() == family).all(|c| !c.ran());
            if !modes.contains(&family) && none() {
                modes.push(family);
            }
        }
        let nothing = if modes.is_empty() {
            String::new()
        } else {
            format!(
                "; nothing was measured under {}",
                modes.iter().map(|m| collo_figures::modes::mode_label(m)).collect::<Vec<_>>().join(", ")
            )
        };
        // By its id a campaign is continued with its selection, its settings and its shard.
        let continued = match analysis.campaign.is_merged() {
            true => "measure them in the campaigns that it was merged from, and merge again".to_string(),
            false => format!("`collo run {}` continues", analysis.campaign.short_id()),
        };
        found.push(format!("unfinished: {missing} of {} are missing{nothing}; {continued}", number::runs(analysis.planned)));
    }
    found.extend(selection(analysis).map(|condition| format!("a part of the experiment: {condition}")));
    found
}

/// The selection of cells on the command line that the campaign was started with.
fn selection(analysis: &Analysis) -> Option<String> {
    let command = &analysis.campaign.surroundings.as_ref()?.command;
    let at = command.iter().position(|word| word == "--where" || word.starts_with("--where="))?;
    let condition = command[at].strip_prefix("--where=").or_else(|| command.get(at + 1).map(String::as_str))?;
    Some(format!("cells with {condition}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(workloads: &[&str], unjudged: &[(&str, usize)]) -> Scope {
        Scope {
            judged: 3,
            unjudged: unjudged.iter().map(|(text, n)| ((*text).to_string(), *n)).collect(),
            workloads: workloads.iter().map(|w| (*w).to_string()).collect(),
            degrees: vec![2, 7],
            devices: 1,
            repetitions_min: Some(3),
            repetitions_max: Some(3),
            ..Scope::default()
        }
    }

    #[test]
    fn a_scope_counts_what_was_judged_and_what_was_not() {
        let text = |workloads: &[&str], unjudged: &[(&str, usize)]| {
            let most_first: Vec<_> = unjudged.iter().map(|(text, n)| ((*text).to_string(), *n)).collect();
            scope(workloads, unjudged).sentence(&most_first, "GPU").unwrap()
        };
        insta::assert_snapshot!(text(&["small b32"], &[]), @"Based on 3 groups: 1 workload, ×2 and ×7, 1 GPU, 3 repetitions.");
        insta::assert_snapshot!(text(&["a", "b", "c"], &[("not run", 2), ("crashed", 1)]), @"Based on 3 of 6 groups: 3 workloads, ×2 and ×7, 1 GPU, 3 repetitions; not judged: 2 not run, 1 crashed.");
        assert_eq!(Scope::default().sentence(&[], "GPU"), None);
        let none = Scope { judged: 0, repetitions_min: None, repetitions_max: None, ..scope(&[], &[("crashed", 2)]) };
        assert_eq!(none.sentence(&[("crashed".to_string(), 2)], "GPU"), None, "the finding has the reason");
        let full = Scope { out_of_memory: 1, ..none }.sentence(&[("crashed".to_string(), 2)], "GPU");
        assert_eq!(full.as_deref(), Some("1 out of memory."));
    }

    #[test]
    fn an_instruction_names_few_workloads_and_no_many() {
        assert_eq!(scope(&["small b32"], &[]).limit("Choose MPS for throughput."), "For `small b32`: choose MPS for throughput.");
        assert_eq!(scope(&["a", "b"], &[]).limit("MPS and MIG tie."), "For `a` and `b`: MPS and MIG tie.");
        assert_eq!(scope(&["a", "b", "c"], &[]).limit("Choose MPS."), "Choose MPS.");
        assert_eq!(scope(&["a"], &[]).limit("Collocate `a`."), "Collocate `a`.", "it is named already");
    }
}
