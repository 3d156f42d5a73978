//! Lines over degree, with bands, a line at 1 and the ideal ×N.

use plotters::element::Polygon;

use crate::draw::axis::{Axis, apart};
use crate::draw::chart::{Frame, ToPanel, charts};
use crate::draw::look::{hue, shape};
use crate::draw::marks::{self, PublishedMark};
use crate::draw::themed::{Anchor, ThemedSvg, look};
use crate::draw::{Drawing, WIDTH};
use crate::modes::{in_order, mode_label};

/// One measured degree.
#[derive(Debug, Clone)]
pub struct DegreePoint {
    pub degree: u32,
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    /// The values of its repetitions, in their order.
    pub runs: Vec<f64>,
    pub published: Option<PublishedMark>,
    pub indicative: bool,
    pub title: String,
}

/// One sharing mode.
#[derive(Debug, Clone)]
pub struct ModeLine {
    pub sharing: String,
    pub points: Vec<DegreePoint>,
    /// The text at its end: `naive 1.92`.
    pub end: String,
}

/// A group without a gain.
#[derive(Debug, Clone)]
pub struct Failure {
    pub sharing: String,
    pub degree: u32,
    /// `OOM`, `crashed`.
    pub why: String,
    pub title: String,
}

/// A panel of lines.
pub struct Lines<'a> {
    pub caption: &'a str,
    pub lines: &'a [ModeLine],
    /// Groups that failed keep their place.
    pub failures: &'a [Failure],
    /// All panels of one figure share the scales.
    pub largest: f64,
    pub degrees: &'a [u32],
}

const HEIGHT: f64 = 238.0;
/// The head, with its caption and the names of the two lines of reference.
const HEAD: f64 = 44.0;
/// Height of a row of failures.
const FAILED: f64 = 14.0;
/// Height of a label.
const LINE: f64 = 13.0;
/// Width of the repetitions of a point, and where they and what was published stand beside it.
const RUNS: f64 = 7.0;
const RIGHT: f64 = 9.0;
/// Where labels begin, right of the axis: beyond the repetitions of a last point.
const COLUMN: f64 = 13.0;
const LEFT: f64 = -13.0;

