//! Policies of two reports, compared within orders. In: the traces of both sides. Out: for each policy of a trace that both measured
//! one line per quantity, its ratio over the orders that both have, and a verdict. The tasks of an order are the same on both sides,
//! so that what an order has in common cancels; runs of different orders are never compared.

use std::collections::BTreeMap;

use collo_analysis::trace::{OrdersNeeded, gains, shared_variance};
use collo_guidelines::report_json::{PolicyJson, TraceJson};
use collo_quantity::stats::orders::{self, Values};
use collo_quantity::stats::{self, Pool, Quantity, RatioVerdict};
use collo_quantity::{Better, Key, Trait};
use serde::Serialize;

use super::{Only, json};
use crate::ratio::{Finding, More};
use crate::side::ComparedReport;

/// What is compared of a policy, if nobody asks for one quantity.
const KEYS: [Key; 6] = [Key::Total, Key::WaitMean, Key::ExecutionMean, Key::CompletionMean, Key::StretchMean, Key::SiteEnergy];

/// A quantity of a policy on both sides.
#[derive(Debug, Serialize)]
pub struct ComparedPolicy {
    /// `philly-90, 4 cards, scale 1:20`.
    pub trace: String,
    /// `magm:sm=80%,free=5GB MPS`.
    pub policy: String,
    pub quantity: Key,
    /// Means over the orders of each side.
    pub left: Option<Quantity>,
    pub right: Option<Quantity>,
    /// Orders that both have; `repetitions` of the ratio.
    pub orders: usize,
    /// Right ÷ left within these orders.
    pub ratio: Option<Quantity>,
    pub p: Option<f64>,
    /// Corrected for all lines of traces that have a p-value.
    pub p_adjusted: Option<f64>,
    #[serde(flatten, serialize_with = "json::of_policy")]
    pub finding: Finding,
}

/// All policies that both sides have, and those of only one.
#[derive(Debug, Default)]
pub struct ComparedTraces {
    pub lines: Vec<ComparedPolicy>,
    pub only_left: Vec<Only>,
    pub only_right: Vec<Only>,
}

/// A line before its verdict: the values of both sides by order, and why it has none, if so.
struct Line<'a> {
    trace: &'a TraceJson,
    sides: [&'a PolicyJson; 2],
    key: Key,
    values: [Values<u64>; 2],
    not_judged: Option<String>,
}

/// Compare the traces of two sides; `asked` is a quantity of traces, and `withheld` why no number of these sides can be compared.
pub fn compare(
    (left, right): (&ComparedReport, &ComparedReport),
    asked: Option<Key>,
    different_devices: bool,
    withheld: Option<&str>,
    threshold: f64,
) -> ComparedTraces {
    let keys: Vec<Key> = asked.map_or_else(|| KEYS.to_vec(), |key| vec![key]);
    let mut lines = Vec::new();
    for (of_left, of_right) in pairs(left, right) {
        for (l, r) in policies(of_left, of_right) {
            for &key in &keys {
                let values = [l, r].map(|policy| policy.by_order(key.name));
                if values.iter().all(|side| side.is_empty()) {
                    continue;
                }
                let mut line = Line { trace: of_right, sides: [l, r], key, values, not_judged: None };
                line.not_judged = withheld.map(str::to_string).or_else(|| line.reason(of_left, different_devices));
                lines.push(line);
            }
        }
    }
    let only = |own: &ComparedReport, other: &ComparedReport| -> Vec<Only> {
        let of = |trace: &TraceJson| -> Vec<Only> {
            let there: Vec<&PolicyJson> = other.traces.iter().filter(|t| is_same(t, trace)).flat_map(|t| &t.policies).collect();
            let gone = trace.policies.iter().filter(|policy| !there.iter().any(|other| arm(other) == arm(policy)));
            gone.map(|policy| Only { label: format!("{}: {}", trace.name(), policy.label), reason: None }).collect()
        };
        own.traces.iter().flat_map(of).collect()
    };
    ComparedTraces { lines: judged(lines, threshold), only_left: only(left, right), only_right: only(right, left) }
}

fn is_same(a: &TraceJson, b: &TraceJson) -> bool {
    (&a.trace, a.cards, a.scale) == (&b.trace, b.cards, b.scale)
}

/// What is the same on both sides. Whoever has no company may still be measured under two modes.
fn arm(policy: &PolicyJson) -> (&str, &str, &str) {
    (&policy.policy, &policy.estimate, &policy.sharing)
}

fn pairs<'a>(left: &'a ComparedReport, right: &'a ComparedReport) -> impl Iterator<Item = (&'a TraceJson, &'a TraceJson)> {
    right.traces.iter().filter_map(|r| Some((left.traces.iter().find(|l| is_same(l, r))?, r)))
}

