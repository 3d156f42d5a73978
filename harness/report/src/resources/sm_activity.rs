//! SM activity of the GPU: the achieved one, compared with the sum of the members' solo activity.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::document::{Section, Table, TableCell};
use collo_figures::modes::mode_label;
use collo_quantity::{Key, number};

use crate::parts::absent::{Content, numbers, of_file};
use crate::parts::bars::{BarFigure, MEAN, Scale};
use crate::parts::values::{finish, has, label, reading};

pub fn section(analysis: &Analysis) -> Content {
    numbers(analysis)?;
    if !has(analysis, Key::SmActive) {
        let said = analysis.cells.iter().find_map(|c| c.absent.get(&Key::SmActive));
        return Err(match said {
            _ if analysis.campaign.device.kind == "cpu" => "A CPU has no streaming multiprocessors; see CPU.".to_string(),
            Some(why) => format!("SM activity was not read: {why}."),
            None => of_file(analysis, Key::SmActive)
                .unwrap_or_else(|| "No source of SM activity could be read during this campaign.".into()),
        });
    }
    let mut meaning = String::from(MEAN);
    if has(analysis, Key::SmActiveP95) {
        meaning += " Thin line: the 95th percentile of its readings.";
    }
    if has(analysis, Key::SoloSmActiveSum) {
        meaning += " Dotted: the sum of the members' SMACT alone, what they would use undisturbed; above 1 it is written.";
    }
    let bars = BarFigure {
        id: "sm-activity",
        title: "SM activity achieved",
        caption: "SM activity of the GPU (SMACT)",
        head: "SMACT",
        meaning: &meaning,
        scale: Scale::Share,
        tick: Some(("95th percentile", Key::SmActiveP95)),
        reference: Some(("sum of the members alone", Key::SoloSmActiveSum)),
        beside: &[
            ("p95", Key::SmActiveP95),
            ("Σ alone", Key::SoloSmActiveSum),
            ("SMOCC", Key::SmOccupancy),
            ("DRAMA", Key::DramActive),
        ],
        ..BarFigure::of(Key::SmActive)
    };
    let blocks = bars.draw(analysis).into_iter().chain(instances(analysis).if_any()).collect();
    Ok(Section { finding: finding(analysis), blocks, ..Section::default() })
}

/// SM activity of each member's own instance.
fn instances(analysis: &Analysis) -> Table {
    let mut table = Table::with(&["cell", "instances", "SMACT of each member's instance, of its own SMs", "#mean", "#runs"]);
    table.caption = "By instance".into();
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
    finish(analysis, table)
}

/// The group that keeps the GPU busiest, and the activity of the same members under the other modes.
fn finding(analysis: &Analysis) -> String {
    let groups = || analysis.cells.iter().filter_map(|c| Some((c, reading(c, Key::SmActive)?)));
    let Some((most, q)) = groups().max_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate)) else { return String::new() };
    let mut text = format!("`{}` keeps {} of the GPU's SMs busy", most.name(), number::with_interval(&q));
    if let Some(sum) = reading(most, Key::SoloSmActiveSum) {
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
