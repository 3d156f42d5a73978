//! Axes as coordinates of plotters. In: the range of the data. Out: round ticks with their texts; plotters maps values to pixels.

use std::ops::Range;

use plotters::coord::combinators::{IntoLogRange, LogCoord};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

use super::themed::text_width;

/// An axis. Values beyond it are drawn at its end.
pub struct Axis {
    map: Map,
    range: Range<f64>,
    /// The positions of its grid lines, and their texts.
    ticks: Vec<(f64, String)>,
}

enum Map {
    Linear(RangedCoordf64),
    Log(LogCoord<f64>),
}

/// Steps of 1, 2, 2.5 or 5 times a power of ten, so that there are four to six of them.
fn round_step(span: f64) -> f64 {
    let raw = span / 5.0;
    let power = 10f64.powf(raw.log10().floor());
    let lead = raw / power;
    power * [1.0, 2.0, 2.5, 5.0].into_iter().find(|s| lead <= *s * 1.0001).unwrap_or(10.0)
}

/// Round ratios that may carry a tick.
pub const RATIO_TICKS: [f64; 21] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// Steps of a logarithmic axis within a power of ten.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];
/// More ticks of a logarithmic axis than this are thinned to powers of ten.
const TICKS: usize = 7;

impl Axis {
    /// From zero to a round number that is at least `largest`.
    pub fn from_zero(largest: f64) -> Self {
        let largest = if largest.is_finite() && largest > 0.0 { largest } else { 1.0 };
        let step = round_step(largest);
        Axis::stepped(0.0..(largest / step - 1e-9).ceil() * step, step)
    }

    /// Round numbers around a range: for ratios and dots, which need no zero.
    pub fn around(low: f64, high: f64) -> Self {
        let step = round_step((high - low).max(1e-9));
        Axis::stepped((low / step + 1e-9).floor() * step..(high / step - 1e-9).ceil() * step, step)
    }

    /// Seconds as they are, with round ticks inside, which are minutes if there are many: the last one shows which.
    pub fn of_time(from_s: f64, to_s: f64, most: usize) -> Self {
        let (unit, per) = if to_s > 300.0 { (" min", 60.0) } else { (" s", 1.0) };
        let to_s = if to_s > from_s { to_s } else { from_s + per };
        let mut axis = Axis::stepped(from_s / per..to_s / per, round_step((to_s - from_s) / per));
        axis.ticks.iter_mut().for_each(|tick| tick.0 *= per);
        axis.thin(most + 1);
        if let Some(last) = axis.ticks.iter_mut().rfind(|tick| !tick.1.is_empty()) {
            last.1.push_str(unit);
        }
        Axis::named(from_s..to_s, axis.ticks)
    }

    /// Round ticks inside the axis, with as many decimals as the step needs.
    fn stepped(range: Range<f64>, step: f64) -> Self {
        let exponent = (0..6).find(|d| (step * 10f64.powi(*d) - (step * 10f64.powi(*d)).round()).abs() < 1e-6);
        let ticks = (range.start / step - 1e-6).ceil() as i64..=(range.end / step + 1e-6).floor() as i64;
        let ticks = ticks.map(|i| i as f64 * step).map(|t| (t, collo_quantity::number::fixed(t, exponent.unwrap_or(6))));
        Axis::named(range, ticks.collect())
    }

    /// Its ticks: positions and texts.
    pub fn ticks(&self) -> &[(f64, String)] {
        &self.ticks
    }

    /// The axis as it is, with given ticks.
    pub fn named(range: Range<f64>, ticks: Vec<(f64, String)>) -> Self {
        Axis { map: Map::Linear(range.clone().into()), range, ticks }
    }

    /// Logarithmic, from the tick below the smallest value to the one above the largest, and at least one power of ten long.
    pub fn log(low: f64, high: f64) -> Self {
        let usable = |x: f64| x.is_finite() && x > 0.0;
        let (low, high) = if usable(low) && usable(high) { (low.min(high), high.max(low)) } else { (1.0, 10.0) };
        // What is missing of a power of ten is added on both sides.
        let room = (10.0 / (high / low)).max(1.0).sqrt();
        let all: Vec<f64> = ((low / room).log10().floor() as i32..=(high * room).log10().ceil() as i32)
            .flat_map(|power| STEPS.map(|step| step * 10f64.powi(power)))
            .collect();
        let from = all.iter().rposition(|t| *t <= low / room * 1.0001).unwrap_or(0);
        let to = all.iter().position(|t| *t >= high * room * 0.9999).unwrap_or(all.len() - 1);
        let ticks = all[from..=to].iter().filter(|t| to - from < TICKS || (t.log10() - t.log10().round()).abs() < 1e-6);
        let text = |t: &f64| (*t, collo_quantity::number::fixed(*t, (-t.log10().floor()).max(0.0) as i32));
        Axis::log_named(all[from]..all[to], ticks.map(text).collect())
    }

