//! How often intervals contain the truth, over thousands of simulated cells: few and many repetitions, normal and heavy tails,
//! members that share their group's noise.

use super::random::Random;
use super::{Pool, Term, Variance, log_moments, quantity};

/// How the noise of a repetition is distributed, at standard deviation 1 (of Student's t: at its scale).
#[derive(Debug, Clone, Copy)]
enum NoiseTails {
    Normal,
    /// Student's t with three degrees of freedom.
    Heavy,
}

impl NoiseTails {
    fn draw(self, random: &mut Random) -> f64 {
        let normal = random.normal();
        match self {
            NoiseTails::Normal => normal,
            NoiseTails::Heavy => {
                let chi2: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
                normal / (chi2 / 3.0).sqrt()
            }
        }
    }
}

/// One number per repetition of one cell: `members` of equal speed share the run's noise and have a little of their own; the
/// estimate is their STP. One member is a plain epoch time.
fn cell(random: &mut Random, tails: NoiseTails, repetitions: usize, members: usize) -> Vec<f64> {
    // The size of the noise differs between cells by e^±0.4.
    let sigma = 0.03 * (0.4 * random.normal()).exp();
    let run = |random: &mut Random| {
        let shared = sigma * tails.draw(random);
        let own = |random: &mut Random| if members > 1 { 0.3 * sigma * random.normal() } else { 0.0 };
        (0..members).map(|_| (shared + own(random)).exp()).sum::<f64>() / members as f64
    };
    (0..repetitions).map(|_| run(random)).collect()
}

/// Share of the intervals of cell ÷ baseline that contain 1, over at least 2,000 cells.
fn coverage(cells: usize, campaigns: usize, repetitions: usize, tails: NoiseTails, members: usize) -> (f64, usize) {
    let mut random = Random::seeded(20_261_121);
    let (mut hits, mut total) = (0, 0);
    for _ in 0..campaigns {
        let all: Vec<_> = (0..cells).map(|_| cell(&mut random, tails, repetitions, members)).collect();
        let moments: Vec<(f64, Option<Variance>)> = all.iter().filter_map(|c| log_moments(c)).collect();
        let variances: Vec<Variance> = moments.iter().filter_map(|m| m.1).collect();
        let pool = Pool::fit(&variances).expect("cells with two repetitions");
        let term = |i: usize, weight: f64| Term { weight, variance: pool.shrink(variances[i]), n: repetitions };
        for i in (0..all.len() - 1).step_by(2) {
            let q = quantity(moments[i].0 - moments[i + 1].0, repetitions, &[term(i, 1.0), term(i + 1, -1.0)]);
            hits += usize::from(q.low.is_some_and(|low| low <= 1.0) && q.high.is_some_and(|high| high >= 1.0));
            total += 1;
        }
    }
    (hits as f64 / total as f64, total)
}

#[track_caller]
fn nominal((rate, total): (f64, usize), what: &str) {
    println!("{what}: {:.1} % of {total}", rate * 100.0);
    let two_se = 2.0 * (0.95f64 * 0.05 / total as f64).sqrt();
    assert!(total >= 2000 && rate > 0.93 - two_se && rate < 0.97 + two_se, "{what}: {rate} of {total}");
}

#[test]
fn moderated_intervals_cover_the_truth_at_their_nominal_rate() {
    for tails in [NoiseTails::Normal, NoiseTails::Heavy] {
        for repetitions in [2, 3, 5, 10] {
            nominal(coverage(40, 120, repetitions, tails, 1), &format!("{tails:?} noise, {repetitions} repetitions"));
        }
    }
}

#[test]
fn quantities_of_a_group_whose_members_share_its_noise_are_covered_too() {
    for repetitions in [2, 3, 5, 10] {
        nominal(coverage(40, 120, repetitions, NoiseTails::Normal, 7), &format!("STP of seven, {repetitions} repetitions"));
    }
}

#[test]
fn pooled_intervals_of_small_campaigns_cover_too() {
    nominal(coverage(4, 1200, 3, NoiseTails::Normal, 1), "four cells, 3 repetitions");
}
