//! The members' lives over what they used, on one time axis.

use super::{Anchor, Canvas, Drawing, NARROW, Scale, cut, family};

/// One member: its epochs `(start, end, measured)`, seconds from go.
#[derive(Debug, Clone)]
pub struct Lane {
    pub name: String,
    pub epochs: Vec<(f64, f64, bool)>,
}

/// What was used, stacked where there is a series per member.
pub struct Area<'a> {
    pub caption: &'a str,
    /// `(seconds from go, value)`.
    pub series: Vec<Vec<(f64, f64)>>,
    pub capacity: Option<f64>,
    /// The largest sum over all panels of the figure, which share the scale.
    pub peak: f64,
}

/// The largest sum of some series at one time.
pub fn peak(series: &[Vec<(f64, f64)>]) -> f64 {
    stacked(series).last().map_or(0.0, |l| l.iter().map(|p| p.1).fold(0.0, f64::max))
}

/// A panel: one run.
pub struct Timelines<'a> {
    pub sharing: &'a str,
    pub lanes: &'a [Lane],
    /// Lanes of the panel that has most, so that panels beside each other line up.
    pub lanes_high: usize,
    /// Areas below the lives.
    pub areas: &'a [Area<'a>],
    /// All panels share the axis of the longest.
    pub span_s: (f64, f64),
    /// When the group ended.
    pub end_s: f64,
}

const LANE: f64 = 15.0;
const AREA: f64 = 62.0;
const NAME: usize = 8;

/// What is drawn of a life: one epoch, or several that are too short to be told apart.
#[derive(Debug, PartialEq)]
struct Mark {
    start: f64,
    end: f64,
    measured: bool,
    epochs: usize,
}

/// The marks of a lane, none narrower than one is seen unless it stands alone: a life of a million epochs has hundreds.
fn marks(epochs: &[(f64, f64, bool)], px: &dyn Fn(f64) -> f64) -> Vec<Mark> {
    const SEEN: f64 = 1.0;
    let mut marks: Vec<Mark> = Vec::new();
    for &(start, end, measured) in epochs {
        let joins = |m: &&mut Mark| m.measured == measured && start >= m.start && px(end) - px(m.start) < SEEN;
        match marks.last_mut().filter(joins) {
            Some(mark) => (mark.end, mark.epochs) = (mark.end.max(end), mark.epochs + 1),
            None => marks.push(Mark { start, end, measured, epochs: 1 }),
        }
    }
    marks
}

