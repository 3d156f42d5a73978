//! Possible explanations of differences between two campaigns, by name. In: a campaign's manifest, and its members' training
//! data. Out: names with texts, in the order in which `collo compare` lists them. Unknown ones are left out; it judges nothing.

use std::collections::BTreeMap;

use collo_store::{Campaign, GpuRecord, Machine, MemberRecord, sha256_text};

use super::Analysis;
use super::reported::FromReport;
use crate::cell::Cell;
use crate::reading::data::batches;

/// Digits of a digest shown to people.
const DIGITS: usize = 12;

/// The environment of a campaign: `driver` → `580.95.05`.
pub fn of(analysis: &Analysis) -> Vec<(String, String)> {
    if let Some(report) = &analysis.report {
        return report.environment.clone();
    }
    on(analysis, &analysis.campaign.machine)
}

/// The same on one of the machines of a campaign.
fn on(analysis: &Analysis, machine: &Machine) -> Vec<(String, String)> {
    let campaign = &analysis.campaign;
    let mut found: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, text: Option<String>| {
        if let Some(text) = text.filter(|t| !t.is_empty()) {
            found.push((name.into(), text));
        }
    };
    let gpu = campaign.device.kind == "gpu";
    let card = card(campaign, machine).filter(|_| gpu);
    put(if gpu { "GPU" } else { "device" }, Some(campaign.device.text()));
    if let Some(card) = card {
        put("UUID", Some(card.uuid.clone()));
        put("SMs", card.sms.map(|n| n.to_string()));
    }
    put("driver", machine.driver.clone().filter(|_| gpu));
    put("CUDA", machine.cuda.clone().filter(|_| gpu));
    if let Some(card) = card {
        put("VBIOS", card.vbios.clone());
        put("clocks", card.max_sm_clock_mhz.map(|mhz| format!("at most {mhz} MHz")));
        put("power cap", card.power_limit_w.map(|w| format!("{w:.0} W")));
        put("ECC", card.ecc.map(on_off));
        put("persistence", card.persistence.map(on_off));
        put("compute mode", card.compute_mode.clone());
        put("cut as found", card.partition.clone());
    }
    put("CPU", machine.cpu_model.clone().map(|model| format!("{model}, {} logical cores", machine.cpu_cores)));
    put("CPU quota", campaign.device.quota_cores.map(|quota| format!("{} cores", collo_text::units::hundredths(quota))));
    put("memory", Some(collo_quantity::number::gib(machine.memory_bytes as f64)));
    put("governor", machine.governor.clone());
    put("virtualization", machine.virtualization.clone());
    let scheduling = campaign.surroundings.as_ref().and_then(|s| s.scheduling.as_ref());
    put("autogroup", scheduling.and_then(|s| s.autogroup).map(on_off));
    put("nice", scheduling.and_then(|s| s.nice).map(|nice| nice.to_string()));
    put("cgroup", scheduling.and_then(|s| s.cgroup.clone()));
    put("host", machine.hostname.clone());
    put("os", machine.os.clone());
    put("kernel", machine.kernel.clone());
    put("git", machine.git.clone());
    put("collo", Some(format!("{}, {} build", machine.collo, machine.build)));
    for (name, version) in &machine.python {
        put(if name == "python_set" { "python set" } else { name }, Some(version.clone()));
    }
    put("data", Some(data(analysis)));
    for (name, text) in ingredients(campaign) {
        put(&name, Some(text));
    }
    put("epochs", Some(campaign.plan.epochs.to_string()));
    put("run order", Some(format!("seed {}", campaign.plan.seed)));
    found
}

/// The name of a fact as people read it.
pub fn word(name: &str) -> &str {
    match name {
        "cut as found" => "MIG as found",
        "cards" => "GPUs",
        "own" => "your Python",
        name => name,
    }
}

