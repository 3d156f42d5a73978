//! A logarithmic axis. In: the range of the data. Out: ticks at 1, 2 and 5 times powers of ten, and the way to pixels.

/// The axis.
#[derive(Debug, Clone)]
pub struct LogScale {
    pub min: f64,
    pub max: f64,
    from_px: f64,
    to_px: f64,
}

/// Steps within a power of ten.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];
/// More ticks than this are thinned to powers of ten.
const TICKS: usize = 7;

impl LogScale {
    /// From the tick below the smallest value to the one above the largest, and at least one power of ten long.
    pub fn around(low: f64, high: f64, from_px: f64, to_px: f64) -> Self {
        let usable = |x: f64| x.is_finite() && x > 0.0;
        let (low, high) = if usable(low) && usable(high) { (low.min(high), high.max(low)) } else { (1.0, 10.0) };
        // What is missing of a power of ten is added on both sides.
        let room = (10.0 / (high / low)).max(1.0).sqrt();
        let (min, max) = (below(low / room), above(high * room));
        LogScale { min, max, from_px, to_px }
    }

    /// The axis as it is.
    pub fn exact(min: f64, max: f64, from_px: f64, to_px: f64) -> Self {
        LogScale { min, max, from_px, to_px }
    }

    /// Where a value lies; one beyond the axis lies at its end.
    pub fn px(&self, value: f64) -> f64 {
        let value = value.clamp(self.min, self.max);
        self.from_px + (value / self.min).ln() / (self.max / self.min).ln() * (self.to_px - self.from_px)
    }

    /// The ticks that lie on the axis.
    pub fn ticks(&self) -> Vec<f64> {
        let (first, last) = (self.min.log10().floor() as i32, self.max.log10().ceil() as i32);
        let all = (first..=last).flat_map(|power| STEPS.map(|step| step * 10f64.powi(power)));
        let on: Vec<f64> = all.filter(|t| *t >= self.min * 0.999 && *t <= self.max * 1.001).collect();
        if on.len() <= TICKS { on } else { on.into_iter().filter(|t| (t.log10() - t.log10().round()).abs() < 1e-6).collect() }
    }

    /// A tick's text: `0.5`, `20`, `1000`.
    pub fn label(tick: f64) -> String {
        let decimals = (-tick.log10().floor()).max(0.0) as i32;
        crate::number::fixed(tick, decimals)
    }
}

fn below(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    STEPS.into_iter().rev().map(|s| s * power).find(|t| *t <= value * 1.0001).unwrap_or(power)
}

fn above(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    STEPS.into_iter().chain([10.0]).map(|s| s * power).find(|t| *t >= value * 0.9999).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_holds_its_values_and_has_round_ticks() {
        for (low, high) in [(12.0, 14.0), (0.3, 900.0), (3e-4, 7e5), (50.0, 50.0), (1.0, 10.0)] {
            let axis = LogScale::around(low, high, 0.0, 100.0);
            assert!(axis.min <= low && axis.max >= high && axis.max / axis.min >= 9.9, "{axis:?}");
            let ticks = axis.ticks();
            assert!((2..=10).contains(&ticks.len()), "{ticks:?}");
            assert_eq!((axis.px(axis.min), axis.px(axis.max)), (0.0, 100.0));
        }
        let axis = LogScale::around(12.0, 14.0, 0.0, 100.0);
        assert_eq!(axis.ticks().into_iter().map(LogScale::label).collect::<Vec<_>>(), ["2", "5", "10", "20", "50"]);
        assert_eq!([0.05, 0.5, 2.0, 1000.0].map(LogScale::label), ["0.05", "0.5", "2", "1000"]);
    }

    #[test]
    fn what_has_no_logarithm_makes_no_axis_of_its_own() {
        for (low, high) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
            let axis = LogScale::around(low, high, 0.0, 100.0);
            assert!(axis.min > 0.0 && axis.max.is_finite() && !axis.ticks().is_empty(), "{axis:?}");
        }
        assert_eq!(LogScale::exact(1.0, 10.0, 0.0, 100.0).px(1e9), 100.0, "beyond the axis is its end");
    }
}
