//! The sections of a report. In: a report. Out: a document: headings, findings, figures and tables, still without markup. A
//! section without data gives the reason in one sentence and keeps its place.
//!
//! To add a section: a file in the room of what it shows (`overview`, `time`, `resources`, `trace`), and its line in [`all`], which is the
//! order of the page. To add a figure: a `Block::Figure` of its section, drawn by a chart of `figures/src/chart`; where cells stand in it is
//! in `parts/places.rs`, its caption and legend in `parts/figure.rs`. A section with a panel for each workload is also in [`DRAWN`].

use collo_analysis::campaign::reference::ReferenceVerdict;
use collo_figures::document::{Block, Document, Fact, FactLine, Section};
use collo_guidelines::verdict;

use crate::overview::{cells, head, provenance, quality, summary};
use crate::parts::absent;
use crate::parts::figure::tags;
use crate::report::Report;
use crate::resources::{cpu, energy, energy_by_member, feasibility, launches, memory, pcie, sm_activity, timeline};
use crate::time::{epoch_time, fairness, gain, latency, matrix, mixed, threshold};
use crate::{prediction, trace, watching};

/// Deviations from references that are listed at the top; all are under Measurement quality.
const OUTSIDE: usize = 5;

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

/// The report as a document. `plots` is the folder of its figures as files, relative to the report.
pub fn document(report: &Report, plots: Option<String>) -> Document {
    let analysis = &report.analysis;
    let c = &analysis.campaign;
    let device = c.device.text();
    let (sections, left_out) = absent::apart(all(report));
    let described = c.description.as_ref().map_or_else(String::new, |text| format!("{text}: "));
    Document {
        name: format!("collo report: {} on {device}", c.experiment),
        title: head::title(analysis),
        tags: tags(analysis),
        simulated: c.device.simulated.then(|| {
            "Nothing here was measured. The numbers come from a documented interference model: their bars are hatched, their marks hollow."
                .into()
        }),
        subtitle: format!("{described}experiment `{}`", c.experiment),
        facts: vec![
            Fact {
                name: "Device".into(),
                lines: [device].into_iter().chain(c.machine.cpu_model.clone()).map(FactLine::Text).collect(),
            },
            Fact::campaign("Campaign", &c.created_utc, &c.id),
            head::accounted(analysis),
        ],
        files: vec![("Markdown", "report.md"), ("JSON", "report.json"), ("CSV", "report.csv")],
        plots,
        runs: None,
        warnings: verdict::unfinished(analysis).into_iter().chain(analysis
            .references()
            .iter()
            .filter(|r| r.verdict == ReferenceVerdict::Outside)
            .take(OUTSIDE)
            .map(|r| format!("not as the reference: {}", r.text())))
            .collect(),
        sections,
        left_out,
        interactive: true,
    }
}
