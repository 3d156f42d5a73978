use super::super::MeasuredMember;
use super::super::law::tests::alone;
use super::*;

const LAW: Law = Law { per_longer_step: 0.2, per_full_compute: 0.3, per_full_time: 0.2 };

/// The law, and what it does not know: who is busy suffers more.
pub fn groups(count: usize) -> Vec<MeasuredGroup> {
    let member = |place: usize| {
        let of = |salt: u64| share(7 * place as u64 + salt);
        Alone { dram: Some(of(3)), memory_bytes: Some(1e9 * (1.0 + of(4))), ..alone(0.01 + 0.3 * of(0), of(1), of(2)) }
    };
    let group = |place: usize| {
        let members = [member(2 * place), member(2 * place + 1)];
        let slowdown =
            |index: usize| (LAW.log_slowdown(&members, index) + if members[index].busy > 0.5 { 0.3 } else { 0.0 }).exp();
        let one = |index: usize| MeasuredMember {
            alone: members[index],
            family: "f".into(),
            slowdown: slowdown(index),
            sm_share: None,
        };
        MeasuredGroup { label: place.to_string(), members: vec![one(0), one(1)] }
    };
    (0..count).map(group).collect()
}

fn members(group: &MeasuredGroup) -> Vec<Alone> {
    group.members.iter().map(|member| member.alone).collect()
}

#[test]
fn a_forest_learns_what_the_law_does_not_know() {
    let all = groups(120);
    let (learnt, unseen) = all.split_at(100);
    let forest = Forest::grow(LAW, &learnt.iter().collect::<Vec<_>>(), 50, 1);
    let off = |log: &dyn Fn(&[Alone], usize) -> f64| {
        let each = unseen.iter().flat_map(|g| (0..2).map(|i| (log(&members(g), i) - g.members[i].slowdown.ln()).abs()));
        each.sum::<f64>() / (2 * unseen.len()) as f64
    };
    let by_law = off(&|members, index| LAW.log_slowdown(members, index));
    let by_forest = off(&|members, index| forest.log_slowdown(members, index).expect("all is known"));
    assert!(by_forest < 0.3 * by_law, "{by_forest} {by_law}");
}

#[test]
fn a_file_grows_the_same_forest_again() {
    let all = groups(60);
    let stored = StoredForest::of(&all);
    let text = serde_json::to_string(&stored).expect("text");
    let read: StoredForest = serde_json::from_str(&text).expect("the same");
    assert_eq!((read.check(), &read), (Ok(()), &stored));
    let (one, other) = (stored.grown(LAW), read.grown(LAW));
    for group in &all {
        let found = one.log_slowdown(&members(group), 0).expect("known");
        assert_eq!(Some(found), other.log_slowdown(&members(group), 0));
        // What was measured is rounded to four digits, and known again.
        assert!((found - group.members[0].slowdown.ln()).abs() < 0.05, "{found}");
    }
}

#[test]
fn a_large_store_leaves_a_small_file() {
    let stored = StoredForest::of(&groups(1000));
    assert_eq!(
        (stored.groups.len(), stored.check()),
        (MOST_GROUPS, Err("a forest has at most 400 groups of 400 members".into()))
    );
    // Of a few dozen members, as there are.
    let mut few = groups(20);
    few = (0..50).flat_map(|_| few.clone()).collect();
    let stored = StoredForest::of(&few);
    assert_eq!((stored.groups.len(), stored.members.len(), stored.check()), (MOST_GROUPS, 40, Ok(())));
    assert!(crate::json::to_text(&stored).len() < 18_000);
}

#[test]
fn who_lacks_a_number_of_all_rows_has_no_estimate() {
    let all = groups(60);
    let grown = StoredForest::of(&all);
    let mut pair = members(&all[0]);
    assert!(grown.grown(LAW).log_slowdown(&pair, 0).is_some());
    pair[1].dram = None;
    assert_eq!(grown.grown(LAW).log_slowdown(&pair, 0), None);
}

#[test]
fn rows_that_cannot_be_are_refused() {
    let right = StoredForest::of(&groups(60));
    type Break = fn(&mut StoredForest);
    let breaks: [(Break, &str); 6] = [
        (|f| f.groups[0] = "0 1 1.2".into(), "as many slowdowns"),
        (|f| f.groups[0] = "0 900 1.2 1.3".into(), "cannot be"),
        (|f| f.groups[0] = "0 1 -1 1.3".into(), "cannot be"),
        (|f| f.members[0] = "- 0.5 NaN - - -".into(), "six numbers"),
        (|f| f.members[0] = "0.1 - 0.5 - - -".into(), "six numbers"),
        (|f| f.trees = 0, "from 1 to 1000"),
    ];
    for (broken, why) in breaks {
        let mut forest = right.clone();
        broken(&mut forest);
        let found = forest.check().expect_err(why);
        assert!(found.contains(why), "{found}");
    }
}
