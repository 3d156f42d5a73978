//! What all guidelines share: a claim with its answer, its evidence, pairs of groups that differ in one thing, counts of verdicts, and the
//! way to words. A guideline reads valid cells only; if they are not sufficient it says so, with the command that would produce the
//! evidence.

pub mod evidence;
pub mod pairs;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::Key;
use collo_quantity::stats::{self, RatioTest, RatioVerdict};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::verdict::{Agreement, Groups, Holds, Next, Scope, next};

/// A rule with its answer, before wording.
pub struct Claim {
    pub id: &'static str,
    pub question: &'static str,
    /// The instruction, if the rule holds here.
    pub advice: String,
    /// What follows, if it does not.
    pub otherwise: String,
    pub finding: String,
    pub holds: Holds,
    pub agrees: Agreement,
    pub key: Option<Evidence>,
    pub tested: String,
    pub evidence: Vec<Evidence>,
    pub published: Option<Published>,
    pub scope: Option<Scope>,
    pub next: Next,
}

impl Claim {
    /// Put it into words: an instruction only if the rule holds here, else the question; what follows from a no is in the finding.
    pub fn conclude(self) -> Guideline {
        let advice = self.scope.as_ref().map_or_else(|| self.advice.clone(), |scope| scope.limit(&self.advice));
        let (statement, finding) = worded(self.holds, self.question, advice, &self.otherwise, self.finding);
        let open = self.holds == Holds::Open;
        let before = self.next.before.filter(|_| open).map_or_else(String::new, |before| format!(" {before}"));
        Guideline {
            id: self.id.into(),
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
pub fn worded(holds: Holds, question: &str, advice: impl Into<String>, otherwise: &str, finding: String) -> (String, String) {
    match holds {
        Holds::Yes => (advice.into(), finding),
        Holds::No => (question.into(), format!("No: {otherwise} {finding}")),
        Holds::Open => (question.into(), finding),
    }
}

/// What a measured value is divided by, if that was predicted.
pub const PREDICTED: &str = "predicted";

/// The study that this project repeats; its DOI as in Crossref's record, <https://doi.org/10.1145/3642970.3655827>.
pub const STUDY: &str = "collocation study on an A100-40GB, EuroMLSys 2024, doi 10.1145/3642970.3655827";

/// One piece of advice.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Guideline {
    pub id: String,
    /// Advice if it holds here, else the question.
    pub statement: String,
    /// One sentence with the finding.
    pub finding: String,
    /// The key number, and its cell.
    #[serde(skip)]
    pub key: Option<Evidence>,
    pub holds: Holds,
    /// Whether the published statement agrees.
    pub agrees: Agreement,
    /// What was tested, with the threshold.
    pub tested: String,
    #[serde(deserialize_with = "evidence::known")]
    pub evidence: Vec<Evidence>,
    pub published: Option<Published>,
    /// What it is based on; null for rules that are not about groups.
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

/// Groups of several members in which all train.
pub fn training(analysis: &Analysis) -> impl Iterator<Item = &Cell> {
    analysis.groups().filter(|c| c.record.degree > 1 && !c.serves())
}

/// The verdict of each of these cells' quantity compared with 1, corrected for all of them.
pub fn compared<'a>(analysis: &Analysis, cells: &[&'a Cell], key: Key) -> Vec<(&'a Cell, RatioTest)> {
    let ratios: Vec<_> = cells.iter().map(|c| c.get(key).cloned()).collect();
    let tests = stats::compare(&ratios, analysis.campaign.thresholds.relevant_ratio);
    cells.iter().copied().zip(tests).filter_map(|(cell, test)| Some((cell, test?))).collect()
}

/// How many of these tests have a verdict.
pub fn how_many<'t>(tests: impl IntoIterator<Item = &'t RatioTest>, wanted: RatioVerdict) -> usize {
    tests.into_iter().filter(|test| test.verdict == wanted).count()
}

pub fn is_undecided(test: &RatioTest) -> bool {
    matches!(test.verdict, RatioVerdict::CannotTell { .. })
}