impl Timelines<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let names = self.lanes.iter().map(|l| l.name.chars().count()).max().unwrap_or(1).min(NAME);
        let (left, right) = ((12.0 + 6.8 * names as f64).max(34.0), NARROW - 10.0);
        let (unit, per) = if self.span_s.1 > 300.0 { (" min", 60.0) } else { (" s", 1.0) };
        let x = Scale::exact(self.span_s.0 / per, self.span_s.1 / per, left, right);
        let px = |t: f64| x.px(t / per);
        let mut c = Canvas::default();
        let begin = 18.0;
        let mut top = begin;
        c.text("cap", (0.0, 11.0), Anchor::Start, "members");
        for (i, lane) in self.lanes.iter().enumerate() {
            let y = top + i as f64 * LANE;
            c.text("t", (left - 6.0, y + 10.5), Anchor::End, &cut(&lane.name, NAME));
            for Mark { start, end, measured, epochs } in marks(&lane.epochs, &px) {
                let kind = if measured { "measured" } else { "not measured" };
                let many = if epochs > 1 { format!("{epochs} epochs, ") } else { String::new() };
                c.open_mark(family(self.sharing), &format!("member {i}, {}\n{many}{start:.2} to {end:.2} s, {kind}", lane.name));
                let class = if measured { "life" } else { "life open" };
                let wide = px(end) - px(start);
                c.rect(class, (px(start) + if wide > 3.0 { 0.5 } else { 0.0 }, y + 2.0), ((wide - 1.0).max(0.5), LANE - 4.0));
                c.close();
            }
        }
        top += self.lanes_high.max(self.lanes.len()) as f64 * LANE + 8.0;
        for area in self.areas {
            c.text("cap", (0.0, top + 11.0), Anchor::Start, area.caption);
            self.area(&mut c, &px, (left, right), area, (top + 20.0, top + 20.0 + AREA));
            top += AREA + 32.0;
        }
        let bottom = top - 12.0;
        let end = px(self.end_s);
        c.line("asked", (end, begin), (end, bottom));
        let ticks = x.ticks();
        let every = if ticks.len() > 5 { 2 } else { 1 };
        let last = (ticks.len().max(1) - 1) / every * every;
        for (i, tick) in ticks.iter().enumerate().filter(|(i, _)| i % every == 0) {
            let unit = if i == last { unit } else { "" };
            let at_edge = x.px(*tick) > right - 10.0;
            let (at, anchor) = if at_edge { (NARROW, Anchor::End) } else { (x.px(*tick), Anchor::Middle) };
            c.text("t", (at, bottom + 14.0), anchor, &format!("{}{unit}", x.label(*tick)));
        }
        Drawing { width: NARROW, height: bottom + 20.0, body: c.into_markup() }
    }

    fn area(&self, c: &mut Canvas, px: &dyn Fn(f64) -> f64, (left, right): (f64, f64), area: &Area, (top, bottom): (f64, f64)) {
        let layers = stacked(&area.series);
        let drawn = area.capacity.filter(|v| *v <= 2.5 * area.peak);
        let y = Scale::from_zero(drawn.unwrap_or(0.0).max(area.peak), bottom, top);
        let ticks = y.ticks();
        for tick in ticks.iter().copied().step_by(if ticks.len() > 4 { 2 } else { 1 }) {
            c.line(if tick == 0.0 { "ax" } else { "gr" }, (left, y.px(tick)), (right, y.px(tick)));
            c.text("t", (left - 6.0, y.px(tick) + 4.0), Anchor::End, &y.label(tick));
        }
        // One reading has no length.
        if layers.iter().all(|l| l.len() < 2) {
            let why = if layers.is_empty() { "no sample" } else { "one sample" };
            c.text("it", ((left + right) / 2.0, (top + bottom) / 2.0), Anchor::Middle, why);
            return;
        }
        c.open(family(self.sharing));
        for (i, layer) in layers.iter().enumerate().rev() {
            let (Some(first), Some(last)) = (layer.first(), layer.last()) else { continue };
            let mut points = vec![(px(first.0), y.px(0.0))];
            // A reading holds until the next one: who leaves between two of them ends at once.
            for (k, p) in layer.iter().enumerate() {
                points.push((px(p.0), y.px(p.1)));
                points.extend(layer.get(k + 1).map(|next| (px(next.0), y.px(p.1))));
            }
            points.push((px(last.0), y.px(0.0)));
            // Each layer covers the ones below it, so the outermost alone is filled and the others are outlined.
            c.polygon(if i + 1 == layers.len() { "area" } else { "layer" }, &points);
        }
        c.close();
        if let Some(value) = drawn {
            c.line("capl", (left, y.px(value)), (right, y.px(value)));
        }
    }
}

/// Running sums over members. A member without a reading at some time inside its life keeps its last one; outside it is 0.
fn stacked(series: &[Vec<(f64, f64)>]) -> Vec<Vec<(f64, f64)>> {
    let mut times: Vec<f64> = series.iter().flatten().map(|p| p.0).collect();
    times.sort_by(f64::total_cmp);
    times.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
    let mut sums = vec![0.0; times.len()];
    let mut layers = Vec::new();
    for line in series.iter().filter(|l| !l.is_empty()) {
        let last = line.last().map_or(f64::NEG_INFINITY, |p| p.0);
        for (sum, t) in sums.iter_mut().zip(&times) {
            let reading = line.iter().take_while(|p| p.0 <= *t + 1e-9).last();
            *sum += reading.filter(|_| *t <= last + 1e-9).map_or(0.0, |p| p.1);
        }
        layers.push(times.iter().copied().zip(sums.iter().copied()).collect());
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_add_up_and_end_with_their_member() {
        let layers = super::stacked(&[vec![(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)], vec![(0.0, 2.0), (1.0, 2.0)]]);
        assert_eq!(layers[1], [(0.0, 3.0), (1.0, 3.0), (2.0, 1.0)]);
    }

    #[test]
    fn epochs_too_short_to_be_seen_are_drawn_together_and_counted() {
        let epochs: Vec<(f64, f64, bool)> = (0..200_000).map(|i| (f64::from(i), f64::from(i + 1), i > 0)).collect();
        let drawn = marks(&epochs, &|t| t / 1000.0);
        assert!(drawn.len() <= 202, "{}", drawn.len());
        assert_eq!(drawn[0], Mark { start: 0.0, end: 1.0, measured: false, epochs: 1 });
        assert_eq!(drawn.iter().map(|m| m.epochs).sum::<usize>(), 200_000);
        assert_eq!(drawn.last().map(|m| m.end), Some(200_000.0));
        assert_eq!(marks(&epochs[..9], &|t| t * 10.0).len(), 9, "each is seen");
    }
}
