//! The Python for training: the user's own, or one that collo builds from the project's pins, once for all clones.
//!
//! In: the pins in `workloads/requirements*.txt`, the driver's CUDA and its GPU, the cache folder. Out: an interpreter and its
//! package versions. A built environment is renamed into place, so an existing one is complete. This module does not know what
//! will be trained.

mod build;
mod driver_match;
mod pins;
mod seen;
mod system_python;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use collo_store::sha256_text;
use collo_text::trust::{self, Untrusted, UserFolder};
use collo_text::{Diagnostic, ExitClass, PROCESS_LIMIT};
use fs_err as fs;

pub use driver_match::{Misfit, fits};
pub use pins::PinSet;
pub use seen::seen;
pub use system_python::{SystemPython, find as find_system};

use collo_launch::interrupted::{Noted, Stopped};

/// An interpreter that members can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    pub interpreter: PathBuf,
    /// `python`, `torch`, `torch_cuda` (what it is built for, absent if for none) …, and `requirements` (digest of the pins) with
    /// `python_set` (its name), or `own` (the path that the user gave).
    pub facts: BTreeMap<String, String>,
}

/// Progress of the installation.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// It begins: the number of packages, the folder, the installer, and how much is to be downloaded, where that is known.
    Begins {
        packages: usize,
        folder: PathBuf,
        with: &'static str,
        load_bytes: Option<u64>,
    },
    /// Another collo installs the same; this one waits.
    Waits {
        folder: PathBuf,
    },
    /// Bytes on disk, of an estimated total, and the time elapsed.
    OnDisk {
        bytes: u64,
        of_about: u64,
        elapsed: Duration,
    },
    Compiles,
    Ends {
        elapsed: Duration,
    },
}

