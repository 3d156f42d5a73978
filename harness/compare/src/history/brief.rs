//! The output of `collo nightly`: tonight's steps, cells that no longer run, suspicious ones, and the detectable change.

use collo_analysis::words::p;
use collo_figures::document::{Block, Table};
use collo_quantity::number;

use super::summary::{CellHistory, Class, History};
use super::words;

/// The last night.
pub fn blocks(history: &History) -> Vec<Block> {
    let Some((night, judged)) = history.tonight() else { return vec![Block::Text("no nights are stored yet".into())] };
    let nights = number::count(history.nights.len(), "night");
    let (experiment, whole) = (&history.experiment, history.whole());
    let title = format!("{experiment} on {}: {nights}, {whole} complete; the last is {}", night.device, night.id);
    let mut table = Table::with(&[""; 5]);
    let mut changed: Vec<usize> = Vec::new();
    for (track, step) in history.steps_of(judged) {
        let word = if step.is_worse() { "slower" } else { "faster" };
        let since = format!("since {}", words::day_of(history, step.since));
        table.texts([word.into(), track.cell.clone(), words::step(step), format!("p {}", p(step.p)), since]);
        changed.push(step.since);
    }
    for &t in &judged.gone {
        let track = &history.judge.tracks[t];
        if let Some((since, outcome)) = &track.gone {
            let day = format!("since {}", words::day_of(history, *since));
            table.texts(["gone".into(), track.cell.clone(), outcome.replace('_', " "), String::new(), day]);
            changed.push(*since);
        }
    }
    for suspect in &judged.suspects {
        let over = format!("over {}, not confirmed", number::count(suspect.window, "night"));
        table.texts(["?".into(), suspect.cell.clone(), words::change(suspect.change.exp()), String::new(), over]);
    }
    changed.sort_unstable();
    changed.dedup();
    let mut lines = Vec::new();
    for since in changed {
        let what = words::explains(history, since, 4);
        let what = if what.is_empty() { "as before".into() } else { what };
        lines.push(format!("environment of {}: {what}", words::day_of(history, since)));
    }
    let rows = history.rows();
    let unstable: Vec<&CellHistory> = rows.iter().filter(|r| matches!(r.class, Class::Unstable(_))).collect();
    if let Some(first) = unstable.first() {
        let more = if unstable.len() > 1 { format!(" and {} more", unstable.len() - 1) } else { String::new() };
        lines.push(format!("unstable: {}{more}", history.judge.tracks[first.track].cell));
    }
    lines.extend(words::head(history).iter().map(|line| lower(line)));
    lines.push(verdict(history));
    let together = words::together(history).iter().map(|line| lower(line)).collect();
    vec![Block::Text(title), Block::Notes(together), Block::Table(table), Block::Notes(lines)]
}

/// The last line: the conclusion.
fn verdict(history: &History) -> String {
    let Some((night, judged)) = history.tonight() else { return String::new() };
    if night.incomplete.is_some() {
        return "not judged".into();
    }
    let slower = history.steps_of(judged).filter(|(_, s)| s.is_worse()).count();
    let faster = history.steps_of(judged).count() - slower;
    let all = match (&judged.common, history.all_stepped()) {
        (Some(common), _) if common.moved => format!("{} {}, beside that ", words::agreeing(common), words::way(common.ratio)),
        (_, Some((low, _))) => format!("every judged cell {}: ", words::way(low)),
        _ => String::new(),
    };
    format!(
        "{all}{slower} slower, {faster} faster, {} gone, {} suspicious, of {} judged",
        judged.gone.len(),
        judged.suspects.len(),
        judged.judged
    )
}

/// A sentence as a remark: lower case, no full stop.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
