//! Scenarios with known truth: a campaign of each seed, and what a guideline must not conclude from it.

use collo_store::{AfterMeasured, Outcome};

use super::world::{ALONE_S, World};
use crate::support::Fixture;
use crate::support::random::Random;
use crate::support::serving::Serves;

/// The answer to *holds here?* that is wrong; *open* is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    Yes,
    No,
}

pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    pub of: fn(u64) -> Fixture,
    /// A mode whose runs are still to come.
    pub unmeasured: Option<&'static str>,
    pub truths: &'static [(&'static str, Wrong)],
    /// Guidelines whose published statement is not true here, so that *agrees: yes* is wrong.
    pub unlike_published: &'static [&'static str],
}

const PLAIN: Scenario = Scenario { name: "", about: "", of: nothing_gains, unmeasured: None, truths: &[], unlike_published: &[] };

use Wrong::{No, Yes};

/// The first five are the constructed campaigns that today's rules were found to judge wrongly.
pub static SCENARIOS: [Scenario; 29] = [
    Scenario {
        name: "one-noisy",
        about: "eight groups with a gain of 1.12, and one of 1.25 with noise of 40 %",
        of: one_noisy,
        truths: &[("collocate", No)],
        ..PLAIN
    },
    Scenario {
        name: "smact-independent",
        about: "half of ten pairs slowed down by 1.3, whatever their SM activity",
        of: smact_independent,
        truths: &[("sm-threshold", Yes)],
        unlike_published: &["sm-threshold"],
        ..PLAIN
    },
    Scenario {
        name: "nine-of-ten",
        about: "ten mixed pairs: nine gain nothing, one 1.34",
        of: |seed| mixed(seed, "nine-of-ten", 1.0, 1.34),
        truths: &[("mixing", Yes)],
        unlike_published: &["mixing"],
        ..PLAIN
    },
    Scenario {
        name: "mps-equals-mig",
        about: "MPS and MIG equal for five workloads, naive behind for one of them",
        of: mps_equals_mig,
        truths: &[("best-mode", Yes)],
        unlike_published: &["best-mode"],
        ..PLAIN
    },
    Scenario {
        name: "energy-tie",
        about: "naive, MPS and MIG need the same 0.62 of the energy in turn",
        of: energy_tie,
        truths: &[("least-energy", No)],
        unlike_published: &["least-energy"],
        ..PLAIN
    },
    Scenario {
        name: "smact-decides",
        about: "pairs are slowed down from a summed SM activity of 0.8 on, in proportion to it",
        of: smact_decides,
        truths: &[("sm-threshold", No)],
        ..PLAIN
    },
    Scenario {
        name: "mixed-gain",
        about: "ten mixed pairs gain 1.2",
        of: |seed| mixed(seed, "mixed-gain", 1.2, 1.2),
        truths: &[("mixing", No)],
        ..PLAIN
    },
    Scenario {
        name: "no-effect",
        about: "three workloads in three modes that gain, save and cost nothing",
        of: nothing_gains,
        truths: &[
            ("collocate", Yes),
            ("best-mode", Yes),
            ("least-energy", Yes),
            ("sm-threshold", Yes),
            ("memory-adds-up", No),
            ("naive-in-turn", No),
            ("fairness", No),
            ("mps-pcie", Yes),
        ],
        unlike_published: &["collocate", "best-mode", "least-energy", "sm-threshold", "mps-pcie"],
        ..PLAIN
    },
    Scenario {
        name: "below-relevant",
        about: "gains of 1.04, MPS 1.04 ahead of the others, energy 0.96 of in turn; 5 % is relevant",
        of: |seed| gains(seed, "below-relevant", 1.04, 0.96),
        truths: &[("collocate", Yes), ("best-mode", Yes), ("least-energy", Yes), ("naive-in-turn", No)],
        unlike_published: &["collocate", "best-mode", "least-energy"],
        ..PLAIN
    },
    Scenario {
        name: "above-relevant",
        about: "gains of 1.07, MPS 1.07 ahead of the others, energy 0.93 of in turn",
        of: |seed| gains(seed, "above-relevant", 1.07, 0.93),
        truths: &[("collocate", No), ("best-mode", No), ("least-energy", No), ("naive-in-turn", No)],
        ..PLAIN
    },
    Scenario {
        name: "naive-loses",
        about: "one of three naive groups does 0.92 of the work in turn, mixed ones 0.92 and 1.3",
        of: naive_loses,
        truths: &[("naive-in-turn", Yes), ("mixing", Yes)],
        ..PLAIN
    },
    Scenario {
        name: "mps-behind",
        about: "MPS 1.3 ahead of naive for one workload, 0.9 of it for another",
        of: mps_behind,
        truths: &[("best-mode", Yes)],
        unlike_published: &["best-mode"],
        ..PLAIN
    },
    Scenario {
        name: "unfinished",
        about: "MIG is 1.2 ahead of MPS, and has not been measured yet",
        of: mig_ahead,
        unmeasured: Some("mig"),
        truths: &[("best-mode", Yes)],
        unlike_published: &["best-mode"],
    },
    Scenario {
        name: "one-workload",
        about: "seven of one workload: 1.95 naive, 5.4 MPS, 2.9 MIG",
        of: one_workload,
        truths: &[("collocate", No), ("best-mode", No), ("least-energy", No), ("naive-in-turn", No), ("memory-adds-up", No)],
        ..PLAIN
    },
    Scenario {
        name: "equal-members-1",
        about: "seven equal members, an epoch's own noise 1 %",
        of: |seed| equal_members(seed, 0.01),
        truths: &[("fairness", No)],
        ..PLAIN
    },
    Scenario {
        name: "equal-members-5",
        about: "seven equal members, an epoch's own noise 5 %",
        of: |seed| equal_members(seed, 0.05),
        truths: &[("fairness", No)],
        ..PLAIN
    },
    Scenario {
        name: "unequal-members",
        about: "one of two equal workloads takes 1.2 times as long as the other",
        of: unequal_members,
        truths: &[("fairness", Yes)],
        ..PLAIN
    },
    Scenario {
        name: "starvation-unseen",
        about: "two mixed groups slow down equally, four at 0.65 of each other's pace, finished members exit",
        of: |seed| starvation(seed, "exit", 0.65),
        truths: &[("starvation", Yes)],
        ..PLAIN
    },
    Scenario {
        name: "starvation-seen",
        about: "the same, and finished members train on",
        of: |seed| starvation(seed, "keep-running", 0.65),
        truths: &[("starvation", Yes)],
        ..PLAIN
    },
    Scenario {
        name: "starvation-none",
        about: "six mixed groups whose members slow down equally",
        of: |seed| starvation(seed, "keep-running", 1.0),
        truths: &[("starvation", No)],
        ..PLAIN
    },
    Scenario {
        name: "isolated",
        about: "instances with neighbours 4 % slower than without; alone, MPS costs 1 %",
        of: |seed| instances(seed, "isolated", 1.04, 1.01),
        truths: &[("isolation", No), ("alone-overhead", No)],
        ..PLAIN
    },
    Scenario {
        name: "disturbed",
        about: "instances with neighbours 8 % slower than without; alone, MPS costs 8 %",
        of: |seed| instances(seed, "disturbed", 1.08, 1.08),
        truths: &[("isolation", Yes), ("alone-overhead", Yes)],
        unlike_published: &["isolation", "alone-overhead"],
        ..PLAIN
    },
    Scenario {
        name: "variants-equal",
        about: "threads of one process, a limit of threads and the larger batch change nothing",
        of: |seed| variants(seed, "variants-equal", 1.0),
        truths: &[("one-process", Yes), ("thread-limits", Yes), ("settings", Yes), ("mps-pcie", Yes)],
        unlike_published: &["settings", "mps-pcie"],
        ..PLAIN
    },
    Scenario {
        name: "variants-below",
        about: "each of them brings 4 %",
        of: |seed| variants(seed, "variants-below", 1.04),
        truths: &[("one-process", Yes), ("thread-limits", Yes), ("settings", Yes), ("mps-pcie", Yes)],
        unlike_published: &["settings", "mps-pcie"],
        ..PLAIN
    },
    Scenario {
        name: "variants-above",
        about: "each of them brings 15 %",
        of: |seed| variants(seed, "variants-above", 1.15),
        truths: &[("one-process", No), ("thread-limits", No), ("settings", No), ("mps-pcie", No)],
        ..PLAIN
    },
    Scenario {
        name: "memory",
        about: "a group needs 1.08 of its solo footprints, and one runs out that should fit",
        of: memory,
        truths: &[("memory-adds-up", Yes), ("frontier", Yes)],
        unlike_published: &["memory-adds-up", "frontier"],
        ..PLAIN
    },
    Scenario {
        name: "memory-adds",
        about: "groups need the sum of their solo footprints, and the one whose sum is too large runs out",
        of: memory_adds,
        truths: &[("memory-adds-up", No), ("frontier", No)],
        ..PLAIN
    },
    Scenario {
        name: "serving-in-time",
        about: "a server that answers 99.9 % in time beside training",
        of: |seed| serving(seed, 0.999),
        truths: &[("serving", No)],
        ..PLAIN
    },
    Scenario {
        name: "serving-late",
        about: "a server that answers 97 % in time beside training",
        of: |seed| serving(seed, 0.97),
        truths: &[("serving", Yes)],
        ..PLAIN
    },
];

