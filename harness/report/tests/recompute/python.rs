//! A Python with numpy, scipy and pyarrow, as pinned beside the script: an environment under `target/`, made on first use.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The interpreter, or why there is none.
pub fn provide() -> Result<PathBuf, String> {
    static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(make);
    PYTHON.clone()
}

/// Built aside and renamed, so that what is there is whole; one folder for each content of the pins.
fn make() -> Result<PathBuf, String> {
    let pins = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute/requirements.txt");
    let text = fs_err::read_to_string(&pins).map_err(|e| e.to_string())?;
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recompute-venv-{}", &collo_store::sha256_text(&text)[..12]));
    let interpreter = folder.join("bin/python");
    if interpreter.exists() {
        return Ok(interpreter);
    }
    let aside = folder.with_extension(format!("{}", std::process::id()));
    run(Command::new("python3").args(["-m", "venv"]).arg(&aside))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--require-hashes", "-r"];
    run(Command::new(aside.join("bin/python")).args(pip).arg(&pins))?;
    match fs_err::rename(&aside, &folder) {
        // Another process was faster.
        Err(_) if interpreter.exists() => fs_err::remove_dir_all(&aside).map_err(|e| e.to_string())?,
        renamed => renamed.map_err(|e| e.to_string())?,
    }
    Ok(interpreter)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{}: {e}", command.get_program().to_string_lossy()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(errors.lines().last().unwrap_or("it ended with an error").to_string()) }
}
