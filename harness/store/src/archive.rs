//! `.tar.gz` files with a manifest of digests. In: files by name, or an archive from anywhere. Out: the archive, or a new folder.
//!
//! An archive is not trusted: only regular files are unpacked, only below the folder, each once, none over another, and all of them as in
//! the manifest, or nothing. The manifest comes first, so that nothing is written that it does not name, nothing of another size, and
//! nothing for which there is no room.

mod scratch;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use collo_text::{Diagnostic, quoted, quoting, shown};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use fs_err as fs;
use serde::Deserialize;
use serde_json::Value;
use tar::{Archive, Builder, EntryType, Header, PaxExtensions};

use crate::{StoredFile, sha256_file};

pub use scratch::{Scratch, scratch};

/// The manifest, the first file of an archive.
pub const MANIFEST: &str = "collo-bundle.json";
/// The version of the manifest; another one is from another version of collo.
pub const SCHEMA: u64 = 1;
const MANIFEST_LIMIT_BYTES: u64 = 64 << 20;
const BUFFER_BYTES: usize = 64 << 10;
/// Entries of an archive at most.
const MOST_ENTRIES: usize = 2_000_000;
/// Bytes of the path of an entry: no system opens a longer one.
const LONGEST_NAME: u64 = 4 << 10;
/// Bytes of the headers before an entry, which have its path among others.
const LONGEST_HEADER: u64 = 64 << 10;
/// Folders in one another.
const DEEPEST: usize = 32;

/// A file to pack: its name in the archive, and where it is.
pub type Packed = BTreeMap<String, PathBuf>;

/// What an archive contains, and of what.
#[derive(Debug, Deserialize)]
pub struct Manifest {
    schema: Option<u64>,
    #[serde(default)]
    pub campaign: String,
    /// What is not as it was when the campaign was measured.
    #[serde(default)]
    pub changed: Vec<String>,
    files: BTreeMap<String, StoredFile>,
}

/// Write an archive whose files lie in `folder`; `about` gets the schema, and the list of files with their digests.
pub fn pack(to: &Path, folder: &str, mut about: Value, files: &Packed) -> Result<u64, Diagnostic> {
    let mut digests = serde_json::Map::new();
    for (name, path) in files {
        let stored = StoredFile { bytes: fs::metadata(path)?.len(), sha256: sha256_file(path).map_err(Diagnostic::from)? };
        digests.insert(name.clone(), serde_json::to_value(stored).map_err(std::io::Error::from)?);
    }
    about["schema"] = SCHEMA.into();
    about["files"] = Value::Object(digests);
    let manifest = serde_json::to_string_pretty(&about).map_err(std::io::Error::from)?;
    written(to, folder, &manifest, files).map_err(|e| {
        Diagnostic::new(format!("{} cannot be written", shown(to)))
            .of_machine()
            .caused_by(e)
            .hint("free space there, or name a place on another disk with `--to`")
    })
}

fn written(to: &Path, folder: &str, manifest: &str, files: &Packed) -> std::io::Result<u64> {
    let aside = tempfile::NamedTempFile::new_in(to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    let mut archive = Builder::new(GzEncoder::new(aside.as_file(), Compression::default()));
    append(&mut archive, &format!("{folder}/{MANIFEST}"), manifest.len() as u64, false, manifest.as_bytes())?;
    for (name, path) in files {
        let file = collo_text::open_regular(path)?;
        let meta = file.metadata()?;
        let runs = meta.permissions().mode() & 0o100 != 0;
        append(&mut archive, &format!("{folder}/{name}"), meta.len(), runs, file.take(meta.len()))?;
    }
    archive.into_inner()?.finish()?.sync_all()?;
    // Temporary files are for their owner alone; this one is to be handed on.
    aside.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    let bytes = aside.as_file().metadata()?.len();
    aside.persist(to).map_err(|e| e.error)?;
    Ok(bytes)
}

fn append(archive: &mut Builder<impl Write>, name: &str, bytes: u64, runs: bool, content: impl Read) -> std::io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(if runs { 0o755 } else { 0o644 });
    archive.append_data(&mut header, name, content)
}

/// Unpack an archive into a new folder, which gets its name; refused if that exists. Returns the folder and the manifest.
pub fn unpack(from: &Path, into: &Path) -> Result<(PathBuf, Manifest), Diagnostic> {
    let aside = scratch(into)?;
    let (top, about) = entries(from, aside.path())?;
    compare(&aside.path().join(&top), &about).map_err(|why| no_bundle(from, why))?;
    let place = into.join(&top);
    if place.symlink_metadata().is_ok() {
        return Err(Diagnostic::new(format!("{} already exists", place.display()))
            .hint(format!("work in it: `collo -C {} run NAME`; or move it away to unpack the bundle again", place.display())));
    }
    fs::rename(aside.path().join(&top), &place)?;
    Ok((place, about))
}

