//! Conclusions from ratios. In: ratios to 1 with intervals, one per matched cell, and the threshold from which a difference is
//! worth acting on. Out: adjusted p-values and verdicts.
//!
//! Relevance is tested: *better* and *worse* reject the hypothesis that the ratio lies within the threshold of 1, *same* rejects that it
//! lies beyond. A difference that is certain but may be smaller than the threshold is neither. Changes between campaigns
//! ([`compare_changes`]) must not go unnoticed: there a certain difference counts if its estimate is beyond the threshold.

use super::{Quantity, t_p, t_quantile};

/// The verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatioVerdict {
    /// Shown to be above 1 by more than the threshold.
    Better,
    /// Shown to be below 1 by more than the threshold.
    Worse,
    /// Shown to be smaller than the threshold.
    Same,
    /// None of these; `more` further repetitions would decide, if fewer than a hundred.
    CannotTell { more: Option<usize> },
}

impl RatioVerdict {
    /// As JSON has it.
    pub fn as_str(self) -> &'static str {
        match self {
            RatioVerdict::Better => "better",
            RatioVerdict::Worse => "worse",
            RatioVerdict::Same => "same",
            RatioVerdict::CannotTell { .. } => "cannot_tell",
        }
    }

    /// The verdict with this keyword and this text, which has the number of repetitions; where only the keyword is known, without it.
    pub fn find(word: &str, text: &str) -> Option<RatioVerdict> {
        let open = [None].into_iter().chain((1..100).map(Some)).map(|more| RatioVerdict::CannotTell { more });
        let mut all = [RatioVerdict::Better, RatioVerdict::Worse, RatioVerdict::Same].into_iter().chain(open);
        let same = |v: &RatioVerdict| v.as_str() == word;
        all.clone().find(|v| same(v) && v.text() == text).or_else(|| all.find(same))
    }

    /// As people read it.
    pub fn text(self) -> String {
        match self {
            RatioVerdict::Better => "better".into(),
            RatioVerdict::Worse => "worse".into(),
            RatioVerdict::Same => "same".into(),
            RatioVerdict::CannotTell { more: Some(1) } => "can't tell (1 more repetition)".into(),
            RatioVerdict::CannotTell { more: Some(k) } => format!("can't tell ({k} more repetitions)"),
            RatioVerdict::CannotTell { more: None } => "can't tell".into(),
        }
    }
}

/// A ratio compared with 1.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioTest {
    /// Two-sided p-value of the hypothesis that the ratio lies within the threshold of 1; for changes between campaigns, that it is 1.
    pub p: f64,
    /// Holm's correction over the ratios compared together.
    pub p_adjusted: f64,
    pub verdict: RatioVerdict,
}

/// Compare ratios with 1, jointly. `None` for a ratio without an interval. Above 1 counts as better.
pub fn compare(ratios: &[Option<Quantity>], threshold: f64) -> Vec<Option<RatioTest>> {
    judge(ratios, threshold.ln_1p(), threshold.ln_1p())
}

/// Compare ratios of two campaigns with 1, jointly: a difference must be certain, and its estimate beyond the threshold.
pub fn compare_changes(ratios: &[Option<Quantity>], threshold: f64) -> Vec<Option<RatioTest>> {
    judge(ratios, threshold.ln_1p(), 0.0)
}

/// `limit` is the threshold, `tested` the distance from 1 that must be certain, both as logarithms.
fn judge(ratios: &[Option<Quantity>], limit: f64, tested: f64) -> Vec<Option<RatioTest>> {
    let raw: Vec<Option<f64>> = ratios.iter().map(|q| q.as_ref().and_then(|q| p_value(q, tested))).collect();
    let known: Vec<f64> = raw.iter().flatten().copied().collect();
    let mut adjusted = holm(&known).into_iter();
    ratios
        .iter()
        .zip(raw)
        .map(|(q, p)| {
            let (q, p, p_adjusted) = (q.as_ref()?, p?, adjusted.next()?);
            Some(RatioTest { p, p_adjusted, verdict: verdict(q, p_adjusted, known.len(), (limit, tested)) })
        })
        .collect()
}

fn p_value(q: &Quantity, limit: f64) -> Option<f64> {
    Some(p_beyond(q.estimate.ln(), q.log_se()?, q.df?, limit))
}

/// The p-value of the hypothesis that a logarithm is at most `limit` from 0. Twice the tail, so that it agrees with the two-sided interval:
/// it is below 0.05 exactly if the interval lies beyond the threshold.
pub fn p_beyond(log: f64, se: f64, df: f64, limit: f64) -> f64 {
    match log.abs() - limit {
        beyond if beyond <= 0.0 => 1.0,
        beyond if se > 0.0 => t_p(beyond / se, df),
        _ => 0.0,
    }
}

