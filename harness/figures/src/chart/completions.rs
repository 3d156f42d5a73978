//! Tasks of a trace: completion time over stretch, a point each. Who waited is high, who was slowed is to the right.

use crate::draw::axis::Axis;
use crate::draw::chart::{Frame, charts};
use crate::draw::look::WORKLOAD_TINTS;
use crate::draw::{Drawing, WIDTH};

/// One task.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Index of its workload, for its hue.
    pub kind: usize,
    pub stretch: f64,
    /// In the unit of the caption.
    pub completion: f64,
    pub title: String,
}

/// A panel: one policy.
pub struct Completions<'a> {
    /// `completion, min`.
    pub caption: &'a str,
    pub points: &'a [Completion],
    /// Panels of one figure share the axes: the least stretch, the largest, and the largest completion time.
    pub least_stretch: f64,
    pub largest: (f64, f64),
}

const HEIGHT: f64 = 230.0;

impl Completions<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let (x, y) = (Axis::around(self.least_stretch.min(0.95), self.largest.0.max(1.2)), Axis::from_zero(self.largest.1));
        let below = "stretch: execution ÷ alone";
        let frame = Frame { right: 10.0, bottom: 42.0, below, ..Frame::of_values(self.caption, &y) };
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, x, y)?;
            chart.upright("ref", 1.0)?;
            for p in self.points {
                let class = WORKLOAD_TINTS[p.kind.min(WORKLOAD_TINTS.len() - 1)];
                chart.own(|svg, place| {
                    svg.open_mark(class, &p.title);
                    svg.circle("mk", place(p.stretch, p.completion), 2.8);
                    svg.close();
                })?;
            }
            Ok(())
        })
    }
}
