//! The best way to run each workload on every GPU model. In: the decisions of the reports, and their cells. Out: for each workload or mix
//! and GPU what to run, items per second, joules per item, and the ratio to the first GPU with its interval, or why there is none.

use collo_figures::modes::mode_and_degree;
use collo_guidelines::report_json::{CellJson, Decided, DecisionJson};
use collo_quantity::Key;
use collo_quantity::stats::Quantity;
use serde::Serialize;

use crate::side::ComparedReport;

/// A workload or mix on every GPU model.
#[derive(Debug, Serialize)]
pub struct BestRow {
    pub subject: String,
    /// The solo cells of its members.
    pub members: Vec<String>,
    /// By GPU model; `None` where the report decides nothing about it.
    pub on: Vec<Option<Best>>,
}

/// The best way to run a workload or mix on one GPU model.
#[derive(Debug, Serialize)]
pub struct Best {
    pub decided: Decided,
    /// The cells to run, any of which is as good as the others; of one that is run in turn its baseline. Numbers are of the first.
    pub cells: Vec<String>,
    /// `MPS ×7`, `in turn`, `open`.
    pub way: String,
    /// Of the first cell; empty if there is none.
    #[serde(skip)]
    pub sharing: String,
    /// Why none of several is preferred, or why nothing is decided.
    pub reason: Option<String>,
    pub items_per_s: Option<Quantity>,
    /// Of a mix the items per second of each member, in its order: items of different workloads have no sum.
    pub members: Vec<MemberItems>,
    /// Its items per second ÷ those on the first GPU model.
    pub ratio: Option<Quantity>,
    /// Why there is no ratio.
    pub no_ratio: Option<String>,
    pub energy_j_per_item: Option<Quantity>,
    /// That energy rests on too few steps of the counter.
    pub few_energy_steps: bool,
    /// Its throughput ÷ that of running in turn on the same GPU.
    pub gain: Option<Quantity>,
    /// In the currency of the price of an hour.
    pub cost_per_million_items: Option<Quantity>,
}

/// The throughput of one member of a mix.
#[derive(Debug, Serialize)]
pub struct MemberItems {
    pub workload: String,
    /// `None` where it reports no items.
    pub items_per_s: Option<Quantity>,
}

/// Of every workload and mix that some side decides about, in the order of the first.
pub fn rows(sides: &[ComparedReport], prices: &[f64]) -> Vec<BestRow> {
    let mut rows: Vec<(&[String], &str)> = Vec::new();
    for decision in sides.iter().flat_map(|side| &side.decisions) {
        if !rows.iter().any(|(members, _)| *members == decision.members) {
            rows.push((&decision.members, &decision.subject));
        }
    }
    let row = |(members, subject): (&[String], &str)| {
        let known = |side: &ComparedReport| side.decisions.iter().find(|d| d.members == members).cloned();
        let mut on: Vec<Option<Best>> = sides.iter().map(|side| Some(best(side, &known(side)?))).collect();
        if let (Some(first), Some((mine, others))) = (sides.first(), on.split_first_mut()) {
            for (side, theirs) in sides[1..].iter().zip(others) {
                let Some(theirs) = theirs else { continue };
                let found = match mine {
                    Some(_) if members.len() > 1 => Err("items of different workloads have no sum".into()),
                    Some(mine) => ratio((first, mine), (side, theirs)),
                    None => Err(format!("{} has no groups of it", first.device_short())),
                };
                match found {
                    Ok(ratio) => theirs.ratio = Some(ratio),
                    Err(why) => theirs.no_ratio = Some(why),
                }
            }
        }
        for (best, price) in on.iter_mut().zip(prices).filter_map(|(best, price)| Some((best.as_mut()?, price))) {
            best.cost_per_million_items = best.items_per_s.as_ref().map(|items| cost(items, *price));
        }
        BestRow { subject: subject.into(), members: members.to_vec(), on }
    };
    rows.into_iter().map(row).collect()
}

fn cell<'a>(side: &'a ComparedReport, label: &str) -> Option<&'a CellJson> {
    side.cells.iter().find(|cell| cell.label == label)
}

