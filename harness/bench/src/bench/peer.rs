//! radT and collo on the same two trivial scripts together, one tool after the other in the same run: from the start to the last stored
//! result. Neither has a GPU to sample; both sample the host.
//!
//! radT gets an environment of its own in the cache folder, made on first use, and a local SQLite file as its MLflow store.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use collo_prepare::python;
use collo_quantity::stats::median;
use fs_err as fs;

use super::Effort;
use crate::figure::Figure;
use crate::scratch_project::ScratchProject;

const PINS: [&str; 2] = ["radt==0.2.30", "pandas<3"];

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let name = "two scripts of 1 s, ordered to stored";
    let lines = "repetitions = 1\nepochs = 2\n[axes]\nworkload = \"prints\"\ndegree = 2";
    ground.write_experiment("peer", lines)?;
    let collo = |_| -> Result<f64> {
        let begin = Instant::now();
        ground.measure("peer", |cell| cell.degree == 2, &mut |_| Ok(()))?;
        Ok(begin.elapsed().as_secs_f64())
    };
    if effort.smoke {
        let note = Some("a smoke run skips radT".into());
        return Ok(vec![Figure { name: name.into(), value: Some(collo(0)?), count: 1, note, ..Figure::default() }]);
    }
    let folder = python::cache_folder()?.join("bench-radt");
    let interpreter = match provide(&folder) {
        Ok(interpreter) => interpreter,
        Err(error) => return Ok(vec![Figure::absent(name, format!("radT is unavailable here: {error:#}"))]),
    };
    let work = ground.path().join("radt");
    fs::create_dir(&work)?;
    // The first one creates MLflow's tables, which is not the peer's everyday.
    radt(ground, &interpreter, &work)?;
    let (mut ours_s, mut theirs_s) = (Vec::new(), Vec::new());
    for turn in 0..3 {
        ours_s.push(collo(turn)?);
        theirs_s.push(radt(ground, &interpreter, &work)?);
    }
    Ok(vec![Figure {
        name: name.into(),
        value: median(&mut ours_s),
        count: ours_s.len(),
        peer: median(&mut theirs_s).map(|s| ("radT", s)),
        note: Some("medians of 3; radT 0.2.30 with listeners top and free, MLflow in a SQLite file; its scheduler waits 3 s and more for each script".into()),
        ..Figure::default()
    }])
}

/// The peer's interpreter. Built under a temporary name and renamed, so that an existing one is complete.
fn provide(folder: &Path) -> Result<PathBuf> {
    let interpreter = folder.join("bin/python");
    if interpreter.exists() {
        return Ok(interpreter);
    }
    let aside = folder.with_extension("partial");
    if aside.exists() {
        fs::remove_dir_all(&aside)?;
    }
    done(&duct::cmd!(python::system()?.interpreter, "-m", "venv", &aside))?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    done(&duct::cmd(aside.join("bin/python"), install.into_iter().chain(PINS)))?;
    fs::rename(&aside, folder)?;
    Ok(interpreter)
}

/// Seconds that radT takes to schedule the two, both finished and stored.
fn radt(ground: &ScratchProject, interpreter: &Path, work: &Path) -> Result<f64> {
    let script = ground.path().join("workloads/prints/train.py");
    let mut table = "Experiment,Workload,Name,Status,Run,Devices,Collocation,Listeners,File,Params\n".to_string();
    for name in ["one", "two"] {
        fs::copy(&script, work.join(format!("{name}.py")))?;
        table.push_str(&format!("0,1,{name},,,0,-,top+free,{name}.py,\n"));
    }
    let order = work.join("order.csv");
    fs::write(&order, table)?;
    let log = work.join("log.txt");
    // radT starts `python` by name.
    let bin = interpreter.parent().context("an interpreter lies in a folder")?;
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let begin = Instant::now();
    let ended = duct::cmd!(interpreter, "-m", "radt", "order.csv")
        .dir(work)
        .env("PATH", path)
        .env("MLFLOW_TRACKING_URI", format!("sqlite:///{}", work.join("mlflow.db").display()))
        .stdin_null()
        .stdout_path(&log)
        .stderr_null()
        .unchecked()
        .run()?;
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(
        ended.status.success() && finished(&fs::read_to_string(&order)?) == 2,
        "radT did not finish both scripts: {}",
        last(&log)
    );
    Ok(seconds)
}

/// How many of the scripts radT reports as finished, in the table that it writes back.
fn finished(table: &str) -> usize {
    table.lines().filter(|line| line.contains(",FINISHED ")).count()
}

fn last(log: &Path) -> String {
    fs::read_to_string(log).ok().and_then(|text| text.lines().last().map(str::to_string)).unwrap_or_default()
}

fn done(command: &duct::Expression) -> Result<()> {
    let output = command.stdin_null().stdout_null().stderr_capture().unchecked().run()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", said.lines().last().unwrap_or("it ended with an error"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finished_scripts_count() {
        let table = "Experiment,Workload,Name,Status\n0,1,one,FINISHED (1 0_A) one (0_A),\n0,1,two,FAILED (1 0_B),\n";
        assert_eq!(finished(table), 1);
    }
}
