//! How many fit: does the sum of the solo footprints predict what runs out of memory?

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::cell::verdict::CellVerdict;
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};
use collo_store::MemberSpec;

use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, STUDY, decide_by_interval, not_judged};
use crate::verdict::{self, Cause, Groups};

const PUBLISHED: Published = Published::new(
    "Aggregate memory must not exceed the device's: seven large models run out of 40 GB.",
    "the sum must fit the GPU",
    STUDY,
);

/// One group that shares the whole memory: the sum of its members' solo footprints with both its ends, and whether it ran.
struct FootprintSum<'a> {
    cell: &'a Cell,
    sum_bytes: f64,
    low_bytes: f64,
    high_bytes: f64,
    ran: bool,
}

impl FootprintSum<'_> {
    /// Whether it fits according to the sum; `None` where the interval contains the room.
    fn fits(&self, room: f64) -> Option<bool> {
        match (self.low_bytes, self.high_bytes) {
            (_, high) if high <= room => Some(true),
            (low, _) if low > room => Some(false),
            _ => None,
        }
    }
}

/// True if the members of a group share the whole memory as processes.
fn shares_all(cell: &&Cell) -> bool {
    cell.record.degree > 1 && !cell.record.mode.partitioned && !cell.record.mode.one_process
}

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let room = analysis.campaign.device.memory_bytes? as f64;
    let (mut asked, mut unknown): (Vec<FootprintSum>, Vec<&Cell>) = (Vec::new(), Vec::new());
    for cell in analysis.groups().filter(shares_all) {
        match ask(analysis, cell) {
            Some(sum) => asked.push(sum),
            None => unknown.push(cell),
        }
    }
    // Where nothing ran out there is no frontier to tell anything about.
    let is_too_large = |c: &&Cell| c.verdict() == CellVerdict::OutOfMemory;
    if asked.iter().all(|a| a.ran) && !unknown.iter().any(is_too_large) {
        return None;
    }
    let of = |right: bool| asked.iter().filter(|a| a.fits(room) == Some(a.ran == right)).count();
    let (right, wrong) = (of(true), of(false));
    let holds = verdict::of_all(right, wrong, asked.len() - right - wrong + unknown.len());
    let largest = asked.iter().filter(|a| a.ran).max_by(|a, b| a.sum_bytes.total_cmp(&b.sum_bytes));
    let smallest = asked.iter().filter(|a| !a.ran).min_by(|a, b| a.sum_bytes.total_cmp(&b.sum_bytes));
    let what = |a: &FootprintSum| format!("`{}` ({})", a.cell.name(), number::gib(a.sum_bytes));
    let ran = largest.map_or_else(|| "no group ran".into(), |a| format!("the largest that ran is {}", what(a)));
    let ran_out = smallest.map_or_else(
        || "of none that ran out are the footprints known".into(),
        |a| format!("the smallest that ran out {}", what(a)),
    );
    let unjudged = not_judged(unknown.iter().map(|c| c.name().to_string()));
    let finding = match asked.len() {
        0 => format!("For no group are both the sum of footprints and its outcome known.{unjudged}"),
        all => format!(
            "Comparing the sum with {1} predicted {right} of {0}; {ran}, {ran_out}.{unjudged}",
            number::count(all, "group"),
            number::gib(room)
        ),
    };
    let groups = Groups {
        judged: asked.iter().filter(|a| a.ran).map(|a| a.cell).collect(),
        unjudged: unknown.iter().map(|c| (*c, cause(analysis, c))).collect(),
        out_of_memory: asked.iter().filter(|a| !a.ran).map(|a| a.cell).collect(),
    };
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
            tested: "on the undivided GPU, exactly the groups of processes ran out of memory whose solo footprints add up to more than it has, \
                     by the whole interval of the sum"
                .into(),
            evidence: asked.iter().filter_map(|a| Evidence::of(a.cell, Key::Memory)).collect(),
            published: Some(PUBLISHED),
            next: decide_by_interval(analysis, &groups, "workload == \"large\""),
            scope: None,
        }
        .conclude(),
    )
}

/// The sum of a group; `None` if it is not known, or not whether the group fits: it was not run, ended otherwise, or ran out in some runs
/// only.
fn ask<'a>(analysis: &Analysis, cell: &'a Cell) -> Option<FootprintSum<'a>> {
    let ran_out = cell.outcomes.get("out_of_memory").is_some_and(|n| *n > 0);
    let ran = match cell.verdict() {
        CellVerdict::OutOfMemory => false,
        _ if cell.counts() && !ran_out => true,
        _ => return None,
    };
    let solo = |m: &MemberSpec| analysis.solo(&m.solo)?.get(Key::Memory);
    let footprints = cell.record.members.iter().map(solo).collect::<Option<Vec<&Quantity>>>()?;
    let sum = |of: fn(&Quantity) -> Option<f64>| footprints.iter().map(|q| of(q)).sum::<Option<f64>>();
    let (sum_bytes, low_bytes, high_bytes) = (sum(|q| Some(q.estimate))?, sum(|q| q.low)?, sum(|q| q.high)?);
    Some(FootprintSum { cell, sum_bytes, low_bytes, high_bytes, ran })
}

/// Why a group cannot be compared with the sum. One that fitted in some runs and not in others has all its readings.
fn cause(analysis: &Analysis, cell: &Cell) -> Cause {
    Cause::of(analysis, cell, Key::MemoryOfSolo).unwrap_or_else(|| Cause::Failed("out_of_memory".into()))
}
