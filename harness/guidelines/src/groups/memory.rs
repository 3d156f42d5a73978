//! Does memory add up? Compares the footprint of a group with the sum of its members' solo footprints.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::reading::usage::MemoryKind;
use collo_quantity::{Key, number};

use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, STUDY, decide_by_interval, nothing};
use crate::verdict::{self, Groups};

const PUBLISHED: Published = Published::new(
    "The aggregate memory is about the sum of the individual footprints and must not exceed the device's; on MIG it is slightly lower, because the allocator adapts to the memory it sees.",
    "= sum of footprints",
    STUDY,
);

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    // Threads of one process have one footprint, and there is nothing to add up.
    let of_processes = analysis.groups().filter(|c| c.record.degree > 1 && !c.record.mode.one_process);
    let groups = Groups::of(analysis, of_processes, Key::MemoryOfSolo);
    let limit = threshold.ln_1p();
    let away = |c: &Cell| c.get(Key::MemoryOfSolo).map_or(0.0, |q| q.estimate.ln().abs());
    let bounds = |c: &Cell| {
        let q = c.get(Key::MemoryOfSolo)?;
        Some((q.low?.ln(), q.high?.ln()))
    };
    let of = |is: &dyn Fn(f64, f64) -> bool| -> Vec<&Cell> {
        groups.judged.iter().copied().filter(|c| bounds(c).is_some_and(|(low, high)| is(low, high))).collect()
    };
    let within = of(&|low, high| low.abs() <= limit && high.abs() <= limit).len();
    let (over, under) = (of(&|low, _| low > limit), of(&|_, high| high < -limit));
    let beyond = over.len() + under.len();
    let holds = verdict::of_all(within, beyond, groups.judged.len() - within - beyond + groups.missing());
    // What follows from a no is about a group that is certainly beyond, and first about one that needs more than the sum: it runs out.
    let shown = [&over, &under, &groups.judged].into_iter().find(|cells| !cells.is_empty());
    let furthest = shown.and_then(|cells| cells.iter().copied().max_by(|a, b| away(a).total_cmp(&away(b))));
    let more = furthest.and_then(|c| c.get(Key::MemoryOfSolo)).is_some_and(|q| q.estimate > 1.0);
    let finding = match furthest {
        None => nothing(
            &groups,
            "the ratio of its memory to its solo footprints",
            "This experiment has no group of two or more processes.",
        ),
        Some(c) => {
            let ratio = c.get(Key::MemoryOfSolo).map_or_else(String::new, number::with_interval);
            let shared = if c.memory_kind == Some(MemoryKind::Pss) && !more { "; shared pages count once" } else { "" };
            format!("`{}` needs {ratio} times the sum of its solo footprints{shared}.", c.name())
        }
    };
    Some(
        Claim {
            id: "memory-adds-up",
            question: "Do memory footprints add up?",
            advice: "Add up the memory footprints.".into(),
            otherwise: if more { "plan for more than the sum." } else { "plan for less than the sum." }.into(),
            finding,
            holds,
            agrees: verdict::of_statement(analysis, holds),
            key: furthest.and_then(|c| Evidence::of(c, Key::MemoryOfSolo)).map(|e| e.picked_from(groups.judged.len())),
            tested: format!(
                "group ÷ sum of solo footprints within {} of 1, by the whole interval, in every group",
                number::percent_as_written(threshold)
            ),
            evidence: groups.judged.iter().filter_map(|c| Evidence::of(c, Key::MemoryOfSolo)).collect(),
            published: Some(PUBLISHED),
            next: decide_by_interval(analysis, &groups, "workload == \"small\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}