fn verdict(q: &Quantity, p_adjusted: f64, family: usize, (limit, tested): (f64, f64)) -> RatioVerdict {
    let effect = q.estimate.ln();
    let within = |bound: Option<f64>| bound.is_some_and(|b| b.ln().abs() <= limit);
    if within(q.low) && within(q.high) {
        RatioVerdict::Same
    } else if p_adjusted < 0.05 && effect.abs() > limit {
        if effect > 0.0 { RatioVerdict::Better } else { RatioVerdict::Worse }
    } else {
        RatioVerdict::CannotTell { more: more_repetitions(q, family, effect.abs(), (limit, tested)) }
    }
}

/// How many more repetitions would bring a verdict if the estimate and the variance stay as they are. The baselines are assumed
/// to grow in proportion; a difference beyond the threshold must clear the strictest of Holm's steps.
fn more_repetitions(q: &Quantity, family: usize, effect: f64, (limit, tested): (f64, f64)) -> Option<usize> {
    let (se, df) = (q.log_se()?, q.df?);
    (1..100).find(|k| {
        let grown = (q.n + k) as f64 / q.n as f64;
        let (se, df) = (se / grown.sqrt(), df * grown);
        if effect > limit {
            tested + t_quantile(1.0 - 0.025 / family as f64, df) * se < effect
        } else {
            effect + t_quantile(0.975, df) * se <= limit
        }
    })
}

/// The repetitions that would decide all undecided of these tests that fewer than a hundred would decide; `None` if there is none.
pub fn repetitions_to_decide<'t>(tests: impl Iterator<Item = &'t RatioTest>) -> Option<usize> {
    let more = |test: &RatioTest| if let RatioVerdict::CannotTell { more } = test.verdict { more } else { None };
    tests.filter_map(more).max()
}

/// Holm's step-down adjustment, in the order given.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        largest = largest.max(p[i] * (p.len() - rank) as f64).min(1.0);
        adjusted[i] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(estimate: f64, factor: f64) -> Option<Quantity> {
        Some(Quantity { estimate, low: Some(estimate / factor), high: Some(estimate * factor), n: 3, df: Some(9.0) })
    }

    #[test]
    fn holm_agrees_with_its_textbook_example() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, known) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - known).abs() < 1e-12, "{adjusted:?}");
        }
    }

    #[test]
    fn the_four_verdicts() {
        let found = compare(&[ratio(1.5, 1.1), ratio(0.7, 1.1), ratio(1.0, 1.02), ratio(1.06, 1.2), None], 0.05);
        let words: Vec<_> = found.iter().map(|c| c.as_ref().map(|c| c.verdict.as_str())).collect();
        assert_eq!(words, [Some("better"), Some("worse"), Some("same"), Some("cannot_tell"), None]);
    }

    #[test]
    fn a_small_sure_difference_is_the_same_and_never_better() {
        let found = compare(&[ratio(1.03, 1.01)], 0.05);
        assert_eq!(found[0].as_ref().unwrap().verdict, RatioVerdict::Same);
        assert_eq!(found[0].as_ref().unwrap().p, 1.0, "the estimate itself is within the threshold");
    }

    #[test]
    fn a_sure_difference_that_may_be_irrelevant_is_not_called_better() {
        // [1.02, 1.15]: above 1 for sure, above 1.05 perhaps.
        let found = compare(&[ratio(1.083, 1.062), ratio(1.0 / 1.083, 1.062)], 0.05);
        assert!(found.iter().flatten().all(|c| matches!(c.verdict, RatioVerdict::CannotTell { more: Some(_) })), "{found:?}");
        let sure = compare(&[ratio(1.083, 1.03)], 0.05);
        assert_eq!(sure[0].as_ref().unwrap().verdict, RatioVerdict::Better, "[1.051, 1.115]");
    }

    #[test]
    fn an_undecided_ratio_says_how_many_repetitions_would_decide() {
        let RatioVerdict::CannotTell { more: Some(k) } = compare(&[ratio(1.0, 1.08)], 0.05)[0].as_ref().unwrap().verdict else {
            panic!("decidable");
        };
        // Half-width ln 1.08 must fall to ln 1.05: (ln 1.08 ÷ ln 1.05)² · 3 − 3 ≈ 4.5, a little less for the better t.
        assert!((3..=5).contains(&k), "{k}");
        let hopeless = compare(&[ratio(1.049, 1.3)], 0.05)[0].as_ref().unwrap().verdict;
        assert_eq!(hopeless, RatioVerdict::CannotTell { more: None });
    }

    #[test]
    fn holm_can_take_a_verdict_away() {
        let alone = compare(&[ratio(1.2, 1.13)], 0.05);
        assert_eq!(alone[0].as_ref().unwrap().verdict, RatioVerdict::Better);
        let mut many = vec![ratio(1.2, 1.13)];
        many.extend((0..20).map(|_| ratio(1.01, 1.3)));
        assert_ne!(compare(&many, 0.05)[0].as_ref().unwrap().verdict, RatioVerdict::Better);
    }
}
