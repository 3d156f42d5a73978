//! Folders in which archives are unpacked. In: a folder. Out: a temporary one in it, which no other collo removes while this one lives.
//!
//! It is locked as long as it is needed, or this process lives, in whatever way that ends: what is not locked was left by a killed one.

use std::fs::TryLockError;
use std::path::Path;

use collo_text::{Diagnostic, open_folder, shown};
use fs_err as fs;
use tempfile::TempDir;

const ASIDE: &str = ".unpacking-";
/// Another collo may remove a folder before it is locked, so often in a row at most.
const ATTEMPTS: usize = 10;

/// A temporary folder with its lock, which is given up after it is removed.
pub struct Scratch {
    folder: TempDir,
    lock: fs::File,
}

impl Scratch {
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder alone, locked until this process ends, however it does.
    pub fn until_the_end(self) -> TempDir {
        std::mem::forget(self.lock);
        self.folder
    }
}

/// A new folder in this one, after what killed collos left there is removed.
pub fn scratch(into: &Path) -> Result<Scratch, Diagnostic> {
    sweep(into);
    for _ in 0..ATTEMPTS {
        let new = tempfile::Builder::new().prefix(ASIDE).tempdir_in(into);
        let new =
            new.map_err(|e| Diagnostic::new(format!("nothing can be unpacked in {}", shown(into))).of_machine().caused_by(e))?;
        let Ok(lock) = open_folder(new.path()) else { continue };
        if matches!(lock.file().try_lock(), Err(TryLockError::WouldBlock)) || !new.path().exists() {
            continue;
        }
        return Ok(Scratch { folder: new, lock });
    }
    Err(Diagnostic::new(format!("nothing can be unpacked in {}: its folders disappear", shown(into))).of_machine())
}

fn sweep(into: &Path) {
    for entry in std::fs::read_dir(into).into_iter().flatten().flatten() {
        let is_aside = entry.file_name().to_str().is_some_and(|name| name.starts_with(ASIDE));
        let Some(folder) = is_aside.then(|| open_folder(&entry.path()).ok()).flatten() else { continue };
        // Where folders cannot be locked, nothing is known of them.
        if folder.file().try_lock().is_ok() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().filter(|fd| fd.as_ref().is_ok_and(|fd| is_of_scratch(&fd.path()))).count()
    }

    fn is_of_scratch(descriptor: &Path) -> bool {
        std::fs::read_link(descriptor).is_ok_and(|file| file.to_string_lossy().contains("/one-after-the-other/"))
    }

    #[test]
    fn a_folder_that_is_no_longer_needed_keeps_no_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("one-after-the-other");
        std::fs::create_dir(&into).unwrap();
        for _ in 0..3 {
            let scratch = scratch(&into).unwrap();
            assert_eq!((scratch.path().is_dir(), descriptors()), (true, 1));
        }
        let kept = scratch(&into).unwrap().until_the_end();
        assert!(kept.path().is_dir() && descriptors() == 1);
    }

    #[test]
    fn what_a_killed_collo_left_is_removed_by_the_next_and_a_living_ones_is_not() {
        let into = tempfile::tempdir().unwrap();
        let left = into.path().join(".unpacking-left");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("half"), "x").unwrap();
        std::os::unix::fs::symlink("/", into.path().join(".unpacking-link")).unwrap();
        let first = scratch(into.path()).unwrap();
        assert!(!left.exists());
        let second = scratch(into.path()).unwrap();
        assert!(first.path().is_dir() && second.path().is_dir());
        drop(first);
        assert!(second.path().is_dir() && Path::new("/etc").is_dir());
    }
}
