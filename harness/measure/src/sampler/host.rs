//! Metrics of the whole machine: load, pressure, memory, clock, and the energy counters of the processor packages.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use collo_store::Sample;

use super::Sampler;
use super::process::field;
use crate::launch::tree;

/// CPU use of all processes, pressure stall information, available memory and the cores' clock.
pub struct Host {
    scope: Arc<str>,
    pressure: Vec<Pressure>,
    /// Time and busy clock ticks of the reading before.
    busy: Option<(u64, u64)>,
    ticks_per_s: f64,
    /// The cores that collo and its members may use: load elsewhere disturbs nothing here. All if unknown.
    cores: Option<Vec<u32>>,
}

/// One file of `/proc/pressure`: its total of stalled microseconds, read at two times, is a share of the time between.
struct Pressure {
    metric: &'static str,
    path: PathBuf,
    /// Time and total of the reading before.
    before: Option<(u64, u64)>,
}

impl Host {
    /// Whatever this kernel supports.
    pub fn new() -> Self {
        let files =
            [("cpu_pressure_some_ratio", "cpu"), ("io_pressure_some_ratio", "io"), ("memory_pressure_some_ratio", "memory")];
        let path = |name| PathBuf::from("/proc/pressure").join(name);
        let pressure = files.map(|(metric, name)| Pressure { metric, path: path(name), before: None });
        let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten();
        Host {
            scope: "host".into(),
            pressure: pressure.into(),
            busy: None,
            ticks_per_s: ticks.map_or(100.0, |t| t as f64),
            cores: tree::affinity(&[std::process::id()]),
        }
    }
}

impl Sampler for Host {
    fn sample(&mut self, at_ns: u64, samples: &mut Vec<Sample>) {
        let scope = &self.scope;
        let mut push = |metric, window_ns, value| {
            samples.push(Sample { at_ns, window_ns, source: "host", scope: scope.clone(), metric, value });
        };
        for Pressure { metric, path, before } in &mut self.pressure {
            // `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`: the total is microseconds of stall.
            let total_us = std::fs::read_to_string(path).ok().and_then(|text| field(&text, "total="));
            let now = total_us.map(|t| (at_ns, t));
            if let (Some((then_ns, then_us)), Some((_, now_us))) = (*before, now)
                && at_ns > then_ns
            {
                let window_ns = at_ns - then_ns;
                let stalled_ns = now_us.saturating_sub(then_us) as f64 * 1e3;
                push(*metric, window_ns, Some((stalled_ns / window_ns as f64).min(1.0)));
            }
            *before = now;
        }
        // In cores, as a member's: what is above the sum of the members is somebody else's.
        let now =
            busy_ticks(&std::fs::read_to_string("/proc/stat").unwrap_or_default(), self.cores.as_deref()).map(|t| (at_ns, t));
        if let (Some((then_ns, then)), Some((_, ticks))) = (self.busy, now)
            && at_ns > then_ns
        {
            let window_ns = at_ns - then_ns;
            let busy_s = ticks.saturating_sub(then) as f64 / self.ticks_per_s;
            push("cpu_ratio", window_ns, Some(busy_s / (window_ns as f64 / 1e9)));
        }
        self.busy = now;
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        push("memory_available_bytes", 0, field(&meminfo, "MemAvailable:").map(|kib| kib as f64 * 1024.0));
        if let Some(mhz) = clock_mhz() {
            push("cpu_frequency_mhz", 0, Some(mhz));
        }
    }
}

/// Clock ticks in which one of these cores (or any) was busy, for any process: user, nice, system, irq, softirq and steal.
fn busy_ticks(stat: &str, cores: Option<&[u32]>) -> Option<u64> {
    let of_line = |line: &str| {
        let fields: Vec<u64> = line.split_whitespace().skip(1).map_while(|f| f.parse().ok()).collect();
        // 3 is idle and 4 is waiting for storage; 8 and 9 (guests) are counted in user and nice already.
        (fields.len() >= 8).then(|| [0, 1, 2, 5, 6, 7].iter().map(|&i| fields[i]).sum::<u64>())
    };
    let Some(cores) = cores else { return of_line(stat.lines().find(|l| l.starts_with("cpu "))?) };
    let is_ours = |line: &str| {
        let number = line.strip_prefix("cpu").and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
        number.is_some_and(|n| cores.contains(&n))
    };
    let ours: Vec<u64> = stat.lines().filter(|l| is_ours(l)).filter_map(of_line).collect();
    (ours.len() == cores.len()).then(|| ours.iter().sum())
}

/// Mean clock of the cores; `None` if not reported (most virtual machines).
fn clock_mhz() -> Option<f64> {
    let mut khz = Vec::new();
    for cpu in std::fs::read_dir("/sys/devices/system/cpu").ok()?.flatten() {
        if let Ok(text) = std::fs::read_to_string(cpu.path().join("cpufreq/scaling_cur_freq"))
            && let Ok(value) = text.trim().parse::<f64>()
        {
            khz.push(value);
        }
    }
    (!khz.is_empty()).then(|| khz.iter().sum::<f64>() / khz.len() as f64 / 1e3)
}

/// Where the kernel shows RAPL.
const POWERCAP: &str = "/sys/class/powercap";

/// The energy counters of the processor packages (RAPL), summed and unwrapped; absent where they are not readable.
pub struct PackageEnergy {
    scope: Arc<str>,
    packages: Vec<Package>,
}

