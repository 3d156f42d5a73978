//! Latencies on a logarithmic axis: rows of dots with whiskers, one dot per sharing mode, and the limit as a line. In: rows of
//! latencies in one unit. Out: a drawing.

use super::{Anchor, Canvas, Drawing, LogScale, WIDTH, cut, family, shape};

/// One latency; without a value it says why.
#[derive(Debug, Clone)]
pub struct Delay {
    pub sharing: String,
    pub informative: bool,
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
    /// The limit, and how to say it.
    pub limit: Option<(f64, &'a str)>,
    /// Panels of one figure share the range.
    pub range: (f64, f64),
}

/// Characters of a row's label.
const LABEL: usize = 20;
/// Height that one latency takes.
const STEP: f64 = 15.0;

impl Delays<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let widest = self.rows.iter().map(|r| r.label.chars().count()).max().unwrap_or(4).min(LABEL);
        let (left, right) = (12.0 + 7.5 * widest as f64, WIDTH - 14.0);
        let heights: Vec<f64> = self.rows.iter().map(|r| 10.0 + STEP * r.delays.len() as f64).collect();
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
            for (i, delay) in row.delays.iter().enumerate() {
                let at = y + 5.0 + STEP * (i as f64 + 0.5);
                let informative = if delay.informative { " inf" } else { "" };
                c.open_mark(&format!("{}{informative}", family(&delay.sharing)), &delay.title);
                if let Some((low, high)) = delay.interval {
                    c.line("wh", (x.px(low), at), (x.px(high), at));
                }
                match delay.value {
                    Some(value) => c.shape(shape(&delay.sharing), "mk", (x.px(value), at)),
                    None => c.text("none", (left + 4.0, at + 4.0), Anchor::Start, &format!("✕ {}: {}", delay.sharing, delay.why)),
                }
                c.close();
            }
            y += height;
            c.line("gr", (left, y), (right, y));
        }
        Drawing { width: WIDTH, height: bottom + 24.0, body: c.into_markup() }
    }
}
