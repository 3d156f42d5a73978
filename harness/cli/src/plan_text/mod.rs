//! `collo plan` for people: the cells, their order, the forecast, the refusals.
//!
//! In: a plan. Out: text. It plans nothing and prints nothing.

mod table;
#[cfg(test)]
mod tests;

use collo_figures::document::LONGEST_LINE;
use collo_plan::facts::DeviceFacts;
use collo_plan::host::Price;
use collo_plan::plan::Plan;
use collo_quantity::number;
use collo_store::{AfterMeasured, RefusalRecord, cell_number};

use crate::forecast_text;
pub use table::order;

/// The width of the labels of the lines below the table.
const LABEL: usize = 10;

/// The plan as `collo plan` prints it with the price of an hour, at most `width` columns wide; labels and reasons may overflow.
pub fn text(plan: &Plan, facts: &DeviceFacts, price: Option<&Price>, width: usize) -> String {
    let lines = width.min(LONGEST_LINE);
    let mut text = format!("{} on {}\n\n", plan.experiment, device(plan, facts));
    if !plan.cells.is_empty() {
        text += &table::cells(plan, facts, width);
        text += "\n";
        text += &line("order", &order_line(plan, lines), lines);
        text += &line("runs", &runs_line(plan), lines);
        text += &line("forecast", &forecast_text::forecast(plan, facts), lines);
        if let Some(costs) = forecast_text::costs(plan, price) {
            text += &line("costs", &costs, lines);
        }
        if let Some(memory) = forecast_text::memory(plan) {
            text += &line("memory", &memory, lines);
        }
        if let Some(gains) = forecast_text::gains(plan) {
            text += &line("gain", &gains, lines);
        }
    }
    text + &refused(plan, lines)
}

/// `cpu (2 cores, 24 GiB)`, `GPU 0, NVIDIA A100-SXM4-40GB (40 GiB)`, or a GPU model if no GPU was queried.
pub fn device(plan: &Plan, facts: &DeviceFacts) -> String {
    match facts.gpu() {
        None => plan.device.text(),
        Some(gpu) if gpu.at.is_none() => {
            let model = gpu.model.as_deref().unwrap_or_default();
            format!("{}, from mig-profiles/{model}.toml (no GPU was queried)", gpu.name)
        }
        Some(_) => format!("{}, {}", facts.labels(), plan.device.text()),
    }
}

/// What to type next, for stderr. `selected` is the part of the experiment that was asked for, as it was typed.
pub fn next(plan: &Plan, named: &str, selected: &str) -> String {
    match (plan.cells.is_empty(), plan.refusals.is_empty()) {
        (true, true) if selected.is_empty() => "hint: `[[exclude]]` leaves out every cell: narrow its `where`".into(),
        (true, true) => format!("hint: `{}` selects no cell; all of them: `collo plan {named}`", selected.trim()),
        (true, false) => "hint: every cell is refused here, so there is nothing to run".into(),
        (false, _) => format!("next: collo run {named}{selected}"),
    }
}

/// A label and its text; a text that is too long is continued on the next line, after a semicolon.
fn line(label: &str, text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for part in text.split_inclusive("; ") {
        let line = lines
            .last_mut()
            .filter(|line| line.is_empty() || LABEL + line.chars().count() + part.trim_end().chars().count() <= width);
        match line {
            Some(line) => line.push_str(part),
            None => lines.push(part.to_string()),
        }
    }
    let indent = format!("\n{:LABEL$}", "");
    format!("{label:<LABEL$}{}\n", lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join(&indent))
}

fn order_line(plan: &Plan, width: usize) -> String {
    let order = &plan.order;
    let blocks = order.last().map_or(0, |run| run.block);
    let remark = format!("{}, shuffled by seed {}", number::count(blocks as usize, "block"), plan.seed);
    let numbers: Vec<String> = order
        .chunk_by(|a, b| a.block == b.block)
        .map(|block| block.iter().map(|run| cell_number(run.cell).to_string()).collect::<Vec<_>>().join(" "))
        .collect();
    let numbers = numbers.join(" · ");
    if LABEL + numbers.chars().count() + 5 + remark.chars().count() <= width {
        format!("{numbers}     {remark}")
    } else if LABEL + numbers.chars().count() <= width {
        format!("{numbers}\n{:LABEL$}{remark}", "")
    } else {
        format!("{remark}; `--order` lists every repetition")
    }
}

