//! The CPU: its cores are those of this process's affinity, as far as the quota of its control group allows; its memory is the
//! machine's or the control group's, whichever is less.

use collo_plan::facts::{DeviceFacts, DeviceKind, core_list};

use crate::control_groups::{ControlGroups, field_of};

pub fn facts() -> DeviceFacts {
    let proc = |path: &str| fs_err::read_to_string(path).unwrap_or_default();
    let groups = ControlGroups::own();
    let files = groups.files("memory", "memory.max", "memory.limit_in_bytes");
    let limits = files.into_iter().filter_map(|file| limit(&fs_err::read_to_string(file).ok()?));
    let memory_bytes = field(&proc("/proc/meminfo"), "MemTotal").and_then(kib).into_iter().chain(limits).min();
    DeviceFacts {
        kind: DeviceKind::Cpu,
        name: "cpu".into(),
        cores: field(&proc("/proc/self/status"), "Cpus_allowed_list").and_then(core_list).unwrap_or_default(),
        quota_cores: groups.quota_cores(),
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
    field_of(text, name, ":")
}

/// The bytes of a size in kibibytes, `16384 kB`, as `/proc` has it.
pub fn kib(text: &str) -> Option<u64> {
    text.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
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
}
