//! Up to which summed SM activity do members keep their speed? Fitted on this GPU: slowdown of groups over the sum of their
//! members' solo SM activity.
//!
//! The model is a hinge on logarithms: no slowdown up to a sum T, from there the slowdown grows as a power of sum ÷ T. The
//! threshold is the sum at which the hinge reaches the slowdown that the experiment accepts; its interval contains every
//! threshold whose best fit is not worse than the best of all by an F test at 5 % (profile likelihood). Groups count alike; those
//! of one workload are not independent, which the interval does not account for.
//!
//! A hinge can be put through any points. The rule holds only if the hinge also describes them: their distances from it must not be larger
//! than the noise of the slowdowns and the relevant difference explain (lack of fit, F test at 5 %), and the threshold must be known within
//! a factor.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::stats::{Quantity, t_quantile};
use collo_quantity::{Key, number};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use crate::published::Published;
use crate::published::study::is_card;
use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, STUDY, decide_by_interval, on_a_card};
use crate::verdict::{self, Agreement, Groups, Holds};

/// The study's threshold.
pub const PUBLISHED_RATIO: f64 = 0.80;

const PUBLISHED: Published =
    Published::new("Collocate while the aggregate SM activity stays at 80 % or below.", "80 % of summed SMACT", STUDY);

/// Minimum number of groups for a fit.
const GROUPS: usize = 6;
/// The ends of a threshold's interval may differ by this factor: beyond it the threshold is not known.
const WIDEST: f64 = 1.5;
/// The published threshold and ours agree if our whole interval lies within this ratio of it.
const MARGIN_RATIO: f64 = 0.25;

/// The data of a group for the fit.
pub struct DegreeData<'a> {
    pub cell: &'a Cell,
    /// Sum of the members' solo SM activity, as a share of the GPU.
    pub sum_ratio: f64,
    pub slowdown: f64,
    /// Standard error of the slowdown's logarithm with its degrees of freedom; absent without an interval.
    noise: Option<(f64, f64)>,
}

/// The hinge of one mode.
pub struct HingeFit<'a> {
    pub sharing: &'static str,
    pub groups: Vec<DegreeData<'a>>,
    /// Where the slowdown begins, and the exponent from there.
    pub knee_ratio: f64,
    pub exponent: f64,
    /// Where it reaches the limit, with its interval.
    pub threshold: Quantity,
}

impl HingeFit<'_> {
    /// The hinge's slowdown at a sum.
    pub fn at(&self, sum_ratio: f64) -> f64 {
        (self.exponent * (sum_ratio / self.knee_ratio).ln().max(0.0)).exp()
    }

    /// p-value of the hypothesis that the groups lie as near to the hinge as their noise and a relevant difference of each explain.
    fn p_of_fit(&self, relevant_ratio: f64) -> Option<f64> {
        let tolerance = relevant_ratio.ln_1p().powi(2);
        let known: Vec<(f64, f64, f64)> = self
            .groups
            .iter()
            .filter_map(|g| g.noise.map(|(se, df)| ((g.slowdown / self.at(g.sum_ratio)).ln().powi(2), se.powi(2), df)))
            .collect();
        let free = known.len().checked_sub(2).filter(|free| *free > 0)? as f64;
        let f = known.iter().map(|(square, noise, _)| square / (noise + tolerance)).sum::<f64>() / free;
        let df = known.iter().map(|(.., df)| *df).fold(f64::INFINITY, f64::min);
        Some(FisherSnedecor::new(free, df.min(1e4)).ok()?.sf(f))
    }

    /// True if groups lie on both sides of the threshold's interval.
    fn is_bounded(&self) -> bool {
        is_bounded(&self.threshold, self.groups.iter().map(|g| g.sum_ratio))
    }

    /// True if the threshold is known well enough to plan with it.
    fn is_narrow(&self) -> bool {
        self.threshold.low.zip(self.threshold.high).is_some_and(|(low, high)| high / low <= WIDEST)
    }
}

