//! What many cells did between two measurements: nothing, the same, or two things. In: how far each moved. Out: where those are that
//! the others are compared with, and which moved beside them.
//!
//! The median is no centre where half of the cells move. Two groups are recognised by their baselines, if these moved otherwise than
//! the rest, or by the moves alone: the best split into two leaves less of the sum of squares than it does of noise (0.36 of normal
//! noise of any size; the limit was fitted to one case in 2,000 among 10 to 200 cells, normal, of uneven size, or with heavy tails).
//! Of the two groups the one that moved less is taken as unchanged.

use super::{median, robust, t_quantile};

/// Minimum number of cells to distinguish what is common from a cell's own.
pub const CELLS_FOR_A_CENTRE: usize = 8;
/// Smallest group of a split: a share of the cells, and so many of them.
const LEAST_SHARE: f64 = 0.15;
const LEAST: usize = 3;
/// Level at which baselines are taken to have moved otherwise than the rest.
const BASELINES_DIFFER: f64 = 0.001;

/// How far a cell moved, as a logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellMove {
    pub log: f64,
    /// Other cells are compared with it.
    pub is_baseline: bool,
}

/// Where the unchanged cells are.
#[derive(Debug, Clone, PartialEq)]
pub struct Centre {
    /// Logarithm of the move that they have in common.
    pub log: f64,
    /// Of that logarithm, from the scatter of their moves.
    pub variance: f64,
    pub moved: Option<MovedGroup>,
}

/// The cells that moved otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct MovedGroup {
    /// Logarithm of their move.
    pub log: f64,
    /// For each cell whether it is one of them.
    pub members: Vec<bool>,
}

impl MovedGroup {
    /// Its number of cells.
    pub fn cells(&self) -> usize {
        self.members.iter().filter(|m| **m).count()
    }
}

/// Find the centre of moves; `None` for too few. Two groups nearer to each other than `relevant`, a logarithm, are one.
pub fn centre(moves: &[CellMove], relevant: f64) -> Option<Centre> {
    if moves.len() < CELLS_FOR_A_CENTRE {
        return None;
    }
    let logs: Vec<f64> = moves.iter().map(|m| m.log).collect();
    let members = by_baselines(moves, relevant).or_else(|| by_gap(&logs, relevant));
    let Some(members) = members else {
        // Of normal noise the median has π ÷ 2 times the variance of the mean.
        let (_, variance) = mean(&logs)?;
        let log = median(&mut logs.clone())?;
        return Some(Centre { log, variance: variance * std::f64::consts::FRAC_PI_2, moved: None });
    };
    let of = |group: bool| mean(&logs.iter().zip(&members).filter(|(_, m)| **m == group).map(|(l, _)| *l).collect::<Vec<_>>());
    let (one, other) = (of(false)?, of(true)?);
    let swapped = other.0.abs() < one.0.abs();
    let ((log, variance), (moved, _)) = if swapped { (other, one) } else { (one, other) };
    let members = members.into_iter().map(|m| m != swapped).collect();
    Some(Centre { log, variance, moved: Some(MovedGroup { log: moved, members }) })
}

/// A robust mean, and its variance.
fn mean(values: &[f64]) -> Option<(f64, f64)> {
    let (mean, squares) = robust::level(values)?;
    let n = values.len() as f64;
    Some((mean, if n > 1.0 { squares / (n - 1.0) / n } else { 0.0 }))
}

/// True for each cell that is not a baseline, if the baselines moved otherwise than all these.
fn by_baselines(moves: &[CellMove], relevant: f64) -> Option<Vec<bool>> {
    let of = |baseline: bool| moves.iter().filter(|m| m.is_baseline == baseline).map(|m| m.log).collect::<Vec<f64>>();
    let (own, others) = (of(true), of(false));
    if own.len() < LEAST || others.len() < LEAST {
        return None;
    }
    let ((a, var_a), (b, var_b)) = (mean(&own)?, mean(&others)?);
    let limit = t_quantile(1.0 - BASELINES_DIFFER / 2.0, (own.len().min(others.len()) - 1) as f64);
    // Nearly all of either must lie on its own side: where only some moved, the moves themselves show which.
    let border = f64::midpoint(a, b);
    let on_side = |m: &&CellMove| (m.log > border) == ((a > b) == m.is_baseline);
    let sides = moves.iter().filter(on_side).count() as f64 >= 0.9 * moves.len() as f64;
    ((a - b).abs() > (limit * (var_a + var_b).sqrt()).max(relevant) && sides)
        .then(|| moves.iter().map(|m| !m.is_baseline).collect())
}

