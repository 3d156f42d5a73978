//! Figures. In: names, values and intervals, already chosen by a section. Out: SVG for the page, SVG and PNG files. It does not know
//! where a number comes from.

mod bars;
mod dots;
mod file;
mod lines;
mod scale;
mod stacks;
mod svg;
mod timelines;

pub use bars::{Bar, BarGroup, Bars};
pub use dots::{Dot, DotRow, Dots};
pub use file::{png, standalone};
pub use lines::{Line, Lines, Point};
pub use scale::Scale;
pub use stacks::{Stack, Stacks};
pub use svg::{Anchor, Canvas, Shape, escape};
pub use timelines::{Area, Lane, Timelines, peak};

/// Width of a panel: drawn once, wrapped and never shrunk.
pub const WIDTH: f64 = 336.0;

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
    let head = sharing.split([':', '+']).next().unwrap_or(sharing);
    match head {
        "solo" => "solo",
        "naive" => "naive",
        "mps" => "mps",
        "mig" => "mig",
        _ => "other",
    }
}

/// The family's mark.
pub fn shape(sharing: &str) -> Shape {
    match family(sharing) {
        "naive" => Shape::Circle,
        "mps" => Shape::Square,
        "mig" => Shape::Triangle,
        _ => Shape::Diamond,
    }
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
