//! The sections of a report. In: a report. Out: a document: headings, findings, figures and tables, still without markup. A
//! section without data gives the reason in one sentence and keeps its place.
//!
//! To add a section: a file in the room of what it shows (`overview`, `time`, `resources`, `trace`), and its line in
//! [`SECTIONS`]. To add a figure: a `Block::Figure` of its section, drawn by a chart of `figures/src/chart`; where cells stand
//! in it is in `parts/places.rs`, its caption and legend in `parts/figure.rs`; one of bars is a `BarFigure`.

use collo_analysis::campaign::reference::ReferenceVerdict;
use collo_figures::document::{Block, Document, Fact, FactLine, Section};
use collo_guidelines::verdict;

use crate::overview::{cells, head, provenance, quality, summary};
use crate::parts::absent::{self, Content};
use crate::parts::figure::tags;
use crate::parts::notes;
use crate::parts::panels::SWEEP;
use crate::report::Report;
use crate::resources::{cpu, energy, energy_by_member, feasibility, launches, memory, pcie, sm_activity, timeline};
use crate::time::{epoch_time, fairness, gain, latency, matrix, mixed, threshold};
use crate::trace::{self, policies, published, waits};
use crate::{prediction, watching};

/// Deviations from references that are listed at the top; all are under Measurement quality.
const OUTSIDE: usize = 5;

/// Which campaigns have a section.
#[derive(Clone, Copy)]
enum Shown {
    /// All campaigns; without content, the section gives the reason.
    Always,
    /// Workloads and groups: a campaign with nothing but a sweep gives the reason for showing none of them.
    OfGroups,
    If(fn(&Report) -> bool),
    /// The same, of single runs, tasks or samples: a report that was read has none of these.
    OfRuns(fn(&Report) -> bool),
}

use Shown::{Always, If, OfGroups, OfRuns};

/// The anchor and the title of a section, which campaigns have it, and its content.
type SectionRow = (&'static str, &'static str, Shown, fn(&Report) -> Content);

const OF_TRACES: Shown = If(has_traces);

fn has_traces(report: &Report) -> bool {
    !report.analysis.traces.is_empty()
}

/// Every section, in print order: what a trace was measured for comes before what its baselines say.
const SECTIONS: &[SectionRow] = &[
    ("summary", "How to use this GPU", Always, summary),
    ("policies", "Policies", OF_TRACES, policies::section),
    ("waits", "Who waited, who was slowed", OfRuns(has_traces), |r| waits::section(&r.analysis)),
    ("sites", "Cards over time", OfRuns(has_traces), |r| trace::timeline::section(&r.analysis)),
    ("recovery", "Memory and recovery", OF_TRACES, trace::memory::section),
    ("trace-energy", "Energy of traces", OF_TRACES, trace::energy::section),
    ("published-policies", "What was published", OF_TRACES, |r| published::section(&r.analysis)),
    ("gain", "Throughput gain", OfGroups, gain::section),
    ("epoch-time", "Time per epoch", OfGroups, |r| epoch_time::section(&r.analysis)),
    ("threshold", "Threshold", OfGroups, threshold::section),
    ("sm-activity", "SM activity", OfGroups, |r| sm_activity::section(&r.analysis)),
    ("metrics-see", SWEEP, If(|r| !r.analysis.launches().is_empty()), launches::section),
    ("memory", "Memory", OfGroups, memory::section),
    ("prediction", "Predicted and measured", OfRuns(is_predicted), prediction::section),
    ("cpu", "CPU", OfGroups, |r| cpu::section(&r.analysis)),
    ("watching", "The cost of watching", If(|r| !r.analysis.watching.is_empty()), |r| watching::section(&r.analysis)),
    ("pcie", "PCIe", OfGroups, |r| pcie::section(&r.analysis)),
    ("energy", "Energy and power", OfGroups, |r| energy::section(&r.analysis)),
    ("energy-by-member", "Energy by member, modelled", OfRuns(|r| r.energy_model.is_some()), energy_by_member::section),
    ("mixed", "Mixed workloads", OfGroups, |r| mixed::section(&r.analysis)),
    ("latency", "Latency", OfGroups, latency::section),
    ("timelines", "Timelines", OfGroups, |r| timeline::section(&r.analysis)),
    ("feasibility", "Feasibility", Always, |r| feasibility::section(&r.analysis)),
    ("fairness", "Fairness", OfGroups, fairness::section),
    ("cells", "All cells", Always, |r| cells::section(&r.analysis)),
    ("quality", "Measurement quality", Always, |r| quality::section(&r.analysis)),
    ("provenance", "Provenance", Always, |r| Ok(provenance::section(&r.analysis))),
];

fn is_predicted(report: &Report) -> bool {
    report.analysis.campaign.predicted.is_some() || report.analysis.report.as_ref().is_some_and(|report| report.is_predicted)
}

/// The summary, which begins with the gain, the first figure of the page.
fn summary(report: &Report) -> Content {
    let mut section = summary::section(report);
    section.blocks.splice(0..0, matrix::of(&report.analysis).map(Block::Figure));
    Ok(section)
}

/// The sections of a report, in print order.
fn all(report: &Report) -> Vec<Section> {
    let instead = launches::instead(&report.analysis);
    let section = |(id, title, shown, content): &SectionRow| {
        let content = match (shown, &instead) {
            (If(has) | OfRuns(has), _) if !has(report) => return None,
            (OfRuns(_), _) if report.read.is_some() => Err(absent::NO_RUNS.into()),
            (OfGroups, Some(why)) => Err(why.clone()),
            _ => content(report),
        };
        Some(match content {
            Ok(section) if !section.title.is_empty() => Section { id, ..section },
            Ok(section) => Section { id, title, ..section },
            Err(why) => Section { left_out: !matches!(shown, Always), ..absent::without(id, title, why) },
        })
    };
    SECTIONS.iter().filter_map(section).collect()
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
        warnings: notes::of_report(analysis).into_iter().chain(verdict::unfinished(analysis)).chain(analysis
            .references
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
