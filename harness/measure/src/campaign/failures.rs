//! When failed runs end a campaign: pure decisions.
//!
//! In: runs as they are recorded, and how many may fail. Out: the end that follows, with the cause that the first runs have in common.

use crate::stage;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use collo_store::{Outcome, RunRecord, Standing, StoredRun};
use regex::Regex;

use super::CampaignEnd;

/// So many runs have to fail alike, at least, before a cause is taken for that of all further runs.
const FIRST: u32 = 3;

/// How many runs may fail before a campaign ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailureLimit {
    /// Any number, unless the first runs all fail alike before they train.
    #[default]
    UnlessAlike,
    /// One fewer than this.
    Count(u32),
    /// Any number.
    Unlimited,
}

/// What a measurement is about: a cause that ends it has been found on all its GPUs, and is not that of one workload among several.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub gpus: usize,
    pub workloads: usize,
}

/// The failed runs of a measurement, over all its rounds.
#[derive(Debug, Clone, Default)]
pub struct Failures {
    count: u32,
    beginning: Beginning,
}

/// What the first runs of a measurement have shown.
#[derive(Debug, Clone)]
enum Beginning {
    /// Every run so far failed before it trained, and for the same cause; absent before the first.
    Alike { cause: Option<Cause>, runs: u32, gpus: BTreeSet<Option<u32>>, workloads: BTreeSet<String> },
    /// A run trained, failed for another cause, or has a result.
    Mixed,
}

impl Default for Beginning {
    fn default() -> Self {
        Beginning::Alike { cause: None, runs: 0, gpus: BTreeSet::new(), workloads: BTreeSet::new() }
    }
}

/// Why a run failed before it trained.
#[derive(Debug, Clone)]
struct Cause {
    text: String,
    /// The same without what differs from run to run: numbers, process ids, addresses, digests.
    masked: String,
}

/// What one run shows of whether the next ones can train.
enum Evidence {
    FailedBefore(Cause),
    /// It was not started, or ended as expected.
    Nothing,
    Other,
}

impl Failures {
    /// With what is stored of the campaign: where a run has trained, further ones may.
    pub(super) fn since<'a>(mut self, mut stored: impl Iterator<Item = &'a StoredRun>) -> Failures {
        if stored.any(|run| matches!(evidence(&run.record), Evidence::Other)) {
            self.beginning = Beginning::Mixed;
        }
        self
    }

    /// Count a run that is recorded now; `gpu` is its GPU among several.
    pub(super) fn record(&mut self, run: &RunRecord, gpu: Option<u32>) {
        self.count += u32::from(run.standing().is_bad());
        let Beginning::Alike { cause, runs, gpus, workloads } = &mut self.beginning else { return };
        match evidence(run) {
            Evidence::Nothing => {}
            Evidence::FailedBefore(found) if cause.as_ref().is_none_or(|known| known.masked == found.masked) => {
                cause.get_or_insert(found);
                *runs += 1;
                gpus.insert(gpu);
                workloads.extend(run.cell.members.iter().map(|member| member.workload.clone()));
            }
            Evidence::FailedBefore(_) | Evidence::Other => self.beginning = Beginning::Mixed,
        }
    }

    /// The end that follows from the runs so far; `None` if further ones may begin.
    pub(super) fn end(&self, limit: FailureLimit, extent: Extent) -> Option<CampaignEnd> {
        match (limit, &self.beginning) {
            (FailureLimit::Count(most), _) if self.count >= most => {
                Some(CampaignEnd::TooManyFailures { failures: self.count, cause: None })
            }
            (FailureLimit::UnlessAlike, Beginning::Alike { cause: Some(cause), runs, gpus, workloads }) => {
                let everywhere = gpus.len() >= extent.gpus && workloads.len() >= extent.workloads.min(2);
                let end = || CampaignEnd::TooManyFailures { failures: *runs, cause: Some(cause.text.clone()) };
                (*runs >= FIRST && everywhere).then(end)
            }
            _ => None,
        }
    }
}

fn evidence(run: &RunRecord) -> Evidence {
    if run.standing() == Standing::Expected {
        return Evidence::Nothing;
    }
    match &run.outcome {
        Outcome::Interrupted | Outcome::NotStaged { .. } | Outcome::DeviceLost { .. } | Outcome::ObserverLost { .. } => {
            Evidence::Nothing
        }
        outcome => match cause(run, outcome).filter(|_| is_before_training(run)) {
            Some(text) => Evidence::FailedBefore(Cause { masked: masked(outcome.as_str(), &text), text }),
            None => Evidence::Other,
        },
    }
}

/// *Go* was not sent, or meant nothing: a foreign script waits for none, and reported no epoch.
fn is_before_training(run: &RunRecord) -> bool {
    let is_foreign = run.members.iter().all(|member| !member.barrier && member.training_start_ns.is_none());
    run.timeline.go_ns.is_none() || is_foreign
}

