//! SM activity of the GPU: the achieved one, compared with the sum of the members' solo activity.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::document::{Block, Section, Table, TableCell};
use collo_figures::modes::mode_label;
use collo_quantity::Key;
use collo_quantity::number;
use collo_quantity::stats::Quantity;

use crate::parts::absent::{nothing, without};
use crate::parts::bars::{BarSpec, bar_panels};
use crate::parts::figure::{figure, indicative_note, tags, whiskers};
use crate::parts::places::places_note;
use crate::parts::values::{Reading, cut_rows, label, reading, values_of};

const ID: &str = "sm-activity";
const TITLE: &str = "SM activity";

fn achieved(c: &Cell) -> Option<Quantity> {
    reading(c, Key::SmActive)
}

fn alone(c: &Cell) -> Option<Quantity> {
    c.get(Key::SoloSmActiveSum).filter(|_| c.record.degree > 1).cloned()
}

pub fn section(analysis: &Analysis) -> Section {
    if let Some(why) = nothing(analysis) {
        return without(ID, TITLE, why);
    }
    if !analysis.cells.iter().any(|c| achieved(c).is_some()) {
        let said = analysis.cells.iter().find_map(|c| c.absent.get(&Key::SmActive));
        let why = match said {
            _ if analysis.campaign.device.kind == "cpu" => "A CPU has no streaming multiprocessors; see CPU.".to_string(),
            Some(why) => format!("SM activity was not read: {why}."),
            None => "No source of SM activity could be read during this campaign.".into(),
        };
        return without(ID, TITLE, &why);
    }
    let p95: Reading = &|c| reading(c, Key::SmActiveP95);
    let sum: Reading = &alone;
    let spec = BarSpec {
        tick: Some(("95th percentile", p95)),
        reference: Some(("sum of the members alone", sum)),
        shared: true,
        ceiling: Some(1.0),
        ..BarSpec::of("SMACT", "SM activity of the GPU (SMACT)", &achieved, 1.0)
    };
    let (panels, left_out) = bar_panels(analysis, &spec);
    let has = |get: Reading| analysis.cells.iter().any(|c| get(c).is_some());
    let mut caption = String::from("Mean over the time when all members train past their warm-up.");
    if has(p95) {
        caption += " Thin line: the 95th percentile of its readings.";
    }
    if has(sum) {
        caption += " Dotted: the sum of the members' SMACT alone, what they would use undisturbed; above 1 it is written.";
    }
    caption += &format!("{} {}{}{left_out}", places_note(analysis), whiskers(analysis), indicative_note(analysis.cells.iter()));
    let mut wanted: Vec<(&str, Reading, f64)> = vec![("SMACT", &achieved, 1.0)];
    if has(p95) {
        wanted.push(("p95", p95, 1.0));
    }
    if has(sum) {
        wanted.push(("Σ alone", sum, 1.0));
    }
    let occupancy: Reading = &|c| reading(c, Key::SmOccupancy);
    let dram: Reading = &|c| reading(c, Key::DramActive);
    if has(occupancy) {
        wanted.push(("SMOCC", occupancy, 1.0));
    }
    if has(dram) {
        wanted.push(("DRAMA", dram, 1.0));
    }
    let table = values_of(analysis, &wanted, &|c| c.record.is_uniform());
    let mut blocks = if panels.is_empty() {
        Vec::new()
    } else {
        vec![Block::Figure(figure(analysis, "sm-activity", "SM activity achieved", panels, caption, table))]
    };
    blocks.extend(instances(analysis).if_any());
    Section { id: ID, title: TITLE, finding: finding(analysis), blocks, ..Section::default() }
}

/// SM activity of each member's own instance.
fn instances(analysis: &Analysis) -> Table {
    let mut table = Table::with(&["cell", "instances", "SMACT of each member's instance, of its own SMs", "#mean", "#runs"]);
    table.caption = "By instance".into();
    table.tags = tags(analysis);
    for cell in &analysis.cells {
        let of_members: Vec<Option<(f64, usize)>> = (0..cell.members.len()).map(|i| cell.on_instance(i)).collect();
        let each: Vec<(f64, usize)> = of_members.iter().flatten().copied().collect();
        let Some(runs) = each.iter().map(|e| e.1).min() else { continue };
        // Each in its member's place.
        let shown = of_members.iter().map(|e| e.map_or("–".to_string(), |e| format!("{:.2}", e.0)));
        let mean = each.iter().map(|e| e.0).sum::<f64>() / each.len() as f64;
        table.row(vec![
            label(analysis, cell),
            TableCell::text(cell.record.slots.clone().unwrap_or_default()),
            TableCell::text(shown.collect::<Vec<_>>().join(" · ")),
            TableCell::number(format!("{mean:.2}"), mean),
            TableCell::text(runs.to_string()),
        ]);
    }
    cut_rows(&mut table);
    table
}

/// The group that keeps the GPU busiest, and the activity of the same members under the other modes.
fn finding(analysis: &Analysis) -> String {
    let groups = || analysis.cells.iter().filter_map(|c| Some((c, achieved(c)?)));
    let Some((most, q)) = groups().max_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate)) else { return String::new() };
    let mut text = format!("`{}` keeps {} of the GPU's SMs busy", most.name(), number::with_interval(&q));
    if let Some(sum) = alone(most) {
        text += &format!("; its members alone use {}, added up", number::with_interval(&sum));
    }
    let solos = |c: &Cell| c.record.members.iter().map(|m| m.solo.clone()).collect::<Vec<_>>();
    let others = groups().filter(|(c, _)| !c.is_solo() && c.name() != most.name() && solos(c) == solos(most));
    let least = others.min_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
    match least {
        Some((cell, q)) => {
            text + &format!(". Under {} the same members reach {}.", mode_label(&cell.record.sharing), number::with_interval(&q))
        }
        None => text + ".",
    }
}
