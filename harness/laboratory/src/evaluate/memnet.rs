//! GPUMemNet beside the predictions: its two ensembles, rebuilt and trained on the same rows. In: measured rows with their descriptions.
//! Out: a table, and the words that it needs.

use std::path::Path;

use collo_figures::document::Table;
use collo_prepare::memnet;
use collo_prepare::memnet::{MemnetAnswer, MemnetOptions, MemnetResult, MemnetRow};
use collo_text::units::percent;
use collo_text::{Diagnostics, Remark};

use super::{Scores, Shown, note, table};
use crate::caller::Caller;

pub fn trained(
    caller: &dyn Caller,
    python: Option<&Path>,
    options: MemnetOptions,
    rows: &[MemnetRow],
) -> Result<MemnetAnswer, Diagnostics> {
    note(caller, format!("GPUMemNet is trained on {} rows: minutes; each number is of rows that were kept apart", rows.len()));
    let mut display = caller.display();
    Ok(memnet::memnet(&caller.project()?, python, rows, options, &mut *display)?)
}

/// Add its table, in JSON the caller has it.
pub fn add(scores: &mut Scores, answer: &MemnetAnswer) {
    if !answer.results.is_empty() {
        scores.table(of_results(&answer.results));
    }
    for result in &answer.results {
        let bins = result.bins.iter().map(|bin| format!("{} {} of {}", bin.from_mib, percent(bin.recall), bin.rows));
        let bins = bins.collect::<Vec<_>>().join(", ");
        scores.lines(format!("recall by bin, from MiB: {}: {bins}", name(result)));
    }
    answer.left_out.iter().for_each(|what| scores.shown.push(Shown::Remark(Remark::Warning(what.to_string()))));
    if answer.results.iter().any(|result| result.folds == "original") {
        scores.note(
            "trained on: as the public code does, one model goes on from fold to fold, and knows most rows it is judged by",
        );
    }
    scores.note("rebuilt and trained here: the published weights are in no number");
}

/// `cnn nets, transformer ensemble, separate folds`
fn name(result: &MemnetResult) -> String {
    let folds = match result.folds.as_str() {
        "once" => "70/20/10",
        "original" => "folds trained on",
        _ => "separate folds",
    };
    format!("{} nets, {} ensemble, {folds}", result.kind, result.ensemble)
}

fn of_results(results: &[MemnetResult]) -> Table {
    let lines = results.iter().map(|result| {
        let splits = result.splits.iter().map(|split| percent(split.accuracy)).collect::<Vec<_>>().join(", ");
        vec![
            Some(name(result)),
            Some(result.bin_mib.to_string()),
            Some(result.rows.to_string()),
            Some(percent(result.accuracy)),
            Some(percent(result.majority)),
            Some(percent(result.below)),
            Some(splits),
        ]
    });
    table("GPUMemNet", &["bins, MiB", "rows", "right", "commonest bin", "too low"], Some("each split"), 4, lines)
}
