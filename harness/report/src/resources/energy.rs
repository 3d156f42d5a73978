//! Energy per member and epoch, with and without idle power, and power over time.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::document::{Block, Section};
use collo_quantity::Key;
use collo_quantity::number;
use collo_quantity::stats::Quantity;

use super::over_time;
use crate::parts::absent::{nothing, without};
use crate::parts::bars::{BarSpec, bar_panels, metric_figure};
use crate::parts::figure::{figure, indicative_note, whiskers};
use crate::parts::places::places_note;
use crate::parts::values::{Reading, reading, values};

const ID: &str = "energy";
const TITLE: &str = "Energy and power";

pub fn section(analysis: &Analysis) -> Section {
    if let Some(why) = nothing(analysis) {
        return without(ID, TITLE, why);
    }
    let get: Reading = &|c| c.get(Key::EnergyPerEpoch).cloned();
    let above: Reading = &|c| c.get(Key::EnergyPerEpochAboveIdle).cloned();
    let power: Reading = &|c| reading(c, Key::Power);
    let has = |get: Reading| analysis.cells.iter().any(|c| get(c).is_some());
    let dram: Reading = &|c| reading(c, Key::DramPower);
    if !has(get) && !has(power) && !has(dram) {
        return without(ID, TITLE, absent(analysis));
    }
    let largest = analysis.cells.iter().filter_map(get).map(|q| q.estimate).fold(0.0, f64::max);
    let (factor, unit, word) = if largest >= 2000.0 { (1e-3, "kJ", "kilojoules") } else { (1.0, "J", "joules") };
    let mut blocks = Vec::new();
    let mut bars = |id: &'static str, title: &str, caption: &str, get: Reading, meaning: &str| {
        let (panels, left_out) = bar_panels(analysis, &BarSpec::of("energy", caption, get, factor));
        if !panels.is_empty() {
            let text = format!(
                "{meaning}{} {}{} Each panel has its own scale.{left_out}",
                places_note(analysis),
                whiskers(analysis),
                indicative_note(analysis.cells.iter())
            );
            let table = values(analysis, &format!("{unit} per member and epoch"), get, factor);
            blocks.push(Block::Figure(figure(analysis, id, title, panels, text, table)));
        }
    };
    let meaning = "Energy of the whole device over the measured window, divided by the epochs that all members trained in it.";
    bars("energy", "Energy per member and epoch", &format!("{word} per member and epoch"), get, meaning);
    let idle: Vec<String> = analysis.idle_w.iter().map(|(state, w)| format!("{} W {state}", number::three(*w))).collect();
    let meaning = format!("The same, less the GPU's idle power ({}).", idle.join(", "));
    bars("energy-above-idle", "Energy above idle", &format!("{word} above idle, per member and epoch"), above, &meaning);
    let cap = analysis.campaign.machine.gpus.first().and_then(|g| g.power_limit_w);
    let text = cap.map(|w| format!("power cap {w:.0} W"));
    let limit = cap.zip(text.as_deref());
    let traces = over_time::Spec {
        id: "power-over-time",
        title: "Power over time",
        caption: "watts",
        of: &|t| &t.power_w,
        factor: 1.0,
        unit: "W",
        limit,
    };
    blocks.extend(over_time::figure(analysis, &traces).map(Block::Figure));
    let spec = BarSpec { shared: true, limit, ..BarSpec::of("power", "average power, watts", power, 1.0) };
    blocks.extend(metric_figure(analysis, "power", "Average power of the GPU", "watts", &spec).map(Block::Figure));
    let spec = BarSpec { shared: true, ..BarSpec::of("dram-power", "average power, watts", dram, 1.0) };
    blocks.extend(metric_figure(analysis, "dram-power", "Average power of the host's memory", "watts", &spec).map(Block::Figure));
    Section { id: ID, title: TITLE, finding: finding(analysis, factor, unit), blocks, ..Section::default() }
}

fn absent(analysis: &Analysis) -> String {
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
            format!("Against the same work in turn, the energy is {} at best and {} at worst.", said(first), said(last))
        }
    }
}
