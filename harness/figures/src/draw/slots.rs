//! Places of bars: groups side by side, in each the same places in the same order, so that a mode stands at one place whether or
//! not it was measured. Below the axis is each place's mark, which names the mode without the legend and without colour.

use super::axis::{Axis, apart};
use super::chart::{Chart, DrawResult};
use crate::draw::look::{hue, shape};
use crate::draw::themed::Anchor;

/// Below the axis, for the marks, and for a line of names under them.
const MARKS: f64 = 13.0;
const NAMES: f64 = 11.0;
/// Bars narrower than this have no marks.
const MARKED: f64 = 8.0;

/// What stands at a place: its mode, and what else is written there: `2g`.
pub struct Place<'p> {
    pub sharing: &'p str,
    pub below: &'p str,
}

/// The layout of groups of bars, in units.
pub struct Slots {
    /// Width of a bar.
    pub wide: f64,
    gap: f64,
    /// Units on the axis are groups and gaps; one is this wide.
    unit: f64,
    /// By group: its middle on the axis, and its places.
    groups: Vec<(f64, usize)>,
    end: f64,
    named: bool,
}

impl Slots {
    /// Lay out groups of so many places over a width; a bar is at most `most` wide.
    pub fn over(width: f64, places: &[usize], most: f64) -> Slots {
        let all = places.iter().sum::<usize>().max(1) as f64;
        // Groups keep apart by more than a bar.
        let pitch = width / (all + 0.7 * places.len().max(1) as f64);
        let gap = if pitch < 8.0 { 1.0 } else { 3.0 };
        let wide = most.min(pitch - gap).max(1.5);
        let mut end = 0.0;
        let groups = places
            .iter()
            .map(|n| {
                let (begin, span) = (end, *n as f64 + 0.7);
                end += span;
                (begin + span / 2.0, *n)
            })
            .collect();
        Slots { wide, gap, unit: pitch, groups, end: end.max(1.0), named: false }
    }

    /// The same, with room for names under the marks.
    pub fn named(mut self, named: bool) -> Slots {
        self.named = named && self.wide >= 14.0;
        self
    }

    /// How far the labels of the groups stand below the axis.
    pub fn sink(&self) -> f64 {
        let names = if self.named { NAMES } else { 0.0 };
        if self.wide < MARKED { 0.0 } else { MARKS + names }
    }

    /// The horizontal axis, with the labels of the groups that have room.
    pub fn axis(&self, labels: &[&str]) -> Axis {
        let at = |(middle, _): &(f64, usize)| *middle;
        let texts = apart(self.groups.iter().zip(labels).map(|(g, label)| (at(g) * self.unit, *label)));
        Axis::named(0.0..self.end, self.groups.iter().map(at).zip(texts).collect())
    }

    /// The middle of a group on the axis, and from there the left edge of its k-th bar in units.
    pub fn left(&self, group: usize, k: usize) -> (f64, f64) {
        let (middle, places) = self.groups[group];
        let pitch = self.wide + self.gap;
        (middle, k as f64 * pitch - (places as f64 * pitch - self.gap) / 2.0)
    }

    /// Width of a group's bars with their gaps.
    pub fn span(&self, group: usize) -> f64 {
        self.groups[group].1 as f64 * (self.wide + self.gap) - self.gap
    }

    /// The marks below the axis.
    pub fn marks(&self, chart: &mut Chart, groups: &[Vec<Option<Place>>]) -> DrawResult<()> {
        if self.wide < MARKED {
            return Ok(());
        }
        chart.own(|svg, place| {
            for (g, places) in groups.iter().enumerate() {
                for (k, stands) in places.iter().enumerate() {
                    let Some(stands) = stands else { continue };
                    let (middle, left) = self.left(g, k);
                    let (x, foot) = (place(middle, 0.0).0 + left + self.wide / 2.0, place(middle, f64::MIN).1);
                    svg.open(hue(stands.sharing));
                    svg.shape(shape(stands.sharing), "mk", (x, foot + 9.0));
                    svg.close();
                    if self.named && !stands.below.is_empty() {
                        svg.text("tiny", (x, foot + 23.0), Anchor::Middle, stands.below);
                    }
                }
            }
        })
    }
}

/// The end of an axis that shows every estimate, and every interval that is not far longer than the rest: one of two repetitions
/// would squeeze all bars. What goes on beyond it ends in an arrow.
pub fn reach(of: impl Iterator<Item = (f64, Option<f64>)>) -> f64 {
    const ROOM: f64 = 1.5;
    let (mut most, mut high) = (0.0f64, 0.0f64);
    for (estimate, upper) in of.filter(|(e, _)| e.is_finite()) {
        most = most.max(estimate);
        high = high.max(upper.filter(|u| u.is_finite()).unwrap_or(estimate));
    }
    high.max(most).min(ROOM * most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_stands_at_the_same_place_of_every_group() {
        let slots = Slots::over(300.0, &[3, 3, 3], 19.0);
        let offsets: Vec<f64> = (0..3).map(|group| slots.left(group, 1).1).collect();
        assert_eq!(offsets, [offsets[0]; 3]);
        assert!(slots.left(0, 0).1 < slots.left(0, 1).1 && (slots.left(0, 1).1 + slots.wide / 2.0).abs() < 1e-9);
        let places: Vec<f64> = (0..3).map(|group| slots.left(group, 0).0).collect();
        assert!(((places[2] - places[1]) - (places[1] - places[0])).abs() < 1e-9, "{places:?}");
    }

    #[test]
    fn very_many_bars_stay_inside_and_have_no_marks() {
        let slots = Slots::over(300.0, &[3; 24], 19.0);
        assert!(slots.wide < MARKED && slots.sink() == 0.0);
        assert!(24.0 * (slots.span(0) + 0.5) < 300.0, "{}", slots.span(0));
    }

    #[test]
    fn one_wild_interval_does_not_squeeze_the_rest() {
        assert_eq!(reach([(0.6, Some(1.6)), (0.5, Some(0.52))].into_iter()), 1.5 * 0.6);
        assert_eq!(reach([(0.6, Some(0.7)), (0.5, None)].into_iter()), 0.7);
        assert_eq!(reach([(f64::NAN, None), (0.0, Some(f64::INFINITY))].into_iter()), 0.0);
    }
}
