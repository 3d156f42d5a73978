//! One stored run, read: which samples count as readings, what they say of windows that count, and the numbers of each member.

pub mod check;
pub mod data;
pub mod headroom;
pub mod idle;
pub mod latency;
pub mod repetition;
pub mod samples;
pub mod trust;
pub mod usage;
