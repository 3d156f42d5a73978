//! One cell over its nights. In: logarithms of times by night, a band in which they are expected, what changed in a night. Out: a
//! drawing with time up and nights to the right. A dot is a night, the last one has a whisker, a line marks a step of the cell; a
//! night that was not judged is a hollow tick, a change of the environment a mark on the axis.

use crate::draw::Drawing;
use crate::draw::axis::Axis;
use crate::draw::chart::{Chart, DrawResult, Frame, charts};
use crate::draw::look::hue;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 168.0;
/// Height above the axis for the ticks of nights that were not judged.
const FOOT: f64 = 7.0;
/// The scale never shows less than this span of a logarithm, so that a quiet cell looks quiet.
const LEAST_SPAN: f64 = 0.08;
/// Dates are at least this far apart, in units.
const DATES: f64 = 52.0;

/// A judged night.
#[derive(Debug, Clone)]
pub struct SparkDot {
    /// Its index among the nights shown.
    pub at: usize,
    /// Logarithm of the time.
    pub value: f64,
    /// Text on hover.
    pub title: String,
}

/// One cell's line.
#[derive(Debug, Clone, Default)]
pub struct Spark<'a> {
    pub sharing: &'a str,
    /// `seconds per epoch`, and how many of that unit are in a second.
    pub caption: &'a str,
    pub per_s: f64,
    /// The date of each night shown.
    pub days: &'a [String],
    pub dots: Vec<SparkDot>,
    /// Nights that were not judged, with the reason.
    pub hollow: Vec<(usize, String)>,
    /// The expected range of the next night, logarithms.
    pub band: Option<(f64, f64)>,
    /// Half of the last night's interval.
    pub whisker: Option<f64>,
    /// First nights after a step.
    pub steps: Vec<usize>,
    /// Nights on which it did not run.
    pub failed: Vec<(usize, String)>,
    /// Nights with another environment than the one before: a commit, a driver.
    pub changed: &'a [(usize, String)],
}

