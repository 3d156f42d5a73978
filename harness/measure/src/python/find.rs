//! Looking for an interpreter, and asking one what is in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::PythonError;

/// The versions that the pins can be installed on.
const OLDEST: u32 = 10;
const NEWEST: u32 = 13;

/// A system interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub path: PathBuf,
    /// `3.11.7`
    pub version: String,
}

impl Found {
    /// `3.11`
    pub fn minor(&self) -> String {
        self.version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
    }
}

/// The first interpreter on the PATH that fits: `python3` if it does, else the newest numbered one.
pub fn find() -> Result<Found, PythonError> {
    let numbered = (OLDEST..=NEWEST).rev().map(|minor| format!("python3.{minor}"));
    let mut seen = Vec::new();
    for name in std::iter::once("python3".to_string()).chain(numbered) {
        let Some(found) = ask(&name) else { continue };
        if fits(&found.version) {
            return Ok(found);
        }
        seen.push(format!("`{name}` is {}", found.version));
    }
    let seen = if seen.is_empty() { String::new() } else { format!(": {}", seen.join(", ")) };
    Err(PythonError::None { seen })
}

fn ask(name: &str) -> Option<Found> {
    let code = "import sys; print(sys.executable); print('.'.join(map(str, sys.version_info[:3])))";
    let output = Command::new(name).args(["-I", "-c", code]).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut lines = text.lines();
    Some(Found { path: lines.next()?.into(), version: lines.next()?.to_string() })
}

fn fits(version: &str) -> bool {
    let mut parts = version.split('.').map(|p| p.parse::<u32>().ok());
    parts.next().flatten() == Some(3) && parts.next().flatten().is_some_and(|minor| (OLDEST..=NEWEST).contains(&minor))
}

/// The versions of Python and of the packages that matter, without importing any of them.
pub fn facts(interpreter: &Path) -> Result<BTreeMap<String, String>, String> {
    let code = "import json, sys, importlib.metadata as m\n\
        def v(n):\n try: return m.version(n)\n except m.PackageNotFoundError: return None\n\
        f = {n: v(n) for n in ('torch', 'torchvision', 'timm', 'numpy')}\n\
        f['python'] = '.'.join(map(str, sys.version_info[:3]))\n\
        print(json.dumps({k: x for k, x in f.items() if x}))";
    let output = Command::new(interpreter).args(["-c", code]).output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.lines().last().unwrap_or("it ends with an error").to_string());
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("it answers nonsense: {e}"))
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
        assert_eq!(facts(&found.path).unwrap()["python"], found.version);
        assert!(facts(Path::new("/bin/false")).is_err());
    }
}
