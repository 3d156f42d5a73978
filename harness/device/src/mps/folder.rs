//! Pipe folders of our daemons: their names, location and removal.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::unistd::geteuid;

/// A short path: the folder contains a Unix socket.
const PLACE: &str = "/tmp";
const BEGINNING: &str = "collo-mps-";

/// An unused name: this process's pid, a count, and the clock's nanoseconds.
pub fn free() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (count, ns) = (COUNT.fetch_add(1, Ordering::Relaxed), collo_store::monotonic_ns());
    PathBuf::from(format!("{PLACE}/{BEGINNING}{}-{count}-{:x}", std::process::id(), ns & 0xff_ffff))
}

/// Create it, for this user alone.
pub fn make(pipe: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().mode(0o700).create(pipe)
}

/// Whether it has a name and location of ours.
pub fn is_named_so(pipe: &Path) -> bool {
    let name = pipe.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(BEGINNING));
    let plain = name.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
    plain && pipe.parent() == Some(Path::new(PLACE)) && pipe.as_os_str().len() <= super::LONGEST_FOLDER
}

/// Whether such a folder exists and belongs to us: a real one, not a link to another.
pub fn is_ours(pipe: &Path) -> bool {
    let own = |found: std::fs::Metadata| found.is_dir() && found.uid() == geteuid().as_raw();
    is_named_so(pipe) && std::fs::symlink_metadata(pipe).is_ok_and(own)
}

/// Remove it, if it is ours: nobody else can replace it, because its parent folder is sticky.
pub fn remove(pipe: &Path) {
    if is_ours(pipe) {
        let _ = fs_err::remove_dir_all(pipe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_that_we_make_is_taken_away() {
        assert!(is_named_so(&free()));
        for other in [
            "/tmp/collo-mps-",
            "/tmp/collo-mps-1/..",
            "/tmp/collo-mps-1/x",
            "/tmp/x",
            "/root",
            "/tmp/collo-mps-../root",
            "collo-mps-1",
        ] {
            assert!(!is_named_so(Path::new(other)), "{other}");
        }
        let pipe = free();
        make(&pipe).expect("a folder");
        std::fs::write(pipe.join("control"), "").expect("written");
        let link = free();
        std::os::unix::fs::symlink(&pipe, &link).expect("a link");
        remove(&link);
        assert!(link.is_symlink() && pipe.join("control").exists(), "what a link leads to is not touched");
        std::fs::remove_file(&link).expect("ours");
        remove(&pipe);
        assert!(!pipe.exists());
    }
}
