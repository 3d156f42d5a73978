//! The progress of a campaign: which of its planned runs are stored, and whether it is being measured.

use std::collections::BTreeSet;

use crate::{CampaignFolder, Result};

/// The progress of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Runs of the plan.
    pub planned: usize,
    /// Planned runs that are stored and final.
    pub stored: usize,
    /// Of these, failed or not as expected.
    pub failed: usize,
    /// Folders of planned runs that differ from what was recorded: they count as missing, and are not measured again.
    pub edited: Vec<String>,
    /// A collo is measuring it now.
    pub running: bool,
    indicative: bool,
    changed: bool,
}

impl CampaignFolder {
    /// Its progress, from the runs stored now.
    pub fn progress(&self) -> Result<Progress> {
        let (runs, foreign) = self.runs()?;
        let plan = &self.manifest.plan;
        let stored: Vec<_> = plan.order.iter().filter_map(|p| runs.get(&plan.folder(p))).map(|r| &r.record).collect();
        let planned: BTreeSet<String> = plan.order.iter().map(|p| plan.folder(p)).collect();
        let changed =
            foreign.iter().filter(|f| f.changed).filter_map(|f| Some(f.path.file_name()?.to_string_lossy().into_owned()));
        Ok(Progress {
            edited: changed.filter(|folder| planned.contains(folder)).collect(),
            planned: plan.order.len(),
            stored: stored.iter().filter(|r| r.outcome.is_final()).count(),
            failed: stored.iter().filter(|r| r.standing().is_bad()).count(),
            running: self.running().is_some(),
            indicative: !self.manifest.indicative.is_empty(),
            changed: self.expect_unchanged().is_err(),
        })
    }
}

impl Progress {
    /// Every planned run is stored.
    pub fn is_complete(&self) -> bool {
        self.stored >= self.planned
    }

    /// `complete`, `unfinished, 2 failed`.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        match (self.running, self.is_complete()) {
            (true, _) => parts.push("running".to_string()),
            (false, false) => parts.push("unfinished".to_string()),
            (false, true) if self.failed == 0 => parts.push("complete".to_string()),
            (false, true) => {}
        }
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        match self.edited.len() {
            0 => {}
            1 => parts.push("1 run edited".to_string()),
            n => parts.push(format!("{n} runs edited")),
        }
        if self.indicative {
            parts.push("indicative".to_string());
        }
        if self.changed {
            parts.push("modified".to_string());
        }
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_is_said_to_be_what_matters_most_of_it() {
        let at = |stored, failed| Progress {
            planned: 3,
            stored,
            failed,
            edited: Vec::new(),
            running: false,
            indicative: false,
            changed: false,
        };
        assert_eq!([at(3, 0).text(), at(3, 1).text(), at(2, 1).text()], ["complete", "1 failed", "unfinished, 1 failed"]);
        assert_eq!(Progress { running: true, ..at(3, 0) }.text(), "running");
        assert_eq!(Progress { edited: vec!["a-1".into()], ..at(2, 0) }.text(), "unfinished, 1 run edited");
        let changed = Progress { indicative: true, changed: true, ..at(3, 0) };
        assert_eq!(changed.text(), "complete, indicative, modified");
    }
}
