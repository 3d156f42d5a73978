//! Finds numbers that do not belong to their group, in groups that scatter alike or nearly so. In: logarithms of one time per
//! repetition, by group. Out: those that are too far from the others of their group.
//!
//! The generalized extreme studentized deviate test (Rosner 1983, doi 10.1080/00401706.1983.10487848): the furthest is set aside,
//! again and again, and the last one that is significant counts with all before it, so that two outliers do not hide each other.
//! Each is compared with the scatter that is left, which is moderated as in `pool`: a group that is noisier than the others is not
//! full of outliers.

use super::pool::{CELLS_FOR_A_PRIOR, prior};
use super::{Variance, t_quantile};

/// Chance that a set of groups without an outlier has one.
const LEVEL: f64 = 0.005;
/// Share of all numbers that may be outliers, and their largest number.
const SHARE: f64 = 0.1;
const MOST: usize = 50;
/// Of two numbers neither is the odd one.
const LEAST_IN_GROUP: usize = 3;
/// Degrees of freedom of the scatter that few groups are assumed to have in common: too few to learn them from.
const ASSUMED_DF: f64 = 4.0;

/// A number far from the others of its group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlier {
    pub group: usize,
    pub index: usize,
    /// Its distance from the mean of the others.
    pub distance: f64,
}

/// The furthest number of one group that is left: its index, its distance from the mean of the others, and that in units of the
/// standard deviation.
fn furthest(values: &[f64], left: &[bool]) -> Option<(usize, f64, f64)> {
    let n = left.iter().filter(|l| **l).count() as f64;
    if (n as usize) < LEAST_IN_GROUP {
        return None;
    }
    let kept = || values.iter().enumerate().filter(|(i, _)| left[*i]);
    let mean = kept().map(|(_, v)| v).sum::<f64>() / n;
    let (index, value) = kept().max_by(|a, b| (a.1 - mean).abs().total_cmp(&(b.1 - mean).abs()))?;
    let to_others = n / (n - 1.0);
    let distance = (value - mean) * to_others;
    Some((index, distance, distance.abs() / to_others.sqrt()))
}

fn variance(values: &[f64], left: &[bool]) -> Option<Variance> {
    let kept: Vec<f64> = values.iter().zip(left).filter(|(_, l)| **l).map(|(v, _)| *v).collect();
    let (n, df) = (kept.len() as f64, kept.len() as f64 - 1.0);
    let mean = kept.iter().sum::<f64>() / n;
    (df > 0.0).then(|| Variance { s2: kept.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / df, df })
}

/// One group's scatter, moderated by the others'.
fn moderated(all: &[Variance], own: Variance) -> Option<Variance> {
    let df: f64 = all.iter().map(|v| v.df).sum();
    let pooled = all.iter().map(|v| v.s2 * v.df).sum::<f64>() / df;
    let others = match all.len() {
        n if n >= CELLS_FOR_A_PRIOR && pooled > 0.0 => prior(all),
        _ => Variance { s2: pooled, df: ASSUMED_DF },
    };
    let lent = others.df.min(df);
    let df = lent + own.df;
    (df > 0.0).then(|| Variance { s2: (lent * others.s2 + own.df * own.s2) / df, df })
}

