//! Traces of tasks that only sleep, played by the real body on sets of CPU cores, and the same processes started by hand.
//!
//! All tasks are there from the beginning and use no core, so that what is measured is how soon a card that becomes free is used again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use collo_quantity::number::count;
use collo_store::{AttemptRecord, Outcome, StoredRun, read_attempts};
use fs_err as fs;
use serde_json::Value as Json;

use crate::nap::WORKLOAD;
use crate::scratch_project::{Moment, ScratchProject};

/// So many tasks of one epoch of so many seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sleepers {
    pub tasks: usize,
    pub seconds: f64,
}

/// Cards of which each has room for so many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    pub sets: usize,
    pub slots: usize,
}

/// A run of such a trace.
pub struct PlayedSleepers {
    pub began_ns: u64,
    pub attempts: Vec<AttemptRecord>,
    /// By attempt, when its process ran and when it first spoke.
    pub started_ns: Vec<Option<u64>>,
    pub spoke_ns: Vec<Option<u64>>,
}

/// A process started by hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByHand {
    /// From before it was asked for until it ran.
    pub spawn_s: f64,
    /// From before it was asked for until it had ended.
    pub whole_s: f64,
}

impl Places {
    /// So many in all, on as many sets of the machine's cores as that can be divided among.
    pub fn of(wanted: usize) -> Places {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let sets = (1..=wanted.min(cores)).rev().find(|sets| wanted.is_multiple_of(*sets)).unwrap_or(1);
        Places { sets, slots: wanted / sets }
    }

    /// In words, with the policy that fills them.
    pub fn text(self) -> String {
        format!("{} of cores under `{}`", count(self.sets, "set"), self.policy())
    }

    fn policy(self) -> String {
        if self.slots == 1 { "exclusive".into() } else { format!("slots:{}", self.slots) }
    }
}

impl Sleepers {
    /// Play them on these places, in a campaign of one run.
    pub fn play(
        self,
        ground: &ScratchProject,
        name: &str,
        places: Places,
        at: &mut (dyn FnMut(Moment<'_>) -> Result<()> + Send),
    ) -> Result<PlayedSleepers> {
        let Sleepers { tasks, seconds } = self;
        let trace = format!(
            "description = \"{tasks} tasks of {seconds} s\"\nsource = \"made up\"\narrivals = {{ burst = {tasks} }}\n\
             [[tasks]]\ncount = {tasks}\none_of = [\"{WORKLOAD} 1e\"]\nsettings = {{ seconds = {seconds:?} }}\n"
        );
        fs::create_dir_all(ground.path().join("traces"))?;
        fs::write(ground.path().join(format!("traces/{name}.toml")), trace)?;
        let lines = format!(
            "repetitions = 1\n[trace]\nname = \"{name}\"\ncards = {}\n[axes]\npolicy = \"{}\"\nsharing = \"naive\"",
            places.sets,
            places.policy()
        );
        ground.write_experiment(name, &lines)?;
        let runs = ground.measure(name, |cell| cell.trace.is_some(), at)?;
        PlayedSleepers::read(&runs.first().context("the trace was not played")?.run)
    }

    /// Start the same processes by hand, so many at a time, a further one whenever one has ended.
    pub fn by_hand(self, ground: &ScratchProject, at_once: usize) -> Result<Vec<ByHand>> {
        let settings = [("seconds", self.seconds.to_string())];
        let command = ground.by_hand(WORKLOAD, &settings, &[])?.stdout_null();
        let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let worker = || -> Result<()> {
            while next.fetch_add(1, Ordering::Relaxed) < self.tasks {
                let begun = Instant::now();
                let child = command.start()?;
                let spawn_s = begun.elapsed().as_secs_f64();
                ensure!(child.wait()?.status.success(), "`{WORKLOAD}` by hand ended with an error");
                let one = ByHand { spawn_s, whole_s: begun.elapsed().as_secs_f64() };
                all.lock().map_err(|_| anyhow!("a worker panicked"))?.push(one);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow!("a worker panicked"))?)
        })?;
        all.into_inner().map_err(|_| anyhow!("a worker panicked"))
    }
}

