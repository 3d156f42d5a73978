//! Names from a file that become part of a path, and names of files that become part of a file.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// The last part of a campaign's id, which is enough to name it.
pub fn last_part(id: &str) -> &str {
    id.rsplit('-').next().unwrap_or(id)
}

/// True if the text names one entry of a folder, not above, below or hidden: an experiment, a campaign, a cell.
pub fn is_plain(name: &str) -> bool {
    let is_one = matches!(Path::new(name).components().collect::<Vec<_>>()[..], [Component::Normal(only)] if only == name);
    is_one && name.len() <= 255 && !name.starts_with('.') && !name.chars().any(char::is_control)
}

/// A file's path below a run's folder as written in `run.json`: text unchanged, invalid bytes as `\xff`, backslashes doubled.
pub(crate) fn written(below: &Path) -> String {
    let mut text = String::new();
    for chunk in below.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\\"));
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!(r"\x{byte:02x}")));
    }
    text
}

/// The inverse of [`written`]; `None` for a path that leads out of the folder.
pub(crate) fn read(written: &str) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    let mut rest = written.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = match after {
            [b'\\', tail @ ..] if first == b'\\' => Some((b'\\', tail)),
            [b'x', high, low, tail @ ..] if first == b'\\' => digits(*high, *low).map(|byte| (byte, tail)),
            _ => None,
        };
        let (byte, tail) = escaped.unwrap_or((first, after));
        bytes.push(byte);
        rest = tail;
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    let inside = |c: Component<'_>| matches!(c, Component::Normal(part) if part != OsStr::new(""));
    (path.components().next().is_some() && path.components().all(inside)).then_some(path)
}

fn digits(high: u8, low: u8) -> Option<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    Some((value(high)? * 16 + value(low)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_one_thing_in_a_folder_is_plain() {
        for name in ["quickstart", "20261120-1842-7f3a", "tinyx2_naive_b32~b04e", "Größe", "a b"] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["", ".", "..", "../evil", "a/b", "a/", "/etc", "./a", ".hidden", "a\nb", "a\0b", &"x".repeat(256)] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn every_name_of_a_file_comes_back() {
        for name in [&b"member-0.log"[..], b"a/b.log", b"\xff\xfe.log", b"a\\xff", b"\\", b"a\\\\b\xc3", "ü\u{1b}\n".as_bytes()]
        {
            let path = Path::new(OsStr::from_bytes(name));
            assert_eq!(read(&written(path)).as_deref(), Some(path), "{}", written(path));
        }
        assert_eq!(written(Path::new("mps/server.log")), "mps/server.log");
        assert_ne!(written(Path::new(OsStr::from_bytes(b"\xff"))), written(Path::new(r"\xff")));
    }

    #[test]
    fn a_name_that_leads_out_of_the_folder_is_none() {
        for name in ["", "..", "../a", "/etc/passwd", "a/../../b", r"\x2e\x2e/a", r"\x2fetc"] {
            assert_eq!(read(name), None, "{name}");
        }
    }
}
