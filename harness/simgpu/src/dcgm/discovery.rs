//! `dcgmi discovery`: which cards and instances there are, and the host engine's numbers for them; and `dcgmi modules`.

use super::version::Version;
use super::{Entity, card_number, compute_instances, instances};
use crate::sim::Sim;

/// A line between rows, of columns that wide.
fn rule(fill: char, columns: &[usize]) -> String {
    let parts: String = columns.iter().map(|n| format!("+{}", fill.to_string().repeat(*n))).collect();
    format!("{parts}+")
}

/// As `DcgmiOutputTree(20, 70)` draws them (dcgmi/tests/OutputTests.cpp).
const TREE: [usize; 2] = [19, 68];

fn row(left: &str, right: &str) -> String {
    format!("| {left:<17} | {right:<66} |")
}

/// The table of `discovery -c`: the instances, and their cards. A card without an instance is not in it (`PopulateMigHierarchy` in
/// DcgmCacheManager.cpp goes through the instances, `FormatMigHierarchy` prints a card when it meets the first one).
pub fn hierarchy(sim: &Sim) -> String {
    let mut lines = vec![rule('-', &TREE), format!("| {:<87}|", "Instance Hierarchy"), rule('=', &TREE)];
    let (gpu_instances, compute) = (instances(sim), compute_instances(sim));
    let own =
        |card: usize| gpu_instances.iter().filter(move |(entity, _)| matches!(entity, Entity::Instance(of, _) if *of == card));
    let cut = (0..sim.cards.len()).filter(|card| own(*card).next().is_some());
    for (section, card) in cut.enumerate() {
        if section > 0 {
            lines.push(rule('-', &TREE));
        }
        let about = format!("GPU {} (EntityID: {})", sim.state().cards[card].uuid, card_number(sim, card));
        lines.push(row(&format!("GPU {card}"), &about));
        for (entity, number) in own(card) {
            let Entity::Instance(_, gi) = *entity else { continue };
            lines.push(row(&format!("-> I {card}/{gi}"), &format!("GPU Instance (EntityID: {number})")));
            for (entity, number) in &compute {
                let Entity::Compute(of, in_gi, ci) = *entity else { continue };
                if (of, in_gi) == (card, gi) {
                    let left = format!("   -> CI {card}/{gi}/{ci}");
                    lines.push(row(&left, &format!("Compute Instance (EntityID: {number})")));
                }
            }
        }
    }
    lines.push(rule('-', &TREE));
    lines.join("\n")
}

/// The tables of `discovery -l`: every card, then what else the host engine knows. The second part is not to be had where the module of
/// switches may not be loaded.
pub fn list(sim: &Sim, version: Version) -> (String, Result<String, &'static str>) {
    const COLUMNS: [usize; 2] = [8, 70];
    let count = sim.cards.len();
    let (plural, which) = (if count == 1 { "" } else { "s" }, if version.counts_active() { " (Active)" } else { "" });
    let row = |left: &str, right: &str| format!("| {left:<6} | {right:<68} |");
    let rule = || rule('-', &COLUMNS);
    let mut lines = vec![format!("{count} GPU{plural} found{which}."), rule(), row("GPU ID", "Device Information"), rule()];
    for (card, state) in sim.state().cards.iter().enumerate() {
        lines.push(row(&card_number(sim, card).to_string(), &format!("Name: {}", sim.cards[card].name)));
        lines.push(row("", &format!("PCI Bus ID: {}", crate::nvml::bus_id(card))));
        lines.push(row("", &format!("Device UUID: {}", state.uuid)));
        lines.push(rule());
    }
    let others = match sim.scenario.has("dcgm-no-switches") {
        true => {
            Err("Error: Cannot get NvSwitch list from remote node. Return: This request is serviced by a module of DCGM that is \
            not currently loaded")
        }
        false => Ok(others(version)),
    };
    (lines.join("\n"), others)
}

/// Switches, network cards and processors, of which there are none.
fn others(version: Version) -> String {
    let table = |what: &str, head: &str, width: usize| {
        let rule = rule('-', &[width]);
        format!("0 {what} found.\n{rule}\n| {head:<room$} |\n{rule}\n{rule}\n", room = width - 2)
    };
    let mut text = table("NvSwitches", "Switch ID", 11);
    if version.lists_network_cards() {
        text.push_str(&table("ConnectX", "ConnectX", 10));
    }
    if version.lists_processors() {
        let rule = rule('-', &[8, 70]);
        text.push_str(&format!("0 CPUs found.\n{rule}\n| {:<6} | {:<68} |\n{rule}\n{rule}\n", "CPU ID", "Device Information"));
    }
    text.trim_end().to_string()
}

/// The table of `modules -l`.
pub fn modules(sim: &Sim) -> String {
    const COLUMNS: [usize; 3] = [11, 20, 50];
    const NAMES: [&str; 10] =
        ["Core", "NvSwitch", "VGPU", "Introspection", "Health", "Policy", "Config", "Diag", "Profiling", "SysMon"];
    let row = |a: &str, b: &str, c: &str| format!("| {a:<9} | {b:<18} | {c:<48} |");
    let title = |text: &str| format!("| {text:<82}|");
    let rule = |fill| rule(fill, &COLUMNS);
    let mut lines = vec![rule('-'), title("List Modules"), title("Status: Success"), rule('=')];
    lines.push(row("Module ID", "Name", "State"));
    lines.push(rule('-'));
    for (id, name) in NAMES.iter().enumerate() {
        let state = match *name {
            "Profiling" if sim.scenario.has("dcgm-no-profiling") => "Failed to load",
            "NvSwitch" if sim.scenario.has("dcgm-no-switches") => "Denylisted",
            "Core" | "NvSwitch" | "Profiling" => "Loaded",
            _ => "Not loaded",
        };
        lines.push(row(&id.to_string(), name, state));
    }
    lines.push(rule('-'));
    lines.join("\n")
}
