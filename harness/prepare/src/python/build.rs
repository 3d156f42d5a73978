//! Builds an environment: in a temporary folder, from pins with hashes, with compiled bytecode, then renamed into place.

use collo_text::on_path;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err as fs;

use super::{Progress, PythonEnvironment, PythonError};
use collo_launch::{Errand, Unanswered};

/// Time limit of one step. Gigabytes over a slow line take hours; an installer that hangs takes for ever.
const TIMEOUT: Duration = Duration::from_secs(12 * 60 * 60);

/// Time limit of a question to pip.
const QUESTION: Duration = Duration::from_secs(60);

/// uv's own pin, beside those of the environment.
const PINS_OF_UV: &str = "requirements-uv.txt";

/// Build it; the caller has the lock, so an existing temporary folder is left from an interrupted attempt.
pub fn build(environment: &PythonEnvironment, tell: &mut dyn FnMut(Progress)) -> Result<(), PythonError> {
    let place = environment.folder();
    let aside = place.with_extension("aside");
    if aside.exists() {
        fs::remove_dir_all(&aside)?;
    }
    let uv = on_path("uv");
    let pins_of_uv = environment.pins.with_file_name(PINS_OF_UV);
    let with = match &uv {
        Some(_) => "uv",
        None if pins_of_uv.is_file() => "uv, which pip brings",
        None => "pip",
    };
    check_room(environment, uv.is_some())?;
    let begun = Instant::now();
    tell(Progress::Begins {
        packages: environment.packages,
        folder: place.clone(),
        with,
        load_bytes: Some(environment.size().0),
    });
    fs::create_dir_all(&aside)?;
    let job = BuildTask { environment, aside: &aside, log: place.with_extension("log"), begun };
    let _ = std::fs::remove_file(&job.log);
    // Unpacked wheels and downloads go beside the environment: the same disk, counted with it, and gone with it.
    let scratch = aside.join("scratch");
    fs::create_dir_all(&scratch)?;
    match &uv {
        Some(uv) => job.with_uv(uv, &BTreeMap::new(), &scratch, tell)?,
        None => {
            if !job.with_uv_by_pip(&pins_of_uv, &scratch, tell)? {
                // Whatever it left is not pip's.
                fs::remove_dir_all(&aside)?;
                fs::create_dir_all(&scratch)?;
                job.with_pip(&scratch, tell)?;
            }
        }
    }
    fs::remove_dir_all(&scratch)?;
    tell(Progress::Compiles);
    job.compile(&job.interpreter(), &aside.join("lib"), tell)?;
    fs::rename(&aside, &place)?;
    tell(Progress::Ends { elapsed: begun.elapsed() });
    Ok(())
}

/// Build a folder of packages beside an existing environment; the caller has the lock.
pub fn overlay(
    environment: &PythonEnvironment,
    pins: &Path,
    packages: usize,
    place: &Path,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), PythonError> {
    let aside = place.with_extension("aside");
    if aside.exists() {
        fs::remove_dir_all(&aside)?;
    }
    let uv = on_path("uv");
    let begun = Instant::now();
    tell(Progress::Begins { packages, folder: place.into(), with: if uv.is_some() { "uv" } else { "pip" }, load_bytes: None });
    let job = BuildTask { environment, aside: &aside, log: place.with_extension("log"), begun };
    let _ = std::fs::remove_file(&job.log);
    let interpreter = environment.folder().join("bin/python");
    let scratch = place.with_extension("scratch");
    let install = match uv {
        Some(uv) => step(uv)
            .args(["pip", "install", "--no-cache", "--python"])
            .arg(&interpreter)
            .env("UV_PYTHON_DOWNLOADS", Some("never")),
        None => {
            // An environment that uv made has no pip of its own.
            let pip = match has_pip(&interpreter) {
                true => step(&interpreter).args(["-m", "pip"]),
                false => step(&job.pip_beside(&scratch, tell)?).args(["-m", "pip", "--python"]).arg(&interpreter),
            };
            pip.args(["install", "--no-cache-dir", "--no-input", "--disable-pip-version-check"])
        }
    };
    let install = install.args(["--no-deps", "--require-hashes", "--only-binary", ":all:", "--target"]);
    let install = install.arg(&aside).arg("-r").arg(pins);
    // The sizes that are told belong to the environment.
    let untold = &mut |_: Progress| {};
    let installed = job.must(install, untold);
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    installed?;
    job.compile(&interpreter, &aside, untold)?;
    fs::rename(&aside, place)?;
    tell(Progress::Ends { elapsed: begun.elapsed() });
    Ok(())
}

