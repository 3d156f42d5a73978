//! One metric over the blocks of a launch, a line for each number of threads; what was published of a point stands on its own place,
//! joined to what was measured.

use super::lines::spread;
use crate::draw::axis::{Axis, apart};
use crate::draw::chart::{Frame, ToPanel, charts};
use crate::draw::themed::{Anchor, Shape, ThemedSvg};
use crate::draw::{Drawing, WIDTH};

/// One point of a line.
#[derive(Debug, Clone)]
pub struct LaunchMark {
    pub blocks: f64,
    /// Shares; a point that was only published has no measured one.
    pub value: Option<f64>,
    pub interval: Option<(f64, f64)>,
    pub published: Option<f64>,
    pub indicative: bool,
    pub title: String,
}

/// The points of one number of threads, by blocks.
#[derive(Debug, Clone)]
pub struct LaunchLine {
    pub threads: String,
    pub points: Vec<LaunchMark>,
}

/// A panel: one metric.
pub struct Launches<'a> {
    /// `SMACT, %`
    pub caption: &'a str,
    pub lines: &'a [LaunchLine],
}

const HEIGHT: f64 = 262.0;
/// The head, with its caption, what the marks are, and the name of the labels' column.
const HEAD: f64 = 46.0;
/// Height of a label.
const LINE: f64 = 13.0;

/// Hue and mark of each line, in their order; further ones are like the last.
const LOOKS: [(&str, Shape); 7] = [
    ("w5", Shape::Circle),
    ("w3", Shape::Square),
    ("w0", Shape::Triangle),
    ("w2", Shape::Diamond),
    ("w1", Shape::Down),
    ("w4", Shape::Pentagon),
    ("other", Shape::Hexagon),
];

fn look(nth: usize) -> (&'static str, Shape) {
    LOOKS[nth.min(LOOKS.len() - 1)]
}

impl Launches<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let y = Axis::from_zero(1.0).labelled(|share| format!("{:.0}", share * 100.0));
        let widest = self.lines.iter().map(|l| l.threads.chars().count()).max().unwrap_or(0).max("threads".len());
        let right = 28.0 + 6.9 * widest as f64;
        let frame = Frame { top: HEAD, right, bottom: 44.0, below: "blocks of a launch", ..Frame::of_values(self.caption, &y) };
        let mut blocks: Vec<f64> = self.lines.iter().flat_map(|l| &l.points).map(|p| p.blocks).collect();
        blocks.sort_by(f64::total_cmp);
        blocks.dedup();
        let (first, last) = (blocks.first().copied().unwrap_or(1.0), blocks.last().copied().unwrap_or(1.0));
        let (low, high) = (first / 1.6, last.max(first * 10.0) * 1.3);
        let units = (WIDTH - frame.left - right) / (high / low).ln();
        let named: Vec<String> = blocks.iter().map(|b| format!("{b:.0}")).collect();
        // From the right, so that the largest stays.
        let middles = blocks.iter().map(|b| -(b / low).ln() * units).rev();
        let mut labels = apart(middles.zip(named.iter().rev().map(String::as_str)));
        labels.reverse();
        let x = Axis::log_named(low..high, blocks.into_iter().zip(labels).filter(|(_, label)| !label.is_empty()).collect());
        let left = frame.left;
        let published = self.lines.iter().flat_map(|l| &l.points).any(|p| p.published.is_some());
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, x, y)?;
            chart.own(|svg, _| {
                if published {
                    svg.open("solo");
                    svg.shape(Shape::Cross, "mk", (left + 5.0, 25.0));
                    svg.close();
                    svg.text("it", (left + 14.0, 29.0), Anchor::Start, "published, joined to what was measured");
                }
                svg.text("it", (WIDTH - right + 20.0, HEAD - 6.0), Anchor::Start, "threads");
            })?;
            for (nth, line) in self.lines.iter().enumerate() {
                chart.own(|svg, _| svg.open(look(nth).0))?;
                let measured = || line.points.iter().filter_map(|p| Some((p.blocks, p.value?)));
                chart.path("ln thin", measured())?;
                chart.own(|svg, place| line.draw(svg, place, look(nth)))?;
                chart.own(|svg, _| svg.close())?;
            }
            chart.own(|svg, place| self.ends(svg, place))
        })
    }

    /// The number of threads at the height of each line's end, as far as none covers another.
    fn ends(&self, svg: &mut ThemedSvg, place: ToPanel) {
        let end = |l: &LaunchLine| l.points.iter().rev().find_map(|p| Some(place(p.blocks, p.value?)));
        let mut ends: Vec<((f64, f64), usize)> =
            self.lines.iter().enumerate().filter_map(|(nth, l)| Some((end(l)?, nth))).collect();
        // What lies at the same height stands in the order of the threads, the most on top.
        ends.sort_by(|a, b| a.0.1.round().total_cmp(&b.0.1.round()).then(b.1.cmp(&a.1)));
        let (column, foot) = (place(f64::MAX, 0.0).0 + 8.0, place(1.0, 0.0).1);
        let heights = spread(&ends.iter().map(|e| e.0.1).collect::<Vec<_>>(), LINE, foot);
        for (((x, y), nth), height) in ends.into_iter().zip(heights) {
            svg.open(look(nth).0);
            svg.line("lead", (x + 5.0, y), (column - 2.0, height));
            svg.shape(look(nth).1, "mk", (column + 4.0, height));
            svg.text("lb", (column + 12.0, height + 4.0), Anchor::Start, &self.lines[nth].threads);
            svg.close();
        }
    }
}

