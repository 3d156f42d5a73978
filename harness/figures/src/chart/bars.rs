//! Grouped bars from zero with whiskers, whole or of one segment per member; a failed cell keeps its place. What all of them
//! are compared with is a line across.

use crate::draw::axis::Axis;
use crate::draw::chart::{Chart, DrawResult, Frame, ToPanel, charts};
use crate::draw::marks::{self, PublishedMark};
use crate::draw::slots::{Place, Slots, reach};
use crate::draw::themed::{Anchor, ThemedSvg, text_width};
use crate::draw::{Drawing, WIDTH};

/// One bar.
#[derive(Debug, Clone, Default)]
pub struct Bar {
    pub sharing: String,
    /// Under its mark: the instance of a member, `2g`.
    pub below: String,
    pub value: Option<f64>,
    /// Of a stack one segment per member.
    pub segments: Vec<f64>,
    /// Of the stack of a failed group its members' solo footprints; empty if unknown.
    pub asked: Vec<f64>,
    pub interval: Option<(f64, f64)>,
    /// The values of its repetitions, in their order.
    pub runs: Vec<f64>,
    pub published: Option<PublishedMark>,
    /// A second reading of the same kind, as a tick: the 95th percentile beside the mean.
    pub tick: Option<f64>,
    /// The reference value of the bar, as a dotted line across it.
    pub reference: Option<f64>,
    /// Why there is none: `OOM`, `crashed`, `refused`.
    pub failure: Option<String>,
    /// Not valid: drawn open.
    pub indicative: bool,
    /// Invented by a model, in a figure with measured ones: hatched.
    pub simulated: bool,
    /// Hover value.
    pub title: String,
    /// Number above the bar, if there is room.
    pub text: String,
}

impl Bar {
    /// Its estimate, and the highest of what is drawn beside it: the end of its interval, a repetition, a published value.
    pub fn reach(&self) -> Option<(f64, Option<f64>)> {
        let beside = self.interval.map(|i| i.1).into_iter().chain(self.published.as_ref().map(|p| p.high));
        let highest = beside.chain(self.runs.iter().copied()).reduce(f64::max);
        Some((self.value?.max(self.tick.unwrap_or(0.0)), highest))
    }
}

/// Bars side by side over one label, each mode at its place; a place may be empty.
#[derive(Debug, Clone)]
pub struct BarGroup {
    pub label: String,
    pub bars: Vec<Option<Bar>>,
}

/// A panel of bars.
#[derive(Default)]
pub struct Bars<'a> {
    /// `seconds per epoch`.
    pub caption: &'a str,
    pub groups: &'a [BarGroup],
    /// What the bars are compared with, as a line with its interval; its text says what it is: `solo 1.52`.
    pub level: Option<&'a Bar>,
    /// If panels share a scale: the largest value of all of them, levels included.
    pub largest: Option<f64>,
    /// A limit that cannot be exceeded, dashed, and its text.
    pub limit: Option<(f64, &'a str)>,
    /// Bars are stacks.
    pub stacked: bool,
    /// The axis ends here, and references above it are written: a share ends at 1.
    pub ceiling: Option<f64>,
}

const BAR: f64 = 22.0;
const STACK: f64 = 26.0;
/// Outlines of what a failed group asked for end here, in capacities.
const MOST: f64 = 1.7;
const HEIGHT: f64 = 240.0;
/// Width and height of a digit of a number above its bar.
const DIGIT: f64 = 6.4;
const LINE: f64 = 12.0;
/// Above the largest value of panels that share a scale: for numbers of five digits that are written upwards.
const SHARED_ROOM: f64 = 1.3;

