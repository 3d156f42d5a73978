//! The cells of a campaign as a table, one row each. In: an analysis. Out: labels, validity and every quantity with its interval, under
//! the names of `report.json`. Cells that were refused have a row without numbers.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::caveats;
use super::table::{Kind, Table, Value};
use crate::analysis::{Analysis, Cell, GainBy};
use crate::format::words;
use crate::quantity::{self, Trait};
use crate::stats::Quantity;

/// The columns before the quantities.
const LABELS: [(&str, Kind); 28] = [
    ("experiment", Kind::Text),
    ("campaign", Kind::Text),
    ("created_utc", Kind::Text),
    ("device", Kind::Text),
    ("device_kind", Kind::Text),
    ("simulated", Kind::Flag),
    ("synthetic", Kind::Text),
    ("shortened", Kind::Text),
    ("campaign_informative", Kind::Text),
    ("cell", Kind::Text),
    ("sharing", Kind::Text),
    ("degree", Kind::Whole),
    ("workload", Kind::Text),
    ("batch_size", Kind::Whole),
    ("settings", Kind::Text),
    ("slots", Kind::Text),
    ("after_measured", Kind::Text),
    ("baseline", Kind::Flag),
    ("outcome", Kind::Text),
    ("outcomes", Kind::Text),
    ("repetitions", Kind::Whole),
    ("validity", Kind::Text),
    ("reasons", Kind::Text),
    ("suspicious", Kind::Text),
    ("memory_kind", Kind::Text),
    ("throughput_gain_by", Kind::Text),
    ("throughput_gain_verdict", Kind::Text),
    ("throughput_gain_p_adjusted", Kind::Number),
];

/// One row per cell, in the order of the plan, the refused ones last.
pub fn table(analysis: &Analysis) -> Table {
    let metrics: Vec<&String> =
        analysis.cells.iter().flat_map(|c| c.metrics.keys()).collect::<BTreeSet<_>>().into_iter().collect();
    let mut heads: Vec<(String, Kind)> = LABELS.map(|(name, kind)| (name.to_string(), kind)).to_vec();
    let of_metrics = metrics.iter().map(|m| format!("metrics.{m}"));
    for name in quantity::all(Trait::Cell).map(|key| key.name.to_string()).chain(of_metrics) {
        for (end, kind) in [("", Kind::Number), ("_low", Kind::Number), ("_high", Kind::Number), ("_repetitions", Kind::Whole)] {
            heads.push((format!("{name}{end}"), kind));
        }
    }
    let mut rows: Vec<Vec<Value>> = analysis
        .cells
        .iter()
        .map(|cell| {
            let mut row = labels(analysis, cell);
            row.extend(quantity::all(Trait::Cell).flat_map(|key| values(cell.get(key))));
            row.extend(metrics.iter().flat_map(|name| values(cell.metrics.get(*name))));
            row
        })
        .collect();
    let width = heads.len();
    rows.extend(analysis.campaign.plan.refusals.iter().map(|refusal| {
        let mut row = campaign(analysis).to_vec();
        row.extend([Value::text(&refusal.cell), Value::text(&refusal.sharing)]);
        row.resize(width, Value::Absent);
        let hint = refusal.hint.iter().map(|hint| format!("hint: {hint}"));
        for (name, value) in [
            ("outcome", Value::text("refused")),
            ("repetitions", Value::Whole(0)),
            ("validity", Value::text("void")),
            ("reasons", Value::list([refusal.reason.clone()].into_iter().chain(hint))),
        ] {
            if let Some(at) = LABELS.iter().position(|(label, _)| *label == name) {
                row[at] = value;
            }
        }
        row
    }));
    Table { heads, rows }
}

/// The values common to all rows.
fn campaign(analysis: &Analysis) -> [Value; 9] {
    let c = &analysis.campaign;
    [
        Value::text(&c.experiment),
        Value::text(&c.id),
        Value::text(&c.created_utc),
        Value::text(&c.device.name),
        Value::text(&c.device.kind),
        Value::Flag(c.device.simulated),
        Value::list(&analysis.synthetic),
        Value::list(caveats::shortened(analysis)),
        Value::list(&c.informative),
    ]
}

fn labels(analysis: &Analysis, cell: &Cell) -> Vec<Value> {
    let record = &cell.record;
    let axis = |name: &str| record.axis(name).and_then(|v| v.as_str().map(str::to_string));
    let outcomes = cell.outcomes.iter().filter(|(_, n)| **n > 0).map(|(word, n)| format!("{n} {}", words::outcome(word)));
    let mut row = campaign(analysis).to_vec();
    row.extend([
        Value::text(cell.name()),
        Value::text(&record.sharing),
        Value::from(record.degree),
        Value::from(axis("workload")),
        Value::from(record.axis("batch_size").and_then(|v| v.as_u64())),
        Value::text(settings(cell)),
        Value::from(record.slots.clone()),
        Value::text(record.after_measured.word()),
        Value::Flag(record.baseline),
        Value::text(cell.outcome()),
        Value::list(outcomes),
        Value::from(cell.counted.len()),
        Value::text(words::verdict(cell.validity.verdict)),
        Value::list(&cell.validity.reasons),
        Value::list(&cell.suspicious),
        Value::from(cell.memory_kind.map(|k| k.word())),
        Value::text(GainBy::of(record).word()),
        Value::from(cell.gain_verdict.as_ref().map(|g| g.verdict.word())),
        Value::from(cell.gain_verdict.as_ref().map(|g| g.p_adjusted)),
    ]);
    row
}

/// The other settings as JSON: for equal members one object, else a list of one for each.
fn settings(cell: &Cell) -> String {
    let each: Vec<Json> = cell.record.members.iter().map(|m| serde_json::json!(m.settings)).collect();
    match each.first() {
        Some(first) if cell.record.is_uniform() => first.to_string(),
        _ => Json::from(each).to_string(),
    }
}

fn values(q: Option<&Quantity>) -> [Value; 4] {
    match q.filter(|q| q.estimate.is_finite()) {
        Some(q) => [q.estimate.into(), q.low.into(), q.high.into(), q.n.into()],
        None => [Value::Absent, Value::Absent, Value::Absent, Value::Absent],
    }
}
