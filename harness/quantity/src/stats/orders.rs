//! Treatments compared within blocks: policies within orders of a trace. In: a value of each treatment in each block. Out: ratios
//! with intervals, whose unit of independence is the block.
//!
//! A randomised complete block design on logarithms (Cochran and Cox, Experimental Designs, 2nd edition, 1957, chapter 4): what a
//! block has in common cancels in the ratio, and the spread of the ratios over blocks is the interval. All differences of *k*
//! treatments in *n* blocks share one error with (k − 1)(n − 1) degrees of freedom, because they share treatments.

use std::collections::BTreeMap;

use super::{Pool, Quantity, Term, Variance, log_moments, quantity, t_quantile};

/// The values of a treatment, by block.
pub type Values<B> = BTreeMap<B, f64>;

/// Of each block that both have: a ÷ b.
pub fn ratios<B: Ord>(a: &Values<B>, b: &Values<B>) -> Vec<f64> {
    a.iter().filter_map(|(block, value)| Some(value / b.get(block)?)).filter(|r| r.is_finite() && *r > 0.0).collect()
}

/// The variance that ratios of these treatments share; `None` if no two of them have two blocks in common.
pub fn pool<B: Ord>(treatments: &[&Values<B>], reference: usize) -> Option<Pool> {
    let variance = |a: &Values<B>, b: &Values<B>| if has_zero(a, b) { None } else { log_moments(&ratios(a, b))?.1 };
    let mut of_pairs: Vec<Variance> = Vec::new();
    for (i, a) in treatments.iter().enumerate() {
        of_pairs.extend(treatments[i + 1..].iter().filter_map(|b| variance(a, b)));
    }
    let weight: f64 = of_pairs.iter().map(|v| v.df).sum();
    if weight <= 0.0 {
        return None;
    }
    // The mean over all pairs is twice the error mean square of the design.
    let s2 = of_pairs.iter().map(|v| v.s2 * v.df).sum::<f64>() / weight;
    let with_two = treatments.iter().filter(|t| t.len() > 1).count().max(2);
    let df = (with_two - 1) as f64 * weight / of_pairs.len() as f64;
    let others = treatments.iter().enumerate().filter(|(i, _)| *i != reference);
    let to_reference: Vec<Variance> = others.filter_map(|(_, t)| variance(t, treatments.get(reference)?)).collect();
    Some(match Pool::fit(&to_reference) {
        Some(Pool::Moderated { prior, .. }) => Pool::Moderated { prior, cap: df },
        _ => Pool::Pooled(Variance { s2, df }),
    })
}

/// True if one of both is 0 in a block that both have: a ratio over the other blocks would be of those where it went otherwise.
pub fn has_zero<B: Ord>(a: &Values<B>, b: &Values<B>) -> bool {
    a.iter().filter_map(|(block, a)| Some((*a, *b.get(block)?))).any(|(a, b)| a <= 0.0 || b <= 0.0)
}

/// a ÷ b over the blocks that both have, with an interval if they are two or more; `None` if they have none in common, or a 0 in one.
pub fn ratio<B: Ord>(a: &Values<B>, b: &Values<B>, pool: Option<&Pool>) -> Option<Quantity> {
    if has_zero(a, b) {
        return None;
    }
    let ratios = ratios(a, b);
    let (mean, own) = log_moments(&ratios)?;
    let n = ratios.len();
    let terms: Vec<Term> =
        own.map(|own| Term { weight: 1.0, variance: pool.map_or(own, |p| p.shrink(own)), n }).into_iter().collect();
    Some(quantity(mean, n, &terms))
}

/// A difference of counts, a − b, mean over blocks, with its 95 % interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub estimate: f64,
    /// Absent for one block.
    pub interval: Option<(f64, f64)>,
    pub n: usize,
}

impl Difference {
    /// True if it is certainly below 0.
    pub fn is_less(&self) -> bool {
        self.interval.is_some_and(|(_, high)| high < 0.0)
    }

    /// True if it is certainly not below 0 by one or more in a block.
    pub fn is_not_less(&self) -> bool {
        self.interval.is_some_and(|(low, _)| low > -1.0)
    }
}

/// Variance of the difference of two whole numbers that are both rounded: counts that do not vary are known no better.
const ROUNDED: f64 = 2.0 / 12.0;

/// The difference of counts over the blocks that both have; `None` without one.
pub fn difference<B: Ord>(a: &Values<B>, b: &Values<B>) -> Option<Difference> {
    let each: Vec<f64> = a.iter().filter_map(|(block, value)| Some(value - b.get(block)?)).collect();
    let n = each.len() as f64;
    if each.is_empty() {
        return None;
    }
    let estimate = each.iter().sum::<f64>() / n;
    let squares: f64 = each.iter().map(|d| (d - estimate).powi(2)).sum();
    let half = (each.len() > 1).then(|| t_quantile(0.975, n - 1.0) * ((squares / (n - 1.0)).max(ROUNDED) / n).sqrt());
    Some(Difference { estimate, interval: half.map(|h| (estimate - h, estimate + h)), n: each.len() })
}

/// The most blocks that are ever proposed.
const MOST: usize = 1000;

