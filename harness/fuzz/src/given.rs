//! Bytes as readers are given them: a text with a name, a file, the files of a folder.

use std::path::Path;
use std::sync::Arc;

use collo_text::Source;
use tempfile::TempDir;

/// The text that these bytes are. A file that is not UTF-8 is refused before anything reads it.
pub fn text(bytes: &[u8]) -> Option<Arc<Source>> {
    std::str::from_utf8(bytes).ok().map(|text| Source::file("given", text))
}

/// Writes out what a reader refused, as a person would see it.
pub fn shown<T, E: std::fmt::Display>(read: Result<T, E>) -> Option<T> {
    read.map_err(|wrong| std::hint::black_box(wrong.to_string())).ok()
}

/// A folder in memory, where there is such a place.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder can be made")
}

/// A file of a folder, which may lie in folders of its own.
pub fn put(folder: &Path, name: &str, bytes: &[u8]) {
    let file = folder.join(name);
    std::fs::create_dir_all(file.parent().unwrap_or(folder)).expect("a folder can be made");
    std::fs::write(file, bytes).expect("a file can be written");
}

/// Calls a reader of a file with a file of these bytes.
pub fn file<T>(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    let folder = folder();
    put(folder.path(), name, bytes);
    read(&folder.path().join(name))
}

/// The parts of an input for a reader of several files: what lies between lines of `%%`.
pub fn parts(bytes: &[u8]) -> Vec<&[u8]> {
    const BETWEEN: &[u8] = b"\n%%\n";
    let (mut parts, mut rest) = (Vec::new(), bytes);
    while let Some(at) = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
        parts.push(&rest[..at]);
        rest = &rest[at + BETWEEN.len()..];
    }
    parts.push(rest);
    parts
}