fn has_pip(interpreter: &Path) -> bool {
    Errand::to(interpreter, QUESTION).args(["-m", "pip", "--version"]).ask().is_ok_and(|said| said.success())
}

fn without_venv(error: PythonError) -> PythonError {
    match error {
        PythonError::Install { reason, .. } => PythonError::NoVenv { reason },
        other => other,
    }
}

struct BuildTask<'a> {
    environment: &'a PythonEnvironment,
    aside: &'a Path,
    log: PathBuf,
    begun: Instant,
}

impl BuildTask<'_> {
    /// With a uv that pip brings, which takes seconds where pip itself takes minutes; false where that does not work here, and pip
    /// has to do it all.
    fn with_uv_by_pip(&self, pins: &Path, scratch: &Path, tell: &mut dyn FnMut(Progress)) -> Result<bool, PythonError> {
        let folder = scratch.join("uv");
        if !pins.is_file() || !self.run(step(&self.environment.base.path).args(["-m", "venv"]).arg(&folder), tell)? {
            return Ok(false);
        }
        let python = folder.join("bin/python");
        let install = step(&python).args(["-m", "pip", "install", "--no-deps", "--require-hashes", "--only-binary", ":all:"]);
        let install =
            install.args(["--no-cache-dir", "--no-input", "--disable-pip-version-check", "--progress-bar", "off", "-r"]);
        let uv = folder.join("bin/uv");
        if !self.run(install.arg(pins), tell)? || !uv.is_file() {
            return Ok(false);
        }
        let said = Errand::to(&python, QUESTION).args(["-m", "pip", "config", "list"]).ask().map(|said| said.out());
        match self.with_uv(&uv, &as_uv_has_it(&said.unwrap_or_default()), scratch, tell) {
            Ok(()) => Ok(true),
            Err(PythonError::Install { .. }) => Ok(false),
            Err(stopped) => Err(stopped),
        }
    }

    fn with_uv(
        &self,
        uv: &Path,
        settings: &BTreeMap<&str, String>,
        scratch: &Path,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<(), PythonError> {
        // The scratch folder is there already.
        let venv = step(uv).args(["venv", "--relocatable", "--allow-existing", "--no-project", "--python"]);
        self.must(venv.arg(&self.environment.base.path).arg(self.aside), tell)?;
        // Not from a cache on another disk: a hard link that cannot be made is a slow copy, and a shared one can be changed.
        let install = step(uv).args(["pip", "sync", "--require-hashes", "--no-cache", "--python"]).arg(self.interpreter());
        let install = install.arg(&self.environment.pins).env("TMPDIR", Some(scratch.display().to_string()));
        let install = settings.iter().fold(install, |install, (name, value)| install.env(*name, Some(value.clone())));
        self.must(install.env("UV_PYTHON_DOWNLOADS", Some("never")), tell)
    }

    /// A Python with pip, for another that has none: `pip --python` (pip.pypa.io/en/stable/topics/python-option) installs for that one.
    fn pip_beside(&self, scratch: &Path, tell: &mut dyn FnMut(Progress)) -> Result<PathBuf, PythonError> {
        if scratch.exists() {
            fs::remove_dir_all(scratch)?;
        }
        self.must(step(&self.environment.base.path).args(["-m", "venv"]).arg(scratch), tell).map_err(without_venv)?;
        Ok(scratch.join("bin/python"))
    }

    fn with_pip(&self, scratch: &Path, tell: &mut dyn FnMut(Progress)) -> Result<(), PythonError> {
        let venv = step(&self.environment.base.path).args(["-m", "venv"]).arg(self.aside);
        self.must(venv, tell).map_err(without_venv)?;
        let install = step(self.interpreter()).args(["-m", "pip", "install", "--no-deps", "--require-hashes"]);
        let install = install.args(["--only-binary", ":all:", "--no-compile", "--no-cache-dir", "--no-input"]);
        let install = install.args(["--disable-pip-version-check", "--progress-bar", "off", "-r"]).arg(&self.environment.pins);
        self.must(install.env("TMPDIR", Some(scratch.display().to_string())), tell)
    }

    /// Without bytecode every member would compile its imports, concurrently.
    fn compile(&self, interpreter: &Path, folder: &Path, tell: &mut dyn FnMut(Progress)) -> Result<(), PythonError> {
        let compile = step(interpreter).args(["-m", "compileall", "-q", "-j", "0"]).arg(folder);
        // It says no where a package carries a file for another version of Python; such a file is never imported.
        self.run(compile, tell).map(drop)
    }

    fn interpreter(&self) -> PathBuf {
        self.aside.join("bin/python")
    }

    fn must(&self, step: Errand, tell: &mut dyn FnMut(Progress)) -> Result<(), PythonError> {
        if self.run(step, tell)? {
            return Ok(());
        }
        let text = collo_text::read_end(&self.log, 1 << 20).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let reason = reason(&text).unwrap_or_else(|| "the installer gave no reason".into());
        Err(PythonError::Install { reason, log: self.log.clone() })
    }

    /// Run a step with its output in the log; true if it succeeds.
    fn run(&self, step: Errand, tell: &mut dyn FnMut(Progress)) -> Result<bool, PythonError> {
        let (_, of_about) = self.environment.size();
        let mut told = Instant::now();
        let mut look = || {
            if told.elapsed() > Duration::from_secs(1) {
                told = Instant::now();
                tell(Progress::OnDisk { bytes: size_of(self.aside), of_about, elapsed: self.begun.elapsed() });
            }
        };
        match step.log(&self.log).watched(&mut look) {
            Ok(answer) => Ok(answer.success()),
            Err(Unanswered::Stopped(stopped)) => Err(stopped.into()),
            Err(why) => Err(PythonError::Install { reason: why.to_string(), log: self.log.clone() }),
        }
    }
}

