//! Verbs about this machine: what it can measure, how its GPUs are partitioned, and that they are as they were found.
//!
//! In: GPUs by name. Out: checks, layouts, what was changed or restored.

pub mod cards;
pub mod doctor;
pub mod mig;
pub mod restore;
pub mod simulate;
