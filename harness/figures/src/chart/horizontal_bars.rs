//! Horizontal bars from zero: rows of groups, in turn first, each bar as long as its duration.

use crate::draw::Drawing;
use crate::draw::axis::Axis;
use crate::draw::chart::Rows;
use crate::draw::themed::Anchor;

/// One bar.
#[derive(Debug, Clone, Default)]
pub struct LevelBar {
    pub sharing: String,
    pub value: Option<f64>,
    pub interval: Option<(f64, f64)>,
    pub failure: Option<String>,
    pub indicative: bool,
    pub title: String,
}

/// Bars under each other beside one label.
#[derive(Debug, Clone)]
pub struct LevelRow {
    pub label: String,
    pub levels: Vec<LevelBar>,
}

/// A panel of rows.
pub struct Levels<'a> {
    /// `minutes`.
    pub caption: &'a str,
    pub rows: &'a [LevelRow],
}

/// The height of a row of `levels` bars, so that other plots can be placed beside it.
pub fn row_height(levels: usize) -> f64 {
    levels as f64 * (BAR + 1.5) + 8.0
}

const BAR: f64 = 8.0;
const LABEL: usize = 20;

impl Levels<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let all = self.rows.iter().flat_map(|r| &r.levels);
        let rows = Rows {
            caption: self.caption,
            rows: self.rows.iter().map(|r| (r.label.as_str(), row_height(r.levels.len()))).collect(),
            longest: LABEL,
            threshold: None,
            axis: Axis::from_zero(all.filter_map(|l| l.interval.map(|i| i.1).or(l.value)).fold(0.0, f64::max)),
        };
        rows.draw(|chart, i, begin, height| {
            chart.straight("ax", (0.0, begin), (0.0, begin + height))?;
            for (k, level) in self.rows[i].levels.iter().enumerate() {
                let top = begin + 4.0 + k as f64 * (BAR + 1.5);
                chart.mark(&level.sharing, level.indicative, &level.title, |svg, place| {
                    let (left, y) = place(0.0, top);
                    let Some(value) = level.value else {
                        let why = level.failure.as_deref().unwrap_or("not measured");
                        return svg.failure((left + 4.0, y + BAR), Anchor::Start, why, &format!("✕ {}: {why}", level.sharing));
                    };
                    svg.rect("bar", (left, y), (place(value, top).0 - left, BAR));
                    if let Some((low, high)) = level.interval {
                        svg.whisker(place(low, top + BAR / 2.0), place(high, top + BAR / 2.0), true);
                    }
                })?;
            }
            Ok(())
        })
    }
}
