//! A thousand short tasks under the manager, beside the list schedule of the same processes started by hand, and what the manager itself
//! uses meanwhile.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use anyhow::{Context, Result};
use collo_quantity::stats::median;
use fs_err as fs;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::Effort;
use crate::figure::{Figure, Statistic, Unit};
use crate::scratch_project::{Moment, ScratchProject};
use crate::sleepers::{Places, Sleepers};

const PLACES: usize = 8;
const SECONDS: f64 = 0.5;
const MOST_RSS_BYTES: f64 = 120e6;

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let places = Places::of(PLACES);
    let sleepers = Sleepers { tasks: if effort.smoke { PLACES } else { 1000 }, seconds: SECONDS };
    // A part of them by hand, half before and half after: their times are those of the others as well.
    let part = Sleepers { tasks: if effort.smoke { PLACES } else { 120 }, ..sleepers };
    let mut bare = part.by_hand(ground, PLACES)?;
    let mut used = Used::default();
    let played = sleepers.play(ground, "manage", places, &mut |moment| used.see(&moment))?;
    bare.extend(part.by_hand(ground, PLACES)?);
    let mut bare_s: Vec<f64> = bare.iter().map(|one| one.whole_s).collect();
    let bound_s = list_schedule_s(bare_s.iter().copied().cycle().take(sleepers.tasks), PLACES);
    let alone_s = median(&mut bare_s).context("nothing was started by hand")?;
    let mut lives_s: Vec<f64> = played.attempts.iter().map(|a| (a.ended_ns - a.launched_ns) as f64 / 1e9).collect();
    let own = median(&mut lives_s).map_or("–".into(), |s| format!("{s:.3} s"));
    let total_s = played.total_s();
    Ok(vec![
        Figure {
            name: format!("{} tasks ÷ their list schedule", sleepers.tasks),
            unit: Unit::Ratio,
            value: Some(total_s / bound_s),
            count: sleepers.tasks,
            limit: Some((1.05, Statistic::Value)),
            note: Some(format!(
                "{total_s:.2} s and {bound_s:.2} s, {PLACES} at a time: {}; a task's life is {own}, by hand {alone_s:.3} s (medians)",
                places.text()
            )),
            ..Figure::default()
        },
        Figure {
            name: "the manager's own CPU time".into(),
            unit: Unit::Share,
            value: used.cpu_share(),
            count: 1,
            limit: Some((0.05, Statistic::Value)),
            note: Some("collo's process, sampling included; each attempt's supervisor is a process of its own".into()),
            ..Figure::default()
        },
        Figure {
            name: "the manager's own memory".into(),
            unit: Unit::Bytes,
            value: used.peak_rss_bytes,
            count: 1,
            limit: Some((MOST_RSS_BYTES, Statistic::Value)),
            note: Some("the largest that was resident".into()),
            ..Figure::default()
        },
    ])
}

/// The least time in which these can be done in this order, so many at a time.
fn list_schedule_s(lives_s: impl Iterator<Item = f64>, at_once: usize) -> f64 {
    let mut free_ns: BinaryHeap<Reverse<u64>> = (0..at_once).map(|_| Reverse(0)).collect();
    let mut last_ns = 0;
    for life_s in lives_s {
        let Some(Reverse(at_ns)) = free_ns.pop() else { break };
        let ended_ns = at_ns + (life_s * 1e9) as u64;
        last_ns = last_ns.max(ended_ns);
        free_ns.push(Reverse(ended_ns));
    }
    last_ns as f64 / 1e9
}

/// What this process used while a run lasted.
#[derive(Default)]
struct Used {
    before: Option<(Instant, f64)>,
    cpu_s: Option<f64>,
    wall_s: Option<f64>,
    peak_rss_bytes: Option<f64>,
}

impl Used {
    fn see(&mut self, moment: &Moment<'_>) -> Result<()> {
        match moment {
            Moment::Before(_) => {
                // From here on the kernel's peak is that of the run. Not every kernel can: then it is that of the process.
                let _ = fs::write("/proc/self/clear_refs", "5");
                self.before = Some((Instant::now(), own_cpu_s()?));
            }
            Moment::After(_) => {
                let (begun, cpu_s) = self.before.context("a run ended that had not begun")?;
                (self.cpu_s, self.wall_s) = (Some(own_cpu_s()? - cpu_s), Some(begun.elapsed().as_secs_f64()));
                self.peak_rss_bytes = peak_rss_bytes()?;
            }
            Moment::Stands(_) => {}
        }
        Ok(())
    }

    fn cpu_share(&self) -> Option<f64> {
        self.cpu_s.zip(self.wall_s).map(|(cpu_s, wall_s)| cpu_s / wall_s)
    }
}

fn own_cpu_s() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
}

fn peak_rss_bytes() -> Result<Option<f64>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<f64> = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    Ok(kib.map(|kib| kib * 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_schedule_gives_the_next_to_whoever_is_free_first() {
        assert_eq!(list_schedule_s([3.0, 1.0, 1.0, 2.0].into_iter(), 2), 4.0);
        assert_eq!(list_schedule_s([3.0, 1.0, 1.0, 2.0].into_iter(), 1), 7.0);
        assert_eq!(list_schedule_s([3.0, 1.0].into_iter(), 8), 3.0);
    }

    #[test]
    fn this_process_has_a_peak() {
        assert!(peak_rss_bytes().unwrap().is_some_and(|bytes| bytes > 1e5));
    }
}
