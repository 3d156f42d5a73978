//! How often intervals of groups contain the truth that are measured in blocks without their baseline, as on MIG instances: between the
//! baselines before and after them, or after all of them.

use super::pace::{Pace, PacedRun};
use super::random::Random;
use super::{Pool, Term, Variance, log_moments, quantity};

/// How the pace of a simulated machine changes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Machine {
    Steady,
    /// From the first run to the last, evenly.
    Ramp(f64),
    /// At some moment 5 % slower or faster, for good.
    Step,
    /// Autoregressive: 0.9 from run to run, with a standard deviation of 2 %.
    Wandering,
}

const MACHINES: [Machine; 5] = [Machine::Steady, Machine::Ramp(0.02), Machine::Ramp(0.05), Machine::Step, Machine::Wandering];

impl Machine {
    fn paces(self, runs: usize, random: &mut Random) -> Vec<f64> {
        let sign = if random.uniform() < 0.5 { -1.0 } else { 1.0 };
        let at = random.uniform() * runs as f64;
        let mut wandering = 0.02 * random.normal();
        let mut pace = |run: usize| match self {
            Machine::Steady => 0.0,
            Machine::Ramp(size) => sign * size * run as f64 / runs as f64,
            Machine::Step => {
                if (run as f64) < at {
                    0.0
                } else {
                    sign * 0.05
                }
            }
            Machine::Wandering => {
                wandering = 0.9 * wandering + 0.02 * (1.0f64 - 0.81).sqrt() * random.normal();
                wandering
            }
        };
        (0..runs).map(&mut pace).collect()
    }
}

/// A campaign of workloads with a baseline, groups on the whole device, and groups on instances.
#[derive(Debug, Clone, Copy)]
struct Shape {
    workloads: usize,
    whole: usize,
    instances: usize,
    repetitions: usize,
    /// Baselines after the instances, too.
    bracketed: bool,
}

impl Shape {
    fn cells(self) -> usize {
        1 + self.whole + self.instances
    }

    /// The cell of each run and its block, as plans order them.
    fn order(self, random: &mut Random) -> Vec<(usize, usize)> {
        let before = if self.bracketed { self.repetitions.div_ceil(2) } else { self.repetitions };
        let sections = [(before, false), (self.repetitions, true), (self.repetitions - before, false)];
        let blocks = sections.into_iter().flat_map(|(count, on)| std::iter::repeat_n(on, count));
        let mut order = Vec::new();
        for (block, on) in blocks.enumerate() {
            for workload in 0..self.workloads {
                let cell = |place: usize| workload * self.cells() + place;
                let mut here: Vec<usize> =
                    if on { (1 + self.whole..self.cells()).map(cell).collect() } else { (1..=self.whole).map(cell).collect() };
                for last in (1..here.len()).rev() {
                    here.swap(last, (random.uniform() * (last + 1) as f64) as usize);
                }
                let around = if on { Vec::new() } else { vec![cell(0)] };
                order.extend([around.clone(), here, around].concat().into_iter().map(|cell| (cell, block)));
            }
        }
        order
    }
}

/// One run of each cell with the logarithms of its ratio to its baseline, and the uncertainty that these have in common.
struct Ratios {
    on_instance: bool,
    logs: Vec<f64>,
    shared: Option<Variance>,
}

/// The ratios of all groups, all of which are 1 in truth: in the block of the baselines, or at the pace of the run.
fn ratios(shape: Shape, order: &[(usize, usize)], runs: &[PacedRun]) -> Vec<Ratios> {
    let pace = Pace::fit(runs).expect("enough runs");
    let mean = |of: Vec<f64>| of.iter().sum::<f64>() / of.len() as f64;
    let of = |cell: usize| {
        let baseline = cell - cell % shape.cells();
        let on_instance = cell - baseline > shape.whole;
        let places: Vec<usize> = (0..runs.len()).filter(|run| order[*run].0 == cell).collect();
        let beside = |run: usize| match on_instance {
            true => pace.log_at(baseline, run),
            false => mean((0..runs.len()).filter(|r| order[*r] == (baseline, order[run].1)).map(|r| runs[r].log).collect()),
        };
        let logs: Vec<f64> = places.iter().map(|run| runs[*run].log - beside(*run)).collect();
        let shared = on_instance.then(|| {
            let of = pace.variance(&[(cell, 1.0), (baseline, -1.0)]);
            Variance { s2: (of.s2 - pace.noise() / logs.len() as f64).max(0.0), df: of.df }
        });
        Ratios { on_instance, logs, shared }
    };
    (0..shape.workloads * shape.cells()).filter(|cell| cell % shape.cells() > 0).map(of).collect()
}

