//! Company: groups that shared a device, compared with predictions and fitted. In: tables of pairs and of profiles, campaigns. Out: scores,
//! a predictor.

mod campaigns;
mod fit;
mod groups;
mod lines;
mod pairs;
mod scores;

pub use fit::fit;
pub use groups::{Groups, Measured, STEP_S, read};
pub use scores::{NamedScore, by_file, left_out};
