//! Rows of marks on one horizontal axis, a mark per member or sharing mode: dots of ratios or latencies, or bars of durations.
//! In: rows of values in one unit. Out: a drawing.

use crate::draw::Drawing;
use crate::draw::axis::Axis;
use crate::draw::chart::{Chart, DrawResult, Rows};
use crate::draw::look::shape;
use crate::draw::themed::Anchor;

/// A value; without one, the reason.
#[derive(Debug, Clone, Default)]
pub struct RowMark {
    pub sharing: String,
    pub value: Option<f64>,
    pub interval: Option<(f64, f64)>,
    pub failure: Option<String>,
    pub indicative: bool,
    pub title: String,
}

/// Marks under each other beside one label.
#[derive(Debug, Clone, Default)]
pub struct MarkRow {
    pub label: String,
    pub marks: Vec<RowMark>,
    /// Minimum height of a row of ratios.
    pub least: f64,
    /// What is missing in a row of ratios.
    pub note: String,
}

impl MarkRow {
    /// Add a mark to the row of its label.
    pub fn add(rows: &mut Vec<MarkRow>, label: String, mark: RowMark) {
        match rows.iter_mut().find(|row| row.label == label) {
            Some(row) => row.marks.push(mark),
            None => rows.push(MarkRow { label, marks: vec![mark], least: 20.0, note: String::new() }),
        }
    }
}

/// The axis, and how marks are drawn on it. Panels of one figure share a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowScale {
    /// Dots of ratios, which mark 1 and need no zero.
    Ratios(f64, f64),
    /// Dots on a logarithmic axis.
    Logarithmic(f64, f64),
    /// Bars from zero.
    Bars,
}

/// A panel of rows.
pub struct MarkRows<'a> {
    pub caption: &'a str,
    pub rows: &'a [MarkRow],
    pub scale: RowScale,
    /// An accepted value, and its text.
    pub threshold: Option<(f64, &'a str)>,
}

const BAR: f64 = 8.0;
/// Height of one latency.
const STEP: f64 = 15.0;

/// The height of a row of bars, so that other plots can be placed beside it.
pub fn row_height(bars: usize) -> f64 {
    bars as f64 * (BAR + 1.5) + 8.0
}

impl MarkRows<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let ends = || self.rows.iter().flat_map(|r| &r.marks).filter_map(|m| m.interval.map(|i| i.1).or(m.value));
        let (axis, longest) = match self.scale {
            RowScale::Ratios(low, high) => (Axis::around(low.min(1.0), high.max(1.0).max(low.min(1.0) + 0.05)), 24),
            RowScale::Logarithmic(low, high) => (Axis::log(low, high), 20),
            RowScale::Bars => (Axis::from_zero(ends().fold(0.0, f64::max)), 20),
        };
        let shown = |(value, _): &(f64, &str)| match self.scale {
            RowScale::Ratios(..) => *value > axis.min() && *value < axis.max(),
            _ => true,
        };
        let rows = Rows {
            caption: self.caption,
            rows: self.rows.iter().map(|row| (row.label.as_str(), self.height(row))).collect(),
            longest,
            threshold: self.threshold.filter(shown),
            axis,
        };
        rows.draw(|chart, i, begin, height| {
            let row = &self.rows[i];
            match self.scale {
                RowScale::Ratios(..) => chart.straight("ref", (1.0, begin), (1.0, begin + height))?,
                RowScale::Bars => chart.straight("ax", (0.0, begin), (0.0, begin + height))?,
                RowScale::Logarithmic(..) => {}
            }
            for (k, mark) in row.marks.iter().enumerate() {
                let middle = match self.scale {
                    RowScale::Ratios(..) => height / (row.marks.len() as f64 + 1.0) * (k + 1) as f64,
                    RowScale::Logarithmic(..) => 5.0 + STEP * (k as f64 + 0.5),
                    RowScale::Bars => 4.0 + k as f64 * (BAR + 1.5) + BAR / 2.0,
                };
                self.mark(chart, mark, begin + middle)?;
            }
            if row.note.is_empty() {
                return Ok(());
            }
            chart.own(|svg, place| {
                let y = place(1.0, begin + height / 2.0).1 + 4.0;
                match row.marks.is_empty() {
                    true => svg.text("none", (place(f64::MIN, 0.0).0 + 4.0, y), Anchor::Start, &row.note),
                    false => svg.text("none", (place(f64::MAX, 0.0).0, y), Anchor::End, &row.note),
                }
            })
        })
    }

    fn height(&self, row: &MarkRow) -> f64 {
        let marks = row.marks.len();
        match self.scale {
            RowScale::Ratios(..) => (8.0 + 9.0 * marks as f64).max(row.least),
            RowScale::Logarithmic(..) => 10.0 + STEP * marks as f64,
            RowScale::Bars => row_height(marks),
        }
    }

    fn mark(&self, chart: &mut Chart, mark: &RowMark, middle: f64) -> DrawResult<()> {
        let is_bar = self.scale == RowScale::Bars;
        chart.mark(&mark.sharing, mark.indicative, &mark.title, |svg, place| {
            let (left, top) = place(0.0, middle - BAR / 2.0);
            let Some(value) = mark.value else {
                let why = mark.failure.as_deref().unwrap_or("not measured");
                let text = format!("✕ {}: {why}", mark.sharing);
                return match is_bar {
                    true => svg.failure((left + 4.0, top + BAR), Anchor::Start, why, &text),
                    false => svg.text("none", (left + 4.0, top + BAR), Anchor::Start, &text),
                };
            };
            let interval = mark.interval.map(|(low, high)| (place(low, middle), place(high, middle)));
            if is_bar {
                svg.rect("bar", (left, top), (place(value, middle).0 - left, BAR));
                interval.into_iter().for_each(|(low, high)| svg.whisker(low, high, true));
            } else {
                interval.into_iter().for_each(|(low, high)| svg.line("wh", low, high));
                svg.shape(shape(&mark.sharing), "mk", place(value, middle));
            }
        })
    }
}
