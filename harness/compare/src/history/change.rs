//! Finds the time of a step. In: nightly values, the oldest first. Out: the index of the first night after it.

/// One step by least squares: the split that leaves the smallest sum of squares, weighted by repetitions. `None` unless it
/// explains more than the penalty, `2 ln(nights)` of the nightly variance.
pub fn point(values: &[(f64, usize)], nightly_variance: f64) -> Option<usize> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let whole: (f64, f64) = values.iter().fold((0.0, 0.0), |(w, s), (x, k)| (w + weight(*k), s + weight(*k) * x));
    let (mut left, mut best) = ((0.0, 0.0), (0.0, 0));
    for (index, (x, k)) in values.iter().enumerate().take(n - 1) {
        left = (left.0 + weight(*k), left.1 + weight(*k) * x);
        let right = (whole.0 - left.0, whole.1 - left.1);
        // What two means explain more than one.
        let gain = left.1 * left.1 / left.0 + right.1 * right.1 / right.0 - whole.1 * whole.1 / whole.0;
        if gain > best.0 {
            best = (gain, index + 1);
        }
    }
    let usual = values.iter().map(|(_, k)| weight(*k)).sum::<f64>() / n as f64;
    (best.0 / usual > 2.0 * (n as f64).ln() * nightly_variance).then_some(best.1)
}

/// A night's own noise limits the value of more repetitions.
fn weight(repetitions: usize) -> f64 {
    (repetitions as f64).sqrt().max(1.0)
}

/// True for a history that alternates between two levels: two clusters that explain nearly all of the spread, both of them
/// visited often, neither before the other.
pub fn is_bimodal(values: &[f64]) -> bool {
    const SPLIT_EXPLAINS: f64 = 0.9;
    const CROSSINGS: usize = 4;
    let n = values.len();
    if n < 10 {
        return false;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let squares = |v: &[f64]| {
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        v.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
    };
    let whole = squares(&sorted);
    let split = (3..=n - 3).min_by(|a, b| {
        let left = |k: usize| squares(&sorted[..k]) + squares(&sorted[k..]);
        left(*a).total_cmp(&left(*b))
    });
    let Some(split) =
        split.filter(|k| whole > 0.0 && squares(&sorted[..*k]) + squares(&sorted[*k..]) < (1.0 - SPLIT_EXPLAINS) * whole)
    else {
        return false;
    };
    let border = (sorted[split - 1] + sorted[split]) / 2.0;
    values.windows(2).filter(|w| (w[0] > border) != (w[1] > border)).count() >= CROSSINGS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_night_of_a_step_is_found_and_noise_has_none() {
        let noise = [0.002, -0.001, 0.0, 0.001, -0.002, 0.001, 0.0, -0.001, 0.002, 0.0];
        let quiet: Vec<(f64, usize)> = noise.iter().map(|x| (*x, 3)).collect();
        assert_eq!(point(&quiet, 2e-6), None);
        let stepped: Vec<(f64, usize)> =
            noise.iter().enumerate().map(|(i, x)| (x + if i >= 7 { 0.05 } else { 0.0 }, 3)).collect();
        assert_eq!(point(&stepped, 2e-6), Some(7));
        assert_eq!((point(&[], 1.0), point(&[(0.0, 3)], 1.0)), (None, None));
    }

    #[test]
    fn a_history_of_two_levels_is_bimodal_and_a_step_is_not() {
        let wobble = |i: usize| (i % 3) as f64 * 0.001;
        let jumps: Vec<f64> = (0..16).map(|i| wobble(i) + if (i / 2) % 2 == 0 { 0.1 } else { 0.0 }).collect();
        let step: Vec<f64> = (0..16).map(|i| wobble(i) + if i > 8 { 0.1 } else { 0.0 }).collect();
        assert!(is_bimodal(&jumps) && !is_bimodal(&step));
        assert!(!is_bimodal(&[0.0; 20]) && !is_bimodal(&(0..20).map(|i| f64::from(i * 7 % 20)).collect::<Vec<_>>()));
    }
}
