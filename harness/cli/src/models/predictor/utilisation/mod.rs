//! Predictors of utilisation, power and step time. In: what was asked for. Out: a predictor file, or scores.

mod evaluate;
mod fit;
mod show;

pub use evaluate::evaluate;
pub use fit::fit;
pub use show::{in_full, left_out};
