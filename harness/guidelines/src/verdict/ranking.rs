//! Which of several cells is best. In: cells of the same members, and the ratio of each two. Out: the first, and those that are the same,
//! that cannot be told apart from it, and that are behind.
//!
//! Multiple comparisons with the best (Hsu, The Annals of Statistics 9(5), 1981, pp. 1026–1034): each other cell is compared with the
//! first, at 5 % for all comparisons together, and one-sided. Bonferroni's bound takes the place of Dunnett's constant, which is a little
//! smaller.

use collo_analysis::cell::Cell;
use collo_figures::modes::mode_order;
use collo_quantity::stats::{Quantity, t_quantile};

/// An order of cells with its certainty.
pub struct Ranking<'a> {
    /// The one with the best estimate.
    pub first: &'a Cell,
    /// Shown to be within the threshold of the first.
    pub equal: Vec<&'a Cell>,
    /// Not told apart from the first.
    pub open: Vec<&'a Cell>,
    /// Shown to be worse than the first.
    pub behind: Vec<&'a Cell>,
}

impl<'a> Ranking<'a> {
    /// All that may be the best, the simplest mode first.
    pub fn leaders(&self) -> Vec<&'a Cell> {
        let mut all: Vec<&Cell> =
            [self.first].into_iter().chain(self.equal.iter().copied()).chain(self.open.iter().copied()).collect();
        all.sort_by_key(|c| (mode_order(&c.record.sharing).0, c.record.sharing.as_str(), c.record.degree));
        all
    }

    /// Why there are several leaders: `the same within 5 %`, or `not told apart`; `None` if there is one.
    pub fn tie(&self, threshold: f64) -> Option<String> {
        match (self.equal.is_empty(), self.open.is_empty()) {
            (true, true) => None,
            (false, true) => Some(format!("the same within {}", collo_quantity::number::percent_as_written(threshold))),
            _ => Some("not told apart".into()),
        }
    }
}

/// Rank cells; `ratio(a, b)` is above 1 if `a` is better. `None` without cells.
pub fn rank<'a>(cells: &[&'a Cell], threshold: f64, ratio: impl Fn(&Cell, &Cell) -> Option<Quantity>) -> Option<Ranking<'a>> {
    let ahead = |a: &Cell, b: &Cell| ratio(a, b).is_some_and(|q| q.estimate > 1.0);
    let first = cells.iter().copied().reduce(|best, cell| if ahead(cell, best) { cell } else { best })?;
    let mut found = Ranking { first, equal: Vec::new(), open: Vec::new(), behind: Vec::new() };
    let others: Vec<&Cell> = cells.iter().copied().filter(|c| !std::ptr::eq(*c, first)).collect();
    for other in &others {
        match distance(ratio(first, other), others.len()) {
            Some((_, high)) if high <= threshold.ln_1p() => found.equal.push(other),
            Some((low, _)) if low > 0.0 => found.behind.push(other),
            _ => found.open.push(other),
        }
    }
    Some(found)
}

/// Both ends of the logarithm of a ratio to the first, at 5 % for `comparisons` together.
fn distance(ratio: Option<Quantity>, comparisons: usize) -> Option<(f64, f64)> {
    let q = ratio?;
    let (log, se, df) = (q.estimate.ln(), q.log_se()?, q.df?);
    let half = t_quantile(1.0 - 0.05 / comparisons.max(1) as f64, df) * se;
    Some((log - half, log + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(estimate: f64, factor: f64) -> Option<Quantity> {
        Some(Quantity { estimate, low: Some(estimate / factor), high: Some(estimate * factor), n: 3, df: Some(9.0) })
    }

    #[test]
    fn more_comparisons_need_more_distance() {
        let ends = |comparisons| distance(ratio(1.06, 1.07), comparisons).unwrap();
        assert!(ends(1).0 > 0.0, "one-sided against one other, though the two-sided interval contains 1");
        assert!(ends(4).0 < 0.0 && ends(4).1 > ends(1).1);
        assert_eq!(distance(None, 1), None);
    }
}
