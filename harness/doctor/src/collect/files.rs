//! The files of the bundle: what the user is shown before anything is collected, and how each is filled.
//!
//! To add one: its row in [`FILES`], or in the file of what has to be started for it, and its line in [`PARTS`].

use std::collections::BTreeMap;
use std::time::Duration;

use collo_device::nvml::{self, probe};
use serde_json::{Value, json};

use crate::timeout;

/// When a file is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before anything runs: the machine besides collo.
    Machine,
    /// Before anything runs on the GPU.
    Idle,
    /// While one load runs.
    Load,
    /// While two clients of a private MPS daemon run.
    Clients,
    /// Once a layout is applied.
    Layout,
    /// While every instance of a layout is loaded.
    Instances,
}

/// What a file is filled with.
pub enum Content {
    /// The output of a command.
    Command(&'static str),
    Text(fn() -> String),
    /// What is found of the GPU with a UUID, or why nothing is.
    Json(fn(&str) -> Result<Value, String>),
}

use Content::{Command, Json, Text};
use When::{Clients, Idle, Instances, Layout, Load, Machine};

/// In this order. Words in braces are those of the collection; a file with one that is unknown is left out.
pub static FILES: [(When, &str, Content); 24] = [
    (Machine, "machine/nvidia-smi-q.txt", Command("nvidia-smi -q -i {gpu}")),
    (Machine, "machine/nvidia-smi-topo.txt", Command("nvidia-smi topo -m")),
    (Machine, "machine/modules.txt", Text(modules)),
    (Machine, "machine/services.json", Json(services)),
    (Machine, "machine/holders.json", Json(holders)),
    (Idle, "dcgm/version.txt", Command("dcgmi --version")),
    (Idle, "dcgm/modules-l.txt", Command("dcgmi modules -l")),
    (Idle, "dcgm/discovery-l.txt", Command("dcgmi discovery -l")),
    (Idle, "dcgm/discovery-c.txt", Command("dcgmi discovery -c")),
    (Idle, "dcgm/profile-l.txt", Command("dcgmi profile -l -i {entity}")),
    (Idle, "nvml/idle.json", Json(raw)),
    // One field, those of SM activity, those that fit one pass before Hopper, and all that collo asks for.
    (Load, "dcgm/dmon-1002.txt", Command("dcgmi dmon -i gpu:{entity} -e 1002 -d 100 -c {rows}")),
    (Load, "dcgm/dmon-1001-1003.txt", Command("dcgmi dmon -i gpu:{entity} -e 1001,1002,1003 -d 100 -c {rows}")),
    (Load, "dcgm/dmon-1001-1005.txt", Command("dcgmi dmon -i gpu:{entity} -e 1001,1002,1003,1004,1005 -d 100 -c {rows}")),
    (
        Load,
        "dcgm/dmon-1001-1010.txt",
        Command("dcgmi dmon -i gpu:{entity} -e 1001,1002,1003,1004,1005,1006,1007,1008,1009,1010 -d 100 -c {rows}"),
    ),
    (Load, "nvml/load.json", Json(raw)),
    (Load, "nvml/energy.json", Json(energy)),
    (Clients, "nvml/mps.json", Json(raw)),
    (Clients, "machine/nvidia-smi-mps.txt", Command("nvidia-smi")),
    (Layout, "mig/{layout}/nvidia-smi-lgi.txt", Command("nvidia-smi mig -lgi -i {gpu}")),
    (Instances, "mig/{layout}/discovery-c.txt", Command("dcgmi discovery -c")),
    (Instances, "mig/{layout}/dmon.txt", Command("dcgmi dmon -i {entities} -e 1001,1002,1003,1004,1005 -d 100 -c {rows}")),
    // DCGM up to 3.3.9 has no values of whole GPUs while any is partitioned.
    (Instances, "mig/{layout}/dmon-other.txt", Command("dcgmi dmon -i gpu:{other} -e 1002 -d 100 -c 5")),
    (Instances, "mig/{layout}/nvml.json", Json(raw)),
];

/// A text with the words of the collection in place of those in braces; `None` if one is unknown.
pub fn put_in(text: &str, words: &BTreeMap<&str, String>) -> Option<String> {
    let text = words.iter().fold(text.to_string(), |text, (word, value)| text.replace(&format!("{{{word}}}"), value));
    (!text.contains('{')).then_some(text)
}

/// NVIDIA's lines of `/proc/modules`.
fn modules() -> String {
    let all = std::fs::read_to_string("/proc/modules").unwrap_or_default();
    // Name, size and users; the rest is addresses.
    let line = |l: &str| l.split_whitespace().take(4).collect::<Vec<_>>().join(" ") + "\n";
    all.lines().filter(|l| l.contains("nvidia")).map(line).collect()
}

/// NVIDIA services that a server may run; DCGM 2 calls its own `dcgm`.
const SERVICES: [&str; 7] =
    ["nvidia-dcgm", "dcgm", "dcgm-exporter", "nvsm", "nvidia-persistenced", "nvidia-fabricmanager", "nvidia-mps"];

fn services(_: &str) -> Result<Value, String> {
    let is_active = |name: &str| timeout::ask("systemctl", &["is-active", name]).map(|(_, said)| said.trim().to_string());
    Ok(json!(SERVICES.into_iter().map(|name| (name, is_active(name))).collect::<BTreeMap<_, _>>()))
}

/// Processes that may be named: they belong to these.
const NAMES: [&str; 8] =
    ["nv-hostengine", "nvsm_core", "dcgm-exporter", "nvidia-persiste", "nv-fabricmanage", "nvidia-cuda-mps", "Xorg", "collo"];

/// NVIDIA device files by process. Names only of what belongs to the driver; others are counted.
fn holders(_: &str) -> Result<Value, String> {
    let mut all = Vec::new();
    let mut unreadable = 0;
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        if entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()).is_none() {
            continue;
        }
        let Ok(files) = std::fs::read_dir(entry.path().join("fd")) else {
            unreadable += 1;
            continue;
        };
        let mut open: BTreeMap<String, u32> = BTreeMap::new();
        for target in files.flatten().filter_map(|f| std::fs::read_link(f.path()).ok()) {
            let target = target.to_string_lossy();
            if target.starts_with("/dev/nvidia") {
                *open.entry(target.into_owned()).or_default() += 1;
            }
        }
        if !open.is_empty() {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            let known = NAMES.iter().find(|n| name.trim().starts_with(**n));
            all.push(json!({"process": known.copied().unwrap_or("another"), "files": open}));
        }
    }
    all.push(json!({"processes_whose_files_are_closed_to_this_user": unreadable}));
    Ok(json!(all))
}

