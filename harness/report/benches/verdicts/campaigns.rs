//! The campaigns of the scenarios: what is true of each is in its name and its comment.

use collo_store::{AfterMeasured, NOBODY_WATCHES, Outcome};

use super::world::{ALONE_S, World};
use crate::support::Fixture;
use crate::support::random::Random;
use crate::support::serving::Serves;
use crate::support::traces::{PolicyTruth, TraceTruth};

pub fn one_noisy(seed: u64) -> Fixture {
    let names: Vec<String> = (0..9).map(|i| format!("w{i}")).collect();
    let mut world = World::named("one-noisy", seed);
    for name in &names {
        world = world.alone(name);
    }
    for name in names.iter().filter(|n| *n != "w4") {
        world = world.group("naive", &[name, name], 1.12, 1.0);
    }
    world.group("naive", &["w4"; 3], 1.25, 1.0).noisy(0.4).fixture
}

pub fn smact_independent(seed: u64) -> Fixture {
    let mut random = Random::seeded(seed ^ 0x5eed);
    let mut world = World::named("smact-independent", seed);
    let names: Vec<String> = (0..10).map(|i| format!("w{i}")).collect();
    let mut slowed: Vec<bool> = (0..10).map(|i| i % 2 == 0).collect();
    for i in (1..slowed.len()).rev() {
        slowed.swap(i, (random.uniform() * (i + 1) as f64) as usize);
    }
    for (name, slowed) in names.iter().zip(slowed) {
        world.sm_active_ratio = 0.05 + 0.5 * random.uniform();
        let slowdown = if slowed { 1.3 } else { 1.0 };
        world = world.alone(name).group("mps", &[name, name], 2.0 / slowdown, 1.0);
    }
    world.fixture
}

pub fn smact_decides(seed: u64) -> Fixture {
    let mut random = Random::seeded(seed ^ 0x5eed);
    let mut world = World::named("smact-decides", seed);
    for i in 0..10 {
        let name = format!("w{i}");
        world.sm_active_ratio = 0.06 + 0.08 * (i as f64 + random.uniform());
        let slowdown = (2.0 * world.sm_active_ratio / 0.8).max(1.0);
        world = world.alone(&name).group("mps", &[&name, &name], 2.0 / slowdown, 1.0);
    }
    world.fixture
}

/// Ten mixed pairs with the same gain, but for the first.
pub fn mixed(seed: u64, name: &'static str, gain: f64, first: f64) -> Fixture {
    let names = ["w0", "w1", "w2", "w3", "w4"];
    let mut world = names.iter().fold(World::named(name, seed), |world, name| world.alone(name));
    for (i, a) in names.iter().enumerate() {
        for b in &names[i + 1..] {
            let gain = if (*a, *b) == ("w0", "w1") { first } else { gain };
            world = world.group("naive", &[a, b], gain, 1.0);
        }
    }
    world.fixture
}

pub fn mps_equals_mig(seed: u64) -> Fixture {
    let mut world = World::named("mps-equals-mig", seed);
    for (i, name) in ["w0", "w1", "w2", "w3", "w4"].iter().enumerate() {
        let naive = if i == 0 { 1.2 } else { 1.4 };
        world = world.alone(name);
        for (sharing, gain) in [("naive", naive), ("mps", 1.4), ("mig", 1.4)] {
            world = world.group(sharing, &[name, name], gain, 1.0);
        }
    }
    world.fixture
}

pub fn energy_tie(seed: u64) -> Fixture {
    let mut world = World::named("energy-tie", seed);
    for name in ["w0", "w1"] {
        world = world.alone(name);
        for sharing in ["naive", "mps", "mig"] {
            world = world.group(sharing, &[name, name], 1.6, 0.62);
        }
    }
    world.fixture
}

pub fn nothing_gains(seed: u64) -> Fixture {
    let mut world = World::named("no-effect", seed).moving(2e9);
    for name in ["w0", "w1", "w2"] {
        world = world.alone(name);
        for sharing in ["naive", "mps", "mig"] {
            world = world.group(sharing, &[name, name], 1.0, 1.0);
        }
    }
    world.fixture
}

