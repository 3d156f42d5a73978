//! The traces of `report.json`: what was measured of each policy, and by order, so that another report's runs of the same orders can
//! be compared with these.

use std::collections::BTreeMap;

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, OrdersNeeded, RatioToReference, TraceMatrix, verdict_text};
use collo_analysis::words;
use collo_quantity::Key;
use collo_quantity::stats::Quantity;
use collo_quantity::unit::COUNT;
use collo_store::Verdict;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::cell::{properties, quantities};
use super::{Ordered, Quantities};

/// A trace on a number of cards at a scale, under several policies.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct TraceJson {
    pub trace: String,
    /// Digest of its file; null in campaigns of earlier versions.
    pub sha256: Option<String>,
    pub cards: u32,
    /// Arrivals, epochs and the manager's times were divided by this; all times are as measured.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub scale: u32,
    pub tasks: u32,
    /// Seeds of the orders that were measured under any policy.
    pub orders: Vec<u64>,
    /// The label of the policy that the others are compared with.
    pub reference: String,
    /// How the intervals were made; null for one order.
    pub method: Option<String>,
    pub policies: Vec<PolicyJson>,
}

/// A policy with its estimate and its sharing mode.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct PolicyJson {
    /// `magm:sm=80%,free=5GB measured MPS`.
    pub label: String,
    pub policy: String,
    pub estimate: String,
    pub sharing: String,
    /// Runs that its numbers come from.
    pub runs: usize,
    #[schemars(with = "String", extend("enum" = [Verdict::Valid, Verdict::Indicative, Verdict::Discarded].map(words::verdict)))]
    pub validity: String,
    /// Why it is not valid, and which orders were left out.
    pub reasons: Vec<String>,
    /// Means over orders, whose number is `repetitions`: geometric, of counts arithmetic and without an interval.
    #[serde(flatten, deserialize_with = "quantities")]
    #[schemars(schema_with = "of_policies")]
    pub quantities: Quantities,
    /// By quantity: divided by that of the reference within the same orders. Empty for the reference.
    pub ratios: Ordered<PolicyRatioJson>,
    pub by_order: Vec<OrderJson>,
}

/// A quantity of a policy ÷ that of the reference.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct PolicyRatioJson {
    /// Geometric mean over orders, whose number is `repetitions`.
    pub ratio: Quantity,
    /// That both are alike; null without an interval, or if one of both is not valid.
    pub p: Option<f64>,
    /// Corrected for the number of policies.
    pub p_adjusted: Option<f64>,
    /// `better`, `worse`, `same`, `cannot_tell`; null like `p`.
    pub verdict: Option<String>,
    pub text: String,
    /// Orders that would tell, with a power of 80 %; null for one order, or more than a thousand.
    pub orders_needed: Option<usize>,
}

/// A policy in one order.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct OrderJson {
    /// Its seed.
    pub order: u64,
    /// One of `devices`; null if there is one.
    pub device: Option<String>,
    pub runs: usize,
    /// Means over its runs by quantity, in the unit of the name.
    pub values: BTreeMap<String, f64>,
}

fn one() -> u32 {
    1
}

fn of_policies(generator: &mut SchemaGenerator) -> Schema {
    properties(Key::of_traces(), generator)
}

impl TraceJson {
    pub(super) fn of(matrix: &TraceMatrix, analysis: &Analysis) -> TraceJson {
        let file = analysis.campaign.ingredients.get(&format!("traces/{}.toml", matrix.trace));
        TraceJson {
            trace: matrix.trace.clone(),
            sha256: file.map(|ingredient| ingredient.sha256.clone()),
            cards: matrix.cards,
            scale: matrix.scale,
            tasks: matrix.tasks,
            orders: matrix.orders.clone(),
            reference: matrix.reference().name(),
            method: matrix.method.clone(),
            policies: matrix.arms.iter().map(|arm| PolicyJson::of(arm, analysis)).collect(),
        }
    }

    /// `philly-90, 4 cards, scale 1:20`.
    pub fn name(&self) -> String {
        TraceMatrix::called(&self.trace, self.cards, self.scale)
    }
}

impl PolicyJson {
    fn of(arm: &Arm, analysis: &Analysis) -> PolicyJson {
        PolicyJson {
            label: arm.name(),
            policy: arm.policy.clone(),
            estimate: arm.estimate.clone(),
            sharing: arm.sharing.clone(),
            runs: arm.by_order.iter().map(|at| at.repetitions).sum(),
            validity: words::verdict(arm.validity.verdict).into(),
            reasons: arm.validity.reasons.clone(),
            quantities: Key::of_traces().map(|key| (key.name, arm.get(key).cloned())).collect(),
            ratios: Key::of_traces().filter_map(|key| Some((key.name, arm.ratios.get(&key)?.into()))).collect(),
            by_order: arm
                .by_order
                .iter()
                .map(|at| OrderJson {
                    order: at.order.1,
                    device: analysis.devices.are_several().then(|| analysis.devices.all()[at.order.0].label.clone()),
                    runs: at.repetitions,
                    values: at.values.iter().filter(|(_, v)| v.is_finite()).map(|(k, v)| (k.name.to_string(), *v)).collect(),
                })
                .collect(),
        }
    }

    /// Its values of a quantity, by order; the geometric mean where several devices had the same, of counts the arithmetic one.
    pub fn by_order(&self, quantity: &str) -> BTreeMap<u64, f64> {
        let mut each = BTreeMap::<u64, Vec<f64>>::new();
        for at in &self.by_order {
            let value = at.values.get(quantity).copied().filter(|value| value.is_finite());
            each.entry(at.order).or_default().extend(value);
        }
        let is_count = Key::find(quantity).is_some_and(|key| key.unit == COUNT);
        let mean = |of: &[f64]| match is_count || of.iter().any(|value| *value <= 0.0) {
            true => of.iter().sum::<f64>() / of.len() as f64,
            false => (of.iter().map(|value| value.ln()).sum::<f64>() / of.len() as f64).exp(),
        };
        each.into_iter().filter(|(_, of)| !of.is_empty()).map(|(order, of)| (order, mean(&of))).collect()
    }
}

impl From<&RatioToReference> for PolicyRatioJson {
    fn from(r: &RatioToReference) -> Self {
        PolicyRatioJson {
            ratio: r.ratio.clone(),
            p: r.test.as_ref().map(|t| t.p).filter(|p| p.is_finite()),
            p_adjusted: r.test.as_ref().map(|t| t.p_adjusted).filter(|p| p.is_finite()),
            verdict: r.test.as_ref().map(|t| t.verdict.as_str().into()),
            text: verdict_text(r.test.as_ref(), r.needed),
            orders_needed: if let OrdersNeeded::Of(n) = r.needed { Some(n) } else { None },
        }
    }
}
