//! Verbs about what is stored: campaigns and their reports, listed, shown, compared, merged, verified, packed, imported and deleted.
//!
//! In: names of campaigns, reports and bundles. Out: lines or JSON; of some verbs files. Nothing is measured here.

pub mod bundle;
pub mod compare;
pub mod import;
pub mod list;
pub mod merge;
pub mod prune;
pub mod report;
pub mod show;
pub mod status;
pub mod verify;