/// Every call of NVML with its return code.
fn raw(uuid: &str) -> Result<Value, String> {
    Ok(probe::probe(&nvml::open().map_err(|e| e.to_string())?, uuid))
}

/// Observation time of the energy counter.
const ENERGY: Duration = Duration::from_secs(3);

fn energy(uuid: &str) -> Result<Value, String> {
    Ok(probe::energy_steps(&nvml::open().map_err(|e| e.to_string())?, uuid, ENERGY.as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::contents::PARTS;

    #[test]
    fn every_file_is_among_those_that_are_listed_before() {
        let fits = |file: &str, pattern: &str| {
            let (begin, end) = pattern.split_once('*').unwrap_or((pattern, ""));
            file.starts_with(begin) && file.ends_with(end)
        };
        for (_, file, _) in &FILES {
            let file = file.replace("{layout}", "LAYOUT");
            assert!(PARTS.iter().any(|(part, ..)| fits(&file, part)), "{file}");
        }
    }

    #[test]
    fn words_are_put_in_and_a_text_with_an_unknown_one_is_left_out() {
        let words = BTreeMap::from([("gpu", "1".to_string())]);
        assert_eq!(put_in("dcgmi dmon -i gpu:{gpu}", &words).as_deref(), Some("dcgmi dmon -i gpu:1"));
        assert_eq!(put_in("dcgmi dmon -i gpu:{other}", &words), None);
    }
}
