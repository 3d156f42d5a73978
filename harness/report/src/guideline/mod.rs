//! Guidelines: advice based on named cells. In: an analysis. Out: sentences, whether they hold here, evidence and published results. A
//! guideline reads valid cells only; if they are not sufficient it says so, with the command that would produce the evidence.
//!
//! To add one: a file here, and its line in [`all`], which is also the order of the page.

mod alone;
mod best_mode;
mod collocate;
mod energy;
mod evidence;
mod fairness;
mod frontier;
mod holds;
mod isolation;
mod memory;
mod mixing;
mod naive;
mod pcie;
pub(crate) mod prediction;
mod saturation;
pub(crate) mod serving;
mod settings;
mod starvation;
mod thread_limits;
mod threads;
mod threshold;
mod trace;
mod watching;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::analysis::{Analysis, Cell, GainBy};
use crate::quantity::Key;
use crate::stats::{self, Quantity, RatioVerdict as VariableContent};

pub(crate) use collocate::capital;
pub use collocate::{Knee, knees};
pub use evidence::Evidence;
pub use holds::{Agreement, Holds};
pub(crate) use saturation::METRICS;
pub use threshold::{HingeFit, PUBLISHED_RATIO, fit};

/// The agreement with a published statement that is the guideline itself; all of them are about GPUs.
fn agreement(analysis: &Analysis, holds: Holds) -> Agreement {
    match holds {
        _ if !on_a_card(analysis) => Agreement::NotComparable,
        Holds::Yes => Agreement::Yes,
        Holds::No => Agreement::No,
        Holds::Open => Agreement::Open,
    }
}

/// The sentence in bold, and the finding: advice only if it holds here, else the question; what follows from a no is in the finding.
fn worded(holds: Holds, question: &str, advice: impl Into<String>, otherwise: &str, finding: String) -> (String, String) {
    match holds {
        Holds::Yes => (advice.into(), finding),
        Holds::No => (question.into(), format!("No: {otherwise} {finding}")),
        Holds::Open => (question.into(), finding),
    }
}

/// What a measured value is divided by, if that was predicted.
const PREDICTED: &str = "predicted";

/// Results from the literature, never ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    pub statement: &'static str,
    /// A few words for the column beside our number.
    pub short: &'static str,
    pub source: &'static str,
}

/// The study that this project repeats.
pub const STUDY: &str = "collocation study on an A100-40GB, EuroMLSys 2024";

/// One piece of advice.
#[derive(Debug, Clone)]
pub struct Guideline {
    pub id: &'static str,
    /// Advice if it holds here, else the question.
    pub statement: String,
    /// One sentence with the finding.
    pub finding: String,
    /// The key number, and its cell.
    pub key: Option<Evidence>,
    /// What was tested, with the threshold.
    pub tested: String,
    pub holds: Holds,
    pub agrees: Agreement,
    pub evidence: Vec<Evidence>,
    pub published: Option<Published>,
    /// The command that would produce the missing evidence.
    pub command: Option<String>,
    /// Shown on the first screen; the others are one click away.
    pub summary: bool,
}

impl Guideline {
    /// True if it does not hold here, or what was published does not.
    pub fn is_contrary(&self) -> bool {
        self.holds == Holds::No || self.agrees.is_doubted()
    }
}

/// Maximum number on the first screen.
const SUMMARY: usize = 7;

/// Every guideline that applies, in the page's order: contrary ones are never below the first screen, undecided ones come
/// after decided ones.
pub fn all(analysis: &Analysis) -> Vec<Guideline> {
    type Ask = fn(&Analysis) -> Option<Guideline>;
    let of_traces: [Ask; 8] = [
        trace::mps_total,
        trace::naive_waits,
        trace::packing,
        trace::conditions,
        trace::estimates,
        trace::cap,
        trace::energy,
        trace::best,
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
    let only_serving = analysis.groups().next().is_some() && analysis.groups().all(Cell::serves);
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

/// Groups of the same members under two modes.
pub(crate) struct Match<'a> {
    pub left: &'a Cell,
    pub right: &'a Cell,
}

/// Valid groups in which all train and that differ only in the sharing mode, `left` under one that begins with the first word,
/// `right` with the second.
pub(crate) fn matched<'a>(analysis: &'a Analysis, left: &str, right: &str) -> Vec<Match<'a>> {
    let of = |mode: &str| {
        let mode = mode.to_string();
        analysis.cells.iter().filter(move |c| family(c) == mode && c.is_valid() && c.record.degree > 1 && !c.serves())
    };
    let mut others = HashMap::<Vec<&str>, Vec<&Cell>>::new();
    for b in of(right) {
        others.entry(who(b)).or_default().push(b);
    }
    let mut found = Vec::new();
    for a in of(left) {
        let alike = others.get(&who(a)).into_iter().flatten().filter(|b| b.record.after_measured == a.record.after_measured);
        found.extend(alike.map(|b| Match { left: a, right: b }));
    }
    found
}

/// Members by the labels of their solo cells, which name workload and settings.
fn who(cell: &Cell) -> Vec<&str> {
    cell.record.members.iter().map(|m| m.solo.as_str()).collect()
}

/// A mode without its settings, except where a limit makes it another mode: `mps:50%` is not `mps`.
pub(crate) fn family(cell: &Cell) -> &str {
    if separated(cell) { &cell.record.mode.family } else { &cell.record.sharing }
}

/// True if every member has a GPU instance to itself: MPS inside instances, and compute instances of one GPU instance, share
/// memory.
pub(crate) fn separated(cell: &Cell) -> bool {
    cell.record.mode.isolated
}

