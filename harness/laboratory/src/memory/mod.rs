//! Memory: measured rows described, compared with every estimator, and fitted.

mod described;
mod estimates;
mod fit;

pub use described::Described;
pub use fit::fit;
