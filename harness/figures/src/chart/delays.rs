//! Latencies on a logarithmic axis: rows of dots with whiskers, one dot per sharing mode, and the limit as a line. In: rows of
//! latencies in one unit. Out: a drawing.

use crate::draw::Drawing;
use crate::draw::axis::Axis;
use crate::draw::chart::Rows;
use crate::draw::look::shape;
use crate::draw::themed::Anchor;

/// One latency; without a value, the reason.
#[derive(Debug, Clone)]
pub struct Delay {
    pub sharing: String,
    pub indicative: bool,
    pub value: Option<f64>,
    pub interval: Option<(f64, f64)>,
    pub why: String,
    pub title: String,
}

/// Latencies under each other beside one label.
#[derive(Debug, Clone)]
pub struct DelayRow {
    pub label: String,
    pub delays: Vec<Delay>,
}

/// A panel of rows.
pub struct Delays<'a> {
    pub caption: &'a str,
    pub rows: &'a [DelayRow],
    /// The limit, and its text.
    pub limit: Option<(f64, &'a str)>,
    /// Panels of one figure share the range.
    pub range: (f64, f64),
}

/// Characters of a row's label.
const LABEL: usize = 20;
/// Height of one latency.
const STEP: f64 = 15.0;

impl Delays<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let rows = Rows {
            caption: self.caption,
            rows: self.rows.iter().map(|r| (r.label.as_str(), 10.0 + STEP * r.delays.len() as f64)).collect(),
            longest: LABEL,
            threshold: self.limit,
            axis: Axis::log(self.range.0, self.range.1),
        };
        rows.draw(|chart, i, begin, _| {
            for (k, delay) in self.rows[i].delays.iter().enumerate() {
                let y = begin + 5.0 + STEP * (k as f64 + 0.5);
                chart.mark(&delay.sharing, delay.indicative, &delay.title, |svg, place| {
                    if let Some((low, high)) = delay.interval {
                        svg.line("wh", place(low, y), place(high, y));
                    }
                    match delay.value {
                        Some(value) => svg.shape(shape(&delay.sharing), "mk", place(value, y)),
                        None => {
                            let (left, y) = place(0.0, y);
                            svg.text(
                                "none",
                                (left + 4.0, y + 4.0),
                                Anchor::Start,
                                &format!("✕ {}: {}", delay.sharing, delay.why),
                            );
                        }
                    }
                })?;
            }
            Ok(())
        })
    }
}