/// Naive and MIG without gain; MPS ahead of both.
pub fn gains(seed: u64, name: &'static str, mps: f64, energy: f64) -> Fixture {
    let mut world = World::named(name, seed);
    for name in ["w0", "w1", "w2"] {
        world = world.alone(name);
        for (sharing, gain, energy) in [("naive", 1.0, 1.0), ("mps", mps, energy), ("mig", 1.0, 1.0)] {
            world = world.group(sharing, &[name, name], gain, energy);
        }
    }
    world.fixture
}

pub fn naive_loses(seed: u64) -> Fixture {
    let names = ["w0", "w1", "w2"];
    let mut world = names.iter().fold(World::named("naive-loses", seed), |world, name| world.alone(name));
    for (name, gain) in names.iter().zip([1.0, 1.2, 0.92]) {
        world = world.group("naive", &[name, name], gain, 1.0);
    }
    world.group("mps", &["w0", "w1"], 1.3, 1.0).group("mps", &["w0", "w2"], 0.92, 1.0).fixture
}

pub fn mps_behind(seed: u64) -> Fixture {
    let mut world = World::named("mps-behind", seed);
    for (name, of_naive) in [("w0", 1.3), ("w1", 1.0), ("w2", 0.9)] {
        world = world.alone(name).group("naive", &[name, name], 1.2, 1.0);
        world = world.group("mps", &[name, name], 1.2 * of_naive, 1.0);
    }
    world.fixture
}

pub fn mig_ahead(seed: u64) -> Fixture {
    let mut world = World::named("unfinished", seed);
    for name in ["w0", "w1", "w2"] {
        world = world.alone(name);
        for (sharing, gain) in [("naive", 1.2), ("mps", 1.4), ("mig", 1.68)] {
            world = world.group(sharing, &[name, name], gain, 1.0);
        }
    }
    world.fixture
}

pub fn one_workload(seed: u64) -> Fixture {
    let mut world = World::named("one-workload", seed).alone("w").holding(2.0);
    for (sharing, gain, energy) in [("naive", 1.95, 0.75), ("mps", 5.4, 0.4), ("mig", 2.9, 0.5)] {
        world = world.group(sharing, &["w"; 7], gain, energy).holding(2.0);
    }
    world.fixture
}

pub fn equal_members(seed: u64, noise: f64) -> Fixture {
    let mut world = World::named("equal-members", seed);
    world.fixture.member_noise = noise;
    world.alone("w0").group("mps", &["w0"; 7], 3.0, 1.0).alone("w1").group("mps", &["w1"; 7], 2.0, 1.0).fixture
}

pub fn unequal_members(seed: u64) -> Fixture {
    World::named("unequal-members", seed).alone("w0").slowed("naive", &[("w0", 1.5), ("w0", 1.8)], 1.0).fixture
}

/// Six mixed groups: in the last four one member makes so much of the other's progress.
pub fn starvation(seed: u64, after: &str, progress: f64) -> Fixture {
    let names = ["w0", "w1", "w2", "w3"];
    let mut world = names.iter().fold(World::named("starvation", seed), |world, name| world.alone(name));
    // The second epoch of a member is measured, and the faster one is gone before the slower one's ends.
    let pairs = names.iter().enumerate().flat_map(|(i, a)| names[i + 1..].iter().map(move |b| (*a, *b)));
    for (i, (a, b)) in pairs.enumerate() {
        let slower = if i < 2 { 1.5 } else { 1.5 / progress };
        world = world.slowed("mps", &[(a, 1.5), (b, slower)], 1.0);
        world.last().record.after_measured = AfterMeasured::parse(after).expect("a word");
    }
    world.fixture
}

/// Two workloads on halves of the GPU, beside themselves alone on such a half, and alone under MPS.
pub fn instances(seed: u64, name: &'static str, by_neighbours: f64, by_mps: f64) -> Fixture {
    let mut world = World::named(name, seed);
    for name in ["w0", "w1"] {
        world = world.alone(name).slowed("mps", &[(name, by_mps)], 1.0);
        world = world.slowed("mig:3g.20gb", &[(name, 1.6)], 1.0);
        let label = world.last().record.cell.clone();
        world = world.slowed("mig", &[(name, 1.6 * by_neighbours), (name, 1.6 * by_neighbours)], 1.0);
        world.last().record.alone_on_slice = vec![label; 2];
    }
    world.fixture
}