fn no_bundle(from: &Path, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(format!("{} is not a bundle of collo", from.display())).caused_by(why)
}

/// The one folder of an archive, unpacked. What cannot be read is the archive's fault, what cannot be written the machine's.
fn entries(from: &Path, aside: &Path) -> Result<(String, Manifest), Diagnostic> {
    let wrong = |why: String| no_bundle(from, why);
    let unread = |e: std::io::Error| no_bundle(from, e);
    let unwritten = |named: &str, e: std::io::Error| {
        let what = format!("{} cannot be unpacked into {}", from.display(), shown(aside));
        Diagnostic::new(what).of_machine().caused_by(format!("{named}: {e}"))
    };
    let file = collo_text::open_regular(from).map_err(unread)?;
    let mut archive = Archive::new(GzDecoder::new(std::io::BufReader::new(file)));
    let (mut first, mut about): (Option<String>, Option<Manifest>) = (None, None);
    let mut long_name = None;
    // Raw: of names and headers that come as entries of their own, the library would take any length into memory.
    for (count, entry) in archive.entries().map_err(unread)?.raw(true).enumerate() {
        let mut entry = entry.map_err(unread)?;
        let kind = entry.header().entry_type();
        if count >= MOST_ENTRIES {
            return Err(wrong(format!("it has more than {MOST_ENTRIES} entries")));
        }
        if let EntryType::GNULongName | EntryType::XHeader | EntryType::XGlobalHeader = kind {
            if let Some(name) = name_in(&mut entry, kind).map_err(&wrong)? {
                long_name = Some(name);
            }
            continue;
        }
        let path = match long_name.take() {
            Some(name) => PathBuf::from(OsString::from_vec(name)),
            None => entry.header().path().map_err(unread)?.into_owned(),
        };
        let named = quoted(&path.to_string_lossy());
        // A checkout names programs that git executes.
        if path.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
            return Err(wrong(format!("its entry {named} belongs to git, and may name programs that git starts")));
        }
        let outside = || wrong(format!("its entry {named} leads out of the bundle's folder, or is in one without a plain name"));
        let (folder, below) = safe(&path).ok_or_else(outside)?;
        if path.components().count() > DEEPEST {
            return Err(wrong(format!("its entry {named} is more than {DEEPEST} folders deep")));
        }
        let top = first.get_or_insert_with(|| folder.clone());
        if *top != folder {
            return Err(wrong(format!("it has two folders, {} and {}", quoted(top), quoted(&folder))));
        }
        match kind {
            // Folders are made for what lies in them.
            EntryType::Directory => continue,
            EntryType::Regular => {}
            other => return Err(wrong(format!("its entry {named} is neither a file nor a folder, but {other:?}"))),
        }
        let Some(about) = &about else {
            if below != Path::new(MANIFEST) {
                return Err(wrong(format!("its first file is {named}, not {MANIFEST}")));
            }
            let (bytes, manifest) = manifest(from, &mut entry)?;
            room_for(from, &manifest, aside)?;
            put(&bytes[..], &aside.join(top).join(MANIFEST), false).map_err(|(_, e)| unwritten(&named, e))?;
            about = Some(manifest);
            continue;
        };
        let stored = below.to_str().and_then(|name| about.files.get(name));
        let stored = stored.ok_or_else(|| wrong(format!("{named} is not in its manifest")))?;
        if stored.bytes != entry.size() {
            return Err(wrong(format!("{named} has {} bytes, and {} in its manifest", entry.size(), stored.bytes)));
        }
        let runs = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
        put(entry, &aside.join(top).join(&below), runs).map_err(|(read, e)| match e.kind() {
            _ if read => wrong(format!("{named}: {e}")),
            // A name that is taken, too long, or below a file, is what the archive wants.
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::InvalidFilename => {
                wrong(format!("{named}: {e}"))
            }
            _ => unwritten(&named, e),
        })?;
    }
    match (first, about) {
        (Some(top), Some(about)) => Ok((top, about)),
        _ => Err(wrong(format!("it has no {MANIFEST}"))),
    }
}

