//! Centres and spreads that are robust against a few wild nights. In: numbers. Out: numbers.

use super::median;

/// From the median absolute deviation to a standard deviation, under normal noise.
const MAD: f64 = 1.4826;
/// Values further from the median than this many robust standard deviations are moved to that limit.
const FENCE: f64 = 3.0;

/// Share of the values beyond which they are no exceptions.
const OFTEN: f64 = 0.15;

/// The median absolute deviation from a centre as a standard deviation.
pub fn spread(values: &[f64], centre: f64) -> Option<f64> {
    let mut off: Vec<f64> = values.iter().map(|v| (v - centre).abs()).collect();
    median(&mut off).map(|m| m * MAD)
}

/// Mean and sum of squared deviations after wild values were moved to the fence.
pub fn level(values: &[f64]) -> Option<(f64, f64)> {
    let centre = median(&mut values.to_vec())?;
    let n = values.len() as f64;
    // Of three values or less nobody can say which one is wild.
    let fence = if values.len() < 4 { f64::INFINITY } else { FENCE * spread(values, centre)? };
    // What happens often is not wild, it is how the cell is; and where most values are alike nothing tells wild from tame.
    let outside = values.iter().filter(|v| (*v - centre).abs() > fence).count() as f64;
    let fence = if fence > 0.0 && outside <= (OFTEN * n).max(1.0) { fence } else { f64::INFINITY };
    let tame = |v: &f64| v.clamp(centre - fence, centre + fence);
    let mean = values.iter().map(tame).sum::<f64>() / n;
    Some((mean, values.iter().map(|v| (tame(v) - mean).powi(2)).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wild_night_moves_a_level_by_little() {
        let mut nights: Vec<f64> = (0..20).map(|i| f64::from(i % 5) * 0.01).collect();
        let (calm, squares) = level(&nights).unwrap();
        nights[7] = 5.0;
        let (stirred, more) = level(&nights).unwrap();
        assert!((stirred - calm).abs() < 0.01 && more < 3.0 * squares, "{calm} {stirred} {squares} {more}");
        assert_eq!(level(&[0.5; 9]), Some((0.5, 0.0)));
    }
}
