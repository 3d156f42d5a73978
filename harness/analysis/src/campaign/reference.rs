//! Measured values compared with the references of the experiment. In: an analysis. Out: for each reference of this device a verdict.

use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};
use collo_store::Reference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Analysis;

/// A value that the experiment expects of a cell, compared with what was measured.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct ReferenceCheck {
    pub cell: String,
    pub quantity: String,
    /// In the unit of the quantity's name.
    pub value: f64,
    /// The largest relative distance from it, to either side.
    pub tolerance_ratio: f64,
    pub measured: Option<Quantity>,
    /// `unmeasured` if the cell has no usable value, or the campaign no such cell.
    pub verdict: ReferenceVerdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ReferenceVerdict {
    Within,
    Outside,
    /// The cell has no usable value of it, or the campaign no such cell.
    Unmeasured,
}

impl ReferenceVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            ReferenceVerdict::Within => "within",
            ReferenceVerdict::Outside => "outside",
            ReferenceVerdict::Unmeasured => "unmeasured",
        }
    }
}

impl ReferenceCheck {
    fn of(analysis: &Analysis, reference: &Reference) -> Self {
        let cell = analysis.cells.iter().find(|c| c.name() == reference.cell && c.counts());
        let key = Key::find(&reference.quantity);
        let measured = cell.zip(key).and_then(|(c, key)| c.reading(key)).filter(|q| q.estimate.is_finite());
        let (low, high) = reference.bounds();
        let verdict = match measured {
            Some(q) if (low..=high).contains(&q.estimate) => ReferenceVerdict::Within,
            Some(_) => ReferenceVerdict::Outside,
            None => ReferenceVerdict::Unmeasured,
        };
        let Reference { cell, quantity, value, tolerance_ratio, .. } = reference.clone();
        ReferenceCheck { cell, quantity, value, tolerance_ratio, measured: measured.cloned(), verdict }
    }

    /// `` `tiny×2 naive b32`: throughput gain 1.97 ±0.02, outside 2.40 ±5 % ``.
    pub fn text(&self) -> String {
        let key = Key::find(&self.quantity);
        let unit = key.map(|key| key.unit);
        let factor = unit.map_or(1.0, |u| u.factor);
        let symbol = unit.map(|u| u.symbol).filter(|s| !s.is_empty()).map_or_else(String::new, |s| format!(" {s}"));
        let what = key.map_or(self.quantity.as_str(), |key| key.label);
        let tolerance = number::percent_as_written(self.tolerance_ratio);
        let reference = format!("{}{symbol} ±{tolerance}", number::three(self.value * factor));
        match &self.measured {
            Some(q) => {
                let measured = number::scaled(q, factor);
                format!("`{}`: {what} {measured}{symbol}, {} {reference}", self.cell, self.verdict.as_str())
            }
            None => format!("`{}`: {what} was not measured, the reference is {reference}", self.cell),
        }
    }
}

/// The references of this device, in the order of the experiment.
pub(super) fn all(analysis: &Analysis) -> Vec<ReferenceCheck> {
    let campaign = &analysis.campaign;
    campaign.references.iter().filter(|r| r.is_about(&campaign.device.name)).map(|r| ReferenceCheck::of(analysis, r)).collect()
}
