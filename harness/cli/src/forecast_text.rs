//! What a plan takes, in words: time, energy, money, memory.
//!
//! In: a plan. Out: a line each.

use std::collections::BTreeMap;

use collo_plan::facts::{DeviceFacts, DeviceKind};
use collo_plan::host::Price;
use collo_plan::plan::{CellForecast, ForecastBasis, ForecastSource, OutOfMemoryRisk, Plan, PlannedCell};
use collo_quantity::number;
use collo_store::PredictorRecord;
use collo_text::units;

/// How long a plan will take, and where that comes from.
pub fn forecast(plan: &Plan, facts: &DeviceFacts) -> String {
    let forecast = &plan.forecast;
    let pauses =
        if forecast.between_s > 0.0 { format!(", {} between runs", units::clock(forecast.between_s)) } else { String::new() };
    let from = from(plan, facts);
    if let (Some(total), Some(runs)) = (forecast.total_s, forecast.runs_s) {
        return format!("about {}: {} above{pauses}{from}", units::about(total), units::clock(runs));
    }
    if let Some(least) = forecast.least_s {
        let alone: f64 = plan.cells.iter().filter(|c| c.record.trace.is_none()).filter_map(|c| c.forecast.total_s).sum();
        let known = if alone > 0.0 { format!("; {} of it members alone", units::clock(alone)) } else { String::new() };
        // What a policy makes of it is what is measured.
        return format!("at least {}: no task of a trace is faster than alone{known}{pauses}{from}", units::about(least));
    }
    let unknown = plan.cells.iter().filter(|c| c.forecast.total_s.is_none()).count();
    let of = if plan.cells.len() == 1 { "the cell".into() } else { format!("{unknown} of {} cells", plan.cells.len()) };
    let others = || format!("; the others take {}", units::clock(forecast.known_s));
    let rest = if unknown == plan.cells.len() { String::new() } else { others() };
    format!("unknown for {of} (no earlier measurements){rest}{pauses}{from}")
}

