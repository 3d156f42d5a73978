//! Company. In: tables of pairs and of profiles, campaigns. Out: groups that shared a device, a predictor.

mod campaigns;
mod fit;
mod groups;
mod pairs;

pub use fit::fit;
pub use groups::{Groups, Measured, read};
pub use pairs::TELLS_PAIRS;
