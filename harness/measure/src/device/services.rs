//! Services that keep cards open, and stopping them for the moment in which a card must be free.
//!
//! In: systemd's word on which of them run. Out: the same, stopped or started. Nothing is stopped that was not active, and never the
//! persistence daemon or the fabric manager: the driver shakes hands with the one, and without the other CUDA ends on every card of the
//! machine (error 802; NVIDIA's Fabric Manager user guide).

use std::time::{Duration, Instant};

use super::cut::NotCut;
use super::state_folder;
use crate::launch::{Errand, Said};

/// What to do with services that stand in the way of a change of MIG mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Services {
    /// They run on.
    #[default]
    Leave,
    /// They are stopped around the change, and started again.
    Stop,
}

/// Units whose processes keep every card open: what NVIDIA's DGX A100 guide ("Using MIG") and mig-parted stop before a change of MIG
/// mode. DCGM 2.x calls its unit `dcgm`.
const UNITS: [&str; 4] = ["nvidia-dcgm", "dcgm", "nvsm", "dcgm-exporter"];
/// Processes of theirs, as the kernel has their names: fifteen letters at most.
const PROCESSES: [&str; 3] = ["nv-hostengine", "nvsm", "dcgm-exporter"];
/// Processes that have device files open and stand in nobody's way.
const HARMLESS: [&str; 2] = ["nvidia-persiste", "nv-fabricmanage"];

/// Those of them that are DCGM's host engine.
const ENGINES: [&str; 2] = ["nvidia-dcgm", "dcgm"];
const ENGINE_TOOL: &str = "dcgmi";
/// The status of `dcgmi discovery -l` where the cards are told and the switches are not (DCGM's module for them is denylisted).
const TABLE_AND_COMPLAINT: i32 = 223;

const PROGRAM: &str = "systemctl";
/// How long between two looks.
const BETWEEN: Duration = Duration::from_millis(200);
/// How long a question may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(15);
/// How long stopping or starting may take: systemd itself ends what does not stop within 90 s, and what does not let itself be ended after
/// as long again (systemd-system.conf(5), `DefaultTimeoutStopSec`).
const DONE_WITHIN: Duration = Duration::from_secs(240);
/// How long a service that was started may take to be active.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// The services that keep cards open and run now; none where there is no systemd, as in most containers.
pub fn active() -> Vec<String> {
    let asked = Errand::to(PROGRAM, ANSWERS_WITHIN).arg("is-active").args(UNITS).ask();
    let text = asked.map(|said| said.out()).unwrap_or_default();
    // A line for each, in the order in which they were asked for; one that is about to run will hold the card in a moment.
    let runs = |(_, state): &(&&str, &str)| matches!(state.trim(), "active" | "activating" | "reloading");
    UNITS.iter().zip(text.lines()).filter(runs).map(|(unit, _)| unit.to_string()).collect()
}

/// Whether a process, by its name, is one of these services.
pub fn is_process(name: &str) -> bool {
    PROCESSES.iter().any(|own| name.starts_with(own))
}

/// Whether a process may keep device files open and stands in nobody's way.
pub fn is_harmless(name: &str) -> bool {
    HARMLESS.iter().any(|own| name.starts_with(own))
}

/// See that these may be stopped, by starting what runs already: it takes the same right, and nothing happens.
pub fn may_stop(units: &[String]) -> Result<(), NotCut> {
    systemctl("start", units).map_err(|why| {
        let mut error = NotCut::new_with(format!("{} cannot be stopped", names(units)), why);
        error.hint = Some("`--services stop` takes root, as in `sudo collo …`; without it nothing is stopped".into());
        error
    })
}

/// Stop these. Some may be stopped although others could not be.
pub fn stop(units: &[String]) -> Result<(), NotCut> {
    systemctl("stop", units).map_err(|why| NotCut::new_with(format!("{} cannot be stopped", names(units)), why))
}

