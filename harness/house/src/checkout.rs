//! The texts that the rules count. In: the root of a checkout. Out: its packages with their sources, and its documents.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::production::test_files;

/// Packages that no user runs; their lines are counted apart.
pub const TOOLS: [&str; 3] = ["bench", "house", "simgpu"];

/// A file of a package's `src`.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Relative to `src`: `device/mod.rs`.
    pub path: String,
    pub text: String,
    /// Whether only tests compile it.
    pub for_tests: bool,
}

impl SourceFile {
    /// The folder or file at the top of `src` that it belongs to; a crate's root belongs to none.
    pub fn room(&self) -> Option<&str> {
        match self.path.split_once('/') {
            Some((room, _)) => Some(room),
            None => self.path.strip_suffix(".rs").filter(|name| !["lib", "main"].contains(name)),
        }
    }
}

/// A package of the workspace.
#[derive(Debug, Clone)]
pub struct Package {
    /// Of its folder in `harness/`.
    pub name: String,
    pub files: Vec<SourceFile>,
}

impl Package {
    /// From the texts of its files, by their paths relative to `src`.
    pub fn of(name: &str, texts: BTreeMap<String, String>) -> Package {
        let pairs: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let tests = test_files(&pairs);
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: path.to_string(),
            text: text.to_string(),
            for_tests: tests.contains(path),
        };
        Package { name: name.to_string(), files: pairs.iter().map(file).collect() }
    }

    pub fn production(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|f| !f.for_tests)
    }

    /// Where a file is, from the root of the checkout.
    pub fn place(&self, file: &SourceFile) -> String {
        format!("harness/{}/src/{}", self.name, file.path)
    }

    pub fn is_tool(&self) -> bool {
        TOOLS.contains(&self.name.as_str())
    }
}

#[derive(Debug, Clone)]
pub struct Checkout {
    pub root: PathBuf,
    /// By name.
    pub packages: Vec<Package>,
    /// README, CHANGELOG and all of `docs`, by path from the root.
    pub documents: BTreeMap<String, String>,
    /// The files of `mig-profiles/` by the name of their model.
    pub models: BTreeMap<String, String>,
}

impl Checkout {
    /// The checkout that this package was compiled in.
    pub fn here() -> io::Result<Checkout> {
        Checkout::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
    }

    pub fn at(root: &Path) -> io::Result<Checkout> {
        let root = root.canonicalize()?;
        let mut packages = Vec::new();
        for folder in sorted(&root.join("harness"))? {
            let source = folder.join("src");
            if folder.join("Cargo.toml").is_file() && source.is_dir() {
                packages.push(Package::of(&name_of(&folder), texts(&source, "rs")?));
            }
        }
        let mut documents = BTreeMap::new();
        for (path, text) in texts(&root.join("docs"), "md")? {
            documents.insert(format!("docs/{path}"), text);
        }
        for name in ["README.md", "CHANGELOG.md"] {
            documents.insert(name.to_string(), fs::read_to_string(root.join(name))?);
        }
        let models = texts(&root.join("mig-profiles"), "toml")?;
        let models = models.into_iter().map(|(path, text)| (path.trim_end_matches(".toml").to_string(), text)).collect();
        Ok(Checkout { root, packages, documents, models })
    }
}

/// All files below a folder with an ending, by their path from it.
fn texts(folder: &Path, ending: &str) -> io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for path in files_below(folder)? {
        if path.extension().is_some_and(|e| e == ending)
            && let Ok(name) = path.strip_prefix(folder)
        {
            found.insert(name.to_string_lossy().into_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(found)
}

/// All files below a folder; hidden ones are left out.
pub fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in sorted(folder)? {
        if name_of(&path).starts_with('.') {
            continue;
        } else if path.is_dir() {
            found.extend(files_below(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)?.map(|e| Ok(e?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
