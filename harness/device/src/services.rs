//! Services that keep GPUs open, and stopping them while a GPU must be free.
//!
//! In: the units that systemd reports as running. Out: the same, stopped or started. Only active services are stopped, and never
//! the persistence daemon or the fabric manager: the driver depends on the one, and without the other CUDA fails on every GPU of
//! the machine (error 802; NVIDIA's Fabric Manager user guide).
//!
//! To add a service that opens GPUs: its unit in `UNITS`.

use std::time::{Duration, Instant};

use super::state_folder;
use collo_gpus::PartitionError;
use collo_launch::{CommandOutput, Errand};

/// What to do with services that block a change of MIG mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Services {
    /// Leave them running.
    #[default]
    Leave,
    /// Stop them for the change, and start them again.
    Stop,
}

/// Units whose processes keep every GPU open: those stopped before a change of MIG mode in NVIDIA's DGX A100 guide ("Using MIG")
/// and by mig-parted. DCGM 2.x calls its unit `dcgm`.
const UNITS: [&str; 4] = ["nvidia-dcgm", "dcgm", "nvsm", "dcgm-exporter"];
/// The process of DCGM's service, and the program that asks it.
pub const HOST_ENGINE: &str = "nv-hostengine";
pub const DCGMI: &str = "dcgmi";
/// Their processes, by the kernel's names: fifteen characters at most.
const PROCESSES: [&str; 3] = [HOST_ENGINE, "nvsm", "dcgm-exporter"];
/// Processes that have device files open but block nothing.
const HARMLESS: [&str; 2] = ["nvidia-persiste", "nv-fabricmanage"];

/// The DCGM host engines among them.
const ENGINES: [&str; 2] = ["nvidia-dcgm", "dcgm"];
/// The status of `dcgmi discovery -l` if it lists the GPUs but not the switches (DCGM's module for them is denylisted).
const TABLE_AND_COMPLAINT: i32 = 223;

const PROGRAM: &str = "systemctl";
/// Time between two polls.
const BETWEEN: Duration = Duration::from_millis(200);
/// Time limit of a query.
const ANSWERS_WITHIN: Duration = Duration::from_secs(15);
/// Time limit for stopping or starting: systemd itself ends what does not stop within 90 s, and kills what resists for as long
/// again (systemd-system.conf(5), `DefaultTimeoutStopSec`).
const DONE_WITHIN: Duration = Duration::from_secs(240);
/// Time limit for a started service to become active.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// The running services that keep GPUs open; empty without systemd, as in most containers.
pub fn active() -> Vec<String> {
    let asked = Errand::to(PROGRAM, ANSWERS_WITHIN).arg("is-active").args(UNITS).ask();
    let text = asked.map(|said| said.out()).unwrap_or_default();
    // A line for each, in the order in which they were asked for; one that is about to run will use the GPU in a moment.
    let runs = |(_, state): &(&&str, &str)| matches!(state.trim(), "active" | "activating" | "reloading");
    UNITS.iter().zip(text.lines()).filter(runs).map(|(unit, _)| unit.to_string()).collect()
}

/// Whether a process, by its name, belongs to one of these services.
pub fn is_process(name: &str) -> bool {
    PROCESSES.iter().any(|own| name.starts_with(own))
}

/// Whether a process may keep device files open without blocking anything.
pub fn is_harmless(name: &str) -> bool {
    HARMLESS.iter().any(|own| name.starts_with(own))
}

/// Check that these may be stopped, by starting what is already running: it requires the same permission, and has no effect.
pub fn may_stop(units: &[String]) -> Result<(), PartitionError> {
    systemctl("start", units).map_err(|why| {
        let mut error = PartitionError::new_with(format!("{} cannot be stopped", names(units)), why);
        error.hint = Some("`--services stop` requires root, as in `sudo collo …`; without it nothing is stopped".into());
        error
    })
}

/// Stop these. On an error some may have been stopped.
pub fn stop(units: &[String]) -> Result<(), PartitionError> {
    systemctl("stop", units).map_err(|why| PartitionError::new_with(format!("{} cannot be stopped", names(units)), why))
}

/// Start these, and wait until they run.
pub fn start(units: &[String]) -> Result<(), PartitionError> {
    let not = |why: String| PartitionError::new_with(format!("{} cannot be restarted", names(units)), why);
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

/// Whether DCGM's host engine answers; also true without a program to query it.
fn engine_answers() -> bool {
    let asked = Errand::to(DCGMI, ANSWERS_WITHIN).args(["discovery", "-l"]).env("CUDA_VISIBLE_DEVICES", None::<String>);
    let answers = |said: CommandOutput| said.status.is_some_and(|s| s.success() || s.code() == Some(TABLE_AND_COMPLAINT));
    asked.ask().map_or(true, answers)
}

/// Never asks for a password: an unattended run could not answer.
fn systemctl(verb: &str, units: &[String]) -> Result<(), String> {
    let said = Errand::to(PROGRAM, DONE_WITHIN).args([verb, "--no-ask-password"]).args(units).ask();
    let said = said.map_err(|e| format!("`{PROGRAM}` does not start: {e}"))?;
    match said.status {
        Some(status) if status.success() => return Ok(()),
        None => return Err(format!("`{PROGRAM} {verb}` has not exited after {} s", DONE_WITHIN.as_secs())),
        Some(_) => {}
    }
    let err = said.err();
    let line = err.lines().find(|line| !line.trim().is_empty()).unwrap_or("no output");
    Err(format!("`{PROGRAM} {verb}` reports: {}", line.trim()))
}

/// Only one collo at a time stops and starts services: another would find those stopped inactive, and those started would block
/// it. All of them run as this user, root.
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
