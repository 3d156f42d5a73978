//! Services that work for an observer: processes of others, by name, and what they take meanwhile.

use collo_store::DaemonCost;

use collo_launch::{all_processes, tree};

/// The processes with these names, and their CPU time so far.
pub fn daemons(names: &[String]) -> Vec<DaemonCost> {
    if names.is_empty() {
        return Vec::new();
    }
    let daemon = |pid: u32| {
        // The kernel keeps 15 characters of a name (proc_pid_comm(5)).
        let short = tree::name_of(pid)?;
        let name = names.iter().find(|name| name.chars().take(15).eq(short.chars()))?;
        Some(DaemonCost { name: name.clone(), pid, cpu_time_s: tree::cpu_time_s(pid), rss_bytes: None })
    };
    all_processes().filter_map(daemon).collect()
}

/// The same processes now: what they took since. One that is gone has no number.
pub fn after(before: &[DaemonCost]) -> Vec<DaemonCost> {
    let now = |daemon: &DaemonCost| DaemonCost {
        cpu_time_s: daemon.cpu_time_s.zip(tree::cpu_time_s(daemon.pid)).map(|(before, now)| (now - before).max(0.0)),
        rss_bytes: resident_bytes(daemon.pid),
        ..daemon.clone()
    };
    before.iter().map(now).collect()
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    collo_sample::field(&status, "VmRSS:").map(|kib| kib * 1024)
}
