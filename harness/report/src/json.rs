//! A report as `report.json` has it. In: a report. Out: its numbers and guidelines, with the answer and the decisions of its first screen.

use collo_figures::document::{Block, TextKind, begin_commands_with};
use collo_guidelines::report_json::ReportJson;

use crate::overview::summary;
use crate::report::Report;
use crate::sections;

/// As `report.json` has it; one that was read, as its file has it.
pub fn json(report: &Report) -> ReportJson {
    match report.read.as_deref() {
        Some(read) => read.clone(),
        None => ReportJson {
            answer: answer(report),
            decisions: summary::decisions_json(&report.analysis),
            ..ReportJson::new(&report.analysis, &report.guidelines)
        },
    }
}

/// The sentences that answer, which are findings of sections where no group and no guideline is decided; else why there are none.
fn answer(report: &Report) -> Vec<String> {
    let mut decided = summary::answer(report);
    if !decided.is_empty() {
        let command = report.analysis.campaign.command();
        decided.iter_mut().for_each(|text| begin_commands_with(TextKind::Prose, text, &command));
        return decided;
    }
    let sections = sections::document(report, None).sections;
    let Some(summary) = sections.into_iter().find(|s| s.id == "summary") else { return Vec::new() };
    let answers =
        summary.blocks.into_iter().filter_map(|b| if let Block::Answer(answer) = b { Some(answer.paragraphs) } else { None });
    answers.flatten().chain(Some(summary.finding).filter(|finding| !finding.is_empty())).collect()
}
