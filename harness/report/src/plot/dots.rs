//! Rows of dots with whiskers on a horizontal axis: ratios, which must mark 1 and need no zero.

use super::{Anchor, Canvas, Drawing, Scale, WIDTH, family, shape};

/// One dot.
#[derive(Debug, Clone)]
pub struct Dot {
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    pub title: String,
}

/// One row, with a dot per member.
#[derive(Debug, Clone)]
pub struct DotRow {
    pub label: String,
    pub sharing: String,
    pub informative: bool,
    pub dots: Vec<Dot>,
}

/// A panel of rows.
pub struct Dots<'a> {
    pub caption: &'a str,
    pub rows: &'a [DotRow],
    /// A thin line at the experiment's threshold, and how to say it.
    pub threshold: Option<(f64, &'a str)>,
    /// Panels of one figure share the range.
    pub range: (f64, f64),
}

impl Dots<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let widest = self.rows.iter().map(|r| r.label.chars().count()).max().unwrap_or(4).min(24);
        let (left, right) = (12.0 + 7.2 * widest as f64, WIDTH - 12.0);
        let heights: Vec<f64> = self.rows.iter().map(|r| (8.0 + 9.0 * r.dots.len() as f64).max(22.0)).collect();
        let (top, body) = (34.0, heights.iter().sum::<f64>());
        let bottom = top + body;
        let (low, high) = (self.range.0.min(1.0), self.range.1.max(1.0));
        let x = Scale::around(low, high.max(low + 0.05), left, right);
        let mut c = Canvas::default();
        c.text("cap", (0.0, 11.0), Anchor::Start, self.caption);
        for tick in x.ticks() {
            c.line("gr", (x.px(tick), top), (x.px(tick), bottom));
            c.text("t", (x.px(tick), bottom + 16.0), Anchor::Middle, &x.label(tick));
        }
        c.line("ref", (x.px(1.0), top), (x.px(1.0), bottom));
        if let Some((value, text)) = self.threshold.filter(|(v, _)| *v > x.min && *v < x.max) {
            c.line("pub", (x.px(value), top), (x.px(value), bottom));
            c.text("it", (x.px(value) + 4.0, top - 6.0), Anchor::Start, text);
        }
        let mut y = top;
        for (row, height) in self.rows.iter().zip(heights) {
            let class = format!("{}{}", family(&row.sharing), if row.informative { " inf" } else { "" });
            c.text("rl", (left - 10.0, y + height / 2.0 + 4.0), Anchor::End, &row.label);
            let gap = height / (row.dots.len() as f64 + 1.0);
            for (i, dot) in row.dots.iter().enumerate() {
                let at = y + gap * (i + 1) as f64;
                c.open_mark(&class, &dot.title);
                if let Some((low, high)) = dot.interval {
                    c.line("wh", (x.px(low).max(left), at), (x.px(high).min(right + 8.0), at));
                }
                c.shape(shape(&row.sharing), "mk", (x.px(dot.value), at));
                c.close();
            }
            y += height;
            c.line("gr", (left, y), (right, y));
        }
        Drawing { width: WIDTH, height: bottom + 24.0, body: c.into_markup() }
    }
}
