//! Whether scripts of a project may be started only to be described: what shows a project executes nothing of it.
//!
//! In: what the user asked for, and the user's notes of projects in which a run was stored. Out: a consent, without which nothing is
//! described. The notes lie in the user's state folder: what lies in a project, its stored runs too, came with it if it was unpacked.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use collo_device::state_folder;
use collo_plan::project::Project;
use collo_store::sha256_text;

/// The user has what is described executed anyway, or asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescribeConsent(());

impl DescribeConsent {
    /// The consent of a verb that executes the scripts whether they are described or not.
    pub fn by_running() -> DescribeConsent {
        DescribeConsent(())
    }

    /// Asked for, or by an earlier run in this project, which is the user's own.
    pub fn of(project: &Project, asked: bool) -> Option<DescribeConsent> {
        let was_run = || {
            let note = note_of(project.root(), &state_folder::look().ok()??)?;
            Some(note.is_file() && project.is_own())
        };
        (asked || was_run() == Some(true)).then_some(DescribeConsent(()))
    }
}

/// A note is the path of its project, in the kernel's limit (PATH_MAX: limits.h(0p)).
const LONGEST_PATH_BYTES: u64 = 4096;

/// Note that a run was stored in this project. A state folder that cannot be written, or is not trusted, costs the note alone.
pub fn note_run(project: &Project) {
    let _ = write_note(project.root());
}

fn write_note(root: &Path) -> Option<()> {
    let state = state_folder::make().ok()?;
    let note = note_of(root, &state)?;
    if note.exists() {
        return None;
    }
    let folder = note.parent()?;
    std::fs::create_dir_all(folder).ok()?;
    // Those of projects that are gone.
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let of_what = collo_text::read_small_text(&entry.path(), LONGEST_PATH_BYTES).unwrap_or_default();
        let of_what = Path::new(&of_what);
        // A disk that is not mounted now may come back.
        let is_gone = of_what.parent().is_some_and(Path::is_dir) && !of_what.is_dir();
        if is_gone {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    collo_store::place_file(&note, root.canonicalize().ok()?.to_str()?.as_bytes()).ok()
}

/// The place of the note for a project: for this very folder, not for another that is unpacked in its place.
fn note_of(root: &Path, state: &Path) -> Option<PathBuf> {
    let found = std::fs::metadata(root).ok()?;
    // Not every file system knows it.
    let made = found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    // Its device has another number after the next boot, on many file systems.
    let text = format!("{} {} {}", root.canonicalize().ok()?.display(), found.ino(), made.as_nanos());
    Some(state.join(state_folder::PROJECTS).join(&sha256_text(&text)[..32]))
}