/// True for each cell of the upper group, if the moves have a gap.
fn by_gap(logs: &[f64], relevant: f64) -> Option<Vec<bool>> {
    let n = logs.len();
    let mut sorted = logs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let least = LEAST.max((LEAST_SHARE * n as f64).ceil() as usize);
    let squares = |sum: f64, of_squares: f64, k: usize| of_squares - sum * sum / k as f64;
    let centre = sorted[n / 2];
    let total: (f64, f64) = sorted.iter().map(|x| x - centre).fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    let (mut below, mut best) = ((0.0, 0.0), (f64::INFINITY, 0));
    for (i, x) in sorted.iter().map(|x| x - centre).enumerate() {
        below = (below.0 + x, below.1 + x * x);
        let k = i + 1;
        if k >= least && k + least <= n {
            let rest = squares(below.0, below.1, k) + squares(total.0 - below.0, total.1 - below.1, n - k);
            if rest < best.0 {
                best = (rest, k);
            }
        }
    }
    let (rest, k) = best;
    let limit = 0.36 - 1.05 / (n as f64).sqrt();
    if k == 0 || rest >= limit * squares(total.0, total.1, n) {
        return None;
    }
    let apart = mean(&sorted[k..])?.0 - mean(&sorted[..k])?.0;
    (apart > relevant).then(|| logs.iter().map(|x| *x >= sorted[k]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    fn noise(random: &mut Random, n: usize, moved: impl Fn(usize) -> f64) -> Vec<CellMove> {
        (0..n).map(|i| CellMove { log: moved(i) + 0.01 * random.normal(), is_baseline: i < n / 5 }).collect()
    }

    #[test]
    fn noise_and_what_moves_all_cells_have_one_centre() {
        let mut random = Random::seeded(3);
        for n in [8, 20, 50] {
            let split = (0..2000).filter(|_| centre(&noise(&mut random, n, |_| 0.06), 0.02).unwrap().moved.is_some()).count();
            assert!(split <= 4, "{n}: {split} of 2000");
            let found = centre(&noise(&mut random, n, |_| 0.06), 0.02).unwrap();
            assert!((found.log - 0.06).abs() < 0.02 && found.variance.sqrt() < 0.01, "{found:?}");
        }
        assert_eq!(centre(&noise(&mut random, 7, |_| 0.0), 0.02), None);
    }

    #[test]
    fn a_group_that_moved_is_found_and_the_others_are_the_centre() {
        let mut random = Random::seeded(4);
        // All that share, three of five, half, and a quarter.
        let kinds: [fn(usize) -> bool; 4] = [|i| i >= 10, |i| i % 5 < 3, |i| i % 2 == 0, |i| i % 4 == 0];
        for (kind, slowed) in kinds.into_iter().enumerate() {
            for size in [0.08, -0.08] {
                for _ in 0..50 {
                    let moves = noise(&mut random, 50, |i| if slowed(i) { size } else { 0.0 });
                    let found = centre(&moves, 0.02).unwrap();
                    let moved = found.moved.unwrap();
                    assert!(found.log.abs() < 0.01 && (moved.log - size).abs() < 0.01, "{kind} {size}: {moved:?}");
                    let right = moved.members.iter().enumerate().filter(|(i, m)| **m == slowed(*i)).count();
                    assert!(right >= 49, "{kind} {size}: {right}");
                }
            }
        }
    }

    #[test]
    fn one_cell_that_moved_is_no_group() {
        let mut random = Random::seeded(5);
        let moves = noise(&mut random, 30, |i| if i == 7 { 0.2 } else { 0.0 });
        let found = centre(&moves, 0.02).unwrap();
        assert!(found.moved.is_none() && found.log.abs() < 0.01);
    }
}