fn policies<'a>(left: &'a TraceJson, right: &'a TraceJson) -> impl Iterator<Item = (&'a PolicyJson, &'a PolicyJson)> {
    right.policies.iter().filter_map(|r| Some((left.policies.iter().find(|l| arm(l) == arm(r))?, r)))
}

impl Line<'_> {
    /// Why the line is shown and not judged.
    fn reason(&self, of_left: &TraceJson, different_devices: bool) -> Option<String> {
        let [left, right] = &self.values;
        let common = orders::ratios(right, left).len();
        if of_left.sha256.as_ref().zip(self.trace.sha256.as_ref()).is_some_and(|(l, r)| l != r) {
            return Some("the trace's file differs, so that an order has other tasks".into());
        }
        if different_devices && self.key.has(Trait::OneCard) {
            return Some("different devices: no time and no energy is compared".into());
        }
        let sides = ["left", "right"];
        if let Some(side) = (0..2).find(|i| self.values[*i].is_empty()) {
            return Some(format!("no number on the {}", sides[side]));
        }
        let invalid = (0..2).filter(|i| self.sides[*i].validity != "valid");
        let invalid: Vec<String> = invalid.map(|i| format!("{} {}", self.sides[i].validity, sides[i])).collect();
        if !invalid.is_empty() {
            return Some(invalid.join(", "));
        }
        if orders::has_zero(right, left) {
            return Some("0 in an order, of which there is no ratio".into());
        }
        match common {
            0 => Some("no order in common".into()),
            1 => Some("one order in common carries no interval".into()),
            _ => None,
        }
    }
}

/// Verdicts on all lines together: variances are shared by the lines of one quantity.
fn judged(lines: Vec<Line<'_>>, threshold: f64) -> Vec<ComparedPolicy> {
    let mut variances = BTreeMap::<Key, Vec<stats::Variance>>::new();
    for line in &lines {
        let own = stats::log_moments(&orders::ratios(&line.values[1], &line.values[0])).and_then(|moments| moments.1);
        variances.entry(line.key).or_default().extend(own);
    }
    let pools: BTreeMap<Key, Option<Pool>> = variances.iter().map(|(key, of)| (*key, Pool::fit(of))).collect();
    let pool = |line: &Line| pools.get(&line.key).and_then(Option::as_ref);
    let ratio = |line: &Line| orders::ratio(&line.values[1], &line.values[0], pool(line));
    let ratios: Vec<Option<Quantity>> = lines.iter().map(ratio).collect();
    let judged = |(line, ratio): (&Line, &Option<Quantity>)| {
        ratio.as_ref().filter(|_| line.not_judged.is_none()).map(|ratio| gains(ratio, line.key))
    };
    let judged: Vec<Option<Quantity>> = lines.iter().zip(&ratios).map(judged).collect();
    let tests = stats::compare(&judged, threshold);
    let mut found = Vec::new();
    for ((line, ratio), test) in lines.iter().zip(ratios).zip(tests) {
        let finding = match (&line.not_judged, test.as_ref().map(|test| test.verdict)) {
            (Some(why), _) => Finding::NotJudged(why.clone()),
            (None, None) => Finding::CannotTell(More::OneRun),
            (None, Some(RatioVerdict::Same)) => Finding::Same,
            (None, Some(RatioVerdict::CannotTell { .. })) => {
                let variance = shared_variance(&line.values[1], &line.values[0], pool(line));
                let effect = ratio.as_ref().map_or(1.0, |ratio| ratio.estimate);
                Finding::CannotTell(More::Orders(OrdersNeeded::of(variance, effect, threshold)))
            }
            (None, Some(verdict)) => match (line.key.better, verdict) {
                (Better::Neither, RatioVerdict::Better) => Finding::Lower,
                (Better::Neither, _) => Finding::Higher,
                (_, RatioVerdict::Better) => Finding::Better,
                _ => Finding::Worse,
            },
        };
        found.push(ComparedPolicy {
            trace: line.trace.name(),
            policy: line.sides[1].label.clone(),
            quantity: line.key,
            left: line.mean(0),
            right: line.mean(1),
            orders: orders::ratios(&line.values[1], &line.values[0]).len(),
            ratio,
            p: test.as_ref().map(|test| test.p),
            p_adjusted: test.as_ref().map(|test| test.p_adjusted),
            finding,
        });
    }
    found
}

impl Line<'_> {
    fn mean(&self, side: usize) -> Option<Quantity> {
        self.sides[side].quantities.get(self.key.name)?.clone()
    }
}
