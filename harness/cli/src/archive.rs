//! `.tar.gz` files with a manifest of digests. In: files by name, or an archive from anywhere. Out: the archive, or a new folder.
//!
//! An archive is not trusted: only regular files and folders are unpacked, only below the folder, each once, none over another, and
//! all of them as the manifest says, or nothing.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use collo_store::{StoredFile, sha256_file, sweep};
use collo_text::Diagnostic;
use collo_text::shown;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use fs_err as fs;
use serde_json::Value;
use tar::{Archive, Builder, EntryType, Header};

/// The manifest, the first entry of the folder in an archive.
pub const MANIFEST: &str = "collo-bundle.json";
const MANIFEST_LIMIT_BYTES: u64 = 64 << 20;
/// Prefix of the folder that an archive is unpacked into before it is complete.
const ASIDE: &str = ".unpacking-";
const BUFFER_BYTES: usize = 64 << 10;
/// Entries of an archive at most.
const MOST_ENTRIES: usize = 2_000_000;

/// A file to pack: its name in the archive, and where it is.
pub type Packed = BTreeMap<String, PathBuf>;

/// Write an archive whose files lie in `folder`; `about` gets the list of files with their digests.
pub fn pack(to: &Path, folder: &str, mut about: Value, files: &Packed) -> Result<u64, Diagnostic> {
    let mut digests = serde_json::Map::new();
    for (name, path) in files {
        let stored = StoredFile { bytes: fs::metadata(path)?.len(), sha256: sha256_file(path).map_err(Diagnostic::from)? };
        digests.insert(name.clone(), serde_json::to_value(stored).map_err(std::io::Error::from)?);
    }
    about["files"] = Value::Object(digests);
    let manifest = serde_json::to_string_pretty(&about).map_err(std::io::Error::from)?;
    let aside = tempfile::NamedTempFile::new_in(to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    let mut archive = Builder::new(GzEncoder::new(aside.as_file(), Compression::default()));
    append(&mut archive, &format!("{folder}/{MANIFEST}"), manifest.len() as u64, false, manifest.as_bytes())?;
    for (name, path) in files {
        let file = fs::File::open(path)?;
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
pub fn unpack(from: &Path, into: &Path) -> Result<(PathBuf, Value), Diagnostic> {
    // What an unpacking left that was killed.
    sweep(into, |name| name.starts_with(ASIDE));
    let aside = tempfile::Builder::new().prefix(ASIDE).tempdir_in(into)?;
    let top = entries(from, aside.path())?;
    let about = manifest(&aside.path().join(&top)).map_err(|why| no_bundle(from, why))?;
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
fn entries(from: &Path, aside: &Path) -> Result<String, Diagnostic> {
    let wrong = |why: String| no_bundle(from, why);
    let unread = |e: std::io::Error| no_bundle(from, e);
    let file = collo_text::open_regular(from).map_err(|e| no_bundle(from, e))?;
    let mut archive = Archive::new(GzDecoder::new(std::io::BufReader::new(file)));
    let mut top: Option<String> = None;
    let mut buffer = vec![0; BUFFER_BYTES];
    for (count, entry) in archive.entries().map_err(unread)?.enumerate() {
        let mut entry = entry.map_err(unread)?;
        let path = entry.path().map_err(unread)?.into_owned();
        let kind = entry.header().entry_type();
        if count >= MOST_ENTRIES {
            return Err(wrong(format!("it has more than {MOST_ENTRIES} entries")));
        }
        // A checkout names programs that git executes.
        if path.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
            return Err(wrong(format!("its entry {path:?} is git's")));
        }
        let (folder, below) = safe(&path).ok_or_else(|| wrong(format!("its entry {path:?} leads out of its folder")))?;
        match &top {
            None => top = Some(folder),
            Some(known) if *known != folder => return Err(wrong(format!("it has two folders, {known:?} and {folder:?}"))),
            Some(_) => {}
        }
        // A name that is taken, or that is below a file, is what the archive wants.
        let unwritten = |e: std::io::Error| match e.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory => wrong(format!("{path:?}: {e}")),
            _ => Diagnostic::new(format!("{} cannot be unpacked into {}", from.display(), shown(aside)))
                .of_machine()
                .caused_by(format!("{path:?}: {e}")),
        };
        let place = aside.join(top.as_deref().unwrap_or_default()).join(&below);
        match kind {
            EntryType::Directory => std::fs::create_dir_all(&place).map_err(unwritten)?,
            EntryType::Regular => {
                let parent = place.parent().unwrap_or(aside);
                std::fs::create_dir_all(parent).map_err(unwritten)?;
                let runs = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
                // Never over another: a second entry of a name is an error.
                let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&place).map_err(unwritten)?;
                loop {
                    match entry.read(&mut buffer).map_err(|e| wrong(format!("{path:?}: {e}")))? {
                        0 => break,
                        read => file.write_all(&buffer[..read]).map_err(unwritten)?,
                    }
                }
                let mode = std::fs::Permissions::from_mode(if runs { 0o755 } else { 0o644 });
                file.set_permissions(mode).map_err(unwritten)?;
            }
            other => return Err(wrong(format!("its entry {path:?} is neither a file nor a folder, but {other:?}"))),
        }
    }
    top.ok_or_else(|| wrong("it is empty".into()))
}

/// The first folder of an entry's path and what is below; `None` if it is absolute or leads upwards.
fn safe(path: &Path) -> Option<(String, PathBuf)> {
    let mut parts = path.components();
    let Some(Component::Normal(top)) = parts.next() else { return None };
    let top = top.to_str().filter(|name| !name.starts_with('.'))?.to_string();
    let below: PathBuf = parts.clone().collect();
    parts.all(|part| matches!(part, Component::Normal(_))).then_some((top, below))
}

/// The manifest of an unpacked folder, after every file was compared with it.
fn manifest(folder: &Path) -> Result<Value, String> {
    let text = collo_text::read_small_text(&folder.join(MANIFEST), MANIFEST_LIMIT_BYTES).map_err(|e| e.to_string())?;
    let about: Value = serde_json::from_str(&text).map_err(|e| format!("{MANIFEST}: {e}"))?;
    let files: BTreeMap<String, StoredFile> =
        serde_json::from_value(about["files"].clone()).map_err(|e| format!("{MANIFEST}: {e}"))?;
    let mut there = Vec::new();
    below(folder, Path::new(""), &mut there).map_err(|e| e.to_string())?;
    for name in &there {
        let Some(stored) = files.get(name) else { return Err(format!("{name} is not in its manifest")) };
        let found = sha256_file(&folder.join(name)).map_err(|e| e.to_string())?;
        if found != stored.sha256 {
            return Err(format!("{name} does not have its checksum"));
        }
    }
    match files.keys().find(|name| there.binary_search(name).is_err()) {
        Some(missing) => Err(format!("{missing} is missing")),
        None => Ok(about),
    }
}

/// The names of all files below a folder, sorted, without the manifest.
fn below(root: &Path, inside: &Path, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root.join(inside))? {
        let entry = entry?;
        let name = inside.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            below(root, &name, found)?;
        } else if name != Path::new(MANIFEST) {
            found.push(name.to_string_lossy().into_owned());
        }
    }
    found.sort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use collo_store::sha256_text;
    use collo_text::ExitClass;
    use serde_json::json;

    use super::*;

    type ForeignEntry<'a> = (&'a str, EntryType, &'a str);
    /// The entries of an archive, and what is said of it.
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

    /// An archive as somebody else could make it: names are written as they are.
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
        assert_eq!(about["files"].as_object().unwrap().len(), 2);
        assert!(unpack(&bundle, into.path()).unwrap_err().to_string().contains("already exists"));
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "nothing is left aside");
    }

    #[test]
    fn what_this_machine_cannot_write_is_no_fault_of_the_bundle() {
        let (_kept, bundle) = packed(&[("experiments/x.toml", "schema = 1\n")]);
        // Nobody makes files there.
        let wrong = entries(&bundle, Path::new("/proc/self/fdinfo/x")).unwrap_err();
        assert!(wrong.class() == ExitClass::Machine && wrong.what().contains("cannot be unpacked"), "{wrong}");
        let wrong = entries(Path::new("/nowhere/x.tar.gz"), Path::new("/tmp")).unwrap_err();
        assert!(wrong.what().contains("is not a bundle"), "{wrong}");
    }

    #[test]
    fn what_a_killed_unpacking_left_long_ago_is_removed() {
        let (_kept, bundle) = packed(&[("experiments/x.toml", "schema = 1\n")]);
        let into = tempfile::tempdir().unwrap();
        let (old, new) = (into.path().join(".unpacking-old"), into.path().join(".unpacking-new"));
        for folder in [&old, &new] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("half"), "x").unwrap();
        }
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
        std::fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();
        unpack(&bundle, into.path()).unwrap();
        assert!(!old.exists() && new.exists());
    }

    #[test]
    fn nothing_is_written_outside_the_folder_whatever_an_archive_says() {
        let file = EntryType::Regular;
        let attacks: [Refused; 10] = [
            (&[("x/.git/config", file, "[core]\nfsmonitor = ./sly")], "is git's"),
            (&[("x/workloads/.GIT", file, "gitdir: /tmp")], "is git's"),
            (&[("../evil", file, "x")], "leads out"),
            (&[("x/../../evil", file, "x")], "leads out"),
            (&[("/tmp/collo-evil", file, "x")], "leads out"),
            (&[("x/link", EntryType::Symlink, "/etc")], "neither a file nor a folder"),
            (&[("x/link", EntryType::Link, "/etc/passwd")], "neither a file nor a folder"),
            (&[("x/pipe", EntryType::Fifo, "")], "neither a file nor a folder"),
            (&[("x/a", file, "1"), ("x/a", file, "2")], "exists"),
            (&[("x/a", file, "1"), ("y/a", file, "2")], "two folders"),
        ];
        for (entries, expected) in attacks {
            let (_kept, bundle) = foreign(entries);
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
        let file = EntryType::Regular;
        let digest = sha256_text("1");
        let manifest = json!({"files": {"a": {"bytes": 1, "sha256": digest}}}).to_string();
        let table: [Refused; 4] = [
            (&[("x/collo-bundle.json", file, &manifest), ("x/a", file, "2")], "does not have its checksum"),
            (&[("x/collo-bundle.json", file, &manifest), ("x/a", file, "1"), ("x/b", file, "2")], "not in its manifest"),
            (&[("x/collo-bundle.json", file, &manifest)], "a is missing"),
            (&[("x/a", file, "1")], "collo-bundle.json"),
        ];
        for (entries, expected) in table {
            let (_kept, bundle) = foreign(entries);
            let into = tempfile::tempdir().unwrap();
            let said = unpack(&bundle, into.path()).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
