//! The cost of watching as a table: one row for each observer of each group. In: an analysis. Out: rows under the names of `report.json`.

use collo_analysis::campaign::Analysis;
use collo_analysis::watching::{WatchedCost, WatchedGroup};
use collo_analysis::words;
use collo_guidelines::report_json::table::{ColumnKind, ExportTable, ExportValue};
use collo_quantity::Key;
use collo_quantity::stats::Quantity;

use ColumnKind::{Flag, Number, Text, Whole};

/// What one row is read from.
struct At<'a> {
    analysis: &'a Analysis,
    group: &'a WatchedGroup,
    row: &'a WatchedCost,
}

type Column = (&'static str, ColumnKind, fn(&At) -> ExportValue);

type WithEnds = (&'static str, for<'a> fn(&At<'a>) -> Option<&'a Quantity>);

/// Before the numbers.
const LABELS: [Column; 14] = [
    ("experiment", Text, |at| ExportValue::text(&at.analysis.campaign.experiment)),
    ("campaign", Text, |at| ExportValue::text(&at.analysis.campaign.id)),
    ("device", Text, |at| ExportValue::text(&at.analysis.campaign.device.name)),
    ("simulated", Flag, |at| at.analysis.campaign.device.simulated.into()),
    ("group", Text, |at| ExportValue::text(&at.group.name)),
    ("observer", Text, |at| ExportValue::text(&at.row.observer)),
    ("place", Text, |at| at.row.place.clone().into()),
    ("profiles", Flag, |at| at.row.profiles.into()),
    ("cell", Text, |at| ExportValue::text(at.analysis.watching.cells[at.row.cell].name())),
    ("repetitions", Whole, |at| at.row.runs.into()),
    ("validity", Text, |at| words::verdict(at.analysis.watching.cells[at.row.cell].validity.verdict).into()),
    ("lost", Whole, |at| at.row.lost.into()),
    ("why_lost", Text, |at| at.row.why_lost.clone().into()),
    ("killed", Whole, |at| at.row.killed.into()),
];

/// With the ends of their intervals.
const QUANTITIES: [WithEnds; 3] = [
    ("epoch_time_s", |at| at.analysis.watching.cells[at.row.cell].get(Key::EpochTime)),
    ("epoch_time_of_none", |at| at.row.ratio.as_ref()),
    ("members_cpu_of_none", |at| at.row.members_cpu_ratio.as_ref()),
];

/// What it took for itself, and how it was judged.
const COSTS: [Column; 10] = [
    ("p_adjusted", Number, |at| at.row.test.as_ref().map(|test| test.p_adjusted).into()),
    ("verdict", Text, |at| at.row.verdict().into()),
    ("cpu_ratio", Number, |at| at.row.cpu_cores.into()),
    ("services_cpu_ratio", Number, |at| at.row.daemons_cpu_cores.into()),
    ("services", Text, |at| ExportValue::list(&at.row.daemons)),
    ("collo_cpu_ratio", Number, |at| at.row.collo_cpu_cores.into()),
    ("memory_bytes", Number, |at| at.row.memory_bytes.into()),
    ("written_bytes", Number, |at| at.row.bytes.into()),
    ("written_bytes_per_hour", Number, |at| at.row.bytes_per_hour.into()),
    ("disturbs", Text, |at| at.row.disturbs.clone().into()),
];

/// A row for each observer, and for `none`.
pub fn table(analysis: &Analysis) -> ExportTable {
    let rows = || {
        let of = |group| move |row| At { analysis, group, row };
        analysis.watching.groups.iter().flat_map(move |group| group.rows.iter().map(of(group)))
    };
    let heads = QUANTITIES.iter().flat_map(|(name, _)| ["", "_low", "_high"].map(|end| (format!("{name}{end}"), Number)));
    let numbers = |at: At| QUANTITIES.iter().flat_map(|(_, get)| ExportValue::with_ends(get(&at))).collect();
    let quantities = ExportTable { heads: heads.collect(), rows: rows().map(numbers).collect() };
    ExportTable::of(&LABELS, rows()).beside(quantities).beside(ExportTable::of(&COSTS, rows()))
}
