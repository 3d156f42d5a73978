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
use collo_store::RefusalRecord;
use serde_json::Value as Json;

use super::caveats;

use ColumnKind::{Flag, Number, Text, Whole};

/// A cell of a campaign, or one that was refused.
struct PlannedCell<'a> {
    analysis: &'a Analysis,
    cell: Result<&'a Cell, &'a RefusalRecord>,
}

impl<'a> PlannedCell<'a> {
    /// A value of a cell that was not refused.
    fn of<T: Into<ExportValue>>(&self, value: impl Fn(&'a Cell) -> T) -> ExportValue {
        self.cell.map_or(ExportValue::Absent, |cell| value(cell).into())
    }

    fn axis(&self, name: &str) -> Option<Json> {
        self.cell.ok()?.record.axis(name)
    }
}

type LabelColumn = (&'static str, ColumnKind, fn(&PlannedCell) -> ExportValue);

/// The columns before the quantities.
const LABELS: &[LabelColumn] = &[
    ("experiment", Text, |at| ExportValue::text(&at.analysis.campaign.experiment)),
    ("campaign", Text, |at| ExportValue::text(&at.analysis.campaign.id)),
    ("created_utc", Text, |at| ExportValue::text(&at.analysis.campaign.created_utc)),
    ("device", Text, |at| ExportValue::text(&at.analysis.campaign.device.name)),
    ("device_kind", Text, |at| ExportValue::text(&at.analysis.campaign.device.kind)),
    ("simulated", Flag, |at| at.analysis.campaign.device.simulated.into()),
    ("synthetic", Text, |at| ExportValue::list(&at.analysis.synthetic)),
    ("shortened", Text, |at| ExportValue::list(caveats::shortened(at.analysis))),
    ("campaign_indicative", Text, |at| ExportValue::list(&at.analysis.campaign.indicative)),
    ("cell", Text, |at| at.cell.map_or_else(|refused| refused.cell.as_str(), Cell::name).into()),
    ("sharing", Text, |at| ExportValue::text(at.cell.map_or_else(|refused| &refused.sharing, |cell| &cell.record.sharing))),
    ("degree", Whole, |at| at.of(|cell| cell.record.degree)),
    ("workload", Text, |at| at.axis("workload").and_then(|v| v.as_str().map(String::from)).into()),
    ("batch_size", Whole, |at| at.axis("batch_size").and_then(|v| v.as_u64()).into()),
    ("settings", Text, |at| at.of(settings)),
    ("slots", Text, |at| at.of(|cell| cell.record.slots.clone())),
    ("after_measured", Text, |at| at.of(|cell| cell.record.after_measured.as_str())),
    ("baseline", Flag, |at| at.of(|cell| cell.record.baseline)),
    ("baseline_campaign", Text, |at| at.of(|cell| cell.lender.as_ref().map(|lender| lender.campaign.clone()))),
    ("outcome", Text, |at| at.cell.map_or("refused", Cell::outcome).into()),
    ("outcomes", Text, |at| {
        at.of(|cell| {
            let outcomes = cell.outcomes.iter().filter(|(_, n)| **n > 0);
            ExportValue::list(outcomes.map(|(word, n)| format!("{n} {}", words::outcome(word))))
        })
    }),
    ("repetitions", Whole, |at| at.cell.map_or(0, |cell| cell.count()).into()),
    ("validity", Text, |at| at.cell.map_or("discarded", |cell| cell.verdict().as_str()).into()),
    ("reasons", Text, |at| match at.cell {
        Ok(cell) => ExportValue::list(&cell.validity.reasons),
        Err(refused) => {
            let hint = refused.hint.iter().map(|hint| format!("hint: {hint}"));
            ExportValue::list([refused.reason.clone()].into_iter().chain(hint))
        }
    }),
    ("suspicious", Text, |at| at.of(|cell| ExportValue::list(&cell.suspicious))),
    ("memory_kind", Text, |at| at.of(|cell| cell.memory_kind.map(|kind| kind.as_str()))),
    ("throughput_gain_by", Text, |at| at.of(|cell| GainBy::of(&cell.record).as_str())),
    ("throughput_gain_verdict", Text, |at| at.of(|cell| cell.gain_verdict.as_ref().map(|gain| gain.verdict.as_str()))),
    ("throughput_gain_p_adjusted", Number, |at| at.of(|cell| cell.gain_verdict.as_ref().map(|gain| gain.p_adjusted))),
    ("instance_sm_active_ratio", Text, |at| at.of(instances)),
];

/// One row per cell, in the order of the plan, the refused ones last.
pub fn table(analysis: &Analysis) -> ExportTable {
    let metrics: BTreeSet<&String> = analysis.cells.iter().flat_map(|c| c.metrics.keys()).collect();
    let mut table = labels_only(analysis);
    let of_metrics = metrics.iter().map(|m| format!("metrics.{m}"));
    for name in Key::with(Trait::Cell).map(|key| key.name.to_string()).chain(of_metrics) {
        let ends = [("", Number), ("_low", Number), ("_high", Number), ("_repetitions", Whole)];
        table.heads.extend(ends.map(|(end, kind)| (format!("{name}{end}"), kind)));
    }
    for (row, cell) in table.rows.iter_mut().zip(&analysis.cells) {
        row.extend(Key::with(Trait::Cell).flat_map(|key| values(cell.get(key))));
        row.extend(metrics.iter().flat_map(|name| values(cell.metrics.get(*name))));
    }
    // Cells that were refused have none.
    table.rows.iter_mut().for_each(|row| row.resize(table.heads.len(), ExportValue::Absent));
    table
}

/// The same without the quantities.
pub fn labels_only(analysis: &Analysis) -> ExportTable {
    let refused = analysis.campaign.plan.refusals.iter().map(Err);
    let cells = analysis.cells.iter().map(Ok).chain(refused);
    ExportTable::of(LABELS, cells.map(|cell| PlannedCell { analysis, cell }))
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
    let q = q.filter(|q| q.estimate.is_finite());
    let [estimate, low, high] = ExportValue::with_ends(q);
    [estimate, low, high, q.map(|q| q.n).into()]
}
