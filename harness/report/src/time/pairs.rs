//! Interference between workloads: the slowdown of each one beside each other one, one heat map per sharing mode.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::chart::{Field, FieldValue, Heat, HeatNumber};
use collo_figures::document::{Figure, Table, TableCell};
use collo_figures::draw::Panel;
use collo_figures::modes::{in_order, mode_label};
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};
use collo_store::without_mode;

use crate::parts::figure::{failure, figure, legend, told};
use crate::parts::panels::called;
use crate::parts::values::finish;

/// Maximum workloads of a map.
const NAMES: usize = 8;
/// Maximum number of maps.
const MODES: usize = 6;

/// One direction of a pair.
struct Direction<'a> {
    cell: &'a Cell,
    suffers: &'a str,
    causes: &'a str,
    slowdown: Quantity,
}

fn directions(analysis: &Analysis) -> Vec<Direction<'_>> {
    let mut found = Vec::new();
    for cell in analysis.groups().filter(|c| c.members.len() == 2 && !c.serves()) {
        let [a, b] = &cell.record.members[..] else { continue };
        let of = |i: usize| cell.members[i].get(Key::Slowdown).cloned();
        if a.solo == b.solo {
            let both = cell.get(Key::Slowdown).cloned();
            found.extend(both.map(|slowdown| Direction { cell, suffers: &a.solo, causes: &b.solo, slowdown }));
        } else {
            found.extend(of(0).map(|slowdown| Direction { cell, suffers: &a.solo, causes: &b.solo, slowdown }));
            found.extend(of(1).map(|slowdown| Direction { cell, suffers: &b.solo, causes: &a.solo, slowdown }));
        }
    }
    found
}

/// The figure, if two different workloads were paired.
pub fn heat(analysis: &Analysis) -> Option<Figure> {
    let all = directions(analysis);
    if all.iter().all(|d| d.suffers == d.causes) {
        return None;
    }
    let mut solos: Vec<&str> = Vec::new();
    for cell in &analysis.cells {
        for m in &cell.record.members {
            let paired = all.iter().any(|d| d.suffers != d.causes && (d.suffers == m.solo || d.causes == m.solo));
            if paired && !solos.contains(&m.solo.as_str()) {
                solos.push(&m.solo);
            }
        }
    }
    let beyond = solos.len().saturating_sub(NAMES);
    solos.truncate(NAMES);
    let spec = |solo: &str| all.iter().flat_map(|d| &d.cell.record.members).find(|m| m.solo == solo);
    let bare: Vec<&str> = solos.iter().map(|solo| spec(solo).map_or(*solo, |m| m.workload.as_str())).collect();
    let names: Vec<String> = solos.iter().zip(&bare).map(|(solo, name)| called(solo, name, bare.iter().copied())).collect();
    let drawn = || all.iter().filter(|d| solos.contains(&d.suffers) && solos.contains(&d.causes));
    let low = drawn().map(|d| d.slowdown.estimate).fold(1.0, f64::min);
    // Half as long again is dark enough: a single slowdown of 1 % is none.
    let high = drawn().map(|d| d.slowdown.estimate).fold(1.5, f64::max);
    let modes = in_order(drawn().filter(|d| d.suffers != d.causes).map(|d| d.cell.record.sharing.as_str()));
    let more_modes = modes.len().saturating_sub(MODES);
    let panels = modes.iter().take(MODES).map(|mode| {
        let at = |row: &str, column: &str| {
            let who = format!("{} beside {}", without_mode(row), without_mode(column));
            if let Some(here) = drawn().find(|d| d.cell.record.sharing == *mode && d.suffers == row && d.causes == column) {
                let q = &here.slowdown;
                let title = format!("{}\n{who}{}", here.cell.name(), told("slowdown", q, 1.0, ""));
                return Field { value: FieldValue::Number(HeatNumber::of(q)), indicative: !here.cell.is_valid(), title };
            }
            let ran = analysis.groups().find(|c| c.record.sharing == *mode && is_pair(c, row, column));
            unmeasured(ran, row, &who)
        };
        let fields: Vec<Vec<Field>> = solos.iter().map(|row| solos.iter().map(|column| at(row, column)).collect()).collect();
        let heat = Heat {
            sharing: mode,
            caption: "slowdown of",
            over: "… beside",
            rows: &names,
            columns: &names,
            fields: &fields,
            range: (low, high),
            losses: false,
            row: 36.0,
        };
        Panel {
            title: mode_label(mode),
            subtitle: String::new(),
            label: format!("slowdown of each workload beside each other under {mode}"),
            drawing: heat.draw(),
        }
    });
    let mut caption = String::from(
        "Row: the workload slowed down; column: the one beside it; below: the 95 % interval. Darker is slower, on one logarithmic scale for all modes; dashed: no number, because it was not measured or for the reason written there. Diagonal: two copies of one workload. On MIG, the smaller slice itself slows a member down too.",
    );
    if beyond > 0 {
        caption += &format!(" Drawn: the first {NAMES} workloads; {beyond} more are in the table.");
    }
    if more_modes > 0 {
        caption += &format!(" {} more are in the table.", number::count(more_modes, "mode"));
    }
    let panels: Vec<Panel> = panels.collect();
    let mut fig = figure(analysis, "pairs", "Slowdown in pairs", panels, caption, table(analysis, &all));
    fig.legend = legend(drawn().filter(|d| d.suffers != d.causes).map(|d| d.cell));
    Some(fig)
}

