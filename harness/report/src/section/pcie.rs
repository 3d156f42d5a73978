//! PCIe traffic of the card.

use super::common::{metric_figure, nothing, without};
use super::{Block, Section};
use crate::analysis::Analysis;

const ID: &str = "pcie";
const TITLE: &str = "PCIe";

pub fn section(analysis: &Analysis) -> Section {
    if let Some(why) = nothing(analysis) {
        return without(ID, TITLE, why);
    }
    match metric_figure(analysis, "pcie", "PCIe traffic into the card", "pcie_rx_bytes_per_s", "GB/s received", 1e-9) {
        Some(figure) => Section {
            id: ID,
            title: TITLE,
            chip: None,
            finding: "Traffic from the host into the card, on average over the measured window.".into(),
            blocks: vec![Block::Figure(figure)],
        },
        None if analysis.campaign.device.kind == "cpu" => {
            without(ID, TITLE, "Training on the CPU moves nothing over PCIe to a card.")
        }
        None => without(ID, TITLE, "No PCIe counter could be read during this campaign."),
    }
}
