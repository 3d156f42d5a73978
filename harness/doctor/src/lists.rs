//! Whether the driver's process lists have a member while it trains, and for how long after its end: read beside the runs of
//! `collo doctor --deep`.
//!
//! In: the UUIDs of a GPU and its instances. Out: when each process was listed and alive, and a row that compares this with the
//! runs. A run is attested by these lists at the first `done`, and refused to start where they have a process of others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use collo_device::nvml;
use collo_store::{RunRecord, monotonic_ns};

use crate::check::{Check, Mark};

const SUBJECT: &str = "lists";
/// Between two readings. What is shorter is not seen.
const EVERY: Duration = Duration::from_millis(10);
/// A process that stays listed for longer is taken for a stranger by a run that starts meanwhile: readings settle within this time.
const LONG_NS: u64 = 1_000_000_000;

/// When a process was listed, and alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sighting {
    first_ns: u64,
    last_ns: u64,
    /// Before its end, as the kernel knows it.
    alive_ns: u64,
}

/// Everything that was listed, by process.
#[derive(Debug, Default)]
pub struct Sightings(BTreeMap<u32, Sighting>);

/// Reads the lists on a thread of its own, until it is dropped.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Sightings>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Watch {
    /// Begin to read; `None` if no thread can be started.
    pub fn begin(uuids: Vec<String>) -> Option<Watch> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("lists".into()).spawn(move || watch(&uuids, &stopped)).ok()?;
        Some(Watch { stop, thread: Some(thread) })
    }

    pub fn end(mut self) -> Sightings {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

fn watch(uuids: &[String], stop: &AtomicBool) -> Sightings {
    let mut all = Sightings::default();
    let Ok(nvml) = nvml::open() else { return all };
    while !stop.load(Ordering::Relaxed) {
        for device in uuids.iter().filter_map(|uuid| nvml.device_by_uuid(uuid.as_str()).ok()) {
            // A client of MPS may be on either list alone.
            let lists = [device.running_compute_processes(), device.mps_running_compute_processes()];
            let listed = lists.into_iter().filter_map(Result::ok).flatten();
            all.see(monotonic_ns(), listed.map(|process| process.pid));
        }
        all.live(monotonic_ns(), |pid| std::path::Path::new(&format!("/proc/{pid}")).exists());
        std::thread::sleep(EVERY);
    }
    all
}

impl Sightings {
    fn see(&mut self, now_ns: u64, listed: impl Iterator<Item = u32>) {
        for pid in listed {
            let seen = self.0.entry(pid).or_insert(Sighting { first_ns: now_ns, last_ns: now_ns, alive_ns: now_ns });
            seen.last_ns = now_ns;
        }
    }

    fn live(&mut self, now_ns: u64, is_alive: impl Fn(u32) -> bool) {
        for (_, seen) in self.0.iter_mut().filter(|(pid, _)| is_alive(**pid)) {
            seen.alive_ns = now_ns;
        }
    }
}

/// The row: members listed from *go* to the first `done`, when they were first listed, and how long they stay.
pub fn judged<'a>(label: &str, sightings: &Sightings, runs: impl Iterator<Item = &'a RunRecord>) -> Option<Check> {
    let (mut members, mut through) = (0_usize, 0_usize);
    let (mut late_ns, mut stays_ns): (i64, Option<u64>) = (i64::MIN, None);
    for run in runs {
        let (Some(go_ns), Some(done_ns)) = (run.timeline.go_ns, run.timeline.done_ns) else { continue };
        // The first `done` is no later than the last.
        let first_done_ns = run.members.iter().filter_map(|m| m.training_end_ns).min().unwrap_or(done_ns).min(done_ns);
        for pid in run.members.iter().filter_map(|member| member.pid) {
            members += 1;
            let Some(seen) = sightings.0.get(&pid) else { continue };
            let reading_ns = 2 * EVERY.as_nanos() as u64;
            through += usize::from(seen.first_ns <= go_ns + reading_ns && seen.last_ns + reading_ns >= first_done_ns);
            late_ns = late_ns.max(seen.first_ns as i64 - go_ns as i64);
            stays_ns = stays_ns.max(Some(seen.last_ns.saturating_sub(seen.alive_ns)));
        }
    }
    if members == 0 {
        return None;
    }
    let Some(stays_ns) = stays_ns else {
        let text = format!("{label}: none of {members} members was on the driver's lists");
        return Some(
            Check::new(Mark::Changes, SUBJECT, text)
                .hint("in a container `--pid=host` shows the members; otherwise `collo doctor --collect`"),
        );
    };
    let ms = |ns: u64| format!("{} ms", ns / 1_000_000);
    let first = match late_ns {
        late @ 0.. => format!("{} after", ms(late as u64)),
        early => format!("{} before", ms(early.unsigned_abs())),
    };
    let text = format!(
        "{label}: {through} of {members} members listed from *go* to the first `done`; first listed at the latest {first} *go*, \
         last at most {} after their end (read every {})",
        ms(stays_ns),
        ms(EVERY.as_nanos() as u64)
    );
    Some(match (through == members, stays_ns < LONG_NS) {
        (true, true) => Check::new(Mark::Good, SUBJECT, text),
        (false, _) => Check::new(Mark::Fixable, SUBJECT, text)
            .hint("such a run may be `mode lost` although its mode was in force: report it with `collo doctor --collect`"),
        (true, false) => Check::new(Mark::Changes, SUBJECT, text)
            .hint("a run that follows at once may be refused: `cooldown = \"5s\"` waits between runs"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{DONE_NS, GO_NS, two_that_trained as run};
    use super::*;

    /// Seven is listed the whole time, eight from and to then; both end at 10 s.
    fn row(from_ns: u64, to_ns: u64) -> String {
        let mut all = Sightings::default();
        all.see(GO_NS - 40_000_000, [7].into_iter());
        all.see(from_ns, [8].into_iter());
        all.live(10_000_000_000, |_| true);
        all.see(10_002_000_000, [7].into_iter());
        all.see(to_ns, [8].into_iter());
        let check = judged("GPU 0", &all, [&run()].into_iter()).expect("members trained");
        format!("{:?} {}", check.mark, check.text)
    }

    #[test]
    fn members_that_are_listed_while_they_train_and_soon_leave_are_as_expected() {
        insta::assert_snapshot!(row(GO_NS - 30_000_000, 10_012_000_000), @"Good GPU 0: 2 of 2 members listed from *go* to the first `done`; first listed at the latest 30 ms before *go*, last at most 12 ms after their end (read every 10 ms)");
    }

    #[test]
    fn a_member_that_is_not_listed_when_it_is_attested_and_one_that_stays_listed_are_named() {
        insta::assert_snapshot!(row(GO_NS + 500_000_000, 10_000_000_000), @"Fixable GPU 0: 1 of 2 members listed from *go* to the first `done`; first listed at the latest 500 ms after *go*, last at most 2 ms after their end (read every 10 ms)");
        insta::assert_snapshot!(row(GO_NS - 30_000_000, DONE_NS - 300_000_000), @"Fixable GPU 0: 1 of 2 members listed from *go* to the first `done`; first listed at the latest 30 ms before *go*, last at most 2 ms after their end (read every 10 ms)");
        insta::assert_snapshot!(row(GO_NS - 30_000_000, 13_000_000_000), @"Changes GPU 0: 2 of 2 members listed from *go* to the first `done`; first listed at the latest 30 ms before *go*, last at most 3000 ms after their end (read every 10 ms)");
    }

    #[test]
    fn lists_that_show_other_pids_decide_nothing() {
        let check = judged("GPU 0", &Sightings::default(), [&run()].into_iter()).expect("members trained");
        assert_eq!((check.mark, check.text.as_str()), (Mark::Changes, "GPU 0: none of 2 members was on the driver's lists"));
        assert!(judged("GPU 0", &Sightings::default(), std::iter::empty()).is_none());
    }
}
