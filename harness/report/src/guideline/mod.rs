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
mod isolation;
mod memory;
mod mixing;
mod naive;
mod pairs;
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

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::Key;
use collo_quantity::stats::{self, RatioTest, RatioVerdict};

use crate::published::Published;
use crate::verdict::{Agreement, Groups, Holds, Next, Scope, next};

pub(crate) use collocate::rank_by_gain;
pub use collocate::{Knee, knees, rank};
pub(crate) use energy::rank_by_energy;
pub use evidence::Evidence;
pub(crate) use pairs::advantage;
pub(crate) use saturation::METRICS;
pub use threshold::{HingeFit, PUBLISHED_RATIO, fit};

/// A rule with its answer, before wording.
struct Claim {
    id: &'static str,
    question: &'static str,
    /// The instruction, if the rule holds here.
    advice: String,
    /// What follows, if it does not.
    otherwise: String,
    finding: String,
    holds: Holds,
    agrees: Agreement,
    key: Option<Evidence>,
    tested: String,
    evidence: Vec<Evidence>,
    published: Option<Published>,
    scope: Option<Scope>,
    next: Next,
}

impl Claim {
    /// Put it into words: an instruction only if the rule holds here, else the question; what follows from a no is in the finding.
    fn conclude(self) -> Guideline {
        let advice = self.scope.as_ref().map_or_else(|| self.advice.clone(), |scope| scope.limit(&self.advice));
        let (statement, finding) = worded(self.holds, self.question, advice, &self.otherwise, self.finding);
        let open = self.holds == Holds::Open;
        let before = self.next.before.filter(|_| open).map_or_else(String::new, |before| format!(" {before}"));
        Guideline {
            id: self.id,
            statement,
            finding: format!("{finding}{before}"),
            key: self.key,
            tested: self.tested,
            holds: self.holds,
            agrees: self.agrees,
            evidence: self.evidence,
            published: self.published,
            scope: self.scope,
            command: self.next.command.filter(|_| open),
            summary: false,
        }
    }
}

/// The sentence in bold, and the finding.
fn worded(holds: Holds, question: &str, advice: impl Into<String>, otherwise: &str, finding: String) -> (String, String) {
    match holds {
        Holds::Yes => (advice.into(), finding),
        Holds::No => (question.into(), format!("No: {otherwise} {finding}")),
        Holds::Open => (question.into(), finding),
    }
}

/// What a measured value is divided by, if that was predicted.
const PREDICTED: &str = "predicted";

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
    /// What it is based on; absent for rules that are not about groups.
    pub scope: Option<Scope>,
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

/// Groups of several members in which all train.
fn training(analysis: &Analysis) -> impl Iterator<Item = &Cell> {
    analysis.groups().filter(|c| c.record.degree > 1 && !c.serves())
}

/// The verdict of each of these cells' quantity compared with 1, corrected for all of them.
fn compared<'a>(analysis: &Analysis, cells: &[&'a Cell], key: Key) -> Vec<(&'a Cell, RatioTest)> {
    let ratios: Vec<_> = cells.iter().map(|c| c.get(key).cloned()).collect();
    let tests = stats::compare(&ratios, analysis.campaign.thresholds.relevant_ratio);
    cells.iter().copied().zip(tests).filter_map(|(cell, test)| Some((cell, test?))).collect()
}

/// How many of these tests have a verdict.
fn how_many<'t>(tests: impl IntoIterator<Item = &'t RatioTest>, wanted: RatioVerdict) -> usize {
    tests.into_iter().filter(|test| test.verdict == wanted).count()
}

fn is_undecided(test: &RatioTest) -> bool {
    matches!(test.verdict, RatioVerdict::CannotTell { .. })
}

/// Are all of these ratios within the threshold of 1? One that is certainly above contradicts it.
fn all_one(tests: &[(&Cell, RatioTest)], missing: usize) -> Holds {
    let of = |wanted| how_many(tests.iter().map(|(_, test)| test), wanted);
    let (same, above) = (of(RatioVerdict::Same), of(RatioVerdict::Better));
    crate::verdict::of_all(same, above, tests.len() - same - above + missing)
}

/// The cell with the largest value of a quantity, or with the smallest.
fn extreme<'a>(cells: &[&'a Cell], key: Key, largest: bool) -> Option<&'a Cell> {
    let value = |c: &Cell| c.get(key).map_or(f64::NAN, |q| if largest { q.estimate } else { -q.estimate });
    cells.iter().copied().max_by(|a, b| value(a).total_cmp(&value(b)))
}

/// True if there are groups and none of them has equal members.
fn only_mixed(analysis: &Analysis) -> bool {
    let mut groups = training(analysis).peekable();
    groups.peek().is_some() && groups.all(|c| !c.record.is_uniform())
}

/// True if the campaign was measured on a GPU.
fn on_a_card(analysis: &Analysis) -> bool {
    analysis.campaign.device.kind == "gpu"
}

/// The command that measures what this experiment does not have: the study's matrix of its smallest workload on a GPU, else the quick one.
fn study(analysis: &Analysis, condition: &str) -> String {
    if on_a_card(analysis) { format!("collo run study-uniform --where '{condition}'") } else { "collo run quickstart".into() }
}

/// What would decide a rule over these groups, of which the tests are undecided; `condition` selects such groups of the study.
fn decide<'t>(analysis: &Analysis, groups: &Groups, tests: impl Iterator<Item = &'t RatioTest>, condition: &str) -> Next {
    next(analysis, groups, stats::repetitions_to_decide(tests), || study(analysis, condition))
}

/// What would decide a rule that looks at intervals: where nothing else is missing, as many repetitions again.
fn decide_by_interval(analysis: &Analysis, groups: &Groups, condition: &str) -> Next {
    let again = groups.judged.iter().map(|c| c.counted.len()).max();
    next(analysis, groups, again, || study(analysis, condition))
}

/// How many groups have each verdict: `1 of 10 groups gain, 9 lose`. Counts of 0 are left out, the first one excepted if all are.
fn tally(all: &str, parts: &[(usize, &str)]) -> String {
    let counted: Vec<&(usize, &str)> = parts.iter().filter(|(n, _)| *n > 0).collect();
    let shown = if counted.is_empty() { parts.iter().take(1).collect() } else { counted };
    let texts = shown.iter().enumerate();
    texts
        .map(|(i, (n, verb))| if i == 0 { format!("{n} of {all} {verb}") } else { format!("{n} {verb}") })
        .collect::<Vec<_>>()
        .join(", ")
}

/// The sentence of a rule about which nothing can be concluded.
fn nothing(groups: &Groups, what: &str, none: &str) -> String {
    groups.why_none(what).unwrap_or_else(|| none.to_string())
}

/// Where no group of the campaign has two or more members.
const NO_GROUP: &str = "This experiment has no group of two or more training members.";
