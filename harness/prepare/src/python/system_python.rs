//! Finds an interpreter, and queries its packages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::PythonError;
use collo_launch::{Errand, Unanswered};
use collo_text::on_path;

/// The versions that the pins can be installed on.
const OLDEST: u32 = 10;
const NEWEST: u32 = 13;

/// A system interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPython {
    pub path: PathBuf,
    /// `3.11.7`
    pub version: String,
}

impl SystemPython {
    /// `3.11`
    pub fn minor(&self) -> String {
        self.version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
    }
}

/// Time limit for an interpreter to report its version. On a busy network file system it takes seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The first suitable interpreter on the PATH: `python3` if it is, else the newest numbered one.
pub fn find() -> Result<SystemPython, PythonError> {
    // Without one some programs are found all the same, by a path of the system's own; but Python cannot say then where it is itself.
    if std::env::var_os("PATH").is_none_or(|path| path.is_empty()) {
        return Err(PythonError::NoPath);
    }
    let numbered = (OLDEST..=NEWEST).rev().map(|minor| format!("python3.{minor}"));
    let (mut seen, mut refused) = (Vec::new(), None);
    for name in std::iter::once("python3".to_string()).chain(numbered) {
        let Some(found) = on_path(&name) else { continue };
        if let Err(why) = super::may_start(&found) {
            refused.get_or_insert(why);
            continue;
        }
        match ask(&name)? {
            Ok(found) if fits(&found.version) => return Ok(found),
            Ok(found) => seen.push(format!("`{name}` is {}", found.version)),
            Err(reason) => seen.push(reason),
        }
    }
    if let Some(why) = refused {
        return Err(why);
    }
    let seen = if seen.is_empty() { String::new() } else { format!(": {}", seen.join(", ")) };
    Err(PythonError::None { seen })
}

/// Its version, or why its answer is unusable.
fn ask(name: &str) -> Result<Result<SystemPython, String>, PythonError> {
    let code = "import sys; print(sys.executable); print('.'.join(map(str, sys.version_info[:3])))";
    let answer = match Errand::to(name, TIMEOUT).args(["-I", "-c", code]).run() {
        Err(Unanswered::NotStarted(reason)) => return Ok(Err(reason)),
        answer => answer.map_err(|why| silent(Path::new(name), why))?,
    };
    let text = answer.out();
    let mut lines = text.lines();
    let (path, version) = (lines.next().filter(|path| !path.is_empty()), lines.next());
    let found = path.zip(version).map(|(path, version)| SystemPython { path: path.into(), version: version.to_string() });
    Ok(found.ok_or_else(|| format!("`{name}` does not report its path")))
}

fn fits(version: &str) -> bool {
    let mut parts = version.split('.').map(|p| p.parse::<u32>().ok());
    parts.next().flatten() == Some(3) && parts.next().flatten().is_some_and(|minor| (OLDEST..=NEWEST).contains(&minor))
}

/// The versions of Python and of the relevant packages, and the CUDA that torch is built for, without importing any of them. An
/// error names `path`, the interpreter's name for its user.
pub fn facts(interpreter: &Path, path: &Path) -> Result<BTreeMap<String, String>, PythonError> {
    super::may_start(interpreter)?;
    answered(Errand::to(interpreter, TIMEOUT), path)
}

/// Whether an interpreter is built with its global lock: its own word, `Py_GIL_DISABLED` of its build (CPython's documentation, "Python
/// support for free threading"), which is 1 without, 0 with it, and before 3.13 not there. `None` if it says none of these.
pub(super) fn has_lock(interpreter: &Path) -> Option<bool> {
    super::may_start(interpreter).ok()?;
    let program = "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED'))";
    let answer = Errand::to(interpreter, TIMEOUT).args(["-c", program]).run().ok().filter(|answer| answer.success())?;
    match answer.out().trim() {
        "1" => Some(false),
        "0" | "None" => Some(true),
        _ => None,
    }
}

/// Characters of an interpreter's own error, at most.
const LONGEST: usize = 300;

fn answered(interpreter: Errand, path: &Path) -> Result<BTreeMap<String, String>, PythonError> {
    let unusable = |reason: String| PythonError::Unusable { path: path.into(), reason };
    let answer = interpreter.args(["-c", include_str!("facts.py")]).run().map_err(|why| silent(path, why))?;
    if !answer.success() {
        let said = answer.err().lines().last().unwrap_or_default().to_string();
        // A program that is no Python quotes the whole of what it was asked to run.
        return Err(unusable(match said.chars().count() {
            0 => "it exits with an error".into(),
            1..=LONGEST => said,
            _ => "it does not run Python's code".into(),
        }));
    }
    serde_json::from_slice(&answer.out).map_err(|e| unusable(format!("its reply is invalid: {e}")))
}

