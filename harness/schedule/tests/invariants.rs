//! What holds for every trace, site and policy, over random ones.

use std::collections::BTreeMap;

use collo_schedule::policy::{Exclusive, FirstFit, Policy};
use collo_schedule::project::{ALONE_PPM, Attempted, Ending, OverAllocation, Paces, Projection, Site, Straight, Work, project};
use collo_schedule::{Act, AttemptId, Happened, HowEnded, Ledger, Recovery, State, Task, TaskId, WHOLE_PERMILLE};
use proptest::prelude::*;

const CAPACITY: u64 = 8000;

/// A random trace on a random site, under a policy that is built anew for each use.
#[derive(Debug, Clone)]
struct Case {
    tasks: Vec<Task>,
    works: Vec<Work>,
    site: Site,
    /// `None`: a card for each task.
    packs: Option<FirstFit>,
    knee: bool,
}

impl Case {
    fn policy(&self) -> Box<dyn Policy> {
        match self.packs {
            Some(first_fit) => Box::new(first_fit),
            None => Box::new(Exclusive),
        }
    }

    fn most(&self) -> usize {
        self.packs.map_or(1, |first_fit| first_fit.most)
    }

    fn projected(&self) -> Projection {
        let paces: &dyn Paces = match self.knee {
            true => &OverAllocation { least: 1.1, exponent: 1.7 },
            false => &Straight { from: (0.4, 1.1), to: (1.8, 3.0) },
        };
        project(&self.tasks, &self.works, &self.site, self.policy(), paces)
    }

    fn ids(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.iter().map(|task| task.id)
    }
}

/// Tasks of up to so much memory.
fn cases(most_bytes: u64) -> impl Strategy<Value = Case> {
    let task = (0u64..300, proptest::option::of(1u32..=1300), 1u64..400, 1u32..=WHOLE_PERMILLE, 1..=most_bytes);
    let first_fit = (300u32..1500, 1usize..5, proptest::option::of(1u64..60));
    let site = (1usize..5, 0u64..40, 1u64..3000, 2u32..6);
    (proptest::collection::vec(task, 1..40), proptest::option::of(first_fit), site, any::<bool>()).prop_map(
        |(tasks, packs, (cards, settle_ns, step_bytes, attempts), knee)| Case {
            tasks: (0..)
                .zip(&tasks)
                .map(|(id, (arrives_ns, believed_permille, ..))| Task {
                    id: TaskId(id),
                    arrives_ns: *arrives_ns,
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
            site: Site { capacities_bytes: vec![CAPACITY; cards], settle_ns, recovery: Recovery { step_bytes, attempts } },
            packs: packs.map(|(cap_permille, most, profile_ns)| FirstFit { cap_permille, most, profile_ns }),
            knee,
        },
    )
}

fn of_task(projection: &Projection, task: TaskId) -> Vec<Attempted> {
    projection.attempts.iter().filter(|a| a.attempt.task == task).copied().collect()
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
                other.attempt.card == one.attempt.card && other.started_ns <= one.started_ns && one.started_ns < other.ended_ns
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
            let bound = case.site.recovery.attempts as usize;
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

    /// Another body, which lets anything happen at any time.
    #[test]
    fn the_books_balance_after_every_event(case in cases(CAPACITY), choices in proptest::collection::vec(any::<u16>(), 1..200)) {
        let mut ledger = Ledger::new(case.policy(), case.site.recovery, &case.site.capacities_bytes);
        let mut to_come = case.tasks.iter();
        // Who lives, and whether it is being profiled.
        let mut live: BTreeMap<AttemptId, (TaskId, bool)> = BTreeMap::new();
        let mut acts = Vec::new();
        for choice in choices {
            let chosen = live.iter().nth(usize::from(choice >> 3) % live.len().max(1)).map(|(id, (_, profiled))| (*id, *profiled));
            match (chosen, choice % 8) {
                (Some((attempt, _)), 0..=1) => {
                    live.remove(&attempt);
                    ledger.on(Happened::Ended(attempt, HowEnded::Completed));
                }
                (Some((attempt, _)), 2) => {
                    live.remove(&attempt);
                    ledger.on(Happened::Ended(attempt, HowEnded::OutOfMemory));
                }
                (Some((attempt, true)), 3..=4) => {
                    live.insert(attempt, (live[&attempt].0, false));
                    ledger.on(Happened::Profiled(attempt, u32::from(choice) % WHOLE_PERMILLE));
                }
                (Some((attempt, _)), 3..=5) => ledger.on(Happened::Settled(attempt, 10)),
                _ => to_come.next().into_iter().for_each(|task| ledger.on(Happened::Arrived(task.clone()))),
            }
            acts.clear();
            ledger.decide(&mut acts);
            for act in &acts {
                match act {
                    Act::Start(attempt, profile_ns) => {
                        prop_assert!(live.values().all(|(task, _)| *task != attempt.task), "one attempt at a time");
                        live.insert(attempt.id, (attempt.task, profile_ns.is_some()));
                    }
                    Act::Stop(attempt) => prop_assert!(live.remove(attempt).is_some()),
                }
            }
            let states: Vec<State> = case.ids().filter_map(|id| ledger.state(id)).collect();
            prop_assert_eq!(states.len(), case.tasks.len() - to_come.len(), "who arrived is in one state");
            let running = states.iter().filter(|state| matches!(state, State::Running(_))).count();
            let on_cards: usize = ledger.cards().iter().map(|card| card.residents.len()).sum();
            prop_assert_eq!((running, on_cards), (live.len(), live.len()));
            for card in ledger.cards() {
                prop_assert!(card.residents.len() <= case.most());
                prop_assert!(card.residents.len() == 1 || card.residents.iter().all(|r| !r.profiled), "profiled in isolation");
                let cap = case.packs.map_or(0, |first_fit| first_fit.cap_permille);
                prop_assert!(card.residents.len() < 2 || card.promised_permille() <= cap, "no promise beyond the cap");
            }
            // Nobody waits beside an idle card.
            let waits = states.iter().any(|state| matches!(state, State::Waiting | State::Recovering));
            prop_assert!(!waits || ledger.cards().iter().all(|card| !card.is_idle()));
        }
    }
}
