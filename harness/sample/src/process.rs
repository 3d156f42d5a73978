//! One process in `/proc`, with its files kept open and read again in place.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The gauges and counters of one process, as the kernel reports them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessGauges {
    /// CPU time of the process and of the children that it has reaped, in clock ticks.
    pub cpu_ticks: u64,
    /// That of its reaped children alone.
    pub reaped_ticks: u64,
    /// False for a zombie, which has nothing left but its time.
    pub lives: bool,
    pub threads: u64,
    pub rss_pages: u64,
}

/// Open files of one process.
pub struct ProcessFiles {
    pub pid: u32,
    stat: File,
    io: Option<File>,
    threads: Vec<Thread>,
}

/// One of its threads.
struct Thread {
    tid: u32,
    status: File,
    /// Shows in a fifth of the time of `status` whether the thread ran at all; not in every kernel.
    schedstat: Option<File>,
    /// The time slices at the last reading of `status`, and the switches in it.
    last: Option<(u64, (u64, u64))>,
}

impl ProcessFiles {
    /// `None` if it is gone already.
    pub fn open(pid: u32) -> Option<Self> {
        let stat = File::open(format!("/proc/{pid}/stat")).ok()?;
        // Another user's, or a process that gave up its rights, hides its I/O.
        let io = File::open(format!("/proc/{pid}/io")).ok();
        let mut process = ProcessFiles { pid, stat, io, threads: Vec::new() };
        process.look_for_threads();
        Some(process)
    }

    /// Update the list of threads; to be called now and then.
    pub fn look_for_threads(&mut self) {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", self.pid)) else { return };
        let tids: Vec<u32> = tasks.flatten().filter_map(|t| t.file_name().to_str()?.parse().ok()).collect();
        self.threads.retain(|thread| tids.contains(&thread.tid));
        for tid in tids {
            let folder = format!("/proc/{}/task/{tid}", self.pid);
            if !self.threads.iter().any(|known| known.tid == tid)
                && let Ok(status) = File::open(format!("{folder}/status"))
            {
                let schedstat = File::open(format!("{folder}/schedstat")).ok();
                self.threads.push(Thread { tid, status, schedstat, last: None });
            }
        }
    }

    /// `None` once it is gone.
    pub fn gauges(&self, buffer: &mut [u8]) -> Option<ProcessGauges> {
        parse_stat(read(&self.stat, buffer)?)
    }

    /// Bytes actually fetched from storage.
    pub fn read_bytes(&self, buffer: &mut [u8]) -> Option<u64> {
        field(read(self.io.as_ref()?, buffer)?, "read_bytes:")
    }

    /// Voluntary and involuntary context switches of all its live threads.
    pub fn switches(&mut self, buffer: &mut [u8]) -> Option<(u64, u64)> {
        let mut sum = None;
        for thread in &mut self.threads {
            if let Some((voluntary, involuntary)) = thread.switches(buffer) {
                let (v, i) = sum.get_or_insert((0, 0));
                *v += voluntary;
                *i += involuntary;
            }
        }
        sum
    }
}

impl Thread {
    fn switches(&mut self, buffer: &mut [u8]) -> Option<(u64, u64)> {
        // A thread that got no time slice since has made no switch since, but perhaps the one that ended its last slice, which is
        // seen when it next runs. Most threads of a training sleep all the time. A kernel that does not count slices prints 0.
        let slices = self.schedstat.as_ref().and_then(|file| read(file, buffer)?.split_whitespace().nth(2)?.parse().ok());
        let slices = slices.filter(|n| *n > 0);
        if let (Some((then, switches)), Some(now)) = (self.last, slices)
            && then == now
        {
            return Some(switches);
        }
        let switches = parse_switches(read(&self.status, buffer)?)?;
        self.last = slices.map(|n| (n, switches));
        Some(switches)
    }
}

/// Peak resident memory of a process, bytes (VmHWM: the value of `wait4` is polluted by the parent's own size).
pub fn peak_rss_bytes(pid: u32) -> Option<u64> {
    field(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:").map(|kib| kib * 1024)
}

/// The resident memory of a process and its proportional part, bytes, both from one walk of the page tables: in the proportional part,
/// pages that it shares with others count in part.
pub fn rss_and_pss_bytes(pid: u32) -> Option<(u64, u64)> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let bytes = |name| field(&rollup, name).map(|kib| kib * 1024);
    bytes("\nRss:").zip(bytes("\nPss:"))
}

fn read<'a>(file: &File, buffer: &'a mut [u8]) -> Option<&'a str> {
    let n = file.read_at(buffer, 0).ok()?;
    std::str::from_utf8(&buffer[..n]).ok()
}

