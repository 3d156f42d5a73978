//! Whether this machine has an NVIDIA GPU with its driver.

use std::path::Path;

use crate::nvml;

/// Whether this machine has an NVIDIA GPU with its driver loaded, or a library is set in the driver's place.
pub fn has_gpu() -> bool {
    std::env::var_os(nvml::LIBRARY).is_some_and(|path| !path.is_empty()) || has_driver(Path::new("/dev/nvidiactl"))
}

/// Whether a driver is behind a device file. The file alone is no evidence: NVIDIA's libcuda, run by root, creates it where no driver is
/// loaded (that of 535.309.01, 550.163.01 and 555.58.02 was seen to), and then it cannot be opened.
fn has_driver(file: &Path) -> bool {
    use nix::errno::Errno;
    let absent = [Errno::ENOENT, Errno::ENXIO, Errno::ENODEV].map(|errno| errno as i32);
    std::fs::File::open(file).err().and_then(|e| e.raw_os_error()).is_none_or(|code| !absent.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_file_without_a_driver_behind_it_is_no_gpu() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!has_driver(&folder.path().join("nvidiactl")), "there is none");
        // To open a socket fails as to open a device file without its driver does: ENXIO, open(2).
        let bare = folder.path().join("bare");
        let _socket = std::os::unix::net::UnixListener::bind(&bare).expect("a socket");
        assert!(!has_driver(&bare));
        assert!(has_driver(Path::new("/dev/null")));
    }
}
