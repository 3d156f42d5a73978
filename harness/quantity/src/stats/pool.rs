//! Shares information about variance between cells. In: one variance per cell. Out: each variance, shrunk towards the others'.

use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor};
use statrs::function::gamma::digamma;

/// A variance of logarithms with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variance {
    pub s2: f64,
    pub df: f64,
}

/// With fewer variances no prior is fitted: one pooled variance serves all.
pub(super) const CELLS_FOR_A_PRIOR: usize = 8;

/// The variances of one quantity over a campaign's cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pool {
    /// One variance for all cells.
    Pooled(Variance),
    /// Each cell's own, shrunk towards a prior; no cell gets more degrees of freedom than all together have.
    Moderated { prior: Variance, cap: f64 },
}

impl Pool {
    /// Fit from the cells that have two repetitions or more; `None` without such a cell.
    pub fn fit(variances: &[Variance]) -> Option<Pool> {
        let df: f64 = variances.iter().map(|v| v.df).sum();
        if df <= 0.0 {
            return None;
        }
        let pooled = variances.iter().map(|v| v.s2 * v.df).sum::<f64>() / df;
        if variances.len() < CELLS_FOR_A_PRIOR || pooled == 0.0 {
            return Some(Pool::Pooled(Variance { s2: pooled, df }));
        }
        Some(Pool::Moderated { prior: prior(variances), cap: df })
    }

    /// A cell's variance after shrinking.
    pub fn shrink(&self, own: Variance) -> Variance {
        match *self {
            Pool::Pooled(v) => v,
            // A cell that jumps is not calmed by the others: its own few repetitions are all that is known of it.
            Pool::Moderated { prior, .. } if beyond(own, prior) => own,
            Pool::Moderated { prior, cap } if prior.df.is_infinite() => Variance { s2: prior.s2, df: cap },
            Pool::Moderated { prior, cap } => {
                let df = prior.df + own.df;
                Variance { s2: (prior.df * prior.s2 + own.df * own.s2) / df, df: df.min(cap) }
            }
        }
    }

    /// The method's name as the page prints it.
    pub fn name(&self) -> &'static str {
        match self {
            Pool::Pooled(_) => "pooled t",
            Pool::Moderated { .. } => "moderated t",
        }
    }
}

/// Below this p-value a cell's variance does not belong to those of the others.
const BEYOND: f64 = 0.001;

/// True where a variance is far larger than the prior allows, by an F test.
fn beyond(own: Variance, prior: Variance) -> bool {
    let ratio = own.s2 / prior.s2;
    // Nothing up to three times the prior can be that far at any degrees of freedom of a few repetitions.
    if ratio.is_nan() || ratio <= 3.0 || own.df <= 0.0 {
        return false;
    }
    let p = if prior.df.is_infinite() {
        ChiSquared::new(own.df).ok().map(|d| d.sf(ratio * own.df))
    } else {
        FisherSnedecor::new(own.df, prior.df).ok().map(|d| d.sf(ratio))
    };
    p.is_some_and(|p| p < BEYOND)
}

/// Prior scale and degrees of freedom by the moments of the log-variances (Smyth 2004, section 6.2).
pub(super) fn prior(variances: &[Variance]) -> Variance {
    let mut sorted: Vec<f64> = variances.iter().map(|v| v.s2).collect();
    sorted.sort_by(f64::total_cmp);
    // A variance of exactly 0 has no logarithm; it is lifted to a hundred-thousandth of the median (or of the largest).
    let floor = 1e-5 * if sorted[sorted.len() / 2] > 0.0 { sorted[sorted.len() / 2] } else { sorted[sorted.len() - 1] };
    let g = variances.len() as f64;
    let e: Vec<f64> = variances.iter().map(|v| v.s2.max(floor).ln() - digamma(v.df / 2.0) + (v.df / 2.0).ln()).collect();
    let mean = e.iter().sum::<f64>() / g;
    let spread = e.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (g - 1.0);
    let excess = spread - variances.iter().map(|v| trigamma(v.df / 2.0)).sum::<f64>() / g;
    if excess <= 0.0 {
        return Variance { s2: mean.exp(), df: f64::INFINITY };
    }
    let df = 2.0 * trigamma_inverse(excess);
    Variance { s2: (mean + digamma(df / 2.0) - (df / 2.0).ln()).exp(), df }
}

