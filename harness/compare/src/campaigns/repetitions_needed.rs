//! What would decide. In: undecided rows. Out: a command that measures their cells again, and no others if the axes can express
//! that.

use std::collections::BTreeSet;

use collo_guidelines::report_json::CellJson;
use collo_quantity::stats::Quantity;

use super::ComparedCell;
use crate::ratio::{Finding, More};
use crate::side::ComparedReport;

/// Maximum number of repetitions requested together.
const AT_ONCE: usize = 10;

/// The commands, if repetitions would help: for the right side, and for the left if it has too few as well.
pub fn commands(rows: &[ComparedCell], left: &ComparedReport, right: &ComparedReport) -> Vec<String> {
    let one = |q: &Option<Quantity>| q.as_ref().is_some_and(|q| q.n < 2).then_some(2);
    let for_right = |row: &ComparedCell| match row.finding {
        Finding::CannotTell(More::Right(k) | More::Each(k)) => Some(k),
        Finding::CannotTell(More::OneRun) => one(&row.right),
        _ => None,
    };
    let for_left = |row: &ComparedCell| match row.finding {
        Finding::CannotTell(More::Each(k)) => Some(k),
        Finding::CannotTell(More::OneRun) => one(&row.left),
        _ => None,
    };
    let label = |row: &ComparedCell| row.left_label.clone();
    let commands = [command(rows, right, &for_right, &|row| row.label.clone()), command(rows, left, &for_left, &label)];
    commands.into_iter().flatten().collect()
}

fn command(
    rows: &[ComparedCell],
    side: &ComparedReport,
    needed: &dyn Fn(&ComparedCell) -> Option<usize>,
    label: &dyn Fn(&ComparedCell) -> String,
) -> Option<String> {
    let mut open: Vec<(&ComparedCell, usize)> = rows.iter().filter_map(|r| Some((r, needed(r)?))).collect();
    // What a night can decide, or else what needs least: nobody measures everything a hundred times for one cell.
    let least = open.iter().map(|(_, k)| *k).min()?;
    open.retain(|(_, k)| *k <= least.max(AT_ONCE));
    let most = open.iter().map(|(_, k)| *k).max()?;
    let labels: Vec<String> = open.iter().map(|(row, _)| label(row)).collect();
    let labels: BTreeSet<&str> = labels.iter().map(String::as_str).collect();
    let condition = condition(side, &labels);
    if !is_plain(&side.runs_as) {
        return None;
    }
    let selected = condition.map_or(String::new(), |c| format!(" --where '{c}'"));
    let collo = collo_store::command(side.device.simulated, &side.device.name, side.surroundings.as_ref());
    Some(format!("{collo} run {}{selected} --more {most}", side.runs_as))
}

/// Text that has no special meaning to a shell and to the selection.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && text.chars().all(|c| c.is_alphanumeric() || " ×+-_.:%,".contains(c))
}

/// A condition that selects these cells of a side and, if axes can express it, no other. `None` selects every cell.
fn condition(side: &ComparedReport, labels: &BTreeSet<&str>) -> Option<String> {
    if side.cells.iter().all(|c| labels.contains(c.label.as_str())) {
        return None;
    }
    type Axis = fn(&CellJson) -> Option<String>;
    let axes: [Axis; 4] = [
        |c| Some(format!("degree == {}", c.degree)),
        |c| {
            let first = c.members.first()?.batch_size?;
            c.members.iter().all(|m| m.batch_size == Some(first)).then(|| format!("batch_size == {first}"))
        },
        |c| is_plain(&c.sharing).then(|| format!("sharing == \"{}\"", c.sharing)),
        |c| {
            let name = &c.members.first()?.workload;
            let uniform = c.members.iter().all(|m| m.workload == *name);
            (uniform && is_plain(name)).then(|| format!("workload == \"{name}\""))
        },
    ];
    let wanted: Vec<_> = side.cells.iter().filter(|c| labels.contains(c.label.as_str())).collect();
    // What the wanted cells have in common; fewest conditions first.
    let common: Vec<(Axis, String)> = axes
        .into_iter()
        .filter_map(|axis| {
            let first = axis(wanted.first()?)?;
            wanted.iter().all(|c| axis(c).as_ref() == Some(&first)).then_some((axis, first))
        })
        .collect();
    let mut choices: Vec<u32> = (1..1 << common.len()).collect();
    choices.sort_by_key(|bits| bits.count_ones());
    for bits in choices {
        let chosen: Vec<&(Axis, String)> =
            common.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, a)| a).collect();
        let selects = side.cells.iter().filter(|c| chosen.iter().all(|(axis, text)| axis(c).as_ref() == Some(text))).count();
        if selects == wanted.len() {
            return Some(chosen.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" && "));
        }
    }
    if labels.len() <= 4 && labels.iter().all(|l| is_plain(l)) {
        return Some(labels.iter().map(|l| format!("cell == \"{l}\"")).collect::<Vec<_>>().join(" || "));
    }
    (!common.is_empty()).then(|| common.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" && "))
}
