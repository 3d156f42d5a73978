//! A history in words. In: numbers of a history. Out: short texts for the terminal, Markdown and the page.

use collo_quantity::number;

use super::detect::Common;
use super::night::NightlyRun;
use super::summary::{CellHistory, Class, History};
use super::track::Step;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A common move from which on it is named although it cannot be judged.
const LARGE: f64 = 0.05;

/// `14 Nov` of `2026-11-14T02:00:11Z`; any other text as it is.
pub fn day(created_utc: &str) -> String {
    let mut parts = created_utc.get(..10).unwrap_or_default().split('-').skip(1);
    let month = parts.next().and_then(|m| m.parse::<usize>().ok()).and_then(|m| MONTHS.get(m.wrapping_sub(1)));
    let day = parts.next().and_then(|d| d.parse::<u32>().ok());
    match (day, month) {
        (Some(day), Some(month)) => format!("{day} {month}"),
        _ => created_utc.to_string(),
    }
}

/// The day of a night by its index.
pub fn day_of(history: &History, night: usize) -> String {
    history.nights.get(night).map_or_else(String::new, |n: &NightlyRun| day(&n.created_utc))
}

/// A ratio of times as a change: `+5.2 %`.
pub fn change(ratio: f64) -> String {
    let text = number::fixed((ratio - 1.0) * 100.0, 1);
    let sign = if text.starts_with('-') { "" } else { "+" };
    format!("{sign}{} %", text.replace('-', "−"))
}

/// `+5.2 % [4.1, 6.4]`.
pub fn step(step: &Step) -> String {
    let bound = |x: Option<f64>| x.map_or_else(String::new, |x| number::fixed((x - 1.0) * 100.0, 1).replace('-', "−"));
    format!("{} [{}, {}]", change(step.ratio.estimate), bound(step.ratio.low), bound(step.ratio.high))
}

/// A share without a sign, rounded up so as not to promise too much: `2.9 %`.
pub fn share_up(share: f64) -> String {
    format!("{:.1} %", (share * 1000.0).ceil() / 10.0)
}

/// The changes of the environment, at most `most` names.
pub fn explains(history: &History, since: usize, most: usize) -> String {
    let all = history.explains(since);
    let more = if all.len() > most { format!(", {} more", all.len() - most) } else { String::new() };
    if all.is_empty() { String::new() } else { format!("{}{more}", all[..all.len().min(most)].join(", ")) }
}

/// The text of a row beside its line: `+5.2 % [4.1, 6.4] since 14 Nov`.
pub fn row(history: &History, row: &CellHistory) -> String {
    match &row.class {
        Class::Stepped(steps) => {
            let said = |s: &Step| {
                let by = if s.again == 0 { ", not measured again" } else { "" };
                format!("{} since {}{by}", step(s), day_of(history, s.since))
            };
            steps.iter().map(said).collect::<Vec<_>>().join("; before that ")
        }
        Class::Unstable(why) => why.clone(),
        Class::Gone { since, outcome } => format!("{} since {}", outcome.replace('_', " "), day_of(history, *since)),
        Class::Learning(nights) => format!("{} known", number::count(*nights, "night")),
        Class::Quiet => String::new(),
    }
}

/// The detectable step: `≥ 2.9 %`.
pub fn detects(row: &CellHistory) -> String {
    match (&row.class, row.detectable) {
        (Class::Gone { .. } | Class::Learning(_), _) | (_, None) => String::new(),
        (_, Some(share)) => format!("≥ {}", share_up(share)),
    }
}

