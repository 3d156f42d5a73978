//! A site over time: cards as lanes with the attempts on them, below them the activity of the cards and the queue.

use plotters::element::Polygon;

use crate::draw::axis::Axis;
use crate::draw::chart::{Chart, DrawResult, Frame, charts, px};
use crate::draw::look::WORKLOAD_TINTS;
use crate::draw::themed::{Anchor, look, text_width};
use crate::draw::{Drawing, LONG, cut};

/// An attempt on a card.
#[derive(Debug, Clone)]
pub struct Occupied {
    pub card: usize,
    /// Seconds from the first arrival.
    pub from_s: f64,
    pub until_s: f64,
    /// Index of its workload, for its hue.
    pub kind: usize,
    /// It did not complete: drawn hatched.
    pub failed: bool,
    pub title: String,
}

/// A panel: one run.
pub struct SiteTimeline<'a> {
    pub cards: &'a [String],
    pub attempts: &'a [Occupied],
    /// Names of workloads, in the order of their hues.
    pub kinds: &'a [String],
    /// `(seconds, share)`; empty if it was not read.
    pub active: &'a [(f64, f64)],
    pub active_caption: &'a str,
    /// `(seconds, tasks that wait from then on)`.
    pub queue: &'a [(f64, f64)],
    /// All panels share the axis of the longest, and the scale of the longest queue.
    pub end_s: f64,
    pub longest_queue: f64,
    /// When the last attempt of this run ended.
    pub total_s: f64,
}

const BAR: f64 = 9.0;
const GAP: f64 = 6.0;
const AREA: f64 = 58.0;
const LEGEND: f64 = 22.0;
const CAPTION: f64 = 20.0;
const FOOT: f64 = 20.0;
const LEFT: f64 = 84.0;
const NAME: usize = 10;

/// For each attempt the row that it takes on its card, and the rows of each card: the lowest that is free.
fn rows(attempts: &[Occupied], cards: usize) -> (Vec<usize>, Vec<usize>) {
    let mut ends: Vec<Vec<f64>> = vec![Vec::new(); cards];
    let mut order: Vec<usize> = (0..attempts.len()).collect();
    order.sort_by(|a, b| attempts[*a].from_s.total_cmp(&attempts[*b].from_s));
    let mut of = vec![0; attempts.len()];
    for i in order {
        let Some(card) = ends.get_mut(attempts[i].card) else { continue };
        let free = card.iter().position(|end| *end <= attempts[i].from_s).unwrap_or(card.len());
        if free == card.len() {
            card.push(attempts[i].until_s);
        } else {
            card[free] = attempts[i].until_s;
        }
        of[i] = free;
    }
    (of, ends.into_iter().map(|card| card.len().max(1)).collect())
}

impl SiteTimeline<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let (row_of, rows) = rows(self.attempts, self.cards.len());
        let heights: Vec<f64> = rows.iter().map(|n| *n as f64 * (BAR + 1.5) + GAP).collect();
        let tops: Vec<f64> = heights
            .iter()
            .scan(0.0, |top, height| {
                let here = *top;
                *top += height;
                Some(here)
            })
            .collect();
        let lanes: f64 = heights.iter().sum();
        let areas = [(!self.active.is_empty(), self.active_caption), (true, "tasks in the queue")];
        let below = areas.iter().filter(|(there, _)| *there).count() as f64 * (AREA + CAPTION + 8.0);
        let words = self.words();
        let places = legend_places(&words);
        let legend = LEGEND + places.last().map_or(0.0, |(_, top)| *top);
        let height = legend + CAPTION + lanes + below + FOOT;
        let time = |last: bool| {
            let axis = Axis::of_time(0.0, self.end_s, 12);
            if last { axis } else { axis.bare() }
        };
        charts((LONG, height), |root| {
            let part = |from: f64, height: f64, last: bool| {
                root.clone().shrink((0, px(from)), (px(LONG), px(height + if last { FOOT } else { 0.0 })))
            };
            let middles = tops.iter().zip(&heights).map(|(top, height)| top + height / 2.0);
            let names = self.cards.iter().map(|name| cut(name, NAME));
            let y = Axis::named(lanes..0.0, middles.zip(names).collect());
            let frame = |caption, last: bool, rows| Frame {
                caption,
                top: CAPTION,
                right: 10.0,
                bottom: if last { FOOT } else { 0.0 },
                left: LEFT,
                rows,
                ..Frame::default()
            };
            let place = part(legend, CAPTION + lanes, false);
            let mut chart = frame("attempts by card", false, true).on(&place, time(false), y)?;
            self.attempts(&mut chart, &row_of, &tops)?;
            for top in tops.iter().skip(1) {
                chart.level("gr", *top)?;
            }
            self.legend(&mut chart, &words, &places)?;
            let mut from = legend + CAPTION + lanes + 8.0;
            if !self.active.is_empty() {
                let y = Axis::from_zero(1.0).labelled(|share| format!("{:.0}", share * 100.0)).thinned(5);
                let place = part(from, CAPTION + AREA, false);
                let frame = Frame { grid: (false, true), zero: true, ..frame(self.active_caption, false, false) };
                area(&mut frame.on(&place, time(false), y)?, self.active)?;
                from += AREA + CAPTION + 8.0;
            }
            let y = Axis::from_zero(self.longest_queue.max(1.0)).thinned(5);
            let place = part(from, CAPTION + AREA, true);
            let frame = Frame { grid: (false, true), zero: true, ..frame("tasks in the queue", true, false) };
            let mut chart = frame.on(&place, time(true), y)?;
            area(&mut chart, self.queue)?;
            chart.own(|svg, place| {
                let end = place(self.total_s, 0.0).0;
                svg.line("asked", (end, legend + CAPTION - 2.0), (end, from + CAPTION + AREA));
            })
        })
    }

    fn attempts(&self, chart: &mut Chart, row_of: &[usize], tops: &[f64]) -> DrawResult<()> {
        for (attempt, row) in self.attempts.iter().zip(row_of) {
            let Some(top) = tops.get(attempt.card).map(|top| top + GAP / 2.0 + *row as f64 * (BAR + 1.5)) else { continue };
            let class = WORKLOAD_TINTS[attempt.kind.min(WORKLOAD_TINTS.len() - 1)];
            chart.own(|svg, place| {
                let ((left, y), (right, _)) = (place(attempt.from_s, top), place(attempt.until_s, top));
                let wide = (right - left - 0.5).max(1.0);
                svg.open_mark(class, &attempt.title);
                svg.rect(if attempt.failed { "life open" } else { "life" }, (left, y), (wide, BAR));
                if attempt.failed {
                    svg.strokes("out", &hatch(left, y, wide));
                }
                svg.close();
            })?;
        }
        Ok(())
    }

    /// The words of the legend, in the order of the hues; the last one is of attempts that failed, if any did.
    fn words(&self) -> Vec<String> {
        let named = |(kind, name): (usize, &String)| {
            let last = kind + 1 == WORKLOAD_TINTS.len() && self.kinds.len() > WORKLOAD_TINTS.len();
            cut(if last { "others" } else { name }, 20)
        };
        let mut words: Vec<String> = self.kinds.iter().enumerate().take(WORKLOAD_TINTS.len()).map(named).collect();
        if self.attempts.iter().any(|a| a.failed) {
            words.push("did not complete".into());
        }
        words
    }

    fn legend(&self, chart: &mut Chart, words: &[String], places: &[(f64, f64)]) -> DrawResult<()> {
        let kinds = self.kinds.len().min(WORKLOAD_TINTS.len());
        chart.own(|svg, _| {
            for (at, (word, (x, top))) in words.iter().zip(places).enumerate() {
                let y = top + 5.0;
                if at < kinds {
                    svg.open(WORKLOAD_TINTS[at]);
                    svg.rect("life", (*x, y), (12.0, BAR));
                    svg.close();
                } else {
                    svg.rect("life open", (*x, y), (12.0, BAR));
                    let strokes = hatch(*x, 0.0, 12.0).into_iter().map(|stroke| stroke.map(|(x, dy)| (x, y + dy)));
                    svg.strokes("out", &strokes.collect::<Vec<_>>());
                }
                svg.text("t", (x + 17.0, top + 13.5), Anchor::Start, word);
            }
        })
    }
}

