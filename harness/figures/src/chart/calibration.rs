//! Predictions beside what was measured: each over the other on logarithmic axes with the line where they are equal, and their
//! ratios in order with the intervals behind them. What is predicted is drawn as bars and areas, what is measured as marks.

use plotters::element::Polygon;

use crate::draw::axis::{Axis, RATIO_TICKS};
use crate::draw::chart::{Chart, DrawResult, Frame, charts};
use crate::draw::look::shape;
use crate::draw::themed::{Anchor, look, text_width};
use crate::draw::{Drawing, WIDTH, cut};

/// A member of a cell.
#[derive(Debug, Clone)]
pub struct Calibrated {
    pub sharing: String,
    pub indicative: bool,
    pub measured: f64,
    pub predicted: f64,
    /// Of the prediction.
    pub interval: (f64, f64),
    /// Drawn beside the mark; empty without one.
    pub label: String,
    pub title: String,
}

impl Calibrated {
    fn ratio(&self) -> f64 {
        self.measured / self.predicted
    }

    /// The ends of its interval over what was predicted.
    fn bounds(&self) -> (f64, f64) {
        (self.interval.0 / self.predicted, self.interval.1 / self.predicted)
    }
}

const HEIGHT: f64 = 300.0;
/// Characters of a label.
const LABEL: usize = 24;
/// Shorter ones say nothing.
const SHORTEST: usize = 4;
/// Below this factor between the least and the largest, values are drawn in even steps.
const NARROW: f64 = 4.0;
/// At both ends of such an axis.
const ROOM: f64 = 1.1;
/// Between the lines of two labels.
const LINE: f64 = 13.0;
/// Labels are bold, which is wider than other text.
const BOLD: f64 = 1.15;
/// Between a bar and its label.
const BESIDE: f64 = 5.0;

/// What was measured over what was predicted.
pub struct PredictedMeasured<'a> {
    /// The quantities of the vertical and the horizontal axis.
    pub caption: &'a str,
    pub below: &'a str,
    pub points: &'a [Calibrated],
}

impl PredictedMeasured<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let values = || self.points.iter().flat_map(|p| [p.measured, p.predicted]);
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        // Equal axes, so that the line of equality is the diagonal.
        // Bars are drawn too.
        let ends = || self.points.iter().flat_map(|p| [p.interval.0, p.interval.1]).chain([low, high]);
        let (least, most) = (ends().fold(f64::INFINITY, f64::min), ends().fold(0.0, f64::max));
        let axis = || near(least, most).unwrap_or_else(|| Axis::log(low, high));
        let (x, y) = (axis(), axis());
        let frame =
            Frame { right: 8.0, bottom: 40.0, below: self.below, grid: (true, true), ..Frame::of_ratios(self.caption, &y) };
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, x, y)?;
            let (from, to) = (chart.x().min(), chart.x().max());
            chart.straight("ref", (from, from), (to, to))?;
            for p in self.points {
                chart.mark(&p.sharing, p.indicative, &p.title, |svg, place| {
                    let (low, high) = (place(p.interval.0, p.measured), place(p.interval.1, p.measured));
                    svg.line("wh", low, high);
                    for end in [low, high] {
                        svg.line("wh", (end.0, end.1 - 3.0), (end.0, end.1 + 3.0));
                    }
                    svg.shape(shape(&p.sharing), "mk", place(p.predicted, p.measured));
                })?;
            }
            labels(&mut chart, self.points)
        })
    }
}

/// Labels beside the bar of their mark, on the side where the line of equality is not, none over another.
fn labels(chart: &mut Chart, points: &[Calibrated]) -> DrawResult<()> {
    let mut named: Vec<&Calibrated> = points.iter().filter(|p| !p.label.is_empty()).collect();
    // From the top down, so that each stays nearest to its own mark.
    named.sort_by(|a, b| b.measured.total_cmp(&a.measured));
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for p in named {
        let place = |x: f64| chart.place()(x, p.measured);
        let (left, right) = (place(chart.x().min()).0, place(chart.x().max()).0);
        let (ends, y) = ((place(p.interval.0).0 - BESIDE, place(p.interval.1).0 + BESIDE), place(p.predicted).1);
        // In the middle of a narrow range neither side has room for all of it.
        let room = (ends.0 - left).max(right - ends.1);
        let mut text = cut(&p.label, LABEL);
        while BOLD * text_width(&text) > room && text.chars().count() > SHORTEST {
            text = cut(&p.label, text.chars().count() - 1);
        }
        let width = BOLD * text_width(&text);
        // Above the line there is room to the left, below it to the right; at an edge the label turns round.
        let to_left = if p.ratio() > 1.0 { ends.0 - width >= left } else { ends.1 + width > right };
        let (from, to) = if to_left { (ends.0 - width, ends.0) } else { (ends.1, ends.1 + width) };
        let covers = |line: f64| taken.iter().any(|(a, b, at)| (at - line).abs() < LINE && from < *b && to > *a);
        let mut line = y + 4.0;
        while covers(line) {
            line += 1.0;
        }
        taken.push((from, to, line));
        let (at, anchor) = if to_left { (to, Anchor::End) } else { (from, Anchor::Start) };
        chart.own(|svg, _| svg.text("val", (at, line), anchor, &text))?;
    }
    Ok(())
}

