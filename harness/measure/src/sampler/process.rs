//! One process in `/proc`, with its files held open and read again in place.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The gauges and counters of one process, as the kernel tells them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gauges {
    /// CPU time of the process and of the children that it has reaped, in clock ticks.
    pub cpu_ticks: u64,
    /// That of its reaped children alone.
    pub reaped_ticks: u64,
    pub threads: u64,
    pub rss_pages: u64,
}

/// Open files of one process.
pub struct Process {
    pub pid: u32,
    stat: File,
    io: Option<File>,
    threads: Vec<(u32, File)>,
}

impl Process {
    /// None if it is gone already.
    pub fn open(pid: u32) -> Option<Self> {
        let stat = File::open(format!("/proc/{pid}/stat")).ok()?;
        // Another user's, or a process that gave up its rights, hides its I/O.
        let io = File::open(format!("/proc/{pid}/io")).ok();
        let mut process = Process { pid, stat, io, threads: Vec::new() };
        process.look_for_threads();
        Some(process)
    }

    /// Bring the list of threads up to date; to be called now and then.
    pub fn look_for_threads(&mut self) {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", self.pid)) else { return };
        let tids: Vec<u32> = tasks.flatten().filter_map(|t| t.file_name().to_str()?.parse().ok()).collect();
        self.threads.retain(|(tid, _)| tids.contains(tid));
        for tid in tids {
            if !self.threads.iter().any(|(known, _)| *known == tid)
                && let Ok(file) = File::open(format!("/proc/{}/task/{tid}/status", self.pid))
            {
                self.threads.push((tid, file));
            }
        }
    }

    /// None once it is gone, or a zombie.
    pub fn gauges(&self, buffer: &mut [u8]) -> Option<Gauges> {
        parse_stat(read(&self.stat, buffer)?)
    }

    /// Bytes that it really fetched from storage.
    pub fn read_bytes(&self, buffer: &mut [u8]) -> Option<u64> {
        field(read(self.io.as_ref()?, buffer)?, "read_bytes:")
    }

    /// Voluntary and involuntary context switches of all its threads that live.
    pub fn switches(&self, buffer: &mut [u8]) -> Option<(u64, u64)> {
        let mut sum = None;
        for (_, status) in &self.threads {
            let Some(text) = read(status, buffer) else { continue };
            let of = (field(text, "\nvoluntary_ctxt_switches:"), field(text, "nonvoluntary_ctxt_switches:"));
            if let (Some(v), Some(i)) = of {
                let (sv, si) = sum.unwrap_or((0, 0));
                sum = Some((sv + v, si + i));
            }
        }
        sum
    }
}

/// Peak resident memory of a process, bytes (VmHWM: what `wait4` says is polluted by the parent's own size).
pub fn peak_rss_bytes(pid: u32) -> Option<u64> {
    field(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:").map(|kib| kib * 1024)
}

/// Proportional memory of a process, bytes: pages that it shares with others count in part. Walks page tables.
pub fn pss_bytes(pid: u32) -> Option<u64> {
    field(&std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss:").map(|kib| kib * 1024)
}

fn read<'a>(file: &File, buffer: &'a mut [u8]) -> Option<&'a str> {
    let n = file.read_at(buffer, 0).ok()?;
    std::str::from_utf8(&buffer[..n]).ok()
}

/// The number after a name in a `/proc` file.
pub fn field(text: &str, name: &str) -> Option<u64> {
    text.split_once(name)?.1.split_whitespace().next()?.parse().ok()
}

fn parse_stat(stat: &str) -> Option<Gauges> {
    // The name stands in parentheses and may itself hold any character; fields after it are numbered from 3.
    let rest: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| rest.get(field - 3)?.parse::<u64>().ok();
    if matches!(rest.first(), Some(&"Z" | &"X")) {
        return None;
    }
    let reaped_ticks = number(16)? + number(17)?;
    Some(Gauges {
        cpu_ticks: number(14)? + number(15)? + reaped_ticks,
        reaped_ticks,
        threads: number(20)?,
        rss_pages: number(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_past_a_hostile_name() {
        let stat = "42 (a) b (c 9 9 9) S 1 42 42 0 -1 4194304 100 0 0 0 70 30 5 6 20 0 3 0 1000 1000000 250 1844";
        let expected = Gauges { cpu_ticks: 111, reaped_ticks: 11, threads: 3, rss_pages: 250 };
        assert_eq!(parse_stat(stat), Some(expected));
        assert_eq!(parse_stat(&stat.replace(") S", ") Z")), None);
        assert_eq!(parse_stat("42 (x"), None);
    }

    #[test]
    fn this_process_has_memory_threads_and_switches() {
        let me = Process::open(std::process::id()).unwrap();
        let mut buffer = [0; 8192];
        assert!(me.gauges(&mut buffer).unwrap().rss_pages > 0);
        assert!(me.switches(&mut buffer).unwrap().0 > 0);
        assert!(peak_rss_bytes(me.pid).unwrap() > 0);
        assert!(pss_bytes(me.pid).unwrap() > 0);
    }
}