/// Where each word of a legend stands: what does not fit goes on in a further row.
fn legend_places(words: &[String]) -> Vec<(f64, f64)> {
    let (mut x, mut top) = (LEFT, 0.0);
    let place = |word: &String| {
        let wide = 30.0 + text_width(word);
        if x > LEFT && x + wide > LONG {
            (x, top) = (LEFT, top + LEGEND);
        }
        let here = (x, top);
        x += wide;
        here
    };
    words.iter().map(place).collect()
}

/// Strokes across a bar.
fn hatch(left: f64, top: f64, wide: f64) -> Vec<[(f64, f64); 2]> {
    const STEP: f64 = 4.0;
    let strokes = (0..(wide / STEP).ceil() as usize).map(|i| {
        let x = left + i as f64 * STEP;
        let reach = BAR.min(left + wide - x);
        [(x, top + BAR), (x + reach, top + BAR - reach)]
    });
    strokes.collect()
}

/// What holds from each point until the next one, filled.
fn area(chart: &mut Chart, points: &[(f64, f64)]) -> DrawResult<()> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Ok(()) };
    let nexts = points.iter().skip(1).chain(points.last());
    let steps = points.iter().zip(nexts).flat_map(|(p, next)| [*p, (next.0, p.1)]);
    let outline: Vec<_> = std::iter::once((first.0, 0.0)).chain(steps).chain([(last.0, 0.0)]).collect();
    chart.hued("other", |chart| chart.draw(Polygon::new(outline, look("area"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(card: usize, from_s: f64, until_s: f64) -> Occupied {
        Occupied { card, from_s, until_s, kind: 0, failed: false, title: String::new() }
    }

    #[test]
    fn attempts_on_one_card_at_one_time_never_cover_each_other() {
        let attempts = [on(0, 0.0, 4.0), on(0, 1.0, 2.0), on(0, 2.0, 6.0), on(1, 0.0, 1.0), on(0, 4.0, 5.0)];
        assert_eq!(rows(&attempts, 3), (vec![0, 1, 1, 0, 0], vec![2, 1, 1]));
    }

    #[test]
    fn a_legend_that_is_too_long_goes_on_in_a_further_row() {
        let words: Vec<String> = (0..16).map(|i| format!("a workload of {i:02}")).collect();
        let places = legend_places(&words);
        assert!(places.iter().zip(&words).all(|((x, _), word)| x + 17.0 + text_width(word) <= LONG), "{places:?}");
        assert!(places.windows(2).all(|p| p[0] < p[1] || p[0].1 < p[1].1), "none stands on another: {places:?}");
        assert_eq!(legend_places(&words[..2]).last().map(|p| p.1), Some(0.0), "a short one has one row");
    }

    #[test]
    fn a_hatch_stays_on_its_bar() {
        for [(x0, y0), (x1, y1)] in hatch(10.0, 0.0, 14.0) {
            assert!(x0 >= 10.0 && x1 <= 24.0 + 1e-9 && y0 <= BAR && y1 >= -1e-9, "{x0} {x1} {y0} {y1}");
        }
        assert!(!hatch(0.0, 0.0, 1.0).is_empty());
    }
}