impl PlayedSleepers {
    fn read(run: &StoredRun) -> Result<PlayedSleepers> {
        let trace = run.record.trace.as_ref().context("a run of no trace")?;
        let attempts = read_attempts(&run.path)?;
        if let Some(wrong) = attempts.iter().find(|attempt| attempt.outcome != Outcome::Completed) {
            anyhow::bail!("task {} ended as {}", wrong.task, wrong.outcome.text());
        }
        let events = fs::read_to_string(run.path.join("events.jsonl"))?;
        let (started_ns, spoke_ns) = (first(&events, "started", attempts.len()), first(&events, "said", attempts.len()));
        Ok(PlayedSleepers { began_ns: trace.began_ns, attempts, started_ns, spoke_ns })
    }

    /// From the first arrival to the end of the last, seconds.
    pub fn total_s(&self) -> f64 {
        let ended_ns = self.attempts.iter().map(|attempt| attempt.ended_ns).max().unwrap_or(self.began_ns);
        (ended_ns - self.began_ns) as f64 / 1e9
    }

    /// From a card's becoming free until this was seen of the next attempt on it, seconds. Of cards for one at a time.
    pub fn gaps_s(&self, seen_ns: &[Option<u64>]) -> Vec<f64> {
        let mut by_card: Vec<&AttemptRecord> = self.attempts.iter().collect();
        by_card.sort_by_key(|attempt| (attempt.cards.clone(), attempt.launched_ns));
        let gap = |two: &[&AttemptRecord]| {
            let next_ns = seen_ns.get(two[1].attempt as usize).copied().flatten()?;
            (two[0].cards == two[1].cards).then(|| next_ns.saturating_sub(two[0].ended_ns) as f64 / 1e9)
        };
        by_card.windows(2).filter_map(gap).collect()
    }
}

/// By attempt, the first event of this kind.
fn first(events: &str, kind: &str, attempts: usize) -> Vec<Option<u64>> {
    let mut all = vec![None; attempts];
    for event in events.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok()) {
        let member = event["member"].as_u64().and_then(|member| usize::try_from(member).ok());
        if let (Some(member), true) = (member, event.get(kind).is_some())
            && let Some(place @ None) = all.get_mut(member)
        {
            *place = event["at_ns"].as_u64();
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use collo_store::AttestationVerdict;

    use super::*;

    fn attempt(attempt: u32, card: u32, launched_ns: u64, ended_ns: u64) -> AttemptRecord {
        AttemptRecord {
            attempt,
            task: attempt,
            cards: vec![card],
            launched_ns,
            settled_ns: None,
            ended_ns,
            outcome: Outcome::Completed,
            newcomer: None,
            alone: true,
            attested: AttestationVerdict::Attested,
        }
    }

    #[test]
    fn a_gap_is_between_two_attempts_on_the_same_card() {
        const S: u64 = 1_000_000_000;
        let attempts =
            vec![attempt(0, 0, S, 5 * S), attempt(1, 1, S, 4 * S), attempt(2, 1, 5 * S, 8 * S), attempt(3, 0, 6 * S, 9 * S)];
        let events = [
            r#"{"at_ns": 7000000000, "member": 2, "started": {"pid": 2}}"#,
            r#"{"at_ns": 7500000000, "member": 3, "started": {"pid": 3}}"#,
            r#"{"at_ns": 8000000000, "member": 2, "started": {"pid": 9}}"#,
            "half a li",
        ];
        let started_ns = first(&events.join("\n"), "started", 4);
        let played = PlayedSleepers { began_ns: S, attempts, started_ns, spoke_ns: Vec::new() };
        assert_eq!(played.gaps_s(&played.started_ns), [2.5, 3.0]);
        assert_eq!((played.gaps_s(&played.spoke_ns).len(), played.total_s()), (0, 8.0));
    }

    #[test]
    fn places_divide_evenly_among_the_sets() {
        for wanted in 1..=16 {
            let places = Places::of(wanted);
            assert_eq!(places.sets * places.slots, wanted);
        }
    }
}
