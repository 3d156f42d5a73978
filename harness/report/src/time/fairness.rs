//! Slowdown of every member: which ones pay for the sharing.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::{Cell, Member};
use collo_figures::chart::{MarkRow, MarkRows, RowScale};
use collo_figures::document::{Block, Section, Table, TableCell};
use collo_figures::draw::{Panel, cut};
use collo_figures::modes::{in_order, mode_label};
use collo_quantity::{Key, number};

use super::pairs;
use crate::parts::absent::{Content, numbers};
use crate::parts::figure::{figure, legend, mark, whiskers};
use crate::parts::panels::{describe, drawn, members};
use crate::parts::values::{finish, label, with_validity};
use crate::report::Report;

/// Mixed groups in one panel, at most.
const ROWS: usize = 20;
/// Panels of mixed groups, one per sharing mode, at most.
const MODES: usize = 6;

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    numbers(analysis)?;
    let groups: Vec<&Cell> = analysis
        .groups()
        .filter(|c| c.record.degree > 1 && !c.serves() && c.members.iter().any(|m| m.get(Key::Slowdown).is_some()))
        .collect();
    if groups.is_empty() && analysis.groups().any(Cell::serves) && analysis.groups().all(Cell::serves) {
        return Err("Every group has a serving member: see Latency for the cost to training members.".into());
    }
    if groups.is_empty() {
        let why = analysis.groups().find_map(|c| c.absent.get(&Key::Slowdown));
        let why = why.map_or_else(
            || "There is no group of two or more members.".to_string(),
            |w| format!("No slowdown can be computed: {w}."),
        );
        return Err(why);
    }
    let all = || groups.iter().flat_map(|c| &c.members).filter_map(|m| m.get(Key::Slowdown));
    let low = all().map(|q| q.low.unwrap_or(q.estimate)).fold(1.0, f64::min);
    let high = all().map(|q| q.high.unwrap_or(q.estimate)).fold(1.0, f64::max);
    let scale = RowScale::Ratios(low, high);
    let limit = analysis.campaign.thresholds.slowdown;
    let text = format!("acceptable up to {}", number::three(limit));
    let mut panels = Vec::new();
    let (workloads, left_out) = drawn(analysis, &|c| groups.iter().any(|g| std::ptr::eq(*g, c)));
    for workload in workloads {
        let rows: Vec<MarkRow> = groups.iter().filter(|c| c.workload() == Some(workload)).map(|c| row(c, true)).collect();
        if !rows.is_empty() {
            let (title, subtitle) = describe(analysis, workload);
            panels.push(panel(title, subtitle, &rows, scale, (limit, &text)));
        }
    }
    let mixed = || groups.iter().filter(|c| c.workload().is_none());
    let all_mixed = mixed().count();
    let modes = in_order(mixed().map(|c| c.record.sharing.as_str()));
    let mut drawn_mixed = 0;
    for mode in modes.iter().take(MODES) {
        let rows: Vec<MarkRow> = mixed().filter(|c| c.record.sharing == *mode).take(ROWS).map(|c| row(c, false)).collect();
        drawn_mixed += rows.len();
        panels.push(panel("mixed groups".into(), mode_label(mode), &rows, scale, (limit, &text)));
    }
    let caption = format!(
        "Epoch time in the group ÷ epoch time alone, one mark per member, in their order. 1: as fast as alone. {}{left_out}{}",
        whiskers(analysis),
        if all_mixed > drawn_mixed {
            format!(" Drawn: {drawn_mixed} of {all_mixed} mixed groups; all are in the table.")
        } else {
            String::new()
        }
    );
    let mut fig = figure(analysis, "slowdown", "Slowdown of each member", panels, caption, table(analysis, &groups));
    fig.legend = legend(groups.iter().copied());
    let guideline = report.guideline("fairness").map(|g| g.finding.clone());
    Ok(Section {
        finding: [guideline, pairs::finding(analysis)].into_iter().flatten().collect::<Vec<_>>().join(" "),
        blocks: pairs::heat(analysis).into_iter().chain([fig]).map(Block::Figure).collect(),
        ..report.judged("fairness")
    })
}

fn row(cell: &Cell, uniform: bool) -> MarkRow {
    let degree = cell.record.degree;
    let label = if uniform { format!("×{degree} {}", mode_label(&cell.record.sharing)) } else { members(cell, false) };
    let label = cut(&label, 24);
    let dots = cell.members.iter().enumerate().filter_map(|(i, m)| {
        let q = m.get(Key::Slowdown)?;
        let what = format!("member {i}, {}: slowdown", m.spec.workload);
        Some(mark(cell, &what, Some(q), 1.0, ""))
    });
    MarkRow { label, marks: dots.collect(), least: 22.0, note: String::new() }
}

fn panel(title: String, subtitle: String, rows: &[MarkRow], scale: RowScale, threshold: (f64, &str)) -> Panel {
    let drawing = MarkRows { caption: "slowdown against running alone", rows, scale, threshold: Some(threshold) }.draw();
    Panel { label: format!("slowdown of each member of {title}"), title, subtitle, drawing }
}

fn table(analysis: &Analysis, groups: &[&Cell]) -> Table {
    let mut table = Table::with(&["cell", "#fairness", "95 % interval", "#ANTT", "members' slowdown"]);
    for cell in groups {
        // Each in its member's place.
        let slowdown = |m: &Member| m.get(Key::Slowdown).map_or_else(|| number::ABSENT.into(), number::with_interval);
        let slowdowns: Vec<String> = cell.members.iter().map(slowdown).collect();
        table.row(vec![
            label(analysis, cell),
            TableCell::text(cell.get(Key::Fairness).map_or_else(String::new, number::estimate)),
            TableCell::text(cell.get(Key::Fairness).map_or_else(String::new, number::bounds)),
            TableCell::text(cell.get(Key::Antt).map_or_else(String::new, number::with_interval)),
            TableCell::text(slowdowns.join(", ")),
        ]);
    }
    with_validity(&mut table, groups.iter().copied());
    finish(analysis, table)
}
