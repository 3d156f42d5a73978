//! An experiment through its nights. In: one summary per campaign. Out: which cells stepped, when, by how much, which are too unstable
//! to say, and which no longer run.

mod change;
mod confirm;
mod json;
mod judge;
mod keep;
mod night;
mod noise;
mod page;
mod power;
mod robust;
mod rules;
mod source;
mod story;
mod text;
mod track;
mod words;
mod write;

pub use json::json;
pub use judge::{Common, Judge, Judged, Suspect};
pub use night::{CellNight, Mean, Night};
pub use noise::Noise;
pub use rules::{NIGHTS_TO_LEARN, Rules};
pub use source::{Nights, folder, keep_summary, of, read};
pub use story::{Class, History, Row};
pub use text::terminal;
pub use track::{Point, Step, Track};
pub use write::{Written, write};
