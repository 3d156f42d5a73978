//! Resource usage of each member, with all its descendants and threads: everything below its supervisor.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use collo_store::{Sample, member_scope};

use super::Sampler;
use super::process::{self, ProcessFiles};
use collo_launch::tree;

/// The processes of every member, found by the slow thread and read by the fast one.
#[derive(Clone, Default)]
pub struct Trees(Arc<Mutex<Vec<Tree>>>);

/// Everything below one supervisor.
struct Tree {
    scope: Arc<str>,
    supervisor: u32,
    processes: BTreeMap<u32, ProcessFiles>,
    /// What the supervisor had reaped when first read; orphans that it reaps later count.
    last: Option<Before>,
    /// CPU time of ended processes that their parents have waited for, at the latest reading.
    reaped_ticks: u64,
    /// The latest RSS, and the largest at a reading of PSS.
    rss_bytes: f64,
    rss_with_pss: f64,
}

impl Tree {
    fn new(scope: Arc<str>, supervisor: u32) -> Self {
        Tree { scope, supervisor, processes: BTreeMap::new(), last: None, reaped_ticks: 0, rss_bytes: 0.0, rss_with_pss: 0.0 }
    }

    /// These are its processes now.
    fn has(&mut self, pids: Vec<u32>) {
        self.processes.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            match self.processes.get_mut(&pid) {
                Some(process) => process.look_for_threads(),
                None => drop(ProcessFiles::open(pid).map(|p| self.processes.insert(pid, p))),
            }
        }
    }
}

/// PSS is read again when a member's RSS is so many times what it was at any reading of PSS: a peak is seldom further from one.
const GROWN: f64 = 1.25;

#[derive(Clone, Copy)]
struct Before {
    at_ns: u64,
    cpu_ticks: u64,
}

impl Trees {
    /// Members by index; each is the tree below one supervisor.
    pub fn below(supervisors: &[u32]) -> Self {
        let tree = |(index, &supervisor): (usize, &u32)| Tree::new(member_scope(index), supervisor);
        Trees(Arc::new(Mutex::new(supervisors.iter().enumerate().map(tree).collect())))
    }

    /// The tree below the supervisor of one process, which hosts all members.
    pub fn of_one_process(supervisor: u32) -> Self {
        Trees(Arc::new(Mutex::new(vec![Tree::new(collo_store::PROCESS_SCOPE.into(), supervisor)])))
    }

    /// A further member, below this supervisor.
    pub fn add(&self, index: usize, supervisor: u32) {
        self.lock().push(Tree::new(member_scope(index), supervisor));
    }

    /// A member has ended: it is read no more.
    pub fn remove(&self, index: usize) {
        let scope = member_scope(index);
        self.lock().retain(|tree| tree.scope != scope);
    }

    /// Update the lists of processes and threads. A process that starts in between is seen one slow tick later, or as soon as another has
    /// ended; the CPU time of one that starts and ends in between is not lost, since its parent's counters include it.
    pub fn refresh(&self) {
        let supervisors: Vec<u32> = self.lock().iter().map(|t| t.supervisor).collect();
        // Listing processes takes long: not under the lock that the fast thread needs.
        let mut found: BTreeMap<u32, Vec<u32>> = supervisors.iter().map(|&s| (s, tree::descendants(s))).collect();
        for tree in self.lock().iter_mut() {
            // Members may have come and gone meanwhile.
            let Some(pids) = found.remove(&tree.supervisor) else { continue };
            tree.has(pids);
        }
    }

    /// Whether the memory of a member has grown far beyond what it was when its PSS was read.
    pub fn have_grown(&self) -> bool {
        self.lock().iter().any(|tree| tree.rss_bytes > GROWN * tree.rss_with_pss)
    }

    /// PSS has been read.
    fn pss_is_read(&self) {
        self.lock().iter_mut().for_each(|tree| tree.rss_with_pss = tree.rss_with_pss.max(tree.rss_bytes));
    }

