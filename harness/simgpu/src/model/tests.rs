//! The model against the table of its design, and its own sense.

use super::*;
use crate::card::Card;

fn load(u: f64, a: f64, m: f64) -> Load {
    Load { u, a, m, pcie: 1e6, occupancy: None, cap: None, server: None, process: None, slice: None, pace: 1.0 }
}

fn a100() -> Card {
    Card::find("a100-40gb").unwrap()
}

fn gain(loads: &[Load]) -> f64 {
    moment(&a100(), loads, 1.0).paces.iter().sum()
}

fn naive(one: &Load, degree: usize) -> f64 {
    gain(&vec![one.clone(); degree])
}

fn mps(one: &Load, degree: usize) -> f64 {
    gain(&vec![Load { server: Some(1), ..one.clone() }; degree])
}

fn mig(one: &Load, degree: u32, sms: f64, memory: f64) -> f64 {
    let slice = |i| Slice { gpu_instance: i, compute_instance: 0, sms: sms / 108.0, memory };
    let all: Vec<Load> = (0..degree).map(|i| Load { slice: Some(slice(i)), ..one.clone() }).collect();
    gain(&all)
}

fn near(got: f64, wanted: f64) {
    assert!((got / wanted - 1.0).abs() < 0.02, "{got:.3}, wanted {wanted}");
}

#[test]
fn the_small_workload_gains_what_the_design_says() {
    let small = load(0.50, 0.34, 0.10);
    for (degree, wanted) in [(1, 1.0), (2, 1.51), (3, 1.74), (7, 1.94)] {
        near(naive(&small, degree), wanted);
    }
    for (degree, wanted) in [(1, 1.0), (2, 1.96), (3, 2.94), (7, 5.48)] {
        near(mps(&small, degree), wanted);
    }
    for (degree, sms, memory, wanted) in [(2, 42.0, 0.5, 2.0), (3, 28.0, 0.25, 2.44), (7, 14.0, 0.125, 2.88)] {
        near(mig(&small, degree, sms, memory), wanted);
    }
}

#[test]
fn the_large_workload_gains_nothing_but_a_little_under_mps() {
    let large = load(0.985, 0.83, 0.45);
    near(naive(&large, 2), 1.0);
    near(mps(&large, 2), 1.14);
    near(mig(&large, 2, 42.0, 0.5), 0.70);
}

#[test]
fn activity_of_one_alone_is_its_own() {
    let alone = moment(&a100(), &[load(0.50, 0.34, 0.10)], 1.0);
    near(alone.card.sm, 0.17);
    near(alone.card.dram, 0.05);
    near(alone.card.graphics, 0.50);
    assert!(alone.power_w > a100().extra.idle_w && alone.power_w < a100().extra.limit_w);
}

#[test]
fn an_a100_draws_what_was_published_of_whole_traces() {
    for (sm, published_w) in [(0.42, 218.0), (0.64, 263.0)] {
        let busy = moment(&a100(), &[load(0.9, sm / 0.9, 0.5 * sm / 0.9)], 1.0);
        near(busy.power_w, published_w);
    }
    assert!(moment(&a100(), &[load(0.5, 0.001, 0.001)], 1.0).power_w > 130.0, "whoever trains keeps the card awake");
}

#[test]
fn a_card_where_nothing_trains_is_idle() {
    let idle = moment(&a100(), &[], 1.0);
    assert_eq!((idle.card, idle.power_w), (Activity::default(), a100().extra.idle_w));
}

#[test]
fn a_limit_on_threads_slows_whoever_fills_more() {
    let small = Load { server: Some(1), ..load(0.50, 0.34, 0.10) };
    let limited = Load { cap: Some(0.17), ..small.clone() };
    near(gain(std::slice::from_ref(&limited)), 1.0 / (0.5 + 0.5 * 2.0));
    near(gain(&[Load { cap: Some(0.5), ..small.clone() }]), 1.0);
    let both = moment(&a100(), &[small, limited], 1.0);
    assert!(both.paces[0] > both.paces[1]);
}

#[test]
fn a_client_that_is_not_attached_takes_turns_with_the_others() {
    let small = load(0.50, 0.34, 0.10);
    let attached = Load { server: Some(1), ..small.clone() };
    let all = mps(&small, 3);
    let mixed = gain(&[attached.clone(), attached, small.clone()]);
    assert!(mixed < all && mixed > naive(&small, 3), "{mixed}");
}

#[test]
fn two_compute_instances_share_the_bandwidth_of_their_gpu_instance() {
    let slice = |ci, sms: f64| Some(Slice { gpu_instance: 1, compute_instance: ci, sms: sms / 108.0, memory: 0.5 });
    let hungry = |ci| Load { slice: slice(ci, 28.0), ..load(0.9, 0.2, 0.45) };
    let one = gain(&[hungry(0)]);
    assert!(gain(&[hungry(0), hungry(1)]) < 1.7 * one);
    let modest = |ci| Load { slice: slice(ci, 28.0), ..load(0.9, 0.2, 0.05) };
    near(gain(&[modest(0), modest(1)]), 2.0 * gain(&[modest(0)]));
}