impl Bars<'_> {
    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups.iter().flat_map(|g| g.bars.iter().flatten())
    }

    /// The largest value that the axis shows, limits aside.
    fn reach(&self) -> f64 {
        let own = || {
            self.bars().filter_map(|b| b.reference).fold(reach(self.bars().chain(self.level).filter_map(Bar::reach)), f64::max)
        };
        let asked = self.bars().map(|b| b.asked.iter().sum::<f64>()).fold(0.0, f64::max);
        self.largest.unwrap_or_else(own).max(self.limit.map_or(asked, |(value, _)| asked.min(MOST * value)))
    }

    /// The vertical axis, the places of bars, and the margins above and on the left.
    fn layout(&self, largest: f64) -> (Axis, Slots, f64, f64) {
        let named = self.bars().any(|b| !b.below.is_empty());
        let beyond = self.bars().filter_map(|b| b.reference).any(|r| self.ceiling.is_some_and(|highest| r > highest));
        let top = match (&self.level, beyond) {
            (None, _) => 30.0,
            (Some(_), false) => 44.0,
            // What lies above the axis is written there, below the text of the level.
            (Some(_), true) => 51.0,
        };
        // The gutter depends on the axis, and the axis on the room for numbers: two steps are enough.
        let gutter = Axis::from_zero(self.ceiling.unwrap_or(largest)).gutter();
        let slots = Slots::over(WIDTH - gutter - 4.0, &self.places(), BAR).named(named);
        let height = HEIGHT - top - 24.0 - slots.sink();
        // A shared scale must not depend on this panel's numbers: where its room is short they are written into the bars.
        let numbers = Numbers::of(self.bars(), slots.wide);
        let room = if self.largest.is_some() { SHARED_ROOM } else { height / (height - numbers.room()) };
        let y = Axis::from_zero(self.ceiling.unwrap_or(largest * room));
        let left = gutter.max(y.gutter());
        (y, slots, top, left)
    }

    fn places(&self) -> Vec<usize> {
        self.groups.iter().map(|g| g.bars.len()).collect()
    }

    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let reach = self.reach();
        // A capacity far above everything would squeeze the bars.
        let limit = self.limit.filter(|(value, _)| *value <= 2.5 * reach && *value > 0.0);
        let highest = limit.map_or(0.0, |(value, _)| value);
        let (y, slots, top, left) = if self.stacked {
            // Numbers stand above the stacks.
            let y = Axis::from_zero(highest.max(1.18 * reach));
            let left = y.gutter();
            (y, Slots::over(WIDTH - left - 4.0, &self.places(), STACK), 50.0, left)
        } else {
            self.layout(reach.max(highest))
        };
        let numbers = Numbers::of(self.bars(), slots.wide);
        let sink = slots.sink();
        let frame = Frame { top, bottom: 24.0 + sink, left, sink, ..Frame::of_values(self.caption, &y) };
        let labels: Vec<&str> = self.groups.iter().map(|g| g.label.as_str()).collect();
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, slots.axis(&labels), y)?;
            match self.limit.filter(|_| self.stacked) {
                // Said where no bar can be, beside a piece of its line.
                Some((_, text)) => chart.own(|svg, _| {
                    let text = if limit.is_some() { text.to_string() } else { format!("{text}, far above") };
                    svg.line("capl", (left, 22.0), (left + 18.0, 22.0));
                    svg.text("capt", (left + 24.0, 26.0), Anchor::Start, &text);
                })?,
                None => limit.map_or(Ok(()), |limit| capacity(&mut chart, limit))?,
            }
            // Below the bars, so that it crosses none of their numbers.
            if let Some(level) = self.level {
                self::level(&mut chart, level, frame.left)?;
            }
            for (g, group) in self.groups.iter().enumerate() {
                for (k, bar) in group.bars.iter().enumerate().filter_map(|(k, bar)| Some((k, bar.as_ref()?))) {
                    let classes: &[&str] = if bar.simulated { &["sim"] } else { &[] };
                    chart.own(|svg, _| classes.iter().for_each(|class| svg.open(class)))?;
                    if self.stacked {
                        stack(&mut chart, bar, slots.left(g, k), slots.wide)?;
                    } else {
                        draw(&mut chart, bar, &slots, (g, k), &numbers, frame.top)?;
                    }
                    chart.own(|svg, _| classes.iter().for_each(|_| svg.close()))?;
                }
                references(&mut chart, group, &slots, g)?;
            }
            let stand = self.groups.iter().map(|g| {
                let places = g.bars.iter().map(|b| b.as_ref().map(|b| Place { sharing: &b.sharing, below: &b.below }));
                places.collect::<Vec<_>>()
            });
            slots.marks(&mut chart, &stand.collect::<Vec<_>>())?;
            limit.filter(|_| self.stacked).map_or(Ok(()), |(value, _)| chart.level("capl", value))
        })
    }
}

