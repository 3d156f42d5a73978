//! How many fit: does the sum of the solo footprints predict what runs out of memory?

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::{Key, number};

use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, STUDY};
use crate::verdict::{self, Holds, Next};

const PUBLISHED: Published = Published::new(
    "Aggregate memory must not exceed the device's: seven large models run out of 40 GB.",
    "the sum must fit the GPU",
    STUDY,
);

/// One group that shares the whole memory: the sum of its members' solo footprints, and whether it ran.
struct FootprintSum<'a> {
    cell: &'a Cell,
    sum_bytes: f64,
    ran: bool,
}

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let room = analysis.campaign.device.memory_bytes? as f64;
    let asked: Vec<FootprintSum> = analysis.groups().filter_map(|c| ask(analysis, c)).collect();
    let ran_out = asked.iter().filter(|a| !a.ran).count();
    // Where nothing ran out there is no frontier to tell anything about.
    if ran_out == 0 {
        return None;
    }
    let right = asked.iter().filter(|a| a.ran == (a.sum_bytes <= room)).count();
    let holds = if right == asked.len() { Holds::Yes } else { Holds::No };
    let largest = asked.iter().filter(|a| a.ran).max_by(|a, b| a.sum_bytes.total_cmp(&b.sum_bytes));
    let smallest = asked.iter().filter(|a| !a.ran).min_by(|a, b| a.sum_bytes.total_cmp(&b.sum_bytes))?;
    let what = |a: &FootprintSum| format!("`{}` ({})", a.cell.name(), number::gib(a.sum_bytes));
    let ran = largest.map_or_else(|| "no group ran".into(), |a| format!("the largest that ran is {}", what(a)));
    let finding = format!(
        "Comparing the sum with {1} predicted {right} of {0}; {ran}, the smallest that ran out {2}.",
        number::count(asked.len(), "group"),
        number::gib(room),
        what(smallest)
    );
    Some(
        Claim {
            id: "frontier",
            question: "Does the sum of the solo footprints decide how many fit?",
            advice: "Use the sum of the solo footprints to decide how many fit.".into(),
            otherwise: "do not rely on it alone.".into(),
            finding,
            holds,
            agrees: verdict::of_figures(analysis, |f| f.quantity == "outcome"),
            key: largest.and_then(|a| Evidence::of(a.cell, Key::Memory)),
            tested:
                "on the undivided GPU, exactly the groups of processes ran out of memory whose solo footprints add up to more than it has"
                    .into(),
            evidence: asked.iter().filter_map(|a| Evidence::of(a.cell, Key::Memory)).collect(),
            published: Some(PUBLISHED),
            next: Next::default(),
            scope: None,
        }
        .conclude(),
    )
}

fn ask<'a>(analysis: &Analysis, cell: &'a Cell) -> Option<FootprintSum<'a>> {
    let shares_all = cell.record.degree > 1 && !cell.record.mode.partitioned && !cell.record.mode.one_process;
    let ran = match cell.outcome() {
        "completed" if cell.counts() => true,
        "out_of_memory" => false,
        _ => return None,
    };
    let solo = |m: &collo_store::MemberSpec| Some(analysis.solo(&m.solo)?.get(Key::Memory)?.estimate);
    let sum_bytes = cell.record.members.iter().map(solo).sum::<Option<f64>>()?;
    shares_all.then_some(FootprintSum { cell, sum_bytes, ran })
}
