//! The folder with collo's persistent state of GPUs, which nobody else may write.
//!
//! In: the environment and the user. Out: the folder, checked or created, or why it cannot be trusted: its contents decide what
//! is done to a GPU, often by root.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use collo_text::Diagnostic;
use nix::fcntl::OFlag;

use super::trust::{self, Place};

/// The variable that overrides it.
const VARIABLE: &str = "COLLO_STATE";
/// Below the folder for state (XDG Base Directory Specification).
const NAME: &str = "collo";
/// The home of users without one: nothing can be created there.
const NO_HOME: &str = "/nonexistent";

/// `COLLO_STATE`, else `collo` in `XDG_STATE_HOME` or in `.local/state` of the home.
pub fn state_folder() -> PathBuf {
    chosen(|name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from), trust::home)
}

fn chosen(var: impl Fn(&str) -> Option<PathBuf>, home: impl Fn() -> Option<PathBuf>) -> PathBuf {
    // A relative one counts for nothing, says the specification.
    let state = var("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let in_home = || home().unwrap_or_else(|| NO_HOME.into()).join(".local/state");
    var(VARIABLE).unwrap_or_else(|| state.unwrap_or_else(in_home).join(NAME))
}

/// The folder, if it exists.
pub(super) fn look() -> Result<Option<PathBuf>, Diagnostic> {
    let path = state_folder();
    match trust::place(&path) {
        Ok(Place::There(real)) => own(&real).map(|()| Some(real)),
        Ok(Place::Missing(_)) => Ok(None),
        Err(e) => Err(refused(&path, e.to_string())),
    }
}

/// The folder, created if it does not exist.
pub fn make() -> Result<PathBuf, Diagnostic> {
    let path = state_folder();
    if let Ok(Place::Missing(at)) = trust::place(&path) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&at).map_err(|e| unwritten(&path, &e))?;
    }
    // Looked at again: somebody may have been quicker.
    look()?.ok_or_else(|| unwritten(&path, &std::io::ErrorKind::NotFound.into()))
}

pub(super) fn unwritten(path: &Path, e: &std::io::Error) -> Diagnostic {
    Diagnostic::new(format!("the state folder {} cannot be written", path.display()))
        .caused_by(e.to_string())
        .hint(format!("`{VARIABLE}=DIR` puts it elsewhere"))
        .of_machine()
}

/// Check that it is this user's own. If others can read it, their access is removed, unless it contains anything but collo's
/// files.
fn own(real: &Path) -> Result<(), Diagnostic> {
    let found = std::fs::symlink_metadata(real).map_err(|e| refused(real, e.to_string()))?;
    if !found.is_dir() {
        return Err(refused(real, "it is not a folder"));
    }
    trust::is_own(real, &found).map_err(|e| refused(real, e.to_string()))?;
    if found.mode() & 0o077 != 0 && std::fs::read_dir(real).is_ok_and(|all| all.flatten().all(|e| is_collos(&e.path()))) {
        std::fs::set_permissions(real, std::fs::Permissions::from_mode(0o700)).map_err(|e| refused(real, e.to_string()))?;
    }
    Ok(())
}

fn is_collos(path: &Path) -> bool {
    let ending = path.extension().and_then(|e| e.to_str());
    path.file_name().is_some_and(|n| n == super::mps::NO_DAEMON) || matches!(ending, Some("json" | "lock" | "aside"))
}

fn refused(path: &Path, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(format!("the state folder {} is not used: others could have written there", path.display()))
        .caused_by(why)
        .hint(format!("`chmod 700` if it is yours; `{VARIABLE}=DIR` selects another, writable only by you"))
        .of_machine()
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
    fn what_was_found_is_kept_where_the_user_says_else_in_their_home_and_never_where_anybody_may_write() {
        let at = |state: Option<&str>, xdg: Option<&str>, home: Option<&str>| {
            let var = |name: &str| if name == VARIABLE { state } else { xdg }.map(PathBuf::from);
            chosen(var, || home.map(PathBuf::from)).display().to_string()
        };
        assert_eq!(at(Some("/s"), Some("/x"), Some("/h")), "/s");
        assert_eq!(at(None, Some("/x"), Some("/h")), "/x/collo");
        assert_eq!(at(None, Some("x"), Some("/h")), "/h/.local/state/collo");
        assert_eq!(at(None, None, None), "/nonexistent/.local/state/collo");
    }

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
