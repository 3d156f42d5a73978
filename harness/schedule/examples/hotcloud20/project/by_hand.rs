//! Small traces whose projection can be computed by hand.

use super::{ALONE_PPM, Ending, Paces, Projection, Work, project};
use collo_schedule::policy::{Policy, exclusive, packed};
use collo_schedule::{Discipline, Keeps, Ledger, Recovery, Site, SiteCard, Task, TaskId};

/// Everybody in company goes at half its pace.
struct Half;

impl Paces for Half {
    fn paces(&self, residents: &[Work]) -> Vec<u32> {
        vec![if residents.len() < 2 { ALONE_PPM } else { ALONE_PPM / 2 }; residents.len()]
    }
}

/// Arrival, belief, and solo time in ns, utilisation, memory of each task; on cards of 100 bytes, settled after 5 ns.
fn played(tasks: &[(u64, Option<u32>, u64, u32, u64)], cards: usize, policy: Box<dyn Policy>) -> Projection {
    let given: Vec<Task> = (0..)
        .zip(tasks)
        .map(|(id, (arrives_ns, believed_permille, ..))| Task {
            id: TaskId(id),
            arrives_ns: *arrives_ns,
            cards: 1,
            estimate_bytes: None,
            believed_permille: *believed_permille,
        })
        .collect();
    let works: Vec<Work> = tasks
        .iter()
        .map(|(_, _, solo_ns, utilisation_permille, memory_bytes)| Work {
            solo_ns: *solo_ns,
            utilisation_permille: *utilisation_permille,
            memory_bytes: *memory_bytes,
        })
        .collect();
    let site = Site {
        policy,
        queue: Discipline::Decreasing,
        recovery: Recovery::Step(10),
        recovery_keeps: Keeps::Nothing,
        attempts: 4,
        window_ns: 1,
        decide_every_ns: None,
        idle_first: false,
        cards: vec![SiteCard { capacity_bytes: 100, reserve_bytes: 0, node: 0 }; cards],
    };
    project(&given, &works, Ledger::at(site), 5, &Half)
}

fn packs(profile_ns: Option<u64>) -> Box<dyn Policy> {
    packed(1000, 3, profile_ns)
}

/// Who ran where, from when until when, and how it ended.
fn stays(projection: &Projection) -> Vec<(u32, u32, u64, u64, Ending)> {
    projection.attempts.iter().map(|a| (a.attempt.task.0, a.attempt.cards[0].0, a.started_ns, a.ended_ns, a.ending)).collect()
}

#[test]
fn who_shares_slows_down_and_who_stays_speeds_up_again() {
    let projection = played(&[(0, Some(600), 100, 600, 1), (0, Some(300), 40, 300, 1)], 1, packs(None));
    // The second is done at 80; by then the first has done 40, and goes on alone.
    assert_eq!(stays(&projection), [(1, 0, 0, 80, Ending::Completed), (0, 0, 0, 140, Ending::Completed)]);
    assert_eq!(projection.utilisation(), Some((0.9 * 80.0 + 0.6 * 60.0) / 140.0));
    assert_eq!(projection.useful_in_use(), Some((0.6 * 100.0 + 0.3 * 40.0) / 140.0));
    assert_eq!(projection.mean_execution_s(), Some((80.0 + 140.0) / 2.0 / 1e9));
}

#[test]
fn an_over_allocated_card_reads_as_full_and_does_less() {
    let projection = played(&[(0, Some(500), 100, 900, 1), (0, Some(500), 100, 900, 1)], 1, packs(None));
    assert_eq!(projection.utilisation(), Some(1.0));
    assert_eq!(projection.useful_in_use(), Some(0.9));
}

#[test]
fn idle_cards_count_until_the_last_task_ends_and_not_where_only_use_counts() {
    let projection = played(&[(0, None, 100, 500, 1), (20, None, 30, 800, 1), (20, None, 50, 800, 1)], 2, exclusive());
    assert_eq!(
        stays(&projection),
        [(1, 1, 20, 50, Ending::Completed), (0, 0, 0, 100, Ending::Completed), (2, 1, 50, 100, Ending::Completed)]
    );
    assert_eq!(projection.wait_ns(TaskId(2)), 30);
    assert_eq!(projection.utilisation(), Some((0.5 * 100.0 + 0.8 * 80.0) / 200.0));
    assert_eq!(projection.utilisation_in_use(), Some((0.5 * 100.0 + 0.8 * 80.0) / 180.0));
    assert_eq!(projection.mean_completion_s(), Some((100.0 + 30.0 + 80.0) / 3.0 / 1e9));
}

#[test]
fn who_finds_no_memory_loses_what_it_did_and_comes_back_where_more_is_free() {
    // The newcomer needs 60 of the 50 that are left, and then an idle card, which it has when the first is done.
    let projection = played(&[(0, Some(500), 20, 500, 50), (1, Some(400), 10, 400, 60)], 1, packs(None));
    // From 1 to 6 both go at half their pace: 2.5 of 20 and of 10.
    assert_eq!(
        stays(&projection),
        [(1, 0, 1, 6, Ending::OutOfMemory), (0, 0, 0, 23, Ending::Completed), (1, 0, 23, 33, Ending::Completed)]
    );
    assert_eq!(projection.attempts[0].lost, 5 * 400 * u128::from(ALONE_PPM / 2));
    assert_eq!((projection.out_of_memory(), projection.failed()), (1, 0));
    assert_eq!(projection.useful_in_use(), Some((0.5 * 20.0 + 0.4 * 10.0) / 33.0));
}

#[test]
fn what_no_card_can_hold_fails_once() {
    let projection = played(&[(0, Some(500), 20, 500, 101)], 2, packs(None));
    assert_eq!(stays(&projection), [(0, 0, 0, 5, Ending::OutOfMemory)]);
    assert_eq!((projection.failed(), projection.mean_completion_s(), projection.useful_in_use()), (1, None, Some(0.0)));
}

#[test]
fn a_task_is_watched_alone_first_and_then_packed_with_what_it_has_done() {
    // Two cards profile two tasks; then both fit one card, and the third is profiled on the other.
    let tasks = [(0, None, 50, 600, 1), (0, None, 50, 300, 1), (0, None, 50, 200, 1)];
    let projection = played(&tasks, 2, packs(Some(10)));
    assert_eq!(
        stays(&projection),
        [
            (1, 1, 0, 10, Ending::Moved),
            // Alone until 10, then in company until both are done; the third fits nowhere else.
            (2, 1, 10, 60, Ending::Completed),
            (0, 0, 0, 90, Ending::Completed),
            (1, 0, 10, 90, Ending::Completed),
        ]
    );
    assert_eq!(projection.wait_ns(TaskId(1)), 0);
    assert_eq!(projection.wait_ns(TaskId(2)), 10);
}

#[test]
fn of_whom_nothing_is_believed_has_a_card_for_itself() {
    let projection = played(&[(0, None, 10, 100, 1), (0, Some(100), 10, 100, 1)], 1, packs(None));
    assert_eq!(stays(&projection), [(0, 0, 0, 10, Ending::Completed), (1, 0, 10, 20, Ending::Completed)]);
}