impl Lines<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let y = Axis::from_zero(self.largest.max(1.2));
        let widest = self.lines.iter().map(|l| l.end.chars().count()).max().unwrap_or(0);
        let right = COLUMN + 6.0 + 6.9 * widest as f64;
        let failed = self.failed_modes();
        let top = HEAD + FAILED * failed.len() as f64;
        let frame = Frame { right, top, ..Frame::of_values(self.caption, &y) };
        let left = frame.left;
        let most = f64::from(self.degrees.iter().copied().max().unwrap_or(2).max(2));
        // Marks at both ends have room inside.
        let unit = (most - 1.0) / (WIDTH - frame.left - right - 12.0);
        let labels: Vec<String> = self.degrees.iter().map(|d| format!("×{d}")).collect();
        let labels = apart(self.degrees.iter().map(|d| f64::from(*d) / unit).zip(labels.iter().map(String::as_str)));
        let x =
            Axis::named(1.0 - 8.0 * unit..most + 4.0 * unit, self.degrees.iter().map(|d| f64::from(*d)).zip(labels).collect());
        charts((WIDTH, HEIGHT + FAILED * failed.len() as f64), |root| {
            let mut chart = frame.on(root, x, y)?;
            // One is drawn above the grid: it is what running in turn does.
            chart.level("ref", 1.0)?;
            let end = most.min(chart.y().max());
            chart.straight("ideal", (1.0, 1.0), (end, end))?;
            // Named in the head, where no line can be.
            chart.own(|svg, _| {
                svg.line("ideal", (left, 25.0), (left + 18.0, 25.0));
                svg.text("it", (left + 24.0, 29.0), Anchor::Start, "ideal ×N");
                svg.line("ref", (left + 96.0, 25.0), (left + 114.0, 25.0));
                svg.text("it", (left + 120.0, 29.0), Anchor::Start, "in turn");
            })?;
            for line in self.lines {
                let of = |p: &DegreePoint, value: f64| (f64::from(p.degree), value);
                for stretch in self.stretches(line) {
                    let high = stretch.iter().map(|p| of(p, p.interval.map_or(p.value, |i| i.1)));
                    let low = stretch.iter().rev().map(|p| of(p, p.interval.map_or(p.value, |i| i.0)));
                    if let [only] = stretch {
                        let ends = only.interval.filter(|_| only.degree > 1);
                        chart.hued(&line.sharing, |chart| {
                            ends.map_or(Ok(()), |(low, high)| chart.straight("wh", of(only, low), of(only, high)))
                        })?;
                        continue;
                    }
                    chart.hued(&line.sharing, |chart| {
                        chart.draw(Polygon::new(high.chain(low).collect::<Vec<_>>(), look("band")))
                    })?;
                    chart.line("ln", &line.sharing, stretch.iter().map(|p| of(p, p.value)))?;
                }
            }
            let highest = chart.y().max();
            for line in self.lines {
                for p in &line.points {
                    chart.mark(&line.sharing, p.indicative, &p.title, |svg, place| {
                        let at = |value: f64| place(f64::from(p.degree), value);
                        svg.shape(shape(&line.sharing), "mk", at(p.value));
                        let beside = |right: f64| move |value: f64| (at(value).0 + right, at(value).1);
                        marks::repetitions(svg, &p.runs, RUNS, beside(RIGHT));
                        if let Some(mark) = &p.published {
                            marks::published(svg, mark, highest, beside(LEFT));
                        }
                    })?;
                }
            }
            chart.own(|svg, place| self.ends(svg, place))?;
            chart.own(|svg, place| self.failed(svg, place))
        })
    }

    /// The parts of a line in which each degree is followed by the next one that was asked for, at most twice as many members: what
    /// lies between others was not measured.
    fn stretches<'l>(&self, line: &'l ModeLine) -> impl Iterator<Item = &'l [DegreePoint]> {
        let failed = |sharing: &str, between: std::ops::Range<u32>| {
            self.failures.iter().any(|f| f.sharing == sharing && f.degree > between.start && f.degree < between.end)
        };
        let joined =
            move |a: &DegreePoint, b: &DegreePoint| b.degree <= 2 * a.degree && !failed(&line.sharing, a.degree..b.degree);
        line.points.chunk_by(joined)
    }

    /// The modes of failures, in their order.
    fn failed_modes(&self) -> Vec<&str> {
        in_order(self.failures.iter().map(|f| f.sharing.as_str()))
    }

    /// Failures are above the axis, where they can have no gain: a row for each mode, with its mark, and a ✕ at each degree.
    fn failed(&self, svg: &mut ThemedSvg, place: ToPanel) {
        let axis = place(1.0, f64::MAX).1;
        for (row, mode) in self.failed_modes().into_iter().enumerate() {
            let y = axis - FAILED * (self.failed_modes().len() - row) as f64 + 6.0;
            let mut last: Option<(f64, &str)> = None;
            for failure in self.failures.iter().filter(|f| f.sharing == mode) {
                let x = place(f64::from(failure.degree), 0.0).0;
                svg.open_mark(hue(mode), &failure.title);
                svg.shape(shape(mode), "mk open", (x, y));
                svg.failure((x, y + 4.0), Anchor::Middle, &failure.why, "✕");
                svg.close();
                last = last.filter(|l| l.0 > x).or(Some((x, &failure.why)));
            }
            if let Some((x, why)) = last {
                svg.open(hue(mode));
                svg.text("lb", (x + 9.0, y + 4.0), Anchor::Start, &format!("{} {why}", mode_label(mode)));
                svg.close();
            }
        }
    }

    /// Labels in a column on the right, at the height of the ends of their lines as far as none covers another; a thin line leads
    /// to an end that is not beside its label.
    fn ends(&self, svg: &mut ThemedSvg, place: ToPanel) {
        let end = |l: &'_ ModeLine| l.points.last().map(|p| place(f64::from(p.degree), p.value));
        let mut ends: Vec<((f64, f64), &ModeLine)> = self.lines.iter().filter_map(|l| end(l).map(|at| (at, l))).collect();
        ends.sort_by(|a, b| a.0.1.total_cmp(&b.0.1));
        let (column, foot) = (place(f64::MAX, 0.0).0 + COLUMN, place(1.0, 0.0).1);
        let heights = spread(&ends.iter().map(|e| e.0.1).collect::<Vec<_>>(), LINE, foot);
        for (((x, y), line), height) in ends.into_iter().zip(heights) {
            svg.open(hue(&line.sharing));
            if column - x > COLUMN + 6.0 || (height - y).abs() > 6.0 {
                svg.line("lead", (x + 5.0, y), (column - 2.0, height));
            }
            svg.text("lb", (column, height + 4.0), Anchor::Start, &line.end);
            svg.close();
        }
    }
}

