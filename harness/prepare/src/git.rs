//! Asks git about the checkout that a project lies in; nothing else here calls it.
//!
//! In: a folder. Out: a query, the commit and the tracked files. A checkout can name programs that git then executes, so none is asked
//! whose `.git` another user could have written, and what a configuration can name is switched off:
//!
//! - `core.fsmonitor` and `core.hooksPath`: git-config(1); the first may be a path to a program that every look at the work tree
//!   executes, the second is the folder of hooks.
//! - `log.showSignature`, which has `git log` execute `gpg.program`: git-config(1).
//! - `GIT_ALLOW_PROTOCOL`: git(1); of a partial clone objects would be fetched, by commands of the configuration.
//! - `GIT_NO_LAZY_FETCH`: git(1), since 2.44, the same.
//! - `GIT_CONFIG_NOSYSTEM`, `GIT_CONFIG_GLOBAL`: git(1); no configuration but the checkout's own is read.
//! - `GIT_OPTIONAL_LOCKS`: git(1); a query does not write the index, so no hook is due after it.
//! - `--git-dir`, `--work-tree`: git(1); git looks for no other checkout, nor for a bare one whose files lie in the folder
//!   (git-config(1), `safe.bareRepository`).
//! - `--no-ext-diff`, `--no-textconv`: git-log(1). `--ignore-submodules=dirty`: git-status(1); git starts no other one in submodules,
//!   to which these settings would not reach.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use collo_launch::{CommandOutput, Errand};
use collo_text::trust;

/// The checkout may be large and on a slow disk, so the wait is limited.
const LIMIT: Duration = Duration::from_secs(120);
const SETTINGS: [&str; 3] = ["core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false"];
const VARIABLES: [(&str, &str); 5] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
];
/// What a caller of collo, such as a hook of git's, may have set for another checkout or another purpose.
const WITHHELD: [&str; 4] = ["GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_EXTERNAL_DIFF"];

/// A query in a folder; `None` outside a checkout, and in one of another user.
fn query(folder: &Path) -> Option<Errand> {
    let folder = std::path::absolute(folder).ok()?;
    let top = folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok())?;
    let own = top.join(".git");
    trust::of_user(&own).ok()?;
    let mut query = Errand::to("git", LIMIT).arg("-C").arg(&folder).arg("--git-dir").arg(&own).arg("--work-tree").arg(top);
    query = SETTINGS.iter().fold(query.arg("--no-pager"), |query, setting| query.args(["-c", setting]));
    query = VARIABLES.iter().fold(query, |query, (name, value)| query.env(*name, Some(*value)));
    Some(WITHHELD.iter().fold(query, |query, name| query.env(*name, None::<&str>)))
}

/// The commit that last touched a path (or of the whole checkout), with `-dirty` where what git tracks of it has changes; absent outside git, and where
/// git does not answer.
pub fn version(folder: &Path, path: Option<&Path>) -> Option<String> {
    let answer = |arguments: &[&str]| {
        let asked = query(folder)?.args(arguments).args(path.iter().flat_map(|path| [OsStr::new("--"), path.as_os_str()]));
        Some(asked.ask().ok().filter(CommandOutput::success)?.out().trim().to_string())
    };
    let commit = answer(&["log", "-1", "--no-ext-diff", "--no-textconv", "--format=%h"]).filter(|c| !c.is_empty())?;
    let dirty = !answer(&["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty"])?.is_empty();
    Some(if dirty { format!("{commit}-dirty") } else { commit })
}

/// The files of a folder that git tracks, or a file itself; empty outside a checkout.
pub fn tracked(project: &Path, folder: &Path) -> BTreeSet<PathBuf> {
    // By its name in the project, so that links above that do not matter.
    let below = folder.strip_prefix(project).unwrap_or(folder);
    let listed = query(project).and_then(|query| query.args(["ls-files", "-z", "--"]).arg(below).ask().ok());
    let listed = listed.filter(CommandOutput::success).map(|answer| answer.out).unwrap_or_default();
    listed.split(|&b| b == 0).filter(|name| !name.is_empty()).map(|name| project.join(OsStr::from_bytes(name))).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_checkout_is_asked_and_nothing_that_it_names_is_executed() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let git = |arguments: &[&str]| {
            let author = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgSign=false"];
            let made = Command::new("git").args(author).args(arguments).current_dir(folder.path()).output();
            made.is_ok_and(|made| made.status.success())
        };
        if !git(&["init", "--quiet"]) {
            return crate::skip::skip("git", "there is no git");
        }
        fs_err::create_dir(at("workloads")).expect("a folder");
        fs_err::write(at("workloads/train.py"), "1").expect("written");
        assert!(git(&["add", "."]) && git(&["commit", "--quiet", "--message", "x"]));
        let sly = at("sly");
        fs_err::write(&sly, format!("#!/bin/sh\ntouch {}\n", at("executed").display())).expect("written");
        fs_err::set_permissions(&sly, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        assert!(git(&["config", "core.fsmonitor", &sly.display().to_string()]));
        assert!(git(&["config", "core.hooksPath", &folder.path().display().to_string()]));
        // What git does by itself, lest this test prove nothing.
        git(&["status"]);
        assert!(at("executed").exists(), "git executes it");
        fs_err::remove_file(at("executed")).expect("there");
        assert_eq!(tracked(folder.path(), &at("workloads")), [at("workloads/train.py")].into());
        let commit = version(folder.path(), Some(Path::new("workloads"))).expect("a commit");
        assert!(!commit.ends_with("-dirty"), "{commit}");
        assert!(version(folder.path(), None).is_some_and(|version| !version.ends_with("-dirty")), "git does not know `sly`");
        fs_err::write(at("workloads/train.py"), "2").expect("written");
        assert!(version(folder.path(), None).is_some_and(|version| version.ends_with("-dirty")));
        assert!(!at("executed").exists(), "it was executed");
    }

    #[test]
    fn a_checkout_of_another_user_is_not_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        fs_err::create_dir(folder.path().join(".git")).expect("a folder");
        assert!(query(folder.path()).is_some());
        if !nix::unistd::geteuid().is_root() {
            return crate::skip::skip("root", "only root can give files away");
        }
        nix::unistd::chown(&folder.path().join(".git"), Some(nix::unistd::Uid::from_raw(65534)), None).expect("root may");
        assert!(query(folder.path()).is_none());
    }
}