/// Why an interpreter gave no answer.
fn silent(path: &Path, why: Unanswered) -> PythonError {
    match why {
        Unanswered::Stopped(stopped) => PythonError::Stopped(stopped),
        Unanswered::Unsupervised(e) => PythonError::Unsupervised { path: path.into(), source: e },
        Unanswered::SupervisorLost { .. } => PythonError::Lost { path: path.into(), reason: why.to_string() },
        Unanswered::TimedOut(limit) => PythonError::Hangs { path: path.into(), limit },
        other => PythonError::Unusable { path: path.into(), reason: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_from_3_10_to_3_13_fit() {
        assert!(fits("3.10.0") && fits("3.13.2") && fits("3.11.7"));
        assert!(!fits("3.9.18") && !fits("3.14.0") && !fits("2.7.18") && !fits("x"));
    }

    #[test]
    fn the_interpreter_of_this_machine_says_its_version() {
        let found = find().unwrap();
        assert_eq!(facts(&found.path, &found.path).unwrap()["python"], found.version);
        let error = facts(Path::new("/bin/false"), Path::new("./own")).unwrap_err();
        assert_eq!(error.to_string(), "`./own` is not a usable Python");
    }

    #[test]
    fn an_interpreter_that_hangs_is_given_up_with_the_way_out() {
        let error = answered(Errand::to("sh", Duration::from_millis(200)).args(["-c", "sleep 600"]), Path::new("./hang.sh"));
        let error = error.expect_err("it hangs");
        assert_eq!(error.to_string(), "`./hang.sh` does not identify itself: it did not finish within 0.2 s");
        assert_eq!(error.hint().expect("one"), "try it by hand, `./hang.sh -c pass`; or put another Python in its place");
    }

    /// A torch of metadata only, and the file in which a build records its target.
    fn with_torch(version: &str, file: Option<&str>, needs: &[&str]) -> BTreeMap<String, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let metadata = folder.path().join(format!("torch-{version}.dist-info"));
        fs_err::create_dir_all(&metadata).expect("made");
        let needs: String = needs.iter().map(|need| format!("Requires-Dist: {need}\n")).collect();
        let text = format!("Metadata-Version: 2.1\nName: torch\nVersion: {version}\n{needs}");
        fs_err::write(metadata.join("METADATA"), text).expect("written");
        if let Some(text) = file {
            let package = folder.path().join("torch");
            fs_err::create_dir_all(&package).expect("made");
            fs_err::write(package.join("version.py"), text).expect("written");
            fs_err::write(package.join("__init__.py"), "raise Exception('torch was imported')").expect("written");
        }
        let python = find().expect("this machine has one").path;
        let facts = answered(Errand::to(&python, TIMEOUT).env("PYTHONPATH", Some(folder.path().display().to_string())), &python);
        let facts = facts.expect("it answers");
        assert_eq!(facts["torch"], version);
        facts
    }

    #[test]
    fn a_torch_says_in_its_own_file_which_cuda_it_is_built_for() {
        let cuda = |version, text| with_torch(version, Some(text), &["nvidia-cuda-runtime-cu12==12.6.77"]).remove("torch_cuda");
        let wheel = "from typing import Optional\n__version__ = '2.14.1+cu130'\ncuda: Optional[str] = '13.0'\nhip = None\n";
        assert_eq!(cuda("2.14.1", wheel).as_deref(), Some("13.0"));
        // One that came with a container names no package of NVIDIA's.
        assert_eq!(cuda("2.9.0a0+145a3a7bda.nv25.10", "cuda = \"12.8\"\n").as_deref(), Some("12.8"));
        assert_eq!(cuda("2.14.1", "cuda: Optional[str] = None\n"), None);
    }

    #[test]
    fn a_torch_without_that_file_says_it_by_its_version_or_its_needs() {
        let cuda = |version, needs: &[&str]| with_torch(version, None, needs).remove("torch_cuda");
        let here = std::env::consts::ARCH;
        let with_marker = |machine: &str| format!("nvidia-cuda-runtime-cu12==12.8.90; platform_machine == \"{machine}\"");
        assert_eq!(cuda("2.7.0+cu126", &[]).as_deref(), Some("12.6"));
        assert_eq!(cuda("2.7.0+cu118", &[]).as_deref(), Some("11.8"));
        assert_eq!(cuda("2.10.0", &["filelock", &with_marker(here)]).as_deref(), Some("12.8"));
        assert_eq!(cuda("2.11.0", &["cuda-toolkit[cublas,cudart] ==13.0.2; sys_platform == 'linux'"]).as_deref(), Some("13.0"));
        assert_eq!(cuda("2.14.1", &["cuda-toolkit==13.0.3.0", "nvidia-cudnn-cu13==9.24.0.43"]).as_deref(), Some("13.0"));
        assert_eq!(cuda("2.14.1+cpu", &["nvidia-cuda-runtime-cu12==12.8.90"]), None);
        // For another processor this one has a wheel without.
        assert_eq!(cuda("2.10.0", &[&with_marker("another")]), None);
        assert_eq!(cuda("2.10.0", &["filelock"]), None);
    }
}
