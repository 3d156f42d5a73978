//! Mixed groups: makespan against running in turn, and who pays.

use super::common::{nothing, tags, without};
use super::{Block, Section, Table, TableCell};
use crate::analysis::{Analysis, Cell, GainBy};
use crate::number;
use crate::render::words;

const ID: &str = "mixed";
const TITLE: &str = "Mixed workloads";

pub fn section(analysis: &Analysis) -> Section {
    let mixed: Vec<&Cell> = analysis.groups().filter(|c| !c.record.is_uniform()).collect();
    if mixed.is_empty() {
        return without(ID, TITLE, "There is no mixed group in this experiment.");
    }
    if let Some(why) = nothing(analysis) {
        return without(ID, TITLE, why);
    }
    let mut table = Table::with(&["cell", "#makespan s", "#against in turn", "by", "members' slowdown", "validity"]);
    table.caption = "Makespan of each mixed group, and its ratio to running its members one after another".into();
    table.tags = tags(analysis);
    for cell in &mixed {
        let mut label = TableCell::text(cell.name());
        label.link = super::cell_id(analysis, cell.name());
        let q = |name: &str| cell.get(name).map_or_else(String::new, number::with_interval);
        let slowdowns: Vec<String> = cell
            .members
            .iter()
            .filter_map(|m| Some(format!("{} {}", m.spec.workload, number::with_interval(m.quantities.get("slowdown")?))))
            .collect();
        let by = match GainBy::of(&cell.record) {
            GainBy::Makespan => "serial ÷ makespan",
            GainBy::Progress => "Σ progress (STP)",
            GainBy::EpochTime => "epoch time",
        };
        let why = cell.absent.get("slowdown").cloned().unwrap_or_default();
        table.row(vec![
            label,
            TableCell::text(q("makespan_s")),
            TableCell::text(q("throughput_gain")),
            TableCell::text(by),
            TableCell::text(if slowdowns.is_empty() { why } else { slowdowns.join(", ") }),
            TableCell::text(words::verdict(cell.validity.verdict)),
        ]);
    }
    Section { id: ID, title: TITLE, chip: None, finding: finding(&mixed), blocks: vec![Block::Table(table)] }
}

fn finding(mixed: &[&Cell]) -> String {
    let gain = |c: &&&Cell| c.get("throughput_gain").map_or(f64::NEG_INFINITY, |q| q.estimate);
    let known = mixed.iter().filter(|c| c.get("throughput_gain").is_some());
    match known.max_by(|a, b| gain(a).total_cmp(&gain(b))).and_then(|c| Some((c, c.get("throughput_gain")?))) {
        Some((cell, q)) => {
            format!(
                "The best mix, `{}`, does {} times the work per second of running in turn.",
                cell.name(),
                number::with_interval(q)
            )
        }
        None => "No mixed group can be held against running in turn.".into(),
    }
}
