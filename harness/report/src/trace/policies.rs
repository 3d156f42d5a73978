//! Policies beside each other: every number of a policy, and its ratio to `exclusive` within the same orders.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, OrdersNeeded, TraceMatrix, verdict_text};
use collo_analysis::words;
use collo_figures::chart::{MarkRow, MarkRows, RowMark, RowScale};
use collo_figures::document::{Block, Section, Table, TableCell, TableLayout};
use collo_figures::draw::Panel;
use collo_quantity::stats::{Quantity, RatioVerdict};
use collo_quantity::{Key, number};

use super::{
    TimeUnit, arm_cell, arm_number, drawn_as, figure, of_matrices, orders_text, ratio_of_orders, ratio_text, ratios_note,
    trace_tags, with_ratio,
};
use crate::parts::absent::Content;
use crate::parts::values::{NarrowColumn, narrow};
use crate::report::Report;

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    of_matrices(analysis, finding(analysis), |matrix, suffix| {
        let mut blocks = vec![Block::Table(times(analysis, matrix)), Block::Table(costs(analysis, matrix))];
        blocks.extend(drawn(analysis, matrix, suffix));
        blocks.extend(undecided(analysis, matrix).if_any());
        blocks.push(Block::Notes(notes(matrix)));
        blocks
    })
    .map(Section::answering)
}

/// How long a trace took: a row for each policy; on a narrow terminal the last columns go first.
pub fn times(analysis: &Analysis, matrix: &TraceMatrix) -> Table {
    let unit = TimeUnit::of(matrix);
    let reference = matrix.reference();
    let time = |q: &Quantity| unit.number(q.estimate);
    let plain = |q: &Quantity| number::three(q.estimate);
    let columns: Vec<NarrowColumn<Arm>> = vec![
        (unit.head(Key::Total.head()), Box::new(|a| arm_number(a, Key::Total, &time))),
        (format!("÷ {}", reference.picks()), Box::new(|a| ratio_cell(a, Key::Total))),
        ("verdict".into(), Box::new(|a| TableCell::text(verdict(a)))),
        ("orders".into(), Box::new(|a| TableCell::text(orders_of(a)))),
        ("would tell".into(), Box::new(|a| TableCell::text(would_tell(a)))),
        (unit.head("mean wait"), Box::new(|a| with_ratio(a, Key::WaitMean, time))),
        (unit.head(Key::ExecutionMean.head()), Box::new(|a| with_ratio(a, Key::ExecutionMean, time))),
        (unit.head(Key::CompletionMean.head()), Box::new(|a| with_ratio(a, Key::CompletionMean, time))),
        (Key::StretchMean.head().into(), Box::new(|a| with_ratio(a, Key::StretchMean, plain))),
        (unit.head("p95 wait"), Box::new(|a| with_ratio(a, Key::WaitP95, time))),
    ];
    let caption = format!(
        "{}: {}, {}; {}. Means over orders (geometric), × the ratio to the reference",
        matrix.name(),
        number::count(matrix.tasks as usize, "task"),
        orders_text(matrix),
        unit.caption()
    );
    table(analysis, matrix, columns, caption)
}

