//! One ratio, and conclusions from a set of them. In: a quantity of either side. Out: their ratio with its interval, p-values by
//! Holm, verdicts, and how many more repetitions would decide.
//!
//! The sides are different campaigns: the standard error is the root of the sum of both squares. The degrees of freedom are those
//! of the weaker side. Welch's and Satterthwaite's would add them up, but each side's variances already depend on those of its
//! campaign: simulated at 40 unchanged cells of 3 repetitions whose noise differs by e^±0.3, they raise a false alarm in 13 % of
//! comparisons, the weaker side's in 3 %.

pub mod between;

use std::cell::RefCell;
use std::collections::HashMap;

use collo_analysis::trace::OrdersNeeded;
use collo_quantity::Better;
use collo_quantity::stats::{self, Quantity, holm};

/// The verdict on one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    Better,
    Worse,
    Higher,
    Lower,
    /// Shown to differ by less than the threshold.
    Same,
    CannotTell(More),
    /// It completed on the left; the outcome on the right.
    NoLongerRuns(String),
    /// It completed on the right; the outcome on the left.
    RunsNow(String),
    /// Shown, and left out of every verdict, with the reason.
    NotJudged(String),
}

/// What it would take to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    /// This many more repetitions on the right alone.
    Right(usize),
    /// This many more on each side.
    Each(usize),
    /// A hundred more on each side would not be enough.
    TooMany,
    /// A side has no interval, as with one repetition.
    OneRun,
    /// Of policies, which are compared within orders of a trace: so many orders.
    Orders(OrdersNeeded),
}

impl Finding {
    /// As JSON has it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Finding::Better => "better",
            Finding::Worse => "worse",
            Finding::Higher => "higher",
            Finding::Lower => "lower",
            Finding::Same => "same",
            Finding::CannotTell(_) => "cannot_tell",
            Finding::NoLongerRuns(_) => "no_longer_runs",
            Finding::RunsNow(_) => "runs_now",
            Finding::NotJudged(_) => "not_judged",
        }
    }

    /// As people read it.
    pub fn text(&self) -> String {
        match self {
            Finding::CannotTell(More::Right(1)) => "can't tell (1 more repetition)".into(),
            Finding::CannotTell(More::Right(k)) => format!("can't tell ({k} more repetitions)"),
            Finding::CannotTell(More::Each(k)) => format!("can't tell ({k} more each)"),
            Finding::CannotTell(More::TooMany) => "can't tell".into(),
            Finding::CannotTell(More::OneRun) => "can't tell (no interval)".into(),
            Finding::CannotTell(More::Orders(needed)) => format!("can't tell ({})", needed.text()),
            Finding::NoLongerRuns(outcome) => format!("no longer runs: {outcome}"),
            Finding::RunsNow(outcome) => format!("runs now, was {outcome}"),
            Finding::NotJudged(why) => format!("not judged: {why}"),
            other => other.as_str().into(),
        }
    }
}

/// Quantiles of Student's t at one level, cached on a fine grid of 1 ÷ df between which they are nearly linear.
#[derive(Debug)]
pub struct Quantiles {
    level: f64,
    known: RefCell<HashMap<u32, f64>>,
}

const GRID: f64 = 2000.0;

impl Quantiles {
    /// Of this level: 0.975 for the ends of a 95 % interval.
    pub fn at(level: f64) -> Self {
        Quantiles { level, known: RefCell::default() }
    }

    /// The quantile at this many degrees of freedom; fewer than one count as one.
    pub fn get(&self, df: f64) -> f64 {
        let place = (1.0 / df).clamp(0.0, 1.0) * GRID;
        let (below, share) = (place.floor(), place.fract());
        let low = self.on_grid(below as u32);
        if share == 0.0 { low } else { low + share * (self.on_grid(below as u32 + 1) - low) }
    }

    fn on_grid(&self, i: u32) -> f64 {
        let df = if i == 0 { f64::INFINITY } else { GRID / f64::from(i) };
        *self.known.borrow_mut().entry(i).or_insert_with(|| stats::t_quantile(self.level, df))
    }
}