/// What each variant does, relative to what it is a variant of.
pub fn variants(seed: u64, name: &'static str, of_plain: f64) -> Fixture {
    let mut world = World::named(name, seed);
    for name in ["w0", "w1"] {
        world = world.moving(2e9).alone(name).group("naive", &[name, name], 1.2, 1.0);
        let naive = world.last().clone();
        world = world.group("threads", &[name, name], 1.2 * of_plain, 1.0);
        // The rate is that of the pace, so that it does not follow from being faster.
        world = world.moving(2e9 * of_plain).group("mps", &[name, name], 1.2, 1.0);
        world = world.group("mps:50%", &[name, name], 1.2 * of_plain, 1.0);
        let solo = world.fixture.cells.iter().find(|c| c.record.baseline && c.record.members[0].workload == name);
        let mut solo = solo.expect("a workload alone").clone();
        let mut group = naive;
        group.epoch_s.iter_mut().for_each(|s| *s /= of_plain);
        for cell in [&mut solo, &mut group] {
            cell.record.cell = cell.record.cell.replace("b32", "b128");
            cell.record.slug = cell.record.slug.replace("b32", "b128");
            cell.record.against.iter_mut().for_each(|label| *label = label.replace("b32", "b128"));
            for member in &mut cell.record.members {
                (member.batch_size, member.solo) = (Some(128), member.solo.replace("b32", "b128"));
            }
        }
        world.fixture.cells.extend([solo, group]);
    }
    world.fixture
}

pub fn memory(seed: u64) -> Fixture {
    let mut world = World::named("memory", seed).alone("w0").holding(4.0).alone("w1").holding(15.0);
    world = world.group("naive", &["w0", "w0"], 1.2, 1.0).holding(4.32);
    world = world.group("naive", &["w1", "w1"], 1.2, 1.0).holding(15.0);
    let ran_out = Outcome::OutOfMemory { member: 1, message: "CUDA out of memory".into() };
    world.fixture.ends(ran_out)
}

pub fn memory_adds(seed: u64) -> Fixture {
    let mut world = World::named("memory-adds", seed).alone("w0").holding(4.0).alone("w1").holding(21.0);
    world = world.group("naive", &["w0", "w0"], 1.2, 1.0).holding(4.0).group("mps", &["w0"; 3], 1.2, 1.0).holding(4.0);
    world = world.group("naive", &["w1", "w1"], 1.2, 1.0).holding(21.0);
    world.fixture.ends(Outcome::OutOfMemory { member: 1, message: "CUDA out of memory".into() })
}

/// A server that answers such a share of its requests in time, beside a trainer.
pub fn serving(seed: u64, in_time: f64) -> Fixture {
    let mut usual = Serves::usual();
    usual.window_s = 8.0;
    let slo_s = usual.slo_s.expect("a limit");
    let left = usual.rate_per_s - (1.0 - in_time).ln() / slo_s;
    let mut fixture = Fixture::named("serving").seed(seed).solo("tiny", 32, ALONE_S).serves("serve", &usual.clone().left(200.0));
    fixture.samples_hz = 2.0;
    fixture.shared_noise = 0.002;
    fixture.beside(&[("serve", usual.left(left))], &[("tiny", ALONE_S)], "mps")
}

pub fn watched(seed: u64, top: f64) -> Fixture {
    let mut fixture = Fixture::named("watched").seed(seed).watched(NOBODY_WATCHES, 1, ALONE_S).watched("collo:10Hz", 1, ALONE_S);
    fixture = fixture.watched("top", 1, top * ALONE_S).repetitions(4);
    fixture.samples_hz = 2.0;
    fixture
}

/// Totals of two policies ÷ that of one task per card, in five orders.
pub fn policies(seed: u64, magm: f64, lug: f64) -> Fixture {
    let mut trace = TraceTruth::burst(5)
        .policy(PolicyTruth::of("magm", "none", "mps", 1, magm))
        .policy(PolicyTruth::of("lug", "none", "mps", 1, lug));
    // The noise is that of the order.
    trace.orders.iter_mut().for_each(|order| *order += 1000 * seed);
    trace.spread = 0.02;
    let world = World::named("policies", seed);
    let mut fixture = world.fixture.solo("tiny", 32, 1.6).solo("large", 32, 4.0).repetitions(2);
    fixture.trace = Some(trace);
    fixture
}
