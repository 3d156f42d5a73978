//! A history for a terminal and as Markdown. In: a history. Out: text without colour.

use super::story::{Class, History, Row};
use super::words;
use crate::number;

/// What `collo nightly` prints: tonight's steps, what no longer runs, what is suspicious, and what could have been seen.
pub fn terminal(history: &History) -> String {
    let mut out = Vec::new();
    let Some((night, judged)) = history.tonight() else { return "no night is stored yet\n".into() };
    let nights = number::count(history.nights.len(), "night");
    out.push(format!(
        "{} on {}: {nights}, {} whole; the last is {}",
        history.experiment,
        night.device,
        history.whole(),
        night.id
    ));
    let mut lines: Vec<[String; 5]> = Vec::new();
    let mut changed: Vec<usize> = Vec::new();
    for (track, step) in history.steps_of(judged) {
        let word = if step.is_worse() { "slower" } else { "faster" };
        let since = format!("since {}", words::day_of(history, step.since));
        lines.push([word.into(), track.cell.clone(), words::step(step), format!("p {}", words::p(step.p)), since]);
        changed.push(step.since);
    }
    for &t in &judged.gone {
        let track = &history.judge.tracks[t];
        if let Some((since, outcome)) = &track.gone {
            let day = format!("since {}", words::day_of(history, *since));
            lines.push(["gone".into(), track.cell.clone(), outcome.replace('_', " "), "".into(), day]);
            changed.push(*since);
        }
    }
    for suspect in &judged.suspects {
        let over = number::count(suspect.window, "night");
        let moved = words::change(suspect.change.exp());
        lines.push(["?".into(), suspect.cell.clone(), moved, "".into(), format!("over {over}, not confirmed")]);
    }
    let wide = |column: usize| lines.iter().map(|l| l[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(wide).collect();
    out.extend(lines.iter().map(|l| {
        let padded = l.iter().zip(&widths).map(|(text, w)| format!("{text}{}", " ".repeat(w - text.chars().count())));
        let texts: Vec<String> = padded.chain([l[4].clone()]).collect();
        texts.join("  ").trim_end().to_string()
    }));
    changed.sort_unstable();
    changed.dedup();
    for since in changed {
        let what = words::explains(history, since, 4);
        let what = if what.is_empty() { "as it was before".into() } else { what };
        out.push(format!("environment of {}: {what}", words::day_of(history, since)));
    }
    let rows = history.rows();
    let unstable: Vec<&Row> = rows.iter().filter(|r| matches!(r.class, Class::Unstable(_))).collect();
    if let Some(first) = unstable.first() {
        let more = if unstable.len() > 1 { format!(" and {} more", unstable.len() - 1) } else { String::new() };
        out.push(format!("unstable: {}{more}", history.judge.tracks[first.track].cell));
    }
    out.extend(words::head(history).into_iter().map(|line| lower(&line)));
    out.push(verdict(history));
    out.iter().map(|line| format!("{}\n", collo_store::text::line(line))).collect()
}

/// The last line: what it comes to.
fn verdict(history: &History) -> String {
    let Some((night, judged)) = history.tonight() else { return String::new() };
    if night.incomplete.is_some() {
        return "not judged".into();
    }
    let slower = history.steps_of(judged).filter(|(_, s)| s.is_worse()).count();
    let faster = history.steps_of(judged).count() - slower;
    format!(
        "{slower} slower, {faster} faster, {} gone, {} suspicious, of {} judged",
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

/// `history.md`.
pub fn markdown(history: &History) -> String {
    let mut out = format!("# Nights of {}\n\n", escape(&history.experiment));
    for line in words::head(history) {
        out.push_str(&format!("{}\n", escape(&line)));
    }
    let rows = history.rows();
    type Belongs = fn(&Class) -> bool;
    let sections: [(&str, Belongs); 5] = [
        ("Confirmed steps", |c| matches!(c, Class::Stepped(_))),
        ("Unstable", |c| matches!(c, Class::Unstable(_))),
        ("No longer running", |c| matches!(c, Class::Gone { .. })),
        ("Learning", |c| matches!(c, Class::Learning(_))),
        ("Quiet", |c| matches!(c, Class::Quiet)),
    ];
    for (title, belongs) in sections {
        let rows: Vec<&Row> = rows.iter().filter(|r| belongs(&r.class)).collect();
        if rows.is_empty() {
            continue;
        }
        out.push_str(&format!("\n## {title}\n\n| cell | what | detects | environment then |\n|---|---|---|---|\n"));
        for row in rows {
            let why = match &row.class {
                Class::Stepped(steps) => words::explains(history, steps[0].since, 3),
                Class::Gone { since, .. } => words::explains(history, *since, 3),
                _ => String::new(),
            };
            let detects = words::detects(row).replace("detects ", "");
            let cell = escape(&history.judge.tracks[row.track].cell);
            out.push_str(&format!("| {cell} | {} | {detects} | {} |\n", escape(&words::row(history, row)), escape(&why)));
        }
    }
    out
}

/// Text that stays text in a Markdown table.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
