//! Whether another user could have written a file, or can replace it.
//!
//! In: a path. Out: where it really leads, or the place on the way that others can write. A place is safe if it and everything
//! above it belong to this user or to root, and nobody else may write there; in a sticky folder such as `/tmp` others cannot move
//! what is not theirs (sticky bit: inode(7)), so files of ours below it are safe.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::OFlag;
use nix::unistd::{Uid, User, getegid, geteuid};

/// The place that others can write, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Untrusted(String);

/// Where a path leads after following its links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    There(PathBuf),
    /// Nothing is there yet; whatever is created there is ours.
    Missing(PathBuf),
}

/// Maximum number of links followed, as in the kernel (path_resolution(7)).
const LINKS: usize = 40;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;

/// The user whose trust is checked.
struct Eyes {
    uid: u32,
    gid: u32,
    /// The owner of files of users unknown in this user namespace (user_namespaces(7)): on the host that may be root.
    unknown: Option<u32>,
    /// The user's home: whoever owns a folder above it controls all of it anyway. Root has no such place.
    home: Option<PathBuf>,
}

impl Eyes {
    fn ours() -> Eyes {
        let uid = geteuid();
        let home = if uid.is_root() { None } else { home() };
        Eyes {
            uid: uid.as_raw(),
            gid: getegid().as_raw(),
            unknown: unknown_user(),
            home: home.and_then(|h| h.canonicalize().ok()),
        }
    }

    fn trusts(&self, uid: u32) -> bool {
        uid == 0 || uid == self.uid || Some(uid) == self.unknown
    }

    fn folder(&self, at: &Path) -> Result<(), Untrusted> {
        if self.home.as_ref().is_some_and(|home| home != at && home.starts_with(at)) {
            return Ok(());
        }
        let found = std::fs::symlink_metadata(at).map_err(|e| unseen(at, &e))?;
        let shown = at.display();
        if !self.trusts(found.uid()) {
            return Err(Untrusted(format!("{shown} belongs to {}", owner(found.uid()))));
        }
        let sticky = found.mode() & STICKY != 0;
        if found.mode() & OTHERS_WRITE != 0 && !sticky {
            return Err(Untrusted(format!("everyone may write in {shown}")));
        }
        let own_group = found.gid() == 0 || found.gid() == self.gid || Some(found.gid()) == self.unknown;
        if found.mode() & GROUP_WRITES != 0 && !sticky && !own_group {
            return Err(Untrusted(format!("group {} may write in {shown}", found.gid())));
        }
        Ok(())
    }
}

/// Follow a path to its end, and check that nobody else can change it on the way.
pub fn place(path: &Path) -> Result<Place, Untrusted> {
    follow(path, &Eyes::ours())
}

fn follow(path: &Path, eyes: &Eyes) -> Result<Place, Untrusted> {
    let path = std::path::absolute(path).map_err(|e| unseen(path, &e))?;
    let mut rest: VecDeque<OsString> = names(&path).collect();
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    eyes.folder(&at)?;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        let found = match std::fs::symlink_metadata(&next) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Place::Missing(rest.iter().fold(next, |path, name| path.join(name))));
            }
            found => found.map_err(|e| unseen(&next, &e))?,
        };
        if !found.is_symlink() {
            if found.is_dir() {
                eyes.folder(&next)?;
            } else if !rest.is_empty() {
                return Err(Untrusted(format!("{} is not a folder", next.display())));
            }
            at = next;
            continue;
        }
        links += 1;
        if links > LINKS || !eyes.trusts(found.uid()) {
            return Err(Untrusted(format!("{} is a link of {}", next.display(), owner(found.uid()))));
        }
        let to = std::fs::read_link(&next).map_err(|e| unseen(&next, &e))?;
        if to.is_absolute() {
            at = PathBuf::from("/");
        }
        for name in names(&to).collect::<Vec<_>>().into_iter().rev() {
            rest.push_front(name);
        }
    }
    Ok(Place::There(at))
}

