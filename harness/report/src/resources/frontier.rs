//! Which groups fit: workload and mode down, degree across; mixed groups by mode.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::words;
use collo_figures::chart::{Feasibility, Square, SquareRow, Squares};
use collo_figures::document::{Figure, Table, TableCell};
use collo_figures::draw::{PANELS, Panel};
use collo_figures::modes::{in_order, mode_label};
use collo_quantity::{Key, number};
use collo_store::{Sharing, without_mode};

use crate::parts::figure::{figure as finished, legend_of};
use crate::parts::panels::{by_workload, degrees, describe, members};
use crate::parts::refused;
use crate::parts::values::{finish, label};

/// Maximum columns of one panel: a search tries more degrees than fit beside each other.
const COLUMNS: usize = 16;
/// Maximum mixed groups of one panel.
const GROUPS: usize = 24;

/// The figure, with every cell's result in its table.
pub fn figure(analysis: &Analysis) -> Figure {
    let of = by_workload(analysis);
    let mut panels: Vec<Panel> = of.iter().take(PANELS).map(|(w, cells)| uniform(analysis, w, cells)).collect();
    let (together, beyond) = groups(analysis);
    panels.extend(together);
    let mut caption = String::from(
        "Filled: ran. Pale with ✕: some runs did, others failed. Dashed: not run. ✕ in a solid frame: ran out of memory; grey: refused, or failed otherwise; in a dashed frame: would not fit by the sum of footprints.",
    );
    if of.len() > PANELS {
        caption += &format!(" Drawn: the first {PANELS} of {} workloads.", of.len());
    }
    if beyond > 0 {
        caption += &format!(" {} more are in the table.", number::count(beyond, "mixed group"));
    }
    let mut fig = finished(analysis, "feasibility", "What fits", panels, caption, table(analysis));
    let refused = analysis.campaign.plan.refusals.iter().map(|r| r.sharing.as_str());
    fig.legend = legend_of(analysis.cells.iter().map(|c| c.record.sharing.as_str()).chain(refused));
    fig
}

/// How a cell ended.
fn fit(cell: &Cell) -> Feasibility {
    match cell.outcome() {
        _ if !cell.ran() => Feasibility::NotRun,
        "completed" => Feasibility::Ran,
        // Some repetition completed: it fits, though not every run of it was to the end.
        _ if cell.outcomes.get("completed").is_some_and(|n| *n > 0) => Feasibility::RanPartly,
        "out_of_memory" => Feasibility::RanOut,
        "missing" | "interrupted" => Feasibility::NotRun,
        _ => Feasibility::Failed,
    }
}

/// How it ended, in words.
fn said(cell: &Cell) -> String {
    let all: usize = cell.outcomes.values().sum();
    let completed = cell.outcomes.get("completed").copied().unwrap_or(0);
    match cell.outcome() {
        _ if !cell.ran() => "not run".into(),
        "completed" => "ran".into(),
        other => format!("{}, {completed} of {} completed", words::outcome(other), number::runs(all)),
    }
}

fn square(cell: &Cell) -> Square {
    Square { sharing: cell.record.sharing.clone(), fit: fit(cell), title: format!("{}\n{}", cell.name(), said(cell)) }
}

