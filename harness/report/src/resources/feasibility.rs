//! What ran, what ran out of memory, what was refused.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::words;
use collo_figures::document::{Block, Section, Table, TableCell};
use collo_quantity::number;

use crate::parts::absent::{Content, NO_ENDS};

/// Maximum number of failures and refusals listed.
const NOTES: usize = 60;

pub fn section(analysis: &Analysis) -> Content {
    let refusals = &analysis.campaign.plan.refusals;
    if analysis.cells.is_empty() && refusals.is_empty() {
        return Err("The plan has no cells and no refusals.".into());
    }
    let whole = |c: &Cell| c.outcome() == "completed" && c.ran();
    if refusals.is_empty() && analysis.has_ends() && analysis.all_cells().all(whole) {
        return Err("Every planned cell completed all its runs, and none was refused.".into());
    }
    let mut blocks = vec![];
    if !analysis.cells.is_empty() && !analysis.only_sweeps() {
        blocks.push(Block::Figure(super::frontier::figure(analysis)));
    }
    let failed = failures(analysis);
    if !failed.is_empty() {
        blocks.push(Block::Notes(failed));
    }
    if !refusals.is_empty() {
        let mut table = Table::with(&["refused cell", "sharing", "reason", "hint"]);
        table.caption = "Cells that cannot run here".into();
        if refusals.len() > NOTES {
            table.caption += &format!(": the first {NOTES} of {}", refusals.len());
        }
        for r in refusals.iter().take(NOTES) {
            let hint = r.hint.clone().unwrap_or_default();
            let plain = |text: &String| TableCell::text(text.replace('`', ""));
            table.row([&r.cell, &r.sharing, &r.reason, &hint].map(plain).to_vec());
        }
        blocks.push(Block::Table(table));
    }
    Ok(Section { finding: finding(analysis), blocks, ..Section::default() })
}

/// Every other outcome of a cell's runs, with its count.
fn failures(analysis: &Analysis) -> Vec<String> {
    let mut found: Vec<(&str, String, usize)> = Vec::new();
    for r in analysis.all_cells().flat_map(|c| &c.repetitions).filter(|r| r.record().outcome.as_str() != "completed") {
        let log = r.record().members.iter().find_map(|m| m.log_tail.last());
        let (cell, how) = (r.record().cell.cell.as_str(), with_log(&why(r), log.map(String::as_str)));
        // Runs of one cell stand together.
        match found.iter_mut().rev().take_while(|f| f.0 == cell).find(|f| f.1 == how) {
            Some((_, _, n)) => *n += 1,
            None => found.push((cell, how, 1)),
        }
    }
    let beyond = found.len().saturating_sub(NOTES);
    let more = format!("{} more, in `report.json` and with `collo show`.", number::count(beyond, "failure"));
    found.truncate(NOTES);
    found
        .into_iter()
        .map(|(cell, how, n)| format!("`{cell}`, {}: {how}", number::runs(n)))
        .chain(Some(more).filter(|_| beyond > 0))
        .collect()
}

/// How a run ended, and the last line of its log where that says more.
fn with_log(why: &str, log: Option<&str>) -> String {
    // A message that ends as a sentence goes on here.
    let why = why.replace("., ", ", ");
    let bare = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let (told, log_says) = (bare(&why), log.map(bare).unwrap_or_default());
    // The log repeats the message, perhaps after the error's name; the message may end with where it happened.
    let again =
        |message: &str| !log_says.is_empty() && (told.contains(&log_says) || !message.is_empty() && log_says.ends_with(message));
    let message = why.split_once(": ").map_or("", |(_, rest)| rest).split(", in ").next().unwrap_or_default();
    match log {
        Some(log) if !again(&bare(message)) => format!("{why}; last line of its log: {log}"),
        _ => why,
    }
}

fn why(r: &collo_analysis::reading::repetition::Repetition) -> String {
    use collo_store::Outcome as O;
    let word = words::outcome(r.record().outcome.as_str());
    match &r.record().outcome {
        O::OutOfMemory { member, message } | O::HostOutOfMemory { member, message } => {
            format!("{word}, member {member}: {message}")
        }
        O::Crashed { member, status, message, .. } => format!("{word}, member {member} {status} {message}"),
        O::ProcessEnded { status, message } => format!("{word}, {status}: {message}"),
        O::TimedOut { member, phase, message } => format!("{word} in {phase}, member {member}: {message}"),
        O::EndedEarly { member, message } | O::ProtocolError { member, message } => format!("{word}, member {member}: {message}"),
        O::ModeLost { reason } | O::ObserverLost { reason } | O::NotStaged { reason } | O::DeviceLost { reason } => {
            format!("{word}: {reason}")
        }
        O::Completed | O::Interrupted => word,
    }
}

fn finding(analysis: &Analysis) -> String {
    let (oom, refused) = (analysis.count("out_of_memory"), analysis.campaign.plan.refusals.len());
    let whole = |c: &&Cell| c.outcome() == "completed" && c.ran();
    let some = |c: &&Cell| !whole(c) && c.outcomes.get("completed").is_some_and(|n| *n > 0);
    let (ran, partly) = (analysis.all_cells().filter(whole).count(), analysis.all_cells().filter(some).count());
    let mut text = match analysis.has_all_cells() {
        _ if !analysis.has_ends() => words::capital(NO_ENDS),
        true => format!("{ran} of {} completed all runs", number::count(analysis.all_cells().count(), "planned cell")),
        false => format!("{} planned", number::runs(analysis.planned)),
    };
    if partly > 0 && analysis.has_all_cells() {
        text += &format!(", {partly} some of them");
    }
    let others = analysis.accounted.iter().filter(|(word, n)| !["completed", "out_of_memory"].contains(word) && *n > 0);
    for (word, n) in others {
        text += &format!("; {} {}", number::runs(*n), words::outcome(word));
    }
    if oom > 0 {
        text += &format!("; {} ran out of memory, which is a result", number::runs(oom));
    }
    match refused {
        0 => text += "; none was refused.",
        n => text += &format!("; {} {} refused.", number::count(n, "further cell"), if n == 1 { "was" } else { "were" }),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::with_log;

    #[test]
    fn a_log_that_repeats_the_message_is_not_told_twice() {
        let message = "out of memory, member 2: CUDA out of memory. 1.2 GiB is free., in warm-up";
        let once = "out of memory, member 2: CUDA out of memory. 1.2 GiB is free, in warm-up";
        assert_eq!(with_log(message, Some("torch.OutOfMemoryError: CUDA out of memory. 1.2 GiB is free.")), once);
        assert_eq!(with_log(message, Some("CUDA out of memory. 1.2 GiB is free.")), once);
        assert_eq!(with_log("crashed, member 0", None), "crashed, member 0");
        assert_eq!(
            with_log("crashed, member 0: killed", Some("step 4")),
            "crashed, member 0: killed; last line of its log: step 4"
        );
    }
}