/// What a trace took besides time, in the same rows.
pub fn costs(analysis: &Analysis, matrix: &TraceMatrix) -> Table {
    let (kilo, joules) = words::energy_unit(matrix.arms.iter().filter_map(|a| a.get(Key::SiteEnergy)));
    let percent = |q: &Quantity| number::percent(q.estimate);
    let columns: Vec<NarrowColumn<Arm>> = vec![
        (Key::TasksDone.head().into(), Box::new(|a| TableCell::text(count(a, Key::TasksDone)))),
        (
            "OOM new/res.".into(),
            Box::new(|a| match a.get(Key::OutOfMemory) {
                None => TableCell::default(),
                Some(_) => {
                    TableCell::text(format!("{}/{}", count(a, Key::OutOfMemoryNewcomers), count(a, Key::OutOfMemoryResidents)))
                }
            }),
        ),
        (Key::Recoveries.head().into(), Box::new(|a| TableCell::text(count(a, Key::Recoveries)))),
        (
            format!("{} {joules}", Key::SiteEnergy.head()),
            Box::new(move |a| arm_number(a, Key::SiteEnergy, &|q| number::three(q.estimate * kilo))),
        ),
        (format!("÷ {}", matrix.reference().picks()), Box::new(|a| ratio_cell(a, Key::SiteEnergy))),
        (activity_head(analysis).into(), Box::new(|a| arm_number(a, Key::SiteActive, &percent))),
        ("memory in use".into(), Box::new(|a| arm_number(a, Key::SiteMemory, &percent))),
    ];
    let caption = "Means over orders (of counts arithmetic). OOM: newcomers and residents that ran out of memory. Energy, activity and memory: \
                   of all cards over the total, idle ones included";
    table(analysis, matrix, columns, caption.into())
}

fn table(analysis: &Analysis, matrix: &TraceMatrix, columns: Vec<NarrowColumn<Arm>>, caption: String) -> Table {
    let rows: Vec<(TableCell, &Arm)> = matrix.arms.iter().map(|arm| (arm_cell(arm), arm)).collect();
    Table { caption, tags: trace_tags(analysis, matrix), ..narrow("policy", &rows, columns) }
}

fn count(arm: &Arm, key: Key) -> String {
    arm.get(key).map_or_else(String::new, |q| number::factor(q.estimate))
}

fn ratio_cell(arm: &Arm, key: Key) -> TableCell {
    let sort = arm.ratios.get(&key).map(|r| r.ratio.estimate);
    TableCell { sort, ..TableCell::text(ratio_text(arm, key)) }
}

fn activity_head(analysis: &Analysis) -> &'static str {
    if analysis.campaign.device.kind == "gpu" { "SM activity" } else { "cores busy" }
}

fn orders_of(arm: &Arm) -> String {
    let runs: usize = arm.by_order.iter().map(|o| o.repetitions).sum();
    match arm.by_order.len() {
        0 => String::new(),
        n if n == runs => n.to_string(),
        n => format!("{n} ({runs} runs)"),
    }
}

/// Of its total beside the reference.
fn verdict(arm: &Arm) -> String {
    match arm.ratios.get(&Key::Total) {
        None => String::new(),
        Some(ratio) => match ratio.test.as_ref().map(|t| t.verdict) {
            Some(RatioVerdict::Better) => "shorter".into(),
            Some(RatioVerdict::Worse) => "longer".into(),
            Some(RatioVerdict::Same) => "same".into(),
            Some(RatioVerdict::CannotTell { .. }) => "can't tell".into(),
            None if !arm.is_valid() => "not judged".into(),
            None => "one order".into(),
        },
    }
}

/// How many orders would tell its total from the reference's, where those that were measured do not.
fn would_tell(arm: &Arm) -> String {
    let ratio = arm.ratios.get(&Key::Total);
    let open = ratio.filter(|r| matches!(r.test.as_ref().map(|t| t.verdict), Some(RatioVerdict::CannotTell { .. })));
    match open.map(|r| r.needed) {
        Some(OrdersNeeded::Of(n)) => n.to_string(),
        Some(OrdersNeeded::ManyMore) => "> 100 more".into(),
        Some(OrdersNeeded::MoreThanAThousand) => "> 1000".into(),
        Some(OrdersNeeded::Unknown) | None => String::new(),
    }
}

