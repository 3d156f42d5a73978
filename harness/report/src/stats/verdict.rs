//! Conclusions from ratios. In: ratios to 1 with intervals, one per matched cell, and the threshold from which a difference is
//! worth acting on. Out: adjusted p-values and verdicts.

use super::{Quantity, t_p, t_quantile};

/// The verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatioVerdict {
    /// Significant, relevant, and the ratio is above 1.
    Better,
    /// Significant, relevant, and the ratio is below 1.
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
    pub p: f64,
    /// Holm's correction over the ratios compared together.
    pub p_adjusted: f64,
    pub verdict: RatioVerdict,
}

/// Compare ratios with 1, jointly. `None` for a ratio without an interval. Above 1 counts as better.
pub fn compare(ratios: &[Option<Quantity>], threshold: f64) -> Vec<Option<RatioTest>> {
    let raw: Vec<Option<f64>> = ratios.iter().map(|q| q.as_ref().and_then(p_value)).collect();
    let known: Vec<f64> = raw.iter().flatten().copied().collect();
    let mut adjusted = holm(&known).into_iter();
    ratios
        .iter()
        .zip(raw)
        .map(|(q, p)| {
            let (q, p, p_adjusted) = (q.as_ref()?, p?, adjusted.next()?);
            Some(RatioTest { p, p_adjusted, verdict: verdict(q, p_adjusted, known.len(), threshold) })
        })
        .collect()
}

fn p_value(q: &Quantity) -> Option<f64> {
    let se = q.log_se()?;
    Some(if se > 0.0 {
        t_p(q.estimate.ln() / se, q.df?)
    } else if q.estimate == 1.0 {
        1.0
    } else {
        0.0
    })
}

fn verdict(q: &Quantity, p_adjusted: f64, family: usize, threshold: f64) -> RatioVerdict {
    let (effect, limit) = (q.estimate.ln(), threshold.ln_1p());
    let within = |bound: Option<f64>| bound.is_some_and(|b| b.ln().abs() <= limit);
    if within(q.low) && within(q.high) {
        RatioVerdict::Same
    } else if p_adjusted < 0.05 && effect.abs() > limit {
        if effect > 0.0 { RatioVerdict::Better } else { RatioVerdict::Worse }
    } else {
        RatioVerdict::CannotTell { more: more_repetitions(q, family, effect.abs(), limit) }
    }
}

/// How many more repetitions would bring a verdict if the estimate and the variance stay as they are. The baselines are assumed
/// to grow in proportion; a difference beyond the threshold must clear the strictest of Holm's steps.
fn more_repetitions(q: &Quantity, family: usize, effect: f64, limit: f64) -> Option<usize> {
    let (se, df) = (q.log_se()?, q.df?);
    (1..100).find(|k| {
        let grown = (q.n + k) as f64 / q.n as f64;
        let (se, df) = (se / grown.sqrt(), df * grown);
        if effect > limit {
            t_quantile(1.0 - 0.025 / family as f64, df) * se < effect
        } else {
            effect + t_quantile(0.975, df) * se <= limit
        }
    })
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
        assert!(found[0].as_ref().unwrap().p < 0.05, "significant, but shown to be irrelevant");
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
        let alone = compare(&[ratio(1.2, 1.19)], 0.05);
        assert_eq!(alone[0].as_ref().unwrap().verdict, RatioVerdict::Better);
        let mut many = vec![ratio(1.2, 1.19)];
        many.extend((0..20).map(|_| ratio(1.01, 1.3)));
        assert_ne!(compare(&many, 0.05)[0].as_ref().unwrap().verdict, RatioVerdict::Better);
    }
}
