//! `collo doctor`: what this machine can measure, what is missing, and what to do about it. Looks, and touches nothing.

use collo_measure::python::{self, Environment, PinSet};
use collo_measure::sampler::PackageEnergy;
use collo_measure::{DeviceFacts, machine};
use serde_json::json;

use super::{Context, Ended};
use crate::{exit, say};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// As it should be.
    Good,
    /// Changes numbers.
    Changes,
    /// Can be put right.
    Fixable,
    /// Does not exist here.
    Absent,
}

struct Check {
    mark: Mark,
    subject: &'static str,
    text: String,
    hint: Option<String>,
}

impl Check {
    fn new(mark: Mark, subject: &'static str, text: impl Into<String>) -> Self {
        Check { mark, subject, text: text.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

pub fn run(context: &Context<'_>, _a: &crate::args::Doctor) -> Ended {
    let facts = DeviceFacts::cpu();
    let checks = vec![cpu(&facts), load(&facts), memory(), python(context), gpu(), energy(), pressure(), build(), store(context)];
    let verdict = "can measure: workloads on the CPU, `solo` and `naive`. Cannot yet: anything on a GPU";
    if context.arguments.json {
        let list: Vec<_> =
            checks.iter().map(|c| json!({"check": c.subject, "mark": word(c.mark), "text": c.text, "hint": c.hint})).collect();
        say::json(&json!({"schema": 1, "checks": list, "device": facts.record()}));
        return Ok(exit::DONE);
    }
    for c in &checks {
        say::result(format!("{} {:<8} {}", sign(c.mark), c.subject, c.text));
        if let Some(hint) = &c.hint {
            say::result(format!("           hint: {hint}"));
        }
    }
    say::result(verdict);
    Ok(exit::DONE)
}

fn sign(mark: Mark) -> char {
    match mark {
        Mark::Good => '✓',
        Mark::Changes => '!',
        Mark::Fixable => '✗',
        Mark::Absent => '–',
    }
}

fn word(mark: Mark) -> &'static str {
    match mark {
        Mark::Good => "good",
        Mark::Changes => "changes numbers",
        Mark::Fixable => "fixable",
        Mark::Absent => "absent",
    }
}

fn cpu(facts: &DeviceFacts) -> Check {
    let kernel = nix::sys::utsname::uname().map(|u| u.release().to_string_lossy().into_owned()).unwrap_or_default();
    let version = kernel.split('.').take(2).collect::<Vec<_>>().join(".");
    let cores = match facts.cores.len() {
        1 => "1 core".to_string(),
        n => format!("{n} cores"),
    };
    let memory = facts.memory_bytes.map(|b| format!(", {:.0} GiB", b as f64 / f64::from(1 << 30))).unwrap_or_default();
    Check::new(Mark::Good, "cpu", format!("{cores}{memory}, Linux {version}: naive sharing can be measured"))
}

fn load(facts: &DeviceFacts) -> Check {
    let load = fs_err::read_to_string("/proc/loadavg").unwrap_or_default();
    match load.split_whitespace().next().and_then(|l| l.parse::<f64>().ok()) {
        None => Check::new(Mark::Absent, "load", "the load of this machine cannot be read"),
        Some(load) if load > 0.3 * facts.cores.len() as f64 => {
            Check::new(Mark::Changes, "load", format!("{load:.1} on average over one minute: others use this machine"))
                .hint("what else runs: `top`; times measured beside it are longer and spread more")
        }
        Some(load) => Check::new(Mark::Good, "load", format!("{load:.1} on average over one minute")),
    }
}

fn memory() -> Check {
    match machine::available_memory_bytes() {
        None => Check::new(Mark::Absent, "memory", "the free memory of this machine cannot be read"),
        Some(free) => {
            let gib = free as f64 / f64::from(1 << 30);
            let text = format!("{gib:.1} GiB available; a member with torch takes about 0.8");
            Check::new(if gib < 1.0 { Mark::Changes } else { Mark::Good }, "memory", text)
        }
    }
}

fn python(context: &Context<'_>) -> Check {
    let found = match python::find_system() {
        Ok(found) => found,
        Err(e) => {
            let check = Check::new(Mark::Fixable, "python", e.to_string());
            return match e.hint() {
                Some(hint) => check.hint(hint),
                None => check,
            };
        }
    };
    let version = &found.version;
    let Ok(project) = context.project() else {
        return Check::new(Mark::Good, "python", format!("{version}; outside a project, so no pins to look for"))
            .hint("`collo init DIR` writes one");
    };
    match Environment::of(&project.workloads(), &python::cache_folder(), PinSet::for_this_machine()) {
        Err(e) => Check::new(Mark::Fixable, "python", e.to_string()),
        Ok(environment) => match environment.ready() {
            Ok(Some(ready)) => {
                let torch = ready.facts.get("torch").map(|v| format!(", torch {v}")).unwrap_or_default();
                Check::new(Mark::Good, "python", format!("{version}{torch}, in {}", environment.folder().display()))
            }
            _ => {
                let (load, disk) = environment.size();
                let text = format!(
                    "{version}; the environment comes with the first run ({:.1} GB to load, {:.1} GB on disk)",
                    load as f64 / 1e9,
                    disk as f64 / 1e9
                );
                Check::new(Mark::Good, "python", text)
            }
        },
    }
}

fn gpu() -> Check {
    match collo_measure::has_gpu() {
        true => Check::new(Mark::Absent, "gpu", "an NVIDIA driver is there, and this collo measures on the CPU only"),
        false => Check::new(Mark::Absent, "gpu", "no NVIDIA GPU: there is no /dev/nvidiactl"),
    }
    .hint("`collo run quickstart` measures the CPU")
}

fn energy() -> Check {
    match PackageEnergy::missing() {
        None => Check::new(Mark::Good, "energy", "RAPL: the processor packages' counters can be read"),
        Some(reason) if reason.contains("root") => {
            Check::new(Mark::Fixable, "energy", reason).hint("`sudo chmod -R a+r /sys/class/powercap/intel-rapl:0`")
        }
        Some(reason) => Check::new(Mark::Absent, "energy", reason),
    }
}

fn pressure() -> Check {
    match std::path::Path::new("/proc/pressure/cpu").exists() {
        true => Check::new(Mark::Good, "pressure", "the kernel tells how long tasks wait for CPU, memory and storage"),
        false => Check::new(Mark::Absent, "pressure", "this kernel does not tell pressure (PSI)"),
    }
}

fn build() -> Check {
    match cfg!(debug_assertions) {
        false => Check::new(Mark::Good, "build", "release"),
        true => Check::new(Mark::Changes, "build", "dev: sampling and small reports are as good, large reports are slow")
            .hint("for real campaigns: `just install`, or `cargo install --locked --path harness/cli`"),
    }
}

fn store(context: &Context<'_>) -> Check {
    let Ok(runs) = context.runs() else { return Check::new(Mark::Absent, "runs", "this folder cannot be read") };
    let mut folder = runs.path().to_path_buf();
    while !folder.exists() && folder.pop() {}
    let writable = nix::unistd::access(&folder, nix::unistd::AccessFlags::W_OK).is_ok();
    let free = nix::sys::statvfs::statvfs(&folder).map(|s| s.blocks_available() as f64 * s.fragment_size() as f64).ok();
    match (writable, free) {
        (false, _) => Check::new(Mark::Fixable, "runs", format!("{} cannot be written to", folder.display()))
            .hint("`collo -C DIR` works in another folder"),
        (true, Some(free)) if free < 1e9 => {
            Check::new(Mark::Fixable, "runs", format!("{:.2} GB are free in {}", free / 1e9, folder.display()))
        }
        (true, free) => {
            let gb = free.map(|f| format!("{:.0} GB are free", f / 1e9)).unwrap_or_else(|| "writable".into());
            Check::new(Mark::Good, "runs", format!("{gb} in {}", folder.display()))
        }
    }
}
