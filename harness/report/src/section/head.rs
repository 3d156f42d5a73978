//! The head of a report: what was measured, on what, and how much of the plan is accounted for.

use collo_analysis::campaign::Analysis;
use collo_analysis::campaign::reference::ReferenceVerdict;
use collo_analysis::words;
use collo_figures::document::{Document, Fact, FactLine};
use collo_guidelines::verdict;
use collo_quantity::number;

use crate::report::Report;

/// Deviations from references that are listed at the top; all are under Measurement quality.
const OUTSIDE: usize = 5;

/// The report as a document. `plots` is the folder of its figures as files, relative to the report.
pub fn document(report: &Report, plots: Option<String>) -> Document {
    let analysis = &report.analysis;
    let c = &analysis.campaign;
    let device = c.device.text();
    let (sections, left_out) = super::absent::apart(super::all(report));
    let described = c.description.as_ref().map_or_else(String::new, |text| format!("{text}: "));
    Document {
        name: format!("collo report: {} on {device}", c.experiment),
        title: title(analysis),
        tags: super::tags(analysis),
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
            accounted(analysis),
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

/// The outcomes of the planned runs, and the validity of their cells.
fn accounted(analysis: &Analysis) -> Fact {
    let ended: Vec<(&str, usize)> = analysis.accounted.iter().map(|(word, n)| (*word, *n)).filter(|(_, n)| *n > 0).collect();
    let class = |word: &str| match word {
        "completed" => "c",
        "missing" => "r",
        _ => "o",
    };
    let strip: Vec<_> = ended.iter().map(|(word, n)| (class(word), *n)).collect();
    let said: Vec<String> = ended.iter().map(|(word, n)| format!("{n} {}", words::outcome(word))).collect();
    let said = if said.is_empty() { "no run is planned".to_string() } else { said.join(", ") };
    let time = analysis.measured_for_s.filter(|_| analysis.count("completed") > 0);
    let time = time.map_or_else(String::new, |s| format!(" in {}", number::duration(s)));
    let refused = analysis.campaign.plan.refusals.len();
    let beside = if refused == 0 { String::new() } else { format!("; {} refused", number::count(refused, "cell")) };
    Fact {
        name: format!("{} planned, {} accounted for", analysis.planned, analysis.planned - analysis.count("missing")),
        lines: vec![
            FactLine::Strip(if strip.is_empty() { vec![("r", 1)] } else { strip }, said.clone()),
            FactLine::Text(format!("{said}{time}{beside}")),
            FactLine::Link(super::notes::verdicts(analysis), "quality"),
        ],
    }
}

/// `How to share two cores`.
fn title(analysis: &Analysis) -> String {
    let device = &analysis.campaign.device;
    if analysis.groups().next().is_none() && !analysis.watching.is_empty() {
        return format!("What watching costs on the {}", device.name_said());
    }
    match (device.kind.as_str(), device.cores) {
        ("cpu", Some(1)) => "How to share one core".into(),
        ("cpu", Some(n)) => format!("How to share {} cores", number::word(n)),
        _ => format!("How to share the {}", device.name_said()),
    }
}
