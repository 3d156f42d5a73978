//! Differences besides the results. In: two sides. Out: their environments name by name, and warnings if the sides were measured
//! in ways that make their numbers incomparable. It looks at no number of a cell.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::side::ComparedReport;

/// The environment of both sides.
#[derive(Debug, Default, Serialize)]
pub struct Environment {
    pub different: Vec<EnvironmentDifference>,
    /// Names that are the same on both sides.
    pub alike: Vec<String>,
}

/// One name of the environment that differs.
#[derive(Debug, Serialize)]
pub struct EnvironmentDifference {
    pub name: String,
    pub left: Option<String>,
    pub right: Option<String>,
    /// Whether this difference is known to make times slower.
    #[serde(skip)]
    pub slower: Option<bool>,
    /// The verdict that some row has and that it may explain.
    pub may_explain: Option<&'static str>,
}

/// Never explains a time, and differs between any two campaigns.
const IDLE: [&str; 1] = ["run order"];

impl Environment {
    /// Of two sides, in the order of the right one.
    pub fn of(left: &ComparedReport, right: &ComparedReport) -> Environment {
        let mut found = Environment::default();
        let names = right.environment.iter().chain(left.environment.iter()).map(|(name, _)| name);
        let mut seen: Vec<&str> = Vec::new();
        for name in names.filter(|n| !IDLE.contains(n)) {
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let (l, r) = (left.fact(name), right.fact(name));
            if l == r {
                found.alike.push(name.into());
            } else {
                let slower = slower(name, l, r);
                let own = |text: Option<&str>| text.map(str::to_string);
                found.different.push(EnvironmentDifference {
                    name: name.into(),
                    left: own(l),
                    right: own(r),
                    slower,
                    may_explain: None,
                });
            }
        }
        found
    }
}

/// Whether this change is known to cost time: a lower cap or clock, ECC that was switched on. For a driver it is unknown.
fn slower(name: &str, left: Option<&str>, right: Option<&str>) -> Option<bool> {
    let number = |text: &str| -> Option<f64> { text.split_whitespace().find_map(|word| word.parse().ok()) };
    match name {
        "power cap" | "clocks" => {
            let (l, r) = (number(left?)?, number(right?)?);
            (l != r).then_some(r < l)
        }
        "ECC" => Some(right? == "on"),
        _ => None,
    }
}

/// Warnings about both sides, and why their times are not judged at all.
#[derive(Debug, Default)]
pub struct Cautions {
    pub warnings: Vec<String>,
    /// Set if no number of the two may be judged.
    pub withheld: Option<String>,
}

/// True if the sides are different devices, whose times are not compared.
pub fn different_devices(left: &ComparedReport, right: &ComparedReport) -> bool {
    let cpus = left.device.kind == "cpu" && right.device.kind == "cpu";
    let known = |name: &str| left.fact(name).zip(right.fact(name)).is_some_and(|(l, r)| l != r);
    left.device.name != right.device.name
        || left.device.kind != right.device.kind
        || cpus && (known("CPU") || left.device.quota_cores != right.device.quota_cores)
}

/// Warnings to print before any comparison.
pub fn cautions(left: &ComparedReport, right: &ComparedReport) -> Cautions {
    let mut found = Cautions::default();
    let mut warn = |text: String| found.warnings.push(text);
    if left.device.simulated != right.device.simulated {
        let who = if left.device.simulated { "left" } else { "right" };
        warn(format!("the {who} side is simulated, the other measured: simulated and measured numbers get no verdict"));
        found.withheld = Some("simulated against measured".into());
    } else if let Some(campaign) = shared_campaign(left, right) {
        warn(format!("both sides are from campaign {campaign} and share runs: no verdict is given"));
        found.withheld = Some("both sides share runs".into());
    }
    let mut warn = |text: String| found.warnings.push(text);
    let data = |side: &ComparedReport| {
        if side.synthetic.is_empty() { "real data".into() } else { format!("stand-ins for {}", side.synthetic.join(", ")) }
    };
    // Other stand-ins alone are other workloads; what counts is a data set that is real on one side.
    let stand_in = |text: &String| text.starts_with("synthetic");
    let mut data_sets = left.environment.iter().filter(|(name, _)| name.starts_with("data "));
    let differs = |(name, l): (&str, &String)| right.environment.get(name).is_some_and(|r| stand_in(l) != stand_in(r));
    let is_known = left.measured_by.is_none() && right.measured_by.is_none();
    if is_known && (left.synthetic.is_empty() != right.synthetic.is_empty() || data_sets.any(differs)) {
        warn(format!("the left trained on {}, the right on {}: times may differ for that reason alone", data(left), data(right)));
    }
    let mut workloads: Vec<&String> = left.shortened.keys().chain(right.shortened.keys()).collect();
    workloads.sort();
    workloads.dedup();
    // What only one side trained is compared with nothing.
    let trains =
        |side: &ComparedReport, workload: &str| side.cells.iter().flat_map(|c| &c.members).any(|m| m.workload == workload);
    for workload in workloads.into_iter().filter(|w| trains(left, w) && trains(right, w)) {
        let (l, r) = (left.shortened.get(workload), right.shortened.get(workload));
        let text = |n: Option<&BTreeSet<u64>>| match n {
            Some(n) => format!("{} batches", n.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ")),
            None => "whole epochs".into(),
        };
        if l != r {
            let way = if different_devices(left, right) { "" } else { ", `--quantity items_per_s` is" };
            let (l, r) = (text(l), text(r));
            warn(format!("epochs of `{workload}` differ ({l} left, {r} right): times per epoch are not judged{way}"));
        }
    }
    let python = |side: &ComparedReport| side.fact("python set").or(side.fact("own")).unwrap_or("none").to_string();
    if is_known && python(left) != python(right) {
        let word = |side: &ComparedReport| format!("`{}`, torch {}", python(side), side.fact("torch").unwrap_or("unknown"));
        warn(format!(
            "the sides ran in different Python sets ({} and {}), which may explain a difference",
            word(left),
            word(right)
        ));
    }
    if left.fact("epochs").zip(right.fact("epochs")).is_some_and(|(l, r)| l != r) {
        warn("the sides measured different numbers of epochs: makespans are not judged".into());
    }
    for (who, side) in [("left", left), ("right", right)] {
        for why in &side.indicative {
            warn(format!("the {who} side is indicative: {why}"));
        }
    }
    if left.experiment != right.experiment {
        warn(format!(
            "different experiments, `{}` and `{}`: cells are matched by their labels",
            left.experiment, right.experiment
        ));
    }
    found
}

/// A campaign that both sides have runs of: their own, or one that either was merged from.
fn shared_campaign<'a>(left: &'a ComparedReport, right: &ComparedReport) -> Option<&'a str> {
    fn parts(side: &ComparedReport) -> impl Iterator<Item = &str> {
        std::iter::once(&side.campaign).chain(&side.merged_from).map(String::as_str)
    }
    parts(left).find(|part| parts(right).any(|other| other == *part))
}
