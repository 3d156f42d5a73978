//! The report as an SQLite database: a table for each kind of thing, quantities one per row. In: an analysis. Out: the bytes of
//! the file. Absent is NULL, and every table has `simulated`.

use collo_analysis::campaign::Analysis;
use collo_analysis::reading::repetition::Repetition;
use collo_analysis::words;
use collo_guidelines::report_json::table::{ColumnKind, ExportTable, ExportValue};
use collo_quantity::Key;
use collo_quantity::stats::Quantity;
use collo_quantity::unit::Unit;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::{caveats, cells, observers, traces};
use crate::{Error, Result};

use ColumnKind::{Flag, Number, Text, Whole};

/// `PRAGMA user_version`.
const SCHEMA: i64 = 1;

type Heads = &'static [(&'static str, ColumnKind)];

/// The database.
pub fn database(analysis: &Analysis) -> Result<Vec<u8>> {
    let wrong = |e: rusqlite::Error| Error::Database(e.to_string());
    let mut to = Connection::open_in_memory().map_err(wrong)?;
    let tables = [
        ("campaign", campaign(analysis)),
        ("cells", cells::labels_only(analysis)),
        ("quantities", quantities(analysis)),
        ("runs", runs(analysis)),
        ("epochs", epochs(analysis)),
        ("policies", traces::policies(analysis)),
        ("tasks", traces::tasks(analysis)),
        ("attempts", traces::attempts(analysis)),
        ("observers", observers::table(analysis)),
    ];
    let transaction = to.transaction().map_err(wrong)?;
    for (name, table) in tables {
        write(&transaction, name, table).map_err(wrong)?;
    }
    transaction.commit().map_err(wrong)?;
    to.pragma_update(None, "user_version", SCHEMA).map_err(wrong)?;
    Ok(to.serialize("main").map_err(wrong)?.to_vec())
}

/// Names of tables and columns are ours; a value is never part of a statement.
fn write(to: &Connection, name: &str, table: ExportTable) -> rusqlite::Result<()> {
    let kind = |kind: ColumnKind| match kind {
        Text => "TEXT",
        Number => "REAL",
        Whole => "INTEGER",
        // SQLite has no booleans: 0 and 1 (https://www.sqlite.org/datatype3.html, 2.1).
        Flag => "INTEGER",
    };
    let columns: Vec<String> = table.heads.iter().map(|(name, k)| format!("\"{name}\" {}", kind(*k))).collect();
    to.execute(&format!("CREATE TABLE {name} ({})", columns.join(", ")), [])?;
    let places = vec!["?"; columns.len()].join(", ");
    let mut insert = to.prepare(&format!("INSERT INTO {name} VALUES ({places})"))?;
    for row in table.rows {
        insert.execute(params_from_iter(row.into_iter().map(value)))?;
    }
    Ok(())
}

fn value(value: ExportValue) -> Value {
    match value {
        ExportValue::Absent => Value::Null,
        ExportValue::Text(text) => Value::Text(text),
        ExportValue::Number(number) => Value::Real(number),
        ExportValue::Whole(whole) => Value::Integer(whole),
        ExportValue::Flag(flag) => Value::Integer(flag.into()),
    }
}

fn table(heads: Heads, rows: Vec<Vec<ExportValue>>) -> ExportTable {
    ExportTable { heads: heads.iter().map(|(name, kind)| (name.to_string(), *kind)).collect(), rows }
}

fn campaign(analysis: &Analysis) -> ExportTable {
    let c = &analysis.campaign;
    let heads: Heads = &[
        ("campaign", Text),
        ("experiment", Text),
        ("created_utc", Text),
        ("device", Text),
        ("device_kind", Text),
        ("driver", Text),
        ("simulated", Flag),
        ("synthetic", Text),
        ("shortened", Text),
        ("indicative", Text),
        ("intervals", Text),
        ("planned", Whole),
        ("experiment_toml", Text),
    ];
    let row = vec![
        ExportValue::text(&c.id),
        ExportValue::text(&c.experiment),
        ExportValue::text(&c.created_utc),
        ExportValue::text(&c.device.name),
        ExportValue::text(&c.device.kind),
        c.machine.driver.clone().into(),
        c.device.simulated.into(),
        ExportValue::list(&analysis.synthetic),
        ExportValue::list(caveats::shortened(analysis)),
        ExportValue::list(&c.indicative),
        analysis.method.into(),
        analysis.planned.into(),
        ExportValue::text(&c.source_toml),
    ];
    table(heads, vec![row])
}

