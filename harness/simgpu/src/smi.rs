//! `nvidia-smi`, as far as anyone asks: `-L` and `--query-gpu=…`.
//!
//! In: arguments. Out: the list of devices, or values of the named properties as CSV.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use crate::cut;
use crate::nvml::{Board, bus_id, memory_mib};
use crate::sim::Sim;

/// Be the program.
pub fn main(arguments: &[String]) -> ExitCode {
    let mut sim = match Sim::open() {
        Ok(sim) => sim,
        Err(why) => return say(&why, ExitCode::FAILURE),
    };
    let now = sim.refresh();
    if let Some(card) = (0..sim.cards.len()).find(|card| sim.is_lost(*card)) {
        let lost =
            format!("Unable to determine the device handle for GPU{card}: GPU is lost. Reboot the system to recover this GPU");
        return say(&lost, 15.into());
    }
    let after = |name: &str| arguments.iter().find_map(|a| a.strip_prefix(name));
    if arguments.iter().any(|a| a == "-L" || a == "--list-gpus") {
        return say(&list(&sim), ExitCode::SUCCESS);
    }
    match after("--query-gpu=") {
        Some(names) => {
            let format = after("--format=").unwrap_or("csv");
            let status = say(&query(&sim, now, names, format), ExitCode::SUCCESS);
            let Some(every) = interval(arguments) else { return status };
            // "Continuously report query data at the specified interval" (nvidia-smi(1), --loop and --loop-ms), with one head.
            loop {
                std::thread::sleep(every);
                let now = sim.refresh();
                say(&query(&sim, now, names, &format!("{format},noheader")), ExitCode::SUCCESS);
            }
        }
        None => say("the simulated nvidia-smi knows -L and --query-gpu=NAMES --format=csv[,noheader][,nounits]", 1.into()),
    }
}

/// Between two reports, if there is to be more than one.
fn interval(arguments: &[String]) -> Option<Duration> {
    let number = |long: &str, short: &str| {
        let at = arguments.iter().position(|a| a == short).and_then(|i| arguments.get(i + 1)).map(String::as_str);
        arguments.iter().find_map(|a| a.strip_prefix(long)).or(at)?.parse::<u64>().ok()
    };
    let ms = number("--loop-ms=", "-lms").or_else(|| number("--loop=", "-l").map(|s| s * 1000))?;
    Some(Duration::from_millis(ms.max(1)))
}

fn say(text: &str, status: ExitCode) -> ExitCode {
    let _ = writeln!(std::io::stdout(), "{text}");
    status
}

fn list(sim: &Sim) -> String {
    let mut lines = Vec::new();
    for (card, state) in sim.state().cards.iter().enumerate() {
        lines.push(format!("GPU {card}: {} (UUID: {})", sim.cards[card].name, state.uuid));
        let mut devices: Vec<_> = state.compute().collect();
        devices.sort_by_key(|(_, c)| c.index);
        for (gpu, compute) in devices {
            let profiles = cut::compute_profiles(&sim.cards[card], gpu.profile);
            let name = profiles.into_iter().find(|p| p.id == compute.profile).map_or(String::new(), |p| p.name);
            lines.push(format!("  MIG {name:<12}Device {:>2}: (UUID: {})", compute.index, compute.uuid));
        }
    }
    lines.join("\n")
}

fn query(sim: &Sim, now: u64, names: &str, format: &str) -> String {
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let bare = format.split(',').any(|w| w.trim() == "nounits");
    let mut lines = Vec::new();
    if !format.split(',').any(|w| w.trim() == "noheader") {
        lines.push(names.join(", "));
    }
    for card in 0..sim.cards.len() {
        let cells: Vec<String> = names.iter().map(|name| property(sim, card, now, name, bare)).collect();
        lines.push(cells.join(", "));
    }
    lines.join("\n")
}

fn property(sim: &Sim, card: usize, now: u64, name: &str, bare: bool) -> String {
    let state = &sim.state().cards[card];
    let board = Board::read(sim, card, now);
    let [total, reserved, used, free] = memory_mib(sim, card, None).unwrap_or_default();
    let with = |value: String, unit: &str| if bare { value } else { format!("{value} {unit}") };
    let on = |is: bool| if is { "Enabled" } else { "Disabled" }.to_string();
    let has_mig = sim.cards[card].mig.is_some();
    let mode = |is: bool| if has_mig { on(is) } else { "[N/A]".into() };
    match name {
        "index" => card.to_string(),
        "name" | "gpu_name" => sim.cards[card].name.clone(),
        "uuid" | "gpu_uuid" => state.uuid.clone(),
        "pci.bus_id" | "gpu_bus_id" => bus_id(card),
        "driver_version" => sim.driver().0,
        "memory.total" => with(total.to_string(), "MiB"),
        "memory.reserved" => with(reserved.to_string(), "MiB"),
        "memory.used" => with(used.to_string(), "MiB"),
        "memory.free" => with(free.to_string(), "MiB"),
        "power.draw" => board.power_w.map_or("[N/A]".into(), |w| with(format!("{w:.2}"), "W")),
        "persistence_mode" => on(state.persistence),
        "mig.mode.current" => mode(state.mig),
        "mig.mode.pending" => mode(state.mig_pending),
        "compute_mode" => {
            ["Default", "", "Prohibited", "Exclusive_Process"].get(state.compute_mode as usize).unwrap_or(&"").to_string()
        }
        "temperature.gpu" => board.celsius.to_string(),
        "clocks.sm" => with(board.sm_mhz.to_string(), "MHz"),
        "compute_cap" => {
            let (major, minor) = sim.cards[card].extra.capability;
            format!("{major}.{minor}")
        }
        _ => "[Not Supported]".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asks_for_a_loop_gets_one() {
        let asked = |words: &str| interval(&words.split_whitespace().map(String::from).collect::<Vec<_>>());
        assert_eq!(asked("--query-gpu=uuid --format=csv"), None);
        assert_eq!(asked("--query-gpu=uuid --loop-ms=100"), Some(Duration::from_millis(100)));
        assert_eq!(asked("--query-gpu=uuid -l 2"), Some(Duration::from_secs(2)));
        assert_eq!(asked("--query-gpu=uuid -lms 20"), Some(Duration::from_millis(20)));
    }
}
