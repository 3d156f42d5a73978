//! How often intervals contain the truth on machines whose pace changes while they are measured: steps, ramps, bursts, and drift
//! over a whole day; small campaigns and large ones, few repetitions and many.

use std::f64::consts::TAU;

use super::random::Random;
use super::{Pool, Term, Variance, log_moments, quantity};

/// How the pace of a simulated machine changes, on top of the noise of each run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Machine {
    Steady,
    /// At some moment everything becomes slower or faster, for good.
    Step,
    /// From the first run to the last, evenly.
    Ramp,
    /// Another process computes during a part of the time; groups lose more than baselines do.
    Bursts,
    /// Slowly up and down over many hours, with a random walk on top.
    DayLong,
}

const MACHINES: [Machine; 5] = [Machine::Steady, Machine::Step, Machine::Ramp, Machine::Bursts, Machine::DayLong];

impl Machine {
    /// The logarithmic change of pace at each run, for baselines and for groups.
    fn paces(self, runs: usize, random: &mut Random) -> Vec<[f64; 2]> {
        let size = 0.05 + 0.20 * random.uniform();
        let size = if random.uniform() < 0.5 { -size } else { size };
        let (at, phase) = (random.uniform() * runs as f64, random.uniform());
        let mut walk = 0.0;
        let mut pace = |i: usize, random: &mut Random| match self {
            Machine::Steady => [0.0; 2],
            Machine::Step => [if (i as f64) < at { 0.0 } else { size }; 2],
            Machine::Ramp => [size * i as f64 / runs as f64; 2],
            Machine::Bursts => {
                // The share of the run that was hit: bursts are about as long as a run.
                let hit = if random.uniform() < 0.5 { random.uniform() * 0.6 } else { 0.0 };
                [0.05 * hit, 0.25 * hit]
            }
            Machine::DayLong => {
                walk += 0.004 * random.normal();
                [size * (TAU * (i as f64 / 400.0 + phase)).sin() + walk; 2]
            }
        };
        (0..runs).map(|i| pace(i, random)).collect()
    }

    /// The mean of a group's change less that of a baseline, in the long run: beside bursts the truth is the mean ratio on a machine
    /// disturbed so, which is not that on a quiet one.
    fn bias(self) -> f64 {
        if self == Machine::Bursts { 0.5 * 0.3 * (0.25 - 0.05) } else { 0.0 }
    }
}

/// One run: cell 0 of a family is its baseline, twice in each block.
struct SimulatedRun {
    cell: usize,
    block: usize,
    log: f64,
}

/// A campaign: families of one baseline and some groups, measured in blocks as plans order them.
fn campaign(machine: Machine, families: usize, groups: usize, repetitions: usize, random: &mut Random) -> Vec<Vec<SimulatedRun>> {
    let runs = families * (groups + 2) * repetitions;
    let paces = machine.paces(runs, random);
    // The size of the noise differs between cells by e^±0.4.
    let sigmas: Vec<f64> = (0..families * (groups + 1)).map(|_| 0.02 * (0.4 * random.normal()).exp()).collect();
    let mut found: Vec<Vec<SimulatedRun>> = (0..families).map(|_| Vec::new()).collect();
    let mut i = 0;
    for block in 0..repetitions {
        for (family, runs) in found.iter_mut().enumerate() {
            let mut order: Vec<usize> = (1..=groups).collect();
            for last in (1..order.len()).rev() {
                order.swap(last, (random.uniform() * (last + 1) as f64) as usize);
            }
            for cell in [vec![0], order, vec![0]].concat() {
                let log = paces[i][usize::from(cell > 0)] + sigmas[family * (groups + 1) + cell] * random.normal();
                runs.push(SimulatedRun { cell, block, log });
                i += 1;
            }
        }
    }
    found
}

/// The ratio of a group to the baselines of the same block, one for each block.
fn ratios(runs: &[SimulatedRun], cell: usize) -> Vec<f64> {
    let mean = |cell: usize, block: usize| {
        let of = runs.iter().filter(|r| r.cell == cell && r.block == block).map(|r| r.log.exp()).collect::<Vec<_>>();
        log_moments(&of).expect("a run in each block").0
    };
    let blocks = 1 + runs.iter().map(|r| r.block).max().unwrap_or(0);
    (0..blocks).map(|block| (mean(cell, block) - mean(0, block)).exp()).collect()
}

/// Share of the intervals of group ÷ baseline that contain the truth, their number, and their median width.
fn coverage(machine: Machine, families: usize, groups: usize, repetitions: usize) -> (f64, usize, f64) {
    let mut random = Random::seeded(20_261_122 + repetitions as u64);
    let (mut hits, mut total, mut widths) = (0, 0, Vec::new());
    for _ in 0..2400_usize.div_ceil(families * groups) {
        let simulated = campaign(machine, families, groups, repetitions, &mut random);
        let cells = simulated.iter().flat_map(|runs| (1..=groups).map(|cell| ratios(runs, cell)));
        let moments: Vec<(f64, Option<Variance>)> = cells.filter_map(|ratios| log_moments(&ratios)).collect();
        let pool = Pool::fit(&moments.iter().filter_map(|m| m.1).collect::<Vec<_>>()).expect("two repetitions");
        for (mean, own) in moments {
            let variance = pool.shrink(own.expect("two repetitions"));
            let q = quantity(mean - machine.bias(), repetitions, &[Term { weight: 1.0, variance, n: repetitions }]);
            let (low, high) = (q.low.expect("an interval"), q.high.expect("an interval"));
            hits += usize::from(low <= 1.0 && 1.0 <= high);
            widths.push((high / low).ln());
            total += 1;
        }
    }
    widths.sort_by(f64::total_cmp);
    (hits as f64 / total as f64, total, widths[widths.len() / 2])
}

#[test]
fn intervals_cover_the_truth_on_machines_that_drift() {
    for machine in MACHINES {
        for (families, groups) in [(1, 1), (1, 2), (8, 4), (2, 20)] {
            for repetitions in [2, 3, 5, 10] {
                let (rate, total, width) = coverage(machine, families, groups, repetitions);
                let what = format!("{machine:?}, {families} families of {groups}, {repetitions} repetitions");
                println!("{what}: {:.1} % of {total}, width {width:.3}", rate * 100.0);
                let two_se = 2.0 * (0.95f64 * 0.05 / total as f64).sqrt();
                // A step inside one of two blocks is taken for noise of all of them: then intervals are too wide.
                let most = if machine == Machine::Step { 0.98 } else { 0.97 };
                // The ratios of a single group say little of a noise so uneven, and nobody lends it theirs.
                let least = if machine == Machine::Bursts && families * groups == 1 { 0.92 } else { 0.93 };
                assert!(rate > least - two_se && rate < most + two_se, "{what}: {rate} of {total}");
            }
        }
    }
}