/// A ratio with its components.
#[derive(Debug, Clone)]
pub struct Ratio {
    /// Right ÷ left, with its 95 % interval if both sides have one.
    pub value: Quantity,
    /// Standard error of the logarithm and degrees of freedom, left and right.
    parts: Option<[(f64, f64, usize); 2]>,
    /// Of both, and of what campaigns differ by.
    se: f64,
    /// Variance of the logarithm by which campaigns differ besides their repetitions, and its degrees of freedom: more repetitions do
    /// not make it smaller.
    between: (f64, f64),
}

/// Standard error of the logarithm. A truncated bound, as of shares at 1, must not make the number more certain: the wider side
/// counts.
fn log_se(q: &Quantity, ends: &Quantiles) -> Option<(f64, f64)> {
    let (low, high, df) = (q.low?, q.high?, q.df?);
    let half = (q.estimate / low).ln().max((high / q.estimate).ln());
    Some((half / ends.get(df), df))
}

/// Degrees of freedom of the weaker side; a side without any noise of its own does not count.
fn weaker([(a, df_a, _), (b, df_b, _)]: &[(f64, f64, usize); 2]) -> f64 {
    match (*a > 0.0, *b > 0.0) {
        (true, false) => *df_a,
        (false, true) => *df_b,
        _ => df_a.min(*df_b),
    }
}

/// Standard error and degrees of freedom of both sides with the variance between campaigns.
fn with_between(parts: &[(f64, f64, usize); 2], (variance, df): (f64, f64)) -> (f64, f64) {
    let se = (parts[0].0.powi(2) + parts[1].0.powi(2) + variance).sqrt();
    (se, if variance > 0.0 { weaker(parts).min(df) } else { weaker(parts) })
}

impl Ratio {
    /// Right ÷ left.
    pub fn of(left: &Quantity, right: &Quantity, ends: &Quantiles) -> Ratio {
        let estimate = right.estimate / left.estimate;
        let n = left.n.min(right.n);
        let parts = log_se(left, ends).zip(log_se(right, ends)).filter(|_| n > 1);
        let Some(((a, df_a), (b, df_b))) = parts else {
            return Ratio {
                value: Quantity { estimate, low: None, high: None, n, df: None },
                parts: None,
                se: 0.0,
                between: (0.0, f64::INFINITY),
            };
        };
        let parts = [(a, df_a, left.n), (b, df_b, right.n)];
        let (se, df) = (a.hypot(b), weaker(&parts));
        let factor = (ends.get(df) * se).exp();
        let value = Quantity { estimate, low: Some(estimate / factor), high: Some(estimate * factor), n, df: Some(df) };
        Ratio { value, parts: Some(parts), se, between: (0.0, f64::INFINITY) }
    }

    /// Standard error of the logarithm; `None` without an interval.
    pub fn log_se(&self) -> Option<f64> {
        self.parts.map(|_| self.se)
    }

    /// This one beside a move that others have in common, a logarithm, with a variance by which campaigns differ besides their
    /// repetitions.
    pub fn beside(&self, common: f64, between: (f64, f64), ends: &Quantiles) -> Ratio {
        let Some(parts) = self.parts else { return self.clone() };
        let estimate = self.value.estimate / common.exp();
        let (se, df) = with_between(&parts, between);
        let factor = (ends.get(df) * se).exp();
        let value =
            Quantity { estimate, low: Some(estimate / factor), high: Some(estimate * factor), df: Some(df), ..self.value };
        Ratio { value, parts: Some(parts), se, between }
    }

    /// Its value moved by a logarithm, with the same interval.
    pub fn shifted(&self, log: f64) -> Quantity {
        let moved = |x: Option<f64>| x.map(|x| x * log.exp());
        let q = &self.value;
        Quantity { estimate: q.estimate * log.exp(), low: moved(q.low), high: moved(q.high), ..q.clone() }
    }

