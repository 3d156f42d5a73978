//! A comparison in words, wherever it is printed. In: a comparison. Out: short texts without markup.

use collo_analysis::campaign::environment::word;
use collo_figures::document::Table;
use collo_quantity::number::{self, ABSENT};
use collo_quantity::{Better, Trait, key};

use super::{ComparedCell, Comparison, Only};
use crate::ratio::between::{CommonVerdict, Source};
use crate::side::Head;
use crate::side::environment::EnvironmentDifference;
use crate::side::lines::with_article;

/// `small-7way-mps 20261114-0200-11d8 → 20261121-0200-93be, both on a simulated A100-SXM4-40GB`.
pub fn title(left: &Head, right: &Head) -> String {
    let name = if left.experiment == right.experiment { String::new() } else { format!("{} ", right.experiment) };
    let (l, r) = (with_article(&left.device), with_article(&right.device));
    let (from, to) = (format!("{} {}", left.experiment, left.campaign), format!("{name}{}", right.campaign));
    if l == r { format!("{from} → {to}, both on {l}") } else { format!("{from} on {l} → {to} on {r}") }
}

/// A p-value: two decimals, three below 0.1, `<0.001` below that.
pub fn p(p: f64) -> String {
    match p {
        _ if p < 0.001 => "<0.001".into(),
        _ if p < 0.1 => format!("{p:.3}"),
        _ => format!("{p:.2}"),
    }
}

/// A verdict as people read it.
pub fn verdict(word: &str) -> String {
    if word == "cannot_tell" { "can't tell".into() } else { word.replace('_', " ") }
}

/// A verdict with its number: `1 better`.
pub fn counted(counts: &[(&'static str, usize)]) -> String {
    counts.iter().map(|(word, n)| format!("{n} {}", verdict(word))).collect::<Vec<_>>().join(", ")
}

/// The common unit of all rows: name, unit, factor. Times below a second are in ms.
pub fn unit(rows: &[ComparedCell]) -> (String, &'static str, f64) {
    let Some(first) = rows.first() else { return (String::new(), "", 1.0) };
    let (words, unit, factor) = key::column(&first.quantity);
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

/// What all cells have in common, or a part of them: a sentence for each.
pub fn together(comparison: &Comparison) -> Vec<String> {
    let Some(common) = &comparison.between.common else { return Vec::new() };
    let ratio = |log: f64| format!("{:.1} %", log.abs().exp_m1() * 100.0);
    let first = comparison.rows.iter().find(|row| row.own_ratio.is_some());
    let longer_is_slower = first.is_none_or(|row| comparison.asked.better(&row.quantity) == Better::Smaller);
    let way = |log: f64| if (log > 0.0) == longer_is_slower { "slower" } else { "faster" };
    let mut lines = Vec::new();
    let log = common.ratio.estimate.ln();
    if common.is_reported {
        let cells = match common.cells - common.agree {
            0 => format!("all {}", number::count(common.cells, "cell")),
            _ => format!("{} of {}", common.agree, number::count(common.cells, "cell")),
        };
        let within = match (common.verdict, common.is_assumed) {
            (CommonVerdict::CannotTell, true) => {
                "; less than machines are assumed to move by between campaigns (2 %, no history)"
            }
            (CommonVerdict::CannotTell, false) => "; no more than between other nights",
            (..) => "",
        };
        let (ratio, way) = (ratio(log), way(log));
        lines.push(format!("{cells} are {ratio} {way}: machine or software, see environment; taken out of each{within}"));
    }
    if let Some(mixture) = comparison.between.mixture {
        let log = mixture.ratio.ln();
        let others = if common.is_reported { "relative to the others" } else { "the others unchanged" };
        let of = number::count(mixture.of, "cell");
        lines.push(format!("{} of {of} are {} {}, {others}", mixture.cells, ratio(log), way(log)));
    }
    lines
}

/// What the intervals include of the variation between campaigns.
pub fn includes(comparison: &Comparison) -> Option<String> {
    let sd = || format!("standard deviation of a ratio {:.1} %", comparison.between.sd.exp_m1() * 100.0);
    let common = comparison.between.common.is_some();
    match comparison.between.source {
        _ if comparison.family == 0 => None,
        Source::Nights(n) => Some(format!(
            "intervals include what campaigns differ by without a change, from {} ({})",
            number::count(n, "night"),
            sd()
        )),
        Source::Scatter => Some(format!(
            "intervals include what these two campaigns differ by beyond their repetitions, from the scatter of the ratios ({}){}",
            sd(),
            if common { "; without a history, what moves all cells is in none" } else { "" }
        )),
        Source::Unknown => {
            let times = comparison.rows.iter().any(|r| key::has(&r.quantity, Trait::Speed));
            let ratios = if times { "; `--quantity slowdown` and `throughput_gain` do not see what moves all cells" } else { "" };
            Some(format!(
                "not in the intervals: what campaigns differ by without a change, which eight cells or five nights would show{ratios}"
            ))
        }
    }
}

/// The basis of the verdicts: `relevant from 2 %, 95 % intervals, p by Holm over 4`.
pub fn rests_on(comparison: &Comparison) -> String {
    let percent = comparison.threshold * 100.0;
    let percent = if (percent - percent.round()).abs() < 1e-9 { format!("{percent:.0}") } else { number::three(percent) };
    let smaller = if comparison.thresholds_differ { " (the smaller of the two sides' thresholds)" } else { "" };
    format!("relevant from {percent} %{smaller}, 95 % intervals, p by Holm over {}", comparison.family)
}

/// The quantity by which different devices are compared.
pub fn across(comparison: &Comparison) -> Option<String> {
    comparison.different_devices.then(|| {
        format!(
            "different devices: compared by {}, each side against its own baseline, never by times; slices are matched by their share of the GPU",
            comparison.asked.to_text()
        )
    })
}

/// The differences of the environments.
pub fn environment(comparison: &Comparison, shown: impl Fn(&str) -> String) -> Table {
    let mut table = Table::with(&["environment", "left", "right", ""]);
    let text = |t: &Option<String>| t.as_deref().map_or_else(|| ABSENT.into(), &shown);
    let explains = |d: &EnvironmentDifference| d.may_explain.map_or_else(String::new, |word| format!("may explain `{word}`"));
    for d in &comparison.environment.different {
        table.texts([word(&d.name).to_string(), text(&d.left), text(&d.right), explains(d)]);
    }
    table
}

/// What both environments have in common.
pub fn alike(comparison: &Comparison) -> Option<String> {
    let alike = &comparison.environment.alike;
    (!alike.is_empty()).then(|| alike.iter().map(|name| word(name)).collect::<Vec<_>>().join(", "))
}

/// A cell of only one side.
pub fn only(only: &Only) -> String {
    only.reason.as_ref().map_or_else(|| only.label.clone(), |why| format!("{} ({why})", only.label))
}
