//! Company: groups that shared a device, compared with predictions and fitted. In: what was asked for. Out: scores, a predictor file.

mod fit;
mod scores;
mod shown;

use collo_laboratory::company::{Groups, STEP_S};

pub use fit::fit;
pub use scores::evaluate;
pub use shown::in_full;

use crate::output;

/// Warnings, what was left out, and what the times alone changed.
fn say(groups: &Groups) {
    groups.warnings.iter().for_each(output::warning);
    for (reason, count) in &groups.left_out {
        output::note(format!("{count} groups are not compared: each {reason}"));
    }
    if let Some((median, largest)) = groups.change() {
        let changed = groups.changes.iter().filter(|change| **change > 0.005).count();
        output::note(format!(
            "the time in which one trained alone is taken out: {changed} of {} slowdowns changed, half of them by more than {}, at most by {}",
            groups.changes.len(),
            super::percent(median),
            super::percent(largest)
        ));
    }
    for (how, count) in groups.steps.iter().filter(|(how, _)| **how != STEP_S) {
        output::note(format!("length of a step: of {count} profiles {how}"));
    }
}
