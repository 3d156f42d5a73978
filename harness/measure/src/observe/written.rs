//! What an observer wrote: the files of a folder, by size and by name.

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

#[cfg(test)]
mod tests {
    use super::*;

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
