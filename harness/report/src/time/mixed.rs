//! Mixed groups: makespan and energy compared with running in turn, and which members pay.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::cell::quantities::GainBy;
use collo_figures::chart::{MarkRow, MarkRows, RowMark, RowScale, row_height};
use collo_figures::document::{Block, Section, Table, TableCell};
use collo_figures::draw::Panel;
use collo_figures::modes::mode_order;
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};

use crate::parts::absent::{Content, numbers};
use crate::parts::figure::{failure, figure, interval, legend_with, mark, whiskers};
use crate::parts::panels::members;
use crate::parts::values::{finish, label};

/// Maximum groups in one figure.
const GROUPS: usize = 16;

/// Cells with the same members.
struct MixedGroup<'a> {
    label: String,
    cells: Vec<&'a Cell>,
}

pub fn section(analysis: &Analysis) -> Content {
    let mixed: Vec<&Cell> = analysis.groups().filter(|c| !c.record.is_uniform() && !c.serves()).collect();
    if mixed.is_empty() && analysis.groups().any(Cell::serves) {
        return Err("Every mixed group has a serving member, which never finishes: see Latency.".into());
    }
    if mixed.is_empty() {
        return Err("There is no mixed group in this experiment.".into());
    }
    numbers(analysis)?;
    let groups = groups(&mixed);
    Ok(Section { finding: finding(&mixed), blocks: vec![plots(analysis, &groups)], ..Section::default() })
}

fn groups<'a>(mixed: &[&'a Cell]) -> Vec<MixedGroup<'a>> {
    let solos = |c: &Cell| {
        let mut all: Vec<String> = c.record.members.iter().map(|m| m.solo.clone()).collect();
        all.sort_unstable();
        all
    };
    let mut found: Vec<MixedGroup> = Vec::new();
    for cell in mixed {
        match found.iter_mut().find(|g| solos(g.cells[0]) == solos(cell)) {
            Some(group) => group.cells.push(cell),
            None => found.push(MixedGroup { label: members(cell, false), cells: vec![cell] }),
        }
    }
    let names: Vec<String> = found.iter().map(|g| g.label.clone()).collect();
    for group in &mut found {
        if names.iter().filter(|n| **n == group.label).count() > 1 {
            group.label = members(group.cells[0], true);
        }
        group.cells.sort_by(|a, b| mode_order(&a.record.sharing).cmp(&mode_order(&b.record.sharing)));
    }
    found
}

/// The sum of the members' solo makespans, with the interval resulting from those of the terms; `None` if no baseline is of the
/// origin of all these cells.
fn in_turn(analysis: &Analysis, cells: &[&Cell]) -> Option<Quantity> {
    let solo = |label: &str| analysis.solo_beside(cells.iter().flat_map(|c| c.counted()), label)?.get(Key::Makespan).cloned();
    let members = &cells.first()?.record.members;
    let each: Vec<(&str, Quantity)> = members.iter().map(|m| Some((m.solo.as_str(), solo(&m.solo)?))).collect::<Option<_>>()?;
    let estimate: f64 = each.iter().map(|(_, q)| q.estimate).sum();
    // The same baseline counts as often as it has copies, and errs alike for all of them.
    let mut squares = 0.0;
    let mut known = true;
    for (i, (solo, q)) in each.iter().enumerate().filter(|(i, (s, _))| !each[..*i].iter().any(|(before, _)| before == s)) {
        let copies = each[i..].iter().filter(|(s, _)| s == solo).count() as f64;
        match q.low.zip(q.high) {
            Some((low, high)) => squares += (copies * (high - low) / 2.0).powi(2),
            None => known = false,
        }
    }
    let half = squares.sqrt();
    let n = each.iter().map(|(_, q)| q.n).min().unwrap_or(0);
    let (low, high) = if known { (Some(estimate - half), Some(estimate + half)) } else { (None, None) };
    Some(Quantity { estimate, low, high, n, df: Some(f64::INFINITY).filter(|_| known) })
}

/// Time ÷ time in turn; for groups that all keep training, per unit of work.
fn of_turn(cell: &Cell) -> Option<Quantity> {
    cell.get(Key::ThroughputGain).map(Quantity::inverse)
}

/// The figure; if nothing can be drawn, the table alone.
fn plots(analysis: &Analysis, groups: &[MixedGroup]) -> Block {
    let drawn = &groups[..groups.len().min(GROUPS)];
    let all = || drawn.iter().flat_map(|g| &g.cells);
    let longest = all().filter_map(|c| c.get(Key::Makespan)).map(|q| q.estimate).fold(0.0, f64::max);
    let (factor, unit) = if longest > 300.0 { (1.0 / 60.0, "minutes") } else { (1.0, "seconds") };
    let release = all().all(|c| GainBy::of(&c.record) == GainBy::Makespan);
    let mut panels = Vec::new();
    if release {
        let rows: Vec<MarkRow> = drawn.iter().map(|g| levels(analysis, g, factor)).collect();
        let drawing = MarkRows { caption: unit, rows: &rows, scale: RowScale::Bars, threshold: None }.draw();
        panels.push(Panel {
            title: "Makespan".into(),
            subtitle: String::new(),
            label: "makespan of each mixed group by sharing mode, in turn first".into(),
            drawing,
        });
    }
    let time = if release { "Makespan ÷ in turn" } else { "Time per work ÷ in turn" };
    panels.extend(ratios(drawn, time, "left of 1: less time", &of_turn));
    panels.extend(ratios(drawn, "Energy ÷ in turn", "left of 1: less energy", &|c| c.get(Key::EnergyOfSolo).cloned()));
    if panels.is_empty() {
        return Block::Table(table(analysis, groups, factor, unit));
    }
    let mut caption = String::from(if release {
        "In turn: the members' makespans alone, added up. The left panel starts at zero; those of ratios do not, and mark 1."
    } else {
        "All members train throughout, so the ratio is one over the summed progress (STP). The axes mark 1 and need no zero."
    });
    caption += &format!(" {}", whiskers(analysis));
    if groups.len() > drawn.len() {
        caption += &format!(" Drawn: the first {GROUPS} of {} groups; all are in the table.", groups.len());
    }
    let mut fig =
        figure(analysis, "mixed", "Mixed groups against running in turn", panels, caption, table(analysis, groups, factor, unit));
    let mut modes = if release { vec!["solo"] } else { Vec::new() };
    modes.extend(all().map(|c| c.record.sharing.as_str()));
    fig.legend = legend_with(modes.into_iter(), "in turn");
    Block::Figure(fig)
}

