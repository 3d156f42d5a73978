//! Slowdown of every member: who pays for the sharing.

use super::common::{describe, figure, hover, interval, legend, nothing, tags, whiskers, without};
use super::{Block, Section, Table, TableCell};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::plot::{Dot, DotRow, Dots, Panel};

const ID: &str = "fairness";
const TITLE: &str = "Fairness";

pub fn section(analysis: &Analysis) -> Section {
    if let Some(why) = nothing(analysis) {
        return without(ID, TITLE, why);
    }
    let groups: Vec<&Cell> =
        analysis.groups().filter(|c| c.members.iter().any(|m| m.quantities.contains_key("slowdown"))).collect();
    if groups.is_empty() {
        let why = analysis.groups().find_map(|c| c.absent.get("slowdown"));
        let why = why.map_or_else(
            || "There is no group of two or more members.".to_string(),
            |w| format!("No slowdown can be computed: {w}."),
        );
        return without(ID, TITLE, why);
    }
    let all = || groups.iter().flat_map(|c| &c.members).filter_map(|m| m.quantities.get("slowdown"));
    let low = all().map(|q| q.low.unwrap_or(q.estimate)).fold(1.0, f64::min);
    let high = all().map(|q| q.high.unwrap_or(q.estimate)).fold(1.0, f64::max);
    let limit = analysis.campaign.thresholds.slowdown;
    let text = format!("acceptable up to {}", number::three(limit));
    let mut panels = Vec::new();
    for workload in analysis.workloads() {
        let rows: Vec<DotRow> = groups.iter().filter(|c| c.workload() == Some(workload)).map(|c| row(c, true)).collect();
        if !rows.is_empty() {
            let (title, subtitle) = describe(analysis, workload);
            panels.push(panel(title, subtitle, &rows, (low, high), (limit, &text)));
        }
    }
    let mixed: Vec<DotRow> = groups.iter().filter(|c| c.workload().is_none()).map(|c| row(c, false)).collect();
    if !mixed.is_empty() {
        panels.push(panel("mixed groups".into(), String::new(), &mixed, (low, high), (limit, &text)));
    }
    let caption = format!(
        "Epoch time in the group ÷ epoch time alone, one mark per member, in their order. 1: as fast as alone. {}",
        whiskers(analysis)
    );
    let mut fig = figure(analysis, "slowdown", "Slowdown of each member", panels, caption, table(analysis, &groups));
    fig.legend = legend(groups.iter().copied());
    let guideline = analysis.guidelines.iter().find(|g| g.id == "fairness");
    Section {
        id: ID,
        title: TITLE,
        chip: guideline.map(|g| g.verdict),
        finding: guideline.map_or_else(String::new, |g| g.finding.clone()),
        blocks: vec![Block::Figure(fig)],
    }
}

fn row(cell: &Cell, uniform: bool) -> DotRow {
    let degree = cell.record.degree;
    let label = if uniform { format!("×{degree} {}", cell.record.sharing) } else { cell.name().to_string() };
    let label = if label.chars().count() > 24 { format!("{}…", label.chars().take(23).collect::<String>()) } else { label };
    let dots = cell.members.iter().enumerate().filter_map(|(i, m)| {
        let q = m.quantities.get("slowdown")?;
        let what = format!("member {i}, {}: slowdown", m.spec.workload);
        Some(Dot { value: q.estimate, interval: interval(q, 1.0), title: hover(cell, &what, Some(q), 1.0, "") })
    });
    DotRow { label, sharing: cell.record.sharing.clone(), informative: !cell.is_valid(), dots: dots.collect() }
}

fn panel(title: String, subtitle: String, rows: &[DotRow], range: (f64, f64), threshold: (f64, &str)) -> Panel {
    let drawing = Dots { caption: "slowdown against running alone", rows, threshold: Some(threshold), range }.draw();
    Panel { label: format!("slowdown of each member of {title}"), title, subtitle, drawing }
}

fn table(analysis: &Analysis, groups: &[&Cell]) -> Table {
    let mut table = Table::with(&["cell", "#fairness", "95 % interval", "#ANTT", "members' slowdown"]);
    table.tags = tags(analysis);
    for cell in groups {
        let mut label = TableCell::text(cell.name());
        label.link = super::cell_id(analysis, cell.name());
        let slowdowns: Vec<String> =
            cell.members.iter().filter_map(|m| m.quantities.get("slowdown").map(number::with_interval)).collect();
        table.row(vec![
            label,
            TableCell::text(cell.get("fairness").map_or_else(String::new, number::estimate)),
            TableCell::text(cell.get("fairness").map_or_else(String::new, number::bounds)),
            TableCell::text(cell.get("antt").map_or_else(String::new, number::with_interval)),
            TableCell::text(slowdowns.join(", ")),
        ]);
    }
    table
}