/// The number after a name in a `/proc` file.
pub fn field(text: &str, name: &str) -> Option<u64> {
    text.split_once(name)?.1.split_whitespace().next()?.parse().ok()
}

/// Voluntary and involuntary, from the end of a `status` file, where they are: it is long, and read for every thread.
fn parse_switches(status: &str) -> Option<(u64, u64)> {
    let mut found = (None, None);
    for line in status.lines().rev() {
        match line.split_once(':') {
            Some(("nonvoluntary_ctxt_switches", n)) => found.1 = n.trim().parse().ok(),
            Some(("voluntary_ctxt_switches", n)) => found.0 = n.trim().parse().ok(),
            _ => {}
        }
        if let (Some(voluntary), Some(involuntary)) = found {
            return Some((voluntary, involuntary));
        }
    }
    None
}

fn parse_stat(stat: &str) -> Option<ProcessGauges> {
    // The name stands in parentheses and may itself hold any character; fields after it are numbered from 3, and the last is 24.
    let mut rest = [""; 22];
    for (place, field) in rest.iter_mut().zip(stat.rsplit_once(')')?.1.split_ascii_whitespace()) {
        *place = field;
    }
    let number = |field: usize| rest[field - 3].parse::<u64>().ok();
    if rest[0] == "X" {
        return None;
    }
    // The time of a zombie is its own until it is waited for, and then its parent's (proc_pid_stat(5), fields 14 to 17): left out for
    // the moment between, it would count a second time.
    let lives = rest[0] != "Z";
    let reaped_ticks = number(16)? + number(17)?;
    Some(ProcessGauges {
        cpu_ticks: number(14)? + number(15)? + reaped_ticks,
        reaped_ticks,
        lives,
        threads: number(20)?.saturating_mul(u64::from(lives)),
        rss_pages: number(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_past_a_hostile_name() {
        let stat = "42 (a) b (c 9 9 9) S 1 42 42 0 -1 4194304 100 0 0 0 70 30 5 6 20 0 3 0 1000 1000000 250 1844";
        let expected = ProcessGauges { cpu_ticks: 111, reaped_ticks: 11, lives: true, threads: 3, rss_pages: 250 };
        assert_eq!(parse_stat(stat), Some(expected));
        let zombie = parse_stat(&stat.replace(") S", ") Z")).unwrap();
        assert_eq!((zombie.cpu_ticks, zombie.lives, zombie.threads), (111, false, 0), "it keeps its time until it is waited for");
        assert_eq!(parse_stat(&stat.replace(") S", ") X")), None);
        assert_eq!(parse_stat("42 (x"), None);
    }

    #[test]
    fn both_kinds_of_switches_are_told_apart_whatever_follows_them() {
        let status = "Name:\tx\nThreads:\t2\nvoluntary_ctxt_switches:\t70\nnonvoluntary_ctxt_switches:\t5\n";
        assert_eq!(parse_switches(status), Some((70, 5)));
        assert_eq!(parse_switches(&format!("{status}x86_Thread_features:\t\n")), Some((70, 5)));
        assert_eq!(parse_switches("Name:\tx\nvoluntary_ctxt_switches:\t70\n"), None);
    }

    #[test]
    fn this_process_has_memory_threads_and_switches() {
        let mut me = ProcessFiles::open(std::process::id()).unwrap();
        let mut buffer = [0; 8192];
        assert!(me.gauges(&mut buffer).unwrap().rss_pages > 0);
        assert!(me.switches(&mut buffer).unwrap().0 > 0);
        assert!(peak_rss_bytes(me.pid).unwrap() > 0);
        let (rss_bytes, pss_bytes) = rss_and_pss_bytes(me.pid).unwrap();
        assert!(0 < pss_bytes && pss_bytes <= rss_bytes, "{pss_bytes} of {rss_bytes}");
    }
    #[test]
    fn a_thread_that_ran_is_read_again_and_one_that_slept_keeps_its_count() {
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do sleep 0.01; done"]).spawn().unwrap();
        let mut idle = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let (mut moving, mut still) = (ProcessFiles::open(busy.id()).unwrap(), ProcessFiles::open(idle.id()).unwrap());
        let mut buffer = [0; 8192];
        let before = moving.switches(&mut buffer).unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while moving.switches(&mut buffer).unwrap().0 < before.0 + 3 && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(moving.switches(&mut buffer).unwrap().0 >= before.0 + 3);
        // It sleeps by now: what is remembered is what its file says.
        still.switches(&mut buffer).unwrap();
        let file = std::fs::read_to_string(format!("/proc/{}/status", idle.id())).unwrap();
        assert_eq!(still.switches(&mut buffer), parse_switches(&file));
        for child in [&mut busy, &mut idle] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
