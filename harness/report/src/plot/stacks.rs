//! Bars of one segment per member, against a capacity; where a group failed, dotted outlines of what it asked for.

use super::{Anchor, Canvas, Drawing, Scale, WIDTH, family, grid, gutter};

/// One bar.
#[derive(Debug, Clone, Default)]
pub struct Stack {
    pub label: String,
    pub sharing: String,
    /// One segment per member; empty where there is none.
    pub segments: Vec<f64>,
    /// Of a group that failed, what its members ask for when they are alone; empty where that is not known.
    pub asked: Vec<f64>,
    /// Interval of the sum.
    pub interval: Option<(f64, f64)>,
    pub failure: Option<String>,
    pub informative: bool,
    pub title: String,
    pub text: String,
}

/// A panel of stacks.
pub struct Stacks<'a> {
    pub caption: &'a str,
    pub stacks: &'a [Stack],
    /// What the device has, and how to say it.
    pub capacity: Option<(f64, &'a str)>,
    /// Panels of one figure share a scale: the largest value of all of them.
    pub largest: f64,
}

const HEIGHT: f64 = 226.0;
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
        let top_value = drawn.map_or(largest, |(value, _)| value.max(largest));
        let (top, bottom) = (50.0, HEIGHT - 24.0);
        let y = Scale::from_zero(top_value, bottom, top);
        let (left, right) = (gutter(&y), WIDTH - 4.0);
        let mut c = Canvas::default();
        grid(&mut c, &y, (left, right), self.caption);
        if let Some((_, text)) = self.capacity {
            // Said where no bar can be, beside a piece of its line.
            let text = if drawn.is_some() { text.to_string() } else { format!("{text}, far above") };
            c.line("capl", (left, 22.0), (left + 18.0, 22.0));
            c.text("capt", (left + 24.0, 26.0), Anchor::Start, &text);
        }
        // Stacks of one degree stand together, a gap as wide as half a stack between degrees.
        let breaks = self.stacks.windows(2).filter(|w| w[0].label != w[1].label).count();
        let slot = (right - left) / (self.stacks.len() as f64 + 0.5 * (breaks as f64 + 1.0)).max(1.0);
        let wide = BAR.min(slot - if slot < 8.0 { 1.0 } else { 3.0 }).max(1.5);
        let mut at = left + 0.25 * slot;
        let (mut first, mut labelled) = (at, f64::NEG_INFINITY);
        for (i, stack) in self.stacks.iter().enumerate() {
            let middle = at + 0.5 * slot;
            self.stack(&mut c, &y, stack, (middle, wide));
            at += slot;
            if self.stacks.get(i + 1).is_none_or(|next| next.label != stack.label) {
                let (centre, half) = ((first + at) / 2.0, 3.6 * stack.label.chars().count() as f64);
                if centre - half > labelled {
                    c.text("t", (centre, bottom + 16.0), Anchor::Middle, &stack.label);
                    labelled = centre + half + 2.0;
                }
                at += 0.5 * slot;
                first = at;
            }
        }
        if let Some((value, _)) = drawn {
            c.line("capl", (left, y.px(value)), (right, y.px(value)));
        }
        Drawing { width: WIDTH, height: HEIGHT, body: c.into_markup() }
    }

    fn stack(&self, c: &mut Canvas, y: &Scale, stack: &Stack, (middle, wide): (f64, f64)) {
        let (x, bottom) = (middle - wide / 2.0, y.px(0.0));
        let class = format!("{}{}", family(&stack.sharing), if stack.informative { " inf" } else { "" });
        c.open_mark(&class, &stack.title);
        let mut sum = 0.0;
        for segment in &stack.segments {
            c.rect("seg", (x, y.px(sum + segment)), (wide, y.px(sum) - y.px(sum + segment)));
            sum += segment;
        }
        if stack.segments.is_empty() {
            let why = stack.failure.as_deref().unwrap_or("not measured");
            for segment in &stack.asked {
                let end = (sum + segment).min(y.max);
                if end > sum {
                    c.rect("asked", (x, y.px(end)), (wide, y.px(sum) - y.px(end)));
                }
                sum = end;
            }
            if stack.asked.is_empty() {
                let alert = if why == "OOM" { "oom" } else { "none" };
                c.text_up(alert, (middle + 4.0, bottom - 5.0), &format!("✕ {why}"));
            } else {
                c.text("oom", (middle, y.px(sum) - 4.0), Anchor::Middle, "✕");
            }
        } else {
            if let Some((low, high)) = stack.interval {
                c.whisker(middle, y.px(low), y.px(high.min(y.max)));
            }
            if self.stacks.len() <= 7 {
                let top = y.px(stack.interval.map_or(sum, |i| i.1.max(sum))) - 6.0;
                c.text("val", (middle, top), Anchor::Middle, &stack.text);
            }
        }
        c.close();
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
