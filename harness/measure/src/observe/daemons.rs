//! Services that work for an observer: processes of others, by name, and what they take meanwhile.

use collo_store::DaemonCost;
use nix::unistd::{SysconfVar, sysconf};

use crate::launch::{all_processes, tree};

/// The processes with these names, and their CPU time so far.
pub fn daemons(names: &[String]) -> Vec<DaemonCost> {
    if names.is_empty() {
        return Vec::new();
    }
    let daemon = |pid: u32| {
        // The kernel keeps 15 characters of a name (proc_pid_comm(5)).
        let short = tree::name_of(pid)?;
        let name = names.iter().find(|name| name.chars().take(15).eq(short.chars()))?;
        Some(DaemonCost { name: name.clone(), pid, cpu_time_s: cpu_time_s(pid), rss_bytes: None })
    };
    all_processes().filter_map(daemon).collect()
}

/// The same processes now: what they took since. One that is gone has no number.
pub fn after(before: &[DaemonCost]) -> Vec<DaemonCost> {
    let now = |daemon: &DaemonCost| DaemonCost {
        cpu_time_s: daemon.cpu_time_s.zip(cpu_time_s(daemon.pid)).map(|(before, now)| (now - before).max(0.0)),
        rss_bytes: resident_bytes(daemon.pid),
        ..daemon.clone()
    };
    before.iter().map(now).collect()
}

/// User and system time of a process, of any user: fields 14 and 15 of proc_pid_stat(5), in clock ticks.
fn cpu_time_s(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = ticks_of(&stat)?;
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    Some(ticks as f64 / per_second as f64)
}

fn ticks_of(stat: &str) -> Option<u64> {
    // The name stands in parentheses and may hold any character.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    crate::sampler::field(&status, "VmRSS:").map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_daemon_is_read_whatever_its_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 0 0 0 0 0 250 150 0 0 20 0 1 0 98765 0 0";
        assert_eq!(ticks_of(stat), Some(400));
        assert!(cpu_time_s(std::process::id()).is_some_and(|s| s >= 0.0));
        assert_eq!(cpu_time_s(u32::MAX >> 1), None);
    }
}
