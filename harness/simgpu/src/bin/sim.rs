//! Runs collo on the simulated GPU: `sim run small-7way-mps` is `collo run small-7way-mps`, with the simulation in the place of the
//! driver, of its programs, and of Python.
//!
//! `COLLO_SIM` names the card and what goes wrong with it; if it is not set, it is `a100-40gb`, as many of them as the experiment's trace
//! has cards. Its state lies in `target/simulated`, or where
//! `COLLO_SIM_DIR` says.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let Some(programs) = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_path_buf)) else {
        eprintln!("error: this program does not know where it is");
        return ExitCode::from(3);
    };
    let (collo, library) = (programs.join("collo"), library(&programs));
    for needed in [&collo, &library] {
        if !needed.exists() {
            eprintln!("error: {} is not there\nhint: cargo build --package collo --package collo-simgpu", needed.display());
            return ExitCode::from(3);
        }
    }
    let state = folder("COLLO_SIM_DIR").unwrap_or_else(|| programs.with_file_name("simulated"));
    // The machine would make a folder in which every user may write, as all may train on a card; what collo remembers of its cards lies
    // in this one as well, and collo trusts only what is its user's own. One that is there stays as it is.
    if let Err(error) = std::fs::create_dir_all(&state) {
        eprintln!("error: {}: {error}\nhint: `COLLO_SIM_DIR=DIR` puts the simulated machine elsewhere", state.display());
        return ExitCode::from(3);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([programs.clone()].into_iter().chain(std::env::split_paths(&path)));
    let mut command = Command::new(&collo);
    command
        .args(std::env::args_os().skip(1))
        // Its hints name what was typed.
        .env("COLLO_COMMAND", std::env::args_os().next().unwrap_or_else(|| "sim".into()))
        .env("COLLO_NVML", library)
        .env("COLLO_PYTHON", programs.join("sim-train"))
        .env("COLLO_SIM", std::env::var_os("COLLO_SIM").unwrap_or_else(machine))
        .env("COLLO_STATE", folder("COLLO_STATE").unwrap_or_else(|| state.join("state")))
        .env("COLLO_SIM_DIR", &state);
    // Two of these machines are two: their cards are not the same ones.
    if std::env::var_os("COLLO_SIM_SERIAL").is_none() {
        command.env("COLLO_SIM_SERIAL", &state);
    }
    if let Ok(path) = path {
        command.env("PATH", path);
    }
    // It takes the place of this process, so that signals and the exit code are its own.
    let error = command.exec();
    eprintln!("error: {} does not start: {error}", collo.display());
    ExitCode::from(3)
}

/// `cargo build` puts it beside the programs as well, `cargo test` among their parts alone: the newest is of their build.
fn library(programs: &Path) -> PathBuf {
    let beside = programs.join("libsimgpu.so");
    let made = |path: &PathBuf| path.metadata().and_then(|m| m.modified()).ok();
    let there = [beside.clone(), programs.join("deps/libsimgpu.so")].into_iter().filter(|path| path.is_file());
    there.max_by_key(made).unwrap_or(beside)
}

/// One card, or as many as the trace of an experiment is played on.
fn machine() -> OsString {
    let named = std::env::args().skip(1).find_map(|name| std::fs::read_to_string(format!("experiments/{name}.toml")).ok());
    let cards = named.and_then(|text| text.parse::<toml::Table>().ok()?.get("trace")?.get("cards")?.as_integer());
    match cards {
        Some(cards) if cards > 1 => format!("a100-40gb,gpus={cards}").into(),
        _ => "a100-40gb".into(),
    }
}

fn folder(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}
