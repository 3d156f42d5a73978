//! DCGM, through its command `dcgmi`.

pub mod discovery;
pub mod dmon;
