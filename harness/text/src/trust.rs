//! Whether another user could have written a file, or can replace it: the one rule for everything that decides what is executed.
//!
//! In: a path. Out: where it really leads, or the place on the way that others can write. A place is safe if it and everything
//! above it belong to this user or to root, and no other user may write there; in a sticky folder such as `/tmp` others cannot move
//! what is not theirs (sticky bit: inode(7)), so files of ours below it are safe.
//!
//! By it are judged the folders of a user ([`UserFolder`]: GPU states, the cache), a project that was found ([`project`]), what root
//! executes ([`program`]) and what root takes from a project ([`files`]).

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::OFlag;
use nix::unistd::{Uid, User, getegid, geteuid, getgroups};

use crate::Diagnostic;

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
    /// Groups that may write: a user's own, since where every user has one `umask 002` is usual.
    groups: Vec<u32>,
    /// The user who called sudo.
    caller: Option<u32>,
    /// The owner of files of users unknown in this user namespace (user_namespaces(7)): on the host that may be root.
    unknown: Option<u32>,
    /// The user's home: the owner of a folder above it controls all of it anyway. Root has no such place.
    home: Option<PathBuf>,
}

impl Eyes {
    fn ours() -> Eyes {
        let uid = geteuid();
        let home = if uid.is_root() { None } else { home() };
        Eyes {
            uid: uid.as_raw(),
            groups: vec![getegid().as_raw()],
            caller: None,
            unknown: unknown_user(),
            home: home.and_then(|h| h.canonicalize().ok()),
        }
    }

    /// Those who may own and write files of the user's own, such as a project: in `sudo collo run` those of the user who called sudo, as git has it
    /// (git-config(1), `safe.directory`), and for a user those of their groups.
    fn of_user() -> Eyes {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        let mut eyes = Eyes::ours();
        if eyes.uid == 0 {
            eyes.caller = number("SUDO_UID");
            eyes.groups.extend(number("SUDO_GID").filter(|_| eyes.caller.is_some()));
        } else {
            eyes.groups.extend(getgroups().unwrap_or_default().into_iter().map(nix::unistd::Gid::as_raw));
        }
        eyes
    }

    fn trusts(&self, uid: u32) -> bool {
        uid == 0 || uid == self.uid || Some(uid) == self.unknown || Some(uid) == self.caller
    }

    fn may_write(&self, gid: u32) -> bool {
        gid == 0 || self.groups.contains(&gid) || Some(gid) == self.unknown
    }

    fn folder(&self, at: &Path) -> Result<(), Untrusted> {
        if self.home.as_ref().is_some_and(|home| home != at && home.starts_with(at)) {
            return Ok(());
        }
        let found = std::fs::symlink_metadata(at).map_err(|e| unseen(at, &e))?;
        if !self.trusts(found.uid()) {
            return Err(Untrusted(format!("{} belongs to {}", at.display(), owner(found.uid()))));
        }
        let sticky = found.mode() & STICKY != 0;
        match sticky {
            true => Ok(()),
            false => self.modes(at, &found),
        }
    }

    fn modes(&self, at: &Path, found: &std::fs::Metadata) -> Result<(), Untrusted> {
        let shown = at.display();
        let place = if found.is_dir() { format!("in {shown}") } else { shown.to_string() };
        if found.mode() & OTHERS_WRITE != 0 {
            return Err(Untrusted(format!("everyone may write {place}")));
        }
        if found.mode() & GROUP_WRITES != 0 && !self.may_write(found.gid()) {
            return Err(Untrusted(format!("group {} may write {place}", found.gid())));
        }
        Ok(())
    }

    /// Check that neither this nor what it leads to can be written by others. What is not there cannot.
    fn whole(&self, path: &Path) -> Result<(), Untrusted> {
        let Place::There(real) = follow(path, self)? else { return Ok(()) };
        let found = std::fs::symlink_metadata(&real).map_err(|e| unseen(&real, &e))?;
        if !self.trusts(found.uid()) {
            return Err(Untrusted(format!("{} belongs to {}", real.display(), owner(found.uid()))));
        }
        self.modes(&real, &found)
    }

    /// Check that nothing in a folder can be written by others; links that lead to folders are not entered.
    fn tree(&self, folder: &Path) -> Result<(), Untrusted> {
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries {
                let path = entry.map_err(|e| unseen(&folder, &e))?.path();
                let found = match std::fs::symlink_metadata(&path) {
                    // Programs that run write and rename here, as Python does with byte code.
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                    found => found.map_err(|e| unseen(&path, &e))?,
                };
                if found.is_symlink() {
                    // One that leads nowhere, to itself or to a device is nothing that is executed.
                    if std::fs::metadata(&path).is_ok_and(|target| target.is_file() || target.is_dir()) {
                        self.whole(&path)?;
                    }
                    continue;
                }
                if !self.trusts(found.uid()) {
                    return Err(Untrusted(format!("{} belongs to {}", path.display(), owner(found.uid()))));
                }
                self.modes(&path, &found)?;
                if found.is_dir() {
                    folders.push(path);
                }
            }
        }
        Ok(())
    }
}

