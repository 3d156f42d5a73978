//! What a campaign stored, as tables: itself, the quantities of its cells, its runs and their epochs. In: an analysis. Out: rows.

use std::borrow::Cow;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::reading::repetition::Repetition;
use collo_analysis::words;
use collo_guidelines::report_json::table::{ColumnKind, ExportColumn, ExportTable, ExportValue};
use collo_quantity::Key;
use collo_quantity::stats::Quantity;
use collo_quantity::unit::Unit;
use collo_store::EpochRecord;

use super::{caveats, metric_name};

use ColumnKind::{Flag, Number, Text, Whole};

/// One row.
pub fn campaign(analysis: &Analysis) -> ExportTable {
    let columns: &[ExportColumn<&Analysis>] = &[
        ("campaign", Text, |a| ExportValue::text(&a.campaign.id)),
        ("experiment", Text, |a| ExportValue::text(&a.campaign.experiment)),
        ("created_utc", Text, |a| ExportValue::text(&a.campaign.created_utc)),
        ("device", Text, |a| ExportValue::text(&a.campaign.device.name)),
        ("device_kind", Text, |a| ExportValue::text(&a.campaign.device.kind)),
        ("driver", Text, |a| a.campaign.machine.driver.clone().into()),
        ("simulated", Flag, |a| a.campaign.device.simulated.into()),
        ("synthetic", Text, |a| ExportValue::list(&a.synthetic)),
        ("shortened", Text, |a| ExportValue::list(caveats::shortened(a))),
        ("indicative", Text, |a| ExportValue::list(&a.campaign.indicative)),
        ("intervals", Text, |a| a.method.clone().into()),
        ("planned", Whole, |a| a.planned.into()),
        ("experiment_toml", Text, |a| ExportValue::text(&a.campaign.source_toml)),
    ];
    ExportTable::of(columns, [analysis])
}

/// A quantity of a cell, of its device, or of a member.
struct QuantityRow<'a> {
    analysis: &'a Analysis,
    cell: &'a Cell,
    member: Option<usize>,
    name: Cow<'a, str>,
    q: &'a Quantity,
}

/// One row for each quantity of a cell, of its device, and of each member.
pub fn quantities(analysis: &Analysis) -> ExportTable {
    let columns: &[ExportColumn<QuantityRow>] = &[
        ("campaign", Text, |row| ExportValue::text(&row.analysis.campaign.id)),
        ("cell", Text, |row| ExportValue::text(row.cell.name())),
        ("member", Whole, |row| row.member.into()),
        ("quantity", Text, |row| ExportValue::text(row.name.clone())),
        ("estimate", Number, |row| row.q.estimate.into()),
        ("low", Number, |row| row.q.low.into()),
        ("high", Number, |row| row.q.high.into()),
        ("n", Whole, |row| row.q.n.into()),
        ("unit", Text, |row| unit(&row.name).into()),
        ("validity", Text, |row| row.cell.verdict().as_str().into()),
        ("simulated", Flag, |row| row.analysis.campaign.device.simulated.into()),
    ];
    let of_cell = |cell| {
        let row = move |member, name, q| QuantityRow { analysis, cell, member, name, q };
        let own = cell.quantities.iter().map(move |(key, q)| row(None, key.name.into(), q));
        let of_device = cell.metrics.iter().map(move |(name, q)| row(None, metric_name(name), q));
        let members = cell.members.iter().enumerate();
        let of_members =
            members.flat_map(move |(i, m)| m.quantities.iter().map(move |(key, q)| row(Some(i), key.name.into(), q)));
        own.chain(of_device).chain(of_members)
    };
    ExportTable::of(columns, analysis.cells.iter().flat_map(of_cell).filter(|row| row.q.estimate.is_finite()))
}

/// The unit that a value is stored in, which is that of its name.
fn unit(name: &str) -> Option<&'static str> {
    let unit = Key::find(name).map(|key| key.unit).or_else(|| Unit::of(name))?;
    Some(if unit.to_base == 1.0 { unit.base } else { unit.symbol })
}

/// All runs; a value of one that does not count is absent.
pub fn runs(analysis: &Analysis) -> ExportTable {
    let columns: &[ExportColumn<(&Analysis, &Repetition)>] = &[
        ("campaign", Text, |(a, _)| ExportValue::text(&a.campaign.id)),
        ("cell", Text, |(_, r)| ExportValue::text(&r.record().cell.cell)),
        ("repetition", Whole, |(_, r)| r.record().repetition.into()),
        ("block", Whole, |(_, r)| r.record().block.into()),
        ("folder", Text, |(_, r)| ExportValue::text(format!("{}-{}", r.record().cell.slug, r.record().repetition))),
        ("started_utc", Text, |(_, r)| ExportValue::text(&r.record().started_utc)),
        ("outcome", Text, |(_, r)| r.record().outcome.as_str().into()),
        ("why", Text, |(_, r)| {
            let outcome = &r.record().outcome;
            Some(words::outcome_in_full(outcome)).filter(|_| outcome.as_str() != "completed").into()
        }),
        ("validity", Text, |(_, r)| words::verdict(r.validity.verdict).into()),
        ("reasons", Text, |(_, r)| ExportValue::list(&r.validity.reasons)),
        ("launched_ns", Whole, |(_, r)| r.record().timeline.launched_ns.into()),
        ("go_ns", Whole, |(_, r)| r.record().timeline.go_ns.into()),
        ("ended_ns", Whole, |(_, r)| r.record().timeline.ended_ns.into()),
        ("makespan_s", Number, |(_, r)| r.makespan_s.filter(|_| r.counts()).into()),
        ("overlap_ratio", Number, |(_, r)| r.overlap_ratio.filter(|_| r.counts() && r.record().members.len() > 1).into()),
        ("start_skew_s", Number, |(_, r)| r.start_skew_s.filter(|_| r.counts()).into()),
        ("simulated", Flag, |(_, r)| r.record().device.simulated.into()),
    ];
    ExportTable::of(columns, analysis.all_cells().flat_map(|c| &c.repetitions).map(|r| (analysis, r)))
}

/// All epochs as they were stored, each with the verdict on its run: those of discarded runs are there too.
pub fn epochs(analysis: &Analysis) -> ExportTable {
    let columns: &[ExportColumn<(&Analysis, &Repetition, &EpochRecord)>] = &[
        ("campaign", Text, |(a, ..)| ExportValue::text(&a.campaign.id)),
        ("cell", Text, |(_, r, _)| ExportValue::text(&r.record().cell.cell)),
        ("repetition", Whole, |(_, r, _)| r.record().repetition.into()),
        ("member", Whole, |(.., e)| e.member.into()),
        ("epoch", Whole, |(.., e)| e.index.into()),
        ("measured", Flag, |(.., e)| e.measured.into()),
        ("items", Whole, |(.., e)| e.items.into()),
        ("start_ns", Whole, |(.., e)| e.start_ns.into()),
        ("end_ns", Whole, |(.., e)| e.end_ns.into()),
        ("loss", Number, |(.., e)| e.loss.into()),
        ("validity", Text, |(_, r, _)| words::verdict(r.validity.verdict).into()),
        ("simulated", Flag, |(_, r, _)| r.record().device.simulated.into()),
    ];
    let runs = analysis.cells.iter().flat_map(|c| &c.repetitions);
    ExportTable::of(columns, runs.flat_map(|r| r.epochs.iter().map(move |e| (analysis, r, e))))
}
