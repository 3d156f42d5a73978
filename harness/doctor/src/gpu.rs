//! The driver and its GPUs: models, users, permissions, and what would spoil a number.

use std::path::Path;

use collo_device::allocation::Allocation;
use collo_device::driver::DriverTarget;
use collo_device::{lease, namespace};
use collo_gpus::mig::{Cards, GpuModel};
use collo_plan::facts::{Driver, Gpu, SilentGpu};
use collo_prepare::python::PinSet;

use crate::check::{Check, Mark};
use crate::indices::{self, ranges};

/// Printed first.
pub fn simulated(driver: &Driver) -> Option<Check> {
    let any = driver.gpus.iter().any(|gpu| gpu.simulated);
    any.then(|| Check::new(Mark::Changes, "simulated", "every number here comes from a model"))
}

pub fn driver(driver: &Driver) -> Check {
    let version = &driver.version;
    let cuda = driver.cuda.map(|v| format!("CUDA {}.{}", v / 1000, v % 1000 / 10)).unwrap_or_else(|| "CUDA unknown".into());
    // A small card that only shows pictures is not computed on.
    let capability = driver.gpus.iter().filter(|g| g.computes()).filter_map(|g| g.capability).min();
    match PinSet::for_driver(driver.cuda.map(|cuda| DriverTarget { cuda, capability })) {
        Ok(set) => Check::new(Mark::Good, "driver", format!("{version}: {cuda}, so Python's `{}` set", set.name())),
        Err(e) => {
            let check = Check::new(Mark::Fixable, "driver", format!("{version}: {e}"));
            match e.hint() {
                Some(hint) => check.hint(hint),
                None => check,
            }
        }
    }
}

fn index(gpu: &Gpu) -> Option<u32> {
    gpu.at.as_ref().map(|at| at.index)
}

fn indices<'a>(gpus: impl Iterator<Item = &'a Gpu>) -> Vec<u32> {
    gpus.filter_map(index).collect()
}

/// `0–7 NVIDIA A100-SXM4-40GB; MIG off on 0–6, on on 7 (7×1g.5gb)`
pub fn gpus(driver: &Driver) -> Check {
    if driver.gpus.is_empty() {
        let all = silent(driver).join("; ");
        let text = if all.is_empty() { "the driver responds, but has no GPU".into() } else { all };
        return Check::new(Mark::Fixable, "gpus", text).hint(driver.hint_of_silent());
    }
    let mut models: Vec<(&str, Vec<u32>)> = Vec::new();
    for gpu in &driver.gpus {
        match models.iter_mut().find(|(name, _)| *name == gpu.name) {
            Some((_, all)) => all.extend(index(gpu)),
            None => models.push((&gpu.name, index(gpu).into_iter().collect())),
        }
    }
    let models: Vec<String> = models.iter().map(|(name, all)| format!("{} {name}", ranges(all))).collect();
    let mut states: Vec<(String, Vec<u32>)> = Vec::new();
    for gpu in driver.gpus.iter().filter(|g| g.has_mig) {
        let state = match &gpu.partition {
            None => "unknown".to_string(),
            Some(p) if gpu.card.is_none() && !p.mig => "off, its profiles are known once it is on".into(),
            Some(p) if !p.mig => "off".into(),
            Some(p) if p.instances.is_empty() => "on, no instance".into(),
            Some(p) => format!("on ({p})"),
        };
        match states.iter_mut().find(|(known, _)| *known == state) {
            Some((_, all)) => all.extend(index(gpu)),
            None => states.push((state, index(gpu).into_iter().collect())),
        }
    }
    let states: Vec<String> = match states.as_slice() {
        [] => vec!["no MIG".into()],
        [(state, _)] => vec![format!("MIG {state}")],
        many => many.iter().enumerate().map(|(n, s)| state_words(n == 0, s)).collect(),
    };
    let pending = indices(driver.gpus.iter().filter(|g| g.mig_pending));
    let text = format!("{}; {}", models.join(", "), states.join(", "));
    let silent = silent(driver);
    if !silent.is_empty() {
        return Check::new(Mark::Fixable, "gpus", format!("{text}; {}", silent.join("; "))).hint(driver.hint_of_silent());
    }
    match pending.is_empty() {
        true => Check::new(Mark::Good, "gpus", text),
        false => Check::new(Mark::Fixable, "gpus", format!("{text}; another MIG mode is pending on {}", ranges(&pending)))
            .hint("`sudo nvidia-smi --gpu-reset`, or a reboot, applies it"),
    }
}

