//! Metrics of the whole machine: load, pressure, memory, clock, and the energy counters of the processor packages and of the memory.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_store::Sample;

use super::Sampler;
use super::process::field;
use collo_launch::tree;

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

/// Over fewer clock ticks a load is mostly rounding: the next reading covers them.
const LEAST_TICKS: f64 = 10.0;

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
        let elapsed_ns = |(then_ns, _): (u64, u64)| at_ns.saturating_sub(then_ns);
        if let (Some(then), Some((_, ticks))) = (self.busy, now)
            && elapsed_ns(then) as f64 >= LEAST_TICKS / self.ticks_per_s * 1e9
        {
            let window_ns = elapsed_ns(then);
            let busy_s = ticks.saturating_sub(then.1) as f64 / self.ticks_per_s;
            // Ticks of a core that was idle may be made up for later.
            let most = self.cores.as_ref().map_or(f64::INFINITY, |cores| cores.len() as f64);
            push("cpu_ratio", window_ns, Some((busy_s / (window_ns as f64 / 1e9)).min(most)));
            self.busy = now;
        } else if self.busy.is_none() || now.is_none() {
            self.busy = now;
        }
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        push("memory_available_bytes", 0, field(&meminfo, "MemAvailable:").map(|kib| kib as f64 * 1024.0));
        if let Some(mhz) = clock_mhz() {
            push("cpu_frequency_mhz", 0, Some(mhz));
        }
    }
}

/// Clock ticks in which one of these cores (or any) was busy, for any process: user, nice, system, irq, softirq and steal.
pub(super) fn busy_ticks(stat: &str, cores: Option<&[u32]>) -> Option<u64> {
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

/// A domain of RAPL: what its counters cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaplDomain {
    /// The processor packages: their cores and everything else on the chip.
    Packages,
    /// The memory modules behind each package, which no package counter includes.
    Dram,
}

impl RaplDomain {
    /// Whether a zone belongs to it. A zone is `package-0`, below it `core`, `uncore`, `dram`; `psys` covers the whole platform and is
    /// left out, as it includes both domains on some machines
    /// (<https://www.kernel.org/doc/html/latest/power/powercap/powercap.html>). Some kernels list the same packages again, read
    /// another way, as `intel-rapl-mmio:0` (drivers/thermal/intel/int340x_thermal/processor_thermal_rapl.c).
    fn has(self, zone: &Path) -> bool {
        let again = zone.file_name().is_some_and(|name| name.to_string_lossy().starts_with("intel-rapl-mmio"));
        let name = std::fs::read_to_string(zone.join("name")).unwrap_or_default();
        !again
            && match self {
                RaplDomain::Packages => name.starts_with("package"),
                RaplDomain::Dram => name.trim() == "dram",
            }
    }

    fn metric(self) -> &'static str {
        match self {
            RaplDomain::Packages => "cpu_energy_j",
            RaplDomain::Dram => "dram_energy_j",
        }
    }

    fn zones(self, powercap: &Path) -> Vec<PathBuf> {
        let all = std::fs::read_dir(powercap).into_iter().flatten().flatten().map(|zone| zone.path());
        all.filter(|zone| self.has(zone)).collect()
    }
}

/// The energy counters of one domain (RAPL), summed over the packages and unwrapped; absent where they are not readable.
pub struct RaplEnergy {
    scope: Arc<str>,
    domain: RaplDomain,
    counters: Vec<Counter>,
}

struct Counter {
    file: File,
    range_uj: u64,
    last_uj: Option<u64>,
    total_uj: u64,
}

/// Why the energy of a domain cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoEnergy {
    #[error("RAPL is there, but only root may read {}", .0.display())]
    Denied(PathBuf),
    #[error("no readable counter: this machine has no RAPL")]
    NotThere,
}

impl RaplEnergy {
    /// `None` if the domain cannot be read here.
    pub fn find(domain: RaplDomain) -> Option<Self> {
        Self::find_in(Path::new(POWERCAP), domain)
    }

    fn find_in(powercap: &Path, domain: RaplDomain) -> Option<Self> {
        let counter = |zone: PathBuf| {
            let range = std::fs::read_to_string(zone.join("max_energy_range_uj")).ok()?;
            let file = File::open(zone.join("energy_uj")).ok()?;
            Some(Counter { file, range_uj: range.trim().parse().ok()?, last_uj: None, total_uj: 0 })
        };
        // One zone that cannot be read makes the sum meaningless: then there is none.
        let counters = domain.zones(powercap).into_iter().map(counter).collect::<Option<Vec<_>>>()?;
        (!counters.is_empty()).then(|| RaplEnergy { scope: "host".into(), domain, counters })
    }

