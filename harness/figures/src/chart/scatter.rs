//! Points over two quantities, with a line through them and references on the horizontal axis.

use plotters::element::Rectangle;

use crate::draw::axis::Axis;
use crate::draw::chart::{Frame, charts};
use crate::draw::look::shape;
use crate::draw::themed::{Anchor, look};
use crate::draw::{Drawing, WIDTH};

/// One point.
#[derive(Debug, Clone)]
pub struct ScatterPoint {
    pub sharing: String,
    pub at: (f64, f64),
    /// Interval of the vertical value.
    pub interval: Option<(f64, f64)>,
    /// Not valid: drawn pale.
    pub indicative: bool,
    pub title: String,
}

/// A vertical reference: a value, its interval, its text, and whether it is published rather than ours.
#[derive(Debug, Clone)]
pub struct Reference {
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    pub text: String,
    pub published: bool,
}

/// A panel.
pub struct Scatter<'a> {
    /// The quantities of the vertical and the horizontal axis.
    pub caption: &'a str,
    pub below: &'a str,
    pub points: &'a [ScatterPoint],
    /// A line through the points, with its mode.
    pub line: Option<(&'a str, &'a [(f64, f64)])>,
    pub references: &'a [Reference],
    /// The accepted value of the vertical axis.
    pub limit: Option<(f64, &'a str)>,
}

const HEIGHT: f64 = 250.0;

impl Scatter<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let highest = self.points.iter().map(|p| p.interval.map_or(p.at.1, |i| i.1.min(1.3 * p.at.1))).fold(1.2, f64::max);
        let furthest = self.points.iter().map(|p| p.at.0).chain(self.references.iter().map(|r| r.value)).fold(0.0, f64::max);
        let (x, y) = (Axis::from_zero(furthest).labelled(|share| format!("{:.0}", share * 100.0)), Axis::from_zero(highest));
        let frame = Frame { top: 44.0, right: 6.0, bottom: 44.0, below: self.below, ..Frame::of_values(self.caption, &y) };
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, x, y)?;
            chart.level("ref", 1.0)?;
            let (end, top) = (chart.x().max(), chart.y().max());
            if let Some((value, text)) = self.limit.filter(|(v, _)| *v < top) {
                chart.level("pub", value)?;
                chart.own(|svg, place| {
                    let (right, y) = place(end, value);
                    svg.text("it", (right, y - 4.0), Anchor::End, text);
                })?;
            }
            for (i, r) in self.references.iter().enumerate() {
                if let Some((low, high)) = r.interval {
                    chart.draw(Rectangle::new([(low, top), (high, 0.0)], look("within")))?;
                }
                chart.upright(if r.published { "pub" } else { "ref" }, r.value)?;
                // Each on a line of its own above the drawing, on the side where there is room.
                chart.own(|svg, place| {
                    let x = |value: f64| place(value, 0.0).0;
                    let crowded = self.references.iter().any(|other| other.value > r.value && x(other.value) - x(r.value) < 90.0);
                    let left = x(r.value) > (x(0.0) + x(end)) / 2.0 || (crowded && x(r.value) > x(0.0) + 60.0);
                    let (anchor, beside) = if left { (Anchor::End, -4.0) } else { (Anchor::Start, 4.0) };
                    svg.text("it", (x(r.value) + beside, 27.0 + 12.0 * i as f64), anchor, &r.text);
                })?;
            }
            if let Some((sharing, line)) = self.line {
                chart.line("ln", sharing, line.iter().copied().filter(|p| p.1 <= top))?;
            }
            for p in self.points {
                chart.mark(&p.sharing, p.indicative, &p.title, |svg, place| {
                    if let Some((low, high)) = p.interval {
                        svg.line("wh", place(p.at.0, low), place(p.at.0, high));
                    }
                    svg.shape(shape(&p.sharing), "mk", place(p.at.0, p.at.1));
                })?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_that_is_not_valid_is_pale() {
        let point =
            |indicative| ScatterPoint { sharing: "mps".into(), at: (0.8, 1.2), interval: None, indicative, title: "t".into() };
        let points = [point(false), point(true)];
        let body = Scatter { caption: "", below: "", points: &points, line: None, references: &[], limit: None }.draw().body;
        assert_eq!(body.matches("class=\"h mps inf\"").count(), 1, "{body}");
    }
}
