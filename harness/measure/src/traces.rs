//! The traces of a project: the files of `traces/`.

use std::path::{Path, PathBuf};

use collo_schedule::trace::{LARGEST, Trace};
use collo_store::text::quoted;
use collo_store::{Diagnostic, Diagnostics, Source, nearest};

use crate::shown::shown;

/// The traces of a folder by name; none if there is no such folder.
pub fn all(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let mut all: Vec<(String, PathBuf)> =
        files.filter_map(|path| Some((path.file_stem()?.to_str()?.to_string(), path.clone()))).collect();
    all.sort();
    all
}

/// The trace of this name, or what is wrong with it.
pub fn find(folder: &Path, name: &str) -> Result<Trace, Diagnostics> {
    let known = all(folder);
    let Some((_, path)) = known.iter().find(|(own, _)| own == name) else {
        let unknown = Diagnostic::new(format!("unknown trace {}", quoted(name)));
        return Err(match nearest::nearest(name, known.iter().map(|(own, _)| own.as_str())) {
            Some(near) => unknown.note(format!("did you mean `{near}`? All: `collo list traces`")),
            None => unknown.note(format!("all: `collo list traces`; they are files in {}", shown(folder))),
        }
        .into());
    };
    let unreadable = |cause: String| Diagnostic::new(format!("trace {} cannot be read", quoted(&shown(path)))).caused_by(cause);
    let text = collo_store::read_small_text(path, LARGEST).map_err(|e| unreadable(e.to_string()))?;
    Trace::read(&Source::file(shown(path), text))
}