/// GPUs that are listed but do not respond, a sentence each.
fn silent(driver: &Driver) -> Vec<String> {
    driver.silent.iter().map(SilentGpu::text).collect()
}

/// GPUs that a batch system or a container allocated to this process, if known.
pub fn allocation(driver: &Driver) -> Option<Check> {
    match Allocation::of_environment(driver) {
        Ok(None) => None,
        Ok(Some(a)) => {
            let cards: Vec<u32> = a.cards.iter().copied().collect();
            Some(Check::new(Mark::Good, "allocation", format!("`{}`: {} may be used", a.source, indices::gpus(&cards))))
        }
        Err(e) => {
            let check = Check::new(Mark::Fixable, "allocation", e.what());
            Some(check.hint("`unset` the variable if it is stale; a batch system allocates GPUs with the job"))
        }
    }
}

/// `MIG off on 0–6`, `on on 7 (7×1g.5gb)`
fn state_words(first: bool, (state, all): &(String, Vec<u32>)) -> String {
    let begin = if first { "MIG " } else { "" };
    match state.split_once(' ') {
        Some((word, rest)) => format!("{begin}{word} on {} {rest}", ranges(all)),
        None => format!("{begin}{state} on {}", ranges(all)),
    }
}

/// A line for each user of a GPU.
pub fn in_use(driver: &Driver) -> Vec<Check> {
    let line = |gpu: &Gpu, words: String| Check::new(Mark::Changes, "in use", format!("{}: {words}", gpu.label()));
    driver.gpus.iter().flat_map(|gpu| gpu.company.to_text().into_iter().map(move |words| line(gpu, words))).collect()
}

/// Whether this user may partition this GPU. The driver's answer comes first: root in a container may lack the permission. With
/// the capability `mig/config` instances may be changed; the MIG mode requires root (nvml.h).
pub fn may_cut(gpu: &Gpu) -> bool {
    let root = nix::unistd::geteuid().is_root();
    let capability = || has_capability(Path::new("/proc/driver/nvidia/capabilities/mig/config"), Path::new("/dev/nvidia-caps"));
    let is_on = gpu.partition.as_ref().is_some_and(|p| p.mig);
    // A model's cards have no rights of their own.
    gpu.has_mig && gpu.may_cut.unwrap_or(true) && (root || gpu.simulated || (is_on && capability()))
}

/// Whether this user has a capability of the driver: who may read its device file. The file below `/proc` names that file, is readable by all users
/// and grants nothing itself, except under R450, where it is empty and reading it is the right
/// (<https://docs.nvidia.com/datacenter/tesla/mig-user-guide/device-nodes-and-capabilities.html>).
fn has_capability(named: &Path, devices: &Path) -> bool {
    let Ok(text) = fs_err::read_to_string(named) else { return false };
    let minor = text.lines().find_map(|line| line.strip_prefix("DeviceFileMinor:")?.trim().parse::<u32>().ok());
    let may_read =
        |minor: u32| nix::unistd::access(&devices.join(format!("nvidia-cap{minor}")), nix::unistd::AccessFlags::R_OK).is_ok();
    minor.is_none_or(may_read)
}

/// Whether this user may partition the GPUs here.
pub fn right(driver: &Driver) -> bool {
    driver.gpus.iter().any(may_cut)
}

