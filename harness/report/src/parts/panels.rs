//! The workloads and degrees that a figure has room for, and their names.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::draw::{PANELS, cut};
use collo_figures::modes;
use collo_quantity::number;
use collo_store::without_mode;

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

/// A workload as people call it: by its name alone, with its settings if several of all those named together share it. In: its label,
/// its name, and the names of all, its own included.
pub fn called<'a>(workload: &str, name: &str, all: impl Iterator<Item = &'a str>) -> String {
    if all.filter(|other| *other == name).count() > 1 { without_mode(workload) } else { name.to_string() }
}

/// `MPS ×7`: a cell among those of one workload.
pub fn mode_and_degree(cell: &Cell) -> String {
    modes::mode_and_degree(&cell.record.sharing, cell.record.degree.into())
}

/// Each degree once in their order, at most so many, and how many were left out in the middle: both ends say most, how it begins and
/// what still fits.
pub fn degrees(all: impl Iterator<Item = u32>, most: usize) -> (Vec<u32>, usize) {
    let mut degrees: Vec<u32> = all.collect();
    degrees.sort_unstable();
    degrees.dedup();
    let left_out = degrees.len().saturating_sub(most);
    for _ in 0..left_out {
        degrees.remove(degrees.len() / 2);
    }
    (degrees, left_out)
}

/// The section of a sweep over launches, whose points other figures leave out.
pub const SWEEP: &str = "What the metrics see";

/// Uniform cells by workload, in the order of the plan, without the points of a sweep, which have a figure of their own.
pub fn by_workload(analysis: &Analysis) -> Vec<(&str, Vec<&Cell>)> {
    let mut places = std::collections::HashMap::<&str, usize>::new();
    let mut found: Vec<(&str, Vec<&Cell>)> = Vec::new();
    for (workload, cell) in analysis.cells.iter().filter_map(|c| Some((c.workload()?, c))).filter(|(w, _)| !analysis.is_swept(w))
    {
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
    let said = said + &swept(analysis);
    (of.into_iter().take(PANELS).map(|(w, _)| w).collect(), said)
}

/// The sentence of a figure that leaves the points of a sweep out.
fn swept(analysis: &Analysis) -> String {
    let swept = analysis.launches().len();
    if swept == 0 { String::new() } else { format!(" {} of a sweep are drawn in {SWEEP}.", number::count(swept, "point")) }
}

/// `small×3 + large`; with batch sizes if two groups would have the same name.
pub fn members(cell: &Cell, full: bool) -> String {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for m in &cell.record.members {
        let name = if full { without_mode(&m.solo) } else { m.workload.clone() };
        match counted.iter_mut().find(|(n, _)| *n == name) {
            Some((_, n)) => *n += 1,
            None => counted.push((name, 1)),
        }
    }
    counted.iter().map(|(name, n)| if *n == 1 { name.clone() } else { format!("{name}×{n}") }).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_settings_only_where_two_share_it() {
        let all = || ["tiny", "small", "tiny"].into_iter();
        assert_eq!(called("small solo b32", "small", all()), "small");
        assert_eq!(called("tiny solo b32", "tiny", all()), "tiny b32");
    }

    #[test]
    fn of_too_many_degrees_both_ends_stay() {
        assert_eq!(degrees([4, 1, 2, 2, 3, 8, 16].into_iter(), 4), (vec![1, 2, 8, 16], 2));
        assert_eq!(degrees([2, 1].into_iter(), 4), (vec![1, 2], 0));
    }
}
