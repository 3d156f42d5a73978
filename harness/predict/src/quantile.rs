//! The quantiles of a few values.

/// The value below which this share of the values lies, between the two nearest where it falls between them; `None` without values.
pub fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let at = share * values.len().checked_sub(1)? as f64;
    let (below, above) = (values[at.floor() as usize], values[at.ceil() as usize]);
    Some(below + (above - below) * at.fract())
}
