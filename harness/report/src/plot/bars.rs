//! Grouped bars from zero with whiskers; a failed cell keeps its place.

use super::{Anchor, Canvas, Drawing, Scale, WIDTH, family, grid, gutter};

/// One bar.
#[derive(Debug, Clone, Default)]
pub struct Bar {
    pub sharing: String,
    pub value: Option<f64>,
    pub interval: Option<(f64, f64)>,
    /// A second reading of the same kind, as a tick: the 95th percentile beside the mean.
    pub tick: Option<f64>,
    /// What the bar is held against, as a dotted line across it.
    pub reference: Option<f64>,
    /// Why there is none: `OOM`, `crashed`, `refused`.
    pub failure: Option<String>,
    /// Not valid: drawn open.
    pub informative: bool,
    /// Hover value.
    pub title: String,
    /// Number above the bar, where there is room.
    pub text: String,
}

/// Bars side by side over one label.
#[derive(Debug, Clone)]
pub struct BarGroup {
    pub label: String,
    pub bars: Vec<Bar>,
}

/// A panel of bars.
#[derive(Default)]
pub struct Bars<'a> {
    /// `seconds per epoch`.
    pub caption: &'a str,
    pub groups: &'a [BarGroup],
    /// Where panels share a scale: the largest value of all of them.
    pub largest: Option<f64>,
    /// What cannot be exceeded, dashed, and how to say it.
    pub limit: Option<(f64, &'a str)>,
    /// The axis ends here, and references above it are written: a share ends at 1.
    pub ceiling: Option<f64>,
}

const BAR: f64 = 19.0;
const HEIGHT: f64 = 214.0;

impl Bars<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let bars = || self.groups.iter().flat_map(|g| &g.bars);
        let high = |b: &Bar| b.interval.map(|i| i.1).into_iter().chain(b.value).chain(b.tick).reduce(f64::max);
        let own = bars().filter_map(high).chain(bars().filter_map(|b| b.reference)).fold(0.0, f64::max);
        let limit = self.limit.filter(|l| l.0 <= 2.5 * self.largest.unwrap_or(own));
        let largest = self.largest.unwrap_or(own).max(limit.map_or(0.0, |l| l.0));
        let largest = self.ceiling.unwrap_or(largest);
        let (top, bottom) = (30.0, HEIGHT - 24.0);
        let y = Scale::from_zero(largest, bottom, top);
        let (left, right) = (gutter(&y), WIDTH - 4.0);
        let mut c = Canvas::default();
        grid(&mut c, &y, (left, right), self.caption);
        if let Some((value, text)) = limit {
            c.line("capl", (left, y.px(value)), (right, y.px(value)));
            let above = if y.px(value) - 5.0 < 24.0 { y.px(value) + 13.0 } else { y.px(value) - 5.0 };
            c.text("capt", (right, above), Anchor::End, text);
        }
        let slot = (right - left) / self.groups.len().max(1) as f64;
        let most = self.groups.iter().map(|g| g.bars.len()).max().unwrap_or(1) as f64;
        let gap = if slot / most < 8.0 { 1.0 } else { 3.0 };
        let wide = BAR.min((slot - 6.0) / most - gap).max(1.5);
        let labels = most <= 1.0 && self.groups.len() <= 7;
        let mut labelled = f64::NEG_INFINITY;
        for (i, group) in self.groups.iter().enumerate() {
            let middle = left + (i as f64 + 0.5) * slot;
            let begin = middle - (group.bars.len() as f64 * (wide + gap) - gap) / 2.0;
            for (k, bar) in group.bars.iter().enumerate() {
                let x = begin + k as f64 * (wide + gap);
                let class = format!("{}{}", family(&bar.sharing), if bar.informative { " inf" } else { "" });
                c.open_mark(&class, &bar.title);
                match bar.value {
                    Some(value) => {
                        c.rect("bar", (x, y.px(value)), (wide, bottom - y.px(value)));
                        if let Some(tick) = bar.tick.filter(|t| *t <= y.max) {
                            c.line("p95", (x - 1.0, y.px(tick)), (x + wide + 1.0, y.px(tick)));
                        }
                        if let Some((low, high)) = bar.interval {
                            c.whisker(x + wide / 2.0, y.px(low.max(0.0)), y.px(high.min(y.max)));
                        }
                        if labels {
                            let at = y.px(bar.interval.map_or(value, |i| i.1)) - 6.0;
                            c.text("val", (x + wide / 2.0, at), Anchor::Middle, &bar.text);
                        }
                    }
                    None => {
                        let why = bar.failure.as_deref().unwrap_or("not measured");
                        let alert = if why == "OOM" { "oom" } else { "none" };
                        c.text_up(alert, (x + wide / 2.0 + 4.0, bottom - 5.0), &format!("✕ {why}"));
                    }
                }
                c.close();
            }
            self.references(&mut c, &y, group, (begin, wide, gap), slot);
            let half = 3.6 * group.label.chars().count() as f64;
            if middle - half > labelled {
                c.text("t", (middle, bottom + 16.0), Anchor::Middle, &group.label);
                labelled = middle + half + 2.0;
            }
        }
        Drawing { width: WIDTH, height: HEIGHT, body: c.into_markup() }
    }

    /// Dotted across bars that share a reference; one above the axis is written once.
    fn references(&self, c: &mut Canvas, y: &Scale, group: &BarGroup, (begin, wide, gap): (f64, f64, f64), slot: f64) {
        let at = |k: usize| begin + k as f64 * (wide + gap);
        let mut above: Option<f64> = None;
        let mut k = 0;
        while let Some(bar) = group.bars.get(k) {
            let same = |b: &&Bar| b.reference.zip(bar.reference).is_some_and(|(a, b)| (a - b).abs() < 1e-9);
            let run = group.bars[k..].iter().take_while(same).count().max(1);
            match bar.reference {
                Some(value) if value <= y.max => {
                    c.line("asked", (at(k) - 2.0, y.px(value)), (at(k + run - 1) + wide + 2.0, y.px(value)));
                }
                Some(value) => above = Some(above.map_or(value, |a: f64| a.max(value))),
                None => {}
            }
            k += run;
        }
        if let Some(value) = above {
            let middle = (at(0) + at(group.bars.len().max(1) - 1) + wide) / 2.0;
            c.text(
                "t",
                (middle, y.px(y.max) - 5.0),
                Anchor::Middle,
                &if slot < 46.0 { "↑".to_string() } else { format!("Σ {value:.1} ↑") },
            );
        }
    }
}