impl Spark<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let (low, high) = self.scale();
        let per_s = if self.per_s > 0.0 { self.per_s } else { 1.0 };
        let of = |log: f64| log.exp() * per_s;
        let y = Axis::around(of(low), of(high));
        let nights = self.days.len().max(2) as f64;
        let frame = Frame { top: 24.0, right: 8.0, bottom: 30.0, sink: 6.0, ..Frame::of_ratios(self.caption, &y) };
        let unit = (WIDTH - frame.left - frame.right) / nights;
        let mut next = f64::NEG_INFINITY;
        let dates = self.days.iter().enumerate().map(|(i, day)| {
            let at = i as f64 + 0.5;
            let shown = at * unit >= next;
            next = if shown { at * unit + DATES } else { next };
            (at, if shown { day.clone() } else { String::new() })
        });
        let x = Axis::named(0.0..nights, dates.collect());
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, x, y)?;
            self.marks(&mut chart, &of)
        })
    }

    fn marks(&self, chart: &mut Chart, of: &dyn Fn(f64) -> f64) -> DrawResult<()> {
        let middle = |at: usize| at as f64 + 0.5;
        chart.own(|svg, place| {
            svg.open(hue(self.sharing));
            let foot = place(0.0, f64::MIN).1;
            if let Some((low, high)) = self.band.filter(|(l, h)| l.is_finite() && h.is_finite()) {
                // From the last step on: before it another band held.
                let from = self.steps.last().map_or(0.0, |at| *at as f64);
                let ((x, top), (right, bottom)) = (place(from, of(high)), place(f64::MAX, of(low)));
                svg.rect("band", (x, top), (right - x, (bottom - top).max(0.5)));
            }
            for at in &self.steps {
                let (x, top) = place(*at as f64, f64::MAX);
                svg.line("chg", (x, top), (x, foot));
            }
            for (at, why) in &self.hollow {
                svg.titled(why, |svg| svg.rect("tick", (place(middle(*at), 0.0).0 - 2.0, foot - FOOT), (4.0, FOOT - 1.0)));
            }
            for (at, why) in &self.failed {
                let (x, y) = (place(middle(*at), 0.0).0, foot - FOOT / 2.0);
                let cross = [[(x - 3.0, y - 3.0), (x + 3.0, y + 3.0)], [(x + 3.0, y - 3.0), (x - 3.0, y + 3.0)]];
                svg.titled(why, |svg| svg.strokes("fail", &cross));
            }
            for (at, what) in self.changed {
                let x = place(middle(*at), 0.0).0;
                svg.titled(what, |svg| svg.polygon("commit", &[(x, foot + 1.0), (x + 4.0, foot + 8.0), (x - 4.0, foot + 8.0)]));
            }
            if let (Some(last), Some(half)) = (self.dots.last(), self.whisker) {
                let x = middle(last.at);
                svg.whisker(place(x, of(last.value + half)), place(x, of(last.value - half)), false);
            }
            for dot in &self.dots {
                svg.titled(&dot.title, |svg| svg.circle("dot", place(middle(dot.at), of(dot.value)), 2.6));
            }
            svg.close();
        })
    }

    /// Both ends of the axis, logarithms. Half-widths of wild nights do not flatten the rest: only the dots and the band count.
    fn scale(&self) -> (f64, f64) {
        let values = self.dots.iter().map(|d| d.value).chain(self.band.into_iter().flat_map(|(l, h)| [l, h]));
        let (low, high) =
            values.filter(|v| v.is_finite()).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = if low > high { (0.0, 0.0) } else { (low, high) };
        let short = (LEAST_SPAN - (high - low)).max(0.0) / 2.0;
        (low - short, high + short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(at: usize, value: f64) -> SparkDot {
        SparkDot { at, value, title: format!("<b>{at}</b>") }
    }

    #[test]
    fn a_night_is_a_dot_and_ticks_lines_and_marks_say_what_else_happened() {
        let days: Vec<String> = (1..=20).map(|d| format!("{d} Nov")).collect();
        let spark = Spark {
            sharing: "mps",
            caption: "seconds per epoch",
            per_s: 1.0,
            days: &days,
            dots: (0..19).filter(|i| *i != 7).map(|i| dot(i, if i > 11 { 0.05 } else { 0.0 })).collect(),
            hollow: vec![(7, "cut & short".into())],
            band: Some((0.04, 0.06)),
            whisker: Some(0.01),
            steps: vec![12],
            failed: vec![(19, "out of memory".into())],
            changed: &[(12, "driver 580 → 590".into())],
        };
        let drawing = spark.draw();
        let body = &drawing.body;
        assert!(drawing.width >= 480.0 && drawing.height >= 160.0);
        assert_eq!(body.matches(r#"class="dot""#).count(), 18);
        let marks = ["tick", "chg", "fail", "commit"].map(|class| body.matches(&format!("class=\"{class}\"")).count());
        assert_eq!(marks, [1; 4]);
        assert!(!body.contains("<b>") && body.contains("cut &amp; short") && body.contains("driver 580"), "{body}");
        assert!(
            body.contains(">1 Nov<") && body.contains(">4 Nov<") && body.contains("seconds per epoch"),
            "axes have their texts"
        );
        assert!(body.matches(" Nov<").count() < 12, "dates keep apart");
        assert!(!body.contains('#'), "no literal colour");
    }

    #[test]
    fn no_night_and_values_that_are_none_draw_nothing_that_breaks() {
        assert!(!Spark::default().draw().body.contains("NaN"));
        let day = ["1 Nov".to_string()];
        let wild = Spark { days: &day, dots: vec![dot(0, 0.0)], band: Some((f64::NAN, f64::INFINITY)), ..Spark::default() };
        assert!(!wild.draw().body.contains("NaN"));
    }
}
