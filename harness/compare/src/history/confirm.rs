//! From a suspicion to a confirmed step. In: a suspicious cell and the added repetitions. Out: a step, or `None`.

use collo_quantity::stats::{Quantity, t_p, t_quantile};

use super::detect::{Judge, Suspect};
use super::night::Mean;
use super::noise::Noise;
use super::rules::WINDOWS;
use super::track::Step;

impl Judge {
    /// Test a suspicious cell by the added repetitions: tonight's alone, then with those of the nights just before, which removes
    /// what is specific to tonight. An earlier night without added ones counts with its planned ones.
    pub(super) fn confirm(
        &self,
        suspect: &Suspect,
        again: Mean,
        noise: Noise,
        (scatter, shift_variance): (f64, f64),
        suspects: usize,
    ) -> Option<Step> {
        let t = &self.tracks[suspect.track];
        // Tonight's repetitions may scatter more than usual, never count as less.
        let repeat = again.variance.map_or(noise.repeat.s2, |own| {
            let (df, own_df) = (noise.repeat.df, (again.n - 1) as f64);
            ((noise.repeat.s2 * df.min(own_df) + own * own_df) / (df.min(own_df) + own_df)).max(noise.repeat.s2)
        });
        let mut surest: Option<Step> = None;
        for (window, share) in WINDOWS.into_iter().zip(self.rules.shares) {
            if !t.is_ready(window) {
                continue;
            }
            let before = t.points.len() - (window - 1);
            let level = self.level(suspect.track, window)?;
            let nights = &t.points[before..];
            let recent = self.scatter.iter().rev().take(window - 1).copied().fold(scatter, f64::max);
            let w = window as f64;
            let change = (nights.iter().map(|p| p.again.0).sum::<f64>() + again.log_mean) / w - level.mean;
            let repeats = repeat / again.n as f64 + noise.repeat.s2 * nights.iter().map(|p| 1.0 / p.again.1 as f64).sum::<f64>();
            let noise = Noise { night: noise.night * recent * recent, ..noise };
            let se = (noise.of_nights(window, repeats, &level) + shift_variance).sqrt();
            let n = again.n + nights.iter().map(|p| p.again.1).sum::<usize>();
            let step = self.step(change, se, noise.repeat.df, share * self.rules.confirm / suspects.max(1) as f64, n);
            if let Some(step) = step.filter(|s| s.is_worse() == (suspect.change > 0.0))
                && surest.as_ref().is_none_or(|s| step.p < s.p)
            {
                surest = Some(step);
            }
        }
        surest
    }

    /// The same without re-measurement: the family is all cells in all windows.
    pub(super) fn strictly(&self, suspect: &Suspect, cells: usize) -> Option<Step> {
        let level = self.rules.strict / (cells * WINDOWS.len()).max(1) as f64;
        self.step(suspect.change, suspect.se, suspect.df, level, 0)
    }

    fn step(&self, change: f64, se: f64, df: f64, level: f64, again: usize) -> Option<Step> {
        let p = if se > 0.0 { t_p(change / se, df) } else { 0.0 };
        if p >= level || change.abs() <= self.rules.relevance.ln_1p() {
            return None;
        }
        let half = t_quantile(0.975, df) * se;
        let bound = |x: f64| Some(x.exp());
        let ratio =
            Quantity { estimate: change.exp(), low: bound(change - half), high: bound(change + half), n: again, df: Some(df) };
        Some(Step { night: 0, since: 0, ratio, p, again })
    }
}
