//! The members' lives above their resource usage, on one time axis.

use plotters::element::Polygon;

use crate::draw::axis::Axis;
use crate::draw::chart::{Chart, DrawResult, Frame, charts, px};
use crate::draw::themed::{Anchor, look};
use crate::draw::{Drawing, NARROW, cut};

/// One member: its epochs `(start, end, measured)`, seconds from go.
#[derive(Debug, Clone)]
pub struct Lane {
    pub name: String,
    pub epochs: Vec<(f64, f64, bool)>,
}

/// A resource used, stacked if there is a series per member.
pub struct Area<'a> {
    pub caption: &'a str,
    /// `(seconds from go, value)`.
    pub series: Vec<Vec<(f64, f64)>>,
    pub capacity: Option<f64>,
    /// The largest sum over all panels of the figure, which share the scale.
    pub peak: f64,
}

/// The largest sum of some series at one time.
pub fn peak(series: &[Vec<(f64, f64)>]) -> f64 {
    stacked(series).last().map_or(0.0, |l| l.iter().map(|p| p.1).fold(0.0, f64::max))
}

/// A panel: one run.
pub struct Timelines<'a> {
    pub sharing: &'a str,
    pub lanes: &'a [Lane],
    /// Lanes of the panel with the most, so that panels beside each other line up.
    pub lanes_high: usize,
    /// Areas below the lives.
    pub areas: &'a [Area<'a>],
    /// All panels share the axis of the longest.
    pub span_s: (f64, f64),
    /// When the group ended.
    pub end_s: f64,
}

const LANE: f64 = 15.0;
const AREA: f64 = 62.0;
const NAME: usize = 8;
/// Height of the texts of the time axis.
const FOOT: f64 = 20.0;

/// A drawn part of a life: one epoch, or several that are too short to be distinguished.
#[derive(Debug, PartialEq)]
struct Mark {
    start: f64,
    end: f64,
    measured: bool,
    epochs: usize,
}

/// The marks of a lane, each wide enough to be visible unless it stands alone: a life of a million epochs has hundreds.
fn marks(epochs: &[(f64, f64, bool)], px: &dyn Fn(f64) -> f64) -> Vec<Mark> {
    const SEEN: f64 = 1.0;
    let mut marks: Vec<Mark> = Vec::new();
    for &(start, end, measured) in epochs {
        let joins = |m: &&mut Mark| m.measured == measured && start >= m.start && px(end) - px(m.start) < SEEN;
        match marks.last_mut().filter(joins) {
            Some(mark) => (mark.end, mark.epochs) = (mark.end.max(end), mark.epochs + 1),
            None => marks.push(Mark { start, end, measured, epochs: 1 }),
        }
    }
    marks
}