/// Why there is no Python.
#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    #[error("no Python from 3.10 to 3.13 was found{seen}")]
    None { seen: String },
    #[error("`{path}` is not a usable Python")]
    Unusable { path: PathBuf, reason: String },
    #[error("`{path}` does not identify itself: it did not finish within {} s", .limit.as_secs_f64())]
    Hangs { path: PathBuf, limit: Duration },
    #[error("no process can be started for `{}`: {source}", .path.display())]
    Unsupervised { path: PathBuf, source: std::io::Error },
    #[error("`{}` was asked for its version, and {reason}", .path.display())]
    Lost { path: PathBuf, reason: String },
    #[error("`{}` is not started as root", .path.display())]
    Untrusted { path: PathBuf, why: Untrusted },
    #[error("{}", .0.what())]
    Cache(Box<Diagnostic>),
    #[error("PATH is not set, so no Python can be found")]
    NoPath,
    #[error("`{}` contains a colon, which separates Python's search path", .path.display())]
    Colon { path: PathBuf },
    #[error("stopped while providing Python, by {}", .0.0.as_str())]
    Stopped(#[from] Stopped),
    #[error("the Python environment needs {needed_gb:.1} GB in {folder}, {free_gb:.1} GB are free")]
    NoRoom { folder: PathBuf, needed_gb: f64, free_gb: f64 },
    #[error("Python's `venv` is missing: {reason}")]
    NoVenv { reason: String },
    #[error("the Python packages could not be installed: {reason}")]
    Install { reason: String, log: PathBuf },
    #[error("the driver has CUDA {cuda}, the pinned PyTorch needs CUDA 12 or later")]
    OldDriver { cuda: String },
    #[error("the driver has CUDA 12, and PyTorch's wheel for it on {architecture} is without CUDA")]
    NoSet { architecture: String },
    #[error("the GPU has compute capability {capability}, and no pinned PyTorch has kernels for it")]
    NoKernels { capability: String },
    #[error("{0}")]
    Misfit(Box<Misfit>),
    #[error("the pins `{path}` are missing")]
    NoPins { path: PathBuf },
    #[error("`{requirement}` in {path} has no hash of SHA-256, SHA-384 or SHA-512, and packages are installed only with one")]
    NoHash { path: String, requirement: String },
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Store(#[from] collo_store::Error),
}

impl PythonError {
    /// The hint.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            PythonError::None { .. } => "`sudo apt install python3 python3-venv`, or `--python PATH` takes your own".into(),
            // One that was found on the PATH, and not named.
            PythonError::Unusable { path, .. } if path.components().count() == 1 => {
                format!("try it by hand, `{} -c pass`; `--python PATH` takes another", path.display())
            }
            PythonError::Unusable { path, .. } if is_without_interpreter(path) => {
                let there =
                    ["bin/python3", "python", "python3"].map(|name| path.join(name)).into_iter().find(|file| file.is_file());
                match there {
                    Some(interpreter) => format!("name the interpreter in it: {}", collo_text::shown(&interpreter)),
                    None => {
                        "name an interpreter, or the folder of an environment with `bin/python` in it, as `python3 -m venv DIR` \
                             makes one"
                            .into()
                    }
                }
            }
            PythonError::Unusable { path, .. } if std::env::var_os("COLLO_PYTHON").is_some_and(|set| set == path.as_os_str()) => {
                "`unset COLLO_PYTHON` takes the pinned set, `--python PATH` another Python".into()
            }
            PythonError::Unusable { .. } => {
                "leave out `--python`, or `environment` in a workload.toml, to take the pinned set".into()
            }
            PythonError::Hangs { path, .. } => {
                format!("try it by hand, `{} -c pass`; or put another Python in its place", path.display())
            }
            PythonError::Unsupervised { .. } => PROCESS_LIMIT.into(),
            PythonError::Lost { .. } => {
                "the same command tries again; `dmesg` shows whether the kernel was short of memory".into()
            }
            PythonError::Untrusted { .. } => {
                "`chown -R root` its folder if you trust what is in it, else run collo as the user to whom it belongs".into()
            }
            PythonError::NoPath => "`PATH=/usr/local/bin:/usr/bin:/bin collo …`".into(),
            PythonError::Colon { path } if path.ends_with("workloads") => {
                let project = path.parent().unwrap_or(path);
                format!("use another name: `ln -s '{}' ~/link`, then `collo -C ~/link …`", project.display())
            }
            PythonError::Colon { .. } => "`COLLO_CACHE=DIR` puts it elsewhere".into(),
            PythonError::Stopped(_) => "the same command resumes".into(),
            PythonError::NoRoom { .. } => "`COLLO_CACHE=DIR` puts it elsewhere, `--python PATH` takes your own".into(),
            PythonError::NoVenv { .. } => "`sudo apt install python3-venv`, or have `uv` on the PATH".into(),
            PythonError::Install { log, .. } => {
                format!("all of it is in {}; without a network here, `--python PATH` takes your own environment", log.display())
            }
            PythonError::OldDriver { .. } => "update the driver to 525 or later, or `--python PATH` takes your own".into(),
            PythonError::NoSet { .. } => "update the driver to 580 or later, or `--python PATH` takes your own".into(),
            PythonError::NoKernels { .. } => {
                "`--python PATH` takes your own: PyTorch's builds for CUDA 12.6 have kernels from 5.0 on".into()
            }
            PythonError::Misfit(misfit) => misfit.hint(),
            PythonError::NoPins { .. } => "`collo init` writes them".into(),
            PythonError::NoHash { path, .. } => format!(
                "`uv pip compile --generate-hashes requirements.in -o {path}` writes them, of all that those in requirements.in need"
            ),
            PythonError::Cache(_) | PythonError::Io(_) | PythonError::Store(_) => return None,
        })
    }
}

impl From<PythonError> for Diagnostic {
    fn from(e: PythonError) -> Diagnostic {
        let e = match e {
            PythonError::Cache(refused) => return *refused,
            other => other,
        };
        let class = match &e {
            PythonError::Stopped(stopped) => stopped.class(),
            _ => ExitClass::Machine,
        };
        let shown = Diagnostic::new(e.to_string()).of(class);
        let shown = match &e {
            PythonError::Unusable { reason, .. } => shown.caused_by(reason),
            PythonError::Untrusted { why, .. } => shown.caused_by(why),
            _ => shown,
        };
        match e.hint() {
            Some(hint) => shown.hint(hint),
            None => shown,
        }
    }
}

