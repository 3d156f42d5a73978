//! A control group for everything below collo, if one may be created: the kernel then knows which processes are ours, whatever a
//! process has done to its environment (Documentation/admin-guide/cgroup-v2.rst).
//!
//! It only groups. No controller is enabled for it, so resources are shared as without it, and its pressure is not accounted for.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::libc;
use nix::unistd::geteuid;

use crate::mark;

/// Prefix of the groups of collos, followed by the mark.
const PREFIX: &str = "collo.";
/// Maximum depth of the search for groups.
const DEPTH: usize = 12;

/// A door to the group of this collo, if there is one, for whoever is to [`enter`] it.
pub fn door() -> Option<OwnedFd> {
    static OWN: OnceLock<Option<File>> = OnceLock::new();
    OWN.get_or_init(|| make(&here()?)).as_ref()?.try_clone().ok().map(OwnedFd::from)
}

/// Go through it: this process is in the group from now on, and so is whatever it starts. Where that fails they are found by their marks
/// alone.
///
/// The kernel makes a process wait for a grace period here, 10 to 20 ms: whoever starts it should not.
pub fn enter(door: OwnedFd) {
    // Whoever writes `0` is moved itself.
    let _ = File::from(door).write_all(b"0");
}

/// Remove the group of this collo, whose processes have ended.
pub fn leave() {
    if let Some(here) = here() {
        let _ = std::fs::remove_dir(here.join(format!("{PREFIX}{}", mark::own())));
    }
}

fn make(here: &Path) -> Option<File> {
    if !may_be_cut(here) {
        return None;
    }
    let own = here.join(format!("{PREFIX}{}", mark::own()));
    std::fs::create_dir(&own).ok()?;
    let _ = File::options().write(true).open(own.join("cgroup.pressure")).and_then(|mut file| file.write_all(b"0"));
    File::options().write(true).open(own.join("cgroup.procs")).ok()
}

/// Whether we may create groups in this one. If systemd manages the tree it is the only writer, except below what it has
/// delegated (its CGROUP_DELEGATION.md); it marks that with an attribute of the folder, as root or as a user (`cg_is_delegated`,
/// cgroup-util.c).
fn may_be_cut(here: &Path) -> bool {
    let Ok(folder) = std::fs::metadata(here) else { return false };
    let shares_out = std::fs::read_to_string(here.join("cgroup.subtree_control")).is_ok_and(|on| !on.trim().is_empty());
    // sd_booted(3)
    let keeper = Path::new("/run/systemd/system").exists();
    folder.uid() == geteuid().as_raw() && !shares_out && (!keeper || is_delegated(here))
}

fn is_delegated(here: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(here.as_os_str().as_encoded_bytes()) else { return false };
    let says_so = |name: &std::ffi::CStr| {
        let mut value = [0u8; 8];
        // SAFETY: both texts end in 0, and no more is written than there is room for.
        let length = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
        length == 1 && value[0] == b'1'
    };
    says_so(c"trusted.delegate") || says_so(c"user.delegate")
}

/// The folder of this process's group; `None` without version 2.
fn here() -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    folder_of(group, &std::fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// Where groups of version 2 are mounted: the root of the mount, and its mount point (proc_pid_mountinfo(5)).
fn mount(mounts: &str) -> Option<(&str, &str)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        after.starts_with("cgroup2 ").then_some((fields.next()?, fields.next()?))
    })
}

fn folder_of(group: &str, mounts: &str) -> Option<PathBuf> {
    let (root, place) = mount(mounts)?;
    let below = Path::new(group).strip_prefix(root).ok().filter(|below| !below.starts_with(".."))?;
    Some(Path::new(place).join(below))
}

/// A group of some collo, by its encoded mark.
pub struct Cgroup {
    pub mark: String,
    folder: PathBuf,
}

/// All visible ones created by this user.
pub fn all() -> Vec<Cgroup> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some((_, place)) = mount(&mounts) else { return Vec::new() };
    let mut found = Vec::new();
    let mut queue = vec![(PathBuf::from(place), 0)];
    while let Some((folder, depth)) = queue.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            match name.strip_prefix(PREFIX) {
                _ if !metadata.is_dir() => {}
                Some(mark) if metadata.uid() == geteuid().as_raw() => {
                    found.push(Cgroup { mark: mark.into(), folder: entry.path() });
                }
                _ if depth < DEPTH => queue.push((entry.path(), depth + 1)),
                _ => {}
            }
        }
    }
    found
}

impl Cgroup {
    /// Processes in it and in groups below it.
    pub fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        let mut queue = vec![self.folder.clone()];
        while let Some(folder) = queue.pop() {
            let text = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            found.extend(text.lines().filter_map(|pid| pid.parse::<u32>().ok()));
            let below = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            queue.extend(below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        }
        found
    }

    /// Kill all of them together, including those that are about to fork (Linux 5.14).
    pub fn kill(&self) {
        let _ = File::options().write(true).open(self.folder.join("cgroup.kill")).and_then(|mut file| file.write_all(b"1"));
    }

    /// Remove it, if it is empty.
    pub fn remove(&self) {
        let _ = std::fs::remove_dir(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "30 24 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime shared:10 - cgroup cgroup rw,cpu
32 30 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:11 - cgroup2 cgroup2 rw,nsdelegate
";

    #[test]
    fn the_folder_of_a_group_is_below_the_mount_of_version_2() {
        let place = |group, mounts| folder_of(group, mounts).map(|folder| folder.display().to_string());
        assert_eq!(place("/user.slice/a.scope", HYBRID).as_deref(), Some("/sys/fs/cgroup/unified/user.slice/a.scope"));
        assert_eq!(place("/", HYBRID).as_deref(), Some("/sys/fs/cgroup/unified/"));
        let bound = "32 30 0:28 /docker/17 /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(place("/docker/17/job", bound).as_deref(), Some("/sys/fs/cgroup/job"));
        assert_eq!(place("/docker/18", bound), None);
        assert_eq!(place("/../18", HYBRID), None, "it is above what this namespace may see");
        assert_eq!(place("/", "30 24 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"), None);
    }
}
