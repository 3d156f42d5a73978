//! What holds for every projection, over random traces, sites and packings.

use super::{ALONE_PPM, Attempted, Ending, OverAllocation, Paces, Projection, Straight, Work, project};
use collo_schedule::policy::{exclusive, packed};
use collo_schedule::{Discipline, Keeps, Ledger, Recovery, Site, SiteCard, Task, TaskId, WHOLE_PERMILLE};
use proptest::prelude::*;

const CAPACITY: u64 = 8000;

/// A random trace on a random site, under a policy that is built anew for each use.
#[derive(Debug, Clone)]
struct Case {
    tasks: Vec<Task>,
    works: Vec<Work>,
    cards: usize,
    settle_ns: u64,
    step_bytes: u64,
    attempts: u32,
    /// Cap, most residents and profile of a packing; `None`: a card for each task.
    packs: Option<(u32, u32, Option<u64>)>,
    knee: bool,
}

impl Case {
    fn ledger(&self) -> Ledger {
        Ledger::at(Site {
            policy: self.packs.map_or_else(exclusive, |(cap_permille, most, profile_ns)| packed(cap_permille, most, profile_ns)),
            queue: if self.packs.is_some() { Discipline::Decreasing } else { Discipline::Fifo { pass: 0 } },
            recovery: Recovery::Step(self.step_bytes),
            recovery_keeps: Keeps::Nothing,
            attempts: self.attempts,
            window_ns: 1,
            decide_every_ns: None,
            idle_first: false,
            cards: vec![SiteCard { capacity_bytes: CAPACITY, reserve_bytes: 0, node: 0 }; self.cards],
        })
    }

    fn most(&self) -> usize {
        self.packs.map_or(1, |(_, most, _)| most as usize)
    }

    fn projected(&self) -> Projection {
        let paces: &dyn Paces = match self.knee {
            true => &OverAllocation { least: 1.1, exponent: 1.7 },
            false => &Straight { from: (0.4, 1.1), to: (1.8, 3.0) },
        };
        project(&self.tasks, &self.works, self.ledger(), self.settle_ns, paces)
    }

    fn ids(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.iter().map(|task| task.id)
    }
}

/// Tasks of up to so much memory.
fn cases(most_bytes: u64) -> impl Strategy<Value = Case> {
    let task = (0u64..300, proptest::option::of(1u32..=1300), 1u64..400, 1u32..=WHOLE_PERMILLE, 1..=most_bytes);
    let packs = (300u32..1500, 1u32..5, proptest::option::of(1u64..60));
    let site = (1usize..5, 0u64..40, 1u64..3000, 2u32..6);
    (proptest::collection::vec(task, 1..40), proptest::option::of(packs), site, any::<bool>()).prop_map(
        |(tasks, packs, (cards, settle_ns, step_bytes, attempts), knee)| Case {
            tasks: (0..)
                .zip(&tasks)
                .map(|(id, (arrives_ns, believed_permille, ..))| Task {
                    id: TaskId(id),
                    arrives_ns: *arrives_ns,
                    cards: 1,
                    estimate_bytes: None,
                    believed_permille: *believed_permille,
                })
                .collect(),
            works: tasks
                .iter()
                .map(|(_, _, solo_ns, utilisation_permille, memory_bytes)| Work {
                    solo_ns: *solo_ns,
                    utilisation_permille: *utilisation_permille,
                    memory_bytes: *memory_bytes,
                })
                .collect(),
            cards,
            settle_ns,
            step_bytes,
            attempts,
            packs,
            knee,
        },
    )
}

fn of_task(projection: &Projection, task: TaskId) -> Vec<Attempted> {
    projection.attempts.iter().filter(|a| a.attempt.task == task).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_task_is_lost_or_doubled(case in cases(CAPACITY * 5 / 4)) {
        let projection = case.projected();
        for id in case.ids() {
            let attempts = of_task(&projection, id);
            let completed = attempts.iter().filter(|a| a.ending == Ending::Completed).count();
            let ended_ns = projection.completed_ns[id.0 as usize];
            prop_assert_eq!(completed, usize::from(ended_ns.is_some()));
            let last = attempts.last().expect("every task is tried");
            prop_assert_ne!(last.ending, Ending::Moved);
            prop_assert!(ended_ns.is_none_or(|ns| ns == last.ended_ns));
            prop_assert!(attempts.is_sorted_by(|before, after| before.ended_ns <= after.started_ns), "one at a time");
            // Only what no card can hold fails; it may complete before it has settled.
            let fits = case.works[id.0 as usize].memory_bytes <= CAPACITY;
            prop_assert!(!fits || ended_ns.is_some());
        }
    }

    #[test]
    fn completion_is_wait_and_execution_to_the_nanosecond(case in cases(CAPACITY)) {
        let projection = case.projected();
        for (task, completed_ns) in case.tasks.iter().zip(&projection.completed_ns) {
            let completion_ns = completed_ns.expect("it fits a card") - task.arrives_ns;
            prop_assert_eq!(completion_ns, projection.wait_ns(task.id) + projection.execution_ns(task.id));
            // In company nobody is faster than alone.
            prop_assert!(projection.execution_ns(task.id) >= case.works[task.id.0 as usize].solo_ns);
        }
    }

    #[test]
    fn a_card_never_has_more_residents_than_the_policy_allows(case in cases(CAPACITY)) {
        let projection = case.projected();
        for one in &projection.attempts {
            let beside = projection.attempts.iter().filter(|other| {
                other.attempt.cards == one.attempt.cards && other.started_ns <= one.started_ns && one.started_ns < other.ended_ns
            });
            // Whoever starts here sees at most so many, itself included.
            let seen = beside.filter(|other| other.attempt.id <= one.attempt.id).count();
            prop_assert!(seen <= case.most(), "{seen} on a card");
        }
    }

    #[test]
    fn recovery_is_bounded(case in cases(CAPACITY * 5 / 4)) {
        let projection = case.projected();
        for id in case.ids() {
            let failed = of_task(&projection, id).iter().filter(|a| a.ending == Ending::OutOfMemory).count();
            let bound = case.attempts as usize;
            let fits = case.works[id.0 as usize].memory_bytes <= CAPACITY;
            prop_assert!(failed <= bound - usize::from(fits), "{failed} of {bound}");
        }
    }

    #[test]
    fn work_is_conserved_whoever_shares_with_whom(case in cases(CAPACITY)) {
        let projection = case.projected();
        let worth = |work: &Work| u128::from(work.solo_ns) * u128::from(ALONE_PPM) * u128::from(work.utilisation_permille);
        let asked: u128 = case.works.iter().map(worth).sum();
        let lost: u128 = projection.attempts.iter().map(|a| a.lost).sum();
        let done: u128 = projection.cards.iter().map(|card| card.done).sum();
        prop_assert_eq!(done, asked + lost);
    }

    #[test]
    fn the_same_trace_gives_the_same_projection(case in cases(CAPACITY)) {
        prop_assert_eq!(case.projected(), case.projected());
    }

    #[test]
    fn a_card_each_is_given_in_the_order_of_arrival(case in cases(CAPACITY)) {
        let projection = Case { packs: None, ..case.clone() }.projected();
        let mut started: Vec<(u64, u64)> = projection
            .attempts
            .iter()
            .map(|a| (case.tasks[a.attempt.task.0 as usize].arrives_ns, a.started_ns))
            .collect();
        started.sort_unstable();
        prop_assert!(started.is_sorted_by_key(|(_, started_ns)| *started_ns));
    }
}
