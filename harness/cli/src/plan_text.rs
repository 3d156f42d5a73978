//! `collo plan` for people: the cells, their order, the forecast, the refusals.
//!
//! In: a plan. Out: text. It plans nothing and prints nothing.

use collo_measure::host::Price;
use collo_measure::{CellForecast, DeviceFacts, LeastTime, Plan, PlannedCell, units};
use collo_report::document::{Align, LONGEST_LINE, Table};
use collo_store::{AfterMeasured, CellRecord, RefusalRecord, TraceCell};

use crate::forecast_text;

/// More cells than this are shown as one row per mode and degree.
const MOST_ROWS: usize = 40;
/// The columns up to the memory of a cell.
const MEMORY: usize = 6;
/// The width of the labels of the lines below the table.
const LABEL: usize = 10;

/// The plan as `collo plan` prints it with the price of an hour, at most `width` columns wide; labels and reasons may overflow.
pub fn text(plan: &Plan, facts: &DeviceFacts, price: Option<&Price>, width: usize) -> String {
    let lines = width.min(LONGEST_LINE);
    let mut text = format!("{} on {}\n\n", plan.experiment, device(plan, facts));
    if !plan.cells.is_empty() {
        text += &if plan.cells.len() <= MOST_ROWS { cells(plan, facts, width) } else { summary(plan, width) };
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
            let profile = gpu.card.as_ref().map(|c| c.name.as_str()).unwrap_or_default();
            format!("{}, from the profile `{profile}` (no GPU was asked)", gpu.name)
        }
        Some(_) => format!("{}, {}", facts.labels(), plan.device.text()),
    }
}

/// What to type next, for stderr.
pub fn next(plan: &Plan, named: &str) -> String {
    if plan.cells.is_empty() {
        "hint: every cell is refused here, so there is nothing to run".into()
    } else {
        format!("next: collo run {named}")
    }
}

