//! How a path is printed, and where a program is found.

use std::path::{Path, PathBuf};

/// A path for display: relative to the current folder if below it; else to the home folder.
pub fn shown(path: &Path) -> String {
    let path = path.strip_prefix(".").unwrap_or(path);
    if let Some(below) = std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok()) {
        return below.display().to_string();
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty() && home != "/");
    match home.and_then(|home| path.strip_prefix(home).ok()).filter(|below| *below != Path::new("")) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// A path as it is written in a file of this folder: below the folder, absolute, or behind `~/` below the user's home.
pub fn written(folder: &Path, path: &str) -> PathBuf {
    match path.strip_prefix("~/").zip(crate::trust::home()) {
        Some((below, home)) => home.join(below),
        None => folder.join(path),
    }
}

/// A program on the PATH: in the first of its folders that has one, as `execvp` looks for it.
pub fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(|file| is_program(file))
}

/// Whether it is a file that this user may execute.
pub fn is_program(file: &Path) -> bool {
    file.is_file() && nix::unistd::access(file, nix::unistd::AccessFlags::X_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_file_is_below_its_folder_or_the_home() {
        let of = |path: &str| written(Path::new("/here"), path);
        assert_eq!(
            [of("a/b"), of("/a"), of("~b/c"), of("a/~/b")],
            ["/here/a/b", "/a", "/here/~b/c", "/here/a/~/b"].map(PathBuf::from)
        );
        assert_eq!(of("~/venv"), crate::trust::home().expect("there is one").join("venv"));
    }

    #[test]
    fn a_path_below_here_is_shown_from_here() {
        let here = std::env::current_dir().expect("there is one");
        assert_eq!((shown(&here.join("runs/x")), shown(Path::new("./runs/x"))), ("runs/x".into(), "runs/x".into()));
        assert_eq!(shown(Path::new("/proc/self")), "/proc/self");
        if let Some(home) = std::env::var_os("HOME").filter(|home| home != "/" && Path::new(home).is_absolute()) {
            assert_eq!(shown(&Path::new(&home).join("no such/x")), "~/no such/x");
        }
    }
}
