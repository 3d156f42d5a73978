//! One interval per row on a logarithmic axis of ratios that all rows share. In: ratios with intervals, and the band of what is
//! not relevant. Out: a drawing for each row, and one for the axis above them. Bands and lines reach from edge to edge of a row,
//! so that consecutive rows make one plot.

use crate::draw::Drawing;
use crate::draw::axis::RATIO_TICKS;
use crate::draw::chart::drawing;
use crate::draw::look::{hue, shape};
use crate::draw::themed::Anchor;

/// Width and height of a row.
const WIDTH: f64 = 300.0;
const ROW: f64 = 26.0;
const HEAD: f64 = 18.0;
/// Margin at both ends, for arrows.
const EDGE: f64 = 10.0;

/// A ratio as it is drawn.
#[derive(Debug, Clone)]
pub struct Interval<'a> {
    pub sharing: &'a str,
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    pub title: String,
    /// Drawn pale: shown, but left out of every verdict.
    pub faint: bool,
}

/// The axis of all rows.
#[derive(Debug, Clone)]
pub struct Ratios {
    low: f64,
    high: f64,
    /// Ratios within 1 ÷ (1 + this) and 1 + this are not relevant.
    threshold: f64,
}

impl Ratios {
    /// An axis that includes every estimate and the band. Intervals may exceed it: the widest would squeeze all others.
    pub fn of<'a>(rows: impl Iterator<Item = (f64, Option<(f64, f64)>)> + 'a, threshold: f64) -> Self {
        let (mut low, mut high) = ((1.0 + threshold).recip(), 1.0 + threshold);
        let mut reach: Vec<f64> = Vec::new();
        for (value, interval) in rows.filter(|(v, _)| v.is_finite() && *v > 0.0) {
            (low, high) = (low.min(value), high.max(value));
            reach.extend(interval.map(|(l, h)| (h / value).ln().max((value / l).ln())));
        }
        reach.sort_by(f64::total_cmp);
        // Three of four intervals fit as they are.
        let room = reach.get(reach.len() * 3 / 4).copied().unwrap_or(0.0).clamp(0.01, 0.7).exp();
        Ratios { low: (low / room).max(0.005), high: (high * room).min(200.0), threshold }
    }

    fn px(&self, ratio: f64) -> f64 {
        EDGE + (ratio / self.low).ln() / (self.high / self.low).ln() * (WIDTH - 2.0 * EDGE)
    }

    fn ticks(&self) -> Vec<f64> {
        let mut ticks: Vec<f64> = RATIO_TICKS.into_iter().filter(|t| *t >= self.low && *t <= self.high).collect();
        // Labels keep apart; 1 is never dropped.
        let mut last = f64::NEG_INFINITY;
        let one = self.px(1.0);
        ticks.retain(|t| {
            let at = self.px(*t);
            let free = *t == 1.0 || at - last > 34.0 && (at - one).abs() > 34.0;
            if free {
                last = at;
            }
            free
        });
        ticks
    }

    /// The ticks with their labels, for the head of the table.
    pub fn head(&self) -> Drawing {
        drawing((WIDTH, HEAD), |c| {
            for tick in self.ticks() {
                c.text("t", (self.px(tick), 12.0), Anchor::Middle, &format!("{tick}"));
            }
        })
    }

    /// One row.
    pub fn row(&self, interval: Option<&Interval<'_>>) -> Drawing {
        drawing((WIDTH, ROW), |c| {
            let (from, to) = (self.px((1.0 + self.threshold).recip()), self.px(1.0 + self.threshold));
            c.rect("rel", (from, 0.0), (to - from, ROW));
            for tick in self.ticks() {
                c.line(if tick == 1.0 { "ref" } else { "gr" }, (self.px(tick), 0.0), (self.px(tick), ROW));
            }
            if let Some(i) = interval.filter(|i| i.value.is_finite() && i.value > 0.0) {
                let middle = ROW / 2.0;
                let class = format!("{}{}", hue(i.sharing), if i.faint { " faint" } else { "" });
                c.open_mark(&class, &i.title);
                let at = self.px(i.value.clamp(self.low, self.high));
                if let Some((low, high)) = i.interval {
                    let (from, to) = (self.px(low.max(self.low)), self.px(high.min(self.high)));
                    c.line("wh", (from, middle), (to, middle));
                    // An interval that goes on beyond the axis ends in an arrow, any other in a cap.
                    for (end, beyond, sign) in [(from, low < self.low, -1.0), (to, high > self.high, 1.0)] {
                        if beyond {
                            c.polygon("arrow", &[(end + 7.0 * sign, middle), (end, middle - 4.0), (end, middle + 4.0)]);
                        } else {
                            c.line("wh", (end, middle - 3.0), (end, middle + 3.0));
                        }
                    }
                }
                c.shape(shape(i.sharing), "mk", (at, middle));
                c.close();
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_holds_every_estimate_and_marks_one() {
        let rows = [(0.93, Some((0.90, 0.96))), (1.05, Some((1.03, 1.07))), (1.3, Some((0.01, 90.0)))];
        let axis = Ratios::of(rows.into_iter(), 0.02);
        assert!(axis.low < 0.93 && axis.high > 1.3 && axis.high < 3.0, "{axis:?}");
        assert!(axis.ticks().contains(&1.0), "{:?}", axis.ticks());
        let wide = Interval { sharing: "mps", value: 1.3, interval: Some((0.01, 90.0)), title: "x".into(), faint: false };
        assert_eq!(axis.row(Some(&wide)).body.matches("class=\"arrow\"").count(), 2);
    }

    #[test]
    fn without_any_ratio_there_is_still_an_axis() {
        let axis = Ratios::of(std::iter::empty(), 0.05);
        assert!(axis.head().body.contains(">1<"), "{}", axis.head().body);
    }
}
