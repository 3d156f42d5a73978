//! Axes. In: the range of the data. Out: round ticks and the way from values to pixels.

/// A linear axis.
#[derive(Debug, Clone)]
pub struct Scale {
    pub min: f64,
    pub max: f64,
    /// Distance between ticks.
    pub step: f64,
    from_px: f64,
    to_px: f64,
}

/// Steps of 1, 2, 2.5 or 5 times a power of ten, so that there are four to six of them.
fn round_step(span: f64) -> f64 {
    let raw = span / 5.0;
    let power = 10f64.powf(raw.log10().floor());
    let lead = raw / power;
    power * [1.0, 2.0, 2.5, 5.0].into_iter().find(|s| lead <= *s * 1.0001).unwrap_or(10.0)
}

impl Scale {
    /// From zero to a round number that holds `largest`; `from_px` is where zero lies.
    pub fn from_zero(largest: f64, from_px: f64, to_px: f64) -> Self {
        let largest = if largest.is_finite() && largest > 0.0 { largest } else { 1.0 };
        let step = round_step(largest);
        Scale { min: 0.0, max: (largest / step - 1e-9).ceil() * step, step, from_px, to_px }
    }

    /// Round numbers around a range: for ratios and dots, which need no zero.
    pub fn around(low: f64, high: f64, from_px: f64, to_px: f64) -> Self {
        let step = round_step((high - low).max(1e-9));
        let (min, max) = ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step);
        Scale { min, max, step, from_px, to_px }
    }

    /// The axis as it is, with round ticks inside: for time.
    pub fn exact(min: f64, max: f64, from_px: f64, to_px: f64) -> Self {
        let max = if max > min { max } else { min + 1.0 };
        Scale { min, max, step: round_step(max - min), from_px, to_px }
    }

    /// Where a value lies.
    pub fn px(&self, value: f64) -> f64 {
        self.from_px + (value - self.min) / (self.max - self.min) * (self.to_px - self.from_px)
    }

    /// The ticks that lie on the axis.
    pub fn ticks(&self) -> Vec<f64> {
        let first = (self.min / self.step - 1e-6).ceil() as i64;
        let last = (self.max / self.step + 1e-6).floor() as i64;
        (first..=last).map(|i| i as f64 * self.step).collect()
    }

    /// A tick's text: as many decimals as the step needs.
    pub fn label(&self, tick: f64) -> String {
        let decimals =
            (0..6).find(|d| (self.step * 10f64.powi(*d) - (self.step * 10f64.powi(*d)).round()).abs() < 1e-6).unwrap_or(6);
        crate::number::fixed(tick, decimals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_four_to_six() {
        for largest in [0.013, 0.7, 1.9, 2.45, 5.48, 99.0, 103.0, 348.0, 7.2e9] {
            let s = Scale::from_zero(largest, 100.0, 0.0);
            assert!(s.max >= largest && s.max < largest * 1.5, "{largest}: {s:?}");
            assert!((4..=7).contains(&s.ticks().len()), "{largest}: {:?}", s.ticks());
            assert_eq!((s.px(0.0), s.px(s.max)), (100.0, 0.0));
        }
        let s = Scale::from_zero(2.45, 0.0, 1.0);
        assert_eq!(s.ticks().iter().map(|t| s.label(*t)).collect::<Vec<_>>(), ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5"]);
    }
}