impl Timelines<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let names = self.lanes.iter().map(|l| l.name.chars().count()).max().unwrap_or(1).min(NAME);
        let left = (12.0 + 6.8 * names as f64).max(34.0);
        let high = self.lanes_high.max(self.lanes.len()).max(1) as f64 * LANE;
        let (begin, parts) = (18.0, self.areas.len());
        let bottom = parts as f64 * (AREA + 32.0) + begin + high - 4.0;
        // The time axis is written below the last chart.
        let below = |last: bool| if last { FOOT } else { 0.0 };
        let time = |last: bool| {
            let axis = Axis::of_time(self.span_s.0, self.span_s.1, 5);
            if last { axis } else { axis.bare() }
        };
        let frame = |caption, top, last| Frame { caption, top, right: 10.0, bottom: below(last), left, ..Frame::default() };
        charts((NARROW, bottom + FOOT), |root| {
            let part = |from, height, last| root.clone().shrink((0, px(from)), (px(NARROW), px(height + below(last))));
            let middles = (0..self.lanes.len()).map(|i| (i as f64 + 0.5) * LANE);
            let lanes = Axis::named(high..0.0, middles.zip(self.lanes.iter().map(|l| cut(&l.name, NAME))).collect());
            let lives = part(0.0, begin + high, parts == 0);
            let mut chart = frame("members", begin, parts == 0).on(&lives, time(parts == 0), lanes)?;
            self.lives(&mut chart)?;
            for (i, area) in self.areas.iter().enumerate() {
                let last = i + 1 == parts;
                let part = part(begin + high + 8.0 + i as f64 * (AREA + 32.0), 20.0 + AREA, last);
                let drawn = area.capacity.filter(|v| *v <= 2.5 * area.peak);
                let y = Axis::from_zero(drawn.unwrap_or(0.0).max(area.peak)).thinned(5);
                let frame = Frame { grid: (false, true), zero: true, ..frame(area.caption, 20.0, last) };
                self.area(&mut frame.on(&part, time(last), y)?, area, drawn)?;
            }
            chart.own(|svg, place| {
                let end = place(self.end_s, 0.0).0;
                svg.line("asked", (end, begin), (end, bottom));
            })
        })
    }

    fn lives(&self, chart: &mut Chart) -> DrawResult<()> {
        for (i, lane) in self.lanes.iter().enumerate() {
            let drawn = marks(&lane.epochs, &|t| chart.place()(t, 0.0).0);
            for Mark { start, end, measured, epochs } in drawn {
                let kind = if measured { "measured" } else { "not measured" };
                let many = if epochs > 1 { format!("{epochs} epochs, ") } else { String::new() };
                let title = format!("member {i}, {}\n{many}{start:.2} to {end:.2} s, {kind}", lane.name);
                chart.mark(self.sharing, false, &title, |svg, place| {
                    let ((from, y), (to, _)) = (place(start, i as f64 * LANE), place(end, 0.0));
                    let (inset, wide) = (if to - from > 3.0 { 0.5 } else { 0.0 }, (to - from - 1.0).max(0.5));
                    svg.rect(if measured { "life" } else { "life open" }, (from + inset, y + 2.0), (wide, LANE - 4.0));
                })?;
            }
        }
        Ok(())
    }

    fn area(&self, chart: &mut Chart, area: &Area, capacity: Option<f64>) -> DrawResult<()> {
        let layers = stacked(&area.series);
        // One reading has no length.
        if layers.iter().all(|l| l.len() < 2) {
            let why = if layers.is_empty() { "no sample" } else { "one sample" };
            let (x, y) = ((chart.x().min() + chart.x().max()) / 2.0, chart.y().max() / 2.0);
            return chart.own(|svg, place| svg.text("it", place(x, y), Anchor::Middle, why));
        }
        chart.hued(self.sharing, |chart| {
            for (i, layer) in layers.iter().enumerate().rev() {
                // A reading holds until the next one: who leaves between two of them ends at once.
                let ends = layer.iter().skip(1).chain(layer.last());
                let steps = layer.iter().zip(ends).flat_map(|(p, next)| [*p, (next.0, p.1)]);
                let (Some(first), Some(last)) = (layer.first(), layer.last()) else { continue };
                let points: Vec<_> = std::iter::once((first.0, 0.0)).chain(steps).chain([(last.0, 0.0)]).collect();
                // Each layer covers the ones below it, so the outermost alone is filled and the others are outlined.
                chart.draw(Polygon::new(points, look(if i + 1 == layers.len() { "area" } else { "layer" })))?;
            }
            Ok(())
        })?;
        capacity.map_or(Ok(()), |value| chart.level("capl", value))
    }
}

/// Running sums over members. A member without a reading at some time inside its life keeps its last one; outside it is 0.
fn stacked(series: &[Vec<(f64, f64)>]) -> Vec<Vec<(f64, f64)>> {
    let mut times: Vec<f64> = series.iter().flatten().map(|p| p.0).collect();
    times.sort_by(f64::total_cmp);
    times.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
    let mut sums = vec![0.0; times.len()];
    let mut layers = Vec::new();
    for line in series.iter().filter(|l| !l.is_empty()) {
        let last = line.last().map_or(f64::NEG_INFINITY, |p| p.0);
        for (sum, t) in sums.iter_mut().zip(&times) {
            let reading = line.iter().take_while(|p| p.0 <= *t + 1e-9).last();
            *sum += reading.filter(|_| *t <= last + 1e-9).map_or(0.0, |p| p.1);
        }
        layers.push(times.iter().copied().zip(sums.iter().copied()).collect());
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_add_up_and_end_with_their_member() {
        let layers = super::stacked(&[vec![(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)], vec![(0.0, 2.0), (1.0, 2.0)]]);
        assert_eq!(layers[1], [(0.0, 3.0), (1.0, 3.0), (2.0, 1.0)]);
    }

    #[test]
    fn epochs_too_short_to_be_seen_are_drawn_together_and_counted() {
        let epochs: Vec<(f64, f64, bool)> = (0..200_000).map(|i| (f64::from(i), f64::from(i + 1), i > 0)).collect();
        let drawn = marks(&epochs, &|t| t / 1000.0);
        assert!(drawn.len() <= 202, "{}", drawn.len());
        assert_eq!(drawn[0], Mark { start: 0.0, end: 1.0, measured: false, epochs: 1 });
        assert_eq!(drawn.iter().map(|m| m.epochs).sum::<usize>(), 200_000);
        assert_eq!(drawn.last().map(|m| m.end), Some(200_000.0));
        assert_eq!(marks(&epochs[..9], &|t| t * 10.0).len(), 9, "each is seen");
    }
}
