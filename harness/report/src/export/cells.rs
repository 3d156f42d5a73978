//! The cells of a campaign as a table, one row each. In: an analysis. Out: labels, validity and every quantity with its interval, under
//! the names of `report.json`. Cells that were refused have a row without numbers.

use std::collections::BTreeSet;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::cell::quantities::GainBy;
use collo_analysis::words;
use collo_guidelines::report_json::table::{ColumnKind, ExportTable, ExportValue};
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, Trait};
use serde_json::Value as Json;

use super::caveats;

/// The columns before the quantities.
const LABELS: [(&str, ColumnKind); 30] = [
    ("experiment", ColumnKind::Text),
    ("campaign", ColumnKind::Text),
    ("created_utc", ColumnKind::Text),
    ("device", ColumnKind::Text),
    ("device_kind", ColumnKind::Text),
    ("simulated", ColumnKind::Flag),
    ("synthetic", ColumnKind::Text),
    ("shortened", ColumnKind::Text),
    ("campaign_indicative", ColumnKind::Text),
    ("cell", ColumnKind::Text),
    ("sharing", ColumnKind::Text),
    ("degree", ColumnKind::Whole),
    ("workload", ColumnKind::Text),
    ("batch_size", ColumnKind::Whole),
    ("settings", ColumnKind::Text),
    ("slots", ColumnKind::Text),
    ("after_measured", ColumnKind::Text),
    ("baseline", ColumnKind::Flag),
    ("baseline_campaign", ColumnKind::Text),
    ("outcome", ColumnKind::Text),
    ("outcomes", ColumnKind::Text),
    ("repetitions", ColumnKind::Whole),
    ("validity", ColumnKind::Text),
    ("reasons", ColumnKind::Text),
    ("suspicious", ColumnKind::Text),
    ("memory_kind", ColumnKind::Text),
    ("throughput_gain_by", ColumnKind::Text),
    ("throughput_gain_verdict", ColumnKind::Text),
    ("throughput_gain_p_adjusted", ColumnKind::Number),
    ("instance_sm_active_ratio", ColumnKind::Text),
];

/// One row per cell, in the order of the plan, the refused ones last.
pub fn table(analysis: &Analysis) -> ExportTable {
    let metrics: Vec<&String> =
        analysis.cells.iter().flat_map(|c| c.metrics.keys()).collect::<BTreeSet<_>>().into_iter().collect();
    let mut heads: Vec<(String, ColumnKind)> = LABELS.map(|(name, kind)| (name.to_string(), kind)).to_vec();
    let of_metrics = metrics.iter().map(|m| format!("metrics.{m}"));
    for name in Key::with(Trait::Cell).map(|key| key.name.to_string()).chain(of_metrics) {
        for (end, kind) in [
            ("", ColumnKind::Number),
            ("_low", ColumnKind::Number),
            ("_high", ColumnKind::Number),
            ("_repetitions", ColumnKind::Whole),
        ] {
            heads.push((format!("{name}{end}"), kind));
        }
    }
    let mut rows: Vec<Vec<ExportValue>> = analysis
        .cells
        .iter()
        .map(|cell| {
            let mut row = labels(analysis, cell);
            row.extend(Key::with(Trait::Cell).flat_map(|key| values(cell.get(key))));
            row.extend(metrics.iter().flat_map(|name| values(cell.metrics.get(*name))));
            row
        })
        .collect();
    let width = heads.len();
    rows.extend(analysis.campaign.plan.refusals.iter().map(|refusal| {
        let mut row = campaign(analysis).to_vec();
        row.extend([ExportValue::text(&refusal.cell), ExportValue::text(&refusal.sharing)]);
        row.resize(width, ExportValue::Absent);
        let hint = refusal.hint.iter().map(|hint| format!("hint: {hint}"));
        for (name, value) in [
            ("outcome", ExportValue::text("refused")),
            ("repetitions", ExportValue::Whole(0)),
            ("validity", ExportValue::text("discarded")),
            ("reasons", ExportValue::list([refusal.reason.clone()].into_iter().chain(hint))),
        ] {
            if let Some(at) = LABELS.iter().position(|(label, _)| *label == name) {
                row[at] = value;
            }
        }
        row
    }));
    ExportTable { heads, rows }
}

