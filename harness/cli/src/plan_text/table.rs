//! The tables of `collo plan`: its cells, in full or by mode and degree, and every repetition in order.

use collo_figures::document::Table;
use collo_plan::facts::DeviceFacts;
use collo_plan::plan::{CellForecast, LeastTime, Plan, PlannedCell};
use collo_quantity::number;
use collo_store::{CellRecord, TraceCell, cell_number};
use collo_text::units;

use crate::forecast_text;

/// More cells than this are shown as one row per mode and degree.
const MOST_ROWS: usize = 40;
/// The columns up to the memory of a cell.
const MEMORY: usize = 6;
/// What goes where space is short, the last of them first: the label of a cell has most of it.
const SPARE: [&str; 3] = ["slots", "degree", "sharing"];
/// The cells, at most `width` columns wide.
pub fn cells(plan: &Plan, facts: &DeviceFacts, width: usize) -> String {
    if plan.cells.len() <= MOST_ROWS { each(plan, facts, width) } else { summary(plan, width) }
}

/// Every repetition as it will run, for `--order`.
pub fn order(plan: &Plan, facts: &DeviceFacts, width: usize) -> String {
    let mut columns = vec!["#", "#block", "cell", "#repetition", ""];
    let several = plan.order.iter().any(|run| run.card.is_some());
    let of_traces = plan.cells.iter().any(|cell| cell.record.trace.is_some());
    if several {
        columns.insert(2, "on");
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

/// A row for each cell.
fn each(plan: &Plan, facts: &DeviceFacts, width: usize) -> String {
    let mut columns = vec!["#", "cell", "sharing", "#degree", "slots", "#memory", "#runs", "#each", "#total", "against"];
    // Where the memory comes from, and its upper bound.
    let predicted = forecast_text::has_predictions(plan);
    if predicted {
        columns.splice(MEMORY..MEMORY, ["", "#at most"]);
    }
    let gains = forecast_text::has_gains(plan);
    if gains {
        columns.insert(columns.len() - 1, "#gain");
    }
    let mut table = Table::new(&columns, 2);
    for (i, name) in SPARE.iter().enumerate() {
        table.columns.iter_mut().filter(|column| column.name == *name).for_each(|column| column.rank = columns.len() + i);
    }
    for (i, PlannedCell { record: cell, forecast, .. }) in plan.cells.iter().enumerate() {
        let time = |s: f64| format!("{}{}", if forecast.is_bound(facts.kind) { "≤ " } else { "" }, units::clock(s));
        let from = forecast.basis.as_ref().filter(|_| gains).map_or(String::new(), |b| format!(" {}", b.source().letter()));
        let mut values = vec![
            Some(cell_number(i).to_string()),
            Some(cell.cell.clone()),
            Some(cell.sharing.clone()),
            Some(degree(cell)),
            cell.slots.clone(),
            forecast.memory.bytes.map(units::gib),
            Some(cell.repetitions.to_string()),
            match forecast.each_bounds_s.map(|(low_s, high_s)| (units::clock(low_s), units::clock(high_s))) {
                Some((low, high)) if low != high => Some(format!("{low}–{high}{from}")),
                _ => forecast.each_s.map(|s| time(s) + &from),
            }
            .or_else(|| at_least(forecast, |least| least.each_s)),
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
        Some(trace) => number::count(trace.tasks as usize, "task"),
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
    let place = |label: &String| plan.cells.iter().position(|c| c.record.cell == *label);
    let number = |label: &String| place(label).map(|place| cell_number(place) as u32);
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
    let mut table = Table::new(&["sharing", "#degree", "#cells", "#memory", "#runs", "#total"], 2);
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
    let mut rows: Vec<(Option<TraceCell>, String, Vec<&PlannedCell>)> = Vec::new();
    for cell in &plan.cells {
        // What differs between orders is the order.
        let of = cell.record.trace.clone().map(|trace| TraceCell { order: 0, ..trace });
        match rows.iter_mut().find(|(known, sharing, _)| *known == of && *sharing == cell.record.sharing) {
            Some((_, _, cells)) => cells.push(cell),
            None => rows.push((of, cell.record.sharing.clone(), vec![cell])),
        }
    }
    let heads = ["trace", "policy", "estimate", "sharing", "#cells", "#tasks", "#cards", "#runs", "#total"];
    let mut table = Table::new(&heads, 4);
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