struct Package {
    counter: File,
    range_uj: u64,
    last_uj: Option<u64>,
    total_uj: u64,
}

/// Why the energy of the processor packages cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoEnergy {
    #[error("RAPL is there, but only root may read {}", .0.display())]
    Denied(PathBuf),
    #[error("no readable counter: this machine has no RAPL")]
    NotThere,
}

impl PackageEnergy {
    /// `None` if no package counter can be read here.
    pub fn find() -> Option<Self> {
        let mut packages = Vec::new();
        for zone in std::fs::read_dir(POWERCAP).ok()?.flatten() {
            let name = std::fs::read_to_string(zone.path().join("name")).unwrap_or_default();
            if !name.starts_with("package") {
                continue;
            }
            // One package that cannot be read makes the sum meaningless: then there is none.
            let counter = File::open(zone.path().join("energy_uj")).ok()?;
            let range = std::fs::read_to_string(zone.path().join("max_energy_range_uj")).ok()?;
            packages.push(Package { counter, range_uj: range.trim().parse().ok()?, last_uj: None, total_uj: 0 });
        }
        (!packages.is_empty()).then(|| PackageEnergy { scope: "host".into(), packages })
    }

    /// Why there is no package energy, for `doctor`; `None` if there is.
    pub fn missing() -> Option<NoEnergy> {
        let zones = std::fs::read_dir(POWERCAP).map(|d| d.flatten().map(|z| z.path()).collect::<Vec<_>>());
        let package = |zone: &PathBuf| std::fs::read_to_string(zone.join("name")).is_ok_and(|name| name.starts_with("package"));
        match zones.map(|z| z.into_iter().find(package)) {
            Ok(Some(zone)) => match File::open(zone.join("energy_uj")) {
                Ok(_) => None,
                Err(_) => Some(NoEnergy::Denied(zone)),
            },
            Ok(None) | Err(_) => Some(NoEnergy::NotThere),
        }
    }
}

impl Sampler for PackageEnergy {
    fn sample(&mut self, at_ns: u64, samples: &mut Vec<Sample>) {
        let mut sum_uj = Some(0);
        for package in &mut self.packages {
            sum_uj = sum_uj.zip(package.read()).map(|(sum, uj)| sum + uj);
        }
        let value = sum_uj.map(|uj| uj as f64 / 1e6);
        let scope = self.scope.clone();
        samples.push(Sample { at_ns, window_ns: 0, source: "rapl", scope, metric: "cpu_energy_j", value });
    }
}

impl Package {
    /// Microjoules since the first reading; the counter wraps at its range.
    fn read(&mut self) -> Option<u64> {
        let mut buffer = [0; 32];
        let n = self.counter.read_at(&mut buffer, 0).ok()?;
        let now: u64 = std::str::from_utf8(&buffer[..n]).ok()?.trim().parse().ok()?;
        let before = self.last_uj.replace(now).unwrap_or(now);
        self.total_uj += if now >= before { now - before } else { self.range_uj - before + now };
        Some(self.total_uj)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_energy_counter_that_wraps_goes_on_growing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("energy_uj");
        std::fs::write(&path, "900").unwrap();
        let mut p = Package { counter: File::open(&path).unwrap(), range_uj: 1000, last_uj: None, total_uj: 0 };
        assert_eq!(p.read(), Some(0));
        std::fs::write(&path, "950").unwrap();
        assert_eq!(p.read(), Some(50));
        std::fs::write(&path, "30").unwrap();
        assert_eq!(p.read(), Some(130));
    }

    #[test]
    fn busy_is_everything_but_idle_and_waiting_and_guests_count_once() {
        let stat =
            "cpu  100 10 50 9000 300 1 2 4 60 5\ncpu0 70 9 40 5000 200 1 2 3 60 5\ncpu1 30 1 10 4000 100 0 0 1 0 0\nintr 5\n";
        assert_eq!(busy_ticks(stat, None), Some(167));
        assert_eq!(busy_ticks(stat, Some(&[1])), Some(42));
        assert_eq!(busy_ticks(stat, Some(&[0, 1])), Some(167));
        assert_eq!(busy_ticks(stat, Some(&[1, 7])), None, "a core that is not told of is no idle core");
        assert_eq!(busy_ticks("intr 5", None), None);
    }

    #[test]
    fn pressure_is_a_share_of_the_time_between_two_readings() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cpu");
        let pressure = vec![Pressure { metric: "cpu_pressure_some_ratio", path: path.clone(), before: None }];
        let mut host = Host { scope: "host".into(), pressure, busy: None, ticks_per_s: 100.0, cores: None };
        let mut samples = Vec::new();
        std::fs::write(&path, "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0 total=0\n").unwrap();
        host.sample(1_000_000_000, &mut samples);
        assert!(samples.iter().all(|s| s.metric != "cpu_pressure_some_ratio"), "one reading is no share");
        std::fs::write(&path, "some avg10=0.00 avg60=0.00 avg300=0.00 total=251000\n").unwrap();
        host.sample(2_000_000_000, &mut samples);
        let found = samples.iter().find(|s| s.metric == "cpu_pressure_some_ratio").unwrap();
        assert_eq!((found.value, found.window_ns), (Some(0.25), 1_000_000_000));
    }
}
