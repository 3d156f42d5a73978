//! The sections of traces: policies beside each other, who waited and who was slowed, a site over time, memory and recovery,
//! energy, and what was published. A campaign without a trace has none of them.

pub mod energy;
pub mod memory;
pub mod policies;
pub mod published;
pub mod timeline;
pub mod waits;

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix, TraceRun};
use collo_figures::document::{Block, Figure, Section, Table, TableCell};
use collo_figures::draw::Panel;
use collo_figures::draw::look::WORKLOAD_TINTS;
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};
use collo_store::{TaskRecord, Verdict};

use crate::parts::absent::Content;
use crate::parts::figure::{legend_with, tags};

/// Why no run of a trace has numbers, if so.
fn nothing(analysis: &Analysis) -> Option<&'static str> {
    let traces = &analysis.traces;
    if analysis.is_reported() && traces.matrices.iter().flat_map(|matrix| &matrix.arms).any(|arm| !arm.by_order.is_empty()) {
        return None;
    }
    if traces.cells.iter().all(|c| !c.ran()) {
        Some("No run of a trace was made yet.")
    } else if traces.runs.is_empty() {
        Some("No run of a trace completed with usable numbers; see Feasibility for how each ended.")
    } else {
        None
    }
}

/// A section with the blocks of every matrix.
fn of_matrices(analysis: &Analysis, finding: String, blocks: impl Fn(&TraceMatrix, &str) -> Vec<Block>) -> Content {
    if let Some(why) = nothing(analysis) {
        return Err(why.into());
    }
    let mut all = Vec::new();
    for (i, matrix) in analysis.traces.matrices.iter().enumerate() {
        // Names of files: the first has none of its own.
        all.extend(blocks(matrix, &if i == 0 { String::new() } else { format!("-{}", i + 1) }));
    }
    Ok(Section { finding, blocks: all, ..Section::default() })
}

/// Caveats of every presentation of a trace's numbers.
fn trace_tags(analysis: &Analysis, matrix: &TraceMatrix) -> Vec<String> {
    tags(analysis).into_iter().chain(matrix.scaled().map(|scale| format!("scale {scale}"))).collect()
}

/// How times of a trace are printed.
#[derive(Debug, Clone)]
struct TimeUnit {
    factor: f64,
    symbol: &'static str,
    /// Stands beside times that are not as long as they were, and above tables of them.
    scale: String,
}

impl TimeUnit {
    fn of(matrix: &TraceMatrix) -> TimeUnit {
        let largest = matrix.arms.iter().filter_map(|a| a.get(Key::Total)).map(|q| q.estimate).fold(0.0, f64::max);
        let (factor, symbol) = match largest {
            s if s >= 36_000.0 => (1.0 / 3600.0, "h"),
            s if s >= 600.0 => (1.0 / 60.0, "min"),
            _ => (1.0, "s"),
        };
        TimeUnit { factor, symbol, scale: matrix.scaled().map_or_else(String::new, |scale| format!(", scale {scale}")) }
    }

    /// `total min`.
    fn head(&self, what: &str) -> String {
        format!("{what} {}", self.symbol)
    }

    /// `times in min, scale 1:20`.
    fn caption(&self) -> String {
        format!("times in {}{}", self.symbol, self.scale)
    }

    /// Three digits; times that the manager needs for itself are no more than short.
    fn number(&self, seconds: f64) -> String {
        match seconds * self.factor {
            x if x > 0.0 && x < 0.01 => "< 0.01".into(),
            x => number::three(x),
        }
    }

    /// `34.2 min (scale 1:20)`.
    fn text(&self, seconds: f64) -> String {
        let scale = self.scale.trim_start_matches(", ");
        let scale = if scale.is_empty() { String::new() } else { format!(" ({scale})") };
        format!("{} {}{scale}", self.number(seconds), self.symbol)
    }
}

/// `0.75 ±0.02`; of one order, which is no run, the estimate alone.
fn ratio_of_orders(ratio: &Quantity) -> String {
    if ratio.low.is_some() { number::with_interval(ratio) } else { number::estimate(ratio) }
}

/// The same of a ratio to the reference.
fn ratio_text(arm: &Arm, key: Key) -> String {
    arm.ratios.get(&key).map_or_else(String::new, |r| ratio_of_orders(&r.ratio))
}

/// A quantity of an arm.
fn arm_number(arm: &Arm, key: Key, text: &dyn Fn(&Quantity) -> String) -> TableCell {
    arm.get(key).map_or_else(TableCell::default, |q| TableCell::number(text(q), q.estimate))
}

