use super::super::MeasuredMember;
use super::*;

const LAW: Law = Law { per_longer_step: 0.2, per_full_compute: 0.35, per_full_time: 0.25 };

pub fn alone(step_s: f64, compute: f64, busy: f64) -> Alone {
    Alone { step_s: Some(step_s), compute, busy, stand_in: None, dram: None, memory_bytes: None }
}

/// Members that a law holds of exactly.
fn group(law: Law, members: &[Alone]) -> MeasuredGroup {
    let member = |index: usize| MeasuredMember {
        alone: members[index],
        family: format!("family {index}"),
        slowdown: law.log_slowdown(members, index).exp(),
        sm_share: None,
    };
    MeasuredGroup { label: String::new(), members: (0..members.len()).map(member).collect() }
}

#[test]
fn a_large_network_starves_a_small_one_more_than_the_reverse() {
    let pair = [alone(0.3, 0.8, 0.8), alone(0.015, 0.17, 0.36)];
    let (large, small) = (LAW.log_slowdown(&pair, 0), LAW.log_slowdown(&pair, 1));
    assert!(small > 5.0 * large, "{large} {small}");
    // By hand: 0.2 · 0.8 · ln 21 + 0.35 · 0.02 + 0.25 · 0.16.
    assert!((small - (0.16 * 21f64.ln() + 0.007 + 0.04)).abs() < 1e-12, "{small}");
}

#[test]
fn the_order_of_the_members_is_nothing_to_it() {
    let members = [alone(0.3, 0.8, 0.8), alone(0.015, 0.17, 0.36), alone(0.1, 0.5, 0.7)];
    let turned = [members[2], members[0], members[1]];
    for (index, place) in [(0, 1), (1, 2), (2, 0)] {
        let (one, other) = (LAW.log_slowdown(&members, index), LAW.log_slowdown(&turned, place));
        assert!((one - other).abs() < 1e-12, "{one} {other}");
    }
}

#[test]
fn where_there_is_enough_for_all_only_longer_steps_cost() {
    let pair = [alone(0.01, 0.2, 0.3), alone(0.01, 0.2, 0.3)];
    assert_eq!(terms(&pair, 0)[1..], [0.0, 0.0]);
    assert!((LAW.log_slowdown(&pair, 0) - 0.2 * 0.2 * 2f64.ln()).abs() < 1e-12);
}

#[test]
fn a_length_is_compared_with_its_like_only() {
    let known = alone(0.3, 0.8, 0.8);
    let by_memory = |bytes: f64| Alone { step_s: None, memory_bytes: Some(bytes), ..known };
    assert_eq!(StepLength::of([known, known].iter()), StepLength::Known);
    assert_eq!(StepLength::of([known, by_memory(1e9)].iter()), StepLength::Alike, "one has seconds, the other bytes");
    let both = [by_memory(16e9), Alone { step_s: Some(0.1), ..by_memory(1e9) }];
    assert_eq!(StepLength::of(both.iter()), StepLength::FromMemory);
    // 16 times the memory is a step 8 times as long.
    assert!((terms(&both, 1)[0] - 0.8 * 9f64.ln()).abs() < 1e-12);
}

#[test]
fn a_law_is_found_again_in_groups_of_every_size() {
    let kinds = [alone(0.3, 0.8, 0.85), alone(0.015, 0.17, 0.36), alone(0.1, 0.55, 0.7), alone(0.2, 0.4, 0.95)];
    let mut groups = Vec::new();
    for a in kinds {
        for b in kinds {
            groups.push(group(LAW, &[a, b]));
            groups.push(group(LAW, &[a, b, kinds[1]]));
        }
    }
    let found = Law::fit(&groups).expect("a fit");
    for (found, true_one) in found.coefficients().into_iter().zip(LAW.coefficients()) {
        assert!((found - true_one).abs() < 1e-6, "{found} {true_one}");
    }
    // What only one of twenty says moves it little.
    groups[3].members[0].slowdown *= 3.0;
    let off = Law::fit(&groups).expect("a fit");
    assert!((off.per_longer_step - 0.2).abs() < 1e-3, "{off:?}");
}

#[test]
fn company_that_only_helps_has_no_negative_coefficients() {
    let faster = Law { per_longer_step: 0.0, per_full_compute: 0.0, per_full_time: 0.0 };
    let mut groups: Vec<MeasuredGroup> =
        (1..9).map(|n| group(faster, &[alone(0.1, 0.1 * f64::from(n), 0.9), alone(0.2, 0.5, 0.9)])).collect();
    groups.iter_mut().flat_map(|group| &mut group.members).for_each(|member| member.slowdown = 0.9);
    assert_eq!(Law::fit(&groups).expect("a fit").coefficients(), [0.0; 3]);
}

#[test]
fn a_slice_costs_by_its_share_of_the_device() {
    let on_slice = |share: f64| {
        let mut group = group(LAW, &[alone(0.1, 0.5, 0.9), alone(0.1, 0.5, 0.9)]);
        for member in &mut group.members {
            (member.sm_share, member.slowdown) = (Some(share), share.powf(-0.45));
        }
        group
    };
    let found = SliceLaw::fit(&[on_slice(1.0 / 7.0), on_slice(3.0 / 7.0), on_slice(2.0 / 7.0)]).expect("a fit");
    assert!((found.per_smaller_slice - 0.45).abs() < 1e-6, "{found:?}");
    assert!((found.log_slowdown(1.0)).abs() < 1e-12);
}
