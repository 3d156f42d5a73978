//! One cell over its nights, in a line. In: logarithms of times by night, a band in which they are expected. Out: a drawing. A
//! dot is a night, the last one has a whisker, a line marks a step of the cell; a night that was not judged is a hollow tick.

use super::Drawing;
use super::chart::drawing;

/// Width of one night.
const NIGHT: f64 = 5.0;
const HEIGHT: f64 = 40.0;
/// Margin above and below the values.
const EDGE: f64 = 4.0;
/// Height below for the ticks of nights that were not judged.
const FOOT: f64 = 6.0;
/// The scale never shows less than this span of a logarithm, so that a quiet cell looks quiet.
const LEAST_SPAN: f64 = 0.08;

/// A judged night.
#[derive(Debug, Clone)]
pub struct SparkDot {
    /// Its index among the nights shown.
    pub at: usize,
    /// Logarithm of the time.
    pub value: f64,
    /// Text on hover.
    pub title: String,
}

/// One cell's line.
#[derive(Debug, Clone, Default)]
pub struct Spark {
    /// Number of nights shown.
    pub nights: usize,
    pub dots: Vec<SparkDot>,
    /// Nights that were not judged, with the reason.
    pub hollow: Vec<(usize, String)>,
    /// The expected range of the next night, logarithms.
    pub band: Option<(f64, f64)>,
    /// Half of the last night's interval.
    pub whisker: Option<f64>,
    /// First nights after a step.
    pub steps: Vec<usize>,
    /// Nights on which it did not run.
    pub failed: Vec<(usize, String)>,
}

impl Spark {
    /// Draw it in the hue of a mode's family.
    pub fn draw(&self, family: &str) -> Drawing {
        let width = NIGHT * self.nights.max(12) as f64 + 2.0 * EDGE;
        let y = self.scale();
        let x = |at: usize| EDGE + NIGHT * (at as f64 + 0.5);
        drawing((width, HEIGHT), |c| {
            c.open(family);
            if let Some((low, high)) = self.band.filter(|(l, h)| l.is_finite() && h.is_finite()) {
                // From the last step on: before it another band held.
                let from = self.steps.last().map_or(EDGE, |at| NIGHT * *at as f64 + EDGE);
                c.rect("band", (from, y(high)), (width - EDGE - from, (y(low) - y(high)).max(0.5)));
            }
            for at in &self.steps {
                let x = EDGE + NIGHT * *at as f64;
                c.line("chg", (x, 1.0), (x, HEIGHT - FOOT));
            }
            for (at, why) in &self.hollow {
                c.titled(why, |c| c.rect("tick", (x(*at) - 1.5, HEIGHT - FOOT + 1.0), (3.0, 4.5)));
            }
            for (at, why) in &self.failed {
                let (x, y) = (x(*at), HEIGHT - FOOT + 3.0);
                let cross = [[(x - 2.0, y - 2.0), (x + 2.0, y + 2.0)], [(x + 2.0, y - 2.0), (x - 2.0, y + 2.0)]];
                c.titled(why, |c| c.strokes("fail", &cross));
            }
            if let (Some(last), Some(half)) = (self.dots.last(), self.whisker) {
                c.line("wh", (x(last.at), y(last.value + half)), (x(last.at), y(last.value - half)));
            }
            for dot in &self.dots {
                c.titled(&dot.title, |c| c.circle("dot", (x(dot.at), y(dot.value)), 1.7));
            }
            c.close();
        })
    }

    /// Slow is up. Half-widths of wild nights do not flatten the rest: the scale includes only the dots and the band.
    fn scale(&self) -> impl Fn(f64) -> f64 {
        let values = self.dots.iter().map(|d| d.value).chain(self.band.into_iter().flat_map(|(l, h)| [l, h]));
        let (low, high) =
            values.filter(|v| v.is_finite()).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = if low > high { (0.0, 0.0) } else { (low, high) };
        let short = (LEAST_SPAN - (high - low)).max(0.0) / 2.0;
        let (low, high) = (low - short, high + short);
        move |v: f64| {
            let share = ((v - low) / (high - low)).clamp(-0.05, 1.05);
            HEIGHT - FOOT - EDGE - share * (HEIGHT - FOOT - 2.0 * EDGE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(at: usize, value: f64) -> SparkDot {
        SparkDot { at, value, title: format!("<b>{at}</b>") }
    }

    #[test]
    fn a_spark_has_a_dot_per_night_a_tick_per_hollow_one_and_a_line_per_step() {
        let spark = Spark {
            nights: 20,
            dots: (0..19).filter(|i| *i != 7).map(|i| dot(i, if i > 11 { 0.05 } else { 0.0 })).collect(),
            hollow: vec![(7, "cut & short".into())],
            band: Some((0.04, 0.06)),
            whisker: Some(0.01),
            steps: vec![12],
            failed: vec![(19, "out of memory".into())],
        };
        let body = spark.draw("mps").body;
        assert_eq!(body.matches(r#"class="dot""#).count(), 18);
        assert_eq!(
            (body.matches("\"tick\"").count(), body.matches("\"chg\"").count(), body.matches("\"fail\"").count()),
            (1, 1, 1)
        );
        assert!(!body.contains("<b>") && body.contains("cut &amp; short"), "{body}");
        assert!(!body.contains('#'), "no literal colour");
    }

    #[test]
    fn no_night_and_values_that_are_none_draw_nothing_that_breaks() {
        assert!(!Spark::default().draw("naive").body.contains("NaN"));
        let wild = Spark { nights: 1, dots: vec![dot(0, 0.0)], band: Some((f64::NAN, f64::INFINITY)), ..Spark::default() };
        assert!(!wild.draw("solo").body.contains("NaN"));
    }
}
