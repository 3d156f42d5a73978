//! The control groups of this process: limits that they set, and what they count.
//!
//! In: `/proc/self/cgroup` and the files of version 1 and version 2, as the kernel documents them
//! (<https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files>,
//! <https://docs.kernel.org/scheduler/sched-bwc.html>). Out: paths and numbers; what cannot be read is absent.

use std::path::{Path, PathBuf};

use collo_store::CpuThrottling;

/// A name, what separates it, and its value, one a line.
pub(crate) fn field_of<'a>(text: &'a str, name: &str, separator: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(separator)).map(str::trim)
}

/// The groups of a process, in every hierarchy.
#[derive(Debug, Clone)]
pub struct ControlGroups {
    /// Where they are mounted.
    root: PathBuf,
    /// A line for each hierarchy: `4:memory:/a/b`, `0::/a` for version 2.
    lines: String,
}

impl ControlGroups {
    /// Those of this process.
    pub fn own() -> ControlGroups {
        let lines = fs_err::read_to_string("/proc/self/cgroup").unwrap_or_default();
        ControlGroups { root: "/sys/fs/cgroup".into(), lines }
    }

    /// The files of this name that may be there, under version 2 or version 1: in the group and in every group above.
    pub fn files(&self, controller: &str, v2: &str, v1: &str) -> Vec<PathBuf> {
        self.folders(controller).into_iter().map(|(folder, version)| folder.join(if version == 2 { v2 } else { v1 })).collect()
    }

    /// The folders of the groups that may limit by this controller, each before those above it, with the version of its files.
    fn folders(&self, controller: &str) -> Vec<(PathBuf, u8)> {
        let mut folders = Vec::new();
        for line in self.lines.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            let (mounts, version) = match controllers {
                "" => (vec![self.root.clone(), self.root.join("unified")], 2),
                // systemd mounts two at one place, and links each name to it.
                all if all.split(',').any(|c| c == controller) => (vec![self.root.join(controller)], 1),
                _ => continue,
            };
            for mount in mounts {
                // Inside a container the path is the host's and may not exist here, but the root is then the container's own group.
                let group = mount.join(path.trim_start_matches('/'));
                folders.extend(group.ancestors().take_while(|g| g.starts_with(&mount)).map(|g| (g.to_path_buf(), version)));
            }
        }
        folders
    }

    /// The least of the CPU quotas of the group and those above it, in cores; `None` without one.
    pub fn quota_cores(&self) -> Option<f64> {
        self.folders("cpu").iter().filter_map(|(folder, version)| quota_cores(folder, *version)).min_by(f64::total_cmp)
    }

    /// In how many periods a quota was used up, at least: the group and those above it each count for themselves, and the largest counts
    /// are taken, because a sum would count a period twice. `None` if none of them counts it.
    pub fn throttling(&self) -> Option<CpuThrottling> {
        let of = |(folder, _): &(PathBuf, u8)| {
            let stat = fs_err::read_to_string(folder.join("cpu.stat")).ok()?;
            let number = |name: &str| field_of(&stat, name, " ")?.parse().ok();
            Some(CpuThrottling { periods: number("nr_periods")?, throttled: number("nr_throttled")? })
        };
        self.folders("cpu")
            .iter()
            .filter_map(of)
            .reduce(|a, b| CpuThrottling { periods: a.periods.max(b.periods), throttled: a.throttled.max(b.throttled) })
    }
}

/// `cpu.max` is `QUOTA PERIOD` in microseconds, with the word `max` for no limit; version 1 has a file for each, and -1.
fn quota_cores(folder: &Path, version: u8) -> Option<f64> {
    let read = |name: &str| fs_err::read_to_string(folder.join(name)).ok();
    let (quota, period) = match version {
        2 => read("cpu.max")?.trim().split_once(' ').map(|(quota, period)| (quota.to_string(), period.to_string()))?,
        _ => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
    };
    let number = |text: String| text.trim().parse::<f64>().ok().filter(|us| *us > 0.0);
    Some(number(quota)? / number(period)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups whose files are written here.
    fn groups(lines: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, ControlGroups) {
        let root = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = root.path().join(name);
            fs_err::create_dir_all(path.parent().expect("below")).expect("made");
            fs_err::write(path, text).expect("written");
        }
        let groups = ControlGroups { root: root.path().into(), lines: lines.into() };
        (root, groups)
    }

    #[test]
    fn limits_are_looked_for_in_the_group_and_all_above() {
        let groups = ControlGroups { root: "/sys/fs/cgroup".into(), lines: "4:memory:/a/b\n0::/c\n3:cpu:/x\n".into() };
        let files = groups.files("memory", "memory.max", "memory.limit_in_bytes");
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

    #[test]
    fn a_quota_of_version_2_is_the_least_of_the_group_and_those_above() {
        let stat = "usage_usec 10\nnr_periods 237\nnr_throttled 70\nthrottled_usec 900\n";
        let files = [
            ("pod/cpu.max", "150000 100000\n"),
            ("pod/cpu.stat", stat),
            ("pod/box/cpu.max", "max 100000\n"),
            ("pod/box/cpu.stat", "usage_usec 10\nnr_periods 60\nnr_throttled 50\n"),
        ];
        let (_root, groups) = groups("0::/pod/box\n", &files);
        assert_eq!(groups.quota_cores(), Some(1.5));
        assert_eq!(groups.throttling(), Some(CpuThrottling { periods: 237, throttled: 70 }));
    }

    #[test]
    fn a_quota_of_version_1_is_two_files_and_none_is_minus_one() {
        let files = [
            ("cpu/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
            ("cpu/try/cpu.cfs_quota_us", "15000\n"),
            ("cpu/try/cpu.cfs_period_us", "100000\n"),
            ("cpu/try/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 123\n"),
        ];
        let (_root, groups) = groups("3:cpu,cpuacct:/try\n2:memory:/\n", &files);
        assert_eq!(groups.quota_cores(), Some(0.15));
        assert_eq!(groups.throttling().map(|found| found.throttled), Some(4));
    }

    #[test]
    fn without_a_quota_and_without_control_groups_there_is_none() {
        let (_root, unlimited) = groups("0::/\n", &[("cpu.max", "max 100000\n"), ("cpu.stat", "usage_usec 1\n")]);
        assert_eq!((unlimited.quota_cores(), unlimited.throttling()), (None, None));
        let (_root, nothing) = groups("", &[]);
        assert_eq!((nothing.quota_cores(), nothing.throttling()), (None, None));
    }

    #[test]
    fn only_growth_is_throttling_of_a_run() {
        let at = |periods, throttled| CpuThrottling { periods, throttled };
        assert_eq!(at(237, 70).since(at(200, 70)), None);
        assert_eq!(at(237, 70).since(at(0, 0)), Some(at(237, 70)));
        assert_eq!(at(5, 1).since(at(200, 70)), None, "another group");
    }
}
