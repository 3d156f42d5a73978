//! SM activity of the card.

use super::common::{metric_figure, nothing, without};
use super::{Block, Section};
use crate::analysis::Analysis;

const ID: &str = "sm-activity";
const TITLE: &str = "SM activity";

pub fn section(analysis: &Analysis) -> Section {
    if let Some(why) = nothing(analysis) {
        return without(ID, TITLE, why);
    }
    match metric_figure(analysis, "sm-activity", "SM activity of the card", "sm_active_ratio", "SM activity (SMACT)", 1.0) {
        Some(figure) => Section {
            id: ID,
            title: TITLE,
            chip: None,
            finding: "Share of the card's SMs that were busy, on average over the measured window.".into(),
            blocks: vec![Block::Figure(figure)],
        },
        None if analysis.campaign.device.kind == "cpu" => without(ID, TITLE, "A CPU has no streaming multiprocessors; see CPU."),
        None => without(ID, TITLE, "No source of SM activity could be read during this campaign."),
    }
}
