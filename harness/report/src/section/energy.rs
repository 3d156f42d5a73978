//! Energy per member and epoch, and power.

use super::common::{bar_panels, figure, metric_figure, nothing, values, whiskers, without};
use super::{Block, Section};
use crate::analysis::{Analysis, Cell};

const ID: &str = "energy";
const TITLE: &str = "Energy and power";

pub fn section(analysis: &Analysis) -> Section {
    if let Some(why) = nothing(analysis) {
        return without(ID, TITLE, why);
    }
    let get = |c: &Cell| c.get("energy_j_per_epoch").cloned();
    let panels = bar_panels(analysis, "energy", "joules per member and epoch", &get, 1.0);
    let power = metric_figure(analysis, "power", "Power of the card", "power_w", "watts", 1.0);
    if panels.is_empty() && power.is_none() {
        if analysis.campaign.device.persistence == Some(false) {
            let why = "Without persistence mode the driver's energy counter can begin anew at any time, so energy is absent, not zero. \
                `nvidia-smi -pm 1` turns it on.";
            return without(ID, TITLE, why);
        }
        let counter =
            if analysis.campaign.device.kind == "cpu" { "RAPL, the energy counter of the CPU," } else { "The energy counter" };
        return without(ID, TITLE, format!("{counter} was not readable on this machine, so energy is absent, not zero."));
    }
    let mut blocks = Vec::new();
    if !panels.is_empty() {
        let caption = format!(
            "The counter's difference over the measured window, divided by all epochs finished in it. {}",
            whiskers(analysis)
        );
        let table = values(analysis, "J per member and epoch", &get, 1.0);
        blocks.push(Block::Figure(figure(analysis, "energy", "Energy per member and epoch", panels, caption, table)));
    }
    blocks.extend(power.map(Block::Figure));
    let finding = "Energy of the whole device, idle power included, shared among the members' epochs.".into();
    Section { id: ID, title: TITLE, chip: None, finding, blocks }
}
