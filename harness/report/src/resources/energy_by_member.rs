//! The energy of a GPU divided among the members that share it, by a model that the reader asked for. No counter measures it.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::document::{Block, Section, Table, TableCell};
use collo_quantity::{Key, number};

use crate::parts::absent::Content;
use crate::parts::values::{finish, label};
use crate::report::Report;

/// One member's part, watts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Part {
    idle_w: f64,
    above_w: f64,
}

/// Divide a power of which `idle_w` is idle among members with these weights.
fn divided(power_w: f64, idle_w: f64, weights: &[f64]) -> Option<Vec<Part>> {
    let whole: f64 = weights.iter().sum();
    let above_w = power_w - idle_w;
    let possible = whole > 0.0 && above_w >= 0.0 && weights.iter().all(|w| *w >= 0.0);
    let n = weights.len() as f64;
    possible.then(|| weights.iter().map(|w| Part { idle_w: idle_w / n, above_w: above_w * w / whole }).collect())
}

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    let model = report.energy_model.ok_or("No model was asked for.")?;
    let name = model.name();
    let groups: Vec<&Cell> = analysis.groups().filter(|c| c.counts()).collect();
    let rows: Vec<(&Cell, Result<Vec<Part>, &'static str>)> = groups.into_iter().map(|c| (c, parts(analysis, c))).collect();
    if rows.iter().all(|(_, parts)| parts.is_err()) {
        let why = rows.iter().find_map(|(_, parts)| parts.as_ref().err()).copied().unwrap_or("no group was measured");
        return Err(format!("The model `{name}` divides no energy here: {why}."));
    }
    let unit = [format!("#W by {name}"), "#of idle W".into(), "#above idle W".into(), format!("#J per epoch by {name}")];
    let heads: Vec<&str> = ["cell", "member"].into_iter().chain(unit.iter().map(String::as_str)).collect();
    let mut table = Table::with(&heads);
    table.caption = format!("Model `{name}`: {}", model.statement());
    let mut left_out = Vec::new();
    for (cell, parts) in &rows {
        let Ok(parts) = parts else {
            left_out.extend(parts.as_ref().err().map(|why| format!("`{}` is left out: {why}.", cell.name())));
            continue;
        };
        for (index, (member, part)) in cell.members.iter().zip(parts).enumerate() {
            let watts = part.idle_w + part.above_w;
            let joules = member.get(Key::EpochTime).map(|epoch| number::three(watts * epoch.estimate));
            table.row(vec![
                label(analysis, cell),
                TableCell::text(format!("{index} {}", member.spec.workload)),
                TableCell::text(number::three(watts)),
                TableCell::text(number::three(part.idle_w)),
                TableCell::text(number::three(part.above_w)),
                TableCell::text(joules.unwrap_or_default()),
            ]);
        }
    }
    let mut blocks = vec![Block::Table(finish(analysis, table))];
    if !left_out.is_empty() {
        blocks.push(Block::Notes(left_out));
    }
    let finding = format!("Divided by the model `{name}`, as asked for with `--energy-model`: {}.", model.statement());
    Ok(Section { finding, blocks, ..Section::default() })
}

/// The parts of a group's members, or why they are unknown.
fn parts(analysis: &Analysis, cell: &Cell) -> Result<Vec<Part>, &'static str> {
    let mean = |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let power_w = mean(cell.counted().filter_map(|r| Some(r.energy?.power_w)).collect()).ok_or("its energy was not measured")?;
    let idle_w = mean(cell.counted().filter_map(|r| r.idle_w).collect()).ok_or("the idle power is unknown")?;
    let weight = |member: &collo_analysis::cell::Member| {
        let alone = analysis.solo_beside(cell.counted(), &member.spec.solo)?.metric(Key::SmActive)?.estimate;
        Some(alone / member.get(Key::Slowdown)?.estimate)
    };
    let weights: Option<Vec<f64>> = cell.members.iter().map(weight).collect();
    let weights = weights.ok_or("the SM activity of a member alone, or its slowdown, is unknown")?;
    divided(power_w, idle_w, &weights).ok_or("its power is not above idle")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_all_members_are_the_whole_and_idle_power_is_in_equal_ones() {
        let parts = divided(250.0, 50.0, &[0.6, 0.2]).expect("divided");
        assert!(parts.iter().all(|part| part.idle_w == 25.0));
        assert!((parts[0].above_w - 150.0).abs() < 1e-9 && (parts[1].above_w - 50.0).abs() < 1e-9);
        let sum: f64 = parts.iter().map(|part| part.idle_w + part.above_w).sum();
        assert!((sum - 250.0).abs() < 1e-9);
        assert_eq!(divided(40.0, 50.0, &[1.0]), None, "less than idle is divided among nobody");
        assert_eq!(divided(250.0, 50.0, &[0.0, 0.0]), None);
    }
}