/// The path that a header in front of an entry gives it, if it gives one.
fn name_in(entry: &mut tar::Entry<impl Read>, kind: EntryType) -> Result<Option<Vec<u8>>, String> {
    let is_name = kind == EntryType::GNULongName;
    let most = if is_name { LONGEST_NAME } else { LONGEST_HEADER };
    if entry.size() > most {
        let what = if is_name { "a name" } else { "a header" };
        return Err(format!("it has {what} of {} bytes, and at most {most} are read", entry.size()));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if is_name {
        // Ended by a zero (gnu.org/software/tar/manual, Basic Tar Format).
        bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
        return Ok(Some(bytes));
    }
    let mut found = None;
    for field in PaxExtensions::new(&bytes) {
        let field = field.map_err(|e| e.to_string())?;
        match field.key_bytes() {
            _ if kind == EntryType::XGlobalHeader => {}
            // What is that large has no place in a header of the old form, and none in a bundle.
            b"size" => return Err("it gives sizes in headers of their own".into()),
            b"path" if field.value_bytes().len() as u64 > LONGEST_NAME => {
                return Err(format!("it has a name of {} bytes, and at most {LONGEST_NAME} are read", field.value_bytes().len()));
            }
            b"path" => found = Some(field.value_bytes().to_vec()),
            _ => {}
        }
    }
    Ok(found)
}

/// Write a file and the folders above it. The error is one of reading, where the first is true.
fn put(mut entry: impl Read, place: &Path, runs: bool) -> Result<(), (bool, std::io::Error)> {
    let unwritten = |e| (false, e);
    std::fs::create_dir_all(place.parent().unwrap_or(place)).map_err(unwritten)?;
    // Never over another: a second entry of a name is an error.
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(place).map_err(unwritten)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match entry.read(&mut buffer).map_err(|e| (true, e))? {
            0 => break,
            read => file.write_all(&buffer[..read]).map_err(unwritten)?,
        }
    }
    file.set_permissions(std::fs::Permissions::from_mode(if runs { 0o755 } else { 0o644 })).map_err(unwritten)
}

/// The first folder of an entry's path and what is below; `None` if it is absolute or leads upwards.
fn safe(path: &Path) -> Option<(String, PathBuf)> {
    let mut parts = path.components();
    let Some(Component::Normal(top)) = parts.next() else { return None };
    let top = top.to_str().filter(|name| !name.starts_with('.') && !name.contains(quoting::is_unseen))?.to_string();
    let below: PathBuf = parts.clone().collect();
    parts.all(|part| matches!(part, Component::Normal(_))).then_some((top, below))
}