    /// Two-sided p-value of no difference.
    fn p(&self) -> Option<f64> {
        Some(stats::p_beyond(self.value.estimate.ln(), self.se, self.value.df?, 0.0))
    }
}

/// A ratio's p-value, by itself and corrected for the others, and its verdict.
#[derive(Debug, Clone)]
pub struct JudgedRatio {
    pub p: Option<f64>,
    pub p_adjusted: Option<f64>,
    pub finding: Finding,
}

/// Judge ratios together: Holm over all that have an interval. The rules are those of `stats::compare_changes`.
pub fn judge(ratios: &[(&Ratio, Better)], threshold: f64, ends: &Quantiles) -> Vec<JudgedRatio> {
    let limit = threshold.ln_1p();
    let raw: Vec<Option<f64>> = ratios.iter().map(|(r, _)| r.p()).collect();
    let known: Vec<f64> = raw.iter().flatten().copied().collect();
    let family = known.len();
    let strictest = Quantiles::at(1.0 - 0.025 / family.max(1) as f64);
    let mut adjusted = holm(&known).into_iter();
    let mut one = |(ratio, better): &(&Ratio, Better), p: Option<f64>| {
        let Some(p_adjusted) = p.and_then(|_| adjusted.next()) else {
            return JudgedRatio { p: None, p_adjusted: None, finding: Finding::CannotTell(More::OneRun) };
        };
        let (effect, q) = (ratio.value.estimate.ln(), &ratio.value);
        let within = |bound: Option<f64>| bound.is_some_and(|b| b.ln().abs() <= limit);
        let finding = if within(q.low) && within(q.high) {
            Finding::Same
        } else if p_adjusted < 0.05 && effect.abs() > limit {
            match (better, effect > 0.0) {
                (Better::Neither, true) => Finding::Higher,
                (Better::Neither, false) => Finding::Lower,
                (Better::Larger, true) | (Better::Smaller, false) => Finding::Better,
                (Better::Larger, false) | (Better::Smaller, true) => Finding::Worse,
            }
        } else {
            Finding::CannotTell(more(ratio, effect.abs(), limit, (ends, &strictest)))
        };
        JudgedRatio { p, p_adjusted: Some(p_adjusted), finding }
    };
    ratios.iter().zip(raw).map(|(r, p)| one(r, p)).collect()
}

/// Maximum number of repetitions that are proposed.
const MOST: usize = 100;

/// How many more repetitions would bring a verdict if the estimate and both variances stay as they are: on the right alone, where
/// the newer campaign usually is, or else on each side.
fn more(ratio: &Ratio, effect: f64, limit: f64, (ends, strictest): (&Quantiles, &Quantiles)) -> More {
    let Some([left, right]) = ratio.parts else { return More::OneRun };
    let grown = |(se, df, n): (f64, f64, usize), k: usize| {
        let factor = (n + k) as f64 / n as f64;
        (se / factor.sqrt(), df * factor, n + k)
    };
    let decided = |parts: [(f64, f64, usize); 2]| {
        let (se, df) = with_between(&parts, ratio.between);
        // A difference beyond the threshold must clear the strictest of Holm's steps; one within must be shown to stay there.
        if effect > limit { strictest.get(df) * se < effect } else { effect + ends.get(df) * se <= limit }
    };
    // More repetitions never make it less sure, so the first that suffice are found by halving.
    let first = |decided: &dyn Fn(usize) -> bool| {
        let (mut low, mut high) = (0, MOST);
        if !decided(high) {
            return None;
        }
        while high - low > 1 {
            let middle = (low + high) / 2;
            if decided(middle) { high = middle } else { low = middle }
        }
        Some(high)
    };
    if let Some(k) = first(&|k| decided([left, grown(right, k)])) {
        return More::Right(k);
    }
    first(&|k| decided([grown(left, k), grown(right, k)])).map_or(More::TooMany, More::Each)
}

#[cfg(test)]
mod tests {
    use collo_quantity::stats::{Pool, Term, log_moments, quantity};

    use crate::random::Random;

    use super::*;

