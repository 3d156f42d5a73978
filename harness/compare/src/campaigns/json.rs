//! How the parts of a comparison are written as JSON. In: counts, verdicts. Out: fields; what is absent is null.

use collo_analysis::trace::OrdersNeeded;
use serde::Serializer;
use serde_json::{Value, json};

use crate::ratio::{Finding, More};

/// The version of this JSON.
pub const SCHEMA: u32 = 1;

/// How intervals and verdicts are made.
pub const METHOD: &str = "difference of logarithms, degrees of freedom of the weaker side, 95 % intervals, p by Holm";

/// Counts as an object.
pub fn by_word<S: Serializer>(counts: &[(&'static str, usize)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(counts.iter().copied())
}

/// The verdict on a cell as fields beside its numbers.
pub fn of_cell<S: Serializer>(finding: &Finding, to: S) -> Result<S::Ok, S::Error> {
    let (more, on) = match finding {
        Finding::CannotTell(More::Right(k)) => (Some(k), Some("right")),
        Finding::CannotTell(More::Each(k)) => (Some(k), Some("each")),
        _ => (None, None),
    };
    to.collect_map(verdict(finding).into_iter().chain([("more_repetitions", json!(more)), ("more_repetitions_on", json!(on))]))
}

/// The verdict on a policy as fields beside its numbers.
pub fn of_policy<S: Serializer>(finding: &Finding, to: S) -> Result<S::Ok, S::Error> {
    let needed = if let Finding::CannotTell(More::Orders(OrdersNeeded::Of(n))) = finding { Some(n) } else { None };
    to.collect_map(verdict(finding).into_iter().chain([("orders_needed", json!(needed))]))
}

fn verdict(finding: &Finding) -> [(&'static str, Value); 3] {
    let reason = match finding {
        Finding::NotJudged(why) | Finding::NoLongerRuns(why) | Finding::RunsNow(why) => Some(why),
        _ => None,
    };
    [("verdict", json!(finding.as_str())), ("text", json!(finding.text())), ("reason", json!(reason))]
}