/// Ratios to the reference of what people look at first, a panel each.
fn drawn(analysis: &Analysis, matrix: &TraceMatrix, suffix: &str) -> Option<Block> {
    let keys = [Key::Total, Key::WaitMean, Key::ExecutionMean, Key::CompletionMean, Key::StretchMean, Key::SiteEnergy];
    let has = |key: &Key| matrix.arms.iter().any(|a| a.ratios.contains_key(key));
    let keys: Vec<Key> = keys.into_iter().filter(has).collect();
    let name = matrix.reference().name();
    let panel = |key: &Key| {
        let rows = rows(matrix, *key);
        let all = || rows.iter().flat_map(|r| &r.marks).filter_map(|m| Some((m.value?, m.interval)));
        let low = all().map(|(value, interval)| interval.map_or(value, |i| i.0)).fold(1.0, f64::min);
        let high = all().map(|(value, interval)| interval.map_or(value, |i| i.1.min(1.5 * value))).fold(1.0, f64::max);
        let caption = format!("{} ÷ {name}", key.label);
        let drawing = MarkRows { caption: &caption, rows: &rows, scale: RowScale::Ratios(low, high), threshold: None }.draw();
        Panel {
            title: key.label.into(),
            subtitle: matrix.scaled().map_or_else(String::new, |scale| format!("scale {scale}")),
            label: format!("{} of each policy divided by that of {name}", key.label),
            drawing,
        }
    };
    let panels: Vec<Panel> = keys.iter().map(panel).collect();
    let mut values = Table::with(&["policy", "quantity", "#ratio", "#low", "#high", "#orders", "verdict"]);
    for arm in &matrix.arms {
        for key in &keys {
            let Some(r) = arm.ratios.get(key) else { continue };
            let end = |x: Option<f64>| x.map_or_else(TableCell::default, |x| TableCell::number(number::three(x), x));
            values.row(vec![
                TableCell::text(arm.name()),
                TableCell::text(key.label),
                TableCell::number(number::estimate(&r.ratio), r.ratio.estimate),
                end(r.ratio.low),
                end(r.ratio.high),
                TableCell::text(r.ratio.n.to_string()),
                TableCell::text(verdict_text(r.test.as_ref(), r.needed)),
            ]);
        }
    }
    let indicative = if matrix.arms.iter().any(|a| !a.is_valid()) { " Pale: not valid, no claim rests on it." } else { "" };
    let caption = format!("{} Each panel has its own scale.{indicative}", ratios_note(matrix));
    let what = format!("Policies ÷ {name}");
    figure(analysis, matrix, format!("policies{suffix}"), (&what, caption), panels, values, true)
}

/// A row for each policy and estimate, a dot for each mode.
fn rows(matrix: &TraceMatrix, key: Key) -> Vec<MarkRow> {
    let mut rows: Vec<MarkRow> = Vec::new();
    for arm in &matrix.arms {
        let Some(r) = arm.ratios.get(&key) else { continue };
        let dot = RowMark {
            sharing: drawn_as(arm).into(),
            indicative: !arm.is_valid(),
            value: Some(r.ratio.estimate),
            interval: r.ratio.low.zip(r.ratio.high),
            title: format!(
                "{}\n{} {}\n{}",
                arm.name(),
                key.label,
                ratio_of_orders(&r.ratio),
                verdict_text(r.test.as_ref(), r.needed)
            ),
            ..RowMark::default()
        };
        MarkRow::add(&mut rows, arm.short(), dot);
    }
    rows
}

/// The shortest beside each other one: whether they can be told apart, and how many orders would.
fn undecided(analysis: &Analysis, matrix: &TraceMatrix) -> Table {
    let mut table =
        Table::with(&["shortest total", "beside", "#ratio of totals", "can they be told apart?"]).looking(TableLayout::Narrow);
    table.tags = trace_tags(analysis, matrix);
    let Some(best) = matrix.shortest().filter(|_| matrix.arms.len() > 2) else { return table };
    for (other, arm) in matrix.arms.iter().enumerate().filter(|(i, _)| *i != best) {
        let Some((ratio, verdict, needed)) = matrix.pair_of(best, other) else { continue };
        let told = match verdict {
            Some(RatioVerdict::Better | RatioVerdict::Worse) => "yes".to_string(),
            Some(RatioVerdict::Same) => format!("same within {}", number::percent_as_written(matrix.threshold)),
            Some(RatioVerdict::CannotTell { .. }) => format!("can't tell ({})", needed.text()),
            None => format!("no verdict: {}", if matrix.has_spread() { "not valid" } else { "one order" }),
        };
        table.row(vec![
            TableCell::text(matrix.arms[best].name()),
            TableCell::text(arm.name()),
            TableCell::number(ratio_of_orders(&ratio), ratio.estimate),
            TableCell::text(told),
        ]);
    }
    table.caption =
        "The policy with the shortest total beside each other one, within the same orders; corrected for all pairs (Holm). \
                     More orders: as many as show the difference at 5 % with a power of 80 %, if the spread stays as it is"
            .into();
    table
}

