//! A comparison for a terminal. In: a comparison. Out: plain text of at most so many columns, without colour. Text that came out of
//! a file never reaches the terminal with its control characters.

use super::{Comparison, Head, Row};
use crate::number::{self, ABSENT};

/// Rows of a table, names of a list, and notes that a terminal is given.
const ROWS: usize = 60;
const NAMES: usize = 8;

/// Text without what a terminal would obey.
pub fn printable(text: &str) -> String {
    collo_store::text::line(text).into_owned()
}

/// `a simulated A100-SXM4-40GB`, `an H100`, `a CPU`.
pub fn with_article(device: &str) -> String {
    let device = if device == "cpu" { "CPU" } else { device };
    let vowel = device.starts_with(['A', 'E', 'I', 'O', 'H']) || device.starts_with("NVIDIA");
    format!("{} {device}", if vowel { "an" } else { "a" })
}

/// `small-7way-mps 20261114-0200-11d8 → 20261121-0200-93be, both on a simulated A100-SXM4-40GB`.
pub fn title(left: &Head, right: &Head) -> String {
    let name = if left.experiment == right.experiment { String::new() } else { format!("{} ", right.experiment) };
    let (l, r) = (with_article(&left.device), with_article(&right.device));
    let (from, to) = (format!("{} {}", left.experiment, left.campaign), format!("{name}{}", right.campaign));
    printable(&if l == r { format!("{from} → {to}, both on {l}") } else { format!("{from} on {l} → {to} on {r}") })
}

/// A p-value: two significant digits, and never less than it is.
pub fn p(p: f64) -> String {
    match p {
        _ if p < 0.001 => "<0.001".into(),
        _ if p < 0.1 => format!("{p:.3}"),
        _ => format!("{p:.2}"),
    }
}

