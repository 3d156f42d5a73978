//! The services of a DGX as it is shipped, and `systemctl`, which stops and starts them.
//!
//! In: the machine's state; which services there are is decided when it is switched on (`services`). Out: who holds the cards, and the
//! texts and exit codes of systemd 249 (`systemctl(1)`, "Exit status").

use std::io::Write;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::scenario::Scenario;
use crate::sim::Sim;
use crate::state::State;

/// The host engine of DCGM.
pub const ENGINE: &str = "nvidia-dcgm";
/// Every unit, its process, and whether that keeps the cards open so that none of them can be reset.
///
/// The fabric manager and the persistence daemon keep device files open as well, and neither stands in the way: the driver shakes
/// hands with the one, and the other has the switches.
const UNITS: [(&str, &str, bool); 5] = [
    (ENGINE, "nv-hostengine", true),
    ("nvsm", "nvsm_core", true),
    ("dcgm-exporter", "dcgm-exporter", true),
    ("nvidia-persistenced", "nvidia-persistenced", false),
    ("nvidia-fabricmanager", "nv-fabricmanager", false),
];

/// systemd's exit codes.
const FAILURE: u8 = 1;
const NOT_RUNNING: u8 = 3;
const NO_PERMISSION: u8 = 4;
const NOT_INSTALLED: u8 = 5;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    pub unit: String,
    pub active: bool,
    /// When it was last started.
    pub since_ns: u64,
}

/// What runs on a machine that was just switched on.
pub fn new(scenario: &Scenario) -> Vec<Service> {
    if !scenario.has("services") {
        return Vec::new();
    }
    let since_ns = clock::now_ns();
    UNITS.iter().map(|(unit, ..)| Service { unit: unit_of(unit, scenario), active: true, since_ns }).collect()
}

/// DCGM 2.x calls its unit `dcgm`.
fn unit_of(unit: &str, scenario: &Scenario) -> String {
    let old = scenario.value("dcgm").is_some_and(|version| version.starts_with("2."));
    if unit == ENGINE && old { "dcgm".into() } else { unit.into() }
}

fn known(unit: &str) -> (&'static str, bool) {
    let named = if unit == "dcgm" { ENGINE } else { unit };
    UNITS.iter().find(|(own, ..)| *own == named).map_or(("", false), |(_, process, holds)| (process, *holds))
}

/// Whether a service keeps the cards open.
pub fn hold_the_cards(state: &State) -> bool {
    state.services.iter().any(|s| s.active && known(&s.unit).1)
}

/// The host engine's service; none where the machine has none, and whoever asks finds an engine that somebody else started.
pub fn engine(state: &State) -> Option<&Service> {
    state.services.iter().find(|s| known(&s.unit).0 == "nv-hostengine")
}

/// Whether the host engine answers; one that was just started may be active and not listen yet.
pub fn answers(sim: &Sim) -> bool {
    let slow_ns = sim.scenario.duration_s("engine-slow").map_or(0, |s| (s * 1e9) as u64);
    // What ran when the machine was switched on listens already.
    let listens = |s: &Service| s.since_ns <= sim.state().base.at_ns || clock::now_ns() >= s.since_ns + slow_ns;
    engine(sim.state()).is_none_or(|s| s.active && (slow_ns == 0 || listens(s)))
}

/// Be `systemctl`.
pub fn main(arguments: &[String]) -> ExitCode {
    let mut sim = match Sim::open() {
        Ok(sim) => sim,
        Err(why) => return complains(&why, FAILURE),
    };
    crate::sim::linger("systemctl");
    let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|a| !a.starts_with('-')).collect();
    match words[..] {
        ["is-active", ref units @ ..] => is_active(&sim, units),
        [verb @ ("stop" | "start" | "restart"), ref units @ ..] => {
            let codes: Vec<u8> = units.iter().map(|unit| change(&mut sim, verb, unit)).collect();
            ExitCode::from(codes.into_iter().find(|c| *c != 0).unwrap_or(0))
        }
        _ => complains("the simulated systemctl knows is-active, stop, start and restart", FAILURE),
    }
}

fn bare(unit: &str) -> &str {
    unit.strip_suffix(".service").unwrap_or(unit)
}

/// A line for each; 0 if any of them is active.
fn is_active(sim: &Sim, units: &[&str]) -> ExitCode {
    let active = |unit: &&str| sim.state().services.iter().any(|s| s.unit == bare(unit) && s.active);
    for unit in units {
        let _ = writeln!(std::io::stdout(), "{}", if active(unit) { "active" } else { "inactive" });
    }
    ExitCode::from(if units.iter().any(active) { 0 } else { NOT_RUNNING })
}

fn change(sim: &mut Sim, verb: &str, unit: &str) -> u8 {
    let unit = bare(unit);
    let act = if verb == "restart" { "restart" } else { verb };
    if !sim.state().services.iter().any(|s| s.unit == unit) {
        let _ = writeln!(std::io::stderr(), "Failed to {act} {unit}.service: Unit {unit}.service not loaded.");
        return NOT_INSTALLED;
    }
    if sim.scenario.has("user") {
        let why = match sim.scenario.value("user") {
            Some("denied") => ("Access denied", NO_PERMISSION),
            _ => ("Interactive authentication required.", FAILURE),
        };
        let see = format!("See system logs and 'systemctl status {unit}.service' for details.");
        let _ = writeln!(std::io::stderr(), "Failed to {act} {unit}.service: {}\n{see}", why.0);
        return why.1;
    }
    let runs = sim.state().services.iter().any(|s| s.unit == unit && s.active);
    if sim.scenario.value("service-fails") == Some(unit) && (verb == "restart" || (verb == "start" && !runs)) {
        let see = format!("See \"systemctl status {unit}.service\" and \"journalctl -xeu {unit}.service\" for details.");
        let what = format!("Job for {unit}.service failed because the control process exited with error code.");
        let _ = writeln!(std::io::stderr(), "{what}\n{see}");
        return FAILURE;
    }
    let changed: Result<(), String> = sim.change(|state, _| {
        for service in state.services.iter_mut().filter(|s| s.unit == unit) {
            let begins = verb == "restart" || (verb == "start" && !service.active);
            service.active = verb != "stop";
            if begins {
                service.since_ns = clock::now_ns();
            }
        }
        Ok(())
    });
    match changed {
        Ok(()) => 0,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{why}");
            FAILURE
        }
    }
}

fn complains(why: &str, status: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{why}");
    ExitCode::from(status)
}
