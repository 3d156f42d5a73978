//! Energy per member and epoch, with and without idle power, and power over time.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::words;
use collo_figures::document::{Block, Section};
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};

use super::over_time::TraceFigure;
use crate::parts::absent::{Content, numbers, of_file};
use crate::parts::bars::{BarFigure, Scale};
use crate::parts::notes;
use crate::parts::values::has;

pub fn section(analysis: &Analysis) -> Content {
    numbers(analysis)?;
    if ![Key::EnergyPerEpoch, Key::Power, Key::DramPower].into_iter().any(|key| has(analysis, key)) {
        return Err(absent(analysis));
    }
    let (factor, unit) = words::energy_unit(analysis.cells.iter().filter_map(|c| c.get(Key::EnergyPerEpoch)));
    let word = if unit == "kJ" { "kilojoules" } else { "joules" };
    // A report has no idle power.
    let idle: Vec<String> = analysis.idle_w.iter().map(|(state, w)| format!("{} W {state}", number::three(*w))).collect();
    let idle = if idle.is_empty() { String::new() } else { format!(" ({})", idle.join(", ")) };
    let cap = analysis.campaign.machine.gpus.first().and_then(|g| g.power_limit_w);
    let text = cap.map(|w| format!("power cap {w:.0} W"));
    let limit = cap.zip(text.as_deref());
    let energy = |key| BarFigure {
        factor,
        what: "energy",
        head: if unit == "kJ" { "kJ per member and epoch" } else { "J per member and epoch" },
        scale: Scale::Own(" Each panel has its own scale."),
        ..BarFigure::of(key)
    };
    let power = |key| BarFigure { caption: "average power, watts", head: "watts", ..BarFigure::of(key) };
    let bars = [
        BarFigure {
            id: "energy",
            title: "Energy per member and epoch",
            caption: &format!("{word} per member and epoch"),
            meaning: "Energy of the whole device over the measured window, divided by the epochs that all members trained in it.",
            ..energy(Key::EnergyPerEpoch)
        },
        BarFigure {
            id: "energy-above-idle",
            title: "Energy above idle",
            caption: &format!("{word} above idle, per member and epoch"),
            meaning: &format!("The same, less the GPU's idle power{idle}."),
            ..energy(Key::EnergyPerEpochAboveIdle)
        },
        BarFigure { id: "power", title: "Average power of the GPU", limit, ..power(Key::Power) },
        BarFigure { id: "dram-power", title: "Average power of the host's memory", what: "dram-power", ..power(Key::DramPower) },
    ];
    let over_time = TraceFigure {
        id: "power-over-time",
        title: "Power over time",
        caption: "watts",
        of: |t| &t.power_w,
        factor: 1.0,
        unit: "W",
        limit,
    };
    let [energy, above_idle, power, dram] = bars.each_ref().map(|bars| bars.draw(analysis));
    let mut blocks: Vec<Block> = [energy, above_idle, over_time.draw(analysis), power, dram].into_iter().flatten().collect();
    // One figure answers; the others are variants of it.
    let variants = blocks.split_off(blocks.len().min(1));
    if !variants.is_empty() {
        blocks.push(Block::Folded("Energy above idle, and power".into(), variants));
    }
    let doubt = notes::few_energy_steps(analysis).map_or_else(String::new, |text| format!(" Uncertain: {text}."));
    Ok(Section { finding: format!("{}{doubt}", finding(analysis, factor, unit)), blocks, ..Section::default() })
}

fn absent(analysis: &Analysis) -> String {
    if let Some(why) = of_file(analysis, Key::EnergyPerEpoch) {
        return why;
    }
    if analysis.campaign.device.persistence == Some(false) {
        return "Without persistence mode the driver's energy counter can restart at any time, so energy is absent, not zero. \
                `nvidia-smi -pm 1` turns it on."
            .into();
    }
    let counter =
        if analysis.campaign.device.kind == "cpu" { "RAPL, the energy counter of the CPU," } else { "The energy counter" };
    format!("{counter} was not readable on this machine, so energy is absent, not zero.")
}

/// The group that saves most and the one that costs most, compared with the same work in turn.
fn finding(analysis: &Analysis, factor: f64, unit: &str) -> String {
    let ratio = |c: &Cell| c.get(Key::EnergyOfSolo).filter(|_| c.record.degree > 1).cloned();
    let mut groups: Vec<(&Cell, Quantity)> = analysis.groups().filter_map(|c| Some((c, ratio(c)?))).collect();
    groups.sort_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
    let said = |(cell, q): &(&Cell, Quantity)| {
        let against = match q.low.zip(q.high) {
            Some((low, high)) if low <= 1.0 && high >= 1.0 => ", indistinguishable from 1",
            _ => "",
        };
        format!("{} in `{}`{against}", number::with_interval(q), cell.name())
    };
    match &groups[..] {
        [] => {
            let get = |c: &Cell| c.get(Key::EnergyPerEpoch).cloned();
            let least =
                analysis.cells.iter().filter_map(|c| Some((c, get(c)?))).min_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
            least.map_or_else(
                || "Power of the whole device, idle power included.".into(),
                |(c, q)| {
                    format!("The least energy per member and epoch is {} {unit}, in `{}`.", number::scaled(&q, factor), c.name())
                },
            )
        }
        [only] => format!("Against the same work in turn, the energy is {}.", said(only)),
        [first, .., last] => {
            format!("Against the same work in turn, the energy is at best {} and at worst {}.", said(first), said(last))
        }
    }
}