/// The cache of this user, whose Pythons are started and whose descriptions are believed: `COLLO_CACHE`, else `collo` in
/// `XDG_CACHE_HOME` or in `.cache` of the home.
const CACHE: UserFolder =
    UserFolder { name: "cache", variable: "COLLO_CACHE", xdg: "XDG_CACHE_HOME", in_home: ".cache", mode: 0o755 };

/// The cache folder, existing or future; an error if others could have written there.
pub fn cache_folder() -> Result<PathBuf, PythonError> {
    CACHE.look().map_err(|refused| PythonError::Cache(Box::new(refused)))?;
    Ok(CACHE.path())
}

/// Create a cache folder, that of the user with its own mode, if it does not exist.
pub fn make_cache(cache: &Path) -> Result<(), PythonError> {
    match cache == CACHE.path() {
        true => CACHE.make().map(drop).map_err(|refused| PythonError::Cache(Box::new(refused))),
        false => Ok(fs::create_dir_all(cache)?),
    }
}

/// The user's own interpreter; it must be able to report its packages.
pub fn own(path: &Path) -> Result<Python, PythonError> {
    let Python { interpreter, mut facts } = named(path)?;
    if !facts.contains_key("torch") {
        let reason = "it has no `torch`".to_string();
        return Err(PythonError::Unusable { path: path.into(), reason });
    }
    facts.insert("own".into(), interpreter.display().to_string());
    Ok(Python { interpreter, facts })
}

/// An interpreter, or the folder of an environment, that a workload names as its own.
pub fn named(path: &Path) -> Result<Python, PythonError> {
    if is_without_interpreter(path) {
        return Err(PythonError::Unusable { path: path.into(), reason: "it is a folder without `bin/python`".into() });
    }
    let interpreter = interpreter_of(path);
    let facts = system_python::facts(&interpreter, path)?;
    Ok(Python { interpreter, facts })
}

/// Check that root may start it.
fn may_start(interpreter: &Path) -> Result<(), PythonError> {
    trust::program(interpreter).map_err(|why| PythonError::Untrusted { path: interpreter.into(), why })
}

/// The interpreter that a path means.
pub fn interpreter_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("bin/python") } else { path.to_path_buf() }
}

/// Whether a path is a folder that is not one of an environment.
fn is_without_interpreter(path: &Path) -> bool {
    path.is_dir() && !interpreter_of(path).exists()
}

/// The system's interpreter, for workloads that need no package.
pub fn system() -> Result<Python, PythonError> {
    let found = system_python::find()?;
    let facts = BTreeMap::from([("python".to_string(), found.version.clone())]);
    Ok(Python { interpreter: found.path, facts })
}

/// The environment of a pinned set, and its present or future folder.
#[derive(Debug, Clone)]
pub struct PythonEnvironment {
    base: SystemPython,
    pins: PathBuf,
    pins_digest: String,
    packages: usize,
    set: PinSet,
    cache: PathBuf,
}

/// Pins with the hashes of every package for every machine are some hundred kilobytes.
const LARGEST_PINS: u64 = 16_000_000;

impl PythonEnvironment {
    /// The environment for the pins in `workloads`; nothing is touched.
    pub fn of(workloads: &Path, cache: &Path, set: PinSet) -> Result<Self, PythonError> {
        let pins = workloads.join(set.file());
        let text = collo_text::read_small_text(&pins, LARGEST_PINS).map_err(|_| PythonError::NoPins { path: pins.clone() })?;
        let packages = packages_in(&text);
        let base = system_python::find()?;
        Ok(PythonEnvironment { base, pins, pins_digest: sha256_text(&text), packages, set, cache: cache.into() })
    }

    /// Its folder: keyed by the pins and by the version of Python, so that clones share it.
    pub fn folder(&self) -> PathBuf {
        let key = sha256_text(&format!("{} {}", self.pins_digest, self.base.minor()));
        self.cache.join(format!("python-{}", &key[..8]))
    }

    /// Its present or future interpreter.
    pub fn interpreter(&self) -> PathBuf {
        self.folder().join("bin/python")
    }

    /// Bytes to download and bytes on disk.
    pub fn size(&self) -> (u64, u64) {
        self.set.size()
    }