fn names(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

/// Check that nobody else could have written the files of a folder with this extension, or can add one.
pub fn files(folder: &Path, ending: &str) -> Result<(), Untrusted> {
    let eyes = Eyes::ours();
    let real = match follow(folder, &eyes)? {
        Place::There(real) => real,
        Place::Missing(_) => return Ok(()),
    };
    for entry in std::fs::read_dir(&real).map_err(|e| unseen(&real, &e))? {
        let path = entry.map_err(|e| unseen(&real, &e))?.path();
        if path.extension().is_none_or(|e| e != ending) {
            continue;
        }
        // A link leads to where its target is looked at.
        let Place::There(file) = follow(&path, &eyes)? else { continue };
        let found = std::fs::symlink_metadata(&file).map_err(|e| unseen(&file, &e))?;
        is_own(&file, &found)?;
    }
    Ok(())
}

/// Read a file of ours: a regular file, of this user, that nobody else may write.
pub fn read_own(path: &Path, at_most: u64) -> Result<String, Untrusted> {
    use std::io::Read;
    let shown = path.display();
    let mut options = std::fs::OpenOptions::new();
    // A link is not followed, and whoever waits for a pipe to be written waits for ever.
    options.read(true).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
    let file = match options.open(path) {
        Err(_) if path.is_symlink() => return Err(Untrusted(format!("{shown} is a link"))),
        opened => opened.map_err(|e| unseen(path, &e))?,
    };
    let found = file.metadata().map_err(|e| unseen(path, &e))?;
    is_own(path, &found)?;
    if !found.is_file() {
        return Err(Untrusted(format!("{shown} is not a file")));
    }
    if found.len() > at_most {
        return Err(Untrusted(format!("{shown} is longer than {at_most} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(at_most).read_to_end(&mut bytes).map_err(|e| unseen(path, &e))?;
    String::from_utf8(bytes).map_err(|_| Untrusted(format!("{shown} is not text")))
}

/// Check that this belongs to this user, and nobody else may write it.
pub fn is_own(path: &Path, found: &std::fs::Metadata) -> Result<(), Untrusted> {
    let shown = path.display();
    if found.uid() != geteuid().as_raw() {
        return Err(Untrusted(format!("{shown} belongs to {}", owner(found.uid()))));
    }
    // Where every user has a group of their own, `umask 002` is usual.
    let own_group = found.gid() == 0 || found.gid() == getegid().as_raw();
    if found.mode() & OTHERS_WRITE != 0 || (found.mode() & GROUP_WRITES != 0 && !own_group) {
        return Err(Untrusted(format!("others may write {shown}")));
    }
    Ok(())
}

/// The home of this user: `HOME` if it belongs to them, else the one in the user database.
///
/// System services of systemd without `User=` have no `HOME` (systemd.exec(5)), and some configurations of sudo keep the caller's
/// (sudo(8), `env_keep`): root has one home, however it is called.
pub fn home() -> Option<PathBuf> {
    let named = std::env::var_os("HOME").filter(|v| !v.is_empty()).map(PathBuf::from);
    let is_theirs =
        |home: &PathBuf| home.is_absolute() && std::fs::metadata(home).is_ok_and(|m| m.is_dir() && m.uid() == geteuid().as_raw());
    let entry = || User::from_uid(geteuid()).ok().flatten().map(|user| user.dir);
    named.filter(is_theirs).or_else(entry).filter(|home| home.is_absolute())
}

/// `nobody`, or the number if it has no name.
pub fn owner(uid: u32) -> String {
    let name = User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
    name.map_or_else(|| format!("user {uid}"), |name| format!("`{name}`"))
}

fn unseen(path: &Path, e: &std::io::Error) -> Untrusted {
    Untrusted(format!("{} cannot be checked: {e}", path.display()))
}

/// The owner of files of users outside this user namespace, if it is one.
fn unknown_user() -> Option<u32> {
    let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
    let everybody = map.split_whitespace().eq(["0", "0", "4294967295"]);
    let number = || std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse().ok();
    if everybody { None } else { number() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};

    use super::*;

    fn eyes() -> Eyes {
        Eyes { uid: geteuid().as_raw(), gid: getegid().as_raw(), unknown: unknown_user(), home: None }
    }

    fn folder(path: &Path, mode: u32) {
        std::fs::DirBuilder::new().create(path).expect("a folder");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its mode");
    }

    fn refused(path: &Path) -> String {
        follow(path, &eyes()).expect_err("refused").to_string()
    }

    #[test]
    fn a_place_is_followed_through_links_of_our_own_to_where_it_is_or_will_be() {
        let root = tempfile::tempdir().expect("a folder");
        let real = root.path().canonicalize().expect("there");
        folder(&real.join("a"), 0o700);
        symlink("a", real.join("link")).expect("a link");
        assert_eq!(follow(&root.path().join("link"), &eyes()), Ok(Place::There(real.join("a"))));
        assert_eq!(follow(&root.path().join("link/b/c"), &eyes()), Ok(Place::Missing(real.join("a/b/c"))));
        symlink("loop", real.join("loop")).expect("a link");
        assert!(refused(&real.join("loop")).contains("is a link"));
    }

    #[test]
    fn where_others_may_write_nothing_is_believed_unless_they_cannot_move_it() {
        let root = tempfile::tempdir().expect("a folder");
        let real = root.path().canonicalize().expect("there");
        folder(&real.join("open"), 0o777);
        folder(&real.join("open/own"), 0o700);
        assert_eq!(refused(&real.join("open/own")), format!("everyone may write in {}/open", real.display()));
        folder(&real.join("sticky"), 0o1777);
        folder(&real.join("sticky/own"), 0o700);
        assert_eq!(follow(&real.join("sticky/own"), &eyes()), Ok(Place::There(real.join("sticky/own"))));
    }

    #[test]
    fn what_belongs_to_a_stranger_is_not_believed_nor_is_what_they_link_to() {
        // Somebody who is neither us nor root: to them it is a stranger's folder.
        let root = tempfile::tempdir().expect("a folder");
        let real = root.path().canonicalize().expect("there");
        if !geteuid().is_root() {
            return crate::skip::skip("root", "only root can give files away");
        }
        folder(&real.join("theirs"), 0o755);
        let nobody = Some(Uid::from_raw(65534));
        nix::unistd::chown(&real.join("theirs"), nobody, None).expect("root may");
        assert!(refused(&real.join("theirs/collo")).contains("theirs belongs to"));
        symlink("/root", real.join("sly")).expect("a link");
        nix::unistd::fchownat(nix::fcntl::AT_FDCWD, &real.join("sly"), nobody, None, nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW)
            .expect("root may");
        assert!(refused(&real.join("sly")).contains("is a link of"));
    }

    #[test]
    fn a_file_is_read_only_where_it_is_a_file_and_ours() {
        let root = tempfile::tempdir().expect("a folder");
        let at = |name: &str| root.path().join(name);
        std::fs::write(at("own"), "text").expect("written");
        std::fs::set_permissions(at("own"), std::fs::Permissions::from_mode(0o600)).expect("its mode");
        assert_eq!(read_own(&at("own"), 100).as_deref(), Ok("text"));
        let why = |name: &str| read_own(&at(name), 3).expect_err("refused").to_string();
        assert!(why("own").contains("longer than 3 bytes"));
        symlink("own", at("link")).expect("a link");
        assert!(why("link").ends_with("link is a link"));
        symlink("nowhere", at("dangling")).expect("a link");
        assert!(why("dangling").ends_with("dangling is a link"));
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("a pipe");
        assert!(why("pipe").contains("is not a file"));
        std::fs::set_permissions(at("own"), std::fs::Permissions::from_mode(0o622)).expect("its mode");
        assert!(why("own").contains("others may write"));
        std::fs::DirBuilder::new().mode(0o700).create(at("folder")).expect("a folder");
        assert!(why("folder").contains("is not a file"));
    }
}
