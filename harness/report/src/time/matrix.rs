//! The gain of every workload by mode and degree: the first figure of the page.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::words::capital;
use collo_figures::chart::{Field, FieldValue, HIGH, Heat, HeatNumber};
use collo_figures::document::{Figure, Table, TableCell};
use collo_figures::draw::Panel;
use collo_figures::modes::{in_order, mode_and_degree, mode_label};
use collo_quantity::{Key, number};

use crate::parts::figure::{failure, figure, hover, indicative_note, legend, tags};
use crate::parts::notes::in_turn;
use crate::parts::panels::{by_workload, called, degrees};
use crate::parts::refused::{self, Refused};

/// Maximum workloads, and maximum degrees of a panel.
const ROWS: usize = 24;
const COLUMNS: usize = 7;
/// Rows up to which each has room for its intervals, and the height of a row where there are more.
const FEW_ROWS: usize = 12;
const LOW: f64 = 26.0;
/// Maximum number of panels, one for each mode.
const MODES: usize = 6;

/// In the place of a gain: there is nothing to compare with.
const NO_BASELINE: &str = "no baseline";

/// One row: a workload, its groups of equal members, and those that were refused.
struct MatrixRow<'a> {
    name: String,
    cells: Vec<&'a Cell>,
    refused: Vec<Refused<'a>>,
}

/// The figure, if a group of equal members that train has run.
pub fn of(analysis: &Analysis) -> Option<Figure> {
    let shared = |c: &&Cell| c.record.degree > 1 && !c.serves();
    let all: Vec<(&str, Vec<&Cell>)> = by_workload(analysis).into_iter().filter(|(_, cells)| cells.iter().any(shared)).collect();
    let beyond = all.len().saturating_sub(ROWS);
    let names: Vec<&str> = all.iter().map(|(_, cells)| cells[0].record.members[0].workload.as_str()).collect();
    let rows: Vec<MatrixRow> = all
        .iter()
        .zip(&names)
        .take(ROWS)
        .map(|((workload, cells), name)| MatrixRow {
            name: called(workload, name, names.iter().copied()),
            cells: cells.iter().copied().filter(shared).collect(),
            refused: refused::of_workload(analysis, workload, cells),
        })
        .collect();
    let measured = rows.iter().flat_map(|r| &r.cells).filter_map(|c| c.get(Key::ThroughputGain));
    // Twice the work is dark enough: one small gain would else look like a large one.
    let most = measured.map(|q| q.estimate).fold(2.0, f64::max);
    if rows.iter().flat_map(|r| &r.cells).all(|c| !c.ran()) {
        return None;
    }
    let refused = rows.iter().flat_map(|r| &r.refused).map(|r| r.degree).filter(|d| *d > 1);
    let (degrees, thinned) = degrees(rows.iter().flat_map(|r| &r.cells).map(|c| c.record.degree).chain(refused), COLUMNS);
    let refused = rows.iter().flat_map(|r| &r.refused).filter(|r| r.degree > 1).map(|r| r.sharing);
    let modes = in_order(rows.iter().flat_map(|r| &r.cells).map(|c| c.record.sharing.as_str()).chain(refused));
    let more_modes = modes.len().saturating_sub(MODES);
    let names: Vec<String> = rows.iter().map(|r| r.name.clone()).collect();
    let columns: Vec<String> = degrees.iter().map(|d| format!("×{d}")).collect();
    let panels = modes.iter().take(MODES).map(|mode| {
        let fields: Vec<Vec<Field>> = rows.iter().map(|row| degrees.iter().map(|d| field(row, mode, *d)).collect()).collect();
        let heat = Heat {
            sharing: mode,
            caption: "",
            over: "degree",
            rows: &names,
            columns: &columns,
            fields: &fields,
            range: (1.0, most),
            losses: true,
            row: if rows.len() <= FEW_ROWS { HIGH } else { LOW },
        };
        Panel {
            title: mode_label(mode),
            subtitle: "× running in turn".into(),
            label: format!("throughput gain of each workload by degree under {mode}"),
            drawing: heat.draw(),
        }
    });
    let is_loss = |c: &&Cell| c.get(Key::ThroughputGain).is_some_and(|q| q.estimate < 1.0);
    let mut caption = String::from(
        "Work per second compared with running the members in turn: above 1 sharing pays; darker gains more, on one scale; below, where there is room, the 95 % interval. ✕ OOM: ran out of memory; refused: cannot run here; dashed: not measured.",
    );
    if rows.iter().flat_map(|r| &r.cells).any(is_loss) {
        caption += " Plum: below 1, a loss.";
    }
    caption += &in_turn(analysis).map_or_else(String::new, |how| format!(" In turn means {how}."));
    caption += indicative_note(rows.iter().flat_map(|r| &r.cells).copied());
    let lacking = rows.iter().flat_map(|r| &r.cells).find_map(|c| c.no_baseline.as_deref());
    caption += &lacking.map_or_else(String::new, |why| format!(" {}.", capital(why)));
    for lender in analysis.lenders() {
        caption += &format!(" Some gains are relative to baselines of campaign {}.", lender.short_id());
    }
    if beyond > 0 {
        caption += &format!(" Drawn: the first {ROWS} workloads; {beyond} more are in the table of all cells.");
    }
    if thinned > 0 {
        caption += " Degrees in the middle are left out; all are under Throughput gain.";
    }
    if more_modes > 0 {
        caption += &format!(" {} more are under Throughput gain.", number::count(more_modes, "mode"));
    }
    let panels: Vec<Panel> = panels.collect();
    let values = table(analysis, &rows, &modes, &degrees);
    let mut fig = figure(analysis, "gain-by-mode", "Throughput gain by mode and degree", panels, caption, values);
    fig.legend = legend(rows.iter().flat_map(|r| &r.cells).copied());
    Some(fig)
}

