//! The sections of a report. In: a report. Out: a document: headings, findings, figures and tables, still without markup. A
//! section without data gives the reason in one sentence and keeps its place.
//!
//! To add a section: a file in the room of what it shows (`overview`, `time`, `resources`, `trace`), and its line in
//! [`SECTIONS`]. To add a figure: a `Block::Figure` of its section, drawn by a chart of `figures/src/chart`; where cells stand
//! in it is in `parts/places.rs`, its caption and legend in `parts/figure.rs`; one of bars is a `BarFigure`.

use collo_analysis::cell::Cell;
use collo_figures::document::{Block, Document, Fact, Section, common_settings};

use crate::overview::{advice, cells, head, method, provenance, quality, summary, terms};
use crate::parts::absent::{self, Content};
use crate::parts::figure::tags;
use crate::parts::panels::SWEEP;
use crate::report::Report;
use crate::resources::{cpu, energy, energy_by_member, feasibility, launches, memory, pcie, sm_activity, timeline};
use crate::time::{epoch_time, fairness, gain, latency, mixed, threshold};
use crate::trace::{self, policies, published, waits};
use crate::{prediction, watching};

/// The sections that a page shows at once; the others are folded under their findings.
pub const OPEN: [&str; 2] = ["summary", "guidelines"];

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

/// All campaigns; left out without content.
const IF_ANY: Shown = If(|_| true);

fn has_traces(report: &Report) -> bool {
    !report.analysis.traces.is_empty()
}

/// Every section, in print order: what a trace was measured for comes before what its baselines say.
const SECTIONS: &[SectionRow] = &[
    ("summary", "How to use this GPU", Always, |r| Ok(summary::section(r))),
    ("guidelines", "Guidelines", If(|r| !r.guidelines.is_empty()), guidelines),
    ("method", "How this was measured", OfRuns(method::is_known), |r| Ok(method::section(&r.analysis))),
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
    ("feasibility", "Feasibility", IF_ANY, |r| feasibility::section(&r.analysis)),
    ("fairness", "Fairness", OfGroups, fairness::section),
    ("cells", "All cells", Always, |r| cells::section(&r.analysis)),
    ("quality", "Measurement quality", Always, |r| quality::section(&r.analysis)),
    ("terms", "Terms", If(has_numbers), |_| Ok(terms::section())),
    ("provenance", "Provenance", Always, |r| Ok(provenance::section(&r.analysis, r.digest.as_deref()))),
];

fn has_numbers(report: &Report) -> bool {
    absent::nothing(&report.analysis).is_none()
}

fn is_predicted(report: &Report) -> bool {
    report.analysis.campaign.predicted.is_some() || report.analysis.report.as_ref().is_some_and(|report| report.is_predicted)
}

/// The guidelines, below the answer.
fn guidelines(report: &Report) -> Content {
    Ok(Section { blocks: advice::blocks(&report.analysis, &report.guidelines), ..Section::default() })
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
        let folded = !OPEN.contains(id);
        Some(match content {
            Ok(section) if !section.title.is_empty() => Section { id, folded, ..section },
            Ok(section) => Section { id, title, folded, ..section },
            Err(why) => Section { left_out: !matches!(shown, Always), ..absent::without(id, title, why) },
        })
    };
    SECTIONS.iter().filter_map(section).collect()
}

/// Where no group and no guideline is decided, the findings of what was measured are the answer.
fn answer_by_findings(sections: &mut [Section]) {
    let findings = sections.iter().filter(|s| s.answers).map(|s| s.finding.clone());
    let findings: Vec<String> = findings.filter(|finding| !finding.is_empty()).take(2).collect();
    let Some(summary) = sections.iter_mut().find(|s| s.id == "summary") else { return };
    let mut is_used = false;
    for block in &mut summary.blocks {
        if let Block::Answer(answer) = block
            && answer.paragraphs.is_empty()
            && !findings.is_empty()
        {
            answer.paragraphs.clone_from(&findings);
            summary.finding.clear();
            is_used = true;
        }
    }
    // The page has them once.
    for section in sections.iter_mut().filter(|s| is_used && s.answers && findings.contains(&s.finding)) {
        section.finding.clear();
    }
}

/// The report as a document. `plots` is the folder of its figures as files, relative to the report.
pub fn document(report: &Report, plots: Option<String>) -> Document {
    let analysis = &report.analysis;
    let c = &analysis.campaign;
    let device = c.device.text();
    let (mut sections, left_out) = absent::apart(all(report));
    answer_by_findings(&mut sections);
    if sections.iter().any(|section| section.id == "terms") {
        terms::link(&mut sections);
    }
    let common = match common_settings(analysis.cells.iter().map(Cell::name)) {
        none if none.is_empty() => none,
        settings => format!("; every cell with{settings}"),
    };
    let described = c.description.as_ref().map_or_else(String::new, |text| format!("{text}: "));
    let mut document = Document {
        name: format!("collo report: {} on {device}", c.experiment),
        title: head::title(analysis),
        tags: tags(analysis),
        simulated: c.device.simulated.then(|| {
            "Nothing here was measured. The numbers come from a documented interference model: their bars are hatched, their marks hollow."
                .into()
        }),
        subtitle: format!("{described}experiment `{}`{common}", c.experiment),
        facts: vec![
            head::device(analysis),
            Fact::campaign("Campaign", &c.created_utc, &c.id),
            head::accounted(analysis),
        ],
        files: vec![("Markdown", "report.md"), ("JSON", "report.json"), ("CSV", "report.csv")],
        alone: alone(report),
        live: None,
        plots,
        runs: None,
        warnings: Vec::new(),
        sections,
        left_out,
        interactive: true,
    };
    document.begin_commands_with(&c.command());
    document
}

/// Characters of a digest in the head; Provenance has all of it.
const DIGITS: usize = 24;

/// What a reader of the page alone should know of its links.
fn alone(report: &Report) -> String {
    let links = "Links to files need the folder of this report";
    let campaign = &report.analysis.campaign;
    match &report.digest {
        Some(digest) if !campaign.is_merged() && report.anonymity.is_none() => {
            let begin: String = digest.chars().take(DIGITS).collect();
            format!("{links}; `collo bundle {}` packs it with the runs and `campaign.json` ({begin}…).", campaign.short_id())
        }
        _ => format!("{links}."),
    }
}

/// Leave the settings that all cells have in common out of the names of a document: its subtitle has them.
pub fn shorten(report: &Report, document: &mut Document) {
    document.shorten(&common_settings(report.analysis.cells.iter().map(Cell::name)));
}

/// The report as a document of its own, with short names.
pub fn shortened(report: &Report) -> Document {
    let mut document = document(report, None);
    shorten(report, &mut document);
    document
}
