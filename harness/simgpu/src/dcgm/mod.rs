//! `dcgmi`: what DCGM says of the cards and their instances.
//!
//! In: arguments. Out: the texts of the DCGM that the scenario names (`dcgm=3.3`), by the rules of its source. The host engine has numbers
//! of its own for instances, which are not NVML's.

use std::io::Write;
use std::process::ExitCode;

use crate::clock;
use crate::sim::Sim;
use crate::state::GpuInstance;
use version::Version;

pub mod bundle;
mod discovery;
mod field;
mod monitor;
mod table;
mod version;

/// A change of the instances shows only after so long.
const NOTICED_NS: u64 = 300_000_000;
/// How much later it notices the others in the scenario `dcgm-one-by-one`.
const LATER_NS: u64 = 400_000_000;
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

impl Entity {
    /// The card that it is, or is on.
    pub fn card(self) -> usize {
        let (Entity::Card(card) | Entity::Instance(card, _) | Entity::Compute(card, ..)) = self;
        card
    }
}

/// Be the program.
pub fn main(arguments: &[String]) -> ExitCode {
    let sim = match Sim::open() {
        Ok(sim) => sim,
        Err(why) => return fails(&why),
    };
    crate::sim::linger("dcgmi");
    let version = match Version::of(&sim.scenario) {
        Ok(version) => version,
        Err(why) => return fails(&why),
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(name) = sim.scenario.value("bundle") {
        return bundle::main(&sim, name, &words);
    }
    // The newest says first what it thinks of that variable (dcgmi/Environment.cpp).
    if let (true, Ok(value)) = (version >= Version(4, 6, 0) && words[..] != ["--version"], std::env::var("CUDA_VISIBLE_DEVICES"))
    {
        say(&format!("WARNING: CUDA_VISIBLE_DEVICES is set to {value} on dcgmi process.\n"));
    }
    match words[..] {
        // As TCLAP prints it.
        ["--version", ..] => {
            say(&format!("\ndcgmi  version: {version}\n"));
            ExitCode::SUCCESS
        }
        _ if sim.scenario.has("no-dcgm") || !crate::services::answers(&sim) => fails_with(REFUSED, code(-21)),
        ["discovery", "-c", ..] => {
            say(&discovery::hierarchy(&sim));
            ExitCode::SUCCESS
        }
        ["discovery", "-l", ..] => {
            let (cards, others) = discovery::list(&sim, version);
            say(&cards);
            match others {
                Ok(others) => say(&others),
                Err(why) => return fails_with(why, code(-33)),
            }
            ExitCode::SUCCESS
        }
        ["modules", "-l", ..] => {
            say(&discovery::modules(&sim));
            ExitCode::SUCCESS
        }
        ["dmon", ref options @ ..] => monitor::main(sim, version, options),
        _ => fails("Error: PARSE ERROR: no such subsystem of the simulated dcgmi: discovery, dmon, modules"),
    }
}

/// The exit status that a return of the library becomes.
fn code(result: i8) -> u8 {
    result.cast_unsigned()
}

/// The host engine's number of a card.
pub fn card_number(sim: &Sim, card: usize) -> u32 {
    let number = if sim.scenario.has("dcgm-renumbered") { sim.cards.len() - 1 - card } else { card };
    number as u32
}

/// The GPU instances that the host engine has noticed, in NVML's order, and its numbers for them.
pub fn instances(sim: &Sim) -> Vec<(Entity, u32)> {
    let now = clock::now_ns();
    let mut all = Vec::new();
    for (card, state) in sim.state().cards.iter().enumerate() {
        // What was there when it began it knows; of what is made later some drivers do not tell it (DCGM #91).
        let is_old = |g: &&GpuInstance| g.made_ns <= sim.state().base.at_ns;
        // One may be detected later than another, and then all are numbered again (DcgmCacheManager.cpp, `InitializeGpuInstances`).
        let first = state.instances.iter().map(|g| g.id).min();
        let later = |g: &GpuInstance| if sim.scenario.has("dcgm-one-by-one") && Some(g.id) != first { LATER_NS } else { 0 };
        let is_told = |g: &&GpuInstance| !sim.scenario.has("dcgm-stale") && g.made_ns + NOTICED_NS + later(g) <= now;
        let noticed: Vec<_> = state.instances.iter().filter(|g| is_old(g) || is_told(g)).collect();
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

/// A failure of a running `dmon`, where its version says such things.
fn fails_at_work(version: Version, why: &str, result: i8) -> ExitCode {
    if version.errs_on_stderr() {
        let _ = writeln!(std::io::stderr(), "{why}");
    } else {
        say(why);
    }
    ExitCode::from(code(result))
}

fn fails_with(why: &str, status: u8) -> ExitCode {
    say(why);
    ExitCode::from(status)
}