/// The sentences above all rows: the amount of history, the detectable change, the noise.
pub fn head(history: &History) -> Vec<String> {
    let Some((night, judged)) = history.tonight() else { return vec!["No nights are stored yet.".into()] };
    let mut lines = Vec::new();
    if let Some(why) = &night.incomplete {
        lines.push(format!("The last night, {}, is incomplete and not judged: {why}.", night.id));
    }
    let (able, all) = history.could_show();
    let learning = history.rows().iter().filter(|r| matches!(r.class, Class::Learning(_))).count();
    let still = if learning > 0 { format!("; {} still learning", number::count(learning, "cell")) } else { String::new() };
    let could =
        if judged.judged == 0 && learning == 0 { "can show a step of 5 % from now on" } else { "could have shown a step of 5 %" };
    lines.push(format!("{able} of {} {could}{still}.", number::count(all, "cell")));
    if let Some(factor) = judged.disturbed {
        lines.push(format!(
            "The night was noisy: its cells scatter {factor:.1} times as much as usual, and are judged accordingly."
        ));
    }
    if night.simulated {
        lines.push("Simulated: a model invented every number.".into());
    }
    lines.extend(history.problems.iter().map(|p| format!("Warning: {p}.")));
    lines
}

/// `slower` or `faster`.
pub fn way(ratio: f64) -> &'static str {
    if ratio > 1.0 { "slower" } else { "faster" }
}

/// `all 50 cells`, or `46 of 50 cells` where the others did not move so.
pub fn agreeing(common: &Common) -> String {
    match common.cells - common.agree {
        0 => format!("all {}", number::count(common.cells, "cell")),
        _ => format!("{} of {}", common.agree, number::count(common.cells, "cell")),
    }
}

/// Where to look first for what moved many cells alike: what is recorded to have changed, else the machine.
fn first_look(history: &History, night: usize) -> String {
    match explains(history, night, 3) {
        why if why.is_empty() => {
            "no recorded condition changed: look at the machine first (clocks, cooling, power, other load)".into()
        }
        why => format!("look first at what changed that night: {why}"),
    }
}

/// What cells have in common tonight: a move of all of them, or of a part.
pub fn together(history: &History) -> Vec<String> {
    let Some((night, judged)) = history.tonight() else { return Vec::new() };
    if night.incomplete.is_some() {
        return Vec::new();
    }
    let look = first_look(history, judged.night);
    let common = judged.common.as_ref().filter(|c| c.moved);
    let mut lines = Vec::new();
    // Before anything is judged it is removed from the plots all the same.
    let unjudged = |c: &&Common| judged.judged == 0 && !c.moved && c.ratio.ln().abs() > LARGE.ln_1p();
    if let Some(common) = judged.common.as_ref().filter(unjudged) {
        lines.push(format!(
            "Not judged, with too few nights: {} {} relative to earlier nights, removed from each cell; {look}.",
            agreeing(common),
            change(common.ratio)
        ));
    }
    if let Some(common) = common {
        let (way, moved) = (way(common.ratio), change(common.ratio));
        lines.push(format!(
            "The machine or the software became {way}: {} {moved} relative to earlier nights, removed from each cell; \
             {look}.",
            agreeing(common)
        ));
    }
    if let Some(mixture) = judged.mixture {
        let others = common.map_or("unchanged".into(), |c| change(c.ratio));
        let moved = change(mixture.ratio * common.map_or(1.0, |c| c.ratio));
        lines.push(format!("{} of {} {moved}, the others {others}; {look}.", mixture.cells, number::count(mixture.of, "cell")));
    }
    if let Some((low, high)) = history.all_stepped() {
        let cells = number::count(judged.steps.len(), "cell");
        lines.push(format!(
            "The machine or the software became {}: all {cells} moved, {} to {}; {look}.",
            way(low),
            change(low),
            change(high)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_changes_as_people_read_them() {
        assert_eq!(day("2026-11-04T02:00:11Z"), "4 Nov");
        assert_eq!((day("2026-13-04T"), day(""), day("ä")), ("2026-13-04T".into(), "".into(), "ä".into()));
        assert_eq!((change(1.0521), change(0.95), change(1.0)), ("+5.2 %".into(), "−5.0 %".into(), "+0.0 %".into()));
        assert_eq!(share_up(0.0291), "3.0 %");
    }
}
