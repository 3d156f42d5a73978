//! The CPU: its cores are those of this process's affinity, its memory is the machine's or the control group's, whichever is
//! less.

use collo_plan::facts::core_list;
use std::path::{Path, PathBuf};

use collo_plan::facts::{DeviceFacts, DeviceKind};

pub fn facts() -> DeviceFacts {
    let proc = |path: &str| fs_err::read_to_string(path).unwrap_or_default();
    let limits =
        cgroup_limit_files(&proc("/proc/self/cgroup")).into_iter().filter_map(|file| limit(&fs_err::read_to_string(file).ok()?));
    let memory_bytes = field(&proc("/proc/meminfo"), "MemTotal").and_then(kib).into_iter().chain(limits).min();
    DeviceFacts {
        kind: DeviceKind::Cpu,
        name: "cpu".into(),
        cores: field(&proc("/proc/self/status"), "Cpus_allowed_list").and_then(core_list).unwrap_or_default(),
        memory_bytes,
        host_memory_bytes: memory_bytes,
        gpus: Vec::new(),
        driver: None,
        cuda: None,
        has_mps: false,
        as_found: false,
        fixed: Default::default(),
        python: Default::default(),
    }
}

/// `name:` and its value, as in `/proc/self/status`.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The bytes of a size in kibibytes, `16384 kB`, as `/proc` has it.
pub fn kib(text: &str) -> Option<u64> {
    text.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The files that may contain a memory limit: those of this process's groups and of every group above, in version 2 and version
/// 1.
fn cgroup_limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (roots, file): (&[&str], &str) = match controllers {
            "" => (&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], "memory.max"),
            c if c.split(',').any(|c| c == "memory") => (&["/sys/fs/cgroup/memory"], "memory.limit_in_bytes"),
            _ => continue,
        };
        for root in roots {
            // Inside a container the path is the host's and may not exist here, but the root is then the container's own group.
            let group = Path::new(root).join(path.trim_start_matches('/'));
            files.extend(group.ancestors().take_while(|g| g.starts_with(root)).map(|g| g.join(file)));
        }
    }
    files
}

/// A limit in bytes; `None` for `max` and the enormous number of version 1.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_core_and_some_memory() {
        let facts = facts();
        assert!(!facts.cores.is_empty());
        assert!(facts.memory_bytes.is_some_and(|b| b > 1 << 27), "{facts:?}");
        assert_eq!(facts.record().kind, "cpu");
    }

    #[test]
    fn a_limit_that_is_none_is_absent() {
        assert_eq!(limit("max\n"), None);
        assert_eq!(limit("9223372036854771712\n"), None);
        assert_eq!(limit("500000000\n"), Some(500_000_000));
    }

    #[test]
    fn limits_are_looked_for_in_the_group_and_all_above() {
        let files = cgroup_limit_files("4:memory:/a/b\n0::/c\n3:cpu:/x\n");
        let text: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
        assert_eq!(
            text[..3],
            [
                "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes"
            ]
        );
        assert_eq!(text[3..5], ["/sys/fs/cgroup/c/memory.max", "/sys/fs/cgroup/memory.max"]);
    }
}