/// True if an interval ends inside of these sums: where it reaches beyond them, it is the search that ended, and nothing is known of its width.
fn is_bounded(threshold: &Quantity, sums: impl Iterator<Item = f64>) -> bool {
    let (least, most) = sums.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), sum| (least.min(sum), most.max(sum)));
    threshold.low.zip(threshold.high).is_some_and(|(low, high)| least <= low && high <= most)
}

/// Groups of one mode that can be fitted.
fn groups<'a>(analysis: &'a Analysis, sharing: &str) -> Vec<DegreeData<'a>> {
    let of = |c: &'a Cell| {
        let sum_ratio = c.get(Key::SoloSmActiveSum)?.estimate;
        let q = c.get(Key::Slowdown)?;
        let (slowdown, noise) = (q.estimate, q.log_se().zip(q.df));
        (sum_ratio > 0.0 && slowdown > 0.0).then_some(DegreeData { cell: c, sum_ratio, slowdown, noise })
    };
    let usable = |c: &&Cell| c.record.sharing == sharing && c.record.degree > 1 && c.is_valid();
    analysis.groups().filter(usable).filter_map(of).collect()
}

/// Fit the hinge of a mode; `None` with too few groups, or if all are on one side of the limit.
pub fn fit<'a>(analysis: &'a Analysis, sharing: &'static str) -> Option<HingeFit<'a>> {
    let groups = groups(analysis, sharing);
    let points: Vec<(f64, f64)> = groups.iter().map(|g| (g.sum_ratio.ln(), g.slowdown.ln())).collect();
    let (knee, exponent, threshold) = hinge(&points, analysis.campaign.thresholds.slowdown.ln())?;
    Some(HingeFit { sharing, groups, knee_ratio: knee, exponent, threshold })
}

/// Number of thresholds and of exponents tried, both in equal steps of the logarithm.
const STEPS: usize = 600;
const EXPONENTS: usize = 240;
const EXPONENT_RANGE: (f64, f64) = (0.02, 50.0);