fn best(side: &ComparedReport, decision: &DecisionJson) -> Best {
    let is_mixed = decision.members.len() > 1;
    let cells = match decision.throughput {
        Decided::Run => decision.cells.clone(),
        // Members of a mix that are run in turn share no cell.
        Decided::InTurn if !is_mixed => decision.members.clone(),
        Decided::InTurn | Decided::Open => Vec::new(),
    };
    let first = cells.first().and_then(|label| cell(side, label));
    // Items of different workloads have no common sum.
    let number = |key: Key| first.filter(|cell| !is_mixed && cell.validity == "valid").and_then(|cell| cell.get(key.name));
    let mixed = first.filter(|cell| is_mixed && cell.validity == "valid");
    let member = |cell: &CellJson, index: usize| MemberItems {
        workload: cell.members[index].workload.clone(),
        items_per_s: cell.of_member(index, Key::Items.name),
    };
    let names: Vec<String> = match decision.throughput {
        Decided::Run => {
            cells.iter().filter_map(|label| cell(side, label)).map(|c| mode_and_degree(&c.sharing, c.degree)).collect()
        }
        Decided::InTurn => vec!["in turn".into()],
        Decided::Open => vec!["open".into()],
    };
    Best {
        decided: decision.throughput,
        way: names.join(" or "),
        sharing: first.map(|cell| cell.sharing.clone()).unwrap_or_default(),
        reason: decision.reason.clone(),
        items_per_s: number(Key::Items),
        members: mixed.map_or_else(Vec::new, |cell| (0..cell.members.len()).map(|index| member(cell, index)).collect()),
        ratio: None,
        no_ratio: None,
        energy_j_per_item: number(Key::EnergyPerItem),
        few_energy_steps: decision.few_energy_steps,
        gain: first.and_then(|cell| cell.get(Key::ThroughputGain.name)),
        cost_per_million_items: None,
        cells,
    }
}

/// The ratio of two throughputs, unless they are of different things.
fn ratio((first, ours): (&ComparedReport, &Best), (side, theirs): (&ComparedReport, &Best)) -> Result<Quantity, String> {
    for (side, best) in [(first, ours), (side, theirs)] {
        if best.decided == Decided::Open {
            let why = best.reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
            return Err(format!("open on {}{why}", side.device_short()));
        }
    }
    if first.device.simulated != side.device.simulated {
        return Err("one GPU is simulated, the other was measured".into());
    }
    if first.synthetic != side.synthetic {
        return Err("trained on different data".into());
    }
    let different = different_conditions([(first, ours), (side, theirs)]);
    if !different.is_empty() {
        return Err(format!("trained under other conditions: {}", different.join(", ")));
    }
    let (Some(before), Some(now)) = (&ours.items_per_s, &theirs.items_per_s) else {
        return Err("one of them has no valid items per second".into());
    };
    now.over(before).ok_or_else(|| "one repetition has no interval".into())
}

/// The names of the settings that members of the two reported differently.
fn different_conditions(both: [(&ComparedReport, &Best); 2]) -> Vec<String> {
    let regime = |(side, best): (&ComparedReport, &Best)| {
        let member = cell(side, best.cells.first()?)?.members.first()?;
        member.regime.clone()
    };
    let [Some(ours), Some(theirs)] = both.map(regime) else { return Vec::new() };
    let names = ours.keys().chain(theirs.keys().filter(|name| !ours.contains_key(*name)));
    names.filter(|name| ours.get(*name) != theirs.get(*name)).map(|name| name.replace('_', " ")).collect()
}

/// What a million items cost at this price of an hour.
fn cost(items_per_s: &Quantity, per_hour: f64) -> Quantity {
    let of = |rate: f64| per_hour / 3600.0 * 1e6 / rate;
    let (low, high) = (items_per_s.high.map(of), items_per_s.low.map(of));
    Quantity { estimate: of(items_per_s.estimate), low, high, ..items_per_s.clone() }
}

#[cfg(test)]
mod tests {
    use collo_guidelines::report_json::{MemberJson, ReportJson};

    use super::*;

    #[test]
    fn a_mix_has_the_items_per_second_of_each_member_and_none_of_the_whole() {
        let items = |estimate: f64| Quantity { estimate, low: Some(estimate), high: Some(estimate), n: 3, df: None };
        let member = |workload: &str, rate: Option<f64>| MemberJson {
            workload: workload.into(),
            solo: format!("{workload} solo b32"),
            quantities: [(Key::Items.name, rate.map(items))].into_iter().collect(),
            ..MemberJson::default()
        };
        let members = vec![member("small", Some(1200.0)), member("stress", None)];
        let mixed = CellJson {
            label: "small+stress mps".into(),
            sharing: "mps".into(),
            degree: 2,
            validity: "valid".into(),
            quantities: [(Key::Items.name, Some(items(1300.0)))].into_iter().collect(),
            members,
            ..CellJson::default()
        };
        let decision = DecisionJson {
            subject: "small+stress".into(),
            members: ["small solo b32", "stress solo b32"].map(String::from).into(),
            throughput: Decided::Run,
            cells: vec!["small+stress mps".into()],
            reason: None,
            few_energy_steps: false,
        };
        let side = ComparedReport::from(ReportJson { cells: vec![mixed], decisions: vec![decision], ..ReportJson::default() });
        let found = rows(&[side], &[]);
        let best = found[0].on[0].as_ref().expect("it decides");
        assert!(best.items_per_s.is_none(), "what different workloads do together is no number of items");
        let each: Vec<(&str, Option<f64>)> =
            best.members.iter().map(|m| (m.workload.as_str(), m.items_per_s.as_ref().map(|q| q.estimate))).collect();
        assert_eq!(each, [("small", Some(1200.0)), ("stress", None)]);
        let text = super::super::brief::members(best);
        assert!(text.starts_with("small 12") && text.ends_with(" + stress –"), "{text}");
    }
}
