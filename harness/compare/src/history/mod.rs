//! An experiment over its nights. In: one summary per campaign. Out: which cells stepped, when, by how much, which are too
//! unstable to judge, and which no longer run.

mod brief;
mod change;
mod codec;
mod confirm;
mod detect;
mod json;
mod night;
mod noise;
mod page;
mod power;
mod rules;
mod source;
mod summary;
mod track;
mod variation;
mod words;

pub use detect::{Common, Judge, JudgedNight, Mixture, Suspect};
pub use night::{CellNight, Mean, NightlyRun};
pub use noise::Noise;
pub use rules::{NIGHTS_TO_LEARN, Rules};
pub use source::{NightlySummary, folder, keep_summary, of, place, read};
pub use summary::{CellHistory, Class, History};
pub use track::{NightPoint, Step, Track};
pub use variation::{CampaignVariation, CellVariation, between};

use collo_figures::document::{Block, Document, Present};

impl Present for History {
    const NAME: &'static str = "history";
    const PAGE: &'static str = "index";

    fn json(&self) -> serde_json::Value {
        json::json(self)
    }

    fn brief(&self) -> Vec<Block> {
        brief::blocks(self)
    }

    fn document(&self) -> Document {
        page::document(self)
    }
}
