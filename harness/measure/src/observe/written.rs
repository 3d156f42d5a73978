//! What an observer wrote: the files of a folder, by size and by name.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Entries of its folder beyond this are not looked at one by one: so many files are too many in any case.
pub const MOST_FILES: usize = 100_000;

/// Whether a file, or a folder with one, has this name, or one that goes on from it without another digit: `member-1.json` is not of
/// `member-10`. An empty one is none.
pub fn has_file(start: &Path) -> bool {
    let (Some(folder), Some(name)) = (start.parent(), start.file_name().and_then(|name| name.to_str())) else { return false };
    let is_its = |entry: &std::fs::DirEntry| {
        let found = entry.file_name().to_string_lossy().into_owned();
        found.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let holds = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size_of(&entry.path()) != Some(0),
        Ok(meta) => meta.len() > 0,
        Err(_) => false,
    };
    std::fs::read_dir(folder).into_iter().flatten().flatten().filter(is_its).any(holds)
}

/// The total size of the files below a folder, bytes; what goes away meanwhile does not count. `None` if they are too many.
pub fn size_of(folder: &Path) -> Option<u64> {
    let (mut sum, mut seen, mut left) = (0u64, 0, vec![folder.to_path_buf()]);
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_FILES {
                return None;
            }
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => left.push(entry.path()),
                Ok(meta) => sum = sum.saturating_add(meta.len()),
                Err(_) => {}
            }
        }
    }
    Some(sum)
}

/// What files occupy that these processes have open on the disk of this folder and that have no name any more, bytes: no listing shows
/// them, and they go with the processes.
pub fn unlinked_bytes(folder: &Path, pids: impl Iterator<Item = u32>) -> u64 {
    let Ok(disk) = std::fs::metadata(folder).map(|meta| meta.dev()) else { return 0 };
    let open = pids.flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let files = open.filter_map(|entry| std::fs::metadata(entry.path()).ok());
    let nameless = files.filter(|meta| meta.is_file() && meta.nlink() == 0 && meta.dev() == disk);
    let by_file: BTreeMap<u64, u64> = nameless.map(|meta| (meta.ino(), meta.blocks() * 512)).collect();
    by_file.values().sum()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_file_without_a_name_counts_once_while_a_process_has_it_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = "head -c 1048576 /dev/zero > a; exec 3<a 4<a; echo; read go; rm a; echo; read go";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (mut order, mut answer) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut heard = [0];
        answer.read_exact(&mut heard).expect("the file is open");
        assert_eq!(unlinked_bytes(folder.path(), std::iter::once(child.id())), 0, "it has a name");
        order.write_all(b"\n").expect("it listens");
        answer.read_exact(&mut heard).expect("it has no name any more");
        let found = unlinked_bytes(folder.path(), std::iter::once(child.id()));
        assert!((1 << 20..1 << 21).contains(&found), "{found}");
        drop(order);
        child.wait().expect("it ends");
    }

    #[test]
    fn everything_below_a_folder_counts_by_its_size() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("a")).expect("made");
        std::fs::write(folder.path().join("a/b"), [0; 1000]).expect("written");
        std::fs::write(folder.path().join("c"), [0; 24]).expect("written");
        assert_eq!(size_of(folder.path()), Some(1024));
        assert_eq!(size_of(Path::new("/no/such/folder")), Some(0));
    }

    #[test]
    fn what_another_member_wrote_is_no_word_of_this_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("member-10.json"), "x").expect("written");
        std::fs::create_dir(at("member-2")).expect("made");
        std::fs::write(at("member-3.json"), "").expect("written");
        let told = |member: usize| has_file(&at(&format!("member-{member}")));
        assert_eq!([1, 2, 3, 10].map(told), [false, false, false, true]);
        std::fs::write(at("member-2/epoch-0.json"), "x").expect("written");
        assert!(told(2));
    }
}
