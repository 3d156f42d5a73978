//! The guidelines that apply to an analysis. To add a guideline: a file in `groups` or `policies` that fills a `Claim`, its
//! answer by `verdict::of_all` or `of_some`; its line in [`GUIDELINES`]; a row in `docs/guide/metrics.md`.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;

use crate::rule::Guideline;
use crate::verdict::Holds;
use crate::{groups, policies};

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
const GUIDELINES: &[GuidelineRow] = &[
    (policies::mps_total, Any),
    (policies::naive_waits, Any),
    (policies::packing, Any),
    (policies::conditions, Any),
    (policies::estimates, Any),
    (policies::cap, Any),
    (policies::energy, Any),
    (policies::best, Any),
    (groups::saturation::guideline, Any),
    (groups::watching::guideline, Any),
    (groups::serving::guideline, Groups),
    (groups::collocate::guideline, Training),
    (groups::best_mode::guideline, Training),
    (groups::energy::guideline, Training),
    (groups::threshold::guideline, Training),
    (groups::memory::guideline, Groups),
    (groups::prediction::memory, Groups),
    (groups::prediction::company, Training),
    (groups::isolation::guideline, Training),
    (groups::mixing::guideline, Training),
    (groups::naive::guideline, Training),
    (groups::fairness::guideline, Training),
    (groups::starvation::guideline, Training),
    (groups::pcie::guideline, Training),
    (groups::alone::guideline, Training),
    (groups::threads::guideline, Training),
    (groups::thread_limits::guideline, Training),
    (groups::settings::guideline, Training),
    (groups::frontier::guideline, Groups),
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
