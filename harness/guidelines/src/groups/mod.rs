//! Guidelines about groups, from what was measured of them and of their members alone; about a sweep over launches, and about what
//! watches.

pub mod alone;
pub mod best_mode;
pub mod collocate;
pub mod energy;
pub mod fairness;
pub mod frontier;
pub mod isolation;
pub mod memory;
pub mod mixing;
pub mod naive;
pub mod pcie;
pub mod prediction;
pub mod saturation;
pub mod serving;
pub mod settings;
pub mod starvation;
pub mod thread_limits;
pub mod threads;
pub mod threshold;
pub mod watching;
