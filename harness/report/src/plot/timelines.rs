//! The members' lives over what they used, on one time axis.

use super::{Anchor, Canvas, Drawing, Scale, WIDTH, family};

/// One member: its epochs `(start, end, measured)`, seconds from go.
#[derive(Debug, Clone)]
pub struct Lane {
    pub name: String,
    pub epochs: Vec<(f64, f64, bool)>,
}

/// What members used, stacked.
pub struct Area<'a> {
    pub caption: &'a str,
    /// One series per member: `(seconds from go, value)`.
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
    /// Stacked areas below the lives.
    pub areas: &'a [Area<'a>],
    /// All panels share the axis of the longest.
    pub span_s: (f64, f64),
}

const LANE: f64 = 15.0;
const AREA: f64 = 74.0;

impl Timelines<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let (left, right) = (40.0, WIDTH - 6.0);
        let x = Scale::exact(self.span_s.0, self.span_s.1, left, right);
        let mut c = Canvas::default();
        let mut top = 20.0;
        c.text("cap", (0.0, 11.0), Anchor::Start, "members: measured epochs filled");
        for (i, lane) in self.lanes.iter().enumerate() {
            let y = top + i as f64 * LANE;
            c.text("t", (left - 8.0, y + 10.5), Anchor::End, &i.to_string());
            for (start, end, measured) in &lane.epochs {
                let kind = if *measured { "measured" } else { "not measured" };
                c.open_mark(family(self.sharing), &format!("member {i}, {}\n{start:.2} to {end:.2} s, {kind}", lane.name));
                let class = if *measured { "life" } else { "life open" };
                c.rect(class, (x.px(*start) + 0.5, y + 2.0), (x.px(*end) - x.px(*start) - 1.0, LANE - 4.0));
                c.close();
            }
        }
        top += self.lanes_high.max(self.lanes.len()) as f64 * LANE + 8.0;
        for area in self.areas {
            c.text("cap", (0.0, top + 11.0), Anchor::Start, area.caption);
            self.area(&mut c, &x, area, (top + 20.0, top + 20.0 + AREA));
            top += AREA + 34.0;
        }
        let bottom = top - 14.0;
        let ticks = x.ticks();
        for (i, tick) in ticks.iter().enumerate() {
            let unit = if i + 1 == ticks.len() { " s" } else { "" };
            c.text("t", (x.px(*tick), bottom + 14.0), Anchor::Middle, &format!("{}{unit}", x.label(*tick)));
        }
        Drawing { width: WIDTH, height: bottom + 20.0, body: c.into_markup() }
    }

    fn area(&self, c: &mut Canvas, x: &Scale, area: &Area, (top, bottom): (f64, f64)) {
        let layers = stacked(&area.series);
        let drawn = area.capacity.filter(|v| *v <= 2.5 * area.peak);
        let y = Scale::from_zero(drawn.unwrap_or(0.0).max(area.peak), bottom, top);
        let (left, right) = (x.px(x.min), x.px(x.max));
        let ticks = y.ticks();
        for tick in ticks.iter().copied().step_by(if ticks.len() > 4 { 2 } else { 1 }) {
            c.line(if tick == 0.0 { "ax" } else { "gr" }, (left, y.px(tick)), (right, y.px(tick)));
            c.text("t", (left - 6.0, y.px(tick) + 4.0), Anchor::End, &y.label(tick));
        }
        if layers.is_empty() {
            c.text("it", ((left + right) / 2.0, (top + bottom) / 2.0), Anchor::Middle, "no sample");
            return;
        }
        c.open(family(self.sharing));
        for layer in layers.iter().rev() {
            let (Some(first), Some(last)) = (layer.first(), layer.last()) else { continue };
            let mut points = vec![(x.px(first.0), y.px(0.0))];
            points.extend(layer.iter().map(|p| (x.px(p.0), y.px(p.1))));
            points.push((x.px(last.0), y.px(0.0)));
            c.polygon("area", &points);
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
    #[test]
    fn layers_add_up_and_end_with_their_member() {
        let layers = super::stacked(&[vec![(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)], vec![(0.0, 2.0), (1.0, 2.0)]]);
        assert_eq!(layers[1], [(0.0, 3.0), (1.0, 3.0), (2.0, 1.0)]);
    }
}
