//! The share of requests that are later than a latency, both on logarithmic axes: one line per sharing mode, its tail to the
//! right. In: lines of shares and latencies in one unit. Out: a drawing.

use collo_quantity::number;

use crate::draw::axis::Axis;
use crate::draw::chart::{Frame, charts};
use crate::draw::look::shape;
use crate::draw::{Drawing, WIDTH};

/// One server under one sharing mode.
#[derive(Debug, Clone)]
pub struct Tail {
    pub sharing: String,
    /// The share that is later, and the latency, by falling share.
    pub points: Vec<(f64, f64)>,
    /// Hover points: share, latency and text.
    pub marks: Vec<(f64, f64, String)>,
    pub indicative: bool,
}

/// A panel of lines.
pub struct TailChart<'a> {
    /// `latency, ms`.
    pub below: &'a str,
    pub tails: &'a [Tail],
    /// The limit, and its text.
    pub limit: Option<(f64, &'a str)>,
    /// Panels of one figure share the range of latencies. Points beyond it are not drawn.
    pub range: (f64, f64),
}

const HEIGHT: f64 = 240.0;
/// The smallest share that is drawn.
const LEAST: f64 = 0.001;

impl TailChart<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let share = |s: f64| (s, if s < 0.01 { "0.1 %".to_string() } else { number::percent(s) });
        let y = Axis::log_named(LEAST..1.0, [1.0, 0.5, 0.1, 0.05, 0.01, LEAST].map(share).to_vec());
        let x = Axis::log(self.range.0, self.range.1);
        let edges = Frame { top: 34.0, right: 14.0, bottom: 42.0, left: 44.0, ..Frame::of_values("requests that are later", &y) };
        let frame = Frame { below: self.below, grid: (true, true), ..edges };
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, x, y)?;
            // The p99 lies where one request in a hundred is later.
            chart.level("ref", 0.01)?;
            if let Some(limit) = self.limit {
                chart.threshold(limit)?;
            }
            let (low, high) = (chart.x().min(), chart.x().max());
            for tail in self.tails {
                let on = tail.points.iter().filter(|p| p.1 >= low && p.1 <= high);
                chart.line("ln", &tail.sharing, on.map(|(share, late)| (*late, *share)))?;
            }
            for tail in self.tails {
                for (share, late, title) in &tail.marks {
                    chart.mark(&tail.sharing, tail.indicative, title, |svg, place| {
                        svg.shape(shape(&tail.sharing), "mk", place(*late, *share));
                    })?;
                }
            }
            Ok(())
        })
    }
}