pub fn mig(driver: &Driver, right: bool) -> Check {
    let able = indices(driver.gpus.iter().filter(|g| g.has_mig));
    if able.is_empty() {
        return Check::new(Mark::Absent, "mig", none_responds(driver).unwrap_or("no GPU here has MIG"));
    }
    let known = indices(driver.gpus.iter().filter(|g| g.has_known_instances()));
    if known.is_empty() {
        let first = driver.gpus.iter().find(|g| g.has_mig);
        let why = first.map(Gpu::why_no_profiles).unwrap_or_default();
        let check =
            Check::new(Mark::Fixable, "mig", format!("the possible partitions of {} are unknown: {why}", indices::gpus(&able)));
        return match first.and_then(|g| g.partition.as_ref()).is_some_and(|p| p.mig) {
            true => check.hint("a virtual machine gets its instances from its host; `--as-found` uses them"),
            false => check.hint("`sudo collo mig apply on --gpu N` turns MIG on"),
        };
    }
    if right {
        let who = if driver.gpus.iter().any(|g| g.simulated) { "any user the model permits" } else { "this user" };
        return Check::new(Mark::Good, "mig", format!("{} can be partitioned by {who}", indices::gpus(&known)));
    }
    let told = driver.gpus.iter().any(|g| g.may_cut == Some(false));
    let why = if told { "the driver does not permit it" } else { "not root, capability `mig/config` not readable" };
    let text = format!("no permission to change {}: {why}", indices::gpus(&able));
    let cut = indices(driver.gpus.iter().filter(|g| g.partition.as_ref().is_some_and(|p| p.mig)));
    let now =
        if cut.is_empty() { String::new() } else { format!("; {} can be measured now with `--as-found`", indices::gpus(&cut)) };
    Check::new(Mark::Fixable, "mig", text).hint(format!("a sudo rule for `collo mig apply`{now}"))
}

/// What is known of no GPU, because none responds.
pub fn none_responds(driver: &Driver) -> Option<&'static str> {
    (driver.gpus.is_empty() && !driver.silent.is_empty()).then_some("unknown: no GPU responds")
}

pub fn persistence(driver: &Driver) -> Check {
    if !driver.gpus.iter().any(Gpu::computes) {
        return Check::new(Mark::Absent, "persistence", none_responds(driver).unwrap_or("no GPU here computes"));
    }
    let of = |state: Option<bool>| indices(driver.gpus.iter().filter(|g| g.computes() && g.persistence == state));
    let (off, unknown) = (of(Some(false)), of(None));
    if !off.is_empty() {
        return Check::new(Mark::Fixable, "persistence", format!("off on {}: energy is refused", indices::gpus(&off)))
            .hint("`sudo nvidia-smi -pm 1`");
    }
    match unknown.is_empty() {
        true => Check::new(Mark::Good, "persistence", "on: the driver stays loaded, and the energy counter keeps running"),
        false => {
            Check::new(Mark::Absent, "persistence", format!("the driver does not report it for {}", indices::gpus(&unknown)))
        }
    }
}

/// The files of `mig-profiles/` compared with the driver, a line for each model here.
pub fn profiles(driver: &Driver, cards: &Cards) -> Vec<Check> {
    let mut told: Vec<&GpuModel> = Vec::new();
    for card in driver.gpus.iter().filter_map(|gpu| gpu.card.as_ref()) {
        if told.iter().all(|other| other.name != card.name) {
            told.push(card);
        }
    }
    told.into_iter().map(|card| profile(card, cards.find(&card.name).ok())).collect()
}