/// Sections of pip's configuration, each overriding those before it: pip's `_get_ordered_configuration_items`
/// (src/pip/_internal/cli/parser.py). `pip config list` sorts them by name instead, `:env:` first.
const SECTIONS: [&str; 3] = ["global", "install", ":env:"];

/// What pip is told of an index in its files and variables, which uv does not read, as variables for uv, with uv's separator where
/// pip has several values (docs.astral.sh/uv/reference/environment).
fn as_uv_has_it(pip_config: &str) -> BTreeMap<&'static str, String> {
    const NAMES: [(&str, &str, &str); 4] = [
        ("index-url", "UV_DEFAULT_INDEX", " "),
        ("extra-index-url", "UV_INDEX", " "),
        ("find-links", "UV_FIND_LINKS", ","),
        ("cert", "SSL_CERT_FILE", " "),
    ];
    let mut found = BTreeMap::new();
    for wanted in SECTIONS {
        for (key, value) in pip_config.lines().filter_map(|line| line.split_once('=')) {
            let Some((section, key)) = key.rsplit_once('.') else { continue };
            if let Some((_, variable, between)) = NAMES.iter().find(|(name, ..)| section == wanted && *name == key) {
                // Printed as Python's `repr` does: in quotes, a line end as `\n`.
                let values = value.trim().trim_matches('\'').replace("\\n", " ");
                found.insert(*variable, values.split_whitespace().collect::<Vec<_>>().join(between));
            }
        }
    }
    found
}

/// A step of an installation, without the user's own PYTHONPATH.
fn step(program: impl AsRef<std::ffi::OsStr>) -> Errand {
    Errand::to(program, TIMEOUT).env("PYTHONPATH", None::<String>)
}

fn check_room(environment: &PythonEnvironment, with_uv: bool) -> Result<(), PythonError> {
    let stat = nix::sys::statvfs::statvfs(&environment.cache).map_err(std::io::Error::from)?;
    let free = stat.blocks_available() as f64 * stat.fragment_size() as f64;
    // pip keeps every wheel until all are unpacked, uv does not: peaks of 6.8 and 4.6 GB were seen for 4.45 GB.
    let (load, disk) = environment.size();
    let needed = disk as f64 + if with_uv { 0.5e9 } else { load as f64 + 0.4e9 };
    if free >= needed {
        return Ok(());
    }
    let folder = environment.cache.clone();
    Err(PythonError::NoRoom { folder, needed_gb: needed / 1e9, free_gb: free / 1e9 })
}