    /// The logarithmic axis as it is, with given ticks.
    pub fn log_named(range: Range<f64>, ticks: Vec<(f64, String)>) -> Self {
        Axis { map: Map::Log(range.clone().log_scale().into()), range, ticks }
    }

    /// Replace the texts at the ticks.
    pub fn labelled(mut self, text: impl Fn(f64) -> String) -> Self {
        self.ticks.iter_mut().for_each(|tick| tick.1 = text(tick.0));
        self
    }

    /// Drop every second text if there are at least `many` ticks.
    pub fn thin(&mut self, many: usize) {
        if self.ticks.len() >= many {
            self.ticks.iter_mut().skip(1).step_by(2).for_each(|tick| tick.1.clear());
        }
    }

    /// Keep only every second tick if there are at least `many`.
    pub fn thinned(mut self, many: usize) -> Self {
        self.thin(many);
        self.ticks.retain(|tick| !tick.1.is_empty());
        self
    }

    /// Without its ticks.
    pub fn bare(mut self) -> Self {
        self.ticks.clear();
        self
    }

    pub fn min(&self) -> f64 {
        self.range.start.min(self.range.end)
    }

    pub fn max(&self) -> f64 {
        self.range.end.max(self.range.start)
    }

    /// The gutter that the widest text needs.
    pub fn gutter(&self) -> f64 {
        10.0 + self.ticks.iter().map(|t| text_width(&t.1)).fold(text_width("0"), f64::max)
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, pixels: (i32, i32)) -> i32 {
        let value = value.max(self.min()).min(self.max());
        match &self.map {
            Map::Linear(coord) => coord.map(&value, pixels),
            Map::Log(coord) => coord.map(&value, pixels),
        }
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.iter().map(|t| t.0).collect() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.ticks.iter().find(|t| t.0 == *value).map_or_else(String::new, |t| t.1.clone())
    }
}

/// Labels by their middles, in units: those that would cover the label before them are dropped.
pub fn apart<'l>(labels: impl IntoIterator<Item = (f64, &'l str)>) -> Vec<String> {
    let mut taken = f64::NEG_INFINITY;
    let free = |(middle, label): (f64, &str)| {
        let half = text_width(label) / 2.0;
        if middle - half <= taken {
            return String::new();
        }
        taken = middle + half + 2.0;
        label.to_string()
    };
    labels.into_iter().map(free).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|t| t.1.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_four_to_six() {
        for largest in [0.013, 0.7, 1.9, 2.45, 5.48, 99.0, 103.0, 348.0, 7.2e9] {
            let axis = Axis::from_zero(largest);
            assert!(axis.max() >= largest && axis.max() < largest * 1.5, "{largest}: {:?}", axis.range);
            assert!((4..=7).contains(&axis.ticks.len()), "{largest}: {:?}", axis.ticks);
            assert_eq!((axis.map(&0.0, (100, 0)), axis.map(&axis.max(), (100, 0))), (100, 0));
        }
        assert_eq!(texts(&Axis::from_zero(2.45)), ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5"]);
        assert_eq!(texts(&Axis::of_time(0.0, 600.0, 5)), ["0", "", "4", "", "8 min", ""]);
    }

    #[test]
    fn a_logarithmic_axis_holds_its_values_and_has_round_ticks() {
        for (low, high) in [(12.0, 14.0), (0.3, 900.0), (3e-4, 7e5), (50.0, 50.0), (1.0, 10.0)] {
            let axis = Axis::log(low, high);
            assert!(axis.min() <= low && axis.max() >= high && axis.max() / axis.min() >= 9.9, "{:?}", axis.range);
            assert!((2..=10).contains(&axis.ticks.len()), "{:?}", axis.ticks);
            assert_eq!((axis.map(&axis.min(), (0, 100)), axis.map(&axis.max(), (0, 100))), (0, 100));
            assert_eq!(axis.map(&1e9, (0, 100)), 100, "beyond the axis is its end");
        }
        assert_eq!(texts(&Axis::log(12.0, 14.0)), ["2", "5", "10", "20", "50"]);
        assert_eq!(texts(&Axis::log(0.05, 0.5)), ["0.05", "0.1", "0.2", "0.5"]);
    }

    #[test]
    fn what_has_no_logarithm_makes_no_axis_of_its_own() {
        for (low, high) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
            let axis = Axis::log(low, high);
            assert!(axis.min() > 0.0 && axis.max().is_finite() && !axis.ticks.is_empty(), "{:?}", axis.range);
        }
    }
}
