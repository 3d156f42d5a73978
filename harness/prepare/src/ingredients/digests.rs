//! The digests of files, each read once unless it may have changed.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// File system metadata of a file. Every write changes its ctime, which nobody can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A file changed this recently may change again without a new timestamp: timestamps are as coarse as the system's clock tick.
const SETTLED: Duration = Duration::from_secs(2);

/// Digests by path.
#[derive(Debug, Default)]
pub struct Digests {
    known: HashMap<PathBuf, (Stamp, String)>,
}

impl Digests {
    /// The digest of a regular file; `None` for anything else, or if it cannot be read.
    pub fn of(&mut self, path: &Path) -> Option<String> {
        let now = stamp(&std::fs::metadata(path).ok()?)?;
        if let Some((_, digest)) = self.known.get(path).filter(|(before, _)| *before == now) {
            return Some(digest.clone());
        }
        let file = collo_text::open_regular(path).ok()?;
        let opened = stamp(&file.metadata().ok()?)?;
        // No further than it is long: a file that grows has an end, and one of `/proc` has none.
        let digest = collo_store::sha256_of(file.take(opened.size)).ok()?;
        match is_settled(&opened) {
            true => drop(self.known.insert(path.to_path_buf(), (opened, digest.clone()))),
            false => drop(self.known.remove(path)),
        }
        Some(digest)
    }
}

fn stamp(meta: &std::fs::Metadata) -> Option<Stamp> {
    meta.is_file().then(|| Stamp {
        device: meta.dev(),
        inode: meta.ino(),
        size: meta.size(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
    })
}

fn is_settled(stamp: &Stamp) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = Duration::new(u64::try_from(stamp.changed.0).unwrap_or(0), 0);
    now.checked_sub(changed).is_some_and(|age| age > SETTLED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_rewritten_at_once_has_another_digest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut digests = Digests::default();
        let written: std::collections::BTreeSet<String> = (0..100)
            .map(|i| {
                std::fs::write(&path, format!("{i:03}")).unwrap();
                digests.of(&path).unwrap()
            })
            .collect();
        assert_eq!(written.len(), 100, "same size, same moment, another content");
    }

    #[test]
    fn what_has_settled_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "a").unwrap();
        let mut digests = Digests::default();
        let digest = digests.of(&path).unwrap();
        assert!(digests.known.is_empty(), "too young to be relied on");
        let now = stamp(&std::fs::metadata(&path).unwrap()).unwrap();
        digests.known.insert(path.clone(), (now, "as it was read".into()));
        assert_eq!(digests.of(&path).unwrap(), "as it was read");
        std::fs::write(&path, "b").unwrap();
        assert_ne!(digests.of(&path).unwrap(), digest);
    }
}