/// How many blocks show a difference of this size (of logarithms) with a power of 80 % at 5 %, two-sided, if the spread stays as it
/// is; `None` for more than a thousand.
pub fn blocks_needed(variance: f64, effect: f64) -> Option<usize> {
    (2..=MOST).find(|n| {
        let df = (*n - 1) as f64;
        (t_quantile(0.975, df) + t_quantile(0.8, df)) * (variance / *n as f64).sqrt() <= effect.abs()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    fn values(of: &[f64]) -> Values<usize> {
        of.iter().copied().enumerate().collect()
    }

    #[test]
    fn of_what_was_0_in_a_block_there_is_no_ratio() {
        let (lost, reference) = (values(&[0.0, 0.0, 0.0, 100.0, 120.0]), values(&[50.0; 5]));
        assert_eq!((ratio(&lost, &reference, None), ratio(&reference, &lost, None)), (None, None), "not that of the other two");
        assert_eq!(
            ratio(&values(&[2.0, 2.0]), &values(&[1.0, 1.0, 0.0]), None).map(|q| q.n),
            Some(2),
            "the third is not of both"
        );
    }

    /// A campaign with every treatment equal to the others: orders differ by 20 %, each treatment in an order by 3 %, and treatments
    /// in how much by `uneven`.
    fn campaign(random: &mut Random, treatments: usize, blocks: usize, uneven: f64) -> Vec<Values<usize>> {
        let of_blocks: Vec<f64> = (0..blocks).map(|_| 0.2 * random.normal()).collect();
        let treatment = |random: &mut Random| {
            let sigma = 0.03 * (uneven * random.normal()).exp();
            values(&of_blocks.iter().map(|b| (b + sigma * random.normal()).exp()).collect::<Vec<_>>())
        };
        (0..treatments).map(|_| treatment(random)).collect()
    }

    /// Shares of the intervals that contain 1: of ratios to the reference, and of pairs of others.
    fn coverage(treatments: usize, blocks: usize, uneven: f64, campaigns: usize) -> [f64; 2] {
        let mut random = Random::seeded(20_261_123);
        let (mut hits, mut all) = ([0usize; 2], [0usize; 2]);
        for _ in 0..campaigns {
            let of = campaign(&mut random, treatments, blocks, uneven);
            let pool = pool(&of.iter().collect::<Vec<_>>(), 0);
            for i in 1..treatments {
                for (kind, other) in [(0, 0), (1, i % (treatments - 1) + 1)] {
                    if other == i {
                        continue;
                    }
                    let q = ratio(&of[i], &of[other], pool.as_ref()).expect("common blocks");
                    hits[kind] += usize::from(q.low.is_some_and(|l| l <= 1.0) && q.high.is_some_and(|h| h >= 1.0));
                    all[kind] += 1;
                }
            }
        }
        [0, 1].map(|kind| hits[kind] as f64 / all[kind].max(1) as f64)
    }

    #[test]
    fn intervals_over_orders_contain_the_truth_at_their_nominal_rate() {
        // Of few policies one variance serves all, as everywhere; of eight and more each has its own, shrunk.
        for (treatments, blocks, uneven) in [(2, 3, 0.0), (4, 3, 0.0), (7, 5, 0.0), (7, 2, 0.0), (12, 5, 0.3), (12, 10, 0.3)] {
            let campaigns = 24_000 / (treatments * blocks);
            let rates = coverage(treatments, blocks, uneven, campaigns);
            println!("{treatments} policies, {blocks} orders, uneven by {uneven}: {rates:.3?}");
            for rate in rates.iter().filter(|rate| **rate > 0.0) {
                assert!((0.93..0.97).contains(rate), "{treatments} policies, {blocks} orders: {rates:?}");
            }
        }
    }

    #[test]
    fn runs_of_different_orders_are_never_compared() {
        let (a, b) = (Values::from([(1, 100.0), (2, 110.0)]), Values::from([(2, 55.0), (3, 1.0)]));
        assert_eq!(ratios(&a, &b), [2.0]);
        let one = ratio(&a, &b, None).unwrap();
        assert_eq!((one.estimate, one.low, one.n), (2.0, None, 1), "one order has no interval");
        assert_eq!(ratio(&a, &Values::from([(9, 1.0)]), None), None);
        assert_eq!(pool(&[&a, &b], 0), None);
    }

    #[test]
    fn counts_are_compared_by_their_difference_and_never_known_to_more_than_one() {
        let d = difference(&values(&[0.0, 0.0, 0.0]), &values(&[4.0, 4.0, 4.0])).unwrap();
        assert_eq!(d.estimate, -4.0);
        let (low, high) = d.interval.unwrap();
        assert!(d.is_less() && low < -4.5 && high > -3.5, "{d:?}");
        let same = difference(&values(&[1.0, 0.0, 0.0, 1.0, 0.0]), &values(&[1.0, 0.0, 1.0, 0.0, 0.0])).unwrap();
        assert!(!same.is_less() && same.is_not_less(), "{same:?}");
        assert_eq!(difference(&values(&[1.0]), &values(&[3.0])).unwrap().interval, None);
    }

    #[test]
    fn the_number_of_orders_that_would_tell_agrees_with_the_normal_formula() {
        // (1.96 + 0.84)² · 0.03² ÷ 0.02² = 17.7, and two more for estimating the variance.
        assert_eq!(blocks_needed(0.03f64.powi(2), 0.02), Some(20));
        assert_eq!(blocks_needed(0.03f64.powi(2), 0.2), Some(3));
        assert_eq!(blocks_needed(0.5, 0.001), None);
    }
}
