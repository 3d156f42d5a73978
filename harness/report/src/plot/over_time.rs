//! Lines of the whole card over time, one per sharing mode, on one axis: mark and label at the true end.

use super::{Anchor, Canvas, Drawing, Scale, WIDTH, cut, family, grid, gutter, mode_label, shape};

/// One run.
#[derive(Debug, Clone)]
pub struct Trace {
    pub sharing: String,
    /// `(seconds, value)`.
    pub points: Vec<(f64, f64)>,
    pub title: String,
}

/// A panel of runs.
pub struct OverTime<'a> {
    /// `watts`.
    pub caption: &'a str,
    pub traces: &'a [Trace],
    /// Panels of one figure share the scale: the largest value of all of them.
    pub largest: f64,
    /// What cannot be exceeded, and how to say it.
    pub limit: Option<(f64, &'a str)>,
}

const HEIGHT: f64 = 196.0;

impl OverTime<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let limit = self.limit.filter(|l| l.0 <= 2.5 * self.largest);
        let (top, bottom) = (30.0, HEIGHT - 24.0);
        let y = Scale::from_zero(self.largest.max(limit.map_or(0.0, |l| l.0)), bottom, top);
        let (left, right) = (gutter(&y), WIDTH - 10.0);
        let all = || self.traces.iter().flat_map(|t| &t.points);
        let end = all().map(|p| p.0).fold(0.0, f64::max);
        let (unit, per) = if end > 300.0 { (" min", 60.0) } else { (" s", 1.0) };
        let x = Scale::exact(0.0, end / per, left, right);
        let px = |t: f64| x.px(t.max(0.0) / per);
        let mut c = Canvas::default();
        grid(&mut c, &y, (left, right), self.caption);
        if let Some((value, text)) = limit {
            c.line("capl", (left, y.px(value)), (right, y.px(value)));
            let above = if y.px(value) - 5.0 < 24.0 { y.px(value) + 13.0 } else { y.px(value) - 5.0 };
            c.text("capt", (right, above), Anchor::End, text);
        }
        let ticks = x.ticks();
        for (i, tick) in ticks.iter().enumerate() {
            let unit = if i + 1 == ticks.len() { unit } else { "" };
            let anchor = if x.px(*tick) > right - 12.0 { Anchor::End } else { Anchor::Middle };
            let at = if matches!(anchor, Anchor::End) { right + 8.0 } else { x.px(*tick) };
            c.text("t", (at, bottom + 16.0), anchor, &format!("{}{unit}", x.label(*tick)));
        }
        for trace in self.traces {
            c.open(family(&trace.sharing));
            c.polyline("ln thin", &trace.points.iter().map(|(t, v)| (px(*t), y.px(*v))).collect::<Vec<_>>());
            c.close();
        }
        let ends = self.traces.iter().filter_map(|t| t.points.last());
        let mut taken: Vec<(f64, f64, f64)> = ends.map(|(t, v)| (px(*t) - 5.0, px(*t) + 5.0, y.px(*v) + 4.0)).collect();
        for trace in self.traces {
            let Some((t, v)) = trace.points.last() else { continue };
            let (at, height) = (px(*t), y.px(*v));
            c.open_mark(family(&trace.sharing), &trace.title);
            c.shape(shape(&trace.sharing), "mk", (at, height));
            // Beside its mark where there is room, else above or below it; never on another label.
            let label = cut(&mode_label(&trace.sharing), 14);
            let wide = 7.2 * label.chars().count() as f64;
            let spots = [
                (at + 8.0, at + 8.0 + wide, height + 4.0, Anchor::Start),
                (at - wide, at + 4.0, height - 9.0, Anchor::End),
                (at - wide, at + 4.0, height + 17.0, Anchor::End),
                (at - wide, at + 4.0, height - 22.0, Anchor::End),
            ];
            let free = |s: &&(f64, f64, f64, Anchor)| {
                s.1 <= WIDTH
                    && s.2 > top
                    && s.2 < bottom
                    && taken.iter().all(|(a, b, h)| s.1 < *a || s.0 > *b || (s.2 - h).abs() > 12.5)
            };
            if let Some((a, b, h, anchor)) = spots.iter().find(free) {
                let from = if matches!(anchor, Anchor::Start) { *a } else { *b };
                c.text("lb", (from, *h), *anchor, &label);
                taken.push((*a, *b, *h));
            }
            c.close();
        }
        Drawing { width: WIDTH, height: HEIGHT, body: c.into_markup() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_its_mark_and_equal_ends_do_not_write_over_each_other() {
        let trace =
            |sharing: &str| Trace { sharing: sharing.into(), points: vec![(0.0, 1.0), (9.0, 2.0)], title: sharing.into() };
        let traces = [trace("naive"), trace("mps"), trace("mig")];
        let drawing = OverTime { caption: "watts", traces: &traces, largest: 2.0, limit: None }.draw();
        assert_eq!(drawing.body.matches("class=\"h ").count(), 3);
        let places: Vec<&str> = drawing.body.split("<text class=\"lb\"").skip(1).filter_map(|t| t.split('>').next()).collect();
        let mut different = places.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!((places.is_empty(), different.len()), (false, places.len()), "{places:?}");
    }
}
