//! What charts are drawn with: axes, frames, marks and text on SVG whose colours the page's style sheet decides, the look of sharing
//! modes, and figures as files.

pub mod axis;
pub mod chart;
pub mod file;
pub mod formats;
pub mod latex;
pub mod look;
pub mod marks;
mod pgf;
pub mod slots;
pub mod themed;

/// Width of a panel: drawn once, wrapped and never shrunk.
pub const WIDTH: f64 = 336.0;
/// Maximum panels of one figure: a page of hundreds is unreadable.
pub const PANELS: usize = 12;
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