impl LaunchLine {
    /// Its marks, each with what was published of it.
    fn draw(&self, svg: &mut ThemedSvg, place: ToPanel, (hue, shape): (&str, Shape)) {
        for p in &self.points {
            let class = format!("{hue}{}", if p.indicative { " inf" } else { "" });
            svg.open_mark(&class, &p.title);
            if let Some((low, high)) = p.interval {
                // In the hue of its line: intervals of several lines stand over each other.
                svg.line("ln thin", place(p.blocks, low), place(p.blocks, high.min(1.0)));
            }
            if let Some(published) = p.published {
                if let Some(value) = p.value {
                    svg.line("lead", place(p.blocks, value), place(p.blocks, published));
                }
                svg.shape(Shape::Cross, "mk", place(p.blocks, published));
            }
            if let Some(value) = p.value {
                svg.shape(shape, "mk", place(p.blocks, value));
            }
            svg.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(blocks: f64, value: Option<f64>, published: Option<f64>) -> LaunchMark {
        LaunchMark { blocks, value, interval: None, published, indicative: false, title: format!("{blocks} blocks") }
    }

    #[test]
    fn a_published_point_is_drawn_in_the_group_of_the_measured_one_and_joined_to_it() {
        let line = LaunchLine { threads: "32".into(), points: vec![mark(1.0, Some(0.2), None), mark(8.0, Some(0.5), Some(0.9))] };
        let drawing = Launches { caption: "SMACT, %", lines: &[line] }.draw();
        let groups: Vec<&str> = drawing.body.split("<title>").skip(1).map(|g| &g[..g.find("</g>").unwrap()]).collect();
        assert_eq!(
            groups.iter().map(|g| (g.matches("mk").count(), g.matches("lead").count())).collect::<Vec<_>>(),
            [(1, 0), (2, 1)]
        );
        assert!(drawing.body.contains("published, joined"));
    }

    #[test]
    fn every_line_has_its_label_and_a_look_of_its_own() {
        let lines: Vec<LaunchLine> = (0..7)
            .map(|i| LaunchLine {
                threads: format!("t{i}"),
                points: vec![mark(1.0, Some(1.0), None), mark(131_072.0, Some(1.0), None)],
            })
            .collect();
        let drawing = Launches { caption: "GRACT, %", lines: &lines }.draw();
        let texts = drawing.body.split(r#"<text class="lb""#).skip(1);
        let labels: Vec<&str> = texts.filter_map(|t| t.split_once('>')?.1.split('<').next()).collect();
        assert_eq!(labels, ["t6", "t5", "t4", "t3", "t2", "t1", "t0"], "at one height the most threads are on top");
        assert!(!drawing.body.contains("published"));
        for (i, (hue, shape)) in LOOKS.iter().enumerate() {
            assert!(LOOKS[..i].iter().all(|(h, s)| h != hue && s != shape));
        }
    }
}