/// A verdict with its number, as counts are said: `1 better`.
pub fn counted(counts: &[(&'static str, usize)]) -> String {
    let said = |word: &str| match word {
        "cannot_tell" => "can't tell".to_string(),
        "no_longer_runs" => "no longer runs".into(),
        "runs_now" => "runs now".into(),
        "not_judged" => "not judged".into(),
        other => other.to_string(),
    };
    counts.iter().map(|(word, n)| format!("{n} {}", said(word))).collect::<Vec<_>>().join(", ")
}

/// The unit that all rows share: name, unit, factor. Times below a second are in ms.
pub fn unit(rows: &[Row]) -> (String, &'static str, f64) {
    let Some(first) = rows.first() else { return (String::new(), "", 1.0) };
    let (words, unit, factor) = super::quantity::unit(&first.quantity);
    let words = if rows.iter().all(|r| r.quantity == first.quantity) {
        words
    } else if unit.is_empty() {
        "ratio"
    } else {
        "time"
    };
    let largest = rows.iter().flat_map(|r| [&r.left, &r.right]).flatten().map(|q| q.estimate).fold(0.0, f64::max);
    if unit == "s" && largest < 1.0 { (words.into(), "ms", 1e3) } else { (words.into(), unit, factor) }
}

/// What the verdicts rest on: `relevant from 2 %, 95 % intervals, p by Holm over 4`.
pub fn rests_on(comparison: &Comparison) -> String {
    let percent = comparison.threshold * 100.0;
    let percent = if (percent - percent.round()).abs() < 1e-9 { format!("{percent:.0}") } else { number::three(percent) };
    let smaller = if comparison.thresholds_differ { " (the smaller of both sides' thresholds)" } else { "" };
    format!("relevant from {percent} %{smaller}, 95 % intervals, p by Holm over {}", comparison.family)
}

/// What different devices are compared by.
pub fn across(comparison: &Comparison) -> Option<String> {
    comparison.different_devices.then(|| {
        format!(
            "different devices: compared by {}, each side against its own baseline, never by times; slices are matched by their share of the card",
            comparison.asked.said()
        )
    })
}

/// The whole comparison.
pub fn terminal(comparison: &Comparison, width: usize) -> String {
    let mut out = wrap(&title(&comparison.left, &comparison.right), width);
    out.extend(comparison.warnings.iter().flat_map(|w| wrap(&format!("warning: {}", printable(w)), width)));
    out.extend(across(comparison).into_iter().flat_map(|text| wrap(&text, width)));
    out.extend(table(&comparison.rows[..comparison.rows.len().min(ROWS)], width));
    if comparison.rows.len() > ROWS {
        out.push(format!("… {} more: `--json` has them all, `--to DIR` writes the page", comparison.rows.len() - ROWS));
    }
    let noted: Vec<&Row> = comparison.rows.iter().filter(|r| !r.notes.is_empty()).collect();
    out.extend(noted.iter().take(NAMES).flat_map(|r| wrap(&printable(&format!("`{}`: {}", r.label, r.notes.join("; "))), width)));
    if noted.len() > NAMES {
        out.push(format!("… and {} more notes", noted.len() - NAMES));
    }
    for (name, list) in [("left", &comparison.only_left), ("right", &comparison.only_right)] {
        let names: Vec<String> = list
            .iter()
            .take(NAMES)
            .map(|o| o.reason.as_ref().map_or_else(|| o.label.clone(), |why| format!("{} ({why})", o.label)))
            .collect();
        let more = list.len().saturating_sub(NAMES);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        if !names.is_empty() {
            out.extend(wrap(&printable(&format!("only {name}: {}{more}", names.join(", "))), width));
        }
    }
    out.extend(environment(comparison, width));
    for group in &comparison.groups {
        let mean = group.mean_ratio.map_or(String::new(), |m| {
            let of = number::count(group.judged, "cell");
            format!("; geometric mean of the ratios of {of} {m:.3}, without an interval since they are not independent")
        });
        out.extend(wrap(&printable(&format!("{}: {}{mean}", group.name, counted(&group.counts))), width));
    }
    out.extend(wrap(&format!("{}; {}", counted(&comparison.counts()), rests_on(comparison)), width));
    out.extend(comparison.decide.iter().map(|command| format!("decide: {command}")));
    out.join("\n") + "\n"
}

fn table(rows: &[Row], width: usize) -> Vec<String> {
    let (words, unit, factor) = unit(rows);
    let what = format!("{words} {unit}").trim().to_string();
    let side = |get: fn(&Row) -> &Option<crate::stats::Quantity>| -> Vec<String> {
        points(rows.iter().map(|r| get(r).as_ref().map(|q| number::scaled(q, factor))).collect())
    };
    let text = |get: &dyn Fn(&Row) -> String| rows.iter().map(|r| printable(&get(r))).collect::<Vec<String>>();
    let label = |r: &Row| r.left_label.as_ref().map_or_else(|| r.label.clone(), |left| format!("{left} ↔ {}", r.label));
    let mut columns = [
        ("cell".to_string(), text(&label), 0, false),
        (format!("{what} left"), side(|r| &r.left), 2, false),
        (format!("{what} right"), side(|r| &r.right), 2, false),
        ("ratio".into(), points(rows.iter().map(|r| r.ratio.as_ref().map(number::with_interval)).collect()), 1, false),
        ("p".into(), text(&|r| r.p_adjusted.map_or_else(|| ABSENT.into(), p)), 3, true),
        ("verdict".into(), text(&|r| r.finding.text()), 0, false),
    ]
    .to_vec();
    let wide = |c: &(String, Vec<String>, i32, bool)| c.1.iter().chain([&c.0]).map(|t| t.chars().count()).max().unwrap_or(0);
    // What is dropped first has the largest number; labels and verdicts stay.
    for drop in [3, 2, 1] {
        if columns.iter().map(|c| wide(c) + 2).sum::<usize>() > width + 2 {
            columns.retain(|c| c.2 != drop);
        }
    }
    let widths: Vec<usize> = columns.iter().map(wide).collect();
    let line = |cells: Vec<&String>| {
        let padded = cells.iter().zip(&columns).zip(&widths).map(|((text, column), width)| {
            let gap = " ".repeat(width - text.chars().count());
            if column.3 { format!("{gap}{text}") } else { format!("{text}{gap}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    let mut out = vec![line(columns.iter().map(|c| &c.0).collect())];
    out.extend((0..rows.len()).map(|i| line(columns.iter().map(|c| &c.1[i]).collect())));
    out
}

/// Estimates aligned on their points, and their intervals under each other.
fn points(values: Vec<Option<String>>) -> Vec<String> {
    let split = |v: &Option<String>| -> (String, String, String) {
        let text = v.clone().unwrap_or_else(|| ABSENT.into());
        let (number, rest) = text.split_once(' ').map_or((text.as_str(), ""), |(a, b)| (a, b));
        let at = number.find('.').unwrap_or(number.len());
        (number[..at].into(), number[at..].into(), rest.into())
    };
    let parts: Vec<_> = values.iter().map(split).collect();
    let count = |s: &String| s.chars().count();
    let (before, after) =
        (parts.iter().map(|p| count(&p.0)).max().unwrap_or(0), parts.iter().map(|p| count(&p.1)).max().unwrap_or(0));
    let placed = parts.iter().map(|(whole, fraction, rest)| {
        if whole == ABSENT {
            return whole.clone();
        }
        let (left, right) = (" ".repeat(before - count(whole)), " ".repeat(after - count(fraction)));
        format!("{left}{whole}{fraction}{right} {rest}").trim_end().to_string()
    });
    placed.collect()
}

fn environment(comparison: &Comparison, width: usize) -> Vec<String> {
    let environment = &comparison.environment;
    let mut out = Vec::new();
    if !environment.different.is_empty() {
        let short = |text: &Option<String>| {
            let text = text.as_deref().map_or_else(|| ABSENT.into(), printable);
            if text.chars().count() > 34 { text.chars().take(33).chain(['…']).collect() } else { text }
        };
        let rows: Vec<[String; 4]> = environment
            .different
            .iter()
            .map(|d| {
                let explains = comparison.may_explain(d).map_or(String::new(), |word| format!("may explain `{word}`"));
                [printable(&d.name), short(&d.left), short(&d.right), explains]
            })
            .collect();
        let head = ["environment".to_string(), "left".into(), "right".into(), String::new()];
        let widths: Vec<usize> =
            (0..3).map(|i| rows.iter().chain([&head]).map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
        let first = widths[0].max(16);
        for row in [&head].into_iter().chain(&rows) {
            let pad = |text: &str, width: usize| format!("{text}{}", " ".repeat(width.saturating_sub(text.chars().count())));
            let line = [pad(&row[0], first), pad(&row[1], widths[1]), pad(&row[2], widths[2]), row[3].clone()].join("  ");
            out.push(line.trim_end().to_string());
        }
    }
    if !environment.alike.is_empty() {
        out.extend(wrap(&printable(&format!("alike: {}", environment.alike.join(", "))), width));
    }
    out
}

/// Break a line between words; what follows is set in by two, beyond the line's own indent.
pub fn wrap(line: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat(line.len() - line.trim_start().len());
    let mut out = vec![indent.clone()];
    for word in line.split_whitespace() {
        let current = out.last().map_or(0, |l| l.chars().count());
        let empty = out.last().is_none_or(|l| l.trim().is_empty());
        if !empty && current + 1 + word.chars().count() > width {
            out.push(format!("{indent}  {word}"));
        } else if let Some(last) = out.last_mut() {
            if !empty {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    out
}
