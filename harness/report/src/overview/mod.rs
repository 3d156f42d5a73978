//! Sections about the campaign as a whole: what to run, the table of cells, the quality of the measurement, where the numbers come from.

pub mod advice;
mod answer;
pub mod cells;
mod decision;
mod doubts;
pub mod head;
pub mod method;
pub mod provenance;
pub mod quality;
pub mod summary;
pub mod terms;
