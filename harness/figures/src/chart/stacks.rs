//! Bars of one segment per member, against a capacity; for failed groups, dotted outlines of what they needed.

use crate::draw::axis::Axis;
use crate::draw::chart::{Chart, DrawResult, Frame, charts};
use crate::draw::slots::{Place, Slots};
use crate::draw::themed::Anchor;
use crate::draw::themed::{ThemedSvg, text_width};
use crate::draw::{Drawing, WIDTH};

/// One bar.
#[derive(Debug, Clone, Default)]
pub struct Stack {
    pub label: String,
    /// The place of a mode that was not measured at this degree.
    pub vacant: bool,
    pub sharing: String,
    /// One segment per member; empty where there is none.
    pub segments: Vec<f64>,
    /// For a failed group, its members' solo footprints; empty if unknown.
    pub asked: Vec<f64>,
    /// Interval of the sum.
    pub interval: Option<(f64, f64)>,
    pub failure: Option<String>,
    pub indicative: bool,
    pub title: String,
    pub text: String,
}

impl Stack {
    /// A place that stays empty.
    pub fn vacant(label: &str) -> Self {
        Stack { label: label.into(), vacant: true, ..Stack::default() }
    }
}

/// A panel of stacks.
pub struct Stacks<'a> {
    pub caption: &'a str,
    pub stacks: &'a [Stack],
    /// The capacity of the device, and its text.
    pub capacity: Option<(f64, &'a str)>,
    /// Panels of one figure share a scale: the largest value of all of them.
    pub largest: f64,
}

const HEIGHT: f64 = 240.0;
const BAR: f64 = 26.0;
/// Outlines end here, in capacities.
const MOST: f64 = 1.7;

impl Stacks<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let asked = self.stacks.iter().map(|s| s.asked.iter().sum::<f64>()).fold(0.0, f64::max);
        let largest = self.largest.max(self.capacity.map_or(asked, |(value, _)| asked.min(MOST * value)));
        // A capacity far above everything would squeeze the bars: then it is said, not drawn.
        let drawn = self.capacity.filter(|(value, _)| *value <= 2.5 * largest && *value > 0.0);
        // Numbers stand above the stacks.
        let y = Axis::from_zero(drawn.map_or(1.18 * largest, |(value, _)| value.max(1.18 * largest)));
        let degrees: Vec<&[Stack]> = self.stacks.chunk_by(|a, b| a.label == b.label).collect();
        let gutter = y.gutter();
        let slots = Slots::over(WIDTH - gutter - 4.0, &degrees.iter().map(|d| d.len()).collect::<Vec<_>>(), BAR);
        let frame = Frame { top: 50.0, bottom: 24.0 + slots.sink(), sink: slots.sink(), ..Frame::of_values(self.caption, &y) };
        let labels: Vec<&str> = degrees.iter().map(|d| d[0].label.as_str()).collect();
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, slots.axis(&labels), y)?;
            if let Some((_, text)) = self.capacity {
                // Said where no bar can be, beside a piece of its line.
                let text = if drawn.is_some() { text.to_string() } else { format!("{text}, far above") };
                chart.own(|svg, _| {
                    svg.line("capl", (frame.left, 22.0), (frame.left + 18.0, 22.0));
                    svg.text("capt", (frame.left + 24.0, 26.0), Anchor::Start, &text);
                })?;
            }
            for (g, degree) in degrees.iter().enumerate() {
                for (k, stack) in degree.iter().enumerate().filter(|(_, s)| !s.vacant) {
                    self.stack(&mut chart, stack, slots.left(g, k), slots.wide)?;
                }
            }
            let stands = |s: &'_ Stack| !s.vacant;
            let places = degrees
                .iter()
                .map(|d| d.iter().map(|s| stands(s).then_some(Place { sharing: &s.sharing, below: "" })).collect::<Vec<_>>());
            slots.marks(&mut chart, &places.collect::<Vec<_>>())?;
            drawn.map_or(Ok(()), |(value, _)| chart.level("capl", value))
        })
    }

    fn stack(&self, chart: &mut Chart, stack: &Stack, (middle, left): (f64, f64), wide: f64) -> DrawResult<()> {
        let highest = chart.y().max();
        chart.mark(&stack.sharing, stack.indicative, &stack.title, |svg, place| {
            let place = |_: f64, value: f64| (place(middle, value).0 + left + wide / 2.0, place(middle, value).1);
            // Segments on each other, in a class; says how high they are.
            let pile = |svg: &mut ThemedSvg, class: &str, segments: &[f64]| {
                segments.iter().fold(0.0, |sum, segment| {
                    let end = highest.min(sum + segment);
                    let ((x, low), (_, top)) = (place(middle, sum), place(middle, end));
                    if end > sum {
                        svg.rect(class, (x - wide / 2.0, top), (wide, low - top));
                    }
                    end
                })
            };
            if !stack.segments.is_empty() {
                let sum = pile(svg, "seg", &stack.segments);
                if let Some((low, high)) = stack.interval {
                    svg.whisker(place(middle, low), place(middle, high.min(highest)), false);
                    if high > highest {
                        svg.beyond(place(middle, highest));
                    }
                }
                let (x, top) = place(middle, stack.interval.map_or(sum, |i| i.1.max(sum)));
                if text_width(&stack.text) <= wide {
                    svg.text("val", (x, top - 6.0), Anchor::Middle, &stack.text);
                } else if wide >= 10.0 {
                    svg.text_up("val up", (x + 4.0, top - 7.0), &stack.text);
                }
            } else if stack.asked.is_empty() {
                let (x, bottom) = place(middle, 0.0);
                svg.failure_up((x + 4.0, bottom - 5.0), stack.failure.as_deref().unwrap_or("not measured"));
            } else {
                let (x, top) = place(middle, pile(svg, "asked", &stack.asked));
                svg.text("oom", (x, top - 4.0), Anchor::Middle, "✕");
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_out_of_memory_is_outlined_as_high_as_it_asked_for() {
        let stack = |asked: Vec<f64>| Stack {
            label: "×3".into(),
            sharing: "mps".into(),
            asked,
            failure: Some("OOM".into()),
            ..Stack::default()
        };
        let draw =
            |s: &[Stack]| Stacks { caption: "GiB", stacks: s, capacity: Some((40.0, "40 GiB")), largest: 20.0 }.draw().body;
        let known = draw(&[stack(vec![15.0; 3])]);
        assert_eq!((known.matches("class=\"asked\"").count(), known.matches("class=\"capl\"").count()), (3, 2));
        let unknown = draw(&[stack(Vec::new())]);
        assert!(unknown.contains("✕ OOM") && !unknown.contains("asked"));
    }
}