/// Follow a path to its end, and check that no other user can change it on the way.
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

/// Check that a project is one of the user's own: its folder, in which others may not write even if it is sticky, and these of its
/// entries. As root everything in them, since it may be executed.
pub fn project(root: &Path, entries: &[&str]) -> Result<(), Untrusted> {
    let eyes = Eyes::of_user();
    eyes.whole(root)?;
    for entry in entries {
        let path = root.join(entry);
        eyes.whole(&path)?;
        if eyes.uid == 0 {
            eyes.tree(&path)?;
        }
    }
    Ok(())
}

/// Check that root executes nothing that another user could have written. Other users answer for what they name.
pub fn program(path: &Path) -> Result<(), Untrusted> {
    let eyes = Eyes::of_user();
    if eyes.uid == 0 { eyes.whole(path) } else { Ok(()) }
}

/// Check that this, and all on the way, belongs to the user: such as `.git`, which names programs.
pub fn of_user(path: &Path) -> Result<(), Untrusted> {
    Eyes::of_user().whole(path)
}

/// A folder of a user for one purpose of collo's, in which no other user may write.
#[derive(Debug, Clone, Copy)]
pub struct UserFolder {
    /// `state folder`, for messages.
    pub name: &'static str,
    /// The variable that overrides it.
    pub variable: &'static str,
    /// The variable and the place in the home of the XDG Base Directory Specification; in it is `collo`.
    pub xdg: &'static str,
    pub in_home: &'static str,
    /// The mode that it is created with.
    pub mode: u32,
}

/// The home of users without one: nothing can be created there.
const NO_HOME: &str = "/nonexistent";

impl UserFolder {
    /// As its variable has it, else as the specification has it, for which a relative path counts for nothing.
    pub fn path(&self) -> PathBuf {
        self.chosen(|name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from), home)
    }

    fn chosen(&self, var: impl Fn(&str) -> Option<PathBuf>, home: impl Fn() -> Option<PathBuf>) -> PathBuf {
        let xdg = var(self.xdg).filter(|path| path.is_absolute());
        let in_home = || home().unwrap_or_else(|| NO_HOME.into()).join(self.in_home);
        var(self.variable).unwrap_or_else(|| xdg.unwrap_or_else(in_home).join("collo"))
    }

    /// Where it really is, if it exists; an error if others could have written there.
    pub fn look(&self) -> Result<Option<PathBuf>, Diagnostic> {
        let path = self.path();
        match place(&path) {
            Ok(Place::There(real)) if real.is_dir() => Ok(Some(real)),
            Ok(Place::There(real)) => Err(self.refused(&real, "it is not a folder")),
            Ok(Place::Missing(_)) => Ok(None),
            Err(e) => Err(self.refused(&path, e)),
        }
    }

    /// The same, created if it does not exist.
    pub fn make(&self) -> Result<PathBuf, Diagnostic> {
        use std::os::unix::fs::DirBuilderExt;
        let path = self.path();
        if let Ok(Place::Missing(at)) = place(&path) {
            std::fs::DirBuilder::new().recursive(true).mode(self.mode).create(&at).map_err(|e| self.unwritten(&e))?;
        }
        // Again: another process may have been quicker.
        self.look()?.ok_or_else(|| self.unwritten(&std::io::ErrorKind::NotFound.into()))
    }

    pub fn refused(&self, path: &Path, why: impl std::fmt::Display) -> Diagnostic {
        Diagnostic::new(format!("the {} {} is not used: others could have written there", self.name, path.display()))
            .caused_by(why)
            .hint(format!("`chmod 700` if it is yours; `{}=DIR` selects another, writable only by you", self.variable))
            .of_machine()
    }

    pub fn unwritten(&self, e: &std::io::Error) -> Diagnostic {
        Diagnostic::new(format!("the {} {} cannot be written", self.name, self.path().display()))
            .caused_by(e.to_string())
            .hint(format!("`{}=DIR` puts it elsewhere", self.variable))
            .of_machine()
    }
}

/// Check that no other user could have written the files of a folder with this extension, or can add one.
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
        // A link leads to its target, which is checked.
        let Place::There(file) = follow(&path, &eyes)? else { continue };
        let found = std::fs::symlink_metadata(&file).map_err(|e| unseen(&file, &e))?;
        is_own(&file, &found)?;
    }
    Ok(())
}