fn notes(matrix: &TraceMatrix) -> Vec<String> {
    let mut notes = vec![ratios_note(matrix)];
    let percent = |x: f64| format!("{} %", number::fixed(x * 100.0, 1));
    if let Some(spread) = matrix.spread_ratio {
        notes.push(format!(
            "A policy's ratio of totals varies by {} over orders (standard deviation of its logarithm).",
            percent(spread)
        ));
    }
    match matrix.noise_ratio {
        Some(noise) => notes.push(format!("Repeats of one order vary by {}: the noise of the machine.", percent(noise))),
        // How much they vary is read in the runs.
        None if matrix.arms.iter().flat_map(|arm| &arm.by_order).any(|at| at.repetitions > 1) => {}
        None => notes.push("No order was repeated: the noise of the machine is not known apart from that of orders.".into()),
    }
    if matrix.scale != 1 {
        notes.push(format!(
            "Starting a process, evidence and readings are not scaled: beside epochs they weigh {} times what they do at 1:1, most under \
             policies that start tasks one after the other.",
            matrix.scale
        ));
    }
    for arm in matrix.arms.iter().filter(|a| !a.validity.reasons.is_empty()) {
        let verdict = words::verdict(arm.validity.verdict);
        notes.push(format!("`{}` is {verdict}: {}.", arm.name(), arm.validity.reasons.join("; ")));
    }
    notes
}

/// What is said of a campaign's policies in one or two sentences, without their end; the winner is never named without its interval.
pub fn remarks(analysis: &Analysis) -> Vec<String> {
    analysis.traces.matrices.iter().filter_map(remark).collect()
}

fn remark(matrix: &TraceMatrix) -> Option<String> {
    let reference = matrix.reference().name();
    if !matrix.has_spread() {
        let n = matrix.arms.iter().filter(|a| !a.by_order.is_empty()).count();
        let several = n > 1;
        return several
            .then(|| format!("{}: {n} policies in one order: no interval, and no policy is said to be better", matrix.name()));
    }
    let best = matrix.shortest()?;
    let arm = &matrix.arms[best];
    let Some(ratio) = arm.ratios.get(&Key::Total) else {
        return Some(format!("{}: no policy has a shorter total than `{reference}`", matrix.name()));
    };
    let rivals = (0..matrix.arms.len()).filter(|i| *i != best && *i != matrix.reference);
    let open = rivals.filter(|i| !matches!(matrix.pair_of(best, *i), Some((_, Some(RatioVerdict::Better), _)))).count();
    let beside = match open {
        0 => String::new(),
        1 => "; it cannot be told apart from one other".into(),
        n => format!("; it cannot be told apart from {n} others"),
    };
    let indicative = if arm.is_valid() && matrix.reference().is_valid() { "" } else { " (indicative)" };
    let (name, times, orders) = (arm.name(), number::with_interval(&ratio.ratio), orders_text(matrix));
    Some(format!("{}: `{name}` has {times}× the total of `{reference}` over {orders}{indicative}{beside}", matrix.name()))
}

fn finding(analysis: &Analysis) -> String {
    remarks(analysis).into_iter().map(|s| format!("{s}.")).collect::<Vec<_>>().join(" ")
}
