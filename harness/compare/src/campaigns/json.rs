//! A comparison as JSON. In: a comparison. Out: every row with both sides, ratio, interval, p and verdict; what is absent is null.

use collo_analysis::trace::OrdersNeeded;
use collo_quantity::stats::Quantity;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{ComparedCell, ComparedPolicy, Comparison, Only, VerdictGroup, words};
use crate::ratio::between::{CommonVerdict, Source};
use crate::ratio::{Finding, More};
use crate::side::Head;

/// The version of this JSON.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct ComparisonJson<'a> {
    schema: u32,
    left: &'a Head,
    right: &'a Head,
    different_devices: bool,
    threshold: f64,
    method: &'static str,
    judged: usize,
    between: BetweenJson<'a>,
    warnings: &'a [String],
    cells: Vec<ComparedCellJson<'a>>,
    /// Of traces, within orders.
    policies: Vec<ComparedPolicyJson<'a>>,
    only_left: &'a [Only],
    only_right: &'a [Only],
    environment: EnvironmentJson<'a>,
    #[serde(serialize_with = "by_word")]
    counts: Vec<(&'static str, usize)>,
    groups: &'a [VerdictGroup],
    decide: &'a [String],
}

/// What the campaigns differ by although nothing changed.
#[derive(Serialize)]
struct BetweenJson<'a> {
    /// `nights`, `scatter`, or `unknown`: then it is in no interval.
    source: &'static str,
    nights: Option<usize>,
    /// Standard deviation of a cell's ratio, without that of the repetitions.
    sd_ratio: f64,
    common: Option<CommonJson<'a>>,
    mixture: Option<MixtureJson>,
    text: Vec<String>,
}

/// What is taken out of each cell.
#[derive(Serialize)]
struct CommonJson<'a> {
    ratio: &'a Quantity,
    p: f64,
    agree: usize,
    cells: usize,
    verdict: &'static str,
    assumed: bool,
}

#[derive(Serialize)]
struct MixtureJson {
    cells: usize,
    of: usize,
    ratio: f64,
}

#[derive(Serialize)]
struct ComparedCellJson<'a> {
    cell: &'a str,
    left_cell: &'a str,
    sharing: &'a str,
    degree: u64,
    workload: &'a str,
    quantity: &'a str,
    left: Option<&'a Quantity>,
    right: Option<&'a Quantity>,
    ratio: Option<&'a Quantity>,
    /// Beside what all cells have in common: what is judged.
    own_ratio: Option<&'a Quantity>,
    p: Option<f64>,
    p_adjusted: Option<f64>,
    verdict: &'static str,
    text: String,
    reason: Option<&'a str>,
    more_repetitions: Option<usize>,
    more_repetitions_on: Option<&'static str>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct ComparedPolicyJson<'a> {
    trace: &'a str,
    policy: &'a str,
    quantity: &'a str,
    left: Option<&'a Quantity>,
    right: Option<&'a Quantity>,
    /// Orders that both have; `repetitions` of the ratio.
    orders: usize,
    ratio: Option<&'a Quantity>,
    p: Option<f64>,
    p_adjusted: Option<f64>,
    verdict: &'static str,
    text: String,
    reason: Option<&'a str>,
    orders_needed: Option<usize>,
}

#[derive(Serialize)]
struct EnvironmentJson<'a> {
    different: Vec<DifferenceJson<'a>>,
    alike: &'a [String],
}

#[derive(Serialize)]
struct DifferenceJson<'a> {
    name: &'a str,
    left: Option<&'a str>,
    right: Option<&'a str>,
    may_explain: Option<&'static str>,
}