/// The same without the quantities.
pub fn labels_only(analysis: &Analysis) -> ExportTable {
    let mut table = table(analysis);
    table.heads.truncate(LABELS.len());
    table.rows.iter_mut().for_each(|row| row.truncate(LABELS.len()));
    table
}

/// The values common to all rows.
fn campaign(analysis: &Analysis) -> [ExportValue; 9] {
    let c = &analysis.campaign;
    [
        ExportValue::text(&c.experiment),
        ExportValue::text(&c.id),
        ExportValue::text(&c.created_utc),
        ExportValue::text(&c.device.name),
        ExportValue::text(&c.device.kind),
        ExportValue::Flag(c.device.simulated),
        ExportValue::list(&analysis.synthetic),
        ExportValue::list(caveats::shortened(analysis)),
        ExportValue::list(&c.indicative),
    ]
}

fn labels(analysis: &Analysis, cell: &Cell) -> Vec<ExportValue> {
    let record = &cell.record;
    let axis = |name: &str| record.axis(name).and_then(|v| v.as_str().map(str::to_string));
    let outcomes = cell.outcomes.iter().filter(|(_, n)| **n > 0).map(|(word, n)| format!("{n} {}", words::outcome(word)));
    let mut row = campaign(analysis).to_vec();
    row.extend([
        ExportValue::text(cell.name()),
        ExportValue::text(&record.sharing),
        ExportValue::from(record.degree),
        ExportValue::from(axis("workload")),
        ExportValue::from(record.axis("batch_size").and_then(|v| v.as_u64())),
        ExportValue::text(settings(cell)),
        ExportValue::from(record.slots.clone()),
        ExportValue::text(record.after_measured.as_str()),
        ExportValue::Flag(record.baseline),
        ExportValue::from(cell.lender.as_ref().map(|l| l.campaign.clone())),
        ExportValue::text(cell.outcome()),
        ExportValue::list(outcomes),
        ExportValue::from(cell.counted.len()),
        ExportValue::text(cell.verdict().as_str()),
        ExportValue::list(&cell.validity.reasons),
        ExportValue::list(&cell.suspicious),
        ExportValue::from(cell.memory_kind.map(|k| k.as_str())),
        ExportValue::text(GainBy::of(record).as_str()),
        ExportValue::from(cell.gain_verdict.as_ref().map(|g| g.verdict.as_str())),
        ExportValue::from(cell.gain_verdict.as_ref().map(|g| g.p_adjusted)),
        instances(cell),
    ]);
    row
}

/// SM activity of the instance of each member, each in its place; absent if none was read.
fn instances(cell: &Cell) -> ExportValue {
    let each: Vec<Option<f64>> = (0..cell.members.len()).map(|i| Some(cell.on_instance(i)?.0)).collect();
    match each.iter().any(Option::is_some) {
        true => ExportValue::list(each.iter().map(|share| share.map_or_else(String::new, |share| format!("{share:.4}")))),
        false => ExportValue::list(std::iter::empty::<String>()),
    }
}

/// The other settings as JSON: for equal members one object, else a list of one for each.
fn settings(cell: &Cell) -> String {
    let each: Vec<Json> = cell.record.members.iter().map(|m| serde_json::json!(m.settings)).collect();
    match each.first() {
        Some(first) if cell.record.is_uniform() => first.to_string(),
        _ => Json::from(each).to_string(),
    }
}

fn values(q: Option<&Quantity>) -> [ExportValue; 4] {
    match q.filter(|q| q.estimate.is_finite()) {
        Some(q) => [q.estimate.into(), q.low.into(), q.high.into(), q.n.into()],
        None => [ExportValue::Absent, ExportValue::Absent, ExportValue::Absent, ExportValue::Absent],
    }
}
