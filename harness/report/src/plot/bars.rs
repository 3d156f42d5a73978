//! Grouped bars from zero with whiskers; a failed cell keeps its place.

use super::axis::{Axis, apart};
use super::chart::{Frame, charts};
use super::{Anchor, Drawing, WIDTH};

/// One bar.
#[derive(Debug, Clone, Default)]
pub struct Bar {
    pub sharing: String,
    pub value: Option<f64>,
    pub interval: Option<(f64, f64)>,
    /// A second reading of the same kind, as a tick: the 95th percentile beside the mean.
    pub tick: Option<f64>,
    /// The reference value of the bar, as a dotted line across it.
    pub reference: Option<f64>,
    /// Why there is none: `OOM`, `crashed`, `refused`.
    pub failure: Option<String>,
    /// Not valid: drawn open.
    pub informative: bool,
    /// Hover value.
    pub title: String,
    /// Number above the bar, if there is room.
    pub text: String,
}

/// Bars side by side over one label.
#[derive(Debug, Clone)]
pub struct BarGroup {
    pub label: String,
    pub bars: Vec<Bar>,
}

/// A panel of bars.
#[derive(Default)]
pub struct Bars<'a> {
    /// `seconds per epoch`.
    pub caption: &'a str,
    pub groups: &'a [BarGroup],
    /// If panels share a scale: the largest value of all of them.
    pub largest: Option<f64>,
    /// A limit that cannot be exceeded, dashed, and its text.
    pub limit: Option<(f64, &'a str)>,
    /// The axis ends here, and references above it are written: a share ends at 1.
    pub ceiling: Option<f64>,
}

const BAR: f64 = 19.0;
const HEIGHT: f64 = 214.0;

impl Bars<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let bars = || self.groups.iter().flat_map(|g| &g.bars);
        let high = |b: &Bar| b.interval.map(|i| i.1).into_iter().chain(b.value).chain(b.tick).reduce(f64::max);
        let own = bars().filter_map(high).chain(bars().filter_map(|b| b.reference)).fold(0.0, f64::max);
        let limit = self.limit.filter(|l| l.0 <= 2.5 * self.largest.unwrap_or(own));
        let largest = self.largest.unwrap_or(own).max(limit.map_or(0.0, |l| l.0));
        let y = Axis::from_zero(self.ceiling.unwrap_or(largest));
        let frame = Frame::of_values(self.caption, &y);
        let slot = (WIDTH - frame.left - frame.right) / self.groups.len().max(1) as f64;
        let labels = apart(self.groups.iter().enumerate().map(|(i, g)| ((i as f64 + 0.5) * slot, g.label.as_str())));
        let middles = (0..self.groups.len()).map(|i| i as f64 + 0.5);
        let x = Axis::named(0.0..self.groups.len().max(1) as f64, middles.clone().zip(labels).collect());
        let most = self.groups.iter().map(|g| g.bars.len()).max().unwrap_or(1) as f64;
        let gap = if slot / most < 8.0 { 1.0 } else { 3.0 };
        let wide = BAR.min((slot - 6.0) / most - gap).max(1.5);
        let numbers = most <= 1.0 && self.groups.len() <= 7;
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, x, y)?;
            if let Some(limit) = limit {
                chart.capacity(limit)?;
            }
            let highest = chart.y().max();
            for (middle, group) in middles.zip(self.groups) {
                // From the middle of the group to the left edge of a bar.
                let offset = |k: usize| k as f64 * (wide + gap) - (group.bars.len() as f64 * (wide + gap) - gap) / 2.0;
                for (k, bar) in group.bars.iter().enumerate() {
                    chart.mark(&bar.sharing, bar.informative, &bar.title, |svg, place| {
                        let at = |value: f64, beside: f64| (place(middle, value).0 + offset(k) + beside, place(middle, value).1);
                        let Some(value) = bar.value else {
                            let (x, bottom) = at(0.0, wide / 2.0 + 4.0);
                            return svg.failure_up((x, bottom - 5.0), bar.failure.as_deref().unwrap_or("not measured"));
                        };
                        let corner = at(value, 0.0);
                        svg.rect("bar", corner, (wide, at(0.0, 0.0).1 - corner.1));
                        if let Some(tick) = bar.tick.filter(|t| *t <= highest) {
                            svg.line("p95", at(tick, -1.0), at(tick, wide + 1.0));
                        }
                        if let Some((low, high)) = bar.interval {
                            svg.whisker(at(low, wide / 2.0), at(high, wide / 2.0), false);
                        }
                        if numbers {
                            let (x, top) = at(bar.interval.map_or(value, |i| i.1), wide / 2.0);
                            svg.text("val", (x, top - 6.0), Anchor::Middle, &bar.text);
                        }
                    })?;
                }
                chart.own(|svg, place| {
                    let at = |value: f64, beside: f64| (place(middle, value).0 + beside, place(middle, value).1);
                    for (first, last, value) in references(&group.bars) {
                        if value <= highest {
                            svg.line("asked", at(value, offset(first) - 2.0), at(value, offset(last) + wide + 2.0));
                        }
                    }
                    // What lies above the axis is written once.
                    let above = group.bars.iter().filter_map(|b| b.reference).filter(|r| *r > highest).reduce(f64::max);
                    if let Some(value) = above {
                        let text = if slot < 46.0 { "↑".to_string() } else { format!("Σ {value:.1} ↑") };
                        let (x, top) = at(highest, 0.0);
                        svg.text("t", (x, top - 5.0), Anchor::Middle, &text);
                    }
                })?;
            }
            Ok(())
        })
    }
}

/// Consecutive bars that share a reference: the first and the last of them, and it.
fn references(bars: &[Bar]) -> impl Iterator<Item = (usize, usize, f64)> {
    let same = |a: &Bar, b: &Bar| a.reference.zip(b.reference).is_some_and(|(a, b)| (a - b).abs() < 1e-9);
    let mut begin = 0;
    bars.chunk_by(same).filter_map(move |run| {
        begin += run.len();
        run[0].reference.map(|value| (begin - run.len(), begin - 1, value))
    })
}
