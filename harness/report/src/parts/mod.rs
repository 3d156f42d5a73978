//! What sections share: notes, findings, tags, captions, places in figures, values in tables.

pub mod absent;
pub mod anchor;
pub mod bars;
pub mod figure;
pub mod finding;
pub mod notes;
pub mod panels;
pub mod places;
pub mod published;
pub mod refused;
pub mod values;
