//! Grouped bars from zero with whiskers; a failed cell keeps its place.

use super::{Anchor, Canvas, Drawing, Scale, WIDTH, family, grid, gutter};

/// One bar.
#[derive(Debug, Clone)]
pub struct Bar {
    pub sharing: String,
    pub value: Option<f64>,
    pub interval: Option<(f64, f64)>,
    /// Why there is none: `OOM`, `crashed`, `refused`.
    pub failure: Option<String>,
    /// Not valid: drawn open.
    pub informative: bool,
    /// Hover value.
    pub title: String,
    /// Number above the bar, where there is room.
    pub text: String,
}

/// Bars side by side over one label.
#[derive(Debug, Clone)]
pub struct BarGroup {
    pub label: String,
    pub bars: Vec<Bar>,
}

/// A panel of bars.
pub struct Bars<'a> {
    /// `seconds per epoch`.
    pub caption: &'a str,
    pub groups: &'a [BarGroup],
}

const BAR: f64 = 19.0;
const HEIGHT: f64 = 214.0;

impl Bars<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let bars = || self.groups.iter().flat_map(|g| &g.bars);
        let largest = bars().filter_map(|b| b.interval.map(|i| i.1).or(b.value)).fold(0.0, f64::max);
        let (top, bottom) = (30.0, HEIGHT - 24.0);
        let y = Scale::from_zero(largest, bottom, top);
        let (left, right) = (gutter(&y), WIDTH - 4.0);
        let mut c = Canvas::default();
        grid(&mut c, &y, (left, right), self.caption);
        let slot = (right - left) / self.groups.len().max(1) as f64;
        let most = self.groups.iter().map(|g| g.bars.len()).max().unwrap_or(1) as f64;
        let wide = BAR.min((slot - 6.0) / most - 3.0).max(3.0);
        let labels = most <= 1.0 && self.groups.len() <= 7;
        for (i, group) in self.groups.iter().enumerate() {
            let middle = left + (i as f64 + 0.5) * slot;
            let begin = middle - (group.bars.len() as f64 * (wide + 3.0) - 3.0) / 2.0;
            for (k, bar) in group.bars.iter().enumerate() {
                let x = begin + k as f64 * (wide + 3.0);
                let class = format!("{}{}", family(&bar.sharing), if bar.informative { " inf" } else { "" });
                c.open_mark(&class, &bar.title);
                match bar.value {
                    Some(value) => {
                        c.rect("bar", (x, y.px(value)), (wide, bottom - y.px(value)));
                        if let Some((low, high)) = bar.interval {
                            c.whisker(x + wide / 2.0, y.px(low.max(0.0)), y.px(high));
                        }
                        if labels {
                            let at = y.px(bar.interval.map_or(value, |i| i.1)) - 6.0;
                            c.text("val", (x + wide / 2.0, at), Anchor::Middle, &bar.text);
                        }
                    }
                    None => {
                        let why = bar.failure.as_deref().unwrap_or("not run");
                        let alert = if why == "OOM" { "oom" } else { "none" };
                        c.text_up(alert, (x + wide / 2.0 + 4.0, bottom - 5.0), &format!("✕ {why}"));
                    }
                }
                c.close();
            }
            c.text("t", (middle, bottom + 16.0), Anchor::Middle, &group.label);
        }
        Drawing { width: WIDTH, height: HEIGHT, body: c.into_markup() }
    }
}
