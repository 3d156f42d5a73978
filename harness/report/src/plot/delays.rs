//! Latencies on a logarithmic axis: rows of dots with whiskers, one dot per sharing mode, and the limit as a line. In: rows of
//! latencies in one unit. Out: a drawing.

use super::{Anchor, Canvas, DotRow, Drawing, LogScale, WIDTH, cut, family, shape};

/// A panel of rows.
pub struct Delays<'a> {
    pub caption: &'a str,
    pub rows: &'a [DotRow],
    /// The limit, and how to say it.
    pub limit: Option<(f64, &'a str)>,
    /// Panels of one figure share the range.
    pub range: (f64, f64),
}

/// Characters of a row's label.
const LABEL: usize = 20;

impl Delays<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let widest = self.rows.iter().map(|r| r.label.chars().count()).max().unwrap_or(4).min(LABEL);
        let (left, right) = (12.0 + 7.5 * widest as f64, WIDTH - 14.0);
        let heights: Vec<f64> = self.rows.iter().map(|r| (10.0 + 12.0 * r.dots.len() as f64).max(r.least)).collect();
        let (top, body) = (34.0, heights.iter().sum::<f64>());
        let bottom = top + body;
        let x = LogScale::around(self.range.0, self.range.1, left, right);
        let mut c = Canvas::default();
        c.text("cap", (0.0, 11.0), Anchor::Start, self.caption);
        for tick in x.ticks() {
            c.line("gr", (x.px(tick), top), (x.px(tick), bottom));
            c.text("t", (x.px(tick), bottom + 16.0), Anchor::Middle, &LogScale::label(tick));
        }
        if let Some((value, text)) = self.limit {
            c.line("pub", (x.px(value), top), (x.px(value), bottom));
            let room = 6.2 * text.chars().count() as f64;
            let (at, anchor) = if x.px(value) + room > WIDTH { (WIDTH, Anchor::End) } else { (x.px(value) + 4.0, Anchor::Start) };
            c.text("it", (at, top - 6.0), anchor, text);
        }
        let mut y = top;
        for (row, height) in self.rows.iter().zip(heights) {
            c.text("rl", (left - 8.0, y + height / 2.0 + 4.0), Anchor::End, &cut(&row.label, LABEL));
            let gap = height / (row.dots.len() as f64 + 1.0);
            for (i, dot) in row.dots.iter().enumerate() {
                let at = y + gap * (i + 1) as f64;
                c.open_mark(&format!("{}{}", family(&dot.sharing), if dot.informative { " inf" } else { "" }), &dot.title);
                if let Some((low, high)) = dot.interval {
                    c.line("wh", (x.px(low), at), (x.px(high), at));
                }
                c.shape(shape(&dot.sharing), "mk", (x.px(dot.value), at));
                c.close();
            }
            if !row.note.is_empty() {
                let (at, anchor) = if row.dots.is_empty() { (left + 4.0, Anchor::Start) } else { (right, Anchor::End) };
                c.text("none", (at, y + height / 2.0 + 4.0), anchor, &row.note);
            }
            y += height;
            c.line("gr", (left, y), (right, y));
        }
        Drawing { width: WIDTH, height: bottom + 24.0, body: c.into_markup() }
    }
}