/// Where a forecast comes from, if not from the workloads' files alone.
fn from(plan: &Plan, facts: &DeviceFacts) -> String {
    let runs = plan.forecast.stored_runs;
    if runs == 0 {
        return String::new();
    }
    let with = |is: &dyn Fn(&CellForecast) -> bool| plan.cells.iter().filter(|c| is(&c.forecast)).count();
    let cells = |n: usize| number::count(n, "cell");
    let mut text = format!("; from {}", number::count(runs, "stored run"));
    let shipped = with(&|f| f.basis == Some(ForecastBasis::Workload));
    if shipped > 0 {
        text += &format!(", for {} from workload.toml", cells(shipped));
    }
    let company = with(&|f| matches!(f.basis, Some(ForecastBasis::Company(_))));
    if company > 0 {
        text += &format!("; {} from those of their members alone, and what company is predicted to cost", cells(company));
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
    let from = |source: ForecastSource| plan.cells.iter().filter(|c| c.forecast.energy_from == Some(source)).count();
    let (measured, predicted) = (from(ForecastSource::Measured), from(ForecastSource::Predicted));
    let by_prediction = match (measured, predicted) {
        (_, 0) => String::new(),
        (0, _) => ", predicted".into(),
        (_, n) => format!(", of {n} predicted"),
    };
    let energy =
        plan.forecast.energy_j.map(|joules| format!("{}{}{by_prediction}", units::energy(joules), share(measured + predicted)));
    let money = price.and_then(|price| {
        let (amount, known) = price_of(plan, price)?;
        Some(format!("{amount:.2} {}{}", price.currency, share(known)))
    });
    let all: Vec<String> = energy.into_iter().chain(money).collect();
    (!all.is_empty()).then(|| format!("about {}", all.join(", ")))
}

/// What the machine costs for the time of a plan, and for how many of its cells that is known.
pub fn price_of(plan: &Plan, price: &Price) -> Option<(f64, usize)> {
    let known = plan.cells.iter().filter(|c| c.forecast.total_s.is_some()).count();
    let total_s = plan.forecast.total_s.unwrap_or(plan.forecast.known_s);
    (known > 0).then(|| (total_s / 3600.0 * price.per_hour, known))
}

/// Whether some member's memory is predicted, so that a table says where each number comes from.
pub fn has_predictions(plan: &Plan) -> bool {
    plan.cells.iter().any(|c| c.forecast.memory.source == Some(ForecastSource::Predicted))
}

/// Where the memory comes from, where that differs, and what may run out of it.
pub fn memory(plan: &Plan) -> Option<String> {
    let mut parts = Vec::new();
    if has_predictions(plan)
        && let Some(by) = plan.predicted.as_ref().and_then(|predicted| predicted.predictor.as_ref())
    {
        let measured = plan.cells.iter().any(|c| c.forecast.memory.source == Some(ForecastSource::Measured));
        let measured = if measured { "m: measured alone; " } else { "" };
        parts.push(format!("{measured}p: {}", predicted_by(by)));
    }
    let risk = |c: &&PlannedCell, readings: bool| {
        c.forecast.memory.risk.is_some_and(|risk| (risk == OutOfMemoryRisk::Readings) == readings)
    };
    let by_readings: Vec<String> = plan.cells.iter().filter(|c| risk(c, true)).map(|c| c.record.cell.clone()).collect();
    if let Some(named) = some_of(&by_readings) {
        parts.push(format!("{named} may run out of memory: the largest readings of their members alone exceed it"));
    }
    let mut by_prediction: Vec<(&PlannedCell, f64)> =
        plan.cells.iter().filter_map(|c| Some((c, c.forecast.memory.probability()?))).collect();
    by_prediction.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named = by_prediction.iter().map(|(c, probability)| format!("{} ({})", c.record.cell, chance(*probability)));
    if let Some(named) = some_of(&named.collect::<Vec<_>>()) {
        parts.push(format!("{named} may run out of memory"));
    }
    let unpredicted: BTreeMap<&str, &str> = plan
        .predicted
        .iter()
        .flat_map(|predicted| &predicted.members)
        .filter_map(|member| Some((member.reason.as_deref()?, member.solo.as_str())))
        .collect();
    parts.extend(unpredicted.into_iter().map(|(reason, solo)| format!("{solo} is not predicted: {reason}")));
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn predicted_by(by: &PredictorRecord) -> String {
    let of = by.device.as_ref().map(|device| format!(" of {device}")).unwrap_or_default();
    let wider = match by.widened > 1.0 {
        true => format!(", intervals {} times as wide", number::factor(by.widened)),
        false => String::new(),
    };
    format!("predicted by {}, fitted on {} measurements{of}{wider}", by.name, by.fitted_on)
}

/// Whether some group's gain is known.
pub fn has_gains(plan: &Plan) -> bool {
    plan.cells.iter().any(|c| c.forecast.gain.is_some())
}

/// `1.35 m`, `1.2 p`: work per second relative to running in turn, and where that is from.
pub fn gain_of(forecast: &CellForecast) -> Option<String> {
    forecast.gain.map(|gain| format!("{} {}", number::three(gain.estimate), gain.source.letter()))
}

/// Where the gains come from, and of which groups none can be said.
pub fn gains(plan: &Plan) -> Option<String> {
    let mut parts = Vec::new();
    let from = |source: ForecastSource| plan.cells.iter().any(|c| c.forecast.gain.is_some_and(|gain| gain.source == source));
    if from(ForecastSource::Measured) {
        parts.push("m: measured here earlier".to_string());
    }
    let claims = plan.predicted.as_ref();
    if from(ForecastSource::Predicted)
        && let Some(by) = claims.and_then(|claims| claims.company_predictor.as_ref())
    {
        parts.push(format!("p: {}", predicted_by(by)));
    }
    let unsaid = |cell: &&PlannedCell| cell.forecast.gain.is_none();
    let unpredicted = |cell: &PlannedCell| {
        let why = claims?.of_cell(&cell.record.cell)?.reason.as_ref()?;
        Some(format!("not predicted, {why}"))
    };
    let unused = |cell: &PlannedCell| Some(format!("predicted but not shown, as {}", cell.forecast.gain_withheld.as_ref()?));
    let mut reasons = BTreeMap::<String, Vec<String>>::new();
    for cell in plan.cells.iter().filter(unsaid) {
        if let Some(why) = unpredicted(cell).or_else(|| unused(cell)) {
            reasons.entry(why).or_default().push(cell.record.cell.clone());
        }
    }
    parts.extend(reasons.iter().filter_map(|(why, cells)| Some(format!("{}: {why}", some_of(cells)?))));
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// `A, B, C`, `A and 4 more`; none of nothing.
fn some_of(cells: &[String]) -> Option<String> {
    match cells {
        [] => None,
        _ if cells.len() <= 3 => Some(cells.join(", ")),
        [first, ..] => Some(format!("{first} and {} more", cells.len() - 1)),
    }
}

/// A probability for who plans with it.
pub fn chance(probability: f64) -> String {
    match probability {
        p if p >= 0.95 => "almost certainly".into(),
        p if p >= 0.5 => "more likely than not".into(),
        p if p < 0.005 => "less than 1 in 200".into(),
        p => format!("about 1 in {:.0}", 1.0 / p),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chance_is_said_in_words() {
        let said = [0.0001, 0.1, 0.2, 0.4, 0.6, 0.99].map(chance);
        let words =
            ["less than 1 in 200", "about 1 in 10", "about 1 in 5", "about 1 in 2", "more likely than not", "almost certainly"];
        assert_eq!(said, words);
    }
}