/// Knee, exponent and threshold of the best hinge through points of logarithms.
fn hinge(points: &[(f64, f64)], limit: f64) -> Option<(f64, f64, Quantity)> {
    let beyond = points.iter().filter(|p| p.1 > limit).count();
    if points.len() < GROUPS || beyond < 2 || points.len() - beyond < 2 || limit <= 0.0 {
        return None;
    }
    let from = points.iter().map(|p| p.0).fold(f64::INFINITY, f64::min) - 0.2;
    let highest = points.iter().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
    let step = (highest - from) / STEPS as f64;
    let grid = |i: usize| from + step * i as f64;
    let (least_exponent, most_exponent) = EXPONENT_RANGE;
    let growth = (most_exponent / least_exponent).powf(1.0 / (EXPONENTS - 1) as f64);
    let exponents: Vec<f64> = (0..EXPONENTS).map(|i| least_exponent * growth.powi(i as i32)).collect();
    let error = |at: f64, exponent: f64| {
        let knee = at - limit / exponent;
        points.iter().map(|p| (p.1 - exponent * (p.0 - knee).max(0.0)).powi(2)).sum::<f64>()
    };
    // For each threshold the exponent that fits best.
    let profile: Vec<(f64, f64)> = (1..=STEPS)
        .map(|i| {
            let tried = exponents.iter().map(|exponent| (error(grid(i), *exponent), *exponent));
            tried.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, least_exponent))
        })
        .collect();
    let (best, &(least, exponent)) = profile.iter().enumerate().min_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    let free = (points.len() - 2) as f64;
    let allowed = least * (1.0 + t_quantile(0.975, free).powi(2) / free) + 1e-12;
    let inside = |i: &usize| profile[*i].0 <= allowed;
    let (low, high) = ((0..STEPS).find(inside)?, (0..STEPS).rev().find(inside)?);
    let at = grid(best + 1);
    // Half a step is what the search itself does not know.
    let threshold = Quantity {
        estimate: at.exp(),
        low: Some((grid(low + 1) - step / 2.0).exp()),
        high: Some((grid(high + 1) + step / 2.0).exp()),
        n: points.len(),
        df: Some(free),
    };
    Some(((at - limit / exponent).exp(), exponent, threshold))
}

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) {
        return None;
    }
    // MPS lets kernels run beside each other; the threshold is about that. Where there is no MPS, naive sharing has one of its own.
    let mode = if fit(analysis, "mps").is_some() || !groups(analysis, "mps").is_empty() { "mps" } else { "naive" };
    let fitted = fit(analysis, mode).or_else(|| fit(analysis, "naive"));
    let thresholds = &analysis.campaign.thresholds;
    let limit = number::percent_as_written(thresholds.slowdown - 1.0);
    let p = fitted.as_ref().and_then(|f| f.p_of_fit(thresholds.relevant_ratio));
    let holds = match (&fitted, p) {
        (Some(_), Some(p)) if p < 0.05 => Holds::No,
        (Some(f), Some(_)) if f.is_narrow() && f.is_bounded() => Holds::Yes,
        _ => Holds::Open,
    };
    let agrees = match (&fitted, holds) {
        _ if !is_card(&analysis.campaign.device.name) => Agreement::NotComparable,
        (None, _) => Agreement::NotMeasured,
        // A threshold that does not describe the groups is no threshold to compare.
        (Some(_), Holds::No) => Agreement::No,
        (Some(f), _) => verdict::equivalence(&f.threshold, (PUBLISHED_RATIO, PUBLISHED_RATIO), MARGIN_RATIO),
    };
    let sharing = fitted.as_ref().map_or(mode, |f| f.sharing);
    let concerned = crate::rule::training(analysis).filter(|c| c.record.sharing == sharing);
    let all = Groups::of(analysis, concerned, Key::Slowdown);
    let finding = match &fitted {
        Some(f) => {
            let under = super::collocate::mode_name(f.sharing);
            let beyond = format!(
                "Beyond {} {} members lose more than {limit} under {under}",
                number::percent(f.threshold.estimate),
                bounds(&f.threshold)
            );
            match (holds, p) {
                (Holds::No, _) => format!(
                    "The slowdowns lie further from any threshold than their noise explains (p {}).",
                    collo_analysis::words::p(p.unwrap_or(0.0))
                ),
                (Holds::Open, None) => {
                    format!("{beyond}, but too few slowdowns have an interval to show how well that describes them.")
                }
                (Holds::Open, _) if !f.is_bounded() => format!("{beyond}, but no group lies beyond an end of that interval."),
                (Holds::Open, _) => format!("{beyond}, but the interval spans more than a factor of {WIDEST}."),
                (Holds::Yes, _) => format!("{beyond}."),
            }
        }
        None => match groups(analysis, sharing).len() {
            0 => {
                crate::rule::nothing(&all, "the slowdown", "No group under MPS or naive sharing has baselines with SM activity.")
            }
            n if n < GROUPS => {
                let under = super::collocate::mode_name(sharing);
                format!("{} under {under} with SM activity; a fit needs {GROUPS}.", number::count(n, "group"))
            }
            _ => format!("All groups, or all but one, are on the same side of a slowdown of {limit}."),
        },
    };
    let evidence = fitted.iter().flat_map(|f| &f.groups);
    let evidence =
        evidence.flat_map(|g| [Evidence::of(g.cell, Key::SoloSmActiveSum), Evidence::of(g.cell, Key::Slowdown)]).flatten();
    let advice = fitted
        .as_ref()
        .map_or_else(String::new, |f| format!("Add up solo SM activity and stop at {}.", number::percent(f.threshold.estimate)));
    // More repetitions are no answer where groups of other sums are missing.
    let few = groups(analysis, sharing).len() < GROUPS || fitted.as_ref().is_some_and(|f| !f.is_bounded());
    let next = if few && all.missing() == 0 {
        verdict::Next { command: Some(crate::rule::study(analysis, "sharing == \"mps\"")), before: None }
    } else {
        decide_by_interval(analysis, &all, "sharing == \"mps\"")
    };
    Some(
        Claim {
            id: "sm-threshold",
            question: "Up to which summed SM activity does collocation pay off?",
            advice,
            otherwise: "summed SM activity alone does not decide here.".into(),
            finding,
            holds,
            agrees: verdict::where_possible(analysis, agrees),
            // It is of no single cell.
            key: fitted.as_ref().map(|f| {
                let fit = format!("fit of {}", number::count(f.groups.len(), "group"));
                Evidence::new(fit, None, Key::SoloSmActiveSum, f.threshold.clone())
            }),
            tested: format!(
                "the sum of solo SMACT at which a hinge through the slowdowns of all groups reaches {limit}; {GROUPS} groups or more, two on \
                 each side; no lack of fit beyond noise and {} (F test, 5 %), interval within a factor of {WIDEST} and between the sums of the groups. \
                 Agreement: the whole interval lies within {} of the published 80 %",
                number::percent_as_written(thresholds.relevant_ratio),
                number::percent(MARGIN_RATIO)
            ),
            evidence: evidence.collect(),
            published: Some(PUBLISHED),
            next,
            scope: Some(all.scope(analysis)),
        }
        .conclude(),
    )
}