/// Share of the intervals of groups on instances that contain the truth, their number, and their median width.
fn coverage(machine: Machine, shape: Shape, intervals: usize) -> (f64, usize, f64) {
    let mut random = Random::seeded(20_261_125 + shape.repetitions as u64);
    let (mut hits, mut total, mut widths) = (0, 0, Vec::new());
    while total < intervals {
        let order = shape.order(&mut random);
        let paces = machine.paces(order.len(), &mut random);
        // The size of the noise differs between cells by e^±0.4.
        let sigmas: Vec<f64> = (0..shape.workloads * shape.cells()).map(|_| 0.008 * (0.4 * random.normal()).exp()).collect();
        let run = |(at, (cell, _)): (usize, &(usize, usize))| (*cell, paces[at], sigmas[*cell]);
        let runs: Vec<PacedRun> = order
            .iter()
            .enumerate()
            .map(run)
            .map(|(cell, pace, sigma)| PacedRun { cell, log: pace + sigma * random.normal() })
            .collect();
        let found = ratios(shape, &order, &runs);
        let moments = |r: &Ratios| log_moments(&r.logs.iter().map(|log| log.exp()).collect::<Vec<_>>()).expect("ratios");
        let pool = Pool::fit(&found.iter().filter_map(|r| moments(r).1).collect::<Vec<_>>()).expect("two repetitions");
        for r in found.iter().filter(|r| r.on_instance) {
            let (mean, own) = moments(r);
            let n = r.logs.len();
            let shared = r.shared.expect("of an instance");
            let terms = [
                Term { weight: 1.0, variance: pool.shrink(own.expect("two repetitions")), n },
                Term { weight: 1.0, variance: Variance { s2: shared.s2 * n as f64, df: shared.df }, n },
            ];
            let q = quantity(mean, n, &terms);
            let (low, high) = (q.low.expect("an interval"), q.high.expect("an interval"));
            hits += usize::from(low <= 1.0 && 1.0 <= high);
            widths.push((high / low).ln());
            total += 1;
        }
    }
    widths.sort_by(f64::total_cmp);
    (hits as f64 / total as f64, total, widths[widths.len() / 2])
}

/// Workloads, groups of each on the whole device, on instances; repetitions; whether baselines follow.
const SHAPES: [(usize, usize, usize, usize, bool); 5] =
    [(2, 2, 1, 3, true), (1, 1, 1, 3, true), (2, 2, 1, 2, true), (2, 2, 2, 5, true), (2, 2, 1, 3, false)];

#[test]
fn intervals_of_groups_on_instances_cover_the_truth_on_machines_that_drift() {
    for machine in MACHINES {
        for (workloads, whole, instances, repetitions, bracketed) in SHAPES {
            let shape = Shape { workloads, whole, instances, repetitions, bracketed };
            let (rate, total, width) = coverage(machine, shape, 2000);
            let what = format!("{machine:?}, {shape:?}");
            println!("{what}: {:.1} % of {total}, width {width:.3}", rate * 100.0);
            let two_se = 2.0 * (0.95f64 * 0.05 / total as f64).sqrt();
            // One group lends nobody its variance, and two have few degrees of freedom: then intervals are rather too wide.
            let most = if bracketed && workloads > 1 && repetitions > 2 { 0.97 } else { 0.99 };
            assert!(rate > 0.93 - two_se && rate < most + two_se, "{what}: {rate} of {total}");
        }
    }
}
