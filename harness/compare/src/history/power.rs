//! What the next night could detect. In: a judge's state. Out: per cell the smallest detectable step, and the band in which its
//! next time is expected.

use collo_quantity::stats::t_quantile;

use super::detect::Judge;
use super::noise::Noise;
use super::rules::WINDOWS;
use super::track::SegmentLevel;

impl Judge {
    /// The detectable step of each cell: the smallest that is found within three nights in four of five cases, as a share.
    pub fn detectable(&self) -> Vec<Option<f64>> {
        let cells = self.noises().iter().flatten().count();
        let at = |(t, noise): (usize, &Option<Noise>)| Some(self.detects(&(*noise)?, &self.level(t, 1)?, cells).exp_m1());
        self.noises().iter().enumerate().map(at).collect()
    }

    fn detects(&self, noise: &Noise, level: &SegmentLevel, cells: usize) -> f64 {
        let df = noise.repeat.df;
        let window = WINDOWS[WINDOWS.len() - 1];
        let first = noise.of_difference(window, level.nights, level.repeats).sqrt();
        let relevance = self.rules.relevance.ln_1p();
        if !self.rules.again {
            let alone = t_quantile(1.0 - self.rules.strict / (cells * WINDOWS.len()).max(1) as f64 / 2.0, df) * first;
            return alone.max(relevance) + t_quantile(0.8, df) * first;
        }
        // Both stages must hold: each in nine of ten cases.
        let by_chance = 1.0 + cells as f64 * self.rules.lenient * WINDOWS.len() as f64 * 0.7;
        let se = noise.of_nights(1, noise.repeat.s2 / self.rules.more as f64, level).sqrt();
        let suspicious = (t_quantile(1.0 - self.rules.lenient / 2.0, df) + t_quantile(0.9, df)) * first;
        let confirmed = t_quantile(1.0 - self.rules.confirm / by_chance / 2.0, df) * se;
        suspicious.max(confirmed.max(relevance) + t_quantile(0.9, df) * se)
    }

    /// Where a track's next night is expected, 95 %: low and high of its logarithm.
    pub fn expected_of(&self, track: usize) -> Option<(f64, f64)> {
        let (noise, level) = ((*self.noises().get(track)?)?, self.level(track, 1)?);
        let half = t_quantile(0.975, noise.repeat.df) * noise.of_difference(1, level.nights, level.repeats).sqrt();
        Some((level.mean - half, level.mean + half))
    }
}