/// The same as a table: a row for each workload, a column for each mode and degree that some workload has.
fn table(analysis: &Analysis, rows: &[MatrixRow], modes: &[&str], degrees: &[u32]) -> Table {
    let places = modes.iter().flat_map(|mode| degrees.iter().map(move |d| (*mode, *d)));
    let known = |(mode, d): &(&str, u32)| rows.iter().any(|row| field(row, mode, *d).value != FieldValue::Unmeasured);
    let places: Vec<(&str, u32)> = places.filter(known).collect();
    let mut heads = vec!["workload".to_string()];
    heads.extend(places.iter().map(|(mode, d)| format!("#{} ×{d}", mode_label(mode))));
    let mut table = Table::with(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for row in rows {
        let mut cells = vec![TableCell::text(row.name.clone())];
        cells.extend(places.iter().map(|(mode, d)| match field(row, mode, *d).value {
            FieldValue::Number(HeatNumber { value, text, bounds }) => {
                TableCell { note: bounds, ..TableCell::number(text, value) }
            }
            FieldValue::Failed(why) => TableCell::text(why),
            FieldValue::Refused => TableCell::text("refused"),
            FieldValue::Unusable(why) => TableCell::text(why),
            FieldValue::Unmeasured => TableCell::default(),
        }));
        table.row(cells);
    }
    let indicative = |row: &MatrixRow| -> Vec<String> {
        let pale = places.iter().filter(|(mode, d)| field(row, mode, *d).indicative);
        pale.map(|(mode, d)| mode_and_degree(mode, u64::from(*d))).collect()
    };
    // The figure draws these pale.
    if rows.iter().any(|row| !indicative(row).is_empty()) {
        table.columns.push("indicative".into());
        for (printed, row) in table.rows.iter_mut().zip(rows) {
            printed.cells.push(TableCell::text(indicative(row).join(", ")));
        }
    }
    table.tags = tags(analysis);
    table
}

fn field(row: &MatrixRow, mode: &str, degree: u32) -> Field {
    let what = || format!("{}×{degree} {}", row.name, mode_label(mode));
    if let Some(cell) = row.cells.iter().find(|c| c.record.sharing == mode && c.record.degree == degree) {
        let gain = cell.get(Key::ThroughputGain);
        let mut title = hover(cell, "gain", gain, 1.0, "");
        let value = match (gain, failure(cell)) {
            (Some(q), _) => FieldValue::Number(HeatNumber::of(q)),
            (None, Some(why)) => FieldValue::Failed(why),
            (None, None) if !cell.counts() => FieldValue::Unmeasured,
            (None, None) => {
                if let Some(why) = cell.absent.get(&Key::ThroughputGain) {
                    title += &format!("\n{why}");
                }
                FieldValue::Unusable(if cell.no_baseline.is_some() { NO_BASELINE } else { "not comparable" })
            }
        };
        return Field { value, indicative: !cell.is_valid() && cell.counts(), title };
    }
    match row.refused.iter().find(|r| r.sharing == mode && r.degree == degree) {
        Some(r) => Field { value: FieldValue::Refused, indicative: false, title: format!("{}\nrefused: {}", what(), r.reason) },
        None => Field { value: FieldValue::Unmeasured, indicative: false, title: format!("{}\nnot measured", what()) },
    }
}