/// A limit as a line across, and its text in the head, where no number of a bar can be.
fn capacity(chart: &mut Chart, (value, text): (f64, &str)) -> DrawResult<()> {
    chart.level("capl", value)?;
    chart.own(|svg, _| {
        let from = WIDTH - 4.0 - text_width(text);
        svg.line("capl", (from - 24.0, 25.0), (from - 6.0, 25.0));
        svg.text("capt", (from, 29.0), Anchor::Start, text);
    })
}

/// How the numbers above bars are written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Numbers {
    Across,
    /// Upwards, with the longest as long as this.
    Up(f64),
    None,
}

impl Numbers {
    fn of<'b>(bars: impl Iterator<Item = &'b Bar>, wide: f64) -> Numbers {
        let longest = bars.filter(|b| b.value.is_some()).map(|b| b.text.chars().count()).max().unwrap_or(0) as f64;
        match longest * DIGIT {
            0.0 => Numbers::None,
            long if long <= wide + 2.0 => Numbers::Across,
            long if wide >= LINE - 2.0 => Numbers::Up(long),
            _ => Numbers::None,
        }
    }

    /// Height above the highest bar.
    fn room(self) -> f64 {
        match self {
            Numbers::Across => 16.0,
            Numbers::Up(long) => long + 11.0,
            Numbers::None => 0.0,
        }
    }

    /// Write one above a bar that ends at `top`; where there is no room, into the bar.
    fn write(self, svg: &mut ThemedSvg, (x, top): (f64, f64), ceiling: f64, text: &str) {
        let top = if top - self.room() < ceiling - 4.0 { top + self.room() } else { top };
        match self {
            Numbers::Across => svg.text("val", (x, top - 5.0), Anchor::Middle, text),
            Numbers::Up(_) => svg.text_up("val up", (x + 4.0, top - 7.0), text),
            Numbers::None => {}
        }
    }
}

fn draw(chart: &mut Chart, bar: &Bar, slots: &Slots, (g, k): (usize, usize), numbers: &Numbers, ceiling: f64) -> DrawResult<()> {
    let highest = chart.y().max();
    let ((middle, left), wide) = (slots.left(g, k), slots.wide);
    chart.mark(&bar.sharing, bar.indicative, &bar.title, |svg, place| {
        let at = |value: f64, beside: f64| (place(middle, value).0 + left + beside, place(middle, value).1);
        let Some(value) = bar.value else {
            let why = bar.failure.as_deref().unwrap_or("not measured");
            let (x, bottom) = at(0.0, wide / 2.0);
            if wide < LINE - 3.0 {
                return svg.failure((x, bottom - 5.0), Anchor::Middle, why, "✕");
            }
            return svg.failure_up((x + 4.0, bottom - 5.0), why);
        };
        let corner = at(value, 0.0);
        svg.rect("bar", corner, (wide, at(0.0, 0.0).1 - corner.1));
        if let Some(tick) = bar.tick.filter(|t| *t <= highest) {
            svg.line("p95", at(tick, -1.0), at(tick, wide + 1.0));
        }
        if let Some((low, high)) = bar.interval {
            svg.whisker(at(low, wide / 2.0), at(high.min(highest), wide / 2.0), false);
            if high > highest {
                svg.beyond(at(highest, wide / 2.0));
            }
        }
        marks::repetitions(svg, &bar.runs, wide, |value| at(value.min(highest), wide / 2.0));
        if let Some(mark) = &bar.published {
            marks::published(svg, mark, highest, |value| at(value, wide / 2.0));
        }
        let end = bar.reach().map_or(value, |(value, beside)| beside.unwrap_or(value).max(value)).min(highest);
        numbers.write(svg, at(end, wide / 2.0), ceiling, &bar.text);
    })
}

