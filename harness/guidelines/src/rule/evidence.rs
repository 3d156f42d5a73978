//! The numbers behind a guideline.

use collo_analysis::cell::Cell;
use collo_quantity::stats::Quantity;
use collo_quantity::unit::{BYTE, COUNT, RATIO, SECOND, SHARE, Unit};
use collo_quantity::{Key, number};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A number behind a guideline: a quantity of a cell, or its ratio to that of another one, or to what was `predicted`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Evidence {
    pub cell: String,
    /// If the value is of one member: its index, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<usize>,
    /// If the value is a ratio: the cell in its denominator, or `PREDICTED`.
    pub against: Option<String>,
    #[schemars(with = "String")]
    pub quantity: Key,
    #[schemars(with = "Option<Quantity>")]
    pub value: Quantity,
    #[schemars(range(min = 1))]
    repetitions: usize,
}

/// All evidence but that of quantities which only another version of collo knows.
pub(super) fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Evidence>, D::Error> {
    let listed = Vec::<Value>::deserialize(deserializer)?;
    let is_known = |one: &Value| one["quantity"].as_str().is_none_or(|name| Key::find(name).is_some());
    listed.into_iter().filter(is_known).map(|one| serde_json::from_value(one).map_err(D::Error::custom)).collect()
}

impl Evidence {
    pub fn new(cell: impl Into<String>, against: Option<String>, quantity: Key, value: Quantity) -> Evidence {
        Evidence { cell: cell.into(), member: None, against, quantity, repetitions: value.n, value }
    }

    /// A cell's quantity as evidence.
    pub fn of(cell: &Cell, quantity: Key) -> Option<Evidence> {
        let value = cell.reading(quantity)?.clone();
        Some(Evidence::new(cell.name(), None, quantity, value))
    }

    /// A quantity of a member of a cell as evidence.
    pub fn of_member(cell: &Cell, index: usize, quantity: Key) -> Option<Evidence> {
        let value = cell.members.get(index)?.get(quantity)?.clone();
        Some(Evidence { member: Some(index), ..Evidence::new(cell.name(), None, quantity, value) })
    }

    /// A ratio of two cells as evidence.
    pub fn between(cell: &Cell, against: &Cell, quantity: Key, value: Quantity) -> Evidence {
        Evidence::new(cell.name(), Some(against.name().to_string()), quantity, value)
    }

    /// The same number as one that was picked from `n` for its value.
    pub fn picked_from(self, n: usize) -> Evidence {
        Evidence { value: collo_analysis::cell::quantities::capped(self.quantity, self.value.picked_from(n)), ..self }
    }

    /// The cell, or a member of it, or both of a ratio.
    pub fn name(&self) -> String {
        match (&self.against, self.member) {
            (Some(other), _) => format!("{} ÷ {other}", self.cell),
            (None, Some(member)) => format!("{}, member {member}", self.cell),
            (None, None) => self.cell.clone(),
        }
    }

    /// The value on its own: ratios to 1 as `5.35×`, shares of a GPU in percent, bytes in GiB.
    pub fn to_text(&self) -> String {
        match self.unit() {
            SHARE => number::share(self.value.estimate),
            SECOND => number::duration(self.value.estimate),
            BYTE => number::gib(self.value.estimate),
            COUNT => number::factor(self.value.estimate),
            _ => format!("{}×", number::estimate(&self.value)),
        }
    }

    /// Its interval in the same unit; without one, in brackets, how many runs it is from.
    pub fn bounds(&self) -> String {
        if self.value.low.is_none() || self.value.high.is_none() {
            return format!("({})", number::runs(self.value.n));
        }
        let text = match self.unit() {
            SHARE => number::share,
            SECOND => number::duration,
            BYTE => number::gib_number,
            _ => return number::bounds(&self.value),
        };
        match (self.value.low, self.value.high) {
            (Some(low), Some(high)) => format!("[{}, {}]", text(low), text(high)),
            _ => number::bounds(&self.value),
        }
    }

    /// The unit of the quantity; for two cells a ratio.
    fn unit(&self) -> Unit {
        if self.against.is_some() { RATIO } else { self.quantity.unit }
    }
}
