//! Points over two quantities, with a line through them and references on the horizontal axis.

use super::{Anchor, Canvas, Drawing, Scale, WIDTH, family, grid, gutter, shape};

/// One point.
#[derive(Debug, Clone)]
pub struct Dotted {
    pub sharing: String,
    pub at: (f64, f64),
    /// Interval of the vertical value.
    pub interval: Option<(f64, f64)>,
    pub title: String,
}

/// A vertical reference: a value, its interval, how to say it, and whether it is published rather than ours.
#[derive(Debug, Clone)]
pub struct Reference {
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    pub text: String,
    pub published: bool,
}

/// A panel.
pub struct Scatter<'a> {
    /// What the vertical axis shows, and the horizontal one.
    pub caption: &'a str,
    pub below: &'a str,
    pub points: &'a [Dotted],
    /// A line through the points, with the mode that it belongs to.
    pub line: Option<(&'a str, &'a [(f64, f64)])>,
    pub references: &'a [Reference],
    /// The accepted value of the vertical axis.
    pub limit: Option<(f64, &'a str)>,
}

const HEIGHT: f64 = 250.0;

impl Scatter<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let (top, bottom) = (44.0, HEIGHT - 44.0);
        let highest = self.points.iter().map(|p| p.interval.map_or(p.at.1, |i| i.1.min(1.3 * p.at.1))).fold(1.2, f64::max);
        let furthest = self.points.iter().map(|p| p.at.0).chain(self.references.iter().map(|r| r.value)).fold(0.0, f64::max);
        let y = Scale::from_zero(highest, bottom, top);
        let (left, right) = (gutter(&y), WIDTH - 6.0);
        let x = Scale::from_zero(furthest, left, right);
        let mut c = Canvas::default();
        grid(&mut c, &y, (left, right), self.caption);
        for tick in x.ticks() {
            c.text("t", (x.px(tick), bottom + 16.0), Anchor::Middle, &format!("{:.0}", tick * 100.0));
        }
        c.text("cap", (right, bottom + 34.0), Anchor::End, self.below);
        c.line("ref", (left, y.px(1.0)), (right, y.px(1.0)));
        if let Some((value, text)) = self.limit.filter(|(v, _)| *v < y.max) {
            c.line("pub", (left, y.px(value)), (right, y.px(value)));
            c.text("it", (right, y.px(value) - 4.0), Anchor::End, text);
        }
        for (i, r) in self.references.iter().enumerate() {
            if let Some((low, high)) = r.interval {
                let (from, to) = (x.px(low.max(0.0)), x.px(high.min(x.max)));
                c.rect("within", (from, top), (to - from, bottom - top));
            }
            c.line(if r.published { "pub" } else { "ref" }, (x.px(r.value), top), (x.px(r.value), bottom));
            // Each on a line of its own above the drawing, on the side where there is room.
            let crowded = self.references.iter().any(|other| other.value > r.value && x.px(other.value) - x.px(r.value) < 90.0);
            let (anchor, at) = if x.px(r.value) > (left + right) / 2.0 || (crowded && x.px(r.value) > left + 60.0) {
                (Anchor::End, x.px(r.value) - 4.0)
            } else {
                (Anchor::Start, x.px(r.value) + 4.0)
            };
            c.text("it", (at, 27.0 + 12.0 * i as f64), anchor, &r.text);
        }
        if let Some((sharing, line)) = self.line {
            c.open(family(sharing));
            let through: Vec<(f64, f64)> = line.iter().filter(|p| p.1 <= y.max).map(|p| (x.px(p.0), y.px(p.1))).collect();
            c.polyline("ln", &through);
            c.close();
        }
        for p in self.points {
            c.open_mark(family(&p.sharing), &p.title);
            if let Some((low, high)) = p.interval {
                c.line("wh", (x.px(p.at.0), y.px(low.max(0.0))), (x.px(p.at.0), y.px(high.min(y.max))));
            }
            c.shape(shape(&p.sharing), "mk", (x.px(p.at.0), y.px(p.at.1)));
            c.close();
        }
        Drawing { width: WIDTH, height: HEIGHT, body: c.into_markup() }
    }
}
