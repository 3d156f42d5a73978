//! The guidelines that apply to an analysis. To add a guideline: a file in `groups` or `policies` that fills a `Claim`, its
//! answer by `verdict::of_all` or `of_some`; its line in [`GUIDELINES`]; a row in `docs/guide/metrics.md`.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;

use crate::groups::{
    alone, best_mode, collocate, energy, fairness, frontier, isolation, memory, mixing, naive, pcie, prediction, saturation,
    serving, settings, starvation, thread_limits, threads, threshold, watching,
};
use crate::policies;
use crate::rule::Guideline;
use crate::verdict::Holds;

/// Maximum number on the first screen.
const SUMMARY: usize = 7;

/// What a guideline is about: any campaign, groups, or groups without a serving member, whose epochs can be compared.
#[derive(PartialEq, PartialOrd)]
enum About {
    Any,
    Groups,
    Training,
}

use About::{Any, Groups, Training};

type GuidelineRow = (fn(&Analysis) -> Option<Guideline>, About);

/// Every guideline, in the page's order.
const GUIDELINES: [GuidelineRow; 29] = [
    (policies::mps_total, Any),
    (policies::naive_waits, Any),
    (policies::packing, Any),
    (policies::conditions, Any),
    (policies::estimates, Any),
    (policies::cap, Any),
    (policies::energy, Any),
    (policies::best, Any),
    (saturation::guideline, Any),
    (watching::guideline, Any),
    (serving::guideline, Groups),
    (collocate::guideline, Training),
    (best_mode::guideline, Training),
    (energy::guideline, Training),
    (threshold::guideline, Training),
    (memory::guideline, Groups),
    (prediction::memory, Groups),
    (prediction::company, Training),
    (isolation::guideline, Training),
    (mixing::guideline, Training),
    (naive::guideline, Training),
    (fairness::guideline, Training),
    (starvation::guideline, Training),
    (pcie::guideline, Training),
    (alone::guideline, Training),
    (threads::guideline, Training),
    (thread_limits::guideline, Training),
    (settings::guideline, Training),
    (frontier::guideline, Groups),
];

/// Every guideline that applies: contrary ones are never below the first screen, undecided ones come after decided ones.
pub fn all(analysis: &Analysis) -> Vec<Guideline> {
    let several = || analysis.groups().filter(|c| c.record.degree > 1);
    let only_serving = several().next().is_some() && several().all(Cell::serves);
    // A trace without groups was measured for its policies, a sweep for the metrics, observers for what they cost: questions about groups
    // would be open for ever.
    let for_others = !analysis.traces.is_empty() || !analysis.watching.is_empty() || analysis.only_sweeps();
    let without_groups = analysis.groups().next().is_none() && for_others;
    let most = match without_groups {
        true => Any,
        false if only_serving => Groups,
        false => Training,
    };
    let asked = GUIDELINES.iter().filter(|(_, about)| *about <= most);
    let mut found: Vec<Guideline> = asked.filter_map(|(ask, _)| ask(analysis)).collect();
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by_key(|&i| match found[i].holds {
        _ if found[i].is_contrary() => 0,
        Holds::Open => 2,
        _ => 1,
    });
    let contrary = found.iter().filter(|g| g.is_contrary()).count();
    for i in order.into_iter().take(SUMMARY.max(contrary)) {
        found[i].summary = true;
    }
    // Within the first screen and below it the order is that of the list, what is decided first.
    found.sort_by_key(|g| (!g.summary, g.holds == Holds::Open));
    found
}
