//! Lines of the whole GPU over time, one per sharing mode, on one axis: mark and label at the true end.

use crate::draw::axis::Axis;
use crate::draw::chart::{Frame, ToPanel, charts};
use crate::draw::look::{hue, shape};
use crate::draw::themed::{Anchor, ThemedSvg, text_width};
use crate::draw::{Drawing, WIDTH, cut};
use crate::modes::mode_label;

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
    /// A limit that cannot be exceeded, and its text.
    pub limit: Option<(f64, &'a str)>,
}

const HEIGHT: f64 = 196.0;

impl OverTime<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let limit = self.limit.filter(|l| l.0 <= 2.5 * self.largest);
        let y = Axis::from_zero(self.largest.max(limit.map_or(0.0, |l| l.0)));
        let end = self.traces.iter().flat_map(|t| &t.points).map(|p| p.0).fold(0.0, f64::max);
        let frame = Frame { right: 10.0, ..Frame::of_values(self.caption, &y) };
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, Axis::of_time(0.0, end, 9), y)?;
            if let Some(limit) = limit {
                chart.capacity(limit)?;
            }
            for trace in self.traces {
                chart.line("ln thin", &trace.sharing, trace.points.iter().copied())?;
            }
            chart.own(|svg, place| self.ends(svg, place))
        })
    }

    /// Each line's mark, and its label beside it if there is room, else above or below it; never on another label.
    fn ends(&self, svg: &mut ThemedSvg, place: ToPanel) {
        let (top, bottom) = (place(0.0, f64::MAX).1, place(0.0, 0.0).1);
        let ends: Vec<(&Trace, (f64, f64))> =
            self.traces.iter().filter_map(|t| t.points.last().map(|(at, v)| (t, place(*at, *v)))).collect();
        let mut taken: Vec<(f64, f64, f64)> = ends.iter().map(|(_, (x, y))| (x - 5.0, x + 5.0, y + 4.0)).collect();
        for (trace, (x, y)) in ends {
            svg.open_mark(hue(&trace.sharing), &trace.title);
            svg.shape(shape(&trace.sharing), "mk", (x, y));
            let label = cut(&mode_label(&trace.sharing), 14);
            let wide = text_width(&label);
            let spots = [
                (x + 8.0, x + 8.0 + wide, y + 4.0, Anchor::Start),
                (x - wide, x + 4.0, y - 9.0, Anchor::End),
                (x - wide, x + 4.0, y + 17.0, Anchor::End),
                (x - wide, x + 4.0, y - 22.0, Anchor::End),
            ];
            let free = |s: &&(f64, f64, f64, Anchor)| {
                s.1 <= WIDTH
                    && s.2 > top
                    && s.2 < bottom
                    && taken.iter().all(|(a, b, h)| s.1 < *a || s.0 > *b || (s.2 - h).abs() > 12.5)
            };
            if let Some((a, b, h, anchor)) = spots.iter().find(free) {
                svg.text("lb", (if *anchor == Anchor::Start { *a } else { *b }, *h), *anchor, &label);
                taken.push((*a, *b, *h));
            }
            svg.close();
        }
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
