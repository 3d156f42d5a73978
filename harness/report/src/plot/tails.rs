//! The share of requests that are later than a latency, both on logarithmic axes: one line per sharing mode, its tail to the right. In:
//! lines of shares and latencies in one unit. Out: a drawing.

use super::{Anchor, Canvas, Drawing, LogScale, WIDTH, family, shape};
use crate::number;

/// One server under one sharing mode.
#[derive(Debug, Clone)]
pub struct Tail {
    pub sharing: String,
    /// The share that is later, and the latency, by falling share.
    pub points: Vec<(f64, f64)>,
    /// What can be pointed at: share, latency and what hovers there.
    pub marks: Vec<(f64, f64, String)>,
    pub informative: bool,
}

/// A panel of lines.
pub struct Tails<'a> {
    /// `latency, ms`.
    pub below: &'a str,
    pub tails: &'a [Tail],
    /// The limit, and how to say it.
    pub limit: Option<(f64, &'a str)>,
    /// Panels of one figure share the range of latencies. What lies beyond it is not drawn.
    pub range: (f64, f64),
}

const HEIGHT: f64 = 240.0;
/// The smallest share that is drawn.
const LEAST: f64 = 0.001;

impl Tails<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let (top, bottom, left, right) = (34.0, HEIGHT - 42.0, 44.0, WIDTH - 14.0);
        let x = LogScale::around(self.range.0, self.range.1, left, right);
        let y = LogScale::exact(LEAST, 1.0, bottom, top);
        let mut c = Canvas::default();
        c.text("cap", (0.0, 11.0), Anchor::Start, "requests that are later");
        for share in [1.0, 0.5, 0.1, 0.05, 0.01, LEAST] {
            // The p99 lies where one request in a hundred is later.
            c.line(if share == 0.01 { "ref" } else { "gr" }, (left, y.px(share)), (right, y.px(share)));
            let label = if share < 0.01 { "0.1 %".to_string() } else { number::percent(share) };
            c.text("t", (left - 6.0, y.px(share) + 4.0), Anchor::End, &label);
        }
        for tick in x.ticks() {
            c.line("gr", (x.px(tick), top), (x.px(tick), bottom));
            c.text("t", (x.px(tick), bottom + 16.0), Anchor::Middle, &LogScale::label(tick));
        }
        c.text("t", ((left + right) / 2.0, bottom + 33.0), Anchor::Middle, self.below);
        if let Some((value, text)) = self.limit {
            c.line("pub", (x.px(value), top), (x.px(value), bottom));
            let room = 6.2 * text.chars().count() as f64;
            let (at, anchor) = if x.px(value) + room > WIDTH { (WIDTH, Anchor::End) } else { (x.px(value) + 4.0, Anchor::Start) };
            c.text("it", (at, top - 6.0), anchor, text);
        }
        for tail in self.tails {
            c.open(family(&tail.sharing));
            let on = tail.points.iter().filter(|p| p.1 >= x.min && p.1 <= x.max);
            let line: Vec<(f64, f64)> = on.map(|(share, late)| (x.px(*late), y.px(*share))).collect();
            c.polyline("ln", &line);
            c.close();
        }
        for tail in self.tails {
            let class = format!("{}{}", family(&tail.sharing), if tail.informative { " inf" } else { "" });
            for (share, late, title) in &tail.marks {
                c.open_mark(&class, title);
                c.shape(shape(&tail.sharing), "mk", (x.px(*late), y.px(*share)));
                c.close();
            }
        }
        Drawing { width: WIDTH, height: HEIGHT, body: c.into_markup() }
    }
}