fn stack(chart: &mut Chart, stack: &Bar, (middle, left): (f64, f64), wide: f64) -> DrawResult<()> {
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
            if let Some(mark) = &stack.published {
                marks::published(svg, mark, highest, |value| place(middle, value));
            }
            let (x, top) = place(middle, stack.reach().and_then(|(_, beside)| beside).unwrap_or(sum).clamp(sum, highest));
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

/// A line from edge to edge with the band of its interval, and its text in the head, where no bar can be. Without a hover text it is
/// no mark of its own.
fn level(chart: &mut Chart, level: &Bar, left: f64) -> DrawResult<()> {
    let (from, to) = (chart.x().min(), chart.x().max());
    let draw = |svg: &mut ThemedSvg, place: ToPanel| {
        svg.line("lvl", (left, 25.0), (left + 18.0, 25.0));
        svg.text("it", (left + 24.0, 29.0), Anchor::Start, &level.text);
        let Some(value) = level.value else { return };
        if let Some((low, high)) = level.interval {
            let ((x, top), (right, bottom)) = (place(from, high), place(to, low));
            svg.rect("band", (x, top), (right - x, bottom - top));
        }
        svg.line("lvl", place(from, value), place(to, value));
    };
    if level.title.is_empty() {
        chart.hued(&level.sharing, |chart| chart.own(draw))?;
    } else {
        chart.mark(&level.sharing, level.indicative, &level.title, draw)?;
    }
    // Where no bar can be, right of them.
    let highest = chart.y().max();
    level.published.as_ref().map_or(Ok(()), |mark| {
        chart.own(|svg, place| marks::published(svg, mark, highest, |value| (place(to, value).0 - 7.0, place(to, value).1)))
    })
}

/// Dotted lines across consecutive bars that share a reference.
fn references(chart: &mut Chart, group: &BarGroup, slots: &Slots, g: usize) -> DrawResult<()> {
    let highest = chart.y().max();
    let of = |b: &Option<Bar>| b.as_ref().and_then(|b| b.reference);
    let same = |a: &Option<Bar>, b: &Option<Bar>| of(a).zip(of(b)).is_some_and(|(a, b)| (a - b).abs() < 1e-9);
    chart.own(|svg, place| {
        let at = |value: f64, (middle, beside): (f64, f64)| (place(middle, value).0 + beside, place(middle, value).1);
        let mut begin = 0;
        for run in group.bars.chunk_by(same) {
            let (first, last) = (begin, begin + run.len() - 1);
            begin += run.len();
            if let Some(value) = of(&run[0]).filter(|v| *v <= highest) {
                let (from, to) = (slots.left(g, first), slots.left(g, last));
                svg.line("asked", at(value, (from.0, from.1 - 2.0)), at(value, (to.0, to.1 + slots.wide + 2.0)));
            }
        }
        // What lies above the axis is written once.
        let above = group.bars.iter().filter_map(of).filter(|r| *r > highest).reduce(f64::max);
        if let Some(value) = above {
            let long = format!("Σ {value:.1} ↑");
            let text = if slots.span(g) < text_width(&long) - 14.0 { "↑".to_string() } else { long };
            let (x, top) = at(highest, (slots.left(g, 0).0, 0.0));
            svg.text("t", (x, top - 5.0), Anchor::Middle, &text);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::look::hue;

    fn bar(sharing: &str, value: f64) -> Bar {
        let interval = Some((0.97 * value, 1.03 * value));
        Bar {
            sharing: sharing.into(),
            value: Some(value),
            interval,
            title: sharing.into(),
            text: format!("{value:.2}"),
            ..Bar::default()
        }
    }

    fn group(label: &str, bars: Vec<Option<Bar>>) -> BarGroup {
        BarGroup { label: label.into(), bars }
    }

    #[test]
    fn what_ran_out_of_memory_stands_at_the_place_of_its_mode() {
        let failed = Bar { sharing: "mps".into(), failure: Some("OOM".into()), title: "x".into(), ..Bar::default() };
        let groups = [
            group("×2", vec![Some(bar("naive", 1.6)), Some(bar("mps", 1.5)), None]),
            group("×3", vec![Some(bar("naive", 2.6)), Some(failed), Some(bar("mig", 1.5))]),
        ];
        let body = Bars { caption: "s", groups: &groups, ..Bars::default() }.draw().body;
        let place = |of: &str| {
            let text = &body[body.find(of).unwrap()..];
            let x = text.split_once("x=\"").unwrap().1;
            x[..x.find('"').unwrap()].parse::<f64>().unwrap()
        };
        let oom = body.split("class=\"oom\" transform=\"translate(").nth(1).unwrap();
        let oom: f64 = oom[..oom.find(' ').unwrap()].parse().unwrap();
        let naive = place("<title>naive</title>");
        assert!(oom > naive && body.matches("class=\"bar\"").count() == 4);
        // Five marks below the axis: the empty place has none.
        assert_eq!(body.matches("class=\"mk\"").count(), 5, "{body}");
        assert_eq!(body.matches("class=\"val up\"").count() + body.matches("class=\"val\"").count(), 4, "each has its number");
    }

    #[test]
    fn solo_is_a_line_with_its_interval_and_no_bar() {
        let groups = [group("×2", vec![Some(bar("naive", 1.6))])];
        let solo = Bar { text: "solo 1.50".into(), ..bar("solo", 1.5) };
        let body = Bars { caption: "s", groups: &groups, level: Some(&solo), ..Bars::default() }.draw().body;
        assert_eq!((body.matches("class=\"lvl\"").count(), body.matches("class=\"band\"").count()), (2, 1));
        assert!(body.contains("solo 1.50") && body.matches("class=\"bar\"").count() == 1 && body.contains(hue("solo")));
        assert!(body.rfind("class=\"lvl\"") < body.find("class=\"bar\""), "it crosses no number: {body}");
    }

    #[test]
    fn panels_of_one_scale_draw_one_value_at_one_height_whatever_else_they_show() {
        let few = [group("×2", vec![Some(bar("naive", 40.0))])];
        let many: Vec<BarGroup> = (2..14).map(|n| group(&format!("×{n}"), vec![Some(bar("naive", 40.0)); 3])).collect();
        let solo = bar("solo", 100.0);
        let ticks = |groups: &[BarGroup], level| {
            let body = Bars { caption: "s", groups, level, largest: Some(100.0), ..Bars::default() }.draw().body;
            assert_eq!(body.contains("class=\"val"), groups.len() == 1, "only the first has room for numbers");
            ["0", "20", "25", "50", "100", "120", "150"].map(|tick| body.matches(&format!(">{tick}<")).count())
        };
        assert_eq!(ticks(&few, Some(&solo)), ticks(&many, Some(&solo)));
        assert_eq!(ticks(&few, None), ticks(&many, None));
    }

    #[test]
    fn a_number_stands_across_upwards_or_not_at_all() {
        let bars = [bar("naive", 1.5)];
        assert_eq!(Numbers::of(bars.iter(), 30.0), Numbers::Across);
        assert_eq!(Numbers::of(bars.iter(), 19.0), Numbers::Up(4.0 * DIGIT));
        assert_eq!(Numbers::of(bars.iter(), 6.0), Numbers::None);
        assert_eq!(Numbers::of([Bar::default()].iter(), 30.0), Numbers::None, "nothing was measured");
    }

    #[test]
    fn a_simulated_bar_is_hatched_among_measured_ones() {
        let simulated = Bar { simulated: true, ..bar("mps", 1.5) };
        let body =
            Bars { caption: "s", groups: &[group("A", vec![Some(bar("naive", 1.6)), Some(simulated)])], ..Bars::default() };
        let body = body.draw().body;
        assert_eq!(body.matches("<g class=\"sim\"><g class=\"h mps\">").count(), 1, "{body}");
        assert_eq!(body.matches("class=\"sim\"").count(), 1);
    }

    #[test]
    fn an_interval_beyond_the_axis_ends_in_an_arrow() {
        let wild = Bar { interval: Some((0.1, 9.0)), ..bar("naive", 0.6) };
        let body = Bars { caption: "s", groups: &[group("×2", vec![Some(wild)])], ..Bars::default() }.draw().body;
        assert_eq!(body.matches("class=\"arrow\"").count(), 1);
    }

    #[test]
    fn what_ran_out_of_memory_is_outlined_as_high_as_it_asked_for() {
        let stack = |asked: Vec<f64>| Bar { sharing: "mps".into(), asked, failure: Some("OOM".into()), ..Bar::default() };
        let draw = |bar: Bar| {
            let groups = [group("×3", vec![Some(bar)])];
            let limit = Some((40.0, "40 GiB"));
            Bars { caption: "GiB", groups: &groups, limit, largest: Some(20.0), stacked: true, ..Bars::default() }.draw().body
        };
        let known = draw(stack(vec![15.0; 3]));
        assert_eq!((known.matches("class=\"asked\"").count(), known.matches("class=\"capl\"").count()), (3, 2));
        let unknown = draw(stack(Vec::new()));
        assert!(unknown.contains("✕ OOM") && !unknown.contains("asked"));
    }
}
