//! Scenarios with known truth: a campaign of each seed, and what a guideline must not conclude from it.

use super::campaigns;
use crate::support::Fixture;

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

const PLAIN: Scenario =
    Scenario { name: "", about: "", of: campaigns::nothing_gains, unmeasured: None, truths: &[], unlike_published: &[] };

use Wrong::{No, Yes};

/// The first five are the constructed campaigns that today's rules were found to judge wrongly.
pub static SCENARIOS: [Scenario; 34] = [
    Scenario {
        name: "one-noisy",
        about: "eight groups with a gain of 1.12, and one of 1.25 with noise of 40 %",
        of: campaigns::one_noisy,
        truths: &[("collocate", No)],
        ..PLAIN
    },
    Scenario {
        name: "smact-independent",
        about: "half of ten pairs slowed down by 1.3, whatever their SM activity",
        of: campaigns::smact_independent,
        truths: &[("sm-threshold", Yes)],
        unlike_published: &["sm-threshold"],
        ..PLAIN
    },
    Scenario {
        name: "nine-of-ten",
        about: "ten mixed pairs: nine gain nothing, one 1.34",
        of: |seed| campaigns::mixed(seed, "nine-of-ten", 1.0, 1.34),
        truths: &[("mixing", Yes)],
        unlike_published: &["mixing"],
        ..PLAIN
    },
    Scenario {
        name: "mps-equals-mig",
        about: "MPS and MIG equal for five workloads, naive behind for one of them",
        of: campaigns::mps_equals_mig,
        truths: &[("best-mode", Yes)],
        unlike_published: &["best-mode"],
        ..PLAIN
    },
    Scenario {
        name: "energy-tie",
        about: "naive, MPS and MIG need the same 0.62 of the energy in turn",
        of: campaigns::energy_tie,
        truths: &[("least-energy", No)],
        unlike_published: &["least-energy"],
        ..PLAIN
    },
    Scenario {
        name: "smact-decides",
        about: "pairs are slowed down from a summed SM activity of 0.8 on, in proportion to it",
        of: campaigns::smact_decides,
        truths: &[("sm-threshold", No)],
        ..PLAIN
    },
    Scenario {
        name: "mixed-gain",
        about: "ten mixed pairs gain 1.2",
        of: |seed| campaigns::mixed(seed, "mixed-gain", 1.2, 1.2),
        truths: &[("mixing", No)],
        ..PLAIN
    },
    Scenario {
        name: "no-effect",
        about: "three workloads in three modes that gain, save and cost nothing",
        of: campaigns::nothing_gains,
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
        of: |seed| campaigns::gains(seed, "below-relevant", 1.04, 0.96),
        truths: &[("collocate", Yes), ("best-mode", Yes), ("least-energy", Yes), ("naive-in-turn", No)],
        unlike_published: &["collocate", "best-mode", "least-energy"],
        ..PLAIN
    },
    Scenario {
        name: "above-relevant",
        about: "gains of 1.07, MPS 1.07 ahead of the others, energy 0.93 of in turn",
        of: |seed| campaigns::gains(seed, "above-relevant", 1.07, 0.93),
        truths: &[("collocate", No), ("best-mode", No), ("least-energy", No), ("naive-in-turn", No)],
        ..PLAIN
    },
    Scenario {
        name: "naive-loses",
        about: "one of three naive groups does 0.92 of the work in turn, mixed ones 0.92 and 1.3",
        of: campaigns::naive_loses,
        truths: &[("naive-in-turn", Yes), ("mixing", Yes)],
        ..PLAIN
    },
    Scenario {
        name: "mps-behind",
        about: "MPS 1.3 ahead of naive for one workload, 0.9 of it for another",
        of: campaigns::mps_behind,
        truths: &[("best-mode", Yes)],
        unlike_published: &["best-mode"],
        ..PLAIN
    },
    Scenario {
        name: "unfinished",
        about: "MIG is 1.2 ahead of MPS, and has not been measured yet",
        of: campaigns::mig_ahead,
        unmeasured: Some("mig"),
        truths: &[("best-mode", Yes)],
        unlike_published: &["best-mode"],
    },
    Scenario {
        name: "one-workload",
        about: "seven of one workload: 1.95 naive, 5.4 MPS, 2.9 MIG",
        of: campaigns::one_workload,
        truths: &[("collocate", No), ("best-mode", No), ("least-energy", No), ("naive-in-turn", No), ("memory-adds-up", No)],
        ..PLAIN
    },
    Scenario {
        name: "equal-members-1",
        about: "seven equal members, an epoch's own noise 1 %",
        of: |seed| campaigns::equal_members(seed, 0.01),
        truths: &[("fairness", No)],
        ..PLAIN
    },
    Scenario {
        name: "equal-members-5",
        about: "seven equal members, an epoch's own noise 5 %",
        of: |seed| campaigns::equal_members(seed, 0.05),
        truths: &[("fairness", No)],
        ..PLAIN
    },
    Scenario {
        name: "unequal-members",
        about: "one of two equal workloads takes 1.2 times as long as the other",
        of: campaigns::unequal_members,
        truths: &[("fairness", Yes)],
        ..PLAIN
    },
    Scenario {
        name: "starvation-unseen",
        about: "two mixed groups slow down equally, four at 0.65 of each other's pace, finished members exit",
        of: |seed| campaigns::starvation(seed, "exit", 0.65),
        truths: &[("starvation", Yes)],
        ..PLAIN
    },
    Scenario {
        name: "starvation-seen",
        about: "the same, and finished members train on",
        of: |seed| campaigns::starvation(seed, "keep-running", 0.65),
        truths: &[("starvation", Yes)],
        ..PLAIN
    },
    Scenario {
        name: "starvation-none",
        about: "six mixed groups whose members slow down equally",
        of: |seed| campaigns::starvation(seed, "keep-running", 1.0),
        truths: &[("starvation", No)],
        ..PLAIN
    },
    Scenario {
        name: "isolated",
        about: "instances with neighbours 4 % slower than without; alone, MPS costs 1 %",
        of: |seed| campaigns::instances(seed, "isolated", 1.04, 1.01),
        truths: &[("isolation", No), ("alone-overhead", No)],
        ..PLAIN
    },
    Scenario {
        name: "disturbed",
        about: "instances with neighbours 8 % slower than without; alone, MPS costs 8 %",
        of: |seed| campaigns::instances(seed, "disturbed", 1.08, 1.08),
        truths: &[("isolation", Yes), ("alone-overhead", Yes)],
        unlike_published: &["isolation", "alone-overhead"],
        ..PLAIN
    },
    Scenario {
        name: "variants-equal",
        about: "threads of one process, a limit of threads and the larger batch change nothing",
        of: |seed| campaigns::variants(seed, "variants-equal", 1.0),
        truths: &[("one-process", Yes), ("thread-limits", Yes), ("settings", Yes), ("mps-pcie", Yes)],
        unlike_published: &["settings", "mps-pcie"],
        ..PLAIN
    },
    Scenario {
        name: "variants-below",
        about: "each of them brings 4 %",
        of: |seed| campaigns::variants(seed, "variants-below", 1.04),
        truths: &[("one-process", Yes), ("thread-limits", Yes), ("settings", Yes), ("mps-pcie", Yes)],
        unlike_published: &["settings", "mps-pcie"],
        ..PLAIN
    },
    Scenario {
        name: "variants-above",
        about: "each of them brings 15 %",
        of: |seed| campaigns::variants(seed, "variants-above", 1.15),
        truths: &[("one-process", No), ("thread-limits", No), ("settings", No), ("mps-pcie", No)],
        ..PLAIN
    },
    Scenario {
        name: "memory",
        about: "a group needs 1.08 of its solo footprints, and one runs out that should fit",
        of: campaigns::memory,
        truths: &[("memory-adds-up", Yes), ("frontier", Yes)],
        unlike_published: &["memory-adds-up", "frontier"],
        ..PLAIN
    },
    Scenario {
        name: "memory-adds",
        about: "groups need the sum of their solo footprints, and the one whose sum is too large runs out",
        of: campaigns::memory_adds,
        truths: &[("memory-adds-up", No), ("frontier", No)],
        ..PLAIN
    },
    Scenario {
        name: "serving-in-time",
        about: "a server that answers 99.9 % in time beside training",
        of: |seed| campaigns::serving(seed, 0.999),
        truths: &[("serving", No)],
        ..PLAIN
    },
    Scenario {
        name: "serving-late",
        about: "a server that answers 97 % in time beside training",
        of: |seed| campaigns::serving(seed, 0.97),
        truths: &[("serving", Yes)],
        ..PLAIN
    },
    Scenario {
        name: "watched-for-free",
        about: "monitors that cost nothing and 1 %",
        of: |seed| campaigns::watched(seed, 1.01),
        truths: &[("watching", No)],
        ..PLAIN
    },
    Scenario {
        name: "watched-at-a-cost",
        about: "a monitor that costs 8 %",
        of: |seed| campaigns::watched(seed, 1.08),
        truths: &[("watching", Yes)],
        ..PLAIN
    },
    Scenario {
        name: "policies-equal",
        about: "two policies under MPS that take as long as one task per card",
        of: |seed| campaigns::policies(seed, 1.0, 1.0),
        truths: &[("trace-mps-total", Yes), ("trace-best", Yes), ("trace-energy", Yes)],
        unlike_published: &["trace-mps-total", "trace-energy"],
        ..PLAIN
    },
    Scenario {
        name: "policies-tied",
        about: "two policies under MPS with 0.75 and 0.76 of its total",
        of: |seed| campaigns::policies(seed, 0.75, 0.76),
        truths: &[("trace-mps-total", No), ("trace-best", Yes), ("trace-energy", No)],
        ..PLAIN
    },
    Scenario {
        name: "policies-apart",
        about: "two policies under MPS with 0.65 and 0.8 of its total",
        of: |seed| campaigns::policies(seed, 0.65, 0.8),
        truths: &[("trace-mps-total", No), ("trace-best", No), ("trace-energy", No)],
        ..PLAIN
    },
];
