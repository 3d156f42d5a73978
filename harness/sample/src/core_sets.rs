//! How busy sets of CPU cores are, by all processes on them: the cards of a trace that is played on a CPU.

use std::sync::Arc;

use collo_store::Sample;

use super::Sampler;
use super::host::busy_ticks;
use collo_text::units::ranges;

/// Sets of cores, each with its own scope.
pub struct CoreSets {
    sets: Vec<CoreSet>,
    ticks_per_s: f64,
}

struct CoreSet {
    scope: Arc<str>,
    cores: Vec<u32>,
    /// Time and busy clock ticks of the reading before.
    before: Option<(u64, u64)>,
}

/// The scope of a set of cores: `cores:0-3`.
pub fn core_scope(cores: &[u32]) -> Arc<str> {
    format!("cores:{}", ranges(cores)).into()
}

impl CoreSets {
    pub fn of(sets: &[Vec<u32>]) -> CoreSets {
        let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten();
        let set = |cores: &Vec<u32>| CoreSet { scope: core_scope(cores), cores: cores.clone(), before: None };
        CoreSets { sets: sets.iter().map(set).collect(), ticks_per_s: ticks.map_or(100.0, |t| t as f64) }
    }
}

impl Sampler for CoreSets {
    fn sample(&mut self, at_ns: u64, samples: &mut Vec<Sample>) {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        for CoreSet { scope, cores, before } in &mut self.sets {
            let now = busy_ticks(&stat, Some(cores)).map(|ticks| (at_ns, ticks));
            if let (Some((then_ns, then)), Some((_, ticks))) = (*before, now)
                && at_ns > then_ns
            {
                let window_ns = at_ns - then_ns;
                let busy_s = ticks.saturating_sub(then) as f64 / self.ticks_per_s;
                let value = Some(busy_s / (window_ns as f64 / 1e9));
                samples.push(Sample { at_ns, window_ns, source: "proc", scope: scope.clone(), metric: "cpu_ratio", value });
            }
            *before = now;
        }
    }
}
