//! Rows of dots with whiskers on a horizontal axis: ratios, which must mark 1 and need no zero.

use super::{Anchor, Canvas, Drawing, Scale, WIDTH, family, shape};

/// One dot.
#[derive(Debug, Clone)]
pub struct Dot {
    pub sharing: String,
    pub informative: bool,
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    pub title: String,
}

/// One row: a dot per member, or per sharing mode.
#[derive(Debug, Clone)]
pub struct DotRow {
    pub label: String,
    pub dots: Vec<Dot>,
    /// Its height at least.
    pub least: f64,
    /// Why there is no dot, or what is missing.
    pub note: String,
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

/// Characters of a row's label.
const LABEL: usize = 24;

/// A label that fits its gutter.
pub fn cut(label: &str, most: usize) -> String {
    if label.chars().count() <= most {
        return label.to_string();
    }
    format!("{}…", label.chars().take(most - 1).collect::<String>())
}

impl Dots<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let widest = self.rows.iter().map(|r| r.label.chars().count()).max().unwrap_or(4).min(LABEL);
        let (left, right) = (12.0 + 7.5 * widest as f64, WIDTH - 12.0);
        let heights: Vec<f64> = self.rows.iter().map(|r| (8.0 + 9.0 * r.dots.len() as f64).max(r.least)).collect();
        let (top, body) = (34.0, heights.iter().sum::<f64>());
        let bottom = top + body;
        let (low, high) = (self.range.0.min(1.0), self.range.1.max(1.0));
        let x = Scale::around(low, high.max(low + 0.05), left, right);
        let mut c = Canvas::default();
        c.text("cap", (0.0, 11.0), Anchor::Start, self.caption);
        let ticks = x.ticks();
        let every = if (right - left) / (ticks.len() as f64) < 26.0 { 2 } else { 1 };
        for (i, tick) in ticks.iter().enumerate() {
            c.line("gr", (x.px(*tick), top), (x.px(*tick), bottom));
            if i % every == 0 {
                c.text("t", (x.px(*tick), bottom + 16.0), Anchor::Middle, &x.label(*tick));
            }
        }
        c.line("ref", (x.px(1.0), top), (x.px(1.0), bottom));
        if let Some((value, text)) = self.threshold.filter(|(v, _)| *v > x.min && *v < x.max) {
            c.line("pub", (x.px(value), top), (x.px(value), bottom));
            let room = 6.2 * text.chars().count() as f64;
            let (at, anchor) = if x.px(value) + room > WIDTH { (WIDTH, Anchor::End) } else { (x.px(value) + 4.0, Anchor::Start) };
            c.text("it", (at, top - 6.0), anchor, text);
        }
        let mut y = top;
        for (row, height) in self.rows.iter().zip(heights) {
            c.text("rl", (left - 10.0, y + height / 2.0 + 4.0), Anchor::End, &cut(&row.label, LABEL));
            let gap = height / (row.dots.len() as f64 + 1.0);
            for (i, dot) in row.dots.iter().enumerate() {
                let at = y + gap * (i + 1) as f64;
                c.open_mark(&format!("{}{}", family(&dot.sharing), if dot.informative { " inf" } else { "" }), &dot.title);
                if let Some((low, high)) = dot.interval {
                    c.line("wh", (x.px(low).max(left), at), (x.px(high).min(right + 8.0), at));
                }
                c.shape(shape(&dot.sharing), "mk", (x.px(dot.value), at));
                c.close();
            }
            if !row.note.is_empty() {
                let anchor = if row.dots.is_empty() { Anchor::Start } else { Anchor::End };
                let at = if row.dots.is_empty() { left + 4.0 } else { right };
                c.text("none", (at, y + height / 2.0 + 4.0), anchor, &row.note);
            }
            y += height;
            c.line("gr", (left, y), (right, y));
        }
        Drawing { width: WIDTH, height: bottom + 24.0, body: c.into_markup() }
    }
}