    fn q(estimate: f64, factor: f64, n: usize, df: f64) -> Quantity {
        Quantity { estimate, low: Some(estimate / factor), high: Some(estimate * factor), n, df: Some(df) }
    }

    fn alone(ratio: &Ratio, threshold: f64) -> JudgedRatio {
        judge(&[(ratio, Better::Smaller)], threshold, &Quantiles::at(0.975)).remove(0)
    }

    #[test]
    fn quantiles_on_the_grid_are_those_of_the_library() {
        let ends = Quantiles::at(0.975);
        for df in [1.0, 1.3, 2.0, 2.7, 4.0, 9.3, 57.0, 4000.0, f64::INFINITY] {
            let (found, known) = (ends.get(df), stats::t_quantile(0.975, df));
            assert!((found / known - 1.0).abs() < 1e-4, "{df}: {found}, {known}");
        }
    }

    #[test]
    fn a_ratio_worked_by_hand() {
        // Both sides: se 0.02, 4 degrees of freedom. Of the ratio: se 0.02·√2, df 4, half-width 2.77645·0.028284 = 0.078530.
        let half = (0.02 * 2.776_445_f64).exp();
        let ratio = Ratio::of(&q(10.0, half, 3, 4.0), &q(11.0, half, 3, 4.0), &Quantiles::at(0.975));
        assert!((ratio.value.df.unwrap() - 4.0).abs() < 1e-9);
        assert!((ratio.value.low.unwrap() - 1.1 / 0.078_530_f64.exp()).abs() < 1e-4, "{ratio:?}");
        // t = ln 1.1 ÷ 0.028284 = 3.3697 at 4 degrees of freedom: p = 0.0281.
        assert!((alone(&ratio, 0.02).p.unwrap() - 0.0281).abs() < 1e-4);
        assert_eq!(alone(&ratio, 0.02).finding, Finding::Worse, "a longer time");
    }

    #[test]
    fn one_repetition_cannot_tell() {
        let one = Quantity { estimate: 9.0, low: None, high: None, n: 1, df: None };
        let ratio = Ratio::of(&q(1.0, 1.01, 3, 4.0), &one, &Quantiles::at(0.975));
        assert_eq!((ratio.value.low, alone(&ratio, 0.05).finding), (None, Finding::CannotTell(More::OneRun)));
    }

    #[test]
    fn a_bound_that_was_cut_at_one_makes_nothing_surer() {
        let cut = Quantity { estimate: 0.98, low: Some(0.90), high: Some(1.0), n: 3, df: Some(4.0) };
        let whole = q(0.98, 0.98 / 0.90, 3, 4.0);
        let ends = Quantiles::at(0.975);
        assert!((log_se(&cut, &ends).unwrap().0 - log_se(&whole, &ends).unwrap().0).abs() < 1e-12);
    }

    #[test]
    fn verdicts_are_those_of_the_shared_rules() {
        let mut random = Random::seeded(5);
        let ends = Quantiles::at(0.975);
        let ratios: Vec<Ratio> = (0..60)
            .map(|_| {
                let (shift, width) = ((0.06 * random.normal()).exp(), 1.0 + 0.08 * random.uniform());
                Ratio::of(&q(3.0, width, 3, 5.0), &q(3.0 * shift, width, 3, 5.0), &ends)
            })
            .collect();
        let mine = judge(&ratios.iter().map(|r| (r, Better::Larger)).collect::<Vec<_>>(), 0.02, &ends);
        let shared = stats::compare_changes(&ratios.iter().map(|r| Some(r.value.clone())).collect::<Vec<_>>(), 0.02);
        let mut kinds = std::collections::BTreeSet::new();
        for (mine, shared) in mine.iter().zip(shared.iter().flatten()) {
            assert_eq!(mine.finding.as_str(), shared.verdict.as_str());
            assert!((mine.p_adjusted.unwrap() - shared.p_adjusted).abs() < 1e-3);
            kinds.insert(mine.finding.as_str());
        }
        assert!(kinds.len() >= 3, "{kinds:?}");
    }

