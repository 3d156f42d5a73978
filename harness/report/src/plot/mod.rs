//! Figures. In: names, values and intervals, already chosen by a section. Out: SVG for the page, SVG and PNG files. It does not know
//! where a number comes from.

mod bars;
mod delays;
mod dots;
mod file;
mod heat;
mod intervals;
mod levels;
mod lines;
mod log;
mod over_time;
mod scale;
mod scatter;
mod sparks;
mod squares;
mod stacks;
mod svg;
mod tails;
mod timelines;

use collo_store::Sharing;

pub use bars::{Bar, BarGroup, Bars};
pub use delays::{Delay, DelayRow, Delays};
pub use dots::{Dot, DotRow, Dots, cut};
pub use file::{png, standalone};
pub use heat::{Field, Heat};
pub use intervals::{Interval, Ratios};
pub use levels::{Level, LevelRow, Levels, row_height};
pub use lines::{Failure, Line, Lines, Point};
pub use log::LogScale;
pub use over_time::{OverTime, Trace};
pub use scale::Scale;
pub use scatter::{Dotted, Reference, Scatter};
pub use sparks::{Spark, SparkDot};
pub use squares::{Fit, Square, SquareRow, Squares};
pub use stacks::{Stack, Stacks};
pub use svg::{Anchor, Canvas, Shape, escape};
pub use tails::{Tail, Tails};
pub use timelines::{Area, Lane, Timelines, peak};

/// Width of a panel: drawn once, wrapped and never shrunk.
pub const WIDTH: f64 = 336.0;
/// Width of a panel of timelines, four beside each other.
pub const NARROW: f64 = 246.0;

/// A drawing, ready to be placed.
#[derive(Debug, Clone)]
pub struct Drawing {
    pub width: f64,
    pub height: f64,
    pub body: String,
}

/// One panel of a figure.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Bold: the workload, or the cell.
    pub title: String,
    /// Grey: model, data set, batch size.
    pub subtitle: String,
    /// What the drawing shows, for those who cannot see it.
    pub label: String,
    pub drawing: Drawing,
}

/// The class of a sharing mode's family, which gives its hue. A mode not known here is drawn in ink.
pub fn family(sharing: &str) -> &'static str {
    match Sharing::of_label(sharing).family.as_str() {
        _ if sharing == "solo" => "solo",
        "naive" => "naive",
        "mps" => "mps",
        "mig" => "mig",
        _ => "other",
    }
}

/// The family's mark; a variant of a family has its hue and another mark.
pub fn shape(sharing: &str) -> Shape {
    let mode = Sharing::of_label(sharing);
    match family(sharing) {
        _ if mode.partitioned && mode.mps => Shape::Cross,
        _ if mode.limited => Shape::Plus,
        "naive" => Shape::Circle,
        "mps" => Shape::Square,
        "mig" => Shape::Triangle,
        _ => Shape::Diamond,
    }
}

/// A sharing mode as legends print it: `naive`, `MPS`, `MIG 4g.20gb`, `MPS 50%`.
pub fn mode_label(sharing: &str) -> String {
    let part = |part: &str| match part.split_once(':') {
        _ if !matches!(family(part), "mps" | "mig") => part.to_string(),
        Some((head, rest)) => format!("{} {rest}", head.to_uppercase()),
        None => part.to_uppercase(),
    };
    sharing.split('+').map(part).collect::<Vec<_>>().join("+")
}

/// The order of modes everywhere: solo, naive, MPS, MIG, then the others by name.
pub fn mode_order(sharing: &str) -> (usize, &str) {
    let rank = ["solo", "naive", "mps", "mig"].iter().position(|f| *f == family(sharing)).unwrap_or(4);
    (rank, sharing)
}

/// Horizontal gridlines with their ticks, and the axis' caption top left.
fn grid(c: &mut Canvas, y: &Scale, (left, right): (f64, f64), caption: &str) {
    c.text("cap", (0.0, 11.0), Anchor::Start, caption);
    for tick in y.ticks() {
        let at = y.px(tick);
        c.line(if tick == 0.0 { "ax" } else { "gr" }, (left, at), (right, at));
        c.text("t", (left - 6.0, at + 4.0), Anchor::End, &y.label(tick));
    }
}

/// The gutter that the widest tick needs.
fn gutter(y: &Scale) -> f64 {
    let widest = y.ticks().iter().map(|t| y.label(*t).chars().count()).max().unwrap_or(1);
    10.0 + 7.2 * widest as f64
}