/// Derivative of the digamma function, by recurrence up to 8 and the asymptotic series from there.
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 8.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let i = 1.0 / (x * x);
    sum + 1.0 / x + i / 2.0 + i / x * (1.0 / 6.0 - i * (1.0 / 30.0 - i * (1.0 / 42.0 - i / 30.0)))
}

/// The argument at which the trigamma function has this value: Newton on its reciprocal, which is nearly linear.
fn trigamma_inverse(y: f64) -> f64 {
    if y > 1e7 {
        return 1.0 / y.sqrt();
    }
    if y < 1e-6 {
        return 1.0 / y;
    }
    let mut x = 0.5 + 1.0 / y;
    for _ in 0..50 {
        let t = trigamma(x);
        let slope = (trigamma(x * (1.0 + 1e-6)) - t) / (x * 1e-6);
        let step = t * (1.0 - t / y) / slope;
        x += step;
        if -step / x < 1e-10 {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    #[test]
    fn trigamma_has_its_known_values() {
        let pi2 = std::f64::consts::PI.powi(2);
        assert!((trigamma(1.0) - pi2 / 6.0).abs() < 1e-10);
        assert!((trigamma(0.5) - pi2 / 2.0).abs() < 1e-10);
        for x in [0.2, 1.0, 3.7, 40.0] {
            assert!((trigamma_inverse(trigamma(x)) / x - 1.0).abs() < 1e-6, "{x}");
        }
    }

    #[test]
    fn a_few_cells_share_one_variance() {
        let pool = Pool::fit(&[Variance { s2: 1.0, df: 2.0 }, Variance { s2: 4.0, df: 4.0 }]).unwrap();
        assert_eq!(pool, Pool::Pooled(Variance { s2: 3.0, df: 6.0 }));
        assert_eq!(pool.name(), "pooled t");
        assert_eq!(Pool::fit(&[]), None);
    }

    #[test]
    fn the_prior_of_simulated_variances_is_found() {
        // σ² = s0²·d0 ÷ χ²(d0) with d0 = 8 and s0² = 4; each cell has 4 degrees of freedom.
        let mut random = Random::seeded(7);
        let mut chi2 = |df: usize| (0..df).map(|_| random.normal().powi(2)).sum::<f64>();
        let variances: Vec<_> = (0..4000)
            .map(|_| {
                let sigma2 = 4.0 * 8.0 / chi2(8);
                Variance { s2: sigma2 * chi2(4) / 4.0, df: 4.0 }
            })
            .collect();
        let found = prior(&variances);
        assert!((found.df - 8.0).abs() < 1.5 && (found.s2 - 4.0).abs() < 0.3, "{found:?}");
        let pool = Pool::fit(&variances).unwrap();
        let low = pool.shrink(Variance { s2: 0.1, df: 4.0 });
        assert!(low.s2 > 0.1 && low.s2 < found.s2 && low.df > 4.0, "{low:?}");
    }

    #[test]
    fn a_cell_that_jumps_keeps_its_own_variance() {
        let mut random = Random::seeded(3);
        let calm: Vec<_> = (0..40).map(|_| Variance { s2: 1e-4 * (0.4 * random.normal()).exp(), df: 2.0 }).collect();
        let pool = Pool::fit(&calm).unwrap();
        let jumping = Variance { s2: 0.05, df: 2.0 };
        assert_eq!(pool.shrink(jumping), jumping);
        assert!(calm.iter().all(|v| pool.shrink(*v).df > 2.0), "the others go on lending each other theirs");
    }

    #[test]
    fn cells_without_any_noise_do_not_break_the_fit() {
        let mut variances = vec![Variance { s2: 0.0, df: 2.0 }; 6];
        variances.extend([Variance { s2: 0.01, df: 2.0 }; 6]);
        assert!(Pool::fit(&variances).unwrap().shrink(variances[0]).s2.is_finite());
        assert_eq!(Pool::fit(&[Variance { s2: 0.0, df: 2.0 }; 12]).unwrap().name(), "pooled t");
    }
}