/// True if the numbers of both come from the same devices, so that their own values may be compared. Means over several devices are
/// alike only if each has as many runs in both.
pub(crate) fn together(a: &Cell, b: &Cell) -> bool {
    let devices = |c: &Cell| {
        let mut runs = BTreeMap::<usize, usize>::new();
        c.counted().for_each(|r| *runs.entry(r.device).or_default() += 1);
        runs
    };
    let (a, b) = (devices(a), devices(b));
    a == b || a.len() == 1 && a.keys().eq(b.keys())
}

/// How much more work per second `cell` does than `other` of the same members: from their times, which share no baseline. Of cells
/// that were not measured together, or on several devices, from their gains, each over its own baseline.
pub(crate) fn advantage(cell: &Cell, other: &Cell) -> Option<Quantity> {
    let several = cell.counted().map(|r| r.device).collect::<BTreeSet<_>>().len() > 1;
    if several || !together(cell, other) {
        return cell.get(Key::ThroughputGain)?.over(other.get(Key::ThroughputGain)?);
    }
    match GainBy::of(&cell.record) {
        GainBy::EpochTime => other.get(Key::EpochTime)?.over(cell.get(Key::EpochTime)?),
        GainBy::Makespan => other.get(Key::Makespan)?.over(cell.get(Key::Makespan)?),
        GainBy::Progress => cell.get(Key::ThroughputGain)?.over(other.get(Key::ThroughputGain)?),
    }
}

/// Pairs with their ratio, each compared with 1, corrected for all of them.
pub(crate) struct Held<'a> {
    pub left: &'a Cell,
    pub right: &'a Cell,
    pub ratio: Quantity,
    pub said: VariableContent,
}

/// Compare the ratio of every pair with 1.
pub(crate) fn held<'a>(
    analysis: &Analysis,
    pairs: Vec<Match<'a>>,
    ratio: impl Fn(&Cell, &Cell) -> Option<Quantity>,
) -> Vec<Held<'a>> {
    let ratios: Vec<Option<Quantity>> = pairs.iter().map(|m| ratio(m.left, m.right)).collect();
    let compared = stats::compare(&ratios, analysis.campaign.thresholds.relevant_ratio);
    let all = pairs.into_iter().zip(ratios).zip(compared);
    all.filter_map(|((m, ratio), c)| Some(Held { left: m.left, right: m.right, ratio: ratio?, said: c?.verdict })).collect()
}

/// True if the interval of every ratio excludes that it is below 1 by more than the threshold: advice for all of them harms none.
fn never_below<'a>(analysis: &Analysis, mut pairs: impl Iterator<Item = &'a Held<'a>>) -> bool {
    let least = 1.0 / (1.0 + analysis.campaign.thresholds.relevant_ratio);
    pairs.all(|held| held.ratio.low.is_some_and(|low| low >= least))
}

/// Are all of these slowdowns within the threshold of 1? One that is certainly not contradicts it.
fn all_one(analysis: &Analysis, cells: &[&Cell], quantity: Key) -> Holds {
    let ratios: Vec<_> = cells.iter().map(|c| c.get(quantity).cloned()).collect();
    let compared = stats::compare(&ratios, analysis.campaign.thresholds.relevant_ratio);
    let said: Vec<VariableContent> = compared.into_iter().flatten().map(|c| c.verdict).collect();
    if said.contains(&VariableContent::Better) {
        Holds::No
    } else if !said.is_empty() && said.iter().all(|v| *v == VariableContent::Same) {
        Holds::Yes
    } else {
        Holds::Open
    }
}

/// The number of pairs with a verdict.
pub(crate) fn how_many(pairs: &[Held], said: VariableContent) -> usize {
    pairs.iter().filter(|h| h.said == said).count()
}

/// True if there are groups and none of them has equal members.
fn only_mixed(analysis: &Analysis) -> bool {
    let mut groups = analysis.groups().filter(|c| c.record.degree > 1 && !c.serves()).peekable();
    groups.peek().is_some() && groups.all(|c| !c.record.is_uniform())
}

/// True if the campaign was measured on a GPU.
fn on_a_card(analysis: &Analysis) -> bool {
    analysis.campaign.device.kind == "gpu"
}

/// The command that measures what this experiment does not have: the study's matrix of its smallest workload.
fn study(condition: &str) -> String {
    format!("collo run study-uniform --where '{condition}'")
}

/// The command that measures what is missing: failed runs again, more repetitions, or groups if there are none.
fn command(analysis: &Analysis) -> Option<String> {
    let name = &analysis.campaign.experiment;
    // What the experiment is for: groups, or members that are watched.
    let subjects = || analysis.groups().chain(&analysis.watching.cells);
    if analysis.campaign.is_merged() {
        // No campaign goes on from it.
        None
    } else if analysis.count("missing") + analysis.count("interrupted") > 0 {
        Some(format!("collo run {name}"))
    } else if subjects().any(|c| !c.counted.is_empty()) {
        Some(format!("collo run {name} --more 3"))
    } else if analysis.planned > 0 && subjects().next().is_some() {
        Some(format!("collo run {name} --only failed"))
    } else {
        Some("collo run quickstart".into())
    }
}

/// The clause that says why it is open.
fn without(analysis: &Analysis, what: &str) -> String {
    if analysis.groups().next().is_none() {
        "This experiment has no group of two or more members.".into()
    } else if measured_once(analysis) {
        ONCE.into()
    } else {
        format!("No valid group has {what} with an interval.")
    }
}

/// The remark on an experiment that was measured once, whatever it has readings of.
const ONCE: &str = "One repetition carries no interval: raise `repetitions` first.";

/// Whether no group was measured more than once.
fn measured_once(analysis: &Analysis) -> bool {
    analysis.groups().any(|c| c.counted.len() == 1) && analysis.groups().all(|c| c.counted.len() < 2)
}
