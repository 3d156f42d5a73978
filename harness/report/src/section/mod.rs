//! The sections of a report. In: a report. Out: a document: headings, findings, figures and tables, still without markup. A
//! section without data gives the reason in one sentence and keeps its place.
//!
//! To add one: a file here, and its line in [`all`], which is the order of the page.

mod absent;
mod advice;
mod anchor;
mod bars;
mod cells;
mod cpu;
mod energy;
mod energy_by_member;
mod epoch_time;
mod fairness;
mod feasibility;
mod figure;
pub mod finding;
mod frontier;
mod gain;
mod head;
mod latency;
mod launches;
mod matrix;
mod memory;
mod mixed;
pub mod notes;
mod over_time;
mod pairs;
mod panels;
mod pcie;
mod places;
pub mod prediction;
pub mod provenance;
mod quality;
mod refused;
mod sm_activity;
mod summary;
mod threshold;
mod timeline;
mod trace;
mod values;
mod watching;

use collo_figures::document::{Block, Section};

use crate::report::Report;

pub use cells::brief as brief_cells;
pub use figure::tags;
pub use head::document;
pub use latency::trainers_slowdown;
pub use panels::{called, degrees};
pub use trace::{policy_costs, policy_times, remarks as trace_remarks};
pub use watching::tables as watched;

/// Sections that draw workloads and groups.
const DRAWN: [&str; 12] = [
    "gain",
    "epoch-time",
    "threshold",
    "sm-activity",
    "memory",
    "cpu",
    "pcie",
    "energy",
    "mixed",
    "latency",
    "timelines",
    "fairness",
];

/// Every section, in print order.
fn all(report: &Report) -> Vec<Section> {
    let analysis = &report.analysis;
    let mut summary = summary::section(report);
    // The first figure of the page is the gain.
    summary.blocks.splice(0..0, matrix::of(analysis).map(Block::Figure));
    let mut all = vec![
        summary,
        gain::section(report),
        epoch_time::section(analysis),
        threshold::section(report),
        sm_activity::section(analysis),
        memory::section(report),
        cpu::section(analysis),
        pcie::section(analysis),
        energy::section(analysis),
        mixed::section(analysis),
        latency::section(report),
        timeline::section(analysis),
        feasibility::section(analysis),
        fairness::section(report),
        cells::section(analysis),
        quality::section(analysis),
        provenance::section(analysis),
    ];
    if let Some(why) = launches::instead(analysis) {
        // A panel for each point of a sweep shows nothing of it.
        all.iter_mut().filter(|s| DRAWN.contains(&s.id)).for_each(|s| *s = absent::without(s.id, s.title, why.clone()));
    }
    // What a trace was measured for comes before what its baselines say.
    let traces = trace::all(report);
    all.splice(1..1, traces);
    // Beside what was measured.
    let mut insert = |section: Section, beside: &str| {
        let after = all.iter().position(|s| s.id == beside).map_or(all.len(), |at| at + 1);
        all.insert(after, section);
    };
    if let Some(model) = report.energy_model {
        insert(energy_by_member::section(analysis, model), "energy");
    }
    if let Some(sweep) = launches::section(report) {
        insert(sweep, "sm-activity");
    }
    if let Some(watching) = watching::section(report) {
        insert(watching, "cpu");
    }
    if let Some(prediction) = prediction::section(report) {
        insert(prediction, "memory");
    }
    all
}
