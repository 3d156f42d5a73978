//! What a plan takes, in words: time, energy, money, memory.
//!
//! In: a plan. Out: a line each.

use collo_measure::host::Price;
use collo_measure::{CellForecast, DeviceFacts, DeviceKind, ForecastBasis, Plan, units};

/// How long a plan will take, and where that comes from.
pub fn forecast(plan: &Plan, facts: &DeviceFacts) -> String {
    let forecast = &plan.forecast;
    let pauses =
        if forecast.between_s > 0.0 { format!(", {} between runs", units::clock(forecast.between_s)) } else { String::new() };
    let from = from(plan, facts);
    if let (Some(total), Some(runs)) = (forecast.total_s, forecast.runs_s) {
        return format!("about {}: {} above{pauses}{from}", units::about(total), units::clock(runs));
    }
    let known: Vec<f64> = plan.cells.iter().filter_map(|c| c.forecast.total_s).collect();
    let unknown = plan.cells.len() - known.len();
    let of = if plan.cells.len() == 1 { "the cell".into() } else { format!("{unknown} of {} cells", plan.cells.len()) };
    let rest = if known.is_empty() { String::new() } else { format!("; the others take {}", units::clock(known.iter().sum())) };
    format!("unknown for {of} (no earlier measurements){rest}{pauses}{from}")
}

/// Where a forecast comes from, if not from the workloads' files alone.
fn from(plan: &Plan, facts: &DeviceFacts) -> String {
    let runs = match plan.forecast.stored_runs {
        0 => return String::new(),
        1 => "1 stored run".into(),
        n => format!("{n} stored runs"),
    };
    let with = |is: &dyn Fn(&CellForecast) -> bool| plan.cells.iter().filter(|c| is(&c.forecast)).count();
    let cells = |n: usize| if n == 1 { "1 cell".to_string() } else { format!("{n} cells") };
    let mut text = format!("; from {runs}");
    let shipped = with(&|f| f.basis == Some(ForecastBasis::Workload));
    if shipped > 0 {
        text += &format!(", for {} from workload.toml", cells(shipped));
    }
    let members = with(&|f| matches!(f.basis, Some(ForecastBasis::Members(_))));
    if members > 0 {
        let bound = if facts.kind == DeviceKind::Gpu { ", at most" } else { "" };
        text += &format!("; {} from those of their members alone{bound}", cells(members));
    }
    text
}

/// `about 2.3 kWh, 12.40 EUR`, as far as energy was measured, and a price is known.
pub fn costs(plan: &Plan, price: Option<&Price>) -> Option<String> {
    let share = |known: usize| match known == plan.cells.len() {
        true => String::new(),
        false => format!(" for {known} of {} cells", plan.cells.len()),
    };
    let measured = plan.cells.iter().filter(|c| c.forecast.energy_j.is_some()).count();
    let energy = plan.forecast.energy_j.map(|joules| format!("{}{}", units::energy(joules), share(measured)));
    let money = price.and_then(|price| {
        let (amount, known) = price_of(plan, price)?;
        Some(format!("{amount:.2} {}{}", price.currency, share(known)))
    });
    let all: Vec<String> = energy.into_iter().chain(money).collect();
    (!all.is_empty()).then(|| format!("about {}", all.join(", ")))
}

/// What the machine costs for the time of a plan, and for how many of its cells that is known.
pub fn price_of(plan: &Plan, price: &Price) -> Option<(f64, usize)> {
    let known: Vec<f64> = plan.cells.iter().filter_map(|c| c.forecast.total_s).collect();
    let total_s = plan.forecast.total_s.unwrap_or_else(|| known.iter().sum());
    (!known.is_empty()).then(|| (total_s / 3600.0 * price.per_hour, known.len()))
}

/// What may run out of memory.
pub fn memory(plan: &Plan) -> Option<String> {
    let cells = plan.cells.iter().filter(|c| c.forecast.may_run_out).map(|c| c.record.cell.as_str());
    let cells: Vec<&str> = cells.collect();
    let named = match cells.first()? {
        _ if cells.len() <= 3 => cells.join(", "),
        first => format!("{first} and {} more", cells.len() - 1),
    };
    Some(format!("{named} may run out of memory: the largest readings of their members alone exceed it"))
}
