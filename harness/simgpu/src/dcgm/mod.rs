//! `dcgmi`: what DCGM says of the cards and their instances.
//!
//! In: arguments. Out: the texts of DCGM 4, or of DCGM 3 where the scenario says so. The host engine has numbers of its own for
//! instances, which are not NVML's.

use std::io::Write;
use std::process::ExitCode;

use crate::clock;
use crate::sim::Sim;

pub mod bundle;
mod discovery;
mod field;
mod monitor;
mod table;

/// A change of the instances shows only after so long.
const NOTICED_NS: u64 = 300_000_000;
const REFUSED: &str = "Error: unable to establish a connection to the specified host: localhost\n\
    Error: Unable to connect to host engine. Host engine connection invalid/disconnected.";

/// What has rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entity {
    Card(usize),
    /// Card and GPU instance.
    Instance(usize, u32),
    /// And compute instance.
    Compute(usize, u32, u32),
}

/// Be the program.
pub fn main(arguments: &[String]) -> ExitCode {
    let sim = match Sim::open() {
        Ok(sim) => sim,
        Err(why) => return fails(&why),
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(name) = sim.scenario.value("bundle") {
        return bundle::main(&sim, name, &words);
    }
    match words[..] {
        ["--version" | "-v", ..] => {
            let version = if sim.scenario.has("dcgm3") { "3.3.9" } else { "4.6.0" };
            say(&format!("\ndcgmi  version: {version}"));
            ExitCode::SUCCESS
        }
        _ if sim.scenario.has("no-dcgm") || crate::services::engine(sim.state()).is_some_and(|s| !s.active) => {
            fails_with(REFUSED, 235)
        }
        ["discovery", "-c", ..] => {
            say(&discovery::hierarchy(&sim));
            ExitCode::SUCCESS
        }
        ["discovery", "-l", ..] => {
            say(&discovery::list(&sim));
            ExitCode::SUCCESS
        }
        ["dmon", ref options @ ..] => monitor::main(sim, options),
        _ => fails("Error: PARSE ERROR: no such subsystem of the simulated dcgmi: discovery, dmon"),
    }
}

/// The GPU instances that the host engine has noticed, in NVML's order, and its numbers for them.
pub fn instances(sim: &Sim) -> Vec<(Entity, u32)> {
    let now = clock::now_ns();
    let mut all = Vec::new();
    for (card, state) in sim.state().cards.iter().enumerate() {
        let noticed: Vec<_> = state.instances.iter().filter(|g| g.made_ns + NOTICED_NS <= now).collect();
        // By place and from the right, so that no number is NVML's by chance; each card has its own hundred.
        let mut by_place: Vec<u32> = noticed.iter().map(|g| g.start).collect();
        by_place.sort_unstable_by(|a, b| b.cmp(a));
        let number = |start: u32| by_place.iter().position(|s| *s == start).unwrap_or(0) as u32 + 100 * card as u32;
        all.extend(noticed.iter().map(|g| (Entity::Instance(card, g.id), number(g.start))));
    }
    all
}

/// The compute instances, likewise.
pub fn compute_instances(sim: &Sim) -> Vec<(Entity, u32)> {
    let mut all = Vec::new();
    for (entity, number) in instances(sim) {
        let Entity::Instance(card, gi) = entity else { continue };
        let gpu = sim.state().cards[card].instance(gi);
        let ids = gpu.map(|g| g.compute.iter().map(|c| c.id).collect::<Vec<_>>()).unwrap_or_default();
        all.extend(ids.into_iter().map(|ci| (Entity::Compute(card, gi, ci), number * 7 + ci)));
    }
    all
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn fails(why: &str) -> ExitCode {
    fails_with(why, 255)
}

fn fails_with(why: &str, status: u8) -> ExitCode {
    say(why);
    ExitCode::from(status)
}