fn uniform(analysis: &Analysis, workload: &str, cells: &[&Cell]) -> Panel {
    let alone = analysis.solo(workload).and_then(|s| s.get(Key::Memory)).map(|q| q.estimate);
    let capacity = analysis.campaign.device.memory_bytes.map(|b| b as f64);
    let name = cells.first().map_or("", |c| c.record.members[0].workload.as_str());
    let refused = refused::of_workload(analysis, workload, cells);
    let (degrees, _) = degrees(cells.iter().map(|c| c.record.degree).chain(refused.iter().map(|r| r.degree)), COLUMNS);
    let modes = in_order(cells.iter().map(|c| c.record.sharing.as_str()).chain(refused.iter().map(|r| r.sharing)));
    let rows: Vec<SquareRow> = modes
        .iter()
        .map(|mode| {
            let squares = degrees.iter().map(|degree| {
                if let Some(cell) = cells.iter().find(|c| c.record.sharing == *mode && c.record.degree == *degree) {
                    return Some(square(cell));
                }
                let what = format!("{name}×{degree} {mode}");
                let sharing = (*mode).to_string();
                if let Some(r) = refused.iter().find(|r| r.degree == *degree && r.sharing == *mode) {
                    let title = format!("{what}\nrefused: {}", r.reason);
                    return Some(Square { sharing, fit: Feasibility::Refused, title });
                }
                if *degree == 1 || *mode == "solo" {
                    return None;
                }
                let asks = alone.map(|b| b * f64::from(*degree));
                let shared = Sharing::of_label(mode);
                // The footprint of one process is not the sum of what several would need.
                let adds_up = !shared.partitioned && !shared.one_process;
                let too_much = asks.zip(capacity).filter(|(a, c)| a > c && adds_up);
                let (fit, title) = match too_much {
                    Some((asks, has)) => {
                        (Feasibility::TooLarge, format!("{what}\nneeds {}, there are {}", number::gib(asks), number::gib(has)))
                    }
                    None => (Feasibility::NotRun, format!("{what}\nnot run")),
                };
                Some(Square { sharing, fit, title })
            });
            SquareRow { label: mode_label(mode), sharing: (*mode).to_string(), squares: squares.collect() }
        })
        .collect();
    let heads: Vec<String> = degrees.iter().map(|d| format!("×{d}")).collect();
    let (title, subtitle) = describe(analysis, workload);
    let drawing = Squares { caption: "degree", heads: &heads, rows: &rows }.draw();
    Panel { label: format!("which degrees of {title} ran, by sharing mode"), title, subtitle, drawing }
}

/// Mixed groups by mode, and how many were left out.
fn groups(analysis: &Analysis) -> (Option<Panel>, usize) {
    let mut rows: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in analysis.cells.iter().filter(|c| !c.record.is_uniform()) {
        let name = members(cell, false);
        match rows.iter_mut().find(|(n, _)| *n == name) {
            Some((_, cells)) => cells.push(cell),
            None => rows.push((name, vec![cell])),
        }
    }
    if rows.is_empty() {
        return (None, 0);
    }
    let beyond = rows.len().saturating_sub(GROUPS);
    rows.truncate(GROUPS);
    let refusals = &analysis.campaign.plan.refusals;
    // A refused cell is the planned one of another mode, but for the mode in its label.
    let refused = |cells: &[&Cell], mode: &str| {
        let of = |r: &&collo_store::RefusalRecord| {
            r.sharing == mode && cells.iter().any(|c| without_mode(c.name()) == without_mode(&r.cell))
        };
        refusals.iter().find(of)
    };
    let of_refused = refusals.iter().filter(|r| rows.iter().any(|(_, cells)| refused(cells, &r.sharing).is_some()));
    let of_cells = rows.iter().flat_map(|r| &r.1).map(|c| c.record.sharing.as_str());
    let mut modes = in_order(of_cells.chain(of_refused.map(|r| r.sharing.as_str())));
    modes.truncate(COLUMNS);
    let drawn: Vec<SquareRow> = rows
        .iter()
        .map(|(name, cells)| {
            let squares = modes.iter().map(|mode| {
                if let Some(cell) = cells.iter().find(|c| c.record.sharing == *mode) {
                    return Some(square(cell));
                }
                let why = refused(cells, mode)?;
                let title = format!("{}\nrefused: {}", why.cell, why.reason);
                Some(Square { sharing: (*mode).to_string(), fit: Feasibility::Refused, title })
            });
            SquareRow { label: name.clone(), sharing: String::new(), squares: squares.collect() }
        })
        .collect();
    let heads: Vec<String> = modes.iter().map(|m| mode_label(m)).collect();
    let drawing = Squares { caption: "", heads: &heads, rows: &drawn }.draw();
    let label = "which mixed groups ran, by sharing mode".to_string();
    (Some(Panel { title: "mixed groups".into(), subtitle: String::new(), label, drawing }), beyond)
}

/// Every cell with how its runs ended.
fn table(analysis: &Analysis) -> Table {
    let mut table = Table::with(&["cell", "sharing", "#degree", "ended", "#runs"]);
    for cell in &analysis.cells {
        let all: usize = cell.outcomes.values().sum();
        table.row(vec![
            label(analysis, cell),
            TableCell::text(cell.record.sharing.clone()),
            TableCell::text(cell.record.degree.to_string()),
            TableCell::text(said(cell)),
            TableCell::text(all.to_string()),
        ]);
    }
    finish(analysis, table)
}
