//! Company: groups that shared a device, compared with predictions and fitted. In: tables of pairs and of profiles, campaigns. Out: scores,
//! a predictor file.

mod campaigns;
mod fit;
mod groups;
mod lines;
mod pairs;
mod scores;
mod shown;

pub use fit::fit;
pub use scores::evaluate;
pub use shown::in_full;
