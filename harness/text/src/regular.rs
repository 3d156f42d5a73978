//! Files that others may have put there: opened only if regular, read only up to a limit, so that no pipe, device, socket or
//! endless file can block collo.

use std::fs::{FileType, Metadata};
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt;
use nix::fcntl::OFlag;

/// Open a file for reading if it is a regular one, or a link to one. Never blocks on the other end of a pipe or on a device.
///
/// It is checked before it is opened, because opening alone can affect a device, and again once open, because it may have been
/// replaced meanwhile; in case it has, it is opened without waiting (`O_NONBLOCK`: open(2), fifo(7)).
pub fn open_regular(path: &Path) -> Result<fs::File> {
    let found = fs::metadata(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::new(ErrorKind::NotFound, format!("there is no file `{}`", path.display())),
        _ => e,
    })?;
    regular(path, &found)?;
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    regular(path, &file.metadata()?)?;
    Ok(file)
}

/// Open a folder, by its own name and not through a link to it.
pub fn open_folder(path: &Path) -> Result<fs::File> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    fs::OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)
}

/// Read a small file: an error if it is larger than `limit_bytes` or not regular, and never more memory than that.
pub fn read_small(path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
    let file = open_regular(path)?;
    let too_large = || {
        let text = format!("`{}` is larger than {limit_bytes} bytes, too large for its purpose", path.display());
        // Not `FileTooLarge`: a full disk has that error.
        Error::new(ErrorKind::InvalidData, text)
    };
    let length = file.metadata()?.len();
    if length > limit_bytes {
        return Err(too_large());
    }
    // A file may grow while it is read, and those of `/proc` have no length at all.
    let mut bytes = Vec::with_capacity(length as usize + 1);
    file.take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit_bytes { Err(too_large()) } else { Ok(bytes) }
}

/// The first bytes of a regular file, at most so many, however large it is.
pub fn read_begin(path: &Path, most_bytes: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last bytes of a regular file, at most so many, however large it is.
pub fn read_end(path: &Path, most_bytes: u64) -> Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(most_bytes)))?;
    let mut bytes = Vec::new();
    file.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// [`read_small`] for text.
pub fn read_small_text(path: &Path, limit_bytes: u64) -> Result<String> {
    String::from_utf8(read_small(path, limit_bytes)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Error::new(ErrorKind::InvalidData, format!("`{}` is not text: byte {at} is not UTF-8", path.display()))
    })
}

fn regular(path: &Path, found: &Metadata) -> Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let what = kind(found.file_type());
    Err(Error::new(ErrorKind::InvalidInput, format!("`{}` is {what}, not a readable file", path.display())))
}

/// What a non-regular file is: `a folder`, `a named pipe`.
fn kind(found: FileType) -> &'static str {
    match found {
        t if t.is_dir() => "a folder",
        t if t.is_fifo() => "a named pipe",
        t if t.is_socket() => "a socket",
        _ => "a device",
    }
}

/// The entries of a folder, sorted, without hidden files.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.')) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "twelve bytes").unwrap();
        assert_eq!(read_small_text(&file, 12).unwrap(), "twelve bytes");
        let refused = read_small(&file, 11).unwrap_err();
        assert!(refused.to_string().ends_with("a` is larger than 11 bytes, too large for its purpose"), "{refused}");
        std::fs::write(&file, b"a\xff").unwrap();
        assert!(read_small_text(&file, 12).unwrap_err().to_string().ends_with("is not text: byte 1 is not UTF-8"));
        std::os::unix::fs::symlink(&file, dir.path().join("link")).unwrap();
        assert_eq!(read_small(&dir.path().join("link"), 12).unwrap(), b"a\xff");
    }

    #[test]
    fn of_a_file_as_large_as_a_disk_its_begin_and_its_end_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "begin").unwrap();
        assert_eq!((read_begin(&file, 9).unwrap(), read_end(&file, 9).unwrap()), (b"begin".to_vec(), b"begin".to_vec()));
        let mut large = std::fs::File::options().append(true).open(&file).unwrap();
        large.set_len(1 << 40).unwrap();
        std::io::Write::write_all(&mut large, b"end").unwrap();
        assert_eq!((read_begin(&file, 5).unwrap(), read_end(&file, 3).unwrap()), (b"begin".to_vec(), b"end".to_vec()));
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        assert!(read_begin(&pipe, 1).is_err() && read_end(&pipe, 1).is_err());
    }

    #[test]
    fn what_would_never_end_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        nix::unistd::mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("zero")).unwrap();
        std::os::unix::fs::symlink(at("pipe"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("self"), at("self")).unwrap();
        let said = |path: &Path| read_small(path, 1 << 20).unwrap_err().to_string();
        assert!(said(&at("pipe")).ends_with("pipe` is a named pipe, not a readable file"), "{}", said(&at("pipe")));
        assert!(said(&at("link")).ends_with("link` is a named pipe, not a readable file"));
        assert!(said(&at("socket")).ends_with("is a socket, not a readable file"));
        assert!(said(&at("zero")).ends_with("zero` is a device, not a readable file"));
        assert!(said(dir.path()).ends_with("is a folder, not a readable file"));
        assert!(said(&at("self")).contains("self"), "{}", said(&at("self")));
        let absent = said(&at("absent"));
        assert!(absent.starts_with("there is no file `") && absent.ends_with("absent`"), "{absent}");
    }

    #[test]
    fn a_file_without_a_length_is_cut_at_the_limit() {
        let maps = Path::new("/proc/self/maps");
        assert_eq!(std::fs::metadata(maps).unwrap().len(), 0);
        assert!(read_small(maps, 10).is_err());
        assert!(!read_small(maps, 1 << 20).unwrap().is_empty());
    }
}
