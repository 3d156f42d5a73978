//! The folder with collo's persistent state of GPUs, which nobody else may write.
//!
//! In: the environment and the user. Out: the folder, checked or created, or why it cannot be trusted: its contents decide what
//! is done to a GPU, often by root.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use collo_text::Diagnostic;
use collo_text::trust::{self, UserFolder};
use nix::fcntl::OFlag;

/// `COLLO_STATE`, else `collo` in `XDG_STATE_HOME` or in `.local/state` of the home.
pub(super) const FOLDER: UserFolder =
    UserFolder { name: "state folder", variable: "COLLO_STATE", xdg: "XDG_STATE_HOME", in_home: ".local/state", mode: 0o700 };

/// The folder in it with a note for each project of the user's in which something was run.
pub const PROJECTS: &str = "projects";

/// Where it is, or would be.
pub fn state_folder() -> PathBuf {
    FOLDER.path()
}

/// The folder, if it exists.
pub fn look() -> Result<Option<PathBuf>, Diagnostic> {
    FOLDER.look()?.map(|real| own(&real).map(|()| real)).transpose()
}

/// The folder, created if it does not exist.
pub fn make() -> Result<PathBuf, Diagnostic> {
    FOLDER.make()?;
    look()?.ok_or_else(|| FOLDER.unwritten(&std::io::ErrorKind::NotFound.into()))
}

/// Check that it is this user's own. If others can read it, their access is removed, unless it contains anything but collo's
/// files.
fn own(real: &Path) -> Result<(), Diagnostic> {
    let refused = |e: &dyn std::fmt::Display| FOLDER.refused(real, e);
    let found = std::fs::symlink_metadata(real).map_err(|e| refused(&e))?;
    trust::is_own(real, &found).map_err(|e| refused(&e))?;
    if found.mode() & 0o077 != 0 && std::fs::read_dir(real).is_ok_and(|all| all.flatten().all(|e| is_collos(&e.path()))) {
        std::fs::set_permissions(real, std::fs::Permissions::from_mode(0o700)).map_err(|e| refused(&e))?;
    }
    Ok(())
}

fn is_collos(path: &Path) -> bool {
    let ending = path.extension().and_then(|e| e.to_str());
    path.file_name().is_some_and(|n| n == super::mps::NO_DAEMON || n == PROJECTS)
        || matches!(ending, Some("json" | "lock" | "aside"))
}

/// Replace a file of the folder by one with this content, atomically and flushed.
pub(super) fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let aside = path.with_extension("aside");
    let mut options = std::fs::OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    let mut file = options.open(&aside)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&aside, path)?;
    std::fs::File::open(path.parent().unwrap_or(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_ours_is_closed_to_others_and_one_of_the_system_is_left_as_it_is() {
        let root = tempfile::tempdir().expect("a folder");
        let mode = |path: &Path| path.metadata().expect("there").mode() & 0o7777;
        for (name, file, left) in [("own", "GPU-1.json", 0o700), ("other", "passwd", 0o755)] {
            let folder = root.path().join(name);
            std::fs::create_dir(&folder).expect("a folder");
            std::fs::write(folder.join(file), "").expect("written");
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).expect("its mode");
            own(&folder).expect("it is ours");
            assert_eq!(mode(&folder), left, "{name}");
        }
        let open = root.path().join("open");
        std::fs::create_dir(&open).expect("a folder");
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o1777)).expect("its mode");
        assert!(own(&open).expect_err("refused").to_string().contains("others may write"));
        assert_eq!(mode(&open), 0o1777);
    }

    #[test]
    fn what_is_written_is_whole_and_for_this_user_alone() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("GPU-1.json");
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("GPU-1.aside")).expect("a link");
        assert!(replace(&path, b"x").is_err(), "a link is not followed");
        std::fs::remove_file(root.path().join("GPU-1.aside")).expect("ours");
        replace(&path, b"x").expect("written");
        assert_eq!(
            (std::fs::read(&path).expect("there"), path.metadata().expect("there").mode() & 0o777),
            (b"x".to_vec(), 0o600)
        );
    }
}
