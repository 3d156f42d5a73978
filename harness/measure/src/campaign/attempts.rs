//! Which failed runs are measured again in the same campaign, and when there are too many: pure decisions.

use std::collections::BTreeMap;

use collo_store::{CampaignFolder, Outcome, RunRecord, Standing, StoredRun};

use collo_plan::experiment::RetryBudget;

/// The attempts at the runs of a campaign.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempts {
    budget: RetryBudget,
    /// Further attempts so far, in the whole campaign.
    spent: u32,
}

impl Attempts {
    /// With what was spent when the stored runs of a campaign were measured, and those that they replaced.
    pub(super) fn so_far(budget: RetryBudget, campaign: &CampaignFolder, stored: &BTreeMap<String, StoredRun>) -> Attempts {
        let superseded = campaign.superseded();
        let spent = |(folder, run): (&String, &StoredRun)| {
            let before = superseded.get(folder).into_iter().flatten();
            spent_on(before.chain([&run.record]))
        };
        Attempts { budget, spent: stored.iter().map(spent).sum() }
    }

    /// Whether a run that ended so is to be measured again.
    pub(super) fn retry(&self, run: &RunRecord) -> bool {
        let failed = run.standing() == Standing::Failed && run.outcome.may_pass();
        failed && (run.failed_attempts.len() as u32) < self.budget.each && self.spent < self.budget.total
    }

    /// The same, and if so, it is spent.
    pub(super) fn grant(&mut self, run: &RunRecord) -> bool {
        let granted = self.retry(run);
        self.spent += u32::from(granted);
        granted
    }

    /// The attempts before a stored run that is measured again in a resumed campaign: it was interrupted, or its collo was killed
    /// before the retry.
    pub(super) fn resume(&mut self, run: &RunRecord) -> Vec<Outcome> {
        if self.retry(run) { self.spend(run) } else { run.failed_attempts.clone() }
    }

    /// The outcomes to record with the next attempt.
    pub(super) fn spend(&mut self, run: &RunRecord) -> Vec<Outcome> {
        self.spent += 1;
        run.failed_attempts.iter().chain([&run.outcome]).cloned().collect()
    }
}

/// The further attempts at one run, by its records in order. One that was measured again by hand begins anew, so its record has fewer
/// failed attempts than the one before, but what was spent stays spent.
fn spent_on<'a>(records: impl Iterator<Item = &'a RunRecord>) -> u32 {
    let attempts: Vec<u32> = records.map(|run| run.failed_attempts.len() as u32).collect();
    let before = std::iter::once(0).chain(attempts.iter().copied());
    before.zip(&attempts).map(|(before, now)| now.saturating_sub(before)).sum()
}

#[cfg(test)]
mod tests {
    use collo_store::Expectation;

    use super::*;
    use crate::fixture::run_record;

    fn run(outcome: Outcome, failed_attempts: Vec<Outcome>) -> RunRecord {
        RunRecord { failed_attempts, ..run_record(outcome) }
    }

    fn crashed() -> Outcome {
        Outcome::Crashed { member: 0, status: "exited with 1".into(), message: String::new(), place_alone: false }
    }

    #[test]
    fn a_retry_is_spent_only_on_failures() {
        let attempts = Attempts { budget: RetryBudget { each: 1, total: 5 }, spent: 0 };
        assert!(attempts.retry(&run(crashed(), Vec::new())));
        assert_eq!(attempts.clone().resume(&run(Outcome::Interrupted, vec![crashed()])), [crashed()]);
        assert_eq!(attempts.clone().resume(&run(crashed(), Vec::new())), [crashed()]);
        let never = [
            Outcome::Completed,
            Outcome::Interrupted,
            Outcome::OutOfMemory { member: 0, message: String::new() },
            Outcome::DeviceLost { reason: String::new() },
        ];
        for outcome in never {
            assert!(!attempts.retry(&run(outcome.clone(), Vec::new())), "{outcome:?}");
        }
        let mut expected = run(crashed(), Vec::new());
        expected.cell.expect = Some(Expectation { outcome: "crashed".into(), reason: "known".into() });
        assert!(!attempts.retry(&expected), "it ended as expected");
    }

    #[test]
    fn of_two_stored_failures_only_as_many_are_due_again_as_the_campaign_has_retries() {
        let mut attempts = Attempts { budget: RetryBudget { each: 1, total: 3 }, spent: 2 };
        let failed = run(crashed(), Vec::new());
        assert_eq!([attempts.grant(&failed), attempts.grant(&failed)], [true, false]);
    }

    #[test]
    fn what_was_spent_on_a_run_stays_spent_when_it_is_measured_again_by_hand() {
        let with = |attempts: &[usize]| {
            let records: Vec<_> = attempts.iter().map(|n| run(crashed(), vec![crashed(); *n])).collect();
            spent_on(records.iter())
        };
        assert_eq!((with(&[0]), with(&[2])), (0, 2), "what it replaced may have been deleted");
        assert_eq!(with(&[0, 1, 2]), 2, "two retries");
        assert_eq!(with(&[0, 1, 1]), 1, "a retry, interrupted and resumed");
        assert_eq!(with(&[0, 1, 0, 1]), 2, "a retry, and by hand again with one");
    }

    #[test]
    fn retries_end_with_the_budget_of_the_run_and_of_the_campaign() {
        let mut attempts = Attempts { budget: RetryBudget { each: 2, total: 3 }, spent: 0 };
        let first = run(crashed(), Vec::new());
        let second = run(crashed(), attempts.spend(&first));
        assert!(attempts.retry(&second));
        let third = run(crashed(), attempts.spend(&second));
        assert_eq!((third.failed_attempts.len(), attempts.retry(&third)), (2, false), "a run has two");
        assert!(attempts.retry(&first), "another run has its own");
        attempts.spend(&first);
        assert!(!attempts.retry(&first), "the campaign has three");
        assert!(!Attempts::default().retry(&first), "without the key there are none");
    }
}