/// Start these, and wait until they run.
pub fn start(units: &[String]) -> Result<(), NotCut> {
    let not = |why: String| NotCut::new_with(format!("{} cannot be started again", names(units)), why);
    systemctl("start", units).map_err(not)?;
    let deadline = Instant::now() + STARTS_WITHIN;
    loop {
        let now = active();
        match units.iter().find(|unit| !now.contains(unit)) {
            None => break,
            Some(unit) if Instant::now() > deadline => {
                return Err(not(format!("`{unit}` is not active after {} s", STARTS_WITHIN.as_secs())));
            }
            Some(_) => std::thread::sleep(BETWEEN),
        }
    }
    // A service is active before its engine listens, and what asks too early is told that there is none. Nobody who waits in vain is stopped
    // by it: without the engine there is no SM activity, and the run says so.
    if units.iter().any(|unit| ENGINES.contains(&unit.as_str())) {
        while !engine_answers() && Instant::now() < deadline {
            std::thread::sleep(BETWEEN);
        }
    }
    Ok(())
}

/// Whether DCGM's host engine answers; also where there is no program to ask it with.
fn engine_answers() -> bool {
    let asked = Errand::to(ENGINE_TOOL, ANSWERS_WITHIN).args(["discovery", "-l"]).env("CUDA_VISIBLE_DEVICES", None::<String>);
    let answers = |said: Said| said.status.is_some_and(|s| s.success() || s.code() == Some(TABLE_AND_COMPLAINT));
    asked.ask().map_or(true, answers)
}

/// Nobody is asked for a password: whoever measures at night cannot answer.
fn systemctl(verb: &str, units: &[String]) -> Result<(), String> {
    let said = Errand::to(PROGRAM, DONE_WITHIN).args([verb, "--no-ask-password"]).args(units).ask();
    let said = said.map_err(|e| format!("`{PROGRAM}` does not start: {e}"))?;
    match said.status {
        Some(status) if status.success() => return Ok(()),
        None => return Err(format!("`{PROGRAM} {verb}` has not ended after {} s", DONE_WITHIN.as_secs())),
        Some(_) => {}
    }
    let err = said.err();
    let line = err.lines().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    Err(format!("`{PROGRAM} {verb}` says: {}", line.trim()))
}

/// One collo at a time stops and starts: what one has stopped another would find inactive, and what one starts is in another's way. It is
/// one of this user, who is root.
pub fn alone() -> Option<std::fs::File> {
    let place = state_folder::make().ok()?.join("services.lock");
    let file = fs_err::OpenOptions::new().create(true).append(true).open(place).ok()?.into_file();
    file.lock().ok()?;
    Some(file)
}

/// Whether this is a service that collo may stop, and start again.
pub fn is_unit(name: &str) -> bool {
    UNITS.contains(&name)
}

/// `nvidia-dcgm`, `nvsm` and `dcgm-exporter`
pub fn names(units: &[String]) -> String {
    let quoted: Vec<String> = units.iter().map(|unit| format!("`{unit}`")).collect();
    match &quoted[..] {
        [] => "no service".into(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_listed_as_a_person_would() {
        let units = |all: &[&str]| names(&all.iter().map(|u| u.to_string()).collect::<Vec<_>>());
        assert_eq!(units(&["nvidia-dcgm"]), "`nvidia-dcgm`");
        assert_eq!(units(&["nvidia-dcgm", "nvsm", "dcgm-exporter"]), "`nvidia-dcgm`, `nvsm` and `dcgm-exporter`");
    }

    #[test]
    fn neither_the_persistence_daemon_nor_the_fabric_manager_is_ever_stopped() {
        for unit in UNITS {
            assert!(!unit.contains("persistence") && !unit.contains("fabric"), "{unit}");
        }
        assert!(is_harmless("nvidia-persiste") && is_harmless("nv-fabricmanage"));
        assert!(is_process("nv-hostengine") && is_process("nvsm_core") && !is_process("python"));
    }
}
