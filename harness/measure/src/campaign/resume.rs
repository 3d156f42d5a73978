//! Which campaign a choice selects, and which of its runs.

use std::collections::BTreeMap;

use collo_plan::experiment::Experiment;
use collo_prepare::ingredients::Change;
use collo_store::{Campaign, CampaignFolder, Outcome, PlanRecord, PlannedRun, Runs, Shard, Standing, StoredRun};
use collo_text::Diagnostic;

use super::attempts::Attempts;
use super::{CampaignOptions, Only, depends};
use crate::error::RunError;

/// The newest campaign of an experiment, or of a shard of it.
fn newest(runs: &Runs, experiment: &str, shard: Option<Shard>) -> collo_store::Result<Option<CampaignFolder>> {
    // The other shards may be measured beside this one, and what was merged is finished.
    let is_own = |c: &Campaign| c.experiment == experiment && c.shard == shard && !c.is_merged();
    Ok(runs.campaigns()?.0.into_iter().find(|c| is_own(c.manifest())))
}

/// The campaign that would be continued, if its ingredients are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// The one named in the choice.
    Named,
    /// The newest of the experiment.
    Newest,
    /// None: a new one is started.
    New,
    /// It applies only to stored runs: without any there is nothing to do, and no new campaign is started.
    Nothing,
}

impl CampaignOptions {
    /// The campaign that would be continued, if its ingredients are the same. Runs for which `is_refused` holds are not retried.
    pub(crate) fn candidate(
        &self,
        runs: &Runs,
        experiment: &Experiment,
        shard: Option<Shard>,
        is_refused: impl Fn(&StoredRun) -> bool,
    ) -> Result<Option<CampaignFolder>, RunError> {
        let name = &experiment.name;
        let mut found = None;
        let taken: Result<Takes, collo_store::Error> = self.takes(|| {
            found = newest(runs, name, shard)?;
            // Whether a search has all its answers is not known from the runs of its last round.
            let is_unfinished = |newest: &CampaignFolder| {
                Ok(experiment.search || !self.todo(experiment, newest, &newest.runs()?.0, is_refused).is_empty())
            };
            found.as_ref().map(is_unfinished).transpose()
        });
        match taken? {
            Takes::New => Ok(None),
            Takes::Named => Ok(self.campaign.clone()),
            Takes::Newest => Ok(found),
            Takes::Nothing => Err(Diagnostic::new(format!("no campaign of `{name}` is stored, so no run of it failed"))
                .hint(format!("`collo run {name}` starts one"))
                .into()),
        }
    }

    /// The runs of a campaign to do, in order.
    pub(super) fn todo(
        &self,
        experiment: &Experiment,
        campaign: &CampaignFolder,
        stored: &BTreeMap<String, StoredRun>,
        is_refused: impl Fn(&StoredRun) -> bool,
    ) -> Vec<PlannedRun> {
        let mut attempts = Attempts::so_far(experiment.retries, campaign, stored);
        // A retry that one run takes is not there for the next.
        let mut retry = |run: &StoredRun| !is_refused(run) && attempts.grant(&run.record);
        let state = |folder: &str| stored.get(folder).map(|run| (&run.record.outcome, retry(run)));
        self.runs_to_do(&campaign.manifest().plan, state)
    }

    /// Which campaign is meant. Whether the newest of the experiment has something to do is checked only if it matters; `None` if
    /// none is stored.
    fn takes<E>(&self, newest: impl FnOnce() -> Result<Option<bool>, E>) -> Result<Takes, E> {
        if self.new {
            return Ok(Takes::New);
        }
        if self.campaign.is_some() {
            return Ok(Takes::Named);
        }
        Ok(match newest()? {
            None if self.only == Only::Failed => Takes::Nothing,
            Some(todo) if todo || self.only == Only::Failed || self.more.is_some() => Takes::Newest,
            None | Some(_) => Takes::New,
        })
    }