/// How pip ends if it finds no version of a package (pip 23.2, `_internal/resolution/resolvelib/factory.py`).
const NO_VERSION: &str = "No matching distribution found";

/// Words for a network that is not reached: exceptions of urllib3 1 and 2 as pip prints them (`urllib3/exceptions.py`, `connection.py`), and
/// the text of reqwest, on which uv stands, for a request that it could not send (`reqwest/src/error.rs`).
const UNREACHED: [&str; 5] =
    ["ProxyError", "NewConnectionError", "NameResolutionError", "Failed to establish a new connection", "error sending request"];

/// The line of an installer's output that gives the reason; the last candidate.
fn reason(log: &str) -> Option<String> {
    let says = |l: &&str| {
        let lower = l.to_lowercase();
        ["error", "no space", "could not", "failed", "not found"].iter().any(|word| lower.contains(word))
    };
    // Where the network is not reached, the last line of pip is that there is no such package.
    let unreached = |l: &&str| UNREACHED.iter().any(|word| l.contains(word));
    let line = log
        .lines()
        .find(unreached)
        .or_else(|| log.lines().rev().find(says))
        .or_else(|| log.lines().rev().find(|l| !l.trim().is_empty()))?;
    let line = line.trim().trim_start_matches("ERROR: ").trim_start_matches("error: ");
    let line: String = line.chars().take(300).collect();
    // pip gives no reason for finding no version at all.
    let is_silent = line.starts_with(NO_VERSION) && log.contains("(from versions: none)");
    Some(if is_silent { format!("{line}: the package index was not reached (network, proxy), or has none of it") } else { line })
}

/// Bytes below a folder; entries that vanish meanwhile do not count.
fn size_of(folder: &Path) -> u64 {
    let mut sum = 0;
    let mut queue = vec![folder.to_path_buf()];
    while let Some(folder) = queue.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(m) if m.is_dir() => queue.push(entry.path()),
                Ok(m) => sum += m.len(),
                Err(_) => {}
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pip_is_told_of_an_index_uv_is_told_too_and_a_variable_overrides_a_file() {
        // In the order of a real `pip config list`: sorted by name, so that variables come before the files that they override.
        let said = ":env:.cert='/etc/ca.pem'\n:env:.default-timeout='180'\n:env:.index-url='https://b.example/simple'\n\
                    download.cert='/other'\nglobal.cert='/old.pem'\nglobal.find-links='/no'\n\
                    global.index-url='https://a.example/simple'\ninstall.find-links='\\n/wheels\\n/more'\n";
        let expected = [
            ("SSL_CERT_FILE", "/etc/ca.pem"),
            ("UV_DEFAULT_INDEX", "https://b.example/simple"),
            ("UV_FIND_LINKS", "/wheels,/more"),
        ];
        assert_eq!(as_uv_has_it(said), expected.map(|(name, value)| (name, value.to_string())).into());
        assert!(as_uv_has_it("WARNING: nothing\n").is_empty());
    }

    #[test]
    fn the_reason_is_the_last_line_that_names_one() {
        let log = "Collecting torch\nERROR: Could not find a version that satisfies the requirement torch==9\n\nsee above\n";
        assert_eq!(reason(log).unwrap(), "Could not find a version that satisfies the requirement torch==9");
        let behind_proxy = "WARNING: Retrying (Retry(total=4)) after connection broken by 'ProxyError('Cannot connect to proxy.')'\n\
                            ERROR: No matching distribution found for anyio==4.16.0\n";
        assert!(reason(behind_proxy).unwrap().contains("Cannot connect to proxy"), "{:?}", reason(behind_proxy));
        let silent =
            "ERROR: Could not find a version (from versions: none)\nERROR: No matching distribution found for anyio==4.16.0\n";
        assert!(reason(silent).unwrap().ends_with("the package index was not reached (network, proxy), or has none of it"));
        assert_eq!(reason("Killed\n").unwrap(), "Killed");
        assert_eq!(reason(""), None);
    }
}