/// A quantity of an arm with its ratio to the reference below.
fn with_ratio(arm: &Arm, key: Key, text: impl Fn(&Quantity) -> String) -> TableCell {
    let Some(q) = arm.get(key) else { return TableCell::default() };
    // Its interval stands in the figure and below it: here it would break the column.
    let note = arm.ratios.get(&key).map_or_else(String::new, |r| format!("×\u{a0}{}", number::estimate(&r.ratio)));
    TableCell { sort: Some(q.estimate), note, ..TableCell::text(text(q)) }
}

/// The head of a row: the arm, with the mark of its mode, and a word if its numbers are not valid.
fn arm_cell(arm: &Arm) -> TableCell {
    let note = if arm.validity.verdict == Verdict::Valid {
        String::new()
    } else {
        collo_analysis::words::verdict(arm.validity.verdict).into()
    };
    TableCell {
        mode: if arm.is_exclusive() { "solo".into() } else { arm.sharing.clone() },
        ..TableCell::with_note(arm.name(), note)
    }
}

/// The hue of an arm in figures: nobody has company under `exclusive`.
fn drawn_as(arm: &Arm) -> &str {
    if arm.is_exclusive() { "solo" } else { &arm.sharing }
}

/// What the sentence of a caption about ratios says.
fn ratios_note(matrix: &TraceMatrix) -> String {
    let reference = matrix.reference().name();
    let method = match &matrix.method {
        Some(method) => format!(
            "Ratios within the same order, geometric mean over {}; whiskers: 95 % interval, {method}, the order is the unit.",
            orders_text(matrix)
        ),
        None => "One order carries no interval.".into(),
    };
    let instead = if matrix.reference().is_exclusive() {
        String::new()
    } else {
        format!(" `exclusive` was not measured: the others are compared with `{reference}`, the first policy of the experiment.")
    };
    format!("{method}{instead}")
}

fn orders_text(matrix: &TraceMatrix) -> String {
    number::count(matrix.orders.len(), "order")
}

/// The run of an arm that is drawn: of its first order, and one that its numbers come from.
fn drawn_run<'a>(analysis: &'a Analysis, matrix: &TraceMatrix, arm: &Arm) -> Option<&'a TraceRun> {
    let (origin, order) = arm.by_order.first()?.order;
    analysis.traces.runs.iter().find(|run| {
        run.of.trace == matrix.trace
            && (run.of.cards, run.of.scale) == (matrix.cards, matrix.scale)
            && (run.origin, run.of.order) == (origin, order)
            && (&run.of.policy, &run.of.estimate, &run.sharing) == (&arm.policy, &arm.estimate, &arm.sharing)
            && run.validity.verdict == arm.validity.verdict
    })
}

/// Workloads of a matrix's tasks, in the order of their hues: those with most tasks first.
fn kinds<'a>(analysis: &'a Analysis, matrix: &TraceMatrix) -> Vec<&'a str> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    let own = |run: &&TraceRun| run.of.trace == matrix.trace && run.of.scale == matrix.scale;
    for task in analysis.traces.runs.iter().filter(own).take(1).flat_map(|run| &run.tasks) {
        let name = workload(&task.solo);
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, n)) => *n += 1,
            None => found.push((name, 1)),
        }
    }
    found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    found.into_iter().map(|(name, _)| name).collect()
}

/// What a task is, as its solo cell says it, with its cards if they are several: `xlnet-base b8 limit_batches=0.02 2c`.
fn task_name(task: &TaskRecord) -> String {
    let alone = task.solo.replacen(" solo", "", 1);
    if task.cards == 1 { alone } else { format!("{alone} {}c", task.cards) }
}

/// The workload of a task, by the label of its solo cell.
fn workload(solo: &str) -> &str {
    solo.split(' ').next().unwrap_or(solo)
}

/// Its hue; a workload that the list does not know has that of the others.
fn kind_of(kinds: &[&str], solo: &str) -> usize {
    kinds.iter().position(|k| *k == workload(solo)).unwrap_or(WORKLOAD_TINTS.len() - 1)
}

/// A figure of a matrix, if it has panels; its title is `what` and the name of the matrix, its legend that of the arms' modes.
fn figure(
    analysis: &Analysis,
    matrix: &TraceMatrix,
    id: String,
    (what, caption): (&str, String),
    panels: Vec<Panel>,
    mut values: Table,
    with_modes: bool,
) -> Option<Block> {
    let modes = matrix.arms.iter().filter(|a| with_modes && !a.by_order.is_empty()).map(drawn_as);
    let legend = legend_with(modes, &matrix.reference().name());
    let tags = trace_tags(analysis, matrix);
    values.tags.clone_from(&tags);
    let (title, simulated) = (format!("{what}, {}", matrix.name()), analysis.campaign.device.simulated);
    let figure = Figure { id: id.into(), title, legend, panels, caption, values, csv: None, simulated, tags };
    (!figure.panels.is_empty()).then_some(Block::Figure(figure))
}
