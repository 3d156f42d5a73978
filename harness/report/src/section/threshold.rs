//! Up to which summed demand members keep their speed: fitted on this device's data, once there is SM activity to fit.

use super::Section;
use super::common::without;
use crate::analysis::Analysis;

pub fn section(analysis: &Analysis) -> Section {
    let solo_activity = analysis.cells.iter().any(|c| c.is_solo() && c.metrics.contains_key("sm_active_ratio"));
    let why = if solo_activity {
        "This version of collo does not fit a threshold of summed SM activity."
    } else {
        "A threshold of summed solo SM activity needs a card that tells it; this campaign has none."
    };
    without("threshold", "Threshold", why)
}