/// The failure of a member, in its own last line; `None` for what is no such failure.
fn cause(run: &RunRecord, outcome: &Outcome) -> Option<String> {
    let text = match outcome {
        Outcome::Crashed { member, status, message, place_alone: true } => {
            let last = run.members.get(*member as usize).and_then(|member| member.log_tail.last());
            format!("{status} {message}{}", last.map(|line| format!(": {line}")).unwrap_or_default())
        }
        Outcome::Crashed { status, message, .. } | Outcome::ProcessEnded { status, message } => format!("{status}: {message}"),
        Outcome::TimedOut { phase, message, .. } => format!("a member {message}, in {phase}"),
        Outcome::EndedEarly { message, .. } | Outcome::ProtocolError { message, .. } => message.clone(),
        Outcome::ModeLost { reason } if stage::found_cpu(&run.attestation) => reason.clone(),
        _ => return None,
    };
    Some(text)
}

/// `0x7f3a`, `4242`, `a1b2c3`; and the UUID of a GPU or of an instance: a cause is the same on both.
static VARYING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let uuid = r"\b(?:(?:GPU|MIG)-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
    Regex::new(&format!(r"{uuid}|\b(?:0x)?[0-9a-fA-F]*[0-9][0-9a-fA-F]*")).ok()
});

fn masked(word: &str, text: &str) -> String {
    let text = VARYING.as_ref().map_or(text.into(), |varying| varying.replace_all(text, "#"));
    format!("{word}: {text}")
}

#[cfg(test)]
mod tests {
    use collo_store::Expectation;

    use super::*;
    use crate::fixture::run_record;

    const NO_CUDA: &str = "RuntimeError: No CUDA GPUs are available, in set-up";

    fn crashed(message: &str) -> RunRecord {
        run_record(Outcome::Crashed { member: 0, status: "exited with 1".into(), message: message.into(), place_alone: false })
    }

    /// The same, once it trained.
    fn trained(mut run: RunRecord) -> RunRecord {
        run.timeline.go_ns = Some(1);
        run.members = vec![member(true, None)];
        run
    }

    fn member(barrier: bool, training_start_ns: Option<u64>) -> collo_store::MemberRecord {
        let text = serde_json::json!({
            "spec": run_record(Outcome::Completed).cell.members[0], "pid": 7, "barrier": barrier, "hello": null, "synthetic": null,
            "ready_ns": null, "training_start_ns": training_start_ns, "training_end_ns": null, "exit": null, "cpu_time_s": null,
            "peak_rss_bytes": null, "allocated_bytes": null, "reserved_bytes": null, "orphans": [], "log_tail": []
        });
        serde_json::from_value(text).expect("a member")
    }

    const ONE: Extent = Extent { gpus: 1, workloads: 1 };

    fn ends(runs: &[RunRecord]) -> Option<CampaignEnd> {
        let mut failures = Failures::default();
        runs.iter().for_each(|run| failures.record(run, None));
        failures.end(FailureLimit::UnlessAlike, ONE)
    }

