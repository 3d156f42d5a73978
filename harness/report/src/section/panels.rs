//! The workloads that a figure has panels of, and their titles.

use crate::analysis::{Analysis, Cell};
use crate::plot::cut;

/// Maximum characters of the name of a model or a data set: some are whole networks, written out.
const NAME: usize = 40;

/// A workload's name, and in grey its model, data set and batch size.
pub fn describe(analysis: &Analysis, workload: &str) -> (String, String) {
    let cell = analysis.of_workload(workload).next();
    let Some(spec) = cell.and_then(|c| c.record.members.first()) else { return (workload.to_string(), String::new()) };
    let hello = analysis
        .of_workload(workload)
        .flat_map(|c| &c.repetitions)
        .flat_map(|r| &r.record().members)
        .find_map(|m| m.hello.as_ref());
    let text = |path: &str| hello.and_then(|h| h.pointer(path)).and_then(|v| v.as_str()).map(|name| cut(name, NAME));
    let mut parts = Vec::new();
    match (text("/model/name"), text("/dataset/name")) {
        (Some(m), Some(d)) => parts.push(format!("{m} / {d}")),
        (Some(one), None) | (None, Some(one)) => parts.push(one),
        (None, None) => {}
    }
    if let Some(b) = spec.batch_size {
        parts.push(format!("batch {b}"));
    }
    (spec.workload.clone(), parts.join(", "))
}

/// Maximum panels of one figure: a page of hundreds is unreadable.
pub const PANELS: usize = 12;

/// Uniform cells by workload, in the order of the plan.
pub fn by_workload(analysis: &Analysis) -> Vec<(&str, Vec<&Cell>)> {
    let mut places = std::collections::HashMap::<&str, usize>::new();
    let mut found: Vec<(&str, Vec<&Cell>)> = Vec::new();
    for (workload, cell) in analysis.cells.iter().filter_map(|c| Some((c.workload()?, c))) {
        let at = *places.entry(workload).or_insert_with(|| {
            found.push((workload, Vec::new()));
            found.len() - 1
        });
        found[at].1.push(cell);
    }
    found
}

/// The workloads that a figure draws, and the sentence about those that it leaves out.
pub fn drawn<'a>(analysis: &'a Analysis, has: &dyn Fn(&Cell) -> bool) -> (Vec<&'a str>, String) {
    let mut of = by_workload(analysis);
    of.retain(|(_, cells)| cells.iter().any(|c| has(c)));
    let left_out = of.len().saturating_sub(PANELS);
    let said = if left_out == 0 {
        String::new()
    } else {
        format!(" Drawn: the first {PANELS} workloads; {left_out} more are in the cell table or `report.json`.")
    };
    (of.into_iter().take(PANELS).map(|(w, _)| w).collect(), said)
}