/// The members of all runs of these cells.
fn members<'a>(cells: &'a [&'a Cell]) -> impl Iterator<Item = &'a MemberRecord> {
    cells.iter().flat_map(|c| &c.repetitions).flat_map(|r| &r.record().members)
}

/// The precisions that members of these cells report: `fp32`.
pub fn precision(cells: &[&Cell]) -> Option<String> {
    let told = members(cells).filter_map(|m| {
        let hello = m.hello.as_ref()?;
        hello.get("precision").or_else(|| hello.get("regime")?.get("precision"))?.as_str()
    });
    let mut found: Vec<&str> = told.collect();
    found.sort_unstable();
    found.dedup();
    (!found.is_empty()).then(|| found.join(", "))
}

/// What the runs of a cell ran on, in the words that decide whether its numbers can be compared with others.
pub fn ran_on(analysis: &Analysis, cell: &Cell) -> Vec<String> {
    const TOLD: [&str; 7] = ["driver", "CUDA", "VBIOS", "ECC", "power cap", "cut as found", "torch"];
    let campaign = &analysis.campaign;
    // Of a merged campaign, one run of each origin.
    let runs: BTreeMap<usize, u32> = cell.repetitions.iter().map(|r| (r.device, r.record().block)).collect();
    let mut known: Vec<_> = runs.values().map(|block| on(analysis, campaign.machine_of(*block))).collect();
    // The environment of a report of several parts or devices is that of the first.
    let is_of_one = |report: &FromReport| report.merged_from.is_empty() && !analysis.devices.are_several();
    if known.is_empty() && analysis.report.as_ref().is_none_or(is_of_one) {
        known.push(of(analysis));
    }
    let find = |name: &str| {
        let mut texts: Vec<&str> = known.iter().flatten().filter(|(n, _)| n == name).map(|(_, text)| text.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        (!texts.is_empty()).then(|| texts.join(" and "))
    };
    let mut parts: Vec<String> = find("GPU").or_else(|| find("CPU")).into_iter().collect();
    for name in TOLD {
        parts.extend(find(name).map(|text| match name {
            // What it is is said by the text.
            "cut as found" => format!("{text} as found"),
            _ => format!("{name} {text}"),
        }));
    }
    parts.extend(precision(&[cell]));
    let told = |synthetic: bool| members(&[cell]).any(|m| m.synthetic == Some(synthetic));
    parts.extend(match (told(false), told(true)) {
        (true, false) => Some("real data".into()),
        (false, true) => Some("synthetic data".into()),
        (true, true) => Some("real and synthetic data".into()),
        (false, false) => None,
    });
    parts
}

fn on_off(on: bool) -> String {
    if on { "on".into() } else { "off".into() }
}

/// The GPU that was measured: the one with the device's name, else the first.
fn card<'m>(campaign: &Campaign, machine: &'m Machine) -> Option<&'m GpuRecord> {
    let cards = &machine.gpus;
    cards.iter().find(|card| card.name == campaign.device.name).or_else(|| cards.first())
}

/// `real`, or the stand-ins, and how epochs were cut short; empty if no member reported what it trains on.
fn data(analysis: &Analysis) -> String {
    let all: Vec<&Cell> = analysis.cells.iter().collect();
    let mut parts: Vec<String> = match &analysis.synthetic[..] {
        [] => members(&all).any(|m| m.synthetic == Some(false)).then(|| "real".into()).into_iter().collect(),
        names => vec![format!("synthetic {}", names.join(", "))],
    };
    parts.extend(batches(&analysis.shortened));
    parts.join(", ")
}

/// The other ingredients not named above; the files of the workloads, which are many, as one digest.
fn ingredients(campaign: &Campaign) -> Vec<(String, String)> {
    let named = ["collo", "kernel", "device", "driver"];
    let mut files = BTreeMap::new();
    let mut found = Vec::new();
    for (name, ingredient) in &campaign.ingredients {
        if name.starts_with("workloads/") {
            files.insert(name, &ingredient.sha256);
        } else if !named.contains(&name.as_str()) && !campaign.machine.python.contains_key(name) {
            let text = ingredient.version.clone().unwrap_or_else(|| short(&ingredient.sha256));
            found.push((name.clone(), text));
        }
    }
    if !files.is_empty() {
        let all: Vec<String> = files.iter().map(|(name, sha256)| format!("{name} {sha256}\n")).collect();
        found.push(("workload files".into(), short(&sha256_text(&all.concat()))));
    }
    found
}

fn short(digest: &str) -> String {
    digest.chars().take(DIGITS).collect()
}
