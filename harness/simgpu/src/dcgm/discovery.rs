//! `dcgmi discovery`: which cards and instances there are, and the host engine's numbers for them.

use super::{Entity, compute_instances, instances};
use crate::sim::Sim;

const LEFT: usize = 20;
const RIGHT: usize = 70;

fn rule(fill: char) -> String {
    let line = |n: usize| fill.to_string().repeat(n);
    format!("+{}+{}+", line(LEFT), line(RIGHT))
}

fn row(left: &str, right: &str) -> String {
    format!("| {left:<18} | {right:<68} |")
}

/// The table of `discovery -c`.
pub fn hierarchy(sim: &Sim) -> String {
    let mut lines = vec![rule('-'), format!("| {:<89} |", "Instance Hierarchy"), rule('=')];
    let (gpu_instances, compute) = (instances(sim), compute_instances(sim));
    for (card, state) in sim.state().cards.iter().enumerate() {
        lines.push(row(&format!("GPU {card}"), &format!("GPU {} (EntityID: {card})", state.uuid)));
        for (entity, number) in &gpu_instances {
            let Entity::Instance(of, gi) = *entity else { continue };
            if of != card {
                continue;
            }
            lines.push(row(&format!("-> I {card}/{gi}"), &format!("GPU Instance (EntityID: {number})")));
            for (entity, number) in &compute {
                let Entity::Compute(of, in_gi, ci) = *entity else { continue };
                if (of, in_gi) == (card, gi) {
                    let left = format!("   -> CI {card}/{gi}/{ci}");
                    lines.push(row(&left, &format!("Compute Instance (EntityID: {number})")));
                }
            }
        }
        lines.push(rule('-'));
    }
    lines.join("\n")
}

/// The table of `discovery -l`.
pub fn list(sim: &Sim) -> String {
    let count = sim.cards.len();
    let header = format!("| {:<6} | {:<68} |", "GPU ID", "Device Information");
    let rule = format!("+{}+{}+", "-".repeat(8), "-".repeat(70));
    let mut lines = vec![format!("{count} GPU{} found.", if count == 1 { "" } else { "s" }), rule.clone(), header, rule.clone()];
    for (card, state) in sim.state().cards.iter().enumerate() {
        let row = |left: &str, right: String| format!("| {left:<6} | {right:<68} |");
        lines.push(row(&card.to_string(), format!("Name: {}", sim.cards[card].name)));
        lines.push(row("", format!("PCI Bus ID: {}", crate::nvml::bus_id(card))));
        lines.push(row("", format!("Device UUID: {}", state.uuid)));
        lines.push(rule.clone());
    }
    lines.join("\n")
}