/// Heights that keep `apart`, as near to the wanted ones, which are sorted, as a pass down and a pass up leave them; none is below
/// `foot`.
pub(super) fn spread(wanted: &[f64], apart: f64, foot: f64) -> Vec<f64> {
    let mut heights = wanted.to_vec();
    for i in 1..heights.len() {
        heights[i] = heights[i].max(heights[i - 1] + apart);
    }
    let mut limit = foot;
    for height in heights.iter_mut().rev() {
        *height = height.min(limit);
        limit = *height - apart;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart_and_stay_above_the_foot() {
        assert_eq!(spread(&[50.0, 52.0, 90.0], 13.0, 200.0), [50.0, 63.0, 90.0]);
        assert_eq!(spread(&[180.0, 190.0, 195.0], 13.0, 195.0), [169.0, 182.0, 195.0]);
        assert_eq!(spread(&[], 13.0, 9.0), Vec::<f64>::new());
    }

    #[test]
    fn degrees_between_which_nothing_was_measured_are_not_joined() {
        let point = |degree| DegreePoint {
            degree,
            value: 1.0,
            interval: Some((0.9, 1.1)),
            runs: Vec::new(),
            published: None,
            indicative: false,
            title: "t".into(),
        };
        let stretches = |degrees: &[u32], failed: &[u32]| {
            let line = ModeLine { sharing: "mps".into(), points: degrees.iter().map(|d| point(*d)).collect(), end: "x".into() };
            let failures: Vec<Failure> = failed
                .iter()
                .map(|d| Failure { sharing: "mps".into(), degree: *d, why: "OOM".into(), title: "t".into() })
                .collect();
            let lines = [line];
            let chart = Lines { caption: "×", lines: &lines, failures: &failures, largest: 2.0, degrees };
            assert!(chart.draw().body.contains("<title>t</title>"));
            chart.stretches(&lines[0]).map(<[DegreePoint]>::len).collect::<Vec<_>>()
        };
        assert_eq!(stretches(&[1, 7], &[]), [1, 1]);
        assert_eq!(stretches(&[1, 2, 3, 4, 8], &[]), [5]);
        assert_eq!(stretches(&[2, 3, 7], &[]), [2, 1]);
        assert_eq!(stretches(&[2, 4], &[3]), [1, 1], "the one between was asked for, and failed");
    }

    #[test]
    fn failures_stand_in_a_row_of_their_mode_at_their_degree() {
        let point = |degree, value| DegreePoint {
            degree,
            value,
            interval: None,
            runs: Vec::new(),
            published: None,
            indicative: false,
            title: "t".into(),
        };
        let line =
            |sharing: &str| ModeLine { sharing: sharing.into(), points: vec![point(1, 1.0), point(2, 1.9)], end: "x".into() };
        let failure =
            |sharing: &str, degree| Failure { sharing: sharing.into(), degree, why: "OOM".into(), title: sharing.into() };
        let failures = [failure("mps", 3), failure("naive", 3), failure("mps", 7)];
        let lines = [line("naive"), line("mps")];
        let drawing = Lines { caption: "×", lines: &lines, failures: &failures, largest: 2.0, degrees: &[1, 2, 3, 7] }.draw();
        let body = &drawing.body;
        assert_eq!(drawing.height, HEIGHT + 2.0 * FAILED);
        let at = |title: &str| body.match_indices(&format!("<title>{title}</title>")).map(|m| m.0).collect::<Vec<_>>();
        assert!(at("naive").iter().max() < at("mps").iter().min(), "naive's row comes first");
        assert_eq!((at("naive").len(), at("mps").len()), (1, 2));
        assert!(body.contains("naive OOM") && body.contains("MPS OOM"), "{body}");
    }
}