fn one_noisy(seed: u64) -> Fixture {
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

fn smact_independent(seed: u64) -> Fixture {
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

fn smact_decides(seed: u64) -> Fixture {
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
fn mixed(seed: u64, name: &'static str, gain: f64, first: f64) -> Fixture {
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

fn mps_equals_mig(seed: u64) -> Fixture {
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

fn energy_tie(seed: u64) -> Fixture {
    let mut world = World::named("energy-tie", seed);
    for name in ["w0", "w1"] {
        world = world.alone(name);
        for sharing in ["naive", "mps", "mig"] {
            world = world.group(sharing, &[name, name], 1.6, 0.62);
        }
    }
    world.fixture
}

fn nothing_gains(seed: u64) -> Fixture {
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
fn gains(seed: u64, name: &'static str, mps: f64, energy: f64) -> Fixture {
    let mut world = World::named(name, seed);
    for name in ["w0", "w1", "w2"] {
        world = world.alone(name);
        for (sharing, gain, energy) in [("naive", 1.0, 1.0), ("mps", mps, energy), ("mig", 1.0, 1.0)] {
            world = world.group(sharing, &[name, name], gain, energy);
        }
    }
    world.fixture
}

fn naive_loses(seed: u64) -> Fixture {
    let names = ["w0", "w1", "w2"];
    let mut world = names.iter().fold(World::named("naive-loses", seed), |world, name| world.alone(name));
    for (name, gain) in names.iter().zip([1.0, 1.2, 0.92]) {
        world = world.group("naive", &[name, name], gain, 1.0);
    }
    world.group("mps", &["w0", "w1"], 1.3, 1.0).group("mps", &["w0", "w2"], 0.92, 1.0).fixture
}

fn mps_behind(seed: u64) -> Fixture {
    let mut world = World::named("mps-behind", seed);
    for (name, of_naive) in [("w0", 1.3), ("w1", 1.0), ("w2", 0.9)] {
        world = world.alone(name).group("naive", &[name, name], 1.2, 1.0);
        world = world.group("mps", &[name, name], 1.2 * of_naive, 1.0);
    }
    world.fixture
}

fn mig_ahead(seed: u64) -> Fixture {
    let mut world = World::named("unfinished", seed);
    for name in ["w0", "w1", "w2"] {
        world = world.alone(name);
        for (sharing, gain) in [("naive", 1.2), ("mps", 1.4), ("mig", 1.68)] {
            world = world.group(sharing, &[name, name], gain, 1.0);
        }
    }
    world.fixture
}

fn one_workload(seed: u64) -> Fixture {
    let mut world = World::named("one-workload", seed).alone("w").holding(2.0);
    for (sharing, gain, energy) in [("naive", 1.95, 0.75), ("mps", 5.4, 0.4), ("mig", 2.9, 0.5)] {
        world = world.group(sharing, &["w"; 7], gain, energy).holding(2.0);
    }
    world.fixture
}

fn equal_members(seed: u64, noise: f64) -> Fixture {
    let mut world = World::named("equal-members", seed);
    world.fixture.member_noise = noise;
    world.alone("w0").group("mps", &["w0"; 7], 3.0, 1.0).alone("w1").group("mps", &["w1"; 7], 2.0, 1.0).fixture
}

fn unequal_members(seed: u64) -> Fixture {
    World::named("unequal-members", seed).alone("w0").slowed("naive", &[("w0", 1.5), ("w0", 1.8)], 1.0).fixture
}

/// Six mixed groups: in the last four one member makes so much of the other's progress.
fn starvation(seed: u64, after: &str, progress: f64) -> Fixture {
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
fn instances(seed: u64, name: &'static str, by_neighbours: f64, by_mps: f64) -> Fixture {
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
fn variants(seed: u64, name: &'static str, of_plain: f64) -> Fixture {
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

fn memory(seed: u64) -> Fixture {
    let mut world = World::named("memory", seed).alone("w0").holding(4.0).alone("w1").holding(15.0);
    world = world.group("naive", &["w0", "w0"], 1.2, 1.0).holding(4.32);
    world = world.group("naive", &["w1", "w1"], 1.2, 1.0).holding(15.0);
    let ran_out = Outcome::OutOfMemory { member: 1, message: "CUDA out of memory".into() };
    world.fixture.ends(ran_out)
}

fn memory_adds(seed: u64) -> Fixture {
    let mut world = World::named("memory-adds", seed).alone("w0").holding(4.0).alone("w1").holding(21.0);
    world = world.group("naive", &["w0", "w0"], 1.2, 1.0).holding(4.0).group("mps", &["w0"; 3], 1.2, 1.0).holding(4.0);
    world = world.group("naive", &["w1", "w1"], 1.2, 1.0).holding(21.0);
    world.fixture.ends(Outcome::OutOfMemory { member: 1, message: "CUDA out of memory".into() })
}

/// A server that answers such a share of its requests in time, beside a trainer.
fn serving(seed: u64, in_time: f64) -> Fixture {
    let mut usual = Serves::usual();
    usual.window_s = 8.0;
    let slo_s = usual.slo_s.expect("a limit");
    let left = usual.rate_per_s - (1.0 - in_time).ln() / slo_s;
    let mut fixture = Fixture::named("serving").seed(seed).solo("tiny", 32, ALONE_S).serves("serve", &usual.clone().left(200.0));
    fixture.samples_hz = 2.0;
    fixture.shared_noise = 0.002;
    fixture.beside(&[("serve", usual.left(left))], &[("tiny", ALONE_S)], "mps")
}
