//! Whether equal members of a group differ. In: a positive value for each member in each repetition. Out: the least ÷ the largest of the
//! members' means with simultaneous bounds, and the ratio that members without a difference would show in one repetition.

use super::{t_p, t_quantile};

/// The values of each member's seat over the repetitions, on logarithms.
#[derive(Debug, Clone, PartialEq)]
pub struct Seats {
    /// Mean of each seat, relative to its repetitions.
    means: Vec<f64>,
    repetitions: usize,
    /// Variance of a value beside the effects of its seat and of its repetition, with its degrees of freedom.
    variance: f64,
    df: f64,
}

impl Seats {
    /// From rows of repetitions with one value per seat; `None` for fewer than two of either, or a value without a logarithm.
    pub fn of(rows: &[Vec<f64>]) -> Option<Seats> {
        let seats = rows.first()?.len();
        let usable = |row: &Vec<f64>| row.len() == seats && row.iter().all(|x| x.is_finite() && *x > 0.0);
        if rows.len() < 2 || seats < 2 || !rows.iter().all(usable) {
            return None;
        }
        let n = rows.len() as f64;
        let centred: Vec<Vec<f64>> = rows
            .iter()
            .map(|row| {
                let mean = row.iter().map(|x| x.ln()).sum::<f64>() / seats as f64;
                row.iter().map(|x| x.ln() - mean).collect()
            })
            .collect();
        let means: Vec<f64> = (0..seats).map(|i| centred.iter().map(|row| row[i]).sum::<f64>() / n).collect();
        let squares: f64 = centred.iter().flat_map(|row| row.iter().zip(&means).map(|(x, mean)| (x - mean).powi(2))).sum();
        let df = (seats - 1) as f64 * (n - 1.0);
        Some(Seats { means, repetitions: rows.len(), variance: squares / df, df })
    }

    /// Pairs of seats.
    pub fn pairs(&self) -> usize {
        self.means.len() * (self.means.len() - 1) / 2
    }

    /// Bounds of the least ÷ the largest mean, at 5 % for this many pairs together. The upper one is 1 unless two seats certainly differ.
    pub fn least_ratio(&self, pairs: usize) -> (f64, f64) {
        let largest = self.means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = self.means.iter().copied().fold(f64::INFINITY, f64::min);
        let se = (2.0 * self.variance / self.repetitions as f64).sqrt();
        let half = t_quantile(1.0 - 0.025 / pairs.max(1) as f64, self.df) * se;
        ((least - largest - half).exp(), (least - largest + half).exp().min(1.0))
    }

    /// The least ÷ the largest value of one repetition that equal seats with this scatter show: exp of minus the expected range of so many
    /// normal values.
    pub fn by_chance(&self) -> f64 {
        (-expected_range(self.means.len()) * self.variance.sqrt()).exp()
    }
}

/// Expected range of `n` standard normal values: ∫ 1 − Φ(x)ⁿ − (1 − Φ(x))ⁿ dx (Tippett, Biometrika 17(3/4), 1925).
fn expected_range(n: usize) -> f64 {
    const STEP: f64 = 0.01;
    let upper = |x: f64| if x < 0.0 { 1.0 - t_p(x, f64::INFINITY) / 2.0 } else { t_p(x, f64::INFINITY) / 2.0 };
    let at = |x: f64| 1.0 - upper(-x).powi(n as i32) - upper(x).powi(n as i32);
    (-800..=800).map(|i| at(f64::from(i) * STEP) * STEP).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    /// Repetitions of seats whose logarithms have these means and this noise; each repetition has a pace of its own.
    fn rows(means: &[f64], noise: f64, repetitions: usize, random: &mut Random) -> Vec<Vec<f64>> {
        let mut row = || {
            let pace = 0.2 * random.normal();
            means.iter().map(|mean| (mean + pace + noise * random.normal()).exp()).collect()
        };
        (0..repetitions).map(|_| row()).collect()
    }

    #[test]
    fn the_expected_range_is_that_of_the_tables() {
        // Tippett's table, d₂ of control charts.
        for (n, known) in [(2, 1.128), (3, 1.693), (7, 2.704), (10, 3.078)] {
            assert!((expected_range(n) - known).abs() < 1e-3, "{n}: {}", expected_range(n));
        }
    }

    #[test]
    fn seven_equal_members_with_noise_are_not_called_unequal() {
        let mut random = Random::seeded(8);
        let (mut unfair, mut shown, mut expected) = (0, 0.0, 0.0);
        for _ in 0..500 {
            let rows = rows(&[0.0; 7], 0.05, 3, &mut random);
            let seats = Seats::of(&rows).unwrap();
            unfair += usize::from(seats.least_ratio(seats.pairs()).1 < 0.9);
            let worst = rows
                .iter()
                .map(|row| row.iter().copied().fold(f64::INFINITY, f64::min) / row.iter().copied().fold(0.0, f64::max));
            shown += worst.sum::<f64>() / 3.0 / 500.0;
            expected += seats.by_chance() / 500.0;
        }
        assert!(unfair <= 5, "{unfair} of 500");
        assert!((0.86..0.89).contains(&shown) && (expected - shown).abs() < 0.01, "shown {shown}, expected by chance {expected}");
    }

    #[test]
    fn a_member_that_lags_in_every_run_is_found() {
        let mut random = Random::seeded(9);
        let mut means = [0.0; 7];
        means[3] = 0.8f64.ln();
        let found = |_| Seats::of(&rows(&means, 0.01, 3, &mut random)).map(|s| s.least_ratio(s.pairs())).unwrap().1 < 0.9;
        assert!((0..200).map(found).filter(|found| *found).count() >= 198);
    }

    #[test]
    fn one_repetition_and_one_member_have_no_seats() {
        assert_eq!(Seats::of(&[vec![1.0, 2.0]]), None);
        assert_eq!(Seats::of(&[vec![1.0], vec![1.0]]), None);
        assert_eq!(Seats::of(&[vec![1.0, 0.0], vec![1.0, 1.0]]), None);
    }
}
