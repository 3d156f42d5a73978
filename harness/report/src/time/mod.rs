//! Sections about time: what groups gain, how long an epoch takes, who is slowed down, how long requests wait.

pub mod epoch_time;
pub mod fairness;
pub mod gain;
pub mod latency;
pub mod matrix;
pub mod mixed;
pub mod pairs;
pub mod threshold;