fn levels(analysis: &Analysis, group: &MixedGroup, factor: f64) -> MarkRow {
    let in_turn = in_turn(analysis, &group.cells).map(|q| RowMark {
        sharing: "solo".into(),
        value: Some(q.estimate * factor),
        interval: interval(&q, factor),
        title: format!("{} in turn\nmakespan {}", group.label, number::scaled(&q, factor)),
        ..RowMark::default()
    });
    let groups = group.cells.iter().map(|cell| mark(cell, "makespan", cell.get(Key::Makespan), factor, ""));
    MarkRow { label: group.label.clone(), marks: in_turn.into_iter().chain(groups).collect(), ..MarkRow::default() }
}

fn ratios(groups: &[MixedGroup], title: &str, caption: &str, get: &dyn Fn(&Cell) -> Option<Quantity>) -> Option<Panel> {
    let row = |g: &MixedGroup| {
        let failed = g.cells.iter().filter_map(|c| Some(format!("{}: {}", c.record.sharing, failure(c)?)));
        let failed: Vec<String> = failed.collect();
        let marks: Vec<RowMark> = g.cells.iter().filter_map(|c| Some(mark(c, title, Some(&get(c)?), 1.0, ""))).collect();
        let note = if marks.is_empty() && failed.is_empty() { "not measured".into() } else { failed.join(", ") };
        MarkRow { label: g.label.clone(), marks, least: row_height(g.cells.len() + 1), note }
    };
    let rows: Vec<MarkRow> = groups.iter().map(row).collect();
    let all = || rows.iter().flat_map(|r| &r.marks).filter_map(|m| Some((m.value?, m.interval)));
    let low = all().map(|(value, interval)| interval.map_or(value, |i| i.0)).reduce(f64::min)?;
    let high = all().map(|(value, interval)| interval.map_or(value, |i| i.1)).reduce(f64::max)?;
    let drawing = MarkRows { caption, rows: &rows, scale: RowScale::Ratios(low, high), threshold: None }.draw();
    Some(Panel {
        title: title.into(),
        subtitle: String::new(),
        label: format!("{title} of each mixed group by sharing mode"),
        drawing,
    })
}

fn table(analysis: &Analysis, groups: &[MixedGroup], factor: f64, unit: &str) -> Table {
    let makespan = format!("#makespan, {unit}");
    let mut table =
        Table::with(&["cell", &makespan, "#÷ in turn", "#gain", "by", "#energy ÷ in turn", "members' slowdown", "validity"]);
    for cell in groups.iter().flat_map(|g| &g.cells) {
        let q = |key: Key| cell.get(key).map_or_else(String::new, number::with_interval);
        let slowdowns: Vec<String> = cell
            .members
            .iter()
            .filter_map(|m| Some(format!("{} {}", m.spec.workload, number::with_interval(m.get(Key::Slowdown)?))))
            .collect();
        let by = match GainBy::of(&cell.record) {
            GainBy::Makespan => "serial ÷ makespan",
            GainBy::Progress => "Σ progress (STP)",
            GainBy::EpochTime => "epoch time",
        };
        let why = cell.absent.get(&Key::Slowdown).cloned().unwrap_or_default();
        table.row(vec![
            label(analysis, cell),
            TableCell::text(
                cell.get(Key::Makespan).map_or_else(|| failure(cell).unwrap_or_default(), |q| number::scaled(q, factor)),
            ),
            TableCell::text(of_turn(cell).map_or_else(String::new, |q| number::with_interval(&q))),
            TableCell::text(q(Key::ThroughputGain)),
            TableCell::text(by),
            TableCell::text(q(Key::EnergyOfSolo)),
            TableCell::text(if slowdowns.is_empty() { why } else { slowdowns.join(", ") }),
            TableCell::text(cell.verdict().text()),
        ]);
    }
    finish(analysis, table)
}

/// The best and the worst mix.
fn finding(mixed: &[&Cell]) -> String {
    let mut known: Vec<(&Cell, Quantity)> = mixed.iter().filter_map(|c| Some((*c, of_turn(c)?))).collect();
    known.sort_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
    let said = |(cell, q): &(&Cell, Quantity)| {
        format!("`{}` takes {} times as long as its members one after another", cell.name(), number::with_interval(q))
    };
    match &known[..] {
        [] => "No mixed group can be compared with running in turn.".into(),
        [only] => format!("{}.", said(only)),
        [first, .., last] => format!("{}, {}.", said(first), said(last)),
    }
}