/// Read the manifest, and check its schema.
fn manifest(from: &Path, entry: &mut tar::Entry<impl Read>) -> Result<(Vec<u8>, Manifest), Diagnostic> {
    let wrong = |why: String| no_bundle(from, format!("{MANIFEST}: {why}"));
    if entry.size() > MANIFEST_LIMIT_BYTES {
        return Err(wrong(format!("it has {} bytes, and at most {MANIFEST_LIMIT_BYTES} are read", entry.size())));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(|e| wrong(e.to_string()))?;
    let about: Manifest = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
    match about.schema {
        Some(SCHEMA) => Ok((bytes, about)),
        Some(other) => Err(wrong(format!("it has schema {other}, and this collo reads schema {SCHEMA}"))
            .hint("read it with the version of collo that packed it")),
        None => Err(wrong("it has no `schema`".into())),
    }
}

/// Whether there is room for all files of an archive.
fn room_for(from: &Path, about: &Manifest, aside: &Path) -> Result<(), Diagnostic> {
    let needed = about.files.values().fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
    let Ok(disk) = nix::sys::statvfs::statvfs(aside) else { return Ok(()) };
    let free = disk.blocks_available().saturating_mul(disk.fragment_size());
    if needed <= free {
        return Ok(());
    }
    let gb = |bytes: u64| bytes as f64 / 1e9;
    let place = aside.parent().unwrap_or(aside);
    let what = format!("{} unpacks to {:.1} GB, and {:.1} GB are free in {}", from.display(), gb(needed), gb(free), shown(place));
    Err(Diagnostic::new(what).of_machine().hint("free space there, or work on another disk: `collo -C DIR`"))
}

/// Compare the files of an unpacked folder with its manifest.
fn compare(folder: &Path, about: &Manifest) -> Result<(), String> {
    for (name, stored) in &about.files {
        // A name that leads elsewhere was not unpacked.
        let below = safe(&Path::new("x").join(name)).map(|(_, below)| folder.join(below));
        let Some(file) = below.filter(|file| file.is_file()) else { return Err(format!("{} is missing", quoted(name))) };
        let found = sha256_file(&file).map_err(|e| e.to_string())?;
        if found != stored.sha256 {
            return Err(format!("{} does not have its checksum", quoted(name)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::sha256_text;
    use collo_text::ExitClass;
    use serde_json::json;

    use super::*;

    type ForeignEntry<'a> = (&'a str, EntryType, &'a str);
    /// The entries of an archive, and the reason why it is none.
    type Refused<'a> = (&'a [ForeignEntry<'a>], &'a str);

    fn packed(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let mut all = Packed::new();
        for (name, content) in files {
            let place = folder.path().join(name);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(&place, content).unwrap();
            all.insert((*name).into(), place);
        }
        let to = folder.path().join("bundle.tar.gz");
        pack(&to, "x-7f3a", json!({"schema": 1}), &all).unwrap();
        (folder, to)
    }

    /// An archive as another user could make it: names are written as they are.
    fn foreign(entries: &[ForeignEntry]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foreign.tar.gz");
        let mut archive = Builder::new(GzEncoder::new(fs::File::create(&path).unwrap(), Compression::fast()));
        for (name, kind, content) in entries {
            let mut header = Header::new_gnu();
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            let data = if *kind == EntryType::Regular { content.as_bytes() } else { &[] };
            header.set_size(data.len() as u64);
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.set_link_name(content).unwrap();
            }
            header.set_cksum();
            archive.append(&header, data).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap();
        (folder, path)
    }

    #[test]
    fn what_was_packed_comes_back_and_never_over_another_folder() {
        let (_kept, bundle) = packed(&[("experiments/x.toml", "schema = 1\n"), ("runs/x/1/journal.jsonl", "")]);
        let into = tempfile::tempdir().unwrap();
        let (place, about) = unpack(&bundle, into.path()).unwrap();
        assert_eq!(place, into.path().join("x-7f3a"));
        assert_eq!(fs::read_to_string(place.join("experiments/x.toml")).unwrap(), "schema = 1\n");
        assert_eq!(about.files.len(), 2);
        assert!(unpack(&bundle, into.path()).unwrap_err().to_string().contains("already exists"));
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "nothing is left aside");
    }

    #[test]
    fn what_this_machine_cannot_write_is_no_fault_of_the_bundle() {
        let (_kept, bundle) = packed(&[("experiments/x.toml", "schema = 1\n")]);
        // No user can make files there.
        let wrong = entries(&bundle, Path::new("/proc/self/fdinfo/x")).unwrap_err();
        assert!(wrong.class() == ExitClass::Machine && wrong.what().contains("cannot be unpacked"), "{wrong}");
        let wrong = entries(Path::new("/nowhere/x.tar.gz"), Path::new("/tmp")).unwrap_err();
        assert!(wrong.what().contains("is not a bundle"), "{wrong}");
    }

    /// A manifest of one file.
    fn about(name: &str, content: &str) -> String {
        json!({"schema": SCHEMA, "files": {name: {"bytes": content.len(), "sha256": sha256_text(content)}}}).to_string()
    }

    #[test]
    fn nothing_is_written_outside_the_folder_whatever_an_archive_says() {
        let file = EntryType::Regular;
        let deep = format!("x/{}a", "a/".repeat(40));
        let attacks: [Refused; 11] = [
            (&[("x/.git/config", file, "[core]\nfsmonitor = ./sly")], "belongs to git"),
            (&[("x/workloads/.GIT", file, "gitdir: /tmp")], "belongs to git"),
            (&[("../evil", file, "x")], "leads out"),
            (&[("x/../../evil", file, "x")], "leads out"),
            (&[("/tmp/collo-evil", file, "x")], "leads out"),
            (&[("x/link", EntryType::Symlink, "/etc")], "neither a file nor a folder"),
            (&[("x/link", EntryType::Link, "/etc/passwd")], "neither a file nor a folder"),
            (&[("x/pipe", EntryType::Fifo, "")], "neither a file nor a folder"),
            (&[("x/a", file, "1"), ("x/a", file, "1")], "exists"),
            (&[("x/a", file, "1"), ("y/a", file, "2")], "two folders"),
            (&[(&deep, file, "1")], "folders deep"),
        ];
        for (entries, expected) in attacks {
            let manifest = about("a", "1");
            let (_kept, bundle) = foreign(&[&[("x/collo-bundle.json", file, manifest.as_str())], entries].concat());
            let around = tempfile::tempdir().unwrap();
            let into = around.path().join("into");
            fs::create_dir(&into).unwrap();
            let said = unpack(&bundle, &into).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
            let left: Vec<_> = fs::read_dir(around.path()).unwrap().chain(fs::read_dir(&into).unwrap()).collect();
            assert_eq!(left.len(), 1, "{left:?}");
            assert!(!Path::new("/tmp/collo-evil").exists());
        }
    }

    #[test]
    fn a_file_that_is_not_as_the_manifest_says_makes_it_no_bundle() {
        let (file, name) = (EntryType::Regular, "x/collo-bundle.json");
        let manifest = about("a", "1");
        let outside = about("/etc/hostname", &fs::read_to_string("/etc/hostname").unwrap_or_default());
        let table: [Refused; 9] = [
            (&[(name, file, &manifest), ("x/a", file, "2")], "`a` does not have its checksum"),
            (&[(name, file, &manifest), ("x/a", file, "22")], "`x/a` has 2 bytes, and 1 in its manifest"),
            (&[(name, file, &manifest), ("x/a", file, "1"), ("x/b", file, "2")], "`x/b` is not in its manifest"),
            (&[(name, file, &manifest)], "`a` is missing"),
            (&[(name, file, &outside)], "`/etc/hostname` is missing"),
            (&[("x/a", file, "1"), (name, file, &manifest)], "its first file is `x/a`, not collo-bundle.json"),
            (&[("x", EntryType::Directory, "")], "it has no collo-bundle.json"),
            (&[(name, file, "{\"schema\": 999, \"files\": {}}")], "it has schema 999, and this collo reads schema 1"),
            (&[(name, file, "{\"files\": {}}")], "it has no `schema`"),
        ];
        for (entries, expected) in table {
            let (_kept, bundle) = foreign(entries);
            let into = tempfile::tempdir().unwrap();
            let said = unpack(&bundle, into.path()).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
            assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn what_has_no_room_is_refused_before_it_is_unpacked() {
        let manifest = json!({"schema": SCHEMA, "files": {"a": {"bytes": 1_u64 << 60, "sha256": ""}}}).to_string();
        let (_kept, bundle) = foreign(&[("x/collo-bundle.json", EntryType::Regular, &manifest)]);
        let into = tempfile::tempdir().unwrap();
        let wrong = unpack(&bundle, into.path()).unwrap_err();
        assert!(wrong.class() == ExitClass::Machine && wrong.what().contains("unpacks to 1152921504.6 GB"), "{wrong}");
    }

    /// An archive with a header of this kind and content, and behind it the manifest of one file, and the file.
    fn headed(kind: EntryType, content: &[u8], name: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headed.tar.gz");
        let mut archive = Builder::new(GzEncoder::new(fs::File::create(&path).unwrap(), Compression::fast()));
        let manifest = about(name, "1");
        append(&mut archive, "x/collo-bundle.json", manifest.len() as u64, false, manifest.as_bytes()).unwrap();
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_cksum();
        archive.append(&header, content).unwrap();
        append(&mut archive, "x/short", 1, false, &b"1"[..]).unwrap();
        archive.into_inner().unwrap().finish().unwrap();
        (folder, path)
    }

    #[test]
    fn a_long_name_in_a_header_of_its_own_is_read_and_one_without_end_is_not() {
        let long = format!("{}/{}", "a".repeat(200), "b".repeat(200));
        let of_pax = |name: &str| {
            let field = format!(" path={name}\n");
            // The length counts itself (pax(1), Extended Header).
            let length = (1..).find(|length| format!("{length}{field}").len() == *length).unwrap();
            format!("{length}{field}").into_bytes()
        };
        for (kind, content) in
            [(EntryType::GNULongName, format!("x/{long}\0").into_bytes()), (EntryType::XHeader, of_pax(&format!("x/{long}")))]
        {
            let (_kept, bundle) = headed(kind, &content, &long);
            let into = tempfile::tempdir().unwrap();
            let (place, _) = unpack(&bundle, into.path()).unwrap();
            assert_eq!(fs::read_to_string(place.join(&long)).unwrap(), "1");
        }
        for (kind, content, expected) in [
            (EntryType::GNULongName, vec![b'a'; 5000], "a name of 5000 bytes, and at most 4096 are read"),
            (EntryType::XHeader, of_pax(&"a".repeat(5000)), "a name of 5000 bytes, and at most 4096 are read"),
            (EntryType::XHeader, vec![b'a'; 70_000], "a header of 70000 bytes, and at most 65536 are read"),
            (EntryType::XGlobalHeader, vec![b'a'; 70_000], "a header of 70000 bytes, and at most 65536 are read"),
            (EntryType::XHeader, b"9 size=4\n".to_vec(), "it gives sizes in headers of their own"),
        ] {
            let (_kept, bundle) = headed(kind, &content, "short");
            let into = tempfile::tempdir().unwrap();
            let said = unpack(&bundle, into.path()).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