/// One row for each quantity of a cell, of its device, and of each member.
fn quantities(analysis: &Analysis) -> ExportTable {
    let heads: Heads = &[
        ("campaign", Text),
        ("cell", Text),
        ("member", Whole),
        ("quantity", Text),
        ("estimate", Number),
        ("low", Number),
        ("high", Number),
        ("n", Whole),
        ("unit", Text),
        ("validity", Text),
        ("simulated", Flag),
    ];
    let c = &analysis.campaign;
    let mut rows = Vec::new();
    for cell in &analysis.cells {
        let mut row = |member: Option<usize>, name: &str, q: &Quantity| {
            if q.estimate.is_finite() {
                rows.push(vec![
                    ExportValue::text(&c.id),
                    ExportValue::text(cell.name()),
                    member.into(),
                    name.into(),
                    q.estimate.into(),
                    q.low.into(),
                    q.high.into(),
                    q.n.into(),
                    unit(name).into(),
                    cell.verdict().as_str().into(),
                    c.device.simulated.into(),
                ]);
            }
        };
        cell.quantities.iter().for_each(|(key, q)| row(None, key.name, q));
        cell.metrics.iter().for_each(|(name, q)| row(None, name, q));
        for (i, member) in cell.members.iter().enumerate() {
            member.quantities.iter().for_each(|(key, q)| row(Some(i), key.name, q));
        }
    }
    table(heads, rows)
}

/// The unit that a value is stored in, which is that of its name.
fn unit(name: &str) -> Option<&'static str> {
    let unit = Key::find(name).map(|key| key.unit).or_else(|| Unit::of(name))?;
    Some(if unit.to_base == 1.0 { unit.base } else { unit.symbol })
}

fn runs(analysis: &Analysis) -> ExportTable {
    let heads: Heads = &[
        ("campaign", Text),
        ("cell", Text),
        ("repetition", Whole),
        ("block", Whole),
        ("folder", Text),
        ("started_utc", Text),
        ("outcome", Text),
        ("why", Text),
        ("validity", Text),
        ("reasons", Text),
        ("launched_ns", Whole),
        ("go_ns", Whole),
        ("ended_ns", Whole),
        ("makespan_s", Number),
        ("overlap_ratio", Number),
        ("start_skew_s", Number),
        ("simulated", Flag),
    ];
    let row = |r: &Repetition| {
        let record = r.record();
        let counts = |value: Option<f64>| value.filter(|_| r.counts());
        vec![
            ExportValue::text(&analysis.campaign.id),
            ExportValue::text(&record.cell.cell),
            record.repetition.into(),
            record.block.into(),
            ExportValue::text(format!("{}-{}", record.cell.slug, record.repetition)),
            ExportValue::text(&record.started_utc),
            record.outcome.as_str().into(),
            Some(words::outcome_in_full(&record.outcome)).filter(|_| record.outcome.as_str() != "completed").into(),
            words::verdict(r.validity.verdict).into(),
            ExportValue::list(&r.validity.reasons),
            record.timeline.launched_ns.into(),
            record.timeline.go_ns.into(),
            record.timeline.ended_ns.into(),
            counts(r.makespan_s).into(),
            counts(r.overlap_ratio.filter(|_| record.members.len() > 1)).into(),
            counts(r.start_skew_s).into(),
            record.device.simulated.into(),
        ]
    };
    table(heads, analysis.all_cells().flat_map(|c| &c.repetitions).map(row).collect())
}

/// All epochs as they were stored; those of discarded runs too, which their run says.
fn epochs(analysis: &Analysis) -> ExportTable {
    let heads: Heads = &[
        ("campaign", Text),
        ("cell", Text),
        ("repetition", Whole),
        ("member", Whole),
        ("epoch", Whole),
        ("measured", Flag),
        ("items", Whole),
        ("start_ns", Whole),
        ("end_ns", Whole),
        ("loss", Number),
        ("simulated", Flag),
    ];
    let mut rows = Vec::new();
    for r in analysis.cells.iter().flat_map(|c| &c.repetitions) {
        for e in &r.epochs {
            rows.push(vec![
                ExportValue::text(&analysis.campaign.id),
                ExportValue::text(&r.record().cell.cell),
                r.record().repetition.into(),
                e.member.into(),
                e.index.into(),
                e.measured.into(),
                e.items.into(),
                e.start_ns.into(),
                e.end_ns.into(),
                e.loss.into(),
                r.record().device.simulated.into(),
            ]);
        }
    }
    table(heads, rows)
}
