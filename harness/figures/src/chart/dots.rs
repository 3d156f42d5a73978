//! Rows of dots with whiskers on a horizontal axis: ratios, which must mark 1 and need no zero.

use crate::draw::Drawing;
use crate::draw::axis::Axis;
use crate::draw::chart::Rows;
use crate::draw::look::shape;
use crate::draw::themed::Anchor;

/// One dot.
#[derive(Debug, Clone)]
pub struct Dot {
    pub sharing: String,
    pub indicative: bool,
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    pub title: String,
}

/// One row: a dot per member, or per sharing mode.
#[derive(Debug, Clone)]
pub struct DotRow {
    pub label: String,
    pub dots: Vec<Dot>,
    /// Its minimum height.
    pub least: f64,
    /// Why there is no dot, or what is missing.
    pub note: String,
}

/// A panel of rows.
pub struct Dots<'a> {
    pub caption: &'a str,
    pub rows: &'a [DotRow],
    /// A thin line at the experiment's threshold, and its text.
    pub threshold: Option<(f64, &'a str)>,
    /// Panels of one figure share the range.
    pub range: (f64, f64),
}

/// Characters of a row's label.
const LABEL: usize = 24;

impl Dots<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let height = |r: &DotRow| (8.0 + 9.0 * r.dots.len() as f64).max(r.least);
        let (low, high) = (self.range.0.min(1.0), self.range.1.max(1.0));
        let axis = Axis::around(low, high.max(low + 0.05));
        let rows = Rows {
            caption: self.caption,
            rows: self.rows.iter().map(|r| (r.label.as_str(), height(r))).collect(),
            longest: LABEL,
            threshold: self.threshold.filter(|(v, _)| *v > axis.min() && *v < axis.max()),
            axis,
        };
        rows.draw(|chart, i, begin, height| {
            let row = &self.rows[i];
            chart.straight("ref", (1.0, begin), (1.0, begin + height))?;
            let gap = height / (row.dots.len() as f64 + 1.0);
            for (k, dot) in row.dots.iter().enumerate() {
                let y = begin + gap * (k + 1) as f64;
                chart.mark(&dot.sharing, dot.indicative, &dot.title, |svg, place| {
                    if let Some((low, high)) = dot.interval {
                        svg.line("wh", place(low, y), place(high, y));
                    }
                    svg.shape(shape(&dot.sharing), "mk", place(dot.value, y));
                })?;
            }
            chart.own(|svg, place| {
                let y = place(1.0, begin + height / 2.0).1 + 4.0;
                let (x, anchor) = if row.dots.is_empty() {
                    (place(f64::MIN, 0.0).0 + 4.0, Anchor::Start)
                } else {
                    (place(f64::MAX, 0.0).0, Anchor::End)
                };
                if !row.note.is_empty() {
                    svg.text("none", (x, y), anchor, &row.note);
                }
            })
        })
    }
}
