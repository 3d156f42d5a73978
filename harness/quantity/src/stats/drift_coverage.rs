//! How often intervals contain the truth on machines whose pace changes while they are measured: steps, ramps, bursts, and drift
//! over a whole day; small campaigns and large ones, few repetitions and many.

use std::f64::consts::TAU;

use super::outliers::{Outlier, outliers};
use super::random::Random;
use super::{Pool, Quantity, Term, Variance, log_moments, quantity};

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
    /// One run takes 30 % longer than it should.
    OneOutlier,
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
            Machine::OneOutlier => [if i == at as usize { 1.3f64.ln() } else { 0.0 }; 2],
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

/// Noise of a run; its size differs between cells by e^±`uneven`.
#[derive(Clone, Copy)]
struct Noise {
    sd: f64,
    uneven: f64,
}

const EVEN: Noise = Noise { sd: 0.01, uneven: 0.0 };
const UNEVEN: Noise = Noise { sd: 0.02, uneven: 0.4 };

/// One run: cell 0 of a family is its baseline, twice in each block.
struct SimulatedRun {
    cell: usize,
    block: usize,
    log: f64,
}

/// A campaign: families of one baseline and some groups, measured in blocks as plans order them.
fn campaign(
    (machine, noise): (Machine, Noise),
    families: usize,
    groups: usize,
    repetitions: usize,
    random: &mut Random,
) -> Vec<Vec<SimulatedRun>> {
    let runs = families * (groups + 2) * repetitions;
    let paces = machine.paces(runs, random);
    let sigmas: Vec<f64> = (0..families * (groups + 1)).map(|_| noise.sd * (noise.uneven * random.normal()).exp()).collect();
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

/// The ratio of a group to the baselines of the same block, one for each block, without the runs of a family that are left out.
fn ratios(runs: &[SimulatedRun], cell: usize, left_out: &[usize]) -> Vec<f64> {
    let kept = || runs.iter().enumerate().filter(|(i, _)| !left_out.contains(i)).map(|(_, r)| r);
    let mean = |cell: usize, block: usize| {
        let of = kept().filter(|r| r.cell == cell && r.block == block).map(|r| r.log.exp()).collect::<Vec<_>>();
        log_moments(&of).map(|m| m.0)
    };
    let blocks = 1 + runs.iter().map(|r| r.block).max().unwrap_or(0);
    (0..blocks).filter_map(|block| Some((mean(cell, block)? - mean(0, block)?).exp())).collect()
}

/// The runs of each family that are far from the others of their cell, as the analysis finds them.
fn far_runs(simulated: &[Vec<SimulatedRun>], groups: usize) -> Vec<Vec<usize>> {
    let of = |family: usize, cell: usize| (0..simulated[family].len()).filter(move |&i| simulated[family][i].cell == cell);
    let cells: Vec<(usize, usize)> = (0..simulated.len()).flat_map(|f| (0..=groups).map(move |cell| (f, cell))).collect();
    let logs: Vec<Vec<f64>> = cells.iter().map(|&(f, cell)| of(f, cell).map(|i| simulated[f][i].log).collect()).collect();
    let mut far = vec![Vec::new(); simulated.len()];
    for Outlier { group, index, .. } in outliers(&logs) {
        let (family, cell) = cells[group];
        far[family].extend(of(family, cell).nth(index));
    }
    far
}

/// Intervals of one kind: how many contain the truth, and their widths.
#[derive(Default)]
struct Covered {
    hits: usize,
    widths: Vec<f64>,
}

impl Covered {
    fn add(&mut self, q: &Quantity) {
        let (low, high) = (q.low.expect("an interval"), q.high.expect("an interval"));
        self.hits += usize::from(low <= 1.0 && 1.0 <= high);
        self.widths.push((high / low).ln());
    }

    fn rate(&self) -> f64 {
        self.hits as f64 / self.widths.len() as f64
    }

    fn width(&mut self) -> f64 {
        self.widths.sort_by(f64::total_cmp);
        self.widths[self.widths.len() / 2]
    }
}

/// Intervals of group ÷ baseline: all of them, those of cells that no far run touches, and those without the far runs.
#[derive(Default)]
struct Coverage {
    all: Covered,
    untouched: Covered,
    without: Covered,
}

fn coverage(machine: Machine, noise: Noise, families: usize, groups: usize, repetitions: usize) -> Coverage {
    let mut random = Random::seeded(20_261_122 + repetitions as u64);
    let mut found = Coverage::default();
    for _ in 0..2400_usize.div_ceil(families * groups) {
        let simulated = campaign((machine, noise), families, groups, repetitions, &mut random);
        let far = far_runs(&simulated, groups);
        let cells: Vec<(usize, usize)> = (0..families).flat_map(|f| (1..=groups).map(move |cell| (f, cell))).collect();
        let with: Vec<_> = cells.iter().map(|&(f, cell)| ratios(&simulated[f], cell, &[])).collect();
        let without: Vec<_> = cells.iter().map(|&(f, cell)| ratios(&simulated[f], cell, &far[f])).collect();
        let lent: Vec<Variance> = without.iter().filter_map(|r| log_moments(r)?.1).collect();
        let pool = Pool::fit(&lent).expect("two repetitions");
        let interval = |ratios: &[f64], touched: bool| {
            let (mean, own) = log_moments(ratios)?;
            let shrunk = pool.shrink(own?);
            let variance = if touched && own?.s2 > shrunk.s2 { own? } else { shrunk };
            Some(quantity(mean - machine.bias(), ratios.len(), &[Term { weight: 1.0, variance, n: ratios.len() }]))
        };
        for (with, without) in with.iter().zip(&without) {
            let q = interval(with, with != without).expect("two repetitions");
            found.all.add(&q);
            if with == without {
                found.untouched.add(&q);
            }
            if let Some(q) = interval(without, false) {
                found.without.add(&q);
            }
        }
    }
    found
}

#[test]
fn one_outlier_run_widens_the_intervals_of_no_other_cell_and_is_covered_with_it_and_without() {
    for (families, groups) in [(1, 2), (4, 4), (10, 5)] {
        for repetitions in [3, 5, 10] {
            let mut calm = coverage(Machine::Steady, EVEN, families, groups, repetitions);
            let mut odd = coverage(Machine::OneOutlier, EVEN, families, groups, repetitions);
            let [usual, all, untouched, without] =
                [calm.all.width(), odd.all.width(), odd.untouched.width(), odd.without.width()];
            let what = format!("{families} families of {groups}, {repetitions} repetitions");
            println!(
                "{what}: steady {:.3}, width {usual:.3}; one outlier {:.3}, width {all:.3}; untouched {:.3}, width {untouched:.3}; without it {:.3}, width {without:.3}",
                calm.all.rate(),
                odd.all.rate(),
                odd.untouched.rate(),
                odd.without.rate()
            );
            let slack = |n: usize| 2.0 * (0.95f64 * 0.05 / n as f64).sqrt();
            for (kind, most) in [(&calm.all, 0.97), (&odd.untouched, 0.97), (&odd.without, 0.97), (&odd.all, 1.0)] {
                let slack = slack(kind.widths.len());
                assert!(kind.rate() > 0.93 - slack && kind.rate() < most + slack, "{what}: {}", kind.rate());
            }
            assert!(odd.all.widths.len() >= 2400, "{what}");
            // What one of two cells cannot lend the other makes its own few degrees of freedom count.
            let wider = if families * groups == 2 { 1.4 } else { 1.25 };
            assert!(untouched < wider * usual && without < wider * usual, "{what}: {untouched}, {without} of {usual}");
        }
    }
}

#[test]
fn intervals_cover_the_truth_on_machines_that_drift() {
    for machine in MACHINES {
        for (families, groups) in [(1, 1), (1, 2), (8, 4), (2, 20)] {
            for repetitions in [2, 3, 5, 10] {
                let mut found = coverage(machine, UNEVEN, families, groups, repetitions).all;
                let (rate, total, width) = (found.rate(), found.widths.len(), found.width());
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