/// Read a file of ours: a regular file, of this user, that no other may write.
pub fn read_own(path: &Path, at_most: u64) -> Result<String, Untrusted> {
    use std::io::Read;
    let shown = path.display();
    let mut options = std::fs::OpenOptions::new();
    // A link is not followed, and a pipe that is never written would be waited for without end.
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

/// Check that this belongs to this user, and no other may write it.
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

/// The name of a user in the user database.
pub fn user_name(uid: u32) -> Option<String> {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name)
}

/// The name of this user.
pub fn own_name() -> Option<String> {
    user_name(geteuid().as_raw())
}

/// The name of a user, or the number if it has none.
pub fn owner(uid: u32) -> String {
    user_name(uid).map_or_else(|| format!("user {uid}"), |name| format!("`{name}`"))
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
        Eyes { home: None, ..Eyes::ours() }
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
        // Of neither us nor root.
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

    fn give_away(path: &Path) {
        nix::unistd::chown(path, Some(Uid::from_raw(65534)), None).expect("root may");
    }

    #[test]
    fn a_project_is_the_users_own_by_its_folder_and_all_that_is_executed_of_it() {
        let root = tempfile::tempdir().expect("a folder");
        let at = |name: &str| root.path().join(name);
        folder(&at("workloads"), 0o755);
        folder(&at("workloads/net"), 0o755);
        std::fs::write(at("workloads/net/train.py"), "").expect("written");
        std::fs::write(at("collo.toml"), "").expect("written");
        let check = || project(root.path(), &["workloads", "collo.toml", "observers"]);
        assert_eq!(check(), Ok(()));
        let why = |path: &Path, mode: u32| {
            let before = std::fs::metadata(path).expect("there").permissions();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its mode");
            let why = check().expect_err("refused").to_string();
            std::fs::set_permissions(path, before).expect("its mode");
            why
        };
        // In a sticky folder others can lay down what is not there yet.
        assert_eq!(why(root.path(), 0o1777), format!("everyone may write in {}", root.path().display()));
        assert_eq!(why(&at("collo.toml"), 0o666), format!("everyone may write {}", at("collo.toml").display()));
        assert_eq!(why(&at("workloads"), 0o777), format!("everyone may write in {}", at("workloads").display()));
        if !geteuid().is_root() {
            return crate::skip::skip("root", "only root can give files away, and checks each");
        }
        assert_eq!(
            why(&at("workloads/net/train.py"), 0o666),
            format!("everyone may write {}", at("workloads/net/train.py").display())
        );
        give_away(&at("workloads/net/train.py"));
        assert!(check().expect_err("refused").to_string().contains("train.py belongs to"));
    }

    #[test]
    fn root_executes_what_root_alone_could_have_written_through_every_link() {
        let root = tempfile::tempdir().expect("a folder");
        let real = root.path().canonicalize().expect("there");
        if !geteuid().is_root() {
            return crate::skip::skip("root", "only root can give files away");
        }
        folder(&real.join("bin"), 0o755);
        std::fs::write(real.join("bin/python3"), "").expect("written");
        symlink("python3", real.join("bin/python")).expect("a link");
        assert_eq!(program(&real.join("bin/python")), Ok(()));
        assert_eq!(program(&real.join("bin/missing")), Ok(()), "that is another error");
        give_away(&real.join("bin/python3"));
        assert!(program(&real.join("bin/python")).expect_err("refused").to_string().contains("bin/python3 belongs to"));
        nix::unistd::chown(&real.join("bin/python3"), Some(Uid::from_raw(0)), None).expect("root may");
        give_away(&real.join("bin"));
        assert!(program(&real.join("bin/python")).expect_err("refused").to_string().contains("bin belongs to"));
    }

    #[test]
    fn a_folder_of_the_user_is_where_they_want_it_else_in_their_home_and_never_where_anybody_may_write() {
        let state = UserFolder { name: "state", variable: "S", xdg: "X", in_home: ".local/state", mode: 0o700 };
        let at = |own: Option<&str>, xdg: Option<&str>, home: Option<&str>| {
            let var = |name: &str| if name == "S" { own } else { xdg }.map(PathBuf::from);
            state.chosen(var, || home.map(PathBuf::from)).display().to_string()
        };
        assert_eq!(at(Some("/s"), Some("/x"), Some("/h")), "/s");
        assert_eq!(at(None, Some("/x"), Some("/h")), "/x/collo");
        assert_eq!(at(None, Some("x"), Some("/h")), "/h/.local/state/collo");
        assert_eq!(at(None, None, None), "/nonexistent/.local/state/collo");
    }
}
