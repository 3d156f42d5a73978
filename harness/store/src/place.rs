//! Atomic file replacement: written under a unique temporary name, then renamed, so that readers see the old content or the new,
//! never a mixture, however many processes write.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fs_err as fs;

use crate::Result;

/// Marks the name of a file while it is written.
const ASIDE: &str = ".aside";
/// What a killed process left aside is removed by the next writer after this time.
const LEFT: Duration = Duration::from_secs(3600);

/// Write a temporary file, flush it, rename it into place, and flush the folder.
pub fn replace_file(path: &Path, content: &[u8]) -> Result<()> {
    place(path, content, true)?;
    if let Some(folder) = path.parent() {
        sync_folder(folder)?;
    }
    Ok(())
}

/// The same without waiting for the disk, for content that can be regenerated.
pub fn place_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    place(path, content, false)
}

fn place(path: &Path, content: &[u8], flush: bool) -> std::io::Result<()> {
    let aside = aside(path);
    // The error has the name that the file should get, not the one that it has meanwhile.
    let written: std::io::Result<()> = (|| {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&aside)?;
        file.write_all(content)?;
        if flush {
            file.sync_all()?;
        }
        std::fs::rename(&aside, path)
    })();
    if written.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&aside);
    }
    written.map_err(|e| std::io::Error::new(e.kind(), format!("failed to write `{}`: {e}", path.display())))
}

/// A unique name: of this process, and of this call.
fn aside(path: &Path) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Beside a name of the greatest length there is still room for what is added.
    let name: String = name.chars().take(40).collect();
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let begins = format!(".{name}.");
    sweep(folder, |name| name.starts_with(&begins) && name.ends_with(ASIDE));
    path.with_file_name(format!(".{name}.{}-{}{ASIDE}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// Remove from a folder what killed processes left aside long ago, files and folders with such names.
pub fn sweep(folder: &Path, is_aside: impl Fn(&str) -> bool) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let meta = || entry.metadata().ok().filter(|_| entry.file_name().to_str().is_some_and(&is_aside));
        let is_old = |meta: &std::fs::Metadata| meta.modified().ok()?.elapsed().ok().filter(|age| *age > LEFT);
        let Some(meta) = meta().filter(|meta| is_old(meta).is_some()) else { continue };
        // Somebody else may have been faster.
        let _ = if meta.is_dir() { std::fs::remove_dir_all(entry.path()) } else { std::fs::remove_file(entry.path()) };
    }
}

/// A new file: anything already there, a link or a pipe, is removed and not written to.
pub(crate) fn fresh_file(path: &Path) -> std::io::Result<fs::File> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path)?,
        Ok(_) => fs::remove_file(path)?,
        Err(_) => {}
    }
    fs::OpenOptions::new().write(true).create_new(true).open(path)
}

pub(crate) fn sync_folder(path: &Path) -> Result<()> {
    fs::File::open(path)?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn of_many_who_write_one_file_at_once_each_leaves_a_whole_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        place_file(&path, b"00").unwrap();
        std::thread::scope(|scope| {
            for writer in 1..=4u8 {
                let path = &path;
                scope.spawn(move || (0..200).for_each(|_| place_file(path, &vec![writer; 5000 + usize::from(writer)]).unwrap()));
            }
            for _ in 0..500 {
                let found = std::fs::read(&path).unwrap();
                assert!(found == b"00" || found.len() == 5000 + usize::from(found[0]), "half a file");
            }
        });
        assert_eq!(names(folder.path()), ["report.json"], "nothing is left aside");
    }

    #[test]
    fn what_a_killed_process_left_aside_long_ago_is_removed_and_a_living_ones_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join(".a.json.1-0.aside"), folder.path().join(".a.json.2-0.aside"));
        std::fs::write(&new, "").unwrap();
        std::fs::File::create(&old).unwrap().set_modified(std::time::SystemTime::now() - 2 * LEFT).unwrap();
        replace_file(&folder.path().join("a.json"), b"x").unwrap();
        let mut found = names(folder.path());
        found.sort();
        assert_eq!(found, [".a.json.2-0.aside", "a.json"]);
    }

    #[test]
    fn a_file_that_cannot_be_put_in_place_leaves_nothing_aside() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a.json/full")).unwrap();
        assert!(place_file(&folder.path().join("a.json"), b"x").is_err());
        assert_eq!(names(folder.path()), ["a.json"]);
        let absent = folder.path().join("absent/a.json");
        let why = place_file(&absent, b"x").unwrap_err().to_string();
        assert_eq!(why, format!("failed to write `{}`: No such file or directory (os error 2)", absent.display()));
    }

    #[test]
    fn a_fresh_file_is_written_through_no_link_and_into_no_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, link, pipe) = (folder.path().join("mine"), folder.path().join("link"), folder.path().join("pipe"));
        std::fs::write(&mine, "mine").unwrap();
        std::os::unix::fs::symlink(&mine, &link).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for place in [&link, &pipe] {
            fresh_file(place).unwrap().write_all(b"theirs").unwrap();
            assert_eq!(std::fs::read(place).unwrap(), b"theirs");
        }
        assert_eq!(std::fs::read(&mine).unwrap(), b"mine");
    }
}
