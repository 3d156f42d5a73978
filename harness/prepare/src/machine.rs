//! The machine of a campaign, as found: read once, stored with the campaign, never interpreted here.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use collo_store::Machine;
use fs_err as fs;

use collo_device::cpu;
use collo_launch::{CommandOutput, Errand};
use collo_plan::facts::{CPU_MODEL, cpu_line};

/// Describe this machine; what cannot be read is absent.
pub fn describe(project: &Path, cores: u32, memory_bytes: u64, python: BTreeMap<String, String>) -> Machine {
    let cpuinfo = read("/proc/cpuinfo");
    let cpu_line = |name: &str| cpu_line(&cpuinfo, name);
    let uname = nix::sys::utsname::uname().ok();
    let text = |s: &std::ffi::OsStr| s.to_string_lossy().into_owned();
    let siblings = cpu_line("siblings").and_then(|s| s.parse::<u32>().ok());
    let physical = cpu_line("cpu cores").and_then(|s| s.parse::<u32>().ok()).filter(|&c| c > 0);
    Machine {
        hostname: uname.as_ref().map(|u| text(u.nodename())),
        kernel: uname.as_ref().map(|u| format!("{} {}", text(u.sysname()), text(u.release()))),
        os: os_release(),
        cpu_model: cpu_line(CPU_MODEL),
        cpu_cores: cores,
        cpu_threads_per_core: siblings.zip(physical).map(|(s, p)| s / p),
        numa_nodes: numa_nodes(),
        memory_bytes,
        governor: first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        virtualization: cpuinfo.contains(" hypervisor").then(|| "hypervisor".to_string()),
        load_1min: read("/proc/loadavg").split_whitespace().next().and_then(|l| l.parse().ok()),
        git: git_version(project, None),
        collo: env!("CARGO_PKG_VERSION").into(),
        build: if cfg!(debug_assertions) { "dev" } else { "release" }.into(),
        driver: None,
        cuda: None,
        gpus: Vec::new(),
        python,
        withheld: collo_launch::environment::withheld(),
    }
}

/// The commit that last touched a path (or of the whole checkout), with `-dirty` where the path has changes; absent outside git, and where git does not answer.
pub fn git_version(folder: &Path, path: Option<&Path>) -> Option<String> {
    let answer = |arguments: &[&str]| {
        let asked = git(folder).args(arguments).args(path.iter().flat_map(|path| [OsStr::new("--"), path.as_os_str()]));
        Some(asked.ask().ok().filter(CommandOutput::success)?.out().trim().to_string())
    };
    let commit = answer(&["log", "-1", "--format=%h"]).filter(|c| !c.is_empty())?;
    let dirty = !answer(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if dirty { format!("{commit}-dirty") } else { commit })
}

/// A git query. The checkout may be large and on a slow disk, so the wait is limited.
pub fn git(folder: &Path) -> Errand {
    Errand::to("git", Duration::from_secs(120)).arg("-C").arg(folder)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn first_line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.lines().next()?.to_string())
}

fn os_release() -> Option<String> {
    let text = read("/etc/os-release");
    let line = text.lines().find(|l| l.starts_with("PRETTY_NAME="))?;
    Some(line.split_once('=')?.1.trim_matches('"').to_string())
}

fn numa_nodes() -> Option<u32> {
    let nodes = fs::read_dir("/sys/devices/system/node").ok()?.flatten();
    let count = nodes.filter(|n| n.file_name().to_string_lossy().strip_prefix("node").is_some_and(|r| r.parse::<u32>().is_ok()));
    Some(count.count() as u32).filter(|&n| n > 0)
}

/// Available memory right now, bytes.
pub fn available_memory_bytes() -> Option<u64> {
    cpu::field(&read("/proc/meminfo"), "MemAvailable").and_then(cpu::kib)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{git, git_version};

    #[test]
    fn a_checkout_is_dirty_by_what_changed_in_it_and_not_by_what_git_does_not_know() {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| git(folder.path()).args(arguments).ask().unwrap();
        let is_dirty = || git_version(folder.path(), None).expect("it has a commit").ends_with("-dirty");
        fs::write(folder.path().join("known"), "1").unwrap();
        run(&["init", "--quiet"]);
        run(&["add", "known"]);
        run(&["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "first"]);
        fs::write(folder.path().join("notes"), "1").unwrap();
        assert!(!is_dirty());
        fs::write(folder.path().join("known"), "2").unwrap();
        assert!(is_dirty());
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_processor() {
        let m = super::describe(std::path::Path::new("/"), 2, 1 << 30, Default::default());
        assert!(m.kernel.unwrap().starts_with("Linux "));
        assert!(m.load_1min.is_some());
        assert_eq!(m.git, None, "the root folder is no checkout");
    }
}