    /// The environment, if it exists.
    pub fn ready(&self) -> Result<Option<Python>, PythonError> {
        let interpreter = self.interpreter();
        if !interpreter.exists() {
            return Ok(None);
        }
        let mut facts = system_python::facts(&interpreter, &self.folder())?;
        facts.insert("requirements".into(), self.pins_digest[..16].to_string());
        facts.insert("python_set".into(), self.set.name().into());
        Ok(Some(Python { interpreter, facts }))
    }

    /// The environment, built if it does not exist.
    pub fn provide(&self, tell: &mut dyn FnMut(Progress)) -> Result<Python, PythonError> {
        if let Some(python) = self.ready()? {
            return Ok(python);
        }
        make_cache(&self.cache)?;
        let _lock = self.lock(tell)?;
        // Whoever held the lock may just have built it.
        if self.ready()?.is_none() {
            build::build(self, tell)?;
        }
        let gone = || std::io::Error::other("it is not where it was just put");
        self.ready()?.ok_or_else(|| PythonError::Unusable { path: self.folder(), reason: gone().to_string() })
    }

    /// A folder of additional packages for the PYTHONPATH of this environment, which itself is unchanged: for the tests or one
    /// workload. Built from pins with hashes, if missing.
    pub fn overlay(&self, pins: &Path, tell: &mut dyn FnMut(Progress)) -> Result<PathBuf, PythonError> {
        let (place, text) = self.overlay_of(pins)?;
        if let Some(requirement) = without_hash(&text) {
            return Err(PythonError::NoHash { path: collo_text::shown(pins), requirement });
        }
        make_cache(&self.cache)?;
        let _lock = lock(&place, tell)?;
        if !place.exists() {
            build::overlay(self, pins, packages_in(&text), &place, tell)?;
        }
        Ok(place)
    }

    /// Its present or future place.
    pub fn overlay_folder(&self, pins: &Path) -> Result<PathBuf, PythonError> {
        self.overlay_of(pins).map(|(place, _)| place)
    }

    /// The same, with the text of the pins.
    fn overlay_of(&self, pins: &Path) -> Result<(PathBuf, String), PythonError> {
        let text = collo_text::read_small_text(pins, LARGEST_PINS).map_err(|_| PythonError::NoPins { path: pins.into() })?;
        let name = self.folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((self.cache.join(format!("{name}-{}", &sha256_text(&text)[..8])), text))
    }

    fn lock(&self, tell: &mut dyn FnMut(Progress)) -> Result<std::fs::File, PythonError> {
        lock(&self.folder(), tell)
    }
}

/// The hashes that packages are installed with: those of `STRONG_HASHES` in pip's src/pip/_internal/utils/hashes.py.
const HASHES: [&str; 3] = ["sha256", "sha384", "sha512"];

/// The first requirement without a hash (pip.pypa.io/en/stable/topics/secure-installs): a line goes on behind a backslash.
fn without_hash(pins: &str) -> Option<String> {
    let joined = pins.replace("\\\r\n", " ").replace("\\\n", " ");
    let is_requirement = |line: &&str| line.starts_with(|c: char| c.is_ascii_alphanumeric());
    let line = joined.lines().map(str::trim).find(|line| is_requirement(line) && !has_hash(line))?;
    Some(line.split([' ', ';', '#']).next().unwrap_or(line).to_string())
}

/// Whether a requirement has a hash, in options of its own or in the fragment of its URL, and no option with a hash that pip refuses.
fn has_hash(requirement: &str) -> bool {
    let is_hash = |text: &str, sign: char| {
        let (name, digits) = text.split_once(sign).unwrap_or_default();
        HASHES.contains(&name) && digits.starts_with(|c: char| c.is_ascii_hexdigit())
    };
    let without_comment = requirement.split(" #").next().unwrap_or_default();
    let (wanted, options) = without_comment.split_once("--hash").unwrap_or((without_comment, ""));
    let mut options = options.split("--hash").map(|value| value.trim_start_matches(['=', ' '])).filter(|value| !value.is_empty());
    let in_fragment = wanted.split(['#', '&']).skip(1).any(|part| is_hash(part, '='));
    options.clone().all(|value| is_hash(value, ':')) && (in_fragment || options.next().is_some())
}

