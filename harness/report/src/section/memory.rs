//! Memory by member, against what the device has.

use super::common::{describe, failure, figure, hover, informative_note, interval, nothing, values, without};
use super::{Block, Section};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::plot::{Panel, Stack, Stacks, mode_order};

const ID: &str = "memory";
const TITLE: &str = "Memory";

/// Bytes to GiB.
const GIB: f64 = 1.0 / 1073741824.0;

pub fn section(analysis: &Analysis) -> Section {
    if let Some(why) = nothing(analysis) {
        return without(ID, TITLE, why);
    }
    let capacity =
        analysis.campaign.device.memory_bytes.map(|b| (b as f64 * GIB, format!("the device has {}", number::gib(b as f64))));
    let panels =
        panels(analysis, "memory_bytes", "GiB, one segment per member", GIB, capacity.as_ref().map(|(v, t)| (*v, t.as_str())));
    if panels.is_empty() {
        return without(ID, TITLE, "No memory was read: no sample was taken and no peak was kept.");
    }
    let get = |c: &Cell| c.get("memory_bytes").cloned();
    let guideline = analysis.guidelines.iter().find(|g| g.id == "memory-adds-up");
    let mut kinds: Vec<_> = analysis.cells.iter().filter_map(|c| c.memory_kind).map(|k| k.text()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let caption = format!(
        "Each member's peak while it trained, warm-up included, added up: an upper bound of what they held at once. Read as {}. Whiskers: 95 % interval of the sum.{}",
        kinds.join("; or as "),
        informative_note(analysis.cells.iter())
    );
    Section {
        id: ID,
        title: TITLE,
        chip: guideline.map(|g| g.verdict),
        finding: guideline.map_or_else(String::new, |g| g.finding.clone()),
        blocks: vec![Block::Figure(figure(
            analysis,
            "memory",
            "Memory by member",
            panels,
            caption,
            values(analysis, "GiB", &get, GIB),
        ))],
    }
}

/// Panels of stacks, one per workload, from a quantity that members and cells both have.
pub fn panels(analysis: &Analysis, name: &'static str, caption: &str, factor: f64, capacity: Option<(f64, &str)>) -> Vec<Panel> {
    let top = |c: &Cell| c.get(name).map(|q| q.high.unwrap_or(q.estimate) * factor);
    let uniform = || analysis.cells.iter().filter(|c| c.record.is_uniform());
    let largest = uniform().filter_map(top).fold(0.0, f64::max);
    let mut panels = Vec::new();
    for workload in analysis.workloads() {
        let mut cells: Vec<&Cell> = analysis.of_workload(workload).collect();
        if cells.iter().all(|c| c.get(name).is_none()) {
            continue;
        }
        cells.sort_by(|a, b| {
            (a.record.degree, mode_order(&a.record.sharing)).cmp(&(b.record.degree, mode_order(&b.record.sharing)))
        });
        let stacks: Vec<Stack> = cells.iter().map(|c| stack(c, name, factor)).collect();
        let (title, subtitle) = describe(analysis, workload);
        let label = format!("{caption} of {title} by degree and sharing mode");
        panels.push(Panel { title, subtitle, label, drawing: Stacks { caption, stacks: &stacks, capacity, largest }.draw() });
    }
    panels
}

fn stack(cell: &Cell, name: &'static str, factor: f64) -> Stack {
    let q = cell.get(name);
    let segments: Option<Vec<f64>> = cell.members.iter().map(|m| Some(m.quantities.get(name)?.estimate * factor)).collect();
    Stack {
        label: format!("×{}", cell.record.degree),
        sharing: cell.record.sharing.clone(),
        segments: segments.filter(|_| q.is_some()).unwrap_or_default(),
        interval: q.and_then(|q| interval(q, factor)).filter(|(low, high)| high - low > 1e-6 * high),
        failure: failure(cell),
        informative: !cell.is_valid(),
        title: hover(cell, "sum", q, factor, ""),
        text: q.map_or_else(String::new, |q| {
            if factor == GIB { number::gib_number(q.estimate) } else { format!("{:.0}", q.estimate * factor) }
        }),
    }
}
