//! What to do: guidelines stand here (the page prints them from the analysis), then the decision per workload.

use super::common::{nothing, tags};
use super::{Block, Section, Table, TableCell};
use crate::analysis::{Analysis, Cell};
use crate::guideline::knees;
use crate::number;
use crate::stats::{Quantity, Verdict};

pub fn section(analysis: &Analysis) -> Section {
    let mut blocks = Vec::new();
    if nothing(analysis).is_none() && !analysis.workloads().is_empty() {
        blocks.push(Block::Table(decisions(analysis)));
    }
    let finding = nothing(analysis).unwrap_or_default().to_string();
    let what = if analysis.campaign.device.kind == "cpu" { "What to do with these cores" } else { "What to do with this card" };
    Section { id: "summary", title: what, chip: None, finding, blocks }
}

/// Nothing beats one after the other: said with the runner-up.
fn in_turn(note: String) -> TableCell {
    TableCell { mode: "solo".into(), ..TableCell::with_note("in turn", note) }
}

/// Workload against aim: a mode is named only if it beats running in turn by more than the threshold.
fn decisions(analysis: &Analysis) -> Table {
    let within = number::percent(analysis.campaign.thresholds.slowdown - 1.0);
    let mut table = Table::with(&["workload", "most throughput", &format!("slowest member within {within}"), "least energy"]);
    table.caption = "What to run".into();
    table.tags = tags(analysis);
    for workload in analysis.workloads() {
        let (name, what) = super::common::describe(analysis, workload);
        table.row(vec![
            TableCell::with_note(name, what),
            throughput(analysis, workload),
            gentle(analysis, workload),
            energy(analysis, workload),
        ]);
    }
    table
}

fn named(cell: &Cell, quantity: &str, what: &str) -> TableCell {
    let number = cell.get(quantity).map_or_else(String::new, |q| format!("{what} {}", number::with_interval(q)));
    let text = format!("{} ×{}", cell.record.sharing, cell.record.degree);
    TableCell { mode: cell.record.sharing.clone(), ..TableCell::with_note(text, number) }
}

fn throughput(analysis: &Analysis, workload: &str) -> TableCell {
    let gain = |c: &Cell| c.get("throughput_gain").map_or(f64::NEG_INFINITY, |q| q.estimate);
    let all = knees(analysis);
    let here: Vec<_> = all.iter().filter(|k| k.workload == workload).map(|k| k.cell()).collect();
    let better = |c: &&&Cell| c.is_valid() && c.gain_verdict.as_ref().is_some_and(|v| v.verdict == Verdict::Better);
    if let Some(best) = here.iter().filter(better).max_by(|a, b| gain(a).total_cmp(&gain(b))) {
        return named(best, "throughput_gain", "gain");
    }
    match here.iter().max_by(|a, b| gain(a).total_cmp(&gain(b))) {
        Some(next) => {
            let q = next.get("throughput_gain").map_or_else(String::new, number::with_interval);
            in_turn(format!("next: {} ×{}, gain {q}", next.record.sharing, next.record.degree))
        }
        None => TableCell::with_note("–", "no group with an interval"),
    }
}

/// The largest group whose slowest member is surely within the experiment's threshold.
fn gentle(analysis: &Analysis, workload: &str) -> TableCell {
    let limit = analysis.campaign.thresholds.slowdown;
    let slowest = |c: &Cell| {
        let bounds: Option<Vec<f64>> = c.members.iter().map(|m| m.quantities.get("slowdown")?.high).collect();
        bounds.and_then(|b| b.into_iter().reduce(f64::max))
    };
    let groups: Vec<&Cell> = analysis.of_workload(workload).filter(|c| !c.is_solo() && slowest(c).is_some()).collect();
    let fits = |c: &&&Cell| c.is_valid() && slowest(c).is_some_and(|s| s <= limit);
    if let Some(cell) = groups.iter().filter(fits).max_by_key(|c| c.record.degree) {
        return named(cell, "slowdown", "slowdown");
    }
    match groups.iter().min_by_key(|c| c.record.degree) {
        Some(next) => {
            let q = next.get("slowdown").map_or_else(String::new, number::with_interval);
            in_turn(format!("next: {} ×{}, slowdown {q}", next.record.sharing, next.record.degree))
        }
        None => TableCell::with_note("–", "no group with an interval"),
    }
}

fn energy(analysis: &Analysis, workload: &str) -> TableCell {
    let joules = |c: &Cell| c.get("energy_j_per_epoch").cloned();
    let Some(solo) = analysis.solo(workload).and_then(joules) else { return TableCell::with_note("–", "no readable counter") };
    let relevant = 1.0 + analysis.campaign.thresholds.relevant_ratio;
    let saves =
        |q: &Quantity| q.estimate * relevant < solo.estimate && q.high.zip(solo.low).is_some_and(|(high, low)| high < low);
    let groups = analysis.of_workload(workload).filter(|c| c.is_valid() && !c.is_solo());
    let saving: Vec<(&Cell, Quantity)> = groups.filter_map(|c| Some((c, joules(c)?))).filter(|(_, q)| saves(q)).collect();
    match saving.iter().min_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate)) {
        Some((cell, _)) => named(cell, "energy_j_per_epoch", "J per member and epoch"),
        None => in_turn(format!("{} J per epoch", number::with_interval(&solo))),
    }
}
