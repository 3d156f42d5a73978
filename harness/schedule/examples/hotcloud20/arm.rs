//! The schedulers that are compared.

use crate::project::{Projection, Work, project};
use collo_schedule::policy::{Policy, exclusive, packed};
use collo_schedule::{Discipline, Keeps, Ledger, Recovery, Site, SiteCard, Task, TaskId, WHOLE_PERMILLE};
use collo_store::Shuffle;

use crate::jobs::Job;
use crate::law::Law;
use crate::published::{HotCloud20, published};

const SECOND_NS: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
/// From its start until a job holds its memory, or runs out of it.
const SETTLE_S: u64 = 20;
/// After out of memory: a card with so much more free, and in the last of so many attempts an idle one.
const STEP_GIB: u64 = 1;
const ATTEMPTS: u32 = 4;

/// A scheduler of the case study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arm {
    SlotBased,
    Reactive,
    Proactive,
    /// The control: predictions that belong to other jobs.
    Shuffled,
    /// The bound: predictions that are right.
    Exact,
}

impl Arm {
    pub const ALL: [Arm; 5] = [Arm::SlotBased, Arm::Reactive, Arm::Proactive, Arm::Shuffled, Arm::Exact];

    pub fn name(self) -> &'static str {
        match self {
            Arm::SlotBased => "slot-based",
            Arm::Reactive => "reactive",
            Arm::Proactive => "proactive",
            Arm::Shuffled => "shuffled",
            Arm::Exact => "exact",
        }
    }

    /// What it is, in a sentence.
    pub fn what(self) -> String {
        match self {
            Arm::Shuffled => "the control: proactive, with each prediction given to another job".into(),
            Arm::Exact => "the bound: proactive, with predictions that are right".into(),
            Arm::SlotBased | Arm::Reactive | Arm::Proactive => {
                published().of(self).map_or_else(String::new, |says| says.what.clone())
            }
        }
    }

    /// The policy behind it.
    pub fn policy(self) -> Box<dyn Policy> {
        let says = published();
        let packed = |profile_ns| packed(WHOLE_PERMILLE, says.most_on_a_card, profile_ns);
        match self {
            Arm::SlotBased => exclusive(),
            Arm::Reactive => packed(Some(says.profile_s * SECOND_NS)),
            Arm::Proactive | Arm::Shuffled | Arm::Exact => packed(None),
        }
    }

    /// Its books. The paper's schedulers see no memory: what they look at is utilisation.
    fn ledger(self, says: &HotCloud20) -> Ledger {
        let card = SiteCard { capacity_bytes: says.card_gib * GIB, reserve_bytes: 0, node: 0 };
        let site = Site {
            policy: self.policy(),
            queue: if self == Arm::SlotBased { Discipline::Fifo { pass: 0 } } else { Discipline::Decreasing },
            recovery: Recovery::Step(STEP_GIB * GIB),
            recovery_keeps: Keeps::Nothing,
            attempts: ATTEMPTS,
            window_ns: 1,
            decide_every_ns: None,
            idle_first: false,
            cards: vec![card; says.cards],
        };
        Ledger::at(site).unrecorded()
    }

    /// What it believes of each job when it is submitted.
    fn beliefs(self, jobs: &[Job], seed: u64) -> Vec<Option<u32>> {
        let predicted = || jobs.iter().map(|job| Some(job.predicted_permille)).collect();
        match self {
            Arm::SlotBased | Arm::Reactive => vec![None; jobs.len()],
            Arm::Proactive => predicted(),
            Arm::Exact => jobs.iter().map(|job| Some(job.work.utilisation_permille)).collect(),
            Arm::Shuffled => {
                let mut all: Vec<Option<u32>> = predicted();
                // Numbers that drew nothing else.
                Shuffle::seeded(!seed).shuffle(&mut all);
                all
            }
        }
    }

    /// What it does with the jobs of a seed, all submitted at once.
    pub fn projected(self, jobs: &[Job], seed: u64, law: Law) -> Projection {
        let says = published();
        let beliefs = self.beliefs(jobs, seed);
        let task =
            |(id, believed_permille)| Task { id: TaskId(id), arrives_ns: 0, cards: 1, estimate_bytes: None, believed_permille };
        let tasks: Vec<Task> = (0..).zip(beliefs).map(task).collect();
        let works: Vec<Work> = jobs.iter().map(|job| job.work).collect();
        project(&tasks, &works, self.ledger(says), SETTLE_S * SECOND_NS, law.paces().as_ref())
    }
}

/// What is assumed of cards and schedulers.
pub fn assumptions(says: &HotCloud20) -> [String; 3] {
    [
        format!(
            "out of memory: found {SETTLE_S} s after a start, that time is lost; again on a card with {} GiB more free, in attempt {} on an idle one",
            STEP_GIB, ATTEMPTS
        ),
        format!(
            "reactive: any idle card profiles for {} s; what it trained is kept, and moving it costs nothing, which favours it",
            says.profile_s
        ),
        "packing: the greatest predicted utilisation first, on the first card where the sum stays within 100 %; later jobs may pass".into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::drawn;

    #[test]
    fn the_control_has_the_predictions_of_all_jobs_and_almost_none_of_its_own() {
        let jobs = drawn(1);
        let sorted = |arm: Arm| {
            let mut all = arm.beliefs(&jobs, 1);
            all.sort_unstable();
            all
        };
        assert_eq!(sorted(Arm::Shuffled), sorted(Arm::Proactive));
        let pairs = Arm::Shuffled.beliefs(&jobs, 1).into_iter().zip(Arm::Proactive.beliefs(&jobs, 1));
        assert!(pairs.filter(|(shuffled, own)| shuffled == own).count() < 10);
    }

    #[test]
    fn every_job_completes_under_every_scheduler_and_some_run_out_of_memory_first() {
        let mut out_of_memory = 0;
        for seed in 1..=20 {
            let jobs = drawn(seed);
            for arm in Arm::ALL {
                let projection = arm.projected(&jobs, seed, Law::Knee);
                assert_eq!(projection.failed(), 0, "{} {seed}", arm.name());
                out_of_memory += projection.out_of_memory();
                assert!(arm != Arm::SlotBased || projection.out_of_memory() == 0);
            }
        }
        assert!(out_of_memory > 0);
    }
}
