//! Production lines, with blanks and comments. In: packages. Out: lines of each package, room and file.
//!
//! A room is a folder or a file at the top of a package's `src`; `lib.rs` and `main.rs` are none. A file counts whole or not at all,
//! but for its items under `#[cfg(test)]`.

use std::collections::BTreeMap;

use crate::checkout::Package;
use crate::ratchet::Counts;

#[derive(Debug, Clone, Default)]
pub struct Lines {
    pub packages: BTreeMap<String, usize>,
    /// By `package/room`.
    pub rooms: BTreeMap<String, usize>,
    /// By `package/src/path`.
    pub files: BTreeMap<String, usize>,
}

pub fn lines(packages: &[Package]) -> Lines {
    let mut lines = Lines::default();
    for package in packages {
        for (file, production) in package.production() {
            let count = production.lines;
            *lines.packages.entry(package.name.to_string()).or_default() += count;
            lines.files.insert(format!("{}/src/{}", package.name, file.path), count);
            if let Some(room) = file.room() {
                *lines.rooms.entry(format!("{}/{room}", package.name)).or_default() += count;
            }
        }
    }
    lines
}

pub fn counts(lines: &BTreeMap<String, usize>) -> Counts {
    lines.iter().map(|(name, lines)| (name.clone(), (*lines).into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_a_folder_with_the_file_of_its_name() {
        let texts = [
            ("lib.rs", "mod room;\n"),
            ("room.rs", "mod inner;\n\n// a comment\n#[cfg(test)]\nmod tests {\n}\n"),
            ("room/inner.rs", "fn a() {}\n"),
            ("room/tests.rs", "fn a() {}\n"),
            ("other.rs", "fn a() {}\n"),
        ];
        let texts = texts.map(|(path, text)| (path.into(), text.into())).into();
        let lines = lines(&[Package::of("p", &texts)]);
        assert_eq!(lines.packages["p"], 6);
        assert_eq!(lines.rooms, [("p/room".to_string(), 4), ("p/other".to_string(), 1)].into());
        assert_eq!(lines.files["p/src/room.rs"], 3);
        assert_eq!(lines.files.len(), 4);
    }
}
