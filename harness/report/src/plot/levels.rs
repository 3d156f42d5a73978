//! Horizontal bars from zero: rows of groups, in turn first, each bar as long as it takes.

use super::{Anchor, Canvas, Drawing, Scale, WIDTH, cut, family};

/// One bar.
#[derive(Debug, Clone, Default)]
pub struct Level {
    pub sharing: String,
    pub value: Option<f64>,
    pub interval: Option<(f64, f64)>,
    pub failure: Option<String>,
    pub informative: bool,
    pub title: String,
}

/// Bars under each other beside one label.
#[derive(Debug, Clone)]
pub struct LevelRow {
    pub label: String,
    pub levels: Vec<Level>,
}

/// A panel of rows.
pub struct Levels<'a> {
    /// `minutes`.
    pub caption: &'a str,
    pub rows: &'a [LevelRow],
}

/// The height of a row of so many bars, so that other plots can stand beside it.
pub fn row_height(levels: usize) -> f64 {
    levels as f64 * (BAR + 1.5) + 8.0
}

const BAR: f64 = 8.0;
const LABEL: usize = 20;

impl Levels<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let all = || self.rows.iter().flat_map(|r| &r.levels);
        let largest = all().filter_map(|l| l.interval.map(|i| i.1).or(l.value)).fold(0.0, f64::max);
        let widest = self.rows.iter().map(|r| r.label.chars().count()).max().unwrap_or(4).min(LABEL);
        let (left, right) = (12.0 + 7.5 * widest as f64, WIDTH - 14.0);
        let x = Scale::from_zero(largest, left, right);
        let height = |r: &LevelRow| row_height(r.levels.len());
        let top = 34.0;
        let bottom = top + self.rows.iter().map(height).sum::<f64>();
        let mut c = Canvas::default();
        c.text("cap", (0.0, 11.0), Anchor::Start, self.caption);
        let ticks = x.ticks();
        let every = if (right - left) / (ticks.len() as f64) < 30.0 { 2 } else { 1 };
        for (i, tick) in ticks.iter().enumerate() {
            c.line(if *tick == 0.0 { "ax" } else { "gr" }, (x.px(*tick), top), (x.px(*tick), bottom));
            if i % every == 0 {
                c.text("t", (x.px(*tick), bottom + 16.0), Anchor::Middle, &x.label(*tick));
            }
        }
        let mut y = top;
        for row in self.rows {
            let high = height(row);
            c.text("rl", (left - 8.0, y + high / 2.0 + 4.0), Anchor::End, &cut(&row.label, LABEL));
            for (i, level) in row.levels.iter().enumerate() {
                let at = y + 4.0 + i as f64 * (BAR + 1.5);
                c.open_mark(&format!("{}{}", family(&level.sharing), if level.informative { " inf" } else { "" }), &level.title);
                match level.value {
                    Some(value) => {
                        c.rect("bar", (left, at), (x.px(value) - left, BAR));
                        if let Some((low, high)) = level.interval {
                            c.whisker_across(at + BAR / 2.0, x.px(low.max(0.0)), x.px(high));
                        }
                    }
                    None => {
                        let why = level.failure.as_deref().unwrap_or("not measured");
                        let class = if why == "OOM" { "oom" } else { "none" };
                        c.text(class, (left + 4.0, at + BAR), Anchor::Start, &format!("✕ {}: {why}", level.sharing));
                    }
                }
                c.close();
            }
            y += high;
            c.line("gr", (left, y), (right, y));
        }
        Drawing { width: WIDTH, height: bottom + 24.0, body: c.into_markup() }
    }
}
