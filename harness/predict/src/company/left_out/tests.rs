use super::super::MeasuredMember;
use super::super::law::tests::alone;
use super::*;

fn group(families: &[&str]) -> MeasuredGroup {
    let member =
        |family: &&str| MeasuredMember { alone: alone(0.1, 0.5, 0.5), family: family.to_string(), slowdown: 1.2, sm_share: None };
    MeasuredGroup { label: families.join(" + "), members: families.iter().map(member).collect() }
}

/// Every two of six families, and two groups of one.
fn all() -> Vec<MeasuredGroup> {
    let families = ["a", "b", "c", "d", "e", "f"];
    let mut groups = vec![group(&["a", "a"]), group(&["a", "b", "a"])];
    for (place, one) in families.iter().enumerate() {
        groups.extend(families[place + 1..].iter().map(|other| group(&[one, other])));
    }
    groups
}

fn has(group: &MeasuredGroup, family: &str) -> bool {
    group.members.iter().any(|member| member.family == family)
}

#[test]
fn no_fit_has_seen_any_family_of_the_group_that_it_is_judged_by() {
    let groups = all();
    let folds = Unseen::EveryFamily.folds(&groups);
    for fold in &folds {
        for (judged, _) in &fold.judged {
            for member in &groups[*judged].members {
                assert!(fold.learnt.iter().all(|learnt| !has(&groups[*learnt], &member.family)));
            }
        }
    }
    let judged: usize = folds.iter().map(|fold| fold.judged.len()).sum();
    assert_eq!(judged, groups.iter().map(|group| group.members.len()).sum::<usize>(), "each member once");
}

#[test]
fn of_its_own_family_none_is_seen_but_that_of_its_company() {
    let groups = all();
    for fold in Unseen::OwnFamily.folds(&groups) {
        for (group, member) in &fold.judged {
            let own = &groups[*group].members[*member].family;
            assert!(fold.learnt.iter().all(|learnt| !has(&groups[*learnt], own)));
        }
        assert!(fold.learnt.len() > 6);
    }
}

#[test]
fn repeats_of_a_group_are_left_out_with_it() {
    let groups = [all(), all()].concat();
    for fold in Unseen::Group.folds(&groups) {
        for (group, _) in &fold.judged {
            assert!(fold.learnt.iter().all(|learnt| groups[*learnt].label != groups[*group].label));
        }
    }
}

#[test]
fn what_leaves_too_little_to_learn_from_is_no_fold() {
    let groups = [group(&["a", "b"]), group(&["a", "c"]), group(&["b", "c"]), group(&["a", "a"]), group(&["b", "b"])];
    assert!(Unseen::EveryFamily.folds(&groups).is_empty());
    assert_eq!(Unseen::Group.folds(&groups).len(), 5);
}