    /// The runs of a plan to do, in order, depending on what is stored in each folder, and whether that has a retry left; asked once
    /// for each, in this order.
    fn runs_to_do<'a>(&self, plan: &PlanRecord, mut stored: impl FnMut(&str) -> Option<(&'a Outcome, bool)>) -> Vec<PlannedRun> {
        let wanted = |planned: &&PlannedRun| match stored(&plan.folder(planned)) {
            None | Some((Outcome::Interrupted, _)) => self.only == Only::Missing,
            Some((outcome, has_retry)) => match self.only {
                Only::Missing => has_retry,
                Only::Failed => plan.cells[planned.cell].standing(outcome) == Standing::Failed,
            },
        };
        plan.order.iter().filter(wanted).cloned().collect()
    }

    /// The changes of its ingredients that prevent a campaign from being continued.
    pub(super) fn objections(&self, mut changes: Vec<Change>) -> Vec<Change> {
        // What is added may be a part of what the campaign is.
        changes.retain(|change| !(self.force || (self.more.is_some() && change.name == depends::SELECTION)));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::experiment;
    use crate::fixture::plan_experiment;

    fn plain() -> CampaignOptions {
        CampaignOptions::default()
    }

    fn new() -> CampaignOptions {
        CampaignOptions { new: true, ..plain() }
    }

    fn failed() -> CampaignOptions {
        CampaignOptions { only: Only::Failed, ..plain() }
    }

    fn more() -> CampaignOptions {
        CampaignOptions { more: Some(2), ..plain() }
    }

    #[test]
    fn the_newest_campaign_is_continued_while_it_has_something_to_do() {
        // Nothing is stored, the newest is complete, the newest is not.
        let table = [
            ("run", plain(), [Takes::New, Takes::New, Takes::Newest]),
            ("run --new", new(), [Takes::New, Takes::New, Takes::New]),
            ("run --only failed", failed(), [Takes::Nothing, Takes::Newest, Takes::Newest]),
            ("run --more 2", more(), [Takes::New, Takes::Newest, Takes::Newest]),
        ];
        for (command, choice, expected) in table {
            let taken = [None, Some(false), Some(true)].map(|newest| choice.takes(|| Ok::<_, ()>(newest)));
            assert_eq!(taken, expected.map(Ok), "{command}");
        }
    }

    #[test]
    fn what_is_missing_or_was_interrupted_is_done_or_only_what_failed_where_that_is_asked_for() {
        let experiment = experiment("repetitions = 1\n[axes]\nworkload = \"tiny\"\ndegree = 2\n");
        let plan =
            plan_experiment(&experiment, None, &collo_plan::facts::DeviceFacts::of_cpu(2, 24 << 30)).expect("right").record();
        let crashed = Outcome::Crashed { member: 0, status: "exited with 1".into(), message: String::new(), place_alone: false };
        let out_of_memory = Outcome::OutOfMemory { member: 0, message: String::new() };
        let table = [
            ("nothing is stored", [None, None, None], [3, 0]),
            ("one is stored", [Some(Outcome::Completed), None, None], [2, 0]),
            ("one was interrupted", [Some(Outcome::Completed), Some(Outcome::Interrupted), None], [2, 0]),
            ("one failed", [Some(Outcome::Completed), Some(crashed), Some(Outcome::Completed)], [0, 1]),
            ("out of memory is a result", [Some(out_of_memory), Some(Outcome::Completed), Some(Outcome::Completed)], [0, 0]),
        ];
        let todo = |choice: CampaignOptions, outcomes: &[Option<Outcome>; 3], has_retry: bool| {
            let stored = |folder: &str| {
                let place = plan.order.iter().position(|run| plan.folder(run) == folder)?;
                outcomes[place].as_ref().map(|outcome| (outcome, has_retry && outcome.may_pass()))
            };
            choice.runs_to_do(&plan, stored).len()
        };
        for (what, outcomes, expected) in &table {
            assert_eq!([plain(), failed()].map(|choice| todo(choice, outcomes, false)), *expected, "{what}");
        }
        let one_failed = &table[3].1;
        assert_eq!([plain(), failed()].map(|choice| todo(choice, one_failed, true)), [1, 1], "it failed and has a retry left");
    }

    #[test]
    fn a_change_of_the_ingredients_ends_a_campaign_unless_it_is_forced_or_only_the_selection_of_what_is_added() {
        let change = |name: &str| Change { name: name.into(), before: "a".into(), after: "b".into() };
        let objections = |choice: CampaignOptions| choice.objections(vec![change("torch"), change("--where")]).len();
        assert_eq!([objections(plain()), objections(more())], [2, 1]);
        assert_eq!(objections(CampaignOptions { force: true, ..plain() }), 0);
    }
}
