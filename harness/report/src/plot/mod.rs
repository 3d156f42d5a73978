//! Figures. In: names, values and intervals, already chosen by a section. Out: SVG for the page, SVG and PNG files. It does not
//! know the origin of a number.

mod axis;
mod bars;
mod chart;
mod delays;
mod dots;
mod feasibility_grid;
mod file;
mod heat;
mod horizontal_bars;
mod intervals;
mod lines;
mod over_time;
mod scatter;
mod sparkline;
mod stacks;
mod tails;
mod themed;
mod timelines;

use collo_store::Sharing;
use themed::{Anchor, Shape, escape};

pub use bars::{Bar, BarGroup, Bars};
pub use delays::{Delay, DelayRow, Delays};
pub use dots::{Dot, DotRow, Dots};
pub use feasibility_grid::{Feasibility, Square, SquareRow, Squares};
pub use file::{Sheet, png, standalone};
pub use heat::{Field, Heat};
pub use horizontal_bars::{LevelBar, LevelRow, Levels, row_height};
pub use intervals::{Interval, Ratios};
pub use lines::{DegreePoint, Failure, Lines, ModeLine};
pub use over_time::{OverTime, Trace};
pub use scatter::{Reference, ReferenceLine, Scatter};
pub use sparkline::{Spark, SparkDot};
pub use stacks::{Stack, Stacks};
pub use tails::{Tail, TailChart};
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
    /// A description of the drawing, for those who cannot see it.
    pub label: String,
    pub drawing: Drawing,
}

/// A mode's mark beside its name, as markup: it contains only the family's class and fixed shapes, never a label.
pub fn mark(sharing: &str) -> String {
    let drawing = chart::drawing((12.0, 12.0), |svg| {
        svg.open(family(sharing));
        svg.shape(shape(sharing), "mk", (6.0, 6.0));
        svg.close();
    });
    format!(r#"<svg class="mark" viewBox="0 0 12 12" aria-hidden="true">{}</svg>"#, drawing.body)
}

/// A ratio on a logarithmic axis from a half to eight, with a line at 1, as markup. Digits are beside it.
pub fn glyph(ratio: &f64, sharing: &str) -> String {
    let place = |x: f64| 4.0 + (x.clamp(0.5, 8.0) / 0.5).ln() / 16f64.ln() * 48.0;
    let drawing = chart::drawing((56.0, 14.0), |svg| {
        svg.line("ref", (place(1.0), 1.0), (place(1.0), 13.0));
        svg.open(family(sharing));
        svg.shape(shape(sharing), "mk", (place(*ratio), 7.0));
        svg.close();
    });
    format!(r#"<svg class="glyph" viewBox="0 0 56 14" aria-hidden="true">{}</svg>"#, drawing.body)
}

/// The class of a sharing mode's family, which determines its hue. An unknown mode is drawn in ink.
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
fn shape(sharing: &str) -> Shape {
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

/// A label truncated to fit.
pub fn cut(label: &str, most: usize) -> String {
    if label.chars().count() <= most {
        return label.to_string();
    }
    format!("{}…", label.chars().take(most - 1).collect::<String>())
}

/// The order of modes everywhere: solo, naive, MPS, MIG, then the others by name.
pub fn mode_order(sharing: &str) -> (usize, &str) {
    let rank = ["solo", "naive", "mps", "mig"].iter().position(|f| *f == family(sharing)).unwrap_or(4);
    (rank, sharing)
}
