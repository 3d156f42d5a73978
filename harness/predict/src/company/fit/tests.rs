use super::super::MeasuredMember;
use super::super::law::tests::alone;
use super::*;
use crate::seeded::share;

const LAW: Law = Law { per_longer_step: 0.2, per_full_compute: 0.35, per_full_time: 0.25 };

/// Every two of so many families, some percent off the law.
fn groups(families: usize) -> Vec<MeasuredGroup> {
    let member =
        |family: usize| alone(0.01 + 0.3 * share(3 * family as u64), share(3 * family as u64 + 1), share(3 * family as u64 + 2));
    let mut all = Vec::new();
    for a in 0..families {
        for b in a + 1..families {
            let members = [member(a), member(b)];
            let noise = |index: usize| 0.04 * (share((100 * a + 10 * b + index) as u64) - 0.5);
            let one = |index: usize, family: usize| MeasuredMember {
                alone: members[index],
                family: family.to_string(),
                slowdown: (LAW.log_slowdown(&members, index) + noise(index)).exp(),
                sm_share: None,
            };
            all.push(MeasuredGroup { label: format!("{a} + {b}"), members: vec![one(0, a), one(1, b)] });
        }
    }
    all
}

#[test]
fn each_group_is_predicted_by_a_fit_that_has_not_seen_it() {
    let found = fit_company(&groups(8)).expect("a fit");
    assert_eq!(found.left_out.iter().map(|by| by.unseen).collect::<Vec<_>>(), [Unseen::EveryFamily, Unseen::OwnFamily]);
    for by in &found.left_out {
        let score = score_company(&by.law).expect("groups");
        assert_eq!((score.groups, score.members), (28, 56));
        assert!(score.gain_median_error < 0.02, "{score:?}");
    }
}

#[test]
fn with_few_families_groups_are_left_out_instead() {
    let found = fit_company(&groups(4)).expect("a fit");
    assert_eq!(found.left_out.iter().map(|by| by.unseen).collect::<Vec<_>>(), [Unseen::Group]);
}

#[test]
fn groups_that_say_nothing_are_refused() {
    assert_eq!(fit_company(&groups(2)), Err(Unfit::TooFewRows { rows: 1, columns: FEWEST_TO_FIT }));
    let mut wrong = groups(5);
    wrong[3].members[1].slowdown = 0.0;
    assert_eq!(fit_company(&wrong), Err(Unfit::NotFinite { row: 4 }));
    wrong[3].members[1].slowdown = 1.0;
    wrong[2].members.pop();
    assert_eq!(fit_company(&wrong), Err(Unfit::NotFinite { row: 3 }));
}