/// Measured ÷ predicted, the smallest first, with the interval of each behind it.
pub struct OrderedErrors<'a> {
    pub caption: &'a str,
    pub below: &'a str,
    pub points: &'a [Calibrated],
}

impl OrderedErrors<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let mut points: Vec<&Calibrated> = self.points.iter().collect();
        points.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        let ends = || points.iter().flat_map(|p| [p.ratio(), p.bounds().0, p.bounds().1]);
        let y = ratio_axis(ends().fold(1.0, f64::min), ends().fold(1.0, f64::max));
        let x = Axis::named(0.0..points.len().max(1) as f64, Vec::new());
        let frame = Frame { right: 8.0, bottom: 40.0, below: self.below, ..Frame::of_ratios(self.caption, &y) };
        charts((WIDTH, HEIGHT), |root| {
            let mut chart = frame.on(root, x, y)?;
            let step = |of: fn(&Calibrated) -> f64| {
                points.iter().enumerate().flat_map(move |(i, p)| [(i as f64, of(p)), (i as f64 + 1.0, of(p))])
            };
            let mut band: Vec<(f64, f64)> = step(|p| p.bounds().0).collect();
            band.extend(step(|p| p.bounds().1).collect::<Vec<_>>().into_iter().rev());
            chart.draw(Polygon::new(band, look("within")))?;
            chart.level("ref", 1.0)?;
            for (i, p) in points.iter().enumerate() {
                chart.mark(&p.sharing, p.indicative, &p.title, |svg, place| {
                    svg.shape(shape(&p.sharing), "mk", place(i as f64 + 0.5, p.ratio()));
                })?;
            }
            Ok(())
        })
    }
}

/// Of values within a few times each other: logarithmic in even steps, else all marks would be one. None: they are further apart.
fn near(low: f64, high: f64) -> Option<Axis> {
    let is_near = low > 0.0 && low <= high && high / low < NARROW;
    if !is_near {
        return None;
    }
    let (low, high) = (low / ROOM, high * ROOM);
    let rough = (high - low) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|times| times * power).into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
    let (from, to) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let ticks = (from..=to).map(|n| n as f64 * step).filter(|tick| *tick > 0.0);
    let begin = if from > 0 { from as f64 * step } else { low };
    Some(Axis::log_named(begin..to as f64 * step, ticks.map(|tick| (tick, format!("{tick:.decimals$}"))).collect()))
}

