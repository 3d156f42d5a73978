//! The load on the machine from others: without it, a figure of time means nothing.

use std::time::Instant;

use fs_err as fs;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Other people's use of the machine while a benchmark ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// The kernel's one-minute average at the beginning; earlier benchmarks count in it.
    pub average: f64,
    /// Cores used by anything but this process and those it started, on average.
    pub others_cores: f64,
}

/// With a higher load, in cores, a figure of time is not that of an idle machine.
const BUSY_CORES: f64 = 0.1;

impl Load {
    pub fn is_busy(&self) -> bool {
        self.others_cores > BUSY_CORES
    }
}

/// From its beginning until [`Watch::end`].
pub struct Watch {
    average: f64,
    begin: Instant,
    busy_ticks: u64,
    own_s: f64,
}

impl Watch {
    pub fn begin() -> anyhow::Result<Watch> {
        let average = fs::read_to_string("/proc/loadavg")?;
        let average = average.split_whitespace().next().and_then(|f| f.parse().ok());
        let average = average.ok_or_else(|| anyhow::anyhow!("`/proc/loadavg` has no number"))?;
        Ok(Watch { average, begin: Instant::now(), busy_ticks: busy_ticks()?, own_s: own_s()? })
    }

    /// Call it after every process that was started has ended: only then does its time count as ours.
    pub fn end(self) -> anyhow::Result<Load> {
        let busy_s = busy_ticks()?.saturating_sub(self.busy_ticks) as f64 / ticks_per_s();
        // Two clocks of different grain: a little below zero is zero.
        let others_s = (busy_s - (own_s()? - self.own_s)).max(0.0);
        Ok(Load { average: self.average, others_cores: others_s / self.begin.elapsed().as_secs_f64() })
    }
}

/// CPU time of this process and of its descendants that have ended.
fn own_s() -> anyhow::Result<f64> {
    let mut sum_us = 0;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who)?;
        sum_us += (usage.user_time() + usage.system_time()).num_microseconds();
    }
    Ok(sum_us as f64 / 1e6)
}

fn ticks_per_s() -> f64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().map_or(100.0, |t| t as f64)
}

/// User, nice, system, irq, softirq and steal of all cores.
fn busy_ticks() -> anyhow::Result<u64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let fields: Vec<u64> = stat.lines().next().unwrap_or_default().split_whitespace().skip(1).flat_map(str::parse).collect();
    anyhow::ensure!(fields.len() >= 8, "`/proc/stat` is not as expected");
    Ok([0, 1, 2, 5, 6, 7].iter().map(|&i| fields[i]).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_burnt_here_is_not_somebody_elses() {
        let watch = Watch::begin().unwrap();
        let (busy_before, own_before) = (watch.busy_ticks, watch.own_s);
        let begin = Instant::now();
        // CPU time, not the clock: on a machine that is full of others, this thread waits its turn.
        while own_s().unwrap() - own_before < 0.5 {}
        let load = watch.end().unwrap();
        let busy_s = (busy_ticks().unwrap() - busy_before) as f64 / ticks_per_s();
        assert!(load.others_cores * begin.elapsed().as_secs_f64() <= busy_s - 0.4, "{load:?}, {busy_s} s in all");
    }
}
