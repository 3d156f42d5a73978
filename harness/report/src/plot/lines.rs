//! Lines over degree, with bands, a line at 1 and the ideal ×N.

use super::{Anchor, Canvas, Drawing, Scale, WIDTH, family, gutter, shape};

/// One measured degree.
#[derive(Debug, Clone)]
pub struct Point {
    pub degree: u32,
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    pub informative: bool,
    pub title: String,
}

/// One sharing mode.
#[derive(Debug, Clone)]
pub struct Line {
    pub sharing: String,
    pub points: Vec<Point>,
    /// What stands at its end: `naive 1.92`.
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
    pub lines: &'a [Line],
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
        let (top, bottom) = (30.0, HEIGHT - 24.0);
        let y = Scale::from_zero(self.largest.max(1.2), bottom, top);
        let widest = self.lines.iter().map(|l| l.end.chars().count()).max().unwrap_or(0);
        let (left, right) = (gutter(&y), WIDTH - 14.0 - 6.9 * widest as f64);
        let most = f64::from(self.degrees.iter().copied().max().unwrap_or(2).max(2));
        let x = Scale::exact(1.0, most, left + 8.0, right);
        let mut c = Canvas::default();
        super::grid(&mut c, &y, (left, right + 4.0), self.caption);
        // One is drawn above the grid: it is what running in turn does.
        c.line("ref", (left, y.px(1.0)), (right + 4.0, y.px(1.0)));
        let ideal_end = most.min(y.max);
        c.line("ideal", (x.px(1.0), y.px(1.0)), (x.px(ideal_end), y.px(ideal_end)));
        let beside = 1.0 + 0.72 * (ideal_end - 1.0);
        c.text("it", (x.px(beside) - 8.0, y.px(beside) - 2.0), Anchor::End, "ideal ×N");
        let mut before = f64::NEG_INFINITY;
        for degree in self.degrees {
            let at = x.px(f64::from(*degree));
            if at - before >= 22.0 {
                c.text("t", (at, bottom + 16.0), Anchor::Middle, &format!("×{degree}"));
                before = at;
            }
        }
        for line in self.lines {
            let class = family(&line.sharing);
            c.open(class);
            let high = line.points.iter().map(|p| (p.degree, p.interval.map_or(p.value, |i| i.1)));
            let low = line.points.iter().rev().map(|p| (p.degree, p.interval.map_or(p.value, |i| i.0)));
            let band: Vec<_> = high.chain(low).map(|(d, v)| (x.px(f64::from(d)), y.px(v.max(0.0)))).collect();
            if line.points.len() > 1 {
                c.polygon("band", &band);
            }
            let through: Vec<_> = line.points.iter().map(|p| (x.px(f64::from(p.degree)), y.px(p.value))).collect();
            c.polyline("ln", &through);
            c.close();
        }
        for line in self.lines {
            for p in &line.points {
                let class = format!("{}{}", family(&line.sharing), if p.informative { " inf" } else { "" });
                c.open_mark(&class, &p.title);
                c.shape(shape(&line.sharing), "mk", (x.px(f64::from(p.degree)), y.px(p.value)));
                c.close();
            }
        }
        self.ends(&mut c, &x, &y);
        self.failed(&mut c, &x, top);
        Drawing { width: WIDTH, height: HEIGHT, body: c.into_markup() }
    }

    /// Failures stand at the top, where no gain of theirs can be: a ✕ for each beside each other, and below them how they failed.
    fn failed(&self, c: &mut Canvas, x: &Scale, top: f64) {
        let mut said = f64::NEG_INFINITY;
        for (i, failure) in self.failures.iter().enumerate() {
            let same = |f: &&Failure| f.degree == failure.degree;
            let rank = self.failures[..i].iter().filter(same).count();
            let all = self.failures.iter().filter(same).count();
            let middle = x.px(f64::from(failure.degree));
            let class = if failure.why == "OOM" { "oom" } else { "none" };
            c.open_mark("", &failure.title);
            c.text(class, (middle + 10.0 * (rank as f64 - (all as f64 - 1.0) / 2.0), top + 12.0), Anchor::Middle, "✕");
            if rank == 0 && middle - said > 40.0 {
                c.text(class, (middle, top + 25.0), Anchor::Middle, &failure.why);
                said = middle;
            }
            c.close();
        }
    }

    /// Labels at the true ends, pushed apart so that none covers another.
    fn ends(&self, c: &mut Canvas, x: &Scale, y: &Scale) {
        let mut ends: Vec<(f64, f64, &Line)> =
            self.lines.iter().filter_map(|l| l.points.last().map(|p| (y.px(p.value), x.px(f64::from(p.degree)), l))).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut before = f64::NEG_INFINITY;
        for (at, from, line) in ends {
            let at = if (at - y.px(1.0)).abs() < 9.0 { y.px(1.0) - 9.0 } else { at }.max(before + 14.0);
            c.open(family(&line.sharing));
            c.text("lb", (from + 8.0, at + 4.0), Anchor::Start, &line.end);
            c.close();
            before = at;
        }
    }
}