/// Every repetition as it will run, for `--order`.
pub fn order(plan: &Plan, facts: &DeviceFacts, width: usize) -> String {
    let mut columns =
        vec![("", Align::Right), ("block", Align::Right), ("cell", Align::Left), ("repetition", Align::Right), ("", Align::Left)];
    let several = plan.order.iter().any(|run| run.card.is_some());
    let of_traces = plan.cells.iter().any(|cell| cell.record.trace.is_some());
    if several {
        columns.insert(2, ("on", Align::Left));
    }
    let mut table = Table::new(&columns, if several { 4 } else { 3 });
    for (i, run) in plan.order.iter().enumerate() {
        let cell = &plan.cells[run.cell].record;
        let edge = match run.edge {
            None => "",
            Some(_) if of_traces => "before the traces",
            Some(collo_store::BlockEdge::Opens) => "opens the block",
            Some(collo_store::BlockEdge::Closes) => "closes the block",
        };
        let repetition = format!("{} of {}", run.repetition, cell.repetitions);
        let mut values = vec![(i + 1).to_string(), run.block.to_string(), cell.cell.clone(), repetition, edge.into()];
        if several {
            let gpu = run.card.and_then(|card| facts.gpus.get(card as usize));
            values.insert(2, gpu.map(|gpu| gpu.label()).unwrap_or_default());
        }
        table.values(values.into_iter().map(Some));
    }
    table.render(width)
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

fn cells(plan: &Plan, facts: &DeviceFacts, width: usize) -> String {
    use Align::{Left, Right};
    let mut columns = vec![
        ("", Right),
        ("cell", Left),
        ("sharing", Left),
        ("degree", Right),
        ("slots", Left),
        ("memory", Right),
        ("runs", Right),
        ("each", Right),
        ("total", Right),
        ("against", Left),
    ];
    // Where the memory comes from, and its upper bound.
    let predicted = forecast_text::has_predictions(plan);
    if predicted {
        columns.splice(MEMORY..MEMORY, [("", Left), ("at most", Right)]);
    }
    let gains = forecast_text::has_gains(plan);
    if gains {
        columns.insert(columns.len() - 1, ("gain", Right));
    }
    let mut table = Table::new(&columns, 2);
    for (i, PlannedCell { record: cell, forecast, .. }) in plan.cells.iter().enumerate() {
        let time = |s: f64| format!("{}{}", if forecast.is_bound(facts.kind) { "≤ " } else { "" }, units::clock(s));
        let from = forecast.basis.as_ref().filter(|_| gains).map_or(String::new(), |b| format!(" {}", b.source().letter()));
        let mut values = vec![
            Some((i + 1).to_string()),
            Some(cell.cell.clone()),
            Some(cell.sharing.clone()),
            Some(degree(cell)),
            cell.slots.clone(),
            forecast.memory.bytes.map(units::gib),
            Some(cell.repetitions.to_string()),
            forecast.each_s.map(|s| time(s) + &from).or_else(|| at_least(forecast, |least| least.each_s)),
            forecast.total_s.map(time).or_else(|| at_least(forecast, |least| least.total_s)),
            Some(against(plan, cell)),
        ];
        if predicted {
            let source = forecast.memory.source.map(|source| source.letter().to_string());
            values.splice(MEMORY..MEMORY, [source, forecast.memory.upper_bytes.map(units::gib)]);
        }
        if gains {
            values.insert(values.len() - 1, forecast_text::gain_of(forecast));
        }
        table.values(values);
    }
    table.render(width)
}

/// Members that train at once; of a trace its tasks, which come and go.
fn degree(cell: &CellRecord) -> String {
    match &cell.trace {
        Some(trace) if trace.tasks == 1 => "1 task".into(),
        Some(trace) => format!("{} tasks", trace.tasks),
        None => cell.degree.to_string(),
    }
}

/// What a trace takes at the least, where that is all that is known.
fn at_least(forecast: &CellForecast, of: impl Fn(&LeastTime) -> f64) -> Option<String> {
    forecast.least.as_ref().map(|least| format!("≥ {}", units::clock(of(least))))
}

/// The numbers of the rows that a cell is compared with.
fn against(plan: &Plan, cell: &CellRecord) -> String {
    if cell.baseline {
        return "baseline".into();
    }
    let number = |label: &String| plan.cells.iter().position(|c| c.record.cell == *label).map(|i| i as u32 + 1);
    let mut numbers: Vec<u32> = cell.against.iter().filter_map(number).collect();
    if cell.trace.is_some() {
        // A trace has a baseline for each kind of task.
        numbers.sort_unstable();
        return units::ranges(&numbers);
    }
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

/// One row per mode and degree, of traces one per policy, in order of first appearance.
fn summary(plan: &Plan, width: usize) -> String {
    use Align::{Left, Right};
    if plan.cells.iter().any(|cell| cell.record.trace.is_some()) {
        return traces(plan, width);
    }
    let mut groups: Vec<(&str, u32, Vec<&PlannedCell>)> = Vec::new();
    for cell in &plan.cells {
        let CellRecord { sharing, degree, .. } = &cell.record;
        match groups.iter_mut().find(|(s, d, _)| s == sharing && d == degree) {
            Some((_, _, members)) => members.push(cell),
            None => groups.push((sharing, *degree, vec![cell])),
        }
    }
    let columns = [("sharing", Left), ("degree", Right), ("cells", Right), ("memory", Right), ("runs", Right), ("total", Right)];
    let mut table = Table::new(&columns, 2);
    for (sharing, degree, members) in groups {
        let memory = members.iter().map(|c| c.forecast.memory.bytes).collect::<Option<Vec<u64>>>();
        let total: Option<f64> = members.iter().map(|c| c.forecast.total_s).sum();
        let runs: u32 = members.iter().map(|c| c.record.repetitions).sum();
        table.values([
            Some(sharing.to_string()),
            Some(degree.to_string()),
            Some(members.len().to_string()),
            memory.and_then(|all| all.into_iter().max()).map(|most| format!("≤ {}", units::gib(most))),
            Some(runs.to_string()),
            total.map(units::clock),
        ]);
    }
    table.render(width)
}

/// One row for the members alone, and one for each trace under each policy, all its orders in one.
fn traces(plan: &Plan, width: usize) -> String {
    use Align::{Left, Right};
    let mut rows: Vec<(Option<TraceCell>, String, Vec<&PlannedCell>)> = Vec::new();
    for cell in &plan.cells {
        // What differs between orders is the order.
        let of = cell.record.trace.clone().map(|trace| TraceCell { order: 0, ..trace });
        match rows.iter_mut().find(|(known, sharing, _)| *known == of && *sharing == cell.record.sharing) {
            Some((_, _, cells)) => cells.push(cell),
            None => rows.push((of, cell.record.sharing.clone(), vec![cell])),
        }
    }
    let columns = [
        ("trace", Left),
        ("policy", Left),
        ("estimate", Left),
        ("sharing", Left),
        ("cells", Right),
        ("tasks", Right),
        ("cards", Right),
        ("runs", Right),
        ("total", Right),
    ];
    let mut table = Table::new(&columns, 4);
    for (of, sharing, cells) in rows {
        let total: Option<f64> = cells.iter().map(|cell| cell.forecast.total_s).sum();
        let least = || {
            cells
                .iter()
                .map(|cell| cell.forecast.total_s.or(cell.forecast.least.as_ref().map(|least| least.total_s)))
                .sum::<Option<f64>>()
        };
        let total = total.map(units::clock).or_else(|| least().map(|s| format!("≥ {}", units::clock(s))));
        let runs: u32 = cells.iter().map(|cell| cell.record.repetitions).sum();
        let (trace, policy, estimate, tasks, cards) = match of {
            Some(TraceCell { trace, policy, estimate, tasks, cards, .. }) => {
                (trace, policy, estimate, tasks.to_string(), cards.to_string())
            }
            None => ("members alone".into(), String::new(), String::new(), String::new(), String::new()),
        };
        let row = [trace, policy, estimate, sharing, cells.len().to_string(), tasks, cards, runs.to_string()];
        table.values(row.map(Some).into_iter().chain([total]));
    }
    table.render(width)
}

fn order_line(plan: &Plan, width: usize) -> String {
    let order = &plan.order;
    let blocks = order.last().map_or(0, |run| run.block);
    let blocks = if blocks == 1 { "1 block".to_string() } else { format!("{blocks} blocks") };
    let remark = format!("{blocks}, shuffled by seed {}", plan.seed);
    let numbers: Vec<String> = order
        .chunk_by(|a, b| a.block == b.block)
        .map(|block| block.iter().map(|run| (run.cell + 1).to_string()).collect::<Vec<_>>().join(" "))
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
    format!("{} × {epochs}; {finished}; baselines open and close a block", plan.order.len())
}

/// The cells that cannot run, and why.
pub fn refused(plan: &Plan, width: usize) -> String {
    let refusals = &plan.refusals;
    if refusals.is_empty() {
        return line("refused", "none", width);
    }
    let mut text = line("refused", &format!("{} of {} cells", refusals.len(), refusals.len() + plan.cells.len()), width);
    // One reason is told once, below all cells that it stops.
    let mut told: Vec<(&RefusalRecord, Vec<&str>)> = Vec::new();
    for refusal in refusals.iter().map(|r| &r.record) {
        match told.iter_mut().find(|(first, _)| first.reason == refusal.reason && first.hint == refusal.hint) {
            Some((_, cells)) => cells.push(&refusal.cell),
            None => told.push((refusal, vec![&refusal.cell])),
        }
    }
    for (refusal, cells) in told {
        for cell in cells.iter().take(10) {
            text += &format!("– {cell}\n");
        }
        if cells.len() > 10 {
            text += &format!("– and {} more\n", cells.len() - 10);
        }
        text += &format!("    {}\n", refusal.reason);
        text += &refusal.hint.iter().map(|hint| format!("    hint: {hint}\n")).collect::<String>();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_measure::{Experiment, Prior, Workloads, expand, plan};

    const TINY: &str = "command = ['python', '{batch_size}', '{images}']\n[settings]\nbatch_size = 32\nimages = 1024\n[forecast.cpu]\nset_up_s = 4.0\nepoch_s = 1.6\nmemory_bytes = 800_000_000\n";
    const SLEEP: &str = "command = ['python', '{seconds}']\n[settings]\nseconds = 1.0\n";

    fn facts() -> DeviceFacts {
        DeviceFacts { cores: vec![0, 1], memory_bytes: Some(24 << 30), ..DeviceFacts::cpu() }
    }

    fn planned(lines: &str) -> Plan {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("tiny", TINY), ("sleep", SLEEP)] {
            std::fs::create_dir(folder.path().join(name)).expect("created");
            std::fs::write(folder.path().join(name).join("workload.toml"), text).expect("written");
        }
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, format!("device = \"cpu\"\n{lines}")).expect("written");
        let workloads = Workloads::load(folder.path()).expect("readable");
        let experiment = Experiment::read(&path, &workloads, &Default::default()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let cells = expand(&experiment, None).unwrap_or_else(|mistake| panic!("{mistake}"));
        plan(&experiment, &cells, &facts(), &Prior::default())
    }

    #[test]
    fn a_plan_shows_cells_order_runs_forecast_and_refusals() {
        let plan = planned("[axes]\nworkload = \"tiny\"\ndegree = [1, 2, 3]\n");
        insta::assert_snapshot!(text(&plan, &facts(), None, 100), @"
        mine on cpu (2 cores, 24 GiB)

           cell              sharing  degree  slots                memory  runs  each  total  against
        1  tiny solo b32     solo          1  whole CPU          0.75 GiB     6  0:07   0:43  baseline
        2  tiny×2 naive b32  naive         2  whole CPU, shared  1.49 GiB     3  0:07   0:22  1
        3  tiny×3 naive b32  naive         3  whole CPU, shared   2.2 GiB     3  0:09   0:26  1

        order     1 2 3 1 · 1 3 2 1 · 1 3 2 1     3 blocks, shuffled by seed 42
        runs      12 × 2 epochs (1 warm-up, 1 measured); finished members keep running;
                  baselines open and close a block
        forecast  about 2 min: 1:31 above, 0:11 between runs
        refused   none
        ");
        assert_eq!(next(&plan, "mine"), "next: collo run mine");
    }

    #[test]
    fn what_is_refused_is_listed_with_its_reason_once() {
        let plan =
            planned("[axes]\nworkload = [\"tiny\", \"sleep\"]\nsharing = [\"naive\", \"mps\", \"mig\"]\ndegree = [2, 40]\n");
        insta::assert_snapshot!(text(&plan, &facts(), None, 100), @"
        mine on cpu (2 cores, 24 GiB)

           cell              sharing  degree  slots                memory  runs  each  total  against
        1  tiny solo b32     solo          1  whole CPU          0.75 GiB     6  0:07   0:43  baseline
        2  tiny×2 naive b32  naive         2  whole CPU, shared  1.49 GiB     3  0:07   0:22  1
        3  sleep solo        solo          1  whole CPU                 –     6     –      –  baseline
        4  sleep×2 naive     naive         2  whole CPU, shared         –     3     –      –  3
        5  sleep×40 naive    naive        40  whole CPU, shared         –     3     –      –  3

        order     1 2 1 3 5 4 3 · 3 5 4 3 1 2 1 · 3 4 5 3 1 2 1     3 blocks, shuffled by seed 42
        runs      21 × 2 epochs (1 warm-up, 1 measured); finished members keep running;
                  baselines open and close a block
        forecast  unknown for 3 of 5 cells (no earlier measurements);
                  the others take 1:05, 0:20 between runs
        refused   9 of 14 cells
        – tiny×40 naive b32
            40 members need about 29.8 GiB, this machine has 24.0 GiB
            hint: `degree` up to 32 fits
        – tiny×2 mps b32
        – tiny×40 mps b32
        – sleep×2 mps
        – sleep×40 mps
            `mps` needs an NVIDIA GPU, this is a cpu
            hint: on a CPU: `naive`, `threads`
        – tiny×2 mig b32
        – tiny×40 mig b32
        – sleep×2 mig
        – sleep×40 mig
            `mig` needs an NVIDIA GPU, this is a cpu
            hint: on a CPU: `naive`, `threads`
        ");
    }

    #[test]
    fn when_nothing_can_run_only_the_reasons_are_left() {
        let plan = planned("[axes]\nworkload = \"tiny\"\nsharing = \"mps\"\ndegree = 2\n");
        insta::assert_snapshot!(text(&plan, &facts(), None, 100), @r"
        mine on cpu (2 cores, 24 GiB)

        refused   1 of 1 cells
        – tiny×2 mps b32
            `mps` needs an NVIDIA GPU, this is a cpu
            hint: on a CPU: `naive`, `threads`
        ");
        assert_eq!(next(&plan, "mine"), "hint: every cell is refused here, so there is nothing to run");
    }

    #[test]
    fn past_forty_cells_there_is_a_row_per_mode_and_degree() {
        let batches: Vec<u32> = (1..=15).collect();
        let plan = planned(&format!("epochs = 3\n[axes]\nworkload = \"tiny\"\nbatch_size = {batches:?}\ndegree = [1, 2, 3]\n"));
        insta::assert_snapshot!(text(&plan, &facts(), None, 100), @"
        mine on cpu (2 cores, 24 GiB)

        sharing  degree  cells      memory  runs  total
        solo          1     15  ≤ 0.75 GiB    90  13:12
        naive         2     15  ≤ 1.49 GiB    45   6:36
        naive         3     15   ≤ 2.2 GiB    45   8:24

        order     3 blocks, shuffled by seed 42; `--order` lists every repetition
        runs      180 × 3 epochs (1 warm-up, 2 measured); finished members keep running;
                  baselines open and close a block
        forecast  about 31 min: 28:12 above, 2:59 between runs
        refused   none
        ");
    }

    #[test]
    fn mixed_groups_show_what_they_are_held_against() {
        let plan = planned(
            "repetitions = 1\nepochs = 1\n[[group]]\nmembers = [{ workload = \"tiny\", batch_size = 128, count = 2 }, { workload = \"tiny\" }]\n",
        );
        insta::assert_snapshot!(text(&plan, &facts(), None, 100), @"
        mine on cpu (2 cores, 24 GiB)

           cell                        sharing  degree  slots                memory  runs  each  total
        1  tiny solo b32               solo          1  whole CPU          0.75 GiB     2  0:06   0:11
        2  tiny solo b128              solo          1  whole CPU          0.75 GiB     2  0:06   0:11
        3  tiny:b32+tiny:b128×2 naive  naive         3  whole CPU, shared   2.2 GiB     1  0:06   0:06
        (not shown at this width: against)

        order     1 1 2 3 2     1 block, shuffled by seed 42
        runs      5 × 1 epoch (measured); finished members keep running, in mixed groups they exit;
                  baselines open and close a block
        forecast  about 35 s: 0:29 above, 0:04 between runs
        refused   none
        ");
    }

    #[test]
    fn a_narrow_screen_keeps_the_labels() {
        let plan = planned("[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\n");
        insta::assert_snapshot!(text(&plan, &facts(), None, 60), @"
        mine on cpu (2 cores, 24 GiB)

           cell              sharing  degree  slots
        1  tiny solo b32     solo          1  whole CPU
        2  tiny×2 naive b32  naive         2  whole CPU, shared
        (not shown at this width: memory, runs, each, total,
          against)

        order     1 2 1 · 1 2 1 · 1 2 1
                  3 blocks, shuffled by seed 42
        runs      9 × 2 epochs (1 warm-up, 1 measured);
                  finished members keep running;
                  baselines open and close a block
        forecast  about 75 s: 1:05 above, 0:08 between runs
        refused   none
        ");
    }

    #[test]
    fn the_order_lists_every_repetition() {
        let plan = planned("repetitions = 2\n[axes]\nworkload = \"tiny\"\ndegree = [2]\n");
        insta::assert_snapshot!(order(&plan, &facts(), 100), @r"
           block  cell              repetition
        1      1  tiny solo b32         1 of 4  opens the block
        2      1  tiny×2 naive b32      1 of 2
        3      1  tiny solo b32         2 of 4  closes the block
        4      2  tiny solo b32         3 of 4  opens the block
        5      2  tiny×2 naive b32      2 of 2
        6      2  tiny solo b32         4 of 4  closes the block
        ");
    }
}
