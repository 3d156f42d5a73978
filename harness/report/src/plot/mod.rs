//! Figures. In: names, values and intervals, already chosen by a section. Out: SVG for the page, SVG and PNG files. It does not
//! know the origin of a number.

mod axis;
mod bars;
mod calibration;
mod chart;
mod completions;
mod delays;
mod dots;
mod feasibility_grid;
mod file;
mod heat;
mod horizontal_bars;
mod intervals;
mod launches;
mod lines;
mod modes;
mod over_time;
mod scatter;
mod site;
mod slots;
mod sparkline;
mod stacks;
mod tails;
mod themed;
mod timelines;

use themed::{Anchor, escape};

pub use bars::{Bar, BarGroup, Bars};
pub use calibration::{Calibrated, OrderedErrors, PredictedMeasured};
pub use completions::{Completion, Completions};
pub use delays::{Delay, DelayRow, Delays};
pub use dots::{Dot, DotRow, Dots};
pub use feasibility_grid::{Feasibility, Square, SquareRow, Squares};
pub use file::{Sheet, png, standalone};
pub use heat::{Field, FieldValue, HIGH, Heat, HeatNumber};
pub use horizontal_bars::{LevelBar, LevelRow, Levels, row_height};
pub use intervals::{Interval, Ratios};
pub use launches::{LaunchLine, LaunchMark, Launches};
pub use lines::{DegreePoint, Failure, Lines, ModeLine};
pub use modes::{TINTS, WORKLOAD_TINTS, family, glyph, hue, mark, mode_label, mode_order, shape, slices};
pub use over_time::{OverTime, Trace};
pub use scatter::{Reference, ReferenceLine, Scatter};
pub use site::{Occupied, SiteTimeline};
pub use slots::reach;
pub use sparkline::{Spark, SparkDot};
pub use stacks::{Stack, Stacks};
pub use tails::{Tail, TailChart};
pub use timelines::{Area, Lane, Timelines, peak};

/// Width of a panel: drawn once, wrapped and never shrunk.
pub const WIDTH: f64 = 336.0;
/// Width of a panel that is as wide as the page.
pub const LONG: f64 = 760.0;
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

/// A label truncated to fit.
pub fn cut(label: &str, most: usize) -> String {
    if label.chars().count() <= most {
        return label.to_string();
    }
    format!("{}…", label.chars().take(most - 1).collect::<String>())
}