/// The number of pinned packages. One may be pinned several times, for several versions of Python.
fn packages_in(pins: &str) -> usize {
    let name = |line: &str| Some(line.split_once("==")?.0.to_string()).filter(|n| !n.starts_with([' ', '#']));
    pins.lines().filter_map(name).collect::<std::collections::BTreeSet<_>>().len()
}

/// Only one collo builds a folder of the cache; the others wait for it.
fn lock(place: &Path, tell: &mut dyn FnMut(Progress)) -> Result<std::fs::File, PythonError> {
    let file = fs::File::create(place.with_extension("lock"))?.into_file();
    let noted = Noted::begin();
    let mut waits = false;
    while let Err(why) = file.try_lock() {
        // On a file system without locks waiting would never end.
        if let std::fs::TryLockError::Error(e) = why {
            return Err(e.into());
        }
        if !std::mem::replace(&mut waits, true) {
            tell(Progress::Waits { folder: place.into() });
        }
        noted.go_on()?;
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_an_interpreter_is_refused_with_what_to_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |path: &Path| Diagnostic::from(own(path).expect_err("no interpreter"));
        let hint = |path: &Path| refused(path).way_out().expect("one").to_string();
        assert_eq!(refused(folder.path()).cause(), Some("it is a folder without `bin/python`"));
        assert!(hint(folder.path()).contains("the folder of an environment with `bin/python` in it"));
        let (bin, interpreter) = (folder.path().join("bin"), folder.path().join("bin/python3"));
        fs::create_dir(&bin).expect("made");
        fs::write(&interpreter, "").expect("written");
        for place in [folder.path(), &bin] {
            assert_eq!(hint(place), format!("name the interpreter in it: {}", interpreter.display()));
        }
        // One that is there and does not answer is another mistake.
        fs::rename(&interpreter, bin.join("python")).expect("renamed");
        assert!(hint(folder.path()).starts_with("leave out `--python`"));
    }

    #[test]
    fn a_requirement_without_a_hash_is_named_with_the_command_that_writes_them() {
        let hashed =
            "# made by uv\n--only-binary :all:\neinops==0.8.1 \\\n    --hash=sha256:00\n\nx @ https://e.org/x.whl#sha256=00\n";
        assert_eq!(without_hash(hashed), None);
        assert_eq!(without_hash(&format!("{hashed}tqdm==4.67.1 ; python_version > '3.9'\n")).as_deref(), Some("tqdm==4.67.1"));
        assert_eq!(without_hash("tqdm\r\n").as_deref(), Some("tqdm"));
        for hash in ["--hash=sha384:0a", "--hash=sha512:0a", "--hash sha256:0a", "--hash=sha512:0a --hash=sha256:0b"] {
            assert_eq!(without_hash(&format!("tqdm==4.67.1 {hash}\n")), None, "{hash}");
        }
        for fragment in ["sha384=0a", "egg=tqdm&sha512=0a"] {
            assert_eq!(without_hash(&format!("tqdm @ https://e.org/x.whl#{fragment}\n")), None, "{fragment}");
        }
        // pip refuses the weak ones.
        for weak in [
            " --hash=md5:0a",
            " --hash=sha1:0a --hash=sha512:0a",
            " --hash=sha224:0a",
            " --hash=sha256:",
            " --hash=xsha256:0a",
            "  # --hash=sha256:0a",
        ] {
            assert_eq!(without_hash(&format!("tqdm==4.67.1{weak}\n")).as_deref(), Some("tqdm==4.67.1"), "{weak}");
        }
        let error = PythonError::NoHash { path: "workloads/mine/requirements.txt".into(), requirement: "tqdm".into() };
        insta::assert_snapshot!(Diagnostic::from(error).to_string(), @"
        error: `tqdm` in workloads/mine/requirements.txt has no hash of SHA-256, SHA-384 or SHA-512, and packages are installed only with one
        hint: `uv pip compile --generate-hashes requirements.in -o workloads/mine/requirements.txt` writes them, of all that those in requirements.in need
        ");
    }
}
