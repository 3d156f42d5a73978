//! Measured groups from wherever they were read, each with the device and the mode that it shared. In: names of tables and campaigns. Out:
//! groups; what was left out, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use collo_predict::{Alone, CompanyMode, Conditions, MeasuredGroup};
use collo_text::units::percent;
use collo_text::{Diagnostic, Diagnostics, Remark, Source};

use super::{campaigns, pairs};
use crate::caller::Caller;
use crate::{lines, sources};

/// A group with where it was measured.
#[derive(Debug, Clone)]
pub struct Measured {
    pub group: MeasuredGroup,
    pub mode: CompanyMode,
    pub simulated: bool,
    /// It is of a table that collo did not measure.
    pub is_table: bool,
    pub conditions: Conditions,
    /// An index of the sources.
    pub source: usize,
}

/// Groups from one source or several.
#[derive(Debug, Default)]
pub struct Groups {
    pub all: Vec<Measured>,
    /// Files and campaigns, with their digests.
    pub sources: Vec<String>,
    /// Groups that are not compared, by their reason.
    pub left_out: BTreeMap<&'static str, usize>,
    pub warnings: Vec<String>,
    /// By which share the slowdown of the longer of each pair changed, as its time alone was taken out.
    pub changes: Vec<f64>,
    /// How the seconds of a step are known, with how many profiles.
    pub steps: BTreeMap<&'static str, usize>,
}

/// What the time alone, once taken out, changed of slowdowns, as shares of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    pub changed: usize,
    /// Of those that changed; 0 if none did.
    pub median: f64,
    pub largest: f64,
}

/// A member alone, of a table of profiles.
#[derive(Debug, Clone, PartialEq)]
pub struct AloneProfile {
    pub alone: Alone,
    pub family: String,
    pub device: Option<String>,
}

/// Everything that was asked for.
pub fn read(caller: &dyn Caller, asked: &[String]) -> Result<Groups, Diagnostics> {
    let mut groups = Groups::default();
    let mut pair_tables: Vec<(Arc<Source>, usize)> = Vec::new();
    let mut profiles: BTreeMap<String, AloneProfile> = BTreeMap::new();
    for name in asked {
        let (text, source) = sources::table_of(caller, name)?;
        groups.sources.push(source);
        let place = groups.sources.len() - 1;
        let columns: BTreeSet<String> = lines::columns(text.text()).into_iter().collect();
        if campaigns::is_dataset(&columns) {
            campaigns::read(&text, place, &mut groups)?;
        } else if pairs::TELLS_PAIRS.iter().any(|column| columns.contains(*column)) {
            pair_tables.push((text, place));
        } else if columns.contains(pairs::TELLS_PROFILES) {
            pairs::read_profiles(&text, &mut profiles, &mut groups)?;
        } else {
            let what = Diagnostic::new(format!("{} is neither a table of pairs nor one of profiles", text.name()));
            let hint = "pairs have the columns `a`, `b`, `solo_a_s`, `solo_b_s`, `pair_a_s`, `pair_b_s`, or `a`, `b`, `speed_a`, `speed_b`; profiles have `key`, `solo_s`, \
                        `sm_active_ratio`, `gpu_utilisation_percent`";
            return Err(what.hint(hint).into());
        }
    }
    for (text, place) in &pair_tables {
        if profiles.is_empty() {
            let what =
                Diagnostic::new(format!("{} has pairs, but there is no table of what each member does alone", text.name()));
            return Err(what.hint("give the table of profiles too: `collo predict fit pairs.csv profiles.csv --to …`").into());
        }
        pairs::read_pairs(text, *place, &profiles, &mut groups)?;
    }
    if groups.all.is_empty() {
        let what = Diagnostic::new(format!("{} has no group that can be compared", asked.join(", ")));
        let why: Vec<String> = groups.left_out.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let what = if why.is_empty() { what } else { what.note(why.join("; ")) };
        return Err(what.hint("a group has two members or more whose times alone are known too").into());
    }
    groups.report(caller);
    Ok(groups)
}

impl Groups {
    /// By how much slowdowns changed, if there are pairs.
    pub fn change(&self) -> Option<Change> {
        let largest = self.changes.iter().copied().max_by(f64::total_cmp)?;
        let mut changed: Vec<f64> = self.changes.iter().copied().filter(|change| *change > LEAST_CHANGE).collect();
        changed.sort_unstable_by(f64::total_cmp);
        let median = changed.get(changed.len() / 2).copied().unwrap_or(0.0);
        Some(Change { changed: changed.len(), median, largest })
    }

    /// Warnings, what was left out, and what the times alone changed.
    fn report(&self, caller: &dyn Caller) {
        let note = |text: String| caller.remark(Remark::Note(text));
        self.warnings.iter().for_each(|text| caller.remark(Remark::Warning(text.clone())));
        for (reason, count) in &self.left_out {
            note(format!("groups that are not compared: {count}; each {reason}"));
        }
        if let Some(Change { changed, median, largest }) = self.change() {
            note(format!(
                "the time in which one trained alone is taken out: {changed} of {} slowdowns changed, half of these {changed} by more \
                 than {}, at most by {}",
                self.changes.len(),
                percent(median),
                percent(largest)
            ));
        }
        for (how, count) in self.steps.iter().filter(|(how, _)| **how != STEP_S) {
            note(format!("length of a step: of {count} profiles {how}"));
        }
    }

    /// Each device with its groups, real and simulated apart.
    pub fn devices(&self) -> Vec<(String, Vec<&Measured>)> {
        let mut found: BTreeMap<String, Vec<&Measured>> = BTreeMap::new();
        for one in &self.all {
            found.entry(one.device()).or_default().push(one);
        }
        found.into_iter().collect()
    }
}

/// A slowdown that changed by a smaller share of itself is the same.
const LEAST_CHANGE: f64 = 0.005;
/// Where seconds of a step were given.
pub(super) const STEP_S: &str = "its seconds";

impl Measured {
    pub fn device(&self) -> String {
        let said = if self.simulated { "simulated " } else { "" };
        let device = match (&self.conditions.gpu, self.conditions.device) {
            (Some(gpu), _) => gpu.as_str(),
            (None, collo_predict::TargetDevice::Cpu) => "cpu",
            (None, collo_predict::TargetDevice::Gpu) => "a device that is not named",
        };
        format!("{said}{device}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_change_is_that_of_the_slowdowns_that_changed() {
        let change = |changes: &[f64]| Groups { changes: changes.into(), ..Groups::default() }.change();
        let of_few = change(&[0.0, 0.0, 0.0, 0.0, 0.1, 0.3, 0.2]).expect("some changed");
        assert_eq!(of_few, Change { changed: 3, median: 0.2, largest: 0.3 });
        assert_eq!(change(&[0.0, 0.004]), Some(Change { changed: 0, median: 0.0, largest: 0.004 }));
        assert_eq!(change(&[]), None);
    }
}
