//! Families of charts. In: names, values and intervals, already chosen by a section. Out: a drawing. A chart does not know the origin of
//! a number.
//!
//! To add a chart: two axes of `draw/axis.rs`, a frame of `draw/chart.rs`, a mark for each value. Its classes for plotters are in
//! `CLASSES` of `draw/themed.rs`.

mod bars;
mod block;
mod calibration;
mod completions;
mod feasibility_grid;
mod heat;
mod intervals;
mod launches;
mod lines;
mod over_time;
mod rows;
mod scatter;
mod site;
mod sparkline;
mod tails;
mod timelines;

pub use bars::{Bar, BarGroup, Bars};
pub use block::{BlockRun, BlockRuns};
pub use calibration::{Calibrated, OrderedErrors, PredictedMeasured};
pub use completions::{Completion, Completions};
pub use feasibility_grid::{Feasibility, Square, SquareRow, Squares};
pub use heat::{Field, FieldValue, HIGH, Heat, HeatNumber};
pub use intervals::{Interval, Ratios};
pub use launches::{LaunchLine, LaunchMark, Launches};
pub use lines::{DegreePoint, Failure, Lines, ModeLine};
pub use over_time::{OverTime, Trace};
pub use rows::{MarkRow, MarkRows, RowMark, RowScale, row_height};
pub use scatter::{Reference, Scatter, ScatterPoint};
pub use site::{Occupied, SiteTimeline};
pub use sparkline::{Spark, SparkDot};
pub use tails::{Tail, TailChart};
pub use timelines::{Area, Lane, Timelines, peak};