    #[test]
    fn the_repetitions_that_are_asked_for_do_decide() {
        let ends = Quantiles::at(0.975);
        let ratio = Ratio::of(&q(10.0, 1.01, 6, 30.0), &q(10.0, 1.08, 3, 8.0), &ends);
        let Finding::CannotTell(More::Right(k)) = alone(&ratio, 0.05).finding else { panic!("{ratio:?}") };
        let (se, _) = log_se(&q(10.0, 1.08, 3, 8.0), &ends).unwrap();
        let grown = (3 + k) as f64 / 3.0;
        let then = |grown: f64| q(10.0, (se / grown.sqrt() * ends.get(8.0 * grown)).exp(), 3, 8.0 * grown);
        assert_eq!(alone(&Ratio::of(&q(10.0, 1.01, 6, 30.0), &then(grown), &ends), 0.05).finding, Finding::Same);
        let less = then((2 + k) as f64 / 3.0);
        assert_ne!(alone(&Ratio::of(&q(10.0, 1.01, 6, 30.0), &less, &ends), 0.05).finding, Finding::Same);
        // Where the left is as loose as the right, the right alone cannot do it.
        let both = Ratio::of(&q(10.0, 1.08, 3, 8.0), &q(10.0, 1.08, 3, 8.0), &ends);
        assert!(matches!(alone(&both, 0.05).finding, Finding::CannotTell(More::Each(_))), "{both:?}");
    }

    /// Campaigns of 40 cells, twice: how often an unchanged one is called better or worse, and how often a change by `step` is
    /// found. Each cell has a noise of its own.
    fn rates(step: f64, noise: f64, repetitions: usize, campaigns: usize) -> (f64, f64) {
        let mut random = Random::seeded(11);
        let ends = Quantiles::at(0.975);
        let (mut false_alarms, mut found) = (0, 0);
        for _ in 0..campaigns {
            let sigmas: Vec<f64> = (0..40).map(|_| noise * (0.3 * random.normal()).exp()).collect();
            let mut side = |step: f64| {
                let cells: Vec<_> = sigmas
                    .iter()
                    .enumerate()
                    .map(|(i, sigma)| {
                        let mean = if i == 0 { step } else { 1.0 };
                        log_moments(&(0..repetitions).map(|_| mean * (sigma * random.normal()).exp()).collect::<Vec<_>>())
                            .unwrap()
                    })
                    .collect();
                let pool = Pool::fit(&cells.iter().filter_map(|c| c.1).collect::<Vec<_>>()).unwrap();
                let of = |(mean, variance): &(f64, Option<stats::Variance>)| {
                    quantity(
                        *mean,
                        repetitions,
                        &[Term { weight: 1.0, variance: pool.shrink(variance.unwrap()), n: repetitions }],
                    )
                };
                cells.iter().map(of).collect::<Vec<_>>()
            };
            let (left, right) = (side(1.0), side(step));
            let ratios: Vec<Ratio> = left.iter().zip(&right).map(|(l, r)| Ratio::of(l, r, &ends)).collect();
            let judged = judge(&ratios.iter().map(|r| (r, Better::Smaller)).collect::<Vec<_>>(), 0.02, &ends);
            found += usize::from(judged[0].finding == Finding::Worse);
            let alarm = |j: &JudgedRatio| matches!(j.finding, Finding::Worse | Finding::Better);
            false_alarms += usize::from(judged[1..].iter().any(alarm));
        }
        (false_alarms as f64 / campaigns as f64, found as f64 / campaigns as f64)
    }

    #[test]
    fn a_step_of_five_percent_is_found_and_noise_is_not() {
        let allowed = 0.05 + 2.0 * (0.05f64 * 0.95 / 400.0).sqrt();
        for (repetitions, power) in [(3, 0.55), (5, 0.9)] {
            let (false_alarms, found) = rates(1.05, 0.01, repetitions, 400);
            assert!(false_alarms <= allowed, "{repetitions}: {false_alarms} of campaigns");
            assert!(found >= power, "{repetitions}: {found}");
        }
    }
}
