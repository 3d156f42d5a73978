//! The machine of a campaign, as found: read once, stored with the campaign, never interpreted here.

use std::collections::BTreeMap;
use std::path::Path;

use collo_store::Machine;
use fs_err as fs;

use crate::git;
use collo_device::cpu;
use collo_plan::facts::{CPU_MODEL, cpu_line};

/// Describe this machine, and the checkout of a project; what cannot be read is absent.
pub fn describe(project: Option<&Path>, cores: u32, memory_bytes: u64, python: BTreeMap<String, String>) -> Machine {
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
        git: project.and_then(|project| git::version(project, None)),
        collo: env!("CARGO_PKG_VERSION").into(),
        build: if cfg!(debug_assertions) { "dev" } else { "release" }.into(),
        driver: None,
        cuda: None,
        gpus: Vec::new(),
        python,
        withheld: collo_launch::environment::withheld(),
    }
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
    #[test]
    fn this_machine_has_a_kernel_and_a_processor() {
        let m = super::describe(Some(std::path::Path::new("/")), 2, 1 << 30, Default::default());
        assert!(m.kernel.unwrap().starts_with("Linux "));
        assert!(m.load_1min.is_some());
        assert_eq!(m.git, None, "the root folder is no checkout");
    }
}
