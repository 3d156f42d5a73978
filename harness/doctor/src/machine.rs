//! Checks that need no GPU: cores, memory, Python, a store.

use std::path::Path;

use collo_plan::facts::DeviceFacts;
use collo_plan::project::Project;
use collo_prepare::machine;
use collo_prepare::python::{self, PinSet, PythonEnvironment, PythonError};
use collo_sample::{NoEnergy, RaplDomain, RaplEnergy};
use collo_store::Runs;

use crate::check::{Check, Mark};

pub fn cpu(facts: &DeviceFacts) -> Check {
    let kernel = nix::sys::utsname::uname().map(|u| u.release().to_string_lossy().into_owned()).unwrap_or_default();
    let version = kernel.split('.').take(2).collect::<Vec<_>>().join(".");
    let cores = facts.record().cores_text().unwrap_or_else(|| "cores unknown".into());
    let memory = facts.memory_bytes.map(|b| format!(", {:.0} GiB", b as f64 / f64::from(1 << 30))).unwrap_or_default();
    let what = format!("{cores}{memory}, Linux {version}: naive sharing can be measured");
    match facts.record().quota_cores {
        None => Check::new(Mark::Good, "cpu", what),
        Some(_) => Check::new(Mark::Changes, "cpu", format!("{what}, and runs that use up the quota are indicative"))
            .hint("a container's `--cpus` or `limits.cpu`, or `CPUQuota=` of systemd, sets it; `--cpuset-cpus` gives whole cores instead"),
    }
}

pub fn load(facts: &DeviceFacts) -> Check {
    let load = fs_err::read_to_string("/proc/loadavg").unwrap_or_default();
    match load.split_whitespace().next().and_then(|l| l.parse::<f64>().ok()) {
        None => Check::new(Mark::Absent, "load", "the load of this machine cannot be read"),
        Some(load) if load > 0.3 * facts.cores.len() as f64 => {
            Check::new(Mark::Changes, "load", format!("{load:.1} on average over one minute: others use this machine"))
                .hint("`top` lists them; times measured meanwhile are longer and vary more")
        }
        Some(load) => Check::new(Mark::Good, "load", format!("{load:.1} on average over one minute")),
    }
}

pub fn memory() -> Check {
    match machine::available_memory_bytes() {
        None => Check::new(Mark::Absent, "memory", "the free memory of this machine cannot be read"),
        Some(free) => {
            let gib = free as f64 / f64::from(1 << 30);
            let text = format!("{gib:.1} GiB available; a member with torch takes about 0.8");
            Check::new(if gib < 1.0 { Mark::Changes } else { Mark::Good }, "memory", text)
        }
    }
}

pub fn python(project: Option<&Project>, own: Option<&Path>) -> Check {
    let unusable = |e: PythonError| {
        let check = Check::new(Mark::Fixable, "python", e.to_string());
        match e.hint() {
            Some(hint) => check.hint(hint),
            None => check,
        }
    };
    // Members would start with it.
    if let Some(e) = own.and_then(|own| python::own(own).err()) {
        return unusable(e);
    }
    let found = match python::find_system() {
        Ok(found) => found,
        Err(e) => return unusable(e),
    };
    let version = &found.version;
    let Some(project) = project else {
        return Check::new(Mark::Good, "python", format!("{version}; outside a project, so there are no pins"))
            .hint("`collo init DIR` writes one");
    };
    let environment =
        python::cache_folder().and_then(|cache| PythonEnvironment::of(&project.workloads(), &cache, PinSet::for_this_machine()));
    match environment {
        Err(e) => Check::new(Mark::Fixable, "python", e.to_string()),
        Ok(environment) => match environment.ready() {
            Ok(Some(ready)) => {
                let torch = ready.facts.get("torch").map(|v| format!(", torch {v}")).unwrap_or_default();
                Check::new(Mark::Good, "python", format!("{version}{torch}, in {}", environment.folder().display()))
            }
            _ => {
                let (load, disk) = environment.size();
                let text = format!(
                    "{version}; the first run provides the environment ({:.1} GB download, {:.1} GB on disk)",
                    load as f64 / 1e9,
                    disk as f64 / 1e9
                );
                Check::new(Mark::Good, "python", text)
            }
        },
    }
}

pub fn energy() -> Check {
    match RaplEnergy::missing(RaplDomain::Packages) {
        None => {
            let memory = match RaplEnergy::missing(RaplDomain::Dram) {
                None => ", and the memory's",
                Some(_) => "; those of the memory cannot",
            };
            Check::new(Mark::Good, "energy", format!("RAPL: the processor packages' counters can be read{memory}"))
        }
        Some(why @ NoEnergy::Denied(_)) => {
            Check::new(Mark::Fixable, "energy", why.to_string()).hint("`sudo chmod -R a+r /sys/class/powercap/intel-rapl:0`")
        }
        Some(why @ NoEnergy::NotThere) => Check::new(Mark::Absent, "energy", why.to_string()),
    }
}

pub fn pressure() -> Check {
    match std::path::Path::new("/proc/pressure/cpu").exists() {
        true => Check::new(Mark::Good, "pressure", "the kernel reports how long tasks wait for CPU, memory and storage"),
        false => Check::new(Mark::Absent, "pressure", "this kernel does not report pressure (PSI)"),
    }
}

pub fn build() -> Check {
    match cfg!(debug_assertions) {
        false => Check::new(Mark::Good, "build", "release"),
        true => Check::new(Mark::Changes, "build", "dev: sampling and small reports are unaffected, large reports are slow")
            .hint("for real campaigns: in the checkout of collo, `cargo install --locked --path harness/cli` installs a release build"),
    }
}

pub fn store(runs: Option<&Runs>) -> Check {
    let Some(runs) = runs else { return Check::new(Mark::Absent, "runs", "this folder cannot be read") };
    let mut folder = runs.path().to_path_buf();
    while !folder.exists() && folder.pop() {}
    if folder.is_file() {
        return Check::new(Mark::Fixable, "runs", format!("{} is a file, not a folder", folder.display()))
            .hint("move it away; `collo -C DIR` works in another folder");
    }
    let writable = nix::unistd::access(&folder, nix::unistd::AccessFlags::W_OK).is_ok();
    let free = nix::sys::statvfs::statvfs(&folder).map(|s| s.blocks_available() as f64 * s.fragment_size() as f64).ok();
    match (writable, free) {
        (false, _) => Check::new(Mark::Fixable, "runs", format!("{} is not writable", folder.display()))
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

/// Shared memory, through which workers of a data loader hand over batches.
pub fn shared_memory() -> Check {
    let size = nix::sys::statvfs::statvfs("/dev/shm").map(|s| s.blocks() as f64 * s.fragment_size() as f64).ok();
    match size {
        None => Check::new(Mark::Absent, "/dev/shm", "absent: data loaders with workers cannot run"),
        Some(bytes) if bytes < 1e9 => {
            Check::new(Mark::Changes, "/dev/shm", format!("{:.0} MB: data loaders with workers may exhaust it", bytes / 1e6))
                .hint("for a container: `--ipc=host` or `--shm-size=8g`")
        }
        Some(bytes) => Check::new(Mark::Good, "/dev/shm", format!("{:.0} GB", bytes / 1e9)),
    }
}
