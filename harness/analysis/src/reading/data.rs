//! The members' training data: real or a stand-in, whole epochs or shortened ones. It decides what may be compared with what.

use std::collections::{BTreeMap, BTreeSet};

use collo_store::{MemberRecord, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::repetition::Repetition;

fn members(repetitions: &[Repetition]) -> impl Iterator<Item = &MemberRecord> {
    repetitions.iter().flat_map(|r| &r.record().members)
}

fn data_set(member: &MemberRecord) -> Option<&str> {
    member.hello.as_ref()?["dataset"]["name"].as_str()
}

/// The data sets for which a stand-in was used.
pub fn synthetic(repetitions: &[Repetition]) -> Vec<String> {
    let mut names = Vec::new();
    for member in members(repetitions).filter(|m| m.synthetic == Some(true)) {
        let name = data_set(member).unwrap_or("its data set").to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A workload whose epochs were cut short, with the remaining batches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Shortened {
    pub workload: String,
    #[schemars(range(min = 1))]
    pub limit_batches: u64,
}

/// Workloads whose epochs were cut short.
pub fn shortened(repetitions: &[Repetition]) -> Vec<Shortened> {
    let of = |m: &MemberRecord| Some(Shortened { workload: m.spec.workload.clone(), limit_batches: m.limit_batches? });
    members(repetitions).filter_map(of).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Data sets that were real in some runs and synthetic in others.
pub fn mixed(repetitions: &[Repetition]) -> BTreeSet<String> {
    let mut kinds = BTreeMap::<&str, BTreeSet<bool>>::new();
    for member in members(repetitions) {
        if let (Some(name), Some(synthetic)) = (data_set(member), member.synthetic) {
            kinds.entry(name).or_default().insert(synthetic);
        }
    }
    kinds.into_iter().filter(|(_, kinds)| kinds.len() > 1).map(|(name, _)| name.to_string()).collect()
}

/// Make runs on such data indicative at best; returns the warnings.
pub fn lower(repetitions: &mut [Repetition], mixed: &BTreeSet<String>) -> Vec<String> {
    let why = |name: &str| format!("{name} was real in some runs of this campaign and synthetic in others");
    for repetition in repetitions.iter_mut().filter(|r| r.counts()) {
        let names: BTreeSet<String> = repetition.record().members.iter().filter_map(data_set).map(str::to_string).collect();
        for name in names.intersection(mixed) {
            repetition.validity.lower(Verdict::Indicative, why(name));
        }
    }
    mixed.iter().map(|name| format!("{}: their times are not comparable", why(name))).collect()
}

/// `16 or 23 batches of small`, by workload.
pub fn batches(shortened: &[Shortened]) -> Vec<String> {
    let of_one = shortened.chunk_by(|a, b| a.workload == b.workload);
    let text = |all: &[Shortened]| {
        let counts: Vec<String> = all.iter().map(|s| s.limit_batches.to_string()).collect();
        let noun = if counts == ["1"] { "batch" } else { "batches" };
        format!("{} {noun} of `{}`", counts.join(" or "), all[0].workload)
    };
    of_one.map(text).collect()
}