fn runs_line(plan: &Plan) -> String {
    let epochs = match plan.epochs {
        n if plan.measure_for_s.is_some() => {
            let (warm_up, least) = (if n > 1 { "1 warm-up epoch, then " } else { "" }, plan.measure_for_s.unwrap_or_default());
            format!("{warm_up}epochs for {least} s or longer")
        }
        1 => "1 epoch (measured)".into(),
        n => format!("{n} epochs (1 warm-up, {} measured)", n - 1),
    };
    let traces = plan.order.iter().filter(|run| plan.cells[run.cell].record.trace.is_some()).count();
    if traces > 0 {
        let alone = plan.order.len() - traces;
        let alone = if alone == 0 { String::new() } else { format!("{alone} × {epochs} of members alone, before the traces; ") };
        return format!("{alone}{traces} × a whole trace; its tasks train their own epochs and exit");
    }
    let has = |after: AfterMeasured| plan.cells.iter().any(|c| c.record.after_measured == after);
    let usual = plan.cells.iter().all(|c| (c.record.after_measured == AfterMeasured::KeepRunning) == c.record.is_uniform());
    let finished = match (has(AfterMeasured::KeepRunning), has(AfterMeasured::Exit)) {
        (true, true) if usual => "finished members keep running, in mixed groups they exit",
        (true, true) => "finished members keep running or exit",
        (false, true) => "finished members exit",
        _ => "finished members keep running",
    };
    let changes = match plan.mode_changes() {
        0 => "",
        1 => "; the MIG mode changes once",
        _ => "; the MIG mode changes in between, so that cells on instances stand between runs of their baselines",
    };
    format!("{} × {epochs}; {finished}; baselines open and close a block{changes}", plan.order.len())
}

/// The cells that are refused for one reason.
pub struct RefusedCells<'a> {
    /// The refusal of the first.
    pub record: &'a RefusalRecord,
    pub cells: Vec<&'a str>,
}

impl<'a> RefusedCells<'a> {
    /// Refusals with the same reason and the same hint together.
    pub fn by_reason(refusals: impl Iterator<Item = &'a RefusalRecord>) -> Vec<Self> {
        let mut found: Vec<RefusedCells> = Vec::new();
        for record in refusals {
            let same = |known: &&mut RefusedCells| known.record.reason == record.reason && known.record.hint == record.hint;
            match found.iter_mut().find(same) {
                Some(known) => known.cells.push(&record.cell),
                None => found.push(RefusedCells { record, cells: vec![&record.cell] }),
            }
        }
        found
    }

    /// `small×7 mig b32 and 3 more are refused: the GPU has MIG off`.
    pub fn sentence(&self) -> String {
        const NAMES: usize = 3;
        let named = self.cells.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
        match self.cells.len() {
            1 => format!("{named} is refused: {}", self.record.reason),
            n if n <= NAMES => format!("{named} are refused: {}", self.record.reason),
            n => format!("{named} and {} more are refused: {}", n - NAMES, self.record.reason),
        }
    }
}

/// The cells that cannot run, and why.
pub fn refused(plan: &Plan, width: usize) -> String {
    let refusals = &plan.refusals;
    if refusals.is_empty() {
        return line("refused", if plan.cells.is_empty() { "none, and no cell is planned" } else { "none" }, width);
    }
    let all = number::count(refusals.len() + plan.cells.len(), "cell");
    let mut text = line("refused", &format!("{} of {all}", refusals.len()), width);
    for RefusedCells { record, cells } in RefusedCells::by_reason(refusals.iter().map(|r| &r.record)) {
        for cell in cells.iter().take(10) {
            text += &format!("– {cell}\n");
        }
        if cells.len() > 10 {
            text += &format!("– and {} more\n", cells.len() - 10);
        }
        text += &format!("    {}\n", record.reason);
        text += &record.hint.iter().map(|hint| format!("    hint: {hint}\n")).collect::<String>();
    }
    text
}
