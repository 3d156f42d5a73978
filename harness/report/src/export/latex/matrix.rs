//! The gains of a workload by mode and degree: a table for each workload. In: an analysis. Out: its floats.

use std::fmt::Write;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::words;
use collo_figures::draw::latex::escape;
use collo_figures::modes::{in_order, mode_label};
use collo_quantity::Key;

use super::name_of;
use super::text::{name, value};
use crate::export::caveats;
use crate::parts::panels::degrees;

/// More degrees than that are no table of a paper: those in the middle are in the table of all cells.
const DEGREES: usize = 8;
/// More tables than that are no table of a paper: the rest is in the table of all cells.
const WORKLOADS: usize = 16;

/// The tables; none for a campaign without groups of equal members.
pub fn tables(analysis: &Analysis) -> String {
    let shared = |c: &&Cell| c.record.degree > 1 && !c.serves();
    let with_groups =
        analysis.workloads().into_iter().map(|w| (w, analysis.of_workload(w).filter(shared).collect::<Vec<&Cell>>()));
    let all: Vec<(&str, Vec<&Cell>)> = with_groups.filter(|(_, cells)| !cells.is_empty()).collect();
    let mut out = String::new();
    for (workload, cells) in all.iter().take(WORKLOADS) {
        out.push_str(&table(analysis, workload, cells));
    }
    if all.len() > WORKLOADS {
        let _ = writeln!(out, "% {} more workloads have no table of their own", all.len() - WORKLOADS);
    }
    out
}

fn table(analysis: &Analysis, workload: &str, cells: &[&Cell]) -> String {
    let (degrees, left_out) = degrees(cells.iter().map(|c| c.record.degree), DEGREES);
    let modes = in_order(cells.iter().map(|c| c.record.sharing.as_str()));
    let tags = caveats::tags(analysis);
    let mut said = format!("{}: throughput gain over running in turn by mode and number of members", name_of(analysis, workload));
    if !tags.is_empty() {
        let _ = write!(said, " ({})", tags.join(", "));
    }
    let _ = write!(said, "; {}, campaign {}; ±: 95 % interval", analysis.campaign.device.text(), analysis.campaign.id);
    if left_out > 0 {
        let _ = write!(said, "; {} in the middle left out", collo_quantity::number::count(left_out, "degree"));
    }
    let indicative = cells.iter().any(|c| c.counts() && !c.is_valid());
    let noted = if indicative { "; \\textsuperscript{i} indicative: shown, supports no conclusion" } else { "" };
    let label = name(&format!("{}-{}", analysis.campaign.experiment, name_of(analysis, workload)));
    let mut rows = vec![("mode".to_string(), degrees.iter().map(u32::to_string).collect())];
    for mode in modes {
        let of_degree = |degree: &u32| {
            let found = cells.iter().find(|c| c.record.sharing == mode && c.record.degree == *degree);
            found.map_or_else(|| "--".into(), |cell| field(cell))
        };
        rows.push((escape(&mode_label(mode)), degrees.iter().map(of_degree).collect()));
    }
    super::floats(&format!("{}{noted}", escape(&said)), &format!("gain-{label}"), rows)
}

fn field(cell: &Cell) -> String {
    let mark = if cell.is_valid() { "" } else { "\\textsuperscript{i}" };
    match cell.get(Key::ThroughputGain) {
        Some(q) => value(q, 1.0) + mark,
        None if !cell.counts() && cell.outcome() != "completed" => escape(&words::outcome(cell.outcome())),
        None => "--".into(),
    }
}
