//! How often intervals contain the truth where cells are repeated until theirs is as narrow as wanted: few and many planned
//! repetitions, wide and narrow wishes, one cell and several that share their variance.

use super::random::Random;
use super::{Pool, Quantity, Term, log_moments, quantity};

const SIGMA: f64 = 0.02;
const AT_MOST: usize = 10;

/// The intervals of cells whose true value is 1, by what was measured of each so far.
fn intervals(cells: &[Vec<f64>]) -> Vec<Quantity> {
    let moments: Vec<_> = cells.iter().map(|c| log_moments(c).expect("values")).collect();
    let own = |i: usize| moments[i].1.expect("two repetitions");
    let pool = Pool::fit(&(0..cells.len()).map(own).collect::<Vec<_>>()).expect("two repetitions");
    let of = |i: usize| {
        let (variance, n) = (pool.shrink(own(i)), cells[i].len());
        quantity(moments[i].0, n, &[Term { weight: 1.0, variance, n }])
    };
    (0..cells.len()).map(of).collect()
}

/// A campaign under `until`: cells that are too wide get a repetition each, until none is, or all have had theirs.
fn campaign(cells: usize, planned: usize, width_ratio: f64, random: &mut Random) -> Vec<Quantity> {
    let mut one = || (SIGMA * random.normal()).exp();
    let mut measured: Vec<Vec<f64>> = (0..cells).map(|_| (0..planned).map(|_| one()).collect()).collect();
    loop {
        let found = intervals(&measured);
        let width = |q: &Quantity| (q.high.expect("an interval") - q.low.expect("an interval")) / q.estimate;
        let wide = |i: &usize| width(&found[*i]) > width_ratio && measured[*i].len() < AT_MOST;
        let wide: Vec<usize> = (0..cells).filter(wide).collect();
        if wide.is_empty() {
            return found;
        }
        wide.into_iter().for_each(|i| measured[i].push(one()));
    }
}

/// Share of the intervals that contain the truth.
fn coverage(cells: usize, planned: usize, width_ratio: f64) -> f64 {
    let mut random = Random::seeded(20_261_123);
    let campaigns = 2400 / cells;
    let all: Vec<Quantity> = (0..campaigns).flat_map(|_| campaign(cells, planned, width_ratio, &mut random)).collect();
    let contains = |q: &&Quantity| q.low.is_some_and(|low| low <= 1.0) && q.high.is_some_and(|high| 1.0 <= high);
    all.iter().filter(contains).count() as f64 / all.len() as f64
}

#[test]
fn repeating_until_intervals_are_narrow_costs_little_coverage_and_less_with_more_planned_repetitions() {
    for (planned, least) in [(2, 0.88), (3, 0.90), (5, 0.92)] {
        for cells in [1, 4, 12] {
            for widths_in_sigma in [1.0, 1.5, 2.0, 3.0, 5.0] {
                let rate = coverage(cells, planned, widths_in_sigma * SIGMA);
                let what = format!("{planned} planned, {cells} cells, {widths_in_sigma} σ wide");
                println!("{what}: {:.1} %", rate * 100.0);
                assert!(rate >= least && rate < 0.97, "{what}: {rate}");
            }
        }
    }
}