    /// Why a domain has no energy, for `doctor`; `None` if it has.
    pub fn missing(domain: RaplDomain) -> Option<NoEnergy> {
        match domain.zones(Path::new(POWERCAP)).into_iter().next() {
            Some(zone) => match File::open(zone.join("energy_uj")) {
                Ok(_) => None,
                Err(_) => Some(NoEnergy::Denied(zone)),
            },
            None => Some(NoEnergy::NotThere),
        }
    }
}

impl Sampler for RaplEnergy {
    fn sample(&mut self, at_ns: u64, samples: &mut Vec<Sample>) {
        let mut sum_uj = Some(0);
        for counter in &mut self.counters {
            sum_uj = sum_uj.zip(counter.read()).map(|(sum, uj)| sum + uj);
        }
        let value = sum_uj.map(|uj| uj as f64 / 1e6);
        let (scope, metric) = (self.scope.clone(), self.domain.metric());
        samples.push(Sample { at_ns, window_ns: 0, source: "rapl", scope, metric, value });
    }
}

impl Counter {
    /// Microjoules since the first reading; the counter wraps at its range.
    fn read(&mut self) -> Option<u64> {
        let mut buffer = [0; 32];
        let n = self.file.read_at(&mut buffer, 0).ok()?;
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
        let mut p = Counter { file: File::open(&path).unwrap(), range_uj: 1000, last_uj: None, total_uj: 0 };
        assert_eq!(p.read(), Some(0));
        std::fs::write(&path, "950").unwrap();
        assert_eq!(p.read(), Some(50));
        std::fs::write(&path, "30").unwrap();
        assert_eq!(p.read(), Some(130));
    }

    #[test]
    fn each_domain_has_its_own_counters_and_none_is_counted_twice() {
        let dir = tempfile::tempdir().unwrap();
        // Two packages, as a server shows them, with one of them listed again.
        let zones = [
            ("intel-rapl:0", "package-0", 1_000_000),
            ("intel-rapl:0:0", "core", 400_000),
            ("intel-rapl:0:1", "dram", 20_000),
            ("intel-rapl:1", "package-1", 2_000_000),
            ("intel-rapl:1:0", "dram", 30_000),
            ("intel-rapl:2", "psys", 9_000_000),
            ("intel-rapl-mmio:0", "package-0", 1_000_000),
        ];
        let write = |folder: &str, file: &str, text: String| std::fs::write(dir.path().join(folder).join(file), text).unwrap();
        for (folder, name, _) in zones {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
            write(folder, "name", format!("{name}\n"));
            write(folder, "max_energy_range_uj", "262143328850\n".into());
            write(folder, "energy_uj", "0\n".into());
        }
        let domains = [RaplDomain::Packages, RaplDomain::Dram];
        let mut found = domains.map(|domain| RaplEnergy::find_in(dir.path(), domain).expect("readable"));
        let mut samples = Vec::new();
        found.iter_mut().for_each(|energy| energy.sample(1, &mut samples));
        for (folder, _, energy_uj) in zones {
            write(folder, "energy_uj", format!("{energy_uj}\n"));
        }
        found.iter_mut().for_each(|energy| energy.sample(2, &mut samples));
        let read: Vec<_> = samples[2..].iter().map(|s| (s.metric, s.value)).collect();
        assert_eq!(read, [("cpu_energy_j", Some(3.0)), ("dram_energy_j", Some(0.05))]);
        std::fs::remove_file(dir.path().join("intel-rapl:1:0/energy_uj")).unwrap();
        assert!(RaplEnergy::find_in(dir.path(), RaplDomain::Dram).is_none(), "half of the memory is not the memory");
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
    fn a_load_is_over_ten_ticks_at_least_and_no_more_than_the_cores() {
        let mut host = Host { scope: "host".into(), pressure: Vec::new(), busy: None, ticks_per_s: 100.0, cores: Some(vec![0]) };
        let mut windows = |times_ms: &[u64]| {
            let mut samples = Vec::new();
            times_ms.iter().for_each(|ms| host.sample(ms * 1_000_000, &mut samples));
            samples.retain(|s| s.metric == "cpu_ratio");
            assert!(samples.iter().all(|s| s.value.is_some_and(|load| load <= 1.0)), "{samples:?}");
            samples.iter().map(|s| s.window_ns / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!(windows(&[1000, 2000, 2007, 3000, 3099]), [1000, 1000], "7 ms are part of the next second");
        assert_eq!(windows(&[3100]), [100]);
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
