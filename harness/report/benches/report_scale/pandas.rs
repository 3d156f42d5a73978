//! The peer: the same samples aggregated in pandas, in the same run. In: a campaign. Out: its seconds and peak memory, or why there are
//! none. pandas lives in an environment of its own under `target/bench`, made on first use.

use std::path::{Path, PathBuf};
use std::process::Command;

use collo_store::CampaignFolder;
use serde_json::{Value, json};

const PINS: [&str; 2] = ["pandas==2.3.3", "pyarrow==21.0.0"];

/// Mean, 95th percentile and maximum by scope and metric over each run's window.
pub fn aggregate(target: &Path, campaign: &CampaignFolder, folder: &Path) -> Result<Value, String> {
    let python = provide(&target.join("pandas-venv"))?;
    let (runs, _) = campaign.runs().map_err(|e| e.to_string())?;
    let windows: Vec<Value> = runs
        .values()
        .filter_map(|run| {
            let members = &run.record.members;
            let start = members.iter().filter_map(|m| m.training_start_ns).max()?;
            let end = members.iter().filter_map(|m| m.training_end_ns).min()?;
            Some(json!([run.path.join("samples.parquet"), start, end]))
        })
        .collect();
    let list = folder.join("windows.json");
    fs_err::write(&list, Value::from(windows).to_string()).map_err(|e| e.to_string())?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/report_scale/pandas.py");
    let text = done(Command::new(python).arg("-I").arg(script).arg(list))?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}

/// The interpreter. Built aside and renamed, so what is there is whole.
fn provide(folder: &Path) -> Result<PathBuf, String> {
    let interpreter = folder.join("bin/python");
    if interpreter.exists() {
        return Ok(interpreter);
    }
    let aside = folder.with_extension("partial");
    if aside.exists() {
        fs_err::remove_dir_all(&aside).map_err(|e| e.to_string())?;
    }
    let cannot = |why: String| format!("it cannot be had here: {why}");
    done(Command::new("python3").args(["-m", "venv"]).arg(&aside)).map_err(cannot)?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"];
    done(Command::new(aside.join("bin/python")).args(pip).args(PINS)).map_err(cannot)?;
    fs_err::rename(&aside, folder).map_err(|e| e.to_string())?;
    Ok(interpreter)
}

/// What a command printed.
fn done(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{}: {e}", command.get_program().to_string_lossy()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(said.lines().last().unwrap_or("it ended with an error").to_string())
}
