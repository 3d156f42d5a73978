//! What the numbers of a campaign depend on, by content: if one of these changes, old and new numbers do not belong together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use collo_store::{Ingredient, sha256_file, sha256_text};
use fs_err as fs;

use crate::machine;

/// An ingredient that is not what it was when the campaign began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub name: String,
    pub before: String,
    pub after: String,
}

/// A text by its content, with an optional word for its version.
pub fn text(content: &str, version: Option<String>) -> Ingredient {
    Ingredient { sha256: sha256_text(content), version }
}

/// A file by its content, with the commit that last touched it.
pub fn file(project: &Path, path: &Path) -> std::io::Result<Ingredient> {
    let sha256 = sha256_file(path)?;
    let version = machine::git_version(project, Some(path)).map(|v| match v.strip_suffix("-dirty") {
        Some(commit) => format!("git {commit} (dirty)"),
        None => format!("git {v}"),
    });
    Ok(Ingredient { sha256, version })
}

/// The first of these ingredients that is a file of `workloads/` and is no longer what it was; one that is gone has changed.
pub fn changed_file<'a>(project: &Path, ingredients: &'a BTreeMap<String, Ingredient>) -> Option<&'a str> {
    let files =
        ingredients.iter().map(|(name, i)| (name, project.join(name), i)).filter(|(name, ..)| name.starts_with("workloads/"));
    let changed = |(_, path, before): &(&String, PathBuf, &Ingredient)| sha256_file(path).ok().as_ref() != Some(&before.sha256);
    files.into_iter().find(changed).map(|(name, ..)| name.as_str())
}

/// All files below a folder, each an ingredient of its own, so that a change can be named; what Python and editors leave there
/// does not count.
pub fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "__pycache__" || name.ends_with('~') {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// What differs, by name; an ingredient that came or went differs too.
pub fn changes(before: &BTreeMap<String, Ingredient>, now: &BTreeMap<String, Ingredient>) -> Vec<Change> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let word = |i: Option<&Ingredient>, other: Option<&Ingredient>| match i {
        None => "absent".to_string(),
        Some(i) => match &i.version {
            // The same word for two contents (an edit on top of an edit) would say nothing.
            Some(v) if other.and_then(|o| o.version.as_ref()) != Some(v) => v.clone(),
            _ => i.sha256[..8].to_string(),
        },
    };
    let changed = |name: &&String| before.get(*name).map(|i| &i.sha256) != now.get(*name).map(|i| &i.sha256);
    let change = |name: &String| {
        let (b, a) = (before.get(name), now.get(name));
        Change { name: name.clone(), before: word(b, a), after: word(a, b) }
    };
    names.into_iter().filter(changed).map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_leaves_in_a_folder_is_no_ingredient() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["train.py", "net/model.py", "__pycache__/train.pyc", "train.py~", ".train.py.swp"] {
            let place = dir.path().join(name);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, "a").unwrap();
        }
        assert_eq!(files(dir.path()).unwrap(), ["net/model.py", "train.py"].map(|name| dir.path().join(name)));
        let before = file(dir.path(), &dir.path().join("train.py")).unwrap();
        std::fs::write(dir.path().join("train.py"), "b").unwrap();
        assert_ne!(file(dir.path(), &dir.path().join("train.py")).unwrap().sha256, before.sha256);
    }

    #[test]
    fn a_file_that_was_edited_or_removed_has_changed_and_what_is_no_file_has_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("workloads/net/train.py");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "a").unwrap();
        let all = BTreeMap::from([
            ("workloads/net/train.py".to_string(), file(dir.path(), &path).unwrap()),
            ("data mine/clicks".to_string(), text("real", None)),
        ]);
        assert_eq!(changed_file(dir.path(), &all), None);
        std::fs::write(&path, "b").unwrap();
        assert_eq!(changed_file(dir.path(), &all), Some("workloads/net/train.py"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(changed_file(dir.path(), &all), Some("workloads/net/train.py"));
    }

    #[test]
    fn changes_are_named_by_version_where_that_tells_them_apart() {
        let version = |v: &str| Some(v.to_string());
        let before = BTreeMap::from([("a".to_string(), text("1", version("git 4e1a9c2"))), ("b".to_string(), text("1", None))]);
        let now = BTreeMap::from([("a".to_string(), text("2", version("git 7d20b11"))), ("c".to_string(), text("1", None))]);
        let found = changes(&before, &now);
        let shown: Vec<_> = found.iter().map(|c| format!("{} {} → {}", c.name, c.before, c.after)).collect();
        assert_eq!(shown, ["a git 4e1a9c2 → git 7d20b11", "b 6b86b273 → absent", "c absent → 6b86b273"]);
        assert!(changes(&before, &before).is_empty());
    }
}
