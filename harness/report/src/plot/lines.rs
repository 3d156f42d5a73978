//! Lines over degree, with bands, a line at 1 and the ideal ×N.

use plotters::element::Polygon;

use super::axis::{Axis, apart};
use super::chart::{Frame, ToPanel, charts};
use super::themed::{ThemedSvg, look};
use super::{Anchor, Drawing, WIDTH, family, shape};

/// One measured degree.
#[derive(Debug, Clone)]
pub struct DegreePoint {
    pub degree: u32,
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    pub informative: bool,
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

const HEIGHT: f64 = 224.0;

impl Lines<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let y = Axis::from_zero(self.largest.max(1.2));
        let widest = self.lines.iter().map(|l| l.end.chars().count()).max().unwrap_or(0);
        let right = 10.0 + 6.9 * widest as f64;
        let frame = Frame { right, ..Frame::of_values(self.caption, &y) };
        let most = f64::from(self.degrees.iter().copied().max().unwrap_or(2).max(2));
        // Marks at both ends have room inside.
        let unit = (most - 1.0) / (WIDTH - frame.left - right - 12.0);
        let labels: Vec<String> = self.degrees.iter().map(|d| format!("×{d}")).collect();
        let labels = apart(self.degrees.iter().map(|d| f64::from(*d) / unit).zip(labels.iter().map(String::as_str)));
        let x =
            Axis::named(1.0 - 8.0 * unit..most + 4.0 * unit, self.degrees.iter().map(|d| f64::from(*d)).zip(labels).collect());
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, x, y)?;
            // One is drawn above the grid: it is what running in turn does.
            chart.level("ref", 1.0)?;
            let end = most.min(chart.y().max());
            chart.straight("ideal", (1.0, 1.0), (end, end))?;
            chart.own(|svg, place| {
                let (x, y) = place(1.0 + 0.72 * (end - 1.0), 1.0 + 0.72 * (end - 1.0));
                svg.text("it", (x - 8.0, y - 2.0), Anchor::End, "ideal ×N");
            })?;
            for line in self.lines {
                let of = |p: &DegreePoint, value: f64| (f64::from(p.degree), value);
                let high = line.points.iter().map(|p| of(p, p.interval.map_or(p.value, |i| i.1)));
                let low = line.points.iter().rev().map(|p| of(p, p.interval.map_or(p.value, |i| i.0)));
                if line.points.len() > 1 {
                    chart.hued(&line.sharing, |chart| {
                        chart.draw(Polygon::new(high.chain(low).collect::<Vec<_>>(), look("band")))
                    })?;
                }
                chart.line("ln", &line.sharing, line.points.iter().map(|p| of(p, p.value)))?;
            }
            for line in self.lines {
                for p in &line.points {
                    chart.mark(&line.sharing, p.informative, &p.title, |svg, place| {
                        svg.shape(shape(&line.sharing), "mk", place(f64::from(p.degree), p.value));
                    })?;
                }
            }
            chart.own(|svg, place| self.ends(svg, place))?;
            chart.own(|svg, place| self.failed(svg, place))
        })
    }

    /// Failures are at the top, where they can have no gain: a ✕ for each side by side, and below them how they failed.
    fn failed(&self, svg: &mut ThemedSvg, place: ToPanel) {
        let mut said = f64::NEG_INFINITY;
        for (i, failure) in self.failures.iter().enumerate() {
            let same = |f: &&Failure| f.degree == failure.degree;
            let rank = self.failures[..i].iter().filter(same).count();
            let all = self.failures.iter().filter(same).count();
            let (middle, top) = place(f64::from(failure.degree), f64::MAX);
            svg.open_mark("", &failure.title);
            let beside = 10.0 * (rank as f64 - (all as f64 - 1.0) / 2.0);
            svg.failure((middle + beside, top + 12.0), Anchor::Middle, &failure.why, "✕");
            if rank == 0 && middle - said > 40.0 {
                svg.failure((middle, top + 25.0), Anchor::Middle, &failure.why, &failure.why);
                said = middle;
            }
            svg.close();
        }
    }

    /// Labels at the true ends, moved apart so that none covers another.
    fn ends(&self, svg: &mut ThemedSvg, place: ToPanel) {
        let one = place(1.0, 1.0).1;
        let end = |l: &'_ ModeLine| l.points.last().map(|p| place(f64::from(p.degree), p.value));
        let mut ends: Vec<((f64, f64), &ModeLine)> = self.lines.iter().filter_map(|l| end(l).map(|at| (at, l))).collect();
        ends.sort_by(|a, b| a.0.1.total_cmp(&b.0.1));
        let mut before = f64::NEG_INFINITY;
        for ((x, y), line) in ends {
            let y = if (y - one).abs() < 9.0 { one - 9.0 } else { y }.max(before + 14.0);
            svg.open(family(&line.sharing));
            svg.text("lb", (x + 8.0, y + 4.0), Anchor::Start, &line.end);
            svg.close();
            before = y;
        }
    }
}