    /// The pids of each member.
    pub fn pids(&self) -> Vec<(Arc<str>, Vec<u32>)> {
        self.lock().iter().map(|t| (t.scope.clone(), t.processes.keys().copied().collect())).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Tree>> {
        // A thread that panicked while it read leaves readings, not broken state.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// CPU, memory, storage reads and context switches of every member, from files that are kept open.
pub struct Members {
    trees: Trees,
    buffer: Vec<u8>,
    ticks_per_s: f64,
    page_bytes: f64,
    /// The time of the tick before.
    last_ns: Option<u64>,
    /// When the counters are to be read next.
    counters_due_ns: Option<u64>,
}

/// Counters (storage reads, context switches) lose nothing by being read less often, and cost three times as much as the gauges:
/// a faster rate is for the gauges alone.
const COUNTERS_EVERY_NS: u64 = 100_000_000;

impl Members {
    /// Read these trees.
    pub fn new(trees: Trees) -> Self {
        let conf = |name, fallback| nix::unistd::sysconf(name).ok().flatten().map_or(fallback, |v| v as f64);
        Members {
            trees,
            buffer: vec![0; 8192],
            ticks_per_s: conf(nix::unistd::SysconfVar::CLK_TCK, 100.0),
            page_bytes: conf(nix::unistd::SysconfVar::PAGE_SIZE, 4096.0),
            last_ns: None,
            counters_due_ns: None,
        }
    }

    /// Whether this tick reads the counters: the one nearest to each tenth of a second.
    fn counts(&mut self, at_ns: u64) -> bool {
        let half_ns = self.last_ns.replace(at_ns).map_or(0, |last| at_ns.saturating_sub(last) / 2);
        let due_ns = self.counters_due_ns.unwrap_or(at_ns);
        let due = at_ns + half_ns >= due_ns;
        if due {
            // After a gap, from here on: what was missed is not made up for.
            self.counters_due_ns = Some((due_ns + COUNTERS_EVERY_NS).max(at_ns));
        }
        due
    }
}

#[derive(Default)]
struct Sum {
    cpu_ticks: u64,
    reaped_ticks: u64,
    rss_pages: u64,
    threads: u64,
    processes: u64,
    read_bytes: Option<u64>,
    switches: Option<(u64, u64)>,
}

impl Sampler for Members {
    fn sample(&mut self, at_ns: u64, samples: &mut Vec<Sample>) {
        let counts = self.counts(at_ns);
        for tree in self.trees.lock().iter_mut() {
            let mut sum = Sum::default();
            for process in tree.processes.values_mut() {
                let Some(gauges) = process.gauges(&mut self.buffer) else { continue };
                sum.cpu_ticks += gauges.cpu_ticks;
                sum.reaped_ticks += gauges.reaped_ticks;
                if !gauges.lives {
                    continue;
                }
                sum.rss_pages += gauges.rss_pages;
                sum.threads += gauges.threads;
                sum.processes += 1;
                if !counts {
                    continue;
                }
                if let Some(bytes) = process.read_bytes(&mut self.buffer) {
                    *sum.read_bytes.get_or_insert(0) += bytes;
                }
                if let Some((voluntary, involuntary)) = process.switches(&mut self.buffer) {
                    let (v, i) = sum.switches.get_or_insert((0, 0));
                    *v += voluntary;
                    *i += involuntary;
                }
            }
            if sum.processes == 0 {
                // Nothing lives there: no reading at all, rather than zeros.
                tree.last = None;
                continue;
            }
            // Where a process has ended another may have begun: a script that is run again and again, the workers of the next epoch. Its
            // CPU time would be seen up to a second late, which is after its end if it is short.
            if counts && std::mem::replace(&mut tree.reaped_ticks, sum.reaped_ticks) != sum.reaped_ticks {
                tree.has(tree::descendants(tree.supervisor));
            }
            let now = Before { at_ns, cpu_ticks: sum.cpu_ticks };
            let before = tree.last.replace(now);
            let mut push = |metric, window_ns, value| {
                let scope = tree.scope.clone();
                samples.push(Sample { at_ns, window_ns, source: "proc", scope, metric, value });
            };
            if let Some(before) = before.filter(|b| b.at_ns < at_ns) {
                let window_ns = at_ns - before.at_ns;
                // Fewer ticks than before: a process left and took its time along, so this window cannot be told.
                let ticks = now.cpu_ticks.checked_sub(before.cpu_ticks);
                let ratio = ticks.map(|t| t as f64 / self.ticks_per_s / (window_ns as f64 / 1e9));
                push("cpu_ratio", window_ns, ratio);
            }
            let rss_bytes = sum.rss_pages as f64 * self.page_bytes;
            push("rss_bytes", 0, Some(rss_bytes));
            push("threads", 0, Some(sum.threads as f64));
            push("processes", 0, Some(sum.processes as f64));
            tree.rss_bytes = rss_bytes;
            if !counts {
                continue;
            }
            push("read_bytes", 0, sum.read_bytes.map(|b| b as f64));
            push("voluntary_context_switches", 0, sum.switches.map(|s| s.0 as f64));
            push("involuntary_context_switches", 0, sum.switches.map(|s| s.1 as f64));
        }
    }
}

/// Peak resident memory of every member's processes, summed.
pub struct ResidentPeaks(pub Trees);

impl Sampler for ResidentPeaks {
    fn sample(&mut self, at_ns: u64, samples: &mut Vec<Sample>) {
        for (scope, pids) in self.0.pids() {
            let peaks: Vec<u64> = pids.iter().filter_map(|&p| process::peak_rss_bytes(p)).collect();
            if !peaks.is_empty() {
                let value = Some(peaks.iter().sum::<u64>() as f64);
                samples.push(Sample { at_ns, window_ns: 0, source: "proc-slow", scope, metric: "peak_rss_bytes", value });
            }
        }
    }
}

/// Proportional memory of every member, and the RSS that it is a part of: rarely, because the kernel walks page tables under the member's own lock for it.
pub struct Proportional(pub Trees);

impl Sampler for Proportional {
    fn sample(&mut self, at_ns: u64, samples: &mut Vec<Sample>) {
        for (scope, pids) in self.0.pids() {
            let read: Vec<(u64, u64)> = pids.iter().filter_map(|&p| process::rss_and_pss_bytes(p)).collect();
            if read.is_empty() {
                continue;
            }
            // A walk takes long enough for memory to come or go: only the RSS of the same walk shows what a PSS leaves out.
            let sum = |of: fn(&(u64, u64)) -> u64| Some(read.iter().map(of).sum::<u64>() as f64);
            for (metric, value) in [("rss_at_pss_bytes", sum(|read| read.0)), ("pss_bytes", sum(|read| read.1))] {
                samples.push(Sample { at_ns, window_ns: 0, source: "proc-slow", scope: scope.clone(), metric, value });
            }
        }
        self.0.pss_is_read();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of rows of each metric for one process below this one, at this rate and number of ticks.
    fn rows(rate_hz: u64, ticks: u64) -> BTreeMap<&'static str, usize> {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let trees = Trees::below(&[std::process::id()]);
        trees.lock()[0].processes.extend(ProcessFiles::open(child.id()).map(|p| (p.pid, p)));
        let mut members = Members::new(trees);
        let mut samples = Vec::new();
        for tick in 0..ticks {
            // Ticks are never quite punctual.
            members.sample(1_000_000_000 + tick * 1_000_000_000 / rate_hz + tick % 3 * 400_000, &mut samples);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rows = BTreeMap::new();
        samples.iter().for_each(|s| *rows.entry(s.metric).or_default() += 1);
        rows
    }

    #[test]
    fn pss_is_due_when_memory_has_grown_by_a_quarter_since_any_reading() {
        let trees = Trees::below(&[std::process::id(), std::process::id()]);
        let grown = |rss_bytes: f64| {
            trees.lock()[1].rss_bytes = rss_bytes;
            trees.have_grown()
        };
        assert!(!trees.have_grown(), "nothing has been read");
        assert!(grown(100.0));
        trees.pss_is_read();
        assert_eq!([120.0, 130.0, 50.0].map(grown), [false, true, false]);
        trees.pss_is_read();
        assert_eq!([100.0, 124.0, 126.0].map(grown), [false, false, true], "of the largest at a reading");
    }

    #[test]
    fn a_process_that_begins_where_another_has_ended_is_seen_at_the_next_reading() {
        use std::io::{BufRead, BufReader};
        let inner = "(i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done); sleep 30 & echo begun; wait";
        let mut outer = std::process::Command::new("sh");
        let mut outer =
            outer.args(["-c", "sh -c \"$1\"; true", "sh", inner]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let shell = std::iter::repeat_with(|| tree::descendants(outer.id())).find_map(|below| below.first().copied()).unwrap();
        let trees = Trees::below(&[outer.id()]);
        trees.lock()[0].processes.extend(ProcessFiles::open(shell).map(|p| (p.pid, p)));
        let mut line = String::new();
        BufReader::new(outer.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let mut samples = Vec::new();
        let mut members = Members::new(trees);
        [1, 2].iter().for_each(|second| members.sample(second * 1_000_000_000, &mut samples));
        let counts: Vec<_> = samples.iter().filter(|s| s.metric == "processes").filter_map(|s| s.value).collect();
        tree::descendants(outer.id()).iter().rev().for_each(|&pid| {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL);
        });
        outer.wait().unwrap();
        assert_eq!(counts, [1.0, 2.0]);
    }

    #[test]
    fn ten_times_a_second_every_tick_reads_everything() {
        let rows = rows(10, 20);
        assert_eq!((rows["rss_bytes"], rows["voluntary_context_switches"], rows["read_bytes"]), (20, 20, 20));
        assert_eq!(rows["cpu_ratio"], 19, "a ratio needs two readings");
    }

    #[test]
    fn a_faster_rate_is_for_the_gauges_and_counters_stay_at_ten_times_a_second() {
        for rate_hz in [25, 100, 1000] {
            let rows = rows(rate_hz, 2 * rate_hz);
            assert_eq!(rows["rss_bytes"], 2 * rate_hz as usize);
            let counted = rows["involuntary_context_switches"];
            assert!((19..=22).contains(&counted), "{counted} at {rate_hz} Hz in two seconds");
        }
    }
}
