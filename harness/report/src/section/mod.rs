//! The sections of a report. In: an analysis. Out: a document: headings, findings, figures and tables, still without markup. A
//! section without data says in one sentence why and keeps its place.
//!
//! To add one: a file here, and its line in [`all`], which is the order of the page.

mod absent;
mod advice;
mod anchor;
mod bars;
mod cells;
mod cpu;
mod energy;
mod epoch_time;
mod fairness;
mod feasibility;
mod figure;
pub mod finding;
mod frontier;
mod gain;
mod head;
mod latency;
mod memory;
mod mixed;
mod over_time;
mod pairs;
mod panels;
mod pcie;
mod provenance;
mod quality;
mod sm_activity;
mod summary;
mod threshold;
mod timeline;
mod values;

use crate::analysis::Analysis;
use crate::document::Section;

pub use figure::tags;
pub use head::document;

/// Every section, in print order.
fn all(analysis: &Analysis) -> Vec<Section> {
    vec![
        summary::section(analysis),
        epoch_time::section(analysis),
        gain::section(analysis),
        threshold::section(analysis),
        sm_activity::section(analysis),
        memory::section(analysis),
        cpu::section(analysis),
        pcie::section(analysis),
        energy::section(analysis),
        mixed::section(analysis),
        latency::section(analysis),
        timeline::section(analysis),
        feasibility::section(analysis),
        fairness::section(analysis),
        cells::section(analysis),
        quality::section(analysis),
        provenance::section(analysis),
    ]
}