/// Every outlier, the furthest first.
pub fn outliers(groups: &[Vec<f64>]) -> Vec<Outlier> {
    let mut left: Vec<Vec<bool>> = groups.iter().map(|g| vec![true; g.len()]).collect();
    let mut far: Vec<_> = groups.iter().zip(&left).map(|(g, l)| furthest(g, l)).collect();
    let mut variances: Vec<_> = groups.iter().zip(&left).map(|(g, l)| variance(g, l)).collect();
    let eligible: usize = groups.iter().map(Vec::len).filter(|n| *n >= LEAST_IN_GROUP).sum();
    let most = ((SHARE * eligible as f64) as usize).clamp(1, MOST);
    let (mut found, mut significant) = (Vec::new(), 0);
    while found.len() < most {
        let size = |g: &usize| far[*g].map_or(f64::NEG_INFINITY, |f| f.2);
        let Some(group) = (0..groups.len()).max_by(|a, b| size(a).total_cmp(&size(b))) else { break };
        let Some((index, distance, size)) = far[group] else { break };
        let candidates: usize =
            far.iter().zip(&left).filter(|(f, _)| f.is_some()).map(|(_, l)| l.iter().filter(|l| **l).count()).sum();
        left[group][index] = false;
        far[group] = furthest(&groups[group], &left[group]);
        variances[group] = variance(&groups[group], &left[group]);
        found.push(Outlier { group, index, distance });
        let rest: Vec<Variance> = variances.iter().flatten().copied().collect();
        let own = variances[group].unwrap_or(Variance { s2: 0.0, df: 0.0 });
        let Some(expected) = moderated(&rest, own) else { break };
        let limit = t_quantile(1.0 - LEVEL / 2.0 / candidates as f64, expected.df);
        if size > limit * expected.s2.sqrt() {
            significant = found.len();
        }
    }
    found.truncate(significant);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    fn noise(random: &mut Random, groups: usize, n: usize) -> Vec<Vec<f64>> {
        (0..groups).map(|_| (0..n).map(|_| 0.01 * random.normal()).collect()).collect()
    }

    #[test]
    fn noise_has_an_outlier_in_one_campaign_of_two_hundred() {
        for (groups, n) in [(3, 3), (3, 10), (20, 3)] {
            let mut random = Random::seeded(7);
            let with = (0..1000).filter(|_| !outliers(&noise(&mut random, groups, n)).is_empty()).count();
            assert!(with <= 12, "{groups} groups of {n}: {with} of 1000");
        }
    }

    #[test]
    fn one_run_that_took_a_third_longer_is_found_in_small_campaigns_and_large_ones() {
        for (groups, n) in [(3, 3), (2, 5), (20, 3), (60, 3)] {
            let mut random = Random::seeded(8);
            let found = (0..200).filter(|_| {
                let mut all = noise(&mut random, groups, n);
                all[1][n - 1] += 1.3f64.ln();
                matches!(outliers(&all)[..], [Outlier { group: 1, index, distance }] if index == n - 1 && distance > 0.2)
            });
            let found = found.count();
            assert!(found >= 180, "{groups} groups of {n}: {found} of 200");
        }
    }

    #[test]
    fn two_outliers_do_not_hide_each_other_and_a_noisy_group_is_none() {
        let mut random = Random::seeded(9);
        let mut all = noise(&mut random, 8, 5);
        all[2][0] += 0.3;
        all[5][4] -= 0.3;
        let mut found: Vec<(usize, usize)> = outliers(&all).iter().map(|o| (o.group, o.index)).collect();
        found.sort_unstable();
        assert_eq!(found, [(2, 0), (5, 4)]);
        // Where the noise of groups differs by e^±0.8, the noisiest are not full of outliers.
        let uneven = |random: &mut Random| -> Vec<Vec<f64>> {
            let sds: Vec<f64> = (0..60).map(|_| 0.01 * (0.8 * random.normal()).exp()).collect();
            sds.iter().map(|sd| (0..3).map(|_| sd * random.normal()).collect()).collect()
        };
        let with = (0..200).filter(|_| !outliers(&uneven(&mut random)).is_empty()).count();
        assert!(with <= 10, "{with} of 200");
    }

    #[test]
    fn of_two_numbers_neither_is_odd_and_without_noise_any_distance_is_far() {
        assert!(outliers(&[vec![0.0, 0.3], vec![0.01, 0.0, -0.01]]).is_empty());
        assert!(outliers(&[]).is_empty() && outliers(&[vec![0.0; 4]]).is_empty());
        assert_eq!(outliers(&[vec![0.0, 0.3, 0.0], vec![0.0; 3]]).len(), 1);
    }
}
