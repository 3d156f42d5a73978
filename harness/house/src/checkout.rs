//! The texts that the rules count. In: the root of a checkout. Out: its packages with their sources, and its documents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::features::TestFiles;
use crate::production::{Production, production, test_files};

/// Packages that no user runs; their lines are counted apart.
pub const TOOLS: [&str; 4] = ["bench", "fuzz", "house", "simgpu"];

/// What is read of a checkout: texts by their paths.
#[derive(Debug, Clone)]
pub struct Texts {
    pub root: PathBuf,
    /// The files of each package's `src` by their paths from it, by the package's folder in `harness/`.
    pub packages: BTreeMap<String, BTreeMap<String, String>>,
    /// The files of each package's `tests`, likewise.
    pub tests: TestFiles,
    /// README, CHANGELOG and all of `docs`, by path from the root.
    pub documents: BTreeMap<String, String>,
    /// The files of `mig-profiles/` by the name of their model.
    pub models: BTreeMap<String, String>,
}

impl Texts {
    /// Of the checkout that this package was compiled in.
    pub fn here() -> io::Result<Texts> {
        Texts::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
    }

    pub fn at(root: &Path) -> io::Result<Texts> {
        let root = root.canonicalize()?;
        let (mut packages, mut tests) = (BTreeMap::new(), TestFiles::new());
        for folder in sorted(&root.join("harness"))? {
            let source = folder.join("src");
            if folder.join("Cargo.toml").is_file() && source.is_dir() {
                packages.insert(name_of(&folder), texts(&source, "rs")?);
            }
            if folder.join("tests").is_dir() {
                tests.insert(name_of(&folder), texts(&folder.join("tests"), "rs")?);
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
        Ok(Texts { root, packages, tests, documents, models })
    }
}

/// A file of a package's `src`.
#[derive(Debug, Clone)]
pub struct SourceFile<'a> {
    /// Relative to `src`: `device/mod.rs`.
    pub path: &'a str,
    pub text: &'a str,
    /// Absent if only tests compile it.
    pub production: Option<Production<'a>>,
}

impl<'a> SourceFile<'a> {
    /// The folder or file at the top of `src` that it belongs to; a crate's root belongs to none.
    pub fn room(&self) -> Option<&'a str> {
        match self.path.split_once('/') {
            Some((room, _)) => Some(room),
            None => self.path.strip_suffix(".rs").filter(|name| !["lib", "main"].contains(name)),
        }
    }
}

/// A package of the workspace.
#[derive(Debug, Clone)]
pub struct Package<'a> {
    /// Of its folder in `harness/`.
    pub name: &'a str,
    pub files: Vec<SourceFile<'a>>,
}

impl<'a> Package<'a> {
    /// From the texts of its files, by their paths relative to `src`.
    pub fn of(name: &'a str, texts: &'a BTreeMap<String, String>) -> Package<'a> {
        let pairs: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let tests = test_files(&pairs);
        let production = |path, text| (!tests.contains(path)).then(|| production(text));
        let files = pairs.into_iter().map(|(path, text)| SourceFile { path, text, production: production(path, text) });
        Package { name, files: files.collect() }
    }

    /// Its files that are no tests, with what of them is production.
    pub fn production(&self) -> impl Iterator<Item = (&SourceFile<'a>, &Production<'a>)> {
        self.files.iter().filter_map(|file| Some((file, file.production.as_ref()?)))
    }

    /// Where a file is, from the root of the checkout.
    pub fn place(&self, file: &SourceFile) -> String {
        format!("harness/{}/src/{}", self.name, file.path)
    }

    pub fn is_tool(&self) -> bool {
        TOOLS.contains(&self.name)
    }
}

#[derive(Debug, Clone)]
pub struct Checkout<'a> {
    pub texts: &'a Texts,
    /// By name.
    pub packages: Vec<Package<'a>>,
}

impl<'a> Checkout<'a> {
    pub fn of(texts: &'a Texts) -> Checkout<'a> {
        Checkout { texts, packages: texts.packages.iter().map(|(name, files)| Package::of(name, files)).collect() }
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