    fn cause_of(runs: &[RunRecord]) -> Option<String> {
        match ends(runs)? {
            CampaignEnd::TooManyFailures { cause, .. } => cause,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn three_first_runs_that_fail_alike_before_go_end_a_campaign_and_two_do_not() {
        let failed = crashed(NO_CUDA);
        assert_eq!(ends(&[failed.clone(), failed.clone()]), None);
        let cause = Some(format!("exited with 1: {NO_CUDA}"));
        assert_eq!(
            ends(&[failed.clone(), failed.clone(), failed.clone()]),
            Some(CampaignEnd::TooManyFailures { failures: 3, cause })
        );
    }

    #[test]
    fn causes_are_equal_but_for_their_numbers_and_the_first_is_shown() {
        let text = |pid: u32, at: &str| {
            crashed(&format!("OSError: no data for process {pid} at {at} in runs/tiny~a1b2{pid}, in set-up"))
        };
        let shown = cause_of(&[text(4242, "0x7f3a"), text(4243, "0x7f4b"), text(77, "0xc0de")]);
        assert_eq!(
            shown.as_deref(),
            Some("exited with 1: OSError: no data for process 4242 at 0x7f3a in runs/tiny~a1b24242, in set-up")
        );
        let another = crashed("ModuleNotFoundError: No module named 'timm', in set-up");
        assert_eq!(ends(&[crashed(NO_CUDA), another, crashed(NO_CUDA), crashed(NO_CUDA)]), None);
    }

    #[test]
    fn a_cause_on_a_gpu_and_on_an_instance_of_it_is_one() {
        let of = |uuid: &str| masked("mode_lost", &format!("device as it sees it of member 0: asked {uuid}, found cpu"));
        let gpu = of("GPU-5d4445d2-4862-5e88-abcd-28e025ba3298");
        assert_eq!(gpu, of("MIG-1c200ea8-5128-5a9e-a4e9-ce74986cf06f"), "whatever groups of letters a UUID has");
        assert_ne!(gpu, of("nothing"));
    }

    #[test]
    fn a_member_that_reports_nothing_is_known_by_the_last_line_of_its_log() {
        let of = |line: &str| {
            let mut run = run_record(Outcome::Crashed {
                member: 0,
                status: "exited with 1".into(),
                message: "in start".into(),
                place_alone: true,
            });
            run.members = vec![collo_store::MemberRecord { log_tail: vec![line.into()], ..member(false, None) }];
            // A foreign script waits for no *go*.
            run.timeline.go_ns = Some(1);
            run
        };
        let missing = "ModuleNotFoundError: No module named 'timm'";
        assert_eq!(cause_of(&vec![of(missing); 3]), Some(format!("exited with 1 in start: {missing}")));
        assert_eq!(ends(&[of(missing), of("KeyError: 'x'"), of(missing), of(missing)]), None);
        let mut in_an_epoch = of(missing);
        in_an_epoch.members[0].training_start_ns = Some(2);
        assert_eq!(ends(&vec![in_an_epoch; 3]), None);
    }

    #[test]
    fn results_and_runs_that_trained_are_no_beginning_of_failures() {
        let failed = crashed(NO_CUDA);
        let others = [
            run_record(Outcome::ModeLost { reason: "SMs as it sees them of member 0: asked 108, found 110".into() }),
            run_record(Outcome::Completed),
            run_record(Outcome::OutOfMemory { member: 0, message: NO_CUDA.into() }),
            run_record(Outcome::HostOutOfMemory { member: 0, message: NO_CUDA.into() }),
            trained(failed.clone()),
        ];
        for other in others {
            assert_eq!(ends(&vec![other.clone(); 3]), None, "{:?}", other.outcome);
            assert_eq!(ends(&[other, failed.clone(), failed.clone(), failed.clone()]), None);
        }
    }

    #[test]
    fn what_was_not_started_or_was_expected_shows_nothing() {
        let failed = crashed(NO_CUDA);
        let mut expected = crashed("on purpose, in set-up");
        expected.cell.expect = Some(Expectation { outcome: "crashed".into(), reason: "known".into() });
        let refused = run_record(Outcome::NotStaged { reason: "no such profile".into() });
        assert_eq!(ends(&vec![refused.clone(); 9]), None);
        assert_eq!(ends(&vec![expected.clone(); 9]), None);
        let end = ends(&[failed.clone(), refused, failed.clone(), expected, failed]);
        assert!(matches!(end, Some(CampaignEnd::TooManyFailures { failures: 3, .. })), "{end:?}");
    }

    #[test]
    fn every_gpu_and_a_second_workload_must_have_failed_where_there_are_several() {
        let of = |workload: &str| {
            let mut run = crashed(NO_CUDA);
            run.cell.members[0].workload = workload.into();
            run
        };
        let mut failures = Failures::default();
        let mut then = |workload: &str, gpu| {
            failures.record(&of(workload), gpu);
            let end = |gpus, workloads| failures.end(FailureLimit::UnlessAlike, Extent { gpus, workloads }).is_some();
            [end(1, 1), end(1, 5), end(2, 1), end(2, 5)]
        };
        assert_eq!(then("tiny", Some(0)), [false; 4]);
        assert_eq!(then("tiny", Some(0)), [false; 4]);
        assert_eq!(then("tiny", Some(0)), [true, false, false, false]);
        assert_eq!(then("large", Some(0)), [true, true, false, false]);
        assert_eq!(then("tiny", Some(1)), [true; 4]);
    }

    #[test]
    fn a_stored_run_that_trained_counts_and_a_number_of_failures_replaces_the_rule() {
        let mut failures = Failures::default();
        (0..3).for_each(|_| failures.record(&crashed(NO_CUDA), None));
        assert_eq!(failures.end(FailureLimit::Unlimited, ONE), None);
        assert_eq!(failures.end(FailureLimit::Count(4), ONE), None);
        assert_eq!(failures.end(FailureLimit::Count(3), ONE), Some(CampaignEnd::TooManyFailures { failures: 3, cause: None }));
        let stored = |record| StoredRun { record, path: "run".into() };
        let since = |stored: &StoredRun| failures.clone().since([stored].into_iter()).end(FailureLimit::UnlessAlike, ONE);
        assert_eq!(since(&stored(run_record(Outcome::Completed))), None);
        assert!(since(&stored(crashed("another, in set-up"))).is_some(), "it shows no run that trained");
    }
}