/// Counts as an object.
pub fn by_word<S: Serializer>(counts: &[(&'static str, usize)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().copied())
}

/// The comparison as JSON.
pub fn json(comparison: &Comparison) -> Value {
    let c = comparison;
    let different = c.environment.different.iter().map(|d| DifferenceJson {
        name: &d.name,
        left: d.left.as_deref(),
        right: d.right.as_deref(),
        may_explain: c.may_explain(d),
    });
    serde_json::json!(ComparisonJson {
        schema: SCHEMA,
        left: &c.left,
        right: &c.right,
        different_devices: c.different_devices,
        threshold: c.threshold,
        method: "difference of logarithms, degrees of freedom of the weaker side, 95 % intervals, p by Holm",
        judged: c.family,
        between: between(c),
        warnings: &c.warnings,
        cells: c.rows.iter().map(ComparedCellJson::from).collect(),
        policies: c.policies.iter().map(ComparedPolicyJson::from).collect(),
        only_left: &c.only_left,
        only_right: &c.only_right,
        environment: EnvironmentJson { different: different.collect(), alike: &c.environment.alike },
        counts: c.counts(),
        groups: &c.groups,
        decide: &c.decide,
    })
}

fn between(c: &Comparison) -> BetweenJson<'_> {
    let b = &c.between;
    let common = b.common.as_ref().map(|m| CommonJson {
        ratio: &m.ratio,
        p: m.p,
        agree: m.agree,
        cells: m.cells,
        verdict: match m.verdict {
            CommonVerdict::Better => "better",
            CommonVerdict::Worse => "worse",
            CommonVerdict::CannotTell => "cannot_tell",
        },
        assumed: m.is_assumed,
    });
    let (source, nights) = match b.source {
        Source::Nights(n) => ("nights", Some(n)),
        Source::Scatter => ("scatter", None),
        Source::Unknown => ("unknown", None),
    };
    let mixture = b.mixture.map(|m| MixtureJson { cells: m.cells, of: m.of, ratio: m.ratio });
    let text = words::together(c).into_iter().chain(words::includes(c)).collect();
    BetweenJson { source, nights, sd_ratio: b.sd.exp_m1(), common, mixture, text }
}

impl<'a> From<&'a ComparedPolicy> for ComparedPolicyJson<'a> {
    fn from(line: &'a ComparedPolicy) -> Self {
        ComparedPolicyJson {
            trace: &line.trace,
            policy: &line.policy,
            quantity: line.quantity.name,
            left: line.left.as_ref(),
            right: line.right.as_ref(),
            orders: line.orders,
            ratio: line.ratio.as_ref(),
            p: line.p,
            p_adjusted: line.p_adjusted,
            verdict: line.finding.as_str(),
            text: line.finding.text(),
            reason: if let Finding::NotJudged(why) = &line.finding { Some(why) } else { None },
            orders_needed: match line.finding {
                Finding::CannotTell(More::Orders(OrdersNeeded::Of(n))) => Some(n),
                _ => None,
            },
        }
    }
}

impl<'a> From<&'a ComparedCell> for ComparedCellJson<'a> {
    fn from(row: &'a ComparedCell) -> Self {
        let (more, on) = match row.finding {
            Finding::CannotTell(More::Right(k)) => (Some(k), Some("right")),
            Finding::CannotTell(More::Each(k)) => (Some(k), Some("each")),
            _ => (None, None),
        };
        let reason = match &row.finding {
            Finding::NotJudged(why) | Finding::NoLongerRuns(why) | Finding::RunsNow(why) => Some(why.as_str()),
            _ => None,
        };
        ComparedCellJson {
            cell: &row.label,
            left_cell: row.left_label.as_ref().unwrap_or(&row.label),
            sharing: &row.sharing,
            degree: row.degree,
            workload: &row.workload,
            quantity: &row.quantity,
            left: row.left.as_ref(),
            right: row.right.as_ref(),
            ratio: row.ratio.as_ref(),
            own_ratio: row.own_ratio.as_ref(),
            p: row.p,
            p_adjusted: row.p_adjusted,
            verdict: row.finding.as_str(),
            text: row.finding.text(),
            reason,
            more_repetitions: more,
            more_repetitions_on: on,
            notes: &row.notes,
        }
    }
}
