//! Marks beside a mean: the repetitions that it comes from, and a published value.

use super::look::{PUBLISHED, shape};
use super::themed::ThemedSvg;

/// More repetitions than this are a smear; the table has their number.
const MOST: usize = 12;

/// A published value, or both ends of a published range.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedMark {
    pub low: f64,
    pub high: f64,
    /// Hover text: value, source, distance.
    pub title: String,
}

/// Draw repetitions in their order as small dots from left to right over `wide` units; `at` places a value, its x being the middle.
pub fn repetitions(svg: &mut ThemedSvg, values: &[f64], wide: f64, at: impl Fn(f64) -> (f64, f64)) {
    // A single one is the mean.
    if !(2..=MOST).contains(&values.len()) || wide < 6.0 {
        return;
    }
    let step = (wide / values.len() as f64).min(4.0);
    let first = -step * (values.len() as f64 - 1.0) / 2.0;
    for (i, value) in values.iter().enumerate() {
        let (x, y) = at(*value);
        svg.circle("rep", (x + first + step * i as f64, y), 1.5);
    }
}

/// Draw a published value as a hollow mark, a range as two of them with a line between; above the axis it ends in an arrow.
pub fn published(svg: &mut ThemedSvg, mark: &PublishedMark, highest: f64, at: impl Fn(f64) -> (f64, f64)) {
    svg.open_mark("published", &mark.title);
    let (low, high) = (mark.low.min(highest), mark.high.min(highest));
    if low < high {
        svg.line("wh", at(low), at(high));
        svg.shape(shape(PUBLISHED), "mk", at(low));
    }
    svg.shape(shape(PUBLISHED), "mk", at(high));
    if mark.high > highest {
        svg.beyond(at(highest));
    }
    svg.close();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::chart::drawing;

    #[test]
    fn repetitions_stand_in_their_order_around_the_middle() {
        let body = |values: &[f64], wide: f64| {
            drawing((99.0, 99.0), |svg| repetitions(svg, values, wide, |value| (50.0, 90.0 - value))).body
        };
        let three = body(&[10.0, 20.0, 30.0], 20.0);
        let at = |x: &str, y: &str| three.contains(&format!(r#"cx="{x}" cy="{y}""#));
        assert!(at("46", "80") && at("50", "70") && at("54", "60"), "{three}");
        assert!(body(&[10.0], 20.0).is_empty(), "a single one is the mean");
        assert!(body(&[10.0; 40], 20.0).is_empty() && body(&[10.0; 3], 2.0).is_empty(), "there is no room");
    }

    #[test]
    fn a_published_value_is_one_mark_a_range_two_and_beyond_the_axis_an_arrow() {
        let body = |low: f64, high: f64| {
            let mark = PublishedMark { low, high, title: "published".into() };
            drawing((99.0, 99.0), |svg| published(svg, &mark, 10.0, |value| (50.0, 90.0 - value))).body
        };
        let stars = |body: &str| body.matches("mk star").count();
        assert_eq!((stars(&body(5.0, 5.0)), stars(&body(5.0, 6.0))), (1, 2));
        let beyond = body(12.0, 12.0);
        assert!(stars(&beyond) == 1 && beyond.contains("arrow"), "{beyond}");
    }
}
