//! The machine besides collo: `nvidia-smi`'s own report of the GPU, kernel modules, services, and processes with device files
//! open.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::SelectedGpu;
use super::bundle::Bundle;
use crate::timeout;

/// NVIDIA services that a server may run; DCGM 2 calls its own `dcgm`.
const SERVICES: [&str; 7] =
    ["nvidia-dcgm", "dcgm", "dcgm-exporter", "nvsm", "nvidia-persistenced", "nvidia-fabricmanager", "nvidia-mps"];
/// Processes that may be named: they belong to these.
const NAMES: [&str; 8] =
    ["nv-hostengine", "nvsm_core", "dcgm-exporter", "nvidia-persiste", "nv-fabricmanage", "nvidia-cuda-mps", "Xorg", "collo"];

pub fn collect(bundle: &mut Bundle, card: &SelectedGpu) {
    bundle.command("machine/nvidia-smi-q.txt", "nvidia-smi", &["-q", "-i", &card.index]);
    bundle.command("machine/nvidia-smi-topo.txt", "nvidia-smi", &["topo", "-m"]);
    bundle.text("machine/modules.txt", &modules());
    let services: BTreeMap<&str, Value> = SERVICES.iter().map(|name| (*name, service(name))).collect();
    bundle.json("machine/services.json", &json!(services));
    bundle.json("machine/holders.json", &json!(holders()));
}

/// NVIDIA's lines of `/proc/modules`.
fn modules() -> String {
    let all = std::fs::read_to_string("/proc/modules").unwrap_or_default();
    // Name, size and users; the rest is addresses.
    let line = |l: &str| l.split_whitespace().take(4).collect::<Vec<_>>().join(" ") + "\n";
    all.lines().filter(|l| l.contains("nvidia")).map(line).collect()
}

fn service(name: &str) -> Value {
    match timeout::ask("systemctl", &["is-active", name]) {
        Some((_, said)) => json!(said.trim()),
        None => Value::Null,
    }
}

/// NVIDIA device files by process. Names only of what belongs to the driver; others are counted.
fn holders() -> Vec<Value> {
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
    all
}