fn profile(told: &GpuModel, file: Option<&GpuModel>) -> Check {
    let Some(file) = file else {
        let text = format!("no file of mig-profiles/ for {}: the driver's values are used, and there are no layouts", told.name);
        return Check::new(Mark::Absent, "profile", text);
    };
    let place = format!("mig-profiles/{}.toml", file.name);
    if told == file {
        let text = format!("the driver reports no profile, as some do while MIG is off, so {place} is used");
        return Check::new(Mark::Absent, "profile", text);
    }
    let differences = file.differences(told);
    let total = told.profiles.len();
    if differences.is_empty() {
        return Check::new(Mark::Good, "profile", format!("{place} and the GPU agree on {total} of {total} profiles"));
    }
    let differs = |name: &str| differences.iter().any(|d| d.starts_with(&format!("`{name}`")));
    let agree = told.profiles.iter().filter(|p| !differs(&p.name)).count();
    let text = format!("{place} and the GPU agree on {agree} of {total} profiles: {}", differences.join("; "));
    Check::new(Mark::Changes, "profile", text).hint(format!("the driver's values are used; write them into {place}"))
}

/// The cores near each GPU, which `cores = "gpu-local"` pins members to.
pub fn near(driver: &Driver) -> Check {
    let mut parts: Vec<String> = Vec::new();
    for gpu in driver.gpus.iter().filter(|g| g.computes()) {
        if let (Some(cores), Some(index)) = (gpu.near_cores(), index(gpu)) {
            parts.push(format!("{index} near cores {}", ranges(&cores)));
        }
    }
    match parts.is_empty() {
        true => {
            let unknown = none_responds(driver).unwrap_or("the kernel does not report the cores near a GPU");
            Check::new(Mark::Absent, "numa", unknown)
        }
        false => Check::new(Mark::Good, "numa", format!("GPU {}", parts.join("; "))),
    }
}

/// Which pid namespace the driver's lists use. `None` for simulated GPUs, which use that of the caller.
pub fn pids(driver: &Driver) -> Option<Check> {
    if driver.gpus.iter().all(|gpu| gpu.simulated) {
        return None;
    }
    namespace::is_first().map(of_namespace)
}

/// From 535.113.01 on the driver lists processes by their pid in the caller's namespace (open-gpu-kernel-modules,
/// `_gpuConvertPid`).
fn of_namespace(first: bool) -> Check {
    match first {
        true => Check::new(Mark::Good, "pids", "the host's: the driver lists all processes"),
        false => Check::new(
            Mark::Changes,
            "pids",
            "a container's: members are listed, processes outside are not; they are inferred from their memory and load",
        )
        .hint("started with `--pid=host`, the container sees all processes"),
    }
}

/// GPUs that are not as found.
pub fn pending_restores() -> Vec<Check> {
    let all = match lease::written() {
        Ok(all) => all,
        Err(e) => return vec![Check::new(Mark::Fixable, "left", e.what()).hint("`collo restore` shows more")],
    };
    let line = |j: &lease::Journal| match j.is_held() {
        true => Check::new(Mark::Changes, "held", format!("{}: process {} runs `{}`", j.label, j.process, j.experiment)),
        false => {
            let text = format!("{} is not as it was found ({}): {} of {}", j.label, j.found, j.campaign, j.experiment);
            Check::new(Mark::Fixable, "left", text).hint("`collo restore`")
        }
    };
    let unread = |u: &lease::Unread| {
        let text = format!("the journal {} cannot be read: {}", u.path.display(), u.why);
        Check::new(Mark::Fixable, "left", text).hint("`collo restore` shows what to do")
    };
    all.journals.iter().map(line).chain(all.unread.iter().map(unread)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_the_right_to_the_device_file_and_not_to_the_file_that_names_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (named, devices) = (folder.path().join("config"), folder.path().join("nvidia-caps"));
        let has = || has_capability(&named, &devices);
        assert!(!has(), "no driver");
        fs_err::write(&named, "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n").expect("written");
        assert!(!has(), "all users may read it");
        fs_err::create_dir(&devices).expect("made");
        fs_err::write(devices.join("nvidia-cap2"), "").expect("written");
        assert!(!has(), "that is another capability");
        fs_err::write(devices.join("nvidia-cap1"), "").expect("written");
        assert!(has());
        fs_err::write(&named, "").expect("written");
        fs_err::remove_dir_all(&devices).expect("removed");
        assert!(has(), "as under R450");
    }
}