/// Whether a cell is the pair of these two.
fn is_pair(cell: &Cell, a: &str, b: &str) -> bool {
    let [first, second] = &cell.record.members[..] else { return false };
    (first.solo == a && second.solo == b) || (first.solo == b && second.solo == a)
}

/// The field of a direction without a slowdown: how its pair ended, why nothing of it counts, or that there was none.
fn unmeasured(cell: Option<&Cell>, suffers: &str, who: &str) -> Field {
    let Some(cell) = cell.filter(|c| c.ran()) else {
        return Field { value: FieldValue::Unmeasured, indicative: false, title: format!("{who}\nnot measured") };
    };
    if let Some(why) = failure(cell) {
        let title = format!("{}\n{who}\n{why}", cell.name());
        return Field { value: FieldValue::Failed(why), indicative: false, title };
    }
    let least = cell.counted().filter_map(|r| r.least_overlap_ratio).reduce(f64::min);
    let of_member = cell.record.members.iter().position(|m| m.solo == suffers);
    // It trained, but no measured epoch of it counts: those with too little company are left out.
    let alone = of_member.is_some_and(|i| cell.counted().all(|r| r.members.get(i).is_none_or(|m| m.epoch_s.is_none())));
    let (short, long) = match least {
        Some(least) if alone => ("too little overlap", format!("too little overlap: {} at least", number::percent(least))),
        _ => ("no slowdown", cell.absent.get(&Key::Slowdown).cloned().unwrap_or_else(|| "no slowdown can be computed".into())),
    };
    Field { value: FieldValue::Unusable(short), indicative: false, title: format!("{}\n{who}\n{long}", cell.name()) }
}

fn table(analysis: &Analysis, all: &[Direction]) -> Table {
    let mut table = Table::with(&["slowdown of", "beside", "sharing", "#slowdown", "95 % interval", "#runs", "validity"]);
    for d in all {
        table.row(vec![
            TableCell::text(without_mode(d.suffers)),
            TableCell::text(without_mode(d.causes)),
            TableCell::text(d.cell.record.sharing.clone()),
            TableCell { sort: Some(d.slowdown.estimate), ..TableCell::text(number::estimate(&d.slowdown)) },
            TableCell { ends: d.slowdown.low.zip(d.slowdown.high), ..TableCell::text(number::bounds(&d.slowdown)) },
            TableCell::text(d.slowdown.n.to_string()),
            TableCell::text(d.cell.verdict().text()),
        ]);
    }
    finish(analysis, table)
}

/// The strongest of them all, in a sentence.
pub fn finding(analysis: &Analysis) -> Option<String> {
    let all = directions(analysis);
    let different = all.iter().filter(|d| d.suffers != d.causes);
    // On slices a member pays for the smaller slice; where others share the whole card, they show who disturbs whom.
    let shared = |d: &&Direction| !d.cell.record.mode.partitioned;
    let rank = |d: &&Direction| (shared(d), d.slowdown.estimate);
    let worst = different.max_by(|a, b| rank(a).0.cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1)))?;
    let back = all.iter().find(|d| d.cell.name() == worst.cell.name() && d.suffers == worst.causes && d.causes == worst.suffers);
    let returned = back.map_or_else(String::new, |d| format!(", which takes {} in return", number::with_interval(&d.slowdown)));
    Some(format!(
        "Of all pairs {} slows down most: {} times as long beside {} under {}{returned}.",
        without_mode(worst.suffers),
        number::with_interval(&worst.slowdown),
        without_mode(worst.causes),
        mode_label(&worst.cell.record.sharing)
    ))
}
