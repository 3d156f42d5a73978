//! Does memory add up? Compares the footprint of a group with the sum of its members' solo footprints.

use super::{Evidence, Guideline, Holds, Published, STUDY, agreement, command, without, worded};
use crate::analysis::{Analysis, Cell, MemoryKind};
use crate::number;
use crate::quantity::Key;

const PUBLISHED: Published = Published {
    statement: "The aggregate memory is about the sum of the individual footprints and must not exceed the device's; on MIG it is slightly lower, because the allocator adapts to the memory it sees.",
    short: "= sum of footprints",
    source: STUDY,
};

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    let has_interval = |c: &&Cell| c.get(Key::MemoryOfSolo).is_some_and(|q| q.low.is_some());
    let cells: Vec<&Cell> = analysis
        .groups()
        // Threads of one process have one footprint, and there is nothing to add up.
        .filter(|c| c.record.degree > 1 && c.is_valid() && !c.record.mode.one_process)
        .filter(has_interval)
        .collect();
    let limit = threshold.ln_1p();
    let away = |c: &&Cell| c.get(Key::MemoryOfSolo).map_or(0.0, |q| q.estimate.ln().abs());
    let bounds = |c: &&Cell| {
        let q = c.get(Key::MemoryOfSolo)?;
        Some((q.low?.ln(), q.high?.ln()))
    };
    let within = |c: &&Cell| bounds(c).is_some_and(|(l, h)| l.abs() <= limit && h.abs() <= limit);
    let beyond = |c: &&Cell| bounds(c).is_some_and(|(l, h)| l > limit || h < -limit);
    let holds = if cells.iter().any(beyond) {
        Holds::No
    } else if !cells.is_empty() && cells.iter().all(within) {
        Holds::Yes
    } else {
        Holds::Open
    };
    let furthest = cells.iter().max_by(|a, b| away(a).total_cmp(&away(b)));
    let more = furthest.and_then(|c| c.get(Key::MemoryOfSolo)).is_some_and(|q| q.estimate > 1.0);
    let finding = match furthest {
        None => without(analysis, "a ratio of its memory to its solo footprints"),
        Some(c) => {
            let ratio = c.get(Key::MemoryOfSolo).map_or_else(String::new, number::with_interval);
            let shared = if c.memory_kind == Some(MemoryKind::Pss) && !more { "; shared pages count once" } else { "" };
            format!("`{}` needs {ratio} times the sum of its solo footprints{shared}.", c.name())
        }
    };
    let (statement, finding) = worded(
        holds,
        "Do memory footprints add up?",
        "Add up the memory footprints.",
        if more { "plan for more than the sum." } else { "plan for less than the sum." },
        finding,
    );
    Some(Guideline {
        id: "memory-adds-up",
        statement,
        finding,
        agrees: agreement(analysis, holds),
        key: furthest.and_then(|c| Evidence::of(c, Key::MemoryOfSolo)),
        tested: format!("group ÷ sum of solo footprints within {} of 1, by the whole interval", number::percent(threshold)),
        holds,
        evidence: cells.iter().filter_map(|c| Evidence::of(c, Key::MemoryOfSolo)).collect(),
        published: Some(PUBLISHED),
        command: (holds == Holds::Open).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
