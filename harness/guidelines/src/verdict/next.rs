//! The command that would decide what is open, chosen by why it is open. In: an analysis, the causes, the repetitions that would decide.
//! Out: a command, or what must be done by hand. Repetitions are offered only where more of them would help.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;

use super::{Cause, Groups};

/// What to do next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Next {
    pub command: Option<String>,
    /// What comes first, as a sentence.
    pub before: Option<String>,
}

impl Next {
    fn command(command: String) -> Next {
        Next { command: Some(command), before: None }
    }

    fn after(before: impl Into<String>, command: Option<String>) -> Next {
        Next { command, before: Some(before.into()) }
    }
}

/// What would decide a rule that is open over these groups. `more` are the repetitions that would decide its undecided groups; `measure` is
/// the command that measures such groups, if the campaign has none.
pub fn next(analysis: &Analysis, groups: &Groups, more: Option<usize>, measure: impl FnOnce() -> String) -> Next {
    let name = &analysis.campaign.experiment;
    let none = groups.judged.is_empty() && groups.unjudged.is_empty() && groups.out_of_memory.is_empty();
    match groups.cause() {
        // No campaign continues a merged one.
        _ if analysis.campaign.is_merged() => Next::default(),
        None if none => Next::command(measure()),
        Some(Cause::NotRun) => Next::command(format!("collo run {name}")),
        Some(Cause::Failed(_)) => {
            let failed = groups.unjudged.iter().find(|(_, cause)| matches!(cause, Cause::Failed(_)));
            failed.map_or_else(Next::default, |(cell, _)| Next::command(show(analysis, cell)))
        }
        Some(Cause::NoBaseline(_)) => without_baseline(analysis),
        Some(Cause::Busy) => Next::after("Stop the other processes first.", Some(format!("collo run {name} --new"))),
        Some(Cause::Lowered(why)) => {
            Next::after(format!("Remove the cause first: {why}."), Some(format!("collo run {name} --new")))
        }
        Some(Cause::FewSteps) => Next::after("Set more `epochs`, or longer ones.", None),
        Some(Cause::NoReading(_)) => Next::default(),
        Some(Cause::OneRun) => Next::command(format!("collo run {name} --more {}", more.unwrap_or(2))),
        None => Next { command: more.map(|more| format!("collo run {name} --more {more}")), before: None },
    }
}

/// The command that shows why a cell failed. A label that a shell would read otherwise is replaced by the cell's slug.
fn show(analysis: &Analysis, cell: &Cell) -> String {
    let plain = |c: char| c.is_alphanumeric() || " ×.,_:=+%-".contains(c);
    let label = if cell.name().chars().all(plain) { format!("\"{}\"", cell.name()) } else { cell.record.slug.clone() };
    format!("collo show {} {label}", analysis.campaign.experiment)
}

/// What gives a campaign the baselines that it lacks.
fn without_baseline(analysis: &Analysis) -> Next {
    let name = &analysis.campaign.experiment;
    let refused = |solo: &str| analysis.campaign.plan.refusals.iter().find(|r| r.cell == solo);
    let mut solos = analysis.cells.iter().flat_map(|c| &c.record.members).map(|m| m.solo.as_str());
    if let Some(refusal) = solos.find_map(refused) {
        let before = format!(
            "A baseline is missing: `{}` was refused ({}). Measure it with MIG off in another campaign; the report finds that, or takes it by \
             `--baseline CAMPAIGN`.",
            refusal.cell, refusal.reason
        );
        return Next::after(before, None);
    }
    match analysis.cells.iter().find(|c| c.is_solo() && !c.counts() && c.ran()) {
        Some(solo) => Next::command(show(analysis, solo)),
        None => Next::command(format!("collo run {name}")),
    }
}
