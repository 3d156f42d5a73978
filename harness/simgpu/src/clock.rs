//! Time and processes: the clock that everything is stamped with, and whether a process still is who it was.

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// `CLOCK_MONOTONIC` in nanoseconds, the same in every process of the machine.
pub fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// Microseconds since 1970, as NVML stamps its field values.
pub fn wall_us() -> i64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |t| t.tv_sec() * 1_000_000 + t.tv_nsec() / 1000)
}

/// When a process was born, in the kernel's ticks since boot; none if it is gone or a zombie.
pub fn born(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" | "x" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

/// Whether this very process still lives.
pub fn lives(pid: u32, since: u64) -> bool {
    born(pid) == Some(since)
}

/// Whether there is a process of that number, which is asked more cheaply than who it is.
pub fn is_there(pid: u32) -> bool {
    kill(Pid::from_raw(pid as i32), None) != Err(Errno::ESRCH)
}

/// The identity of this boot of the machine.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_was_born_once() {
        let me = std::process::id();
        let since = born(me).unwrap();
        assert!(lives(me, since) && !lives(me, since + 1));
        assert_eq!(born(u32::MAX - 7), None);
    }
}
