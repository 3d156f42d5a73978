//! Every guideline that applies to an analysis, in the page's order. To add a guideline: a file in `groups` or
//! `policies` that fills a `Claim`, its answer by `verdict::of_all` or `of_some`; its line in [`all`]; a row in `docs/guide/metrics.md`.

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

/// Every guideline that applies, in the page's order: contrary ones are never below the first screen, undecided ones come
/// after decided ones.
pub fn all(analysis: &Analysis) -> Vec<Guideline> {
    type Ask = fn(&Analysis) -> Option<Guideline>;
    let of_traces: [Ask; 8] = [
        policies::mps_total,
        policies::naive_waits,
        policies::packing,
        policies::conditions,
        policies::estimates,
        policies::cap,
        policies::energy,
        policies::best,
    ];
    // Whether it is asked where in every group somebody serves: then nobody's epochs are compared.
    let questions: [(Ask, bool); 19] = [
        (serving::guideline, true),
        (collocate::guideline, false),
        (best_mode::guideline, false),
        (energy::guideline, false),
        (threshold::guideline, false),
        (memory::guideline, true),
        (prediction::memory, true),
        (prediction::company, false),
        (isolation::guideline, false),
        (mixing::guideline, false),
        (naive::guideline, false),
        (fairness::guideline, false),
        (starvation::guideline, false),
        (pcie::guideline, false),
        (alone::guideline, false),
        (threads::guideline, false),
        (thread_limits::guideline, false),
        (settings::guideline, false),
        (frontier::guideline, true),
    ];
    let several = || analysis.groups().filter(|c| c.record.degree > 1);
    let only_serving = several().next().is_some() && several().all(Cell::serves);
    // A trace without groups was measured for its policies, a sweep for the metrics, observers for what they cost: questions about groups
    // would be open for ever.
    let for_others = !analysis.traces.is_empty() || !analysis.watching.is_empty() || analysis.only_sweeps();
    let without_groups = analysis.groups().next().is_none() && for_others;
    let asked = questions.iter().filter(|(_, of_serving)| !without_groups && (*of_serving || !only_serving));
    let of_what_was_seen: [Ask; 2] = [saturation::guideline, watching::guideline];
    let asked = of_traces.iter().chain(&of_what_was_seen).chain(asked.map(|(ask, _)| ask));
    let mut found: Vec<Guideline> = asked.filter_map(|ask| ask(analysis)).collect();
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
