//! Bars of one segment per member, against a capacity.

use super::{Anchor, Canvas, Drawing, Scale, WIDTH, family, grid, gutter};

/// One bar.
#[derive(Debug, Clone)]
pub struct Stack {
    pub label: String,
    pub sharing: String,
    /// One segment per member; empty where there is none.
    pub segments: Vec<f64>,
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

impl Stacks<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        // A capacity far above everything would squeeze the bars: then it is said, not drawn.
        let drawn = self.capacity.filter(|(value, _)| *value <= 2.5 * self.largest && *value > 0.0);
        let largest = drawn.map_or(self.largest, |(value, _)| value.max(self.largest));
        let (top, bottom) = (46.0, HEIGHT - 24.0);
        let y = Scale::from_zero(largest, bottom, top);
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
        let wide = BAR.min(slot - 3.0).max(3.0);
        let mut at = left + 0.25 * slot;
        let mut first = at;
        for (i, stack) in self.stacks.iter().enumerate() {
            let middle = at + 0.5 * slot;
            let x = middle - wide / 2.0;
            let class = format!("{}{}", family(&stack.sharing), if stack.informative { " inf" } else { "" });
            c.open_mark(&class, &stack.title);
            let mut sum = 0.0;
            for segment in &stack.segments {
                c.rect("seg", (x, y.px(sum + segment)), (wide, y.px(sum) - y.px(sum + segment)));
                sum += segment;
            }
            if stack.segments.is_empty() {
                let why = stack.failure.as_deref().unwrap_or("not measured");
                let alert = if why == "OOM" { "oom" } else { "none" };
                c.text_up(alert, (middle + 4.0, bottom - 5.0), &format!("✕ {why}"));
            } else {
                if let Some((low, high)) = stack.interval {
                    c.whisker(middle, y.px(low), y.px(high));
                }
                if self.stacks.len() <= 7 {
                    let top = y.px(stack.interval.map_or(sum, |i| i.1.max(sum))) - 6.0;
                    c.text("val", (middle, top), Anchor::Middle, &stack.text);
                }
            }
            c.close();
            at += slot;
            if self.stacks.get(i + 1).is_none_or(|next| next.label != stack.label) {
                c.text("t", ((first + at) / 2.0, bottom + 16.0), Anchor::Middle, &stack.label);
                at += 0.5 * slot;
                first = at;
            }
        }
        if let Some((value, _)) = drawn {
            c.line("capl", (left, y.px(value)), (right, y.px(value)));
        }
        Drawing { width: WIDTH, height: HEIGHT, body: c.into_markup() }
    }
}
