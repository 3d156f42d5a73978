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

/// A file or a folder by its content, with the commit that last touched it.
pub fn path(project: &Path, path: &Path) -> std::io::Result<Ingredient> {
    let sha256 = if path.is_dir() { folder(path)? } else { sha256_file(path)? };
    let version = machine::git_version(project, Some(path)).map(|v| match v.strip_suffix("-dirty") {
        Some(commit) => format!("git {commit} (dirty)"),
        None => format!("git {v}"),
    });
    Ok(Ingredient { sha256, version })
}

/// Names and contents of all files below a folder; what Python and editors leave there does not count.
fn folder(path: &Path) -> std::io::Result<String> {
    let mut files = Vec::new();
    collect(path, &mut files)?;
    files.sort();
    let mut text = String::new();
    for file in files {
        let name = file.strip_prefix(path).unwrap_or(&file);
        text.push_str(&format!("{}\t{}\n", name.display(), sha256_file(&file)?));
    }
    Ok(sha256_text(&text))
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
    fn a_folder_changes_with_its_files_and_not_with_what_python_leaves_there() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("train.py"), "a").unwrap();
        let first = folder(dir.path()).unwrap();
        std::fs::create_dir(dir.path().join("__pycache__")).unwrap();
        std::fs::write(dir.path().join("__pycache__/x.pyc"), "b").unwrap();
        assert_eq!(folder(dir.path()).unwrap(), first);
        std::fs::write(dir.path().join("train.py"), "b").unwrap();
        assert_ne!(folder(dir.path()).unwrap(), first);
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