/// `[62 %, 71 %]`.
fn bounds(q: &Quantity) -> String {
    q.low.zip(q.high).map_or_else(String::new, |(low, high)| format!("[{}, {}]", number::percent(low), number::percent(high)))
}

#[cfg(test)]
mod tests {
    use crate::random::Random;

    use super::*;

    /// Groups whose slowdown begins at `knee` and grows with `exponent`.
    fn points(knee: f64, exponent: f64, noise: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut random = Random::seeded(seed);
        let sums = [0.2, 0.3, 0.45, 0.5, 0.6, 0.7, 0.75, 0.85, 0.9, 1.0, 1.2, 1.6, 2.1, 3.0];
        sums.map(|x: f64| (x.ln(), exponent * (x / knee).ln().max(0.0) + noise * random.normal())).to_vec()
    }

    #[test]
    fn a_known_threshold_is_found_again_and_its_interval_covers_it() {
        let (knee, exponent, limit): (f64, f64, f64) = (0.7, 1.0, 1.1f64.ln());
        let truth = knee * (limit / exponent).exp();
        let mut covered = 0;
        for seed in 0..200 {
            let (_, _, found) = hinge(&points(knee, exponent, 0.03, seed), limit).expect("a fit");
            assert!((found.estimate / truth - 1.0).abs() < 0.12, "{found:?} of {truth}");
            covered += usize::from(found.low.unwrap() <= truth && truth <= found.high.unwrap());
        }
        assert!((180..=200).contains(&covered), "{covered} of 200");
    }

    #[test]
    fn a_threshold_is_not_known_where_only_the_search_ends() {
        let limit = 1.1f64.ln();
        let sums = [0.75, 0.77, 0.79, 0.81, 0.83, 0.85f64];
        // Members are slowed down less where the sum is larger.
        let slowdowns = [1.15, 1.15, 1.15, 1.05, 1.05, 1.05f64];
        let falling: Vec<(f64, f64)> = sums.iter().zip(slowdowns).map(|(sum, slowdown)| (sum.ln(), slowdown.ln())).collect();
        let (_, _, found) = hinge(&falling, limit).expect("a fit");
        assert!(found.high.unwrap() / found.low.unwrap() <= WIDEST, "as narrow as the search: {found:?}");
        assert!(!is_bounded(&found, sums.into_iter()), "{found:?}");
        let known = points(0.7, 1.0, 0.01, 1);
        let (_, _, found) = hinge(&known, limit).expect("a fit");
        assert!(is_bounded(&found, known.iter().map(|p| p.0.exp())), "{found:?}");
    }

    #[test]
    fn groups_on_one_side_of_the_limit_fit_nothing() {
        let limit = 1.1f64.ln();
        assert!(hinge(&points(10.0, 1.0, 0.0, 1), limit).is_none(), "nobody is slowed down");
        assert!(hinge(&points(0.01, 1.0, 0.0, 1), limit).is_none(), "everybody is");
        assert!(hinge(&points(0.7, 1.0, 0.0, 1)[..5], limit).is_none(), "too few");
    }
}