/// A logarithmic axis around 1 that is as long as it must be, with round ratios as ticks.
fn ratio_axis(low: f64, high: f64) -> Axis {
    // A little room at both ends, and never a range in which nothing can be told apart.
    let room = 1.03;
    let (low, high) = ((low / room).clamp(1e-6, 0.95), (high * room).clamp(1.05, 1e6));
    let span = (high / low).ln();
    let mut ticks: Vec<f64> = Vec::new();
    for tick in RATIO_TICKS.into_iter().filter(|tick| (low..=high).contains(tick)) {
        let near = |other: f64| (tick / other).ln().abs() < span / 12.0;
        let crowded = tick != 1.0 && (near(1.0) || ticks.last().is_some_and(|last| near(*last)));
        if !crowded {
            ticks.push(tick);
        }
    }
    Axis::log_named(low..high, ticks.into_iter().map(|tick| (tick, format!("{tick}"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(measured: f64, predicted: f64, label: &str) -> Calibrated {
        Calibrated {
            sharing: "naive".into(),
            indicative: false,
            measured,
            predicted,
            interval: (0.9 * predicted, 1.1 * predicted),
            label: label.into(),
            title: format!("measured {measured}"),
        }
    }

    /// The numbers of an attribute in the tags of a kind, in order.
    fn numbers(drawing: &Drawing, tag: &str, name: &str) -> Vec<f64> {
        let begin = format!("<{tag} ");
        let tags = drawing.body.split(&begin).skip(1).map(|rest| &rest[..rest.find('>').expect("it ends")]);
        tags.filter_map(|of| of.split_once(&format!("{name}=\""))?.1.split_once('"')?.0.parse().ok()).collect()
    }

    #[test]
    fn what_was_measured_as_predicted_stands_on_the_line_and_the_bar_is_the_predictions() {
        let points = [point(2.0, 2.0, ""), point(8.0, 4.0, "far")];
        let drawing = PredictedMeasured { caption: "measured, GiB", below: "predicted, GiB", points: &points }.draw();
        let line = drawing.body.split("class=\"ref\" d=\"M").nth(1).expect("the line");
        let ends: Vec<f64> =
            line[..line.find('"').expect("it ends")].split([' ', 'L']).map(|n| n.parse().expect("a number")).collect();
        let [x1, y1, x2, y2] = ends[..] else { panic!("{ends:?}") };
        let (xs, ys) = (numbers(&drawing, "circle", "cx"), numbers(&drawing, "circle", "cy"));
        let on_line = |i: usize| y1 + (xs[i] - x1) / (x2 - x1) * (y2 - y1);
        assert!((on_line(0) - ys[0]).abs() < 0.3, "{} is not {}", on_line(0), ys[0]);
        assert!(ys[1] < on_line(1) - 20.0, "more than predicted is above the line");
        // A bar from end to end of the interval, both at the height of the mark.
        let bar = drawing.body.split("class=\"wh\" d=\"M").nth(1).expect("a bar");
        let bar: Vec<f64> =
            bar[..bar.find('"').expect("it ends")].split([' ', 'L']).map(|n| n.parse().expect("a number")).collect();
        assert!(bar[1] == bar[3] && bar[0] < xs[0] && xs[0] < bar[2] && (bar[1] - ys[0]).abs() < 0.2, "{bar:?}");
        assert!(drawing.body.contains(">far<") && drawing.body.contains("<title>measured 8</title>"));
    }

    #[test]
    fn labels_stay_inside_and_cover_no_other() {
        let points = [point(1.0, 1.4, "one at the left"), point(9.9, 9.0, "one at the right"), point(9.8, 9.05, "its neighbour")];
        let drawing = PredictedMeasured { caption: "", below: "", points: &points }.draw();
        let of = |text: &str| {
            let (before, _) = drawing.body.split_once(&format!(">{text}<")).expect("drawn");
            let tag = &before[before.rfind('<').expect("its tag")..];
            let number = |name: &str| {
                tag.split_once(&format!(" {name}=\"")).expect("it has one").1.split('"').next().unwrap_or("").parse::<f64>()
            };
            (number("x").expect("a number"), number("y").expect("a number"), tag.contains("end"))
        };
        assert!(!of("one at the left").2 && of("one at the right").2);
        assert!(of("its neighbour").1 - of("one at the right").1 >= LINE - 0.2);
    }

    #[test]
    fn a_label_that_has_no_room_on_either_side_is_cut_and_not_drawn_over_the_next_panel() {
        let points = [point(1.0, 1.0, "launch-bound in launch-bound+memory-bound naive")];
        let drawing = PredictedMeasured { caption: "", below: "", points: &points }.draw();
        let (before, _) = drawing.body.split_once('…').expect("cut");
        let text = before.rsplit('>').next().expect("its text");
        let tag = &before[before.rfind('<').expect("its tag")..];
        let x = tag
            .split_once(" x=\"")
            .expect("it has one")
            .1
            .split('"')
            .next()
            .and_then(|x| x.parse::<f64>().ok())
            .expect("a number");
        let width = BOLD * text_width(&format!("{text}…"));
        let (left, right) = if tag.contains("end") { (x - width, x) } else { (x, x + width) };
        assert!(text.starts_with("laun") && text.len() < 24, "{text}");
        assert!(left > 0.0 && right < WIDTH, "{left} to {right}");
    }

    #[test]
    fn values_near_each_other_fill_their_axis() {
        for (low, high) in [(0.97, 1.04), (1.9, 2.02), (1.0, 3.9), (1.0, 1.0), (0.02, 0.03), (180.0, 420.0)] {
            let axis = near(low, high).expect("they are near");
            assert!(
                axis.min() > 0.0 && axis.min() < low && axis.max() > high && axis.max() / axis.min() < 8.0,
                "{low} to {high}"
            );
        }
        assert!(near(1.0, 30.0).is_none() && near(0.0, 1.0).is_none());
        assert!(near(f64::INFINITY, 0.0).is_none() && near(f64::INFINITY, f64::INFINITY).is_none(), "there is nothing");
    }

    #[test]
    fn errors_are_in_order_and_one_is_always_marked() {
        let points = [point(3.0, 2.0, ""), point(0.5, 1.0, ""), point(1.0, 1.0, "")];
        let drawing = OrderedErrors { caption: "measured ÷ predicted", below: "", points: &points }.draw();
        let ys = numbers(&drawing, "circle", "cy");
        assert!(ys.len() == 3 && ys.windows(2).all(|w| w[0] > w[1]), "{ys:?}");
        assert!(drawing.body.contains(">1<") && drawing.body.contains("class=\"within\""));
        for (low, high) in [(0.97, 1.01), (0.2, 6.0), (1e-9, 1e9), (1.0, 1.0)] {
            let axis = ratio_axis(low, high);
            assert!(axis.min() < 1.0 && axis.max() > 1.0 && axis.max().is_finite(), "{low} to {high}");
        }
    }

    #[test]
    fn nothing_to_draw_is_a_drawing_all_the_same() {
        assert!(PredictedMeasured { caption: "", below: "", points: &[] }.draw().height > 0.0);
        assert!(OrderedErrors { caption: "", below: "", points: &[] }.draw().height > 0.0);
    }
}