#[test]
fn instances_add_up_to_the_card_by_their_share() {
    let slice = |gi| Some(Slice { gpu_instance: gi, compute_instance: 0, sms: 42.0 / 108.0, memory: 0.5 });
    let small = |gi| Load { slice: slice(gi), ..load(0.50, 0.34, 0.10) };
    let two = moment(&a100(), &[small(1), small(2)], 1.0);
    let sum: f64 = two.instances.iter().map(|(_, a)| a.sm * 42.0 / 108.0).sum();
    near(two.card.sm, sum);
    near(two.card.sm, 0.34);
    let naive_power = moment(&a100(), &[load(0.5, 0.34, 0.1)], 1.0).power_w;
    assert!(moment(&a100(), &[small(1)], 1.0).power_w < naive_power);
}

#[test]
fn nobody_is_faster_than_alone_and_the_card_is_never_more_than_full() {
    for n in 1..12 {
        for server in [None, Some(1)] {
            let all = vec![Load { server, ..load(0.9, 0.7, 0.5) }; n];
            let now = moment(&a100(), &all, 1.0);
            assert!(now.paces.iter().all(|p| *p > 0.0 && *p < 1.0 + 1e-9));
            assert!(now.card.sm <= 1.0 && now.card.dram <= 1.0 && now.power_w <= a100().extra.limit_w);
        }
    }
}

#[test]
fn warps_are_those_of_each_load_and_never_more_than_the_sms_have() {
    let of = |occupancy| Load { occupancy, server: Some(1), ..load(0.9, 0.5, 0.05) };
    let occupancy = |loads: &[Load]| moment(&a100(), loads, 1.0).card.occupancy;
    near(occupancy(&[of(None)]), 0.45 * 0.45);
    near(occupancy(&[of(Some(0.1))]), 0.1 * 0.45);
    let both = moment(&a100(), &[of(Some(0.1)), of(Some(0.9))], 1.0);
    near(both.card.occupancy, 0.5 * both.card.sm);
}

fn threads(one: &Load, degree: usize, lock: bool) -> f64 {
    gain(&vec![Load { process: Some(Process { pid: 7, lock }), ..one.clone() }; degree])
}

#[test]
fn a_thread_alone_in_its_process_is_as_fast_as_a_process() {
    for one in [load(0.5, 0.34, 0.1), load(0.05, 0.1, 0.1), load(0.985, 0.83, 0.45)] {
        assert!((threads(&one, 1, true) - 1.0).abs() < 1e-9 && (threads(&one, 1, false) - 1.0).abs() < 1e-9);
    }
}

#[test]
fn threads_are_never_faster_than_clients_of_mps_that_would_cost_nothing() {
    for one in [load(0.5, 0.34, 0.1), load(0.05, 0.1, 0.1), load(0.985, 0.83, 0.45), load(0.9, 0.5, 0.6)] {
        for degree in 2..9 {
            let free = mps(&one, degree) / SERVED;
            let (with, without) = (threads(&one, degree, true), threads(&one, degree, false));
            near(without, free);
            assert!(with <= without + 1e-9, "{degree}: {with} {without}");
            assert!(with > threads(&one, degree - 1, true) - 1e-9, "{degree}: {with}");
        }
    }
}

#[test]
fn threads_that_mostly_launch_gain_no_more_than_the_lock_allows() {
    for u in [0.02, 0.1, 0.3] {
        let one = load(u, 0.01, 0.01);
        let most = 1.0 / (lock::HELD * (1.0 - u));
        for degree in 1..40 {
            assert!(threads(&one, degree, true) <= most + 1e-9, "{u} × {degree}");
        }
        near(threads(&one, 39, true), most);
        assert!(threads(&one, 8, false) > 7.9, "without the lock nothing limits them");
    }
}

#[test]
fn the_small_workload_gains_more_in_threads_than_by_turns_and_less_than_under_mps() {
    let small = load(0.50, 0.34, 0.10);
    for (degree, wanted) in [(2, 1.80), (4, 2.71)] {
        let with = threads(&small, degree, true);
        near(with, wanted);
        assert!(naive(&small, degree) < with && with < mps(&small, degree));
    }
}

#[test]
fn a_process_of_threads_takes_turns_with_another_process() {
    let small = load(0.50, 0.34, 0.10);
    let thread = |pid, lock| Load { process: Some(Process { pid, lock }), ..small.clone() };
    let together = gain(&[thread(7, false), thread(7, false), small.clone()]);
    assert!(naive(&small, 3) < together && together < threads(&small, 3, false), "{together}");
    // Two processes have two locks.
    near(gain(&[thread(7, true), thread(8, true)]), naive(&small, 2));
}
