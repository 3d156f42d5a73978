//! Files that a document names. In: its text, and the paths of the checkout. Out: names that lead nowhere.
//!
//! A name is what stands between backticks and looks like a path: it has a slash, or an ending of [`ENDINGS`]. `{a,b}` stands for
//! several, `*` for any part of a name. It exists if it is the end of a path below the root, the whole of it between two slashes at
//! least: `launch/errand.rs`, `measure/src/plan` (a folder, or a module without its `.rs`). Links are read from the document's folder.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use crate::checkout::files_below;

const ENDINGS: [&str; 9] = [".rs", ".py", ".toml", ".json", ".jsonl", ".md", ".css", ".html", ".txt"];

/// What collo writes where it runs, or reads from there.
const ELSEWHERE: [&str; 6] = ["campaign.json", "collo.toml", "journal.jsonl", "report.json", "run.json", "runs"];

/// What is no part of a checkout.
const IGNORED: [&str; 3] = ["data", "runs", "target"];

/// Files and folders below a root, relative to it.
pub fn paths(root: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut add = |path: &Path| {
        for path in path.ancestors() {
            if let Ok(relative) = path.strip_prefix(root) {
                found.insert(relative.to_string_lossy().into_owned());
            }
        }
    };
    for entry in std::fs::read_dir(root)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() {
            add(&path);
        } else if name == ".ci" || !IGNORED.contains(&name.as_str()) && !name.starts_with('.') {
            files_below(&path)?.iter().for_each(|path| add(path));
        }
    }
    Ok(found)
}

/// The names of a document that lead nowhere, with their lines.
pub fn missing(document: &str, folder: &str, paths: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in document.lines().enumerate() {
        let named = line.split('`').skip(1).step_by(2).filter(|name| is_path(name)).flat_map(expanded);
        let lost = named.filter(|name| !exists(name, paths)).map(|name| format!("line {}: `{name}`", at + 1));
        let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        let links = links.map(|link| link.split('#').next().unwrap_or(link)).filter(|l| !l.is_empty() && !l.contains("://"));
        let dead = links.map(|link| resolved(folder, link)).filter(|path| !paths.contains(path));
        found.extend(lost);
        found.extend(dead.map(|path| format!("line {}: the link to {path}", at + 1)));
    }
    found
}

fn is_path(name: &str) -> bool {
    let is_of_paths = |c: char| c.is_ascii_alphanumeric() || "_-./{},*".contains(c);
    let is_placeholder = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    name.chars().all(is_of_paths)
        && !name.starts_with('/')
        && (name.contains('/') || ENDINGS.iter().any(|ending| name.ends_with(ending)))
        && !name.split('/').any(is_placeholder)
        && !ELSEWHERE.contains(&name.trim_end_matches('/'))
}

/// The names that `{a,b}` stands for.
fn expanded(name: &str) -> Vec<String> {
    let braces =
        name.split_once('{').and_then(|(before, rest)| rest.split_once('}').map(|(inside, after)| (before, inside, after)));
    match braces {
        Some((before, inside, after)) => inside.split(',').flat_map(|one| expanded(&format!("{before}{one}{after}"))).collect(),
        None => vec![name.to_string()],
    }
}

fn exists(name: &str, paths: &BTreeSet<String>) -> bool {
    let name = name.trim_end_matches('/');
    let module = format!("{name}.rs");
    paths.iter().any(|path| ends_with(path, name) || ends_with(path, &module))
}

/// Whether the last parts of a path are those of a name.
fn ends_with(path: &str, name: &str) -> bool {
    let mut parts = path.rsplit('/');
    name.rsplit('/').all(|wanted| parts.next().is_some_and(|part| is_like(part, wanted)))
}

/// Whether a part of a path is as written, where a `*` stands for anything.
fn is_like(part: &str, wanted: &str) -> bool {
    match wanted.split_once('*') {
        Some((before, after)) => part.len() + 1 >= wanted.len() && part.starts_with(before) && part.ends_with(after),
        None => part == wanted,
    }
}

fn resolved(folder: &str, link: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(document: &str) -> Vec<String> {
        let files =
            ["docs/decisions/0001-a.md", "harness/plan/src/trace.rs", "harness/plan/src/seen/mod.rs", "workloads/collo_run.py"];
        let with_folders = files.iter().flat_map(|f| Path::new(f).ancestors()).map(|p| p.to_string_lossy().into_owned());
        missing(document, "docs", &with_folders.collect())
    }

    #[test]
    fn names_are_found_from_the_root_from_harness_and_by_their_last_parts() {
        assert!(
            lost("`workloads/` `plan/src/trace.rs` `trace.rs` `src/trace` `plan/src/seen` `plan/src/{trace,seen}` `collo_*.py`")
                .is_empty()
        );
        assert!(lost("[x](decisions/0001-a.md#part) [y](https://example.org/z) [z](../workloads/collo_run.py)").is_empty());
    }

    #[test]
    fn names_that_lead_nowhere_are_found_with_their_lines() {
        assert_eq!(lost("\n`plan/src/{trace,find}.rs`"), ["line 2: `plan/src/find.rs`"]);
        assert_eq!(lost("`race.rs` `other_*.py` `measure/src/trace.rs`").len(), 3);
        assert_eq!(lost("[x](decisions/0002-b.md)"), ["line 1: the link to docs/decisions/0002-b.md"]);
    }

    #[test]
    fn what_is_no_path_is_not_sought() {
        assert!(lost("`/proc` `mig:4/7` `Seat::of` `os.environ` `workloads/NAME/x.toml` `run.json` `runs/`").is_empty());
    }
}
