//! Programs of others, NVIDIA's before all, as `.ci/vendor-programs` unpacks them below `target/vendor/`: independent witnesses of what the
//! simulation and the code take for granted.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The major versions whose MPS was examined; a newer one that Debian has is not compared before its differences are known.
pub const EXAMINED: [u32; 3] = [535, 550, 555];

/// The programs of one driver.
#[derive(Debug, Clone)]
pub struct Vendor {
    pub major: u32,
    folder: PathBuf,
}

impl Vendor {
    /// Every examined driver whose programs are here. For each of the others the test that calls is skipped, in part. What its thread
    /// starts from now on creates no device files.
    #[track_caller]
    pub fn all(skip: fn(&str, &str)) -> Vec<Vendor> {
        without_device_files();
        let found = EXAMINED.map(|major| Vendor { major, folder: folder().join(major.to_string()) });
        let (here, missing): (Vec<Vendor>, Vec<Vendor>) = found.into_iter().partition(|v| v.control().is_file());
        for vendor in missing {
            let major = vendor.major;
            skip("vendor", &format!("NVIDIA's MPS of driver {major} is not in target/vendor: run `.ci/vendor-programs`"));
        }
        here
    }

    pub fn control(&self) -> PathBuf {
        self.programs().join("nvidia-cuda-mps-control")
    }

    /// The folder of its programs.
    pub fn programs(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// The folder of its libraries.
    pub fn libraries(&self) -> PathBuf {
        self.folder.join("lib")
    }

    /// What finds its programs and libraries, in front of all others.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let path = std::env::var("PATH").unwrap_or_default();
        [("PATH", format!("{}:{path}", self.programs().display())), ("LD_LIBRARY_PATH", self.libraries().display().to_string())]
    }

    /// The control program, which finds its server and libcuda.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.control());
        command.envs(self.environment());
        command
    }
}

/// Give up the right to create device files, for this thread and all that it starts. NVIDIA's libcuda, run by root, would create
/// /dev/nvidiactl, and the machine would look like one with a driver. A normal user has no such right to give up.
pub fn without_device_files() {
    use nix::libc;
    /// `CAP_MKNOD` of linux/capability.h.
    const MKNOD: libc::c_ulong = 27;
    // SAFETY: it changes a number in the kernel's record of this thread.
    let _ = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, MKNOD, 0, 0, 0) };
}

/// NVIDIA's profiler, where it is here.
pub fn nsys() -> Option<PathBuf> {
    Some(folder().join("nsys/bin/nsys")).filter(|path| path.is_file())
}

/// Prometheus' checker of text expositions, where it is here.
pub fn promtool() -> Option<PathBuf> {
    Some(folder().join("prometheus/bin/promtool")).filter(|path| path.is_file())
}

/// `target/vendor` of the build that this test is part of.
fn folder() -> PathBuf {
    let own = std::env::current_exe().expect("this test");
    let target = own.ancestors().find(|folder| folder.join("vendor").is_dir());
    target.unwrap_or(Path::new(env!("CARGO_MANIFEST_DIR"))).join("vendor")
}