/// Are all of these ratios within the threshold of 1? One that is certainly above contradicts it.
pub fn all_one<'t>(tests: impl Iterator<Item = &'t RatioTest> + Clone, missing: usize) -> Holds {
    let of = |wanted| how_many(tests.clone(), wanted);
    let (same, above) = (of(RatioVerdict::Same), of(RatioVerdict::Better));
    crate::verdict::of_all(same, above, tests.clone().count() - same - above + missing)
}

/// The cell with the largest value of a quantity, or with the smallest.
pub fn extreme<'a>(cells: &[&'a Cell], key: Key, largest: bool) -> Option<&'a Cell> {
    let value = |c: &Cell| c.get(key).map_or(f64::NAN, |q| if largest { q.estimate } else { -q.estimate });
    cells.iter().copied().max_by(|a, b| value(a).total_cmp(&value(b)))
}

/// True if there are groups and none of them has equal members.
pub fn only_mixed(analysis: &Analysis) -> bool {
    let mut groups = training(analysis).peekable();
    groups.peek().is_some() && groups.all(|c| !c.record.is_uniform())
}

/// True if the campaign was measured on a GPU.
pub fn on_a_card(analysis: &Analysis) -> bool {
    analysis.campaign.device.kind == "gpu"
}

/// The command that measures what this experiment does not have: the study's matrix of its smallest workload on a GPU, else the quick one.
pub fn study(analysis: &Analysis, condition: &str) -> String {
    if on_a_card(analysis) { format!("collo run study-uniform --where '{condition}'") } else { "collo run quickstart".into() }
}

/// What would decide a rule over these groups, of which the tests are undecided; `condition` selects such groups of the study.
pub fn decide<'t>(analysis: &Analysis, groups: &Groups, tests: impl Iterator<Item = &'t RatioTest>, condition: &str) -> Next {
    next(analysis, groups, stats::repetitions_to_decide(tests), || study(analysis, condition))
}

/// What would decide a rule that looks at intervals: where nothing else is missing, as many repetitions again.
pub fn decide_by_interval(analysis: &Analysis, groups: &Groups, condition: &str) -> Next {
    let again = groups.judged.iter().map(|c| c.count()).max();
    next(analysis, groups, again, || study(analysis, condition))
}

/// How many groups have each verdict: `1 of 10 groups gain, 9 lose`. Counts of 0 are left out, the first one excepted if all are.
pub fn tally(all: &str, parts: &[(usize, &str)]) -> String {
    let counted: Vec<&(usize, &str)> = parts.iter().filter(|(n, _)| *n > 0).collect();
    let shown = if counted.is_empty() { parts.iter().take(1).collect() } else { counted };
    let texts = shown.iter().enumerate();
    texts
        .map(|(i, (n, verb))| if i == 0 { format!("{n} of {all} {verb}") } else { format!("{n} {verb}") })
        .collect::<Vec<_>>()
        .join(", ")
}

/// At most three names, each once: `` `a`, `b`, `c` and 2 more ``; empty without any.
pub fn names(all: impl IntoIterator<Item = String>) -> String {
    let mut each: Vec<String> = Vec::new();
    for name in all {
        if !each.contains(&name) {
            each.push(name);
        }
    }
    let shown: Vec<String> = each.iter().take(3).map(|name| format!("`{name}`")).collect();
    let more = if each.len() > 3 { format!(" and {} more", each.len() - 3) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// What ends a finding where something could not be judged: `` Not judged: `a`, `b`.`` after a space; empty if all was.
pub fn not_judged(all: impl IntoIterator<Item = String>) -> String {
    let named = names(all);
    if named.is_empty() { named } else { format!(" Not judged: {named}.") }
}

/// The sentence of a rule about which nothing can be concluded.
pub fn nothing(groups: &Groups, what: &str, none: &str) -> String {
    groups.why_none(what).unwrap_or_else(|| none.to_string())
}

/// Where no group of the campaign has two or more members.
pub const NO_GROUP: &str = "This experiment has no group of two or more training members.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_judged_is_named_once_and_the_rest_counted() {
        let said = |names: &[&str]| not_judged(names.iter().map(|name| name.to_string()));
        assert_eq!(said(&[]), "");
        assert_eq!(said(&["a", "b", "a"]), " Not judged: `a`, `b`.");
        assert_eq!(said(&["a", "b", "c", "d", "e"]), " Not judged: `a`, `b`, `c` and 2 more.");
    }
}
