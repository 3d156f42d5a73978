//! Runs collo on the simulated GPU: `sim run small-7way-mps` is `collo run small-7way-mps`, with the simulation in the place of the
//! driver, of its programs, and of Python. `collo --simulate MODEL run small-7way-mps` starts this program.
//!
//! `COLLO_SIM` names the card and what goes wrong with it; by default it is `a100-40gb`. It is as many cards as the experiment's trace has,
//! unless their number is given. The state lies in `COLLO_SIM_DIR`, else in `target/simulated` of the build, else, installed, in the
//! user's folder of states.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use simgpu::card::{self, Card};
use simgpu::scenario::{self, Scenario};

/// collo, where it does not lie beside this program: `collo --simulate` names itself.
const COLLO: &str = "COLLO_PROGRAM";
/// What the user typed: the hints of collo name it.
const COMMAND: &str = "COLLO_COMMAND";

fn main() -> ExitCode {
    let Some(programs) = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_path_buf)) else {
        eprintln!("error: this program does not know where it is");
        return ExitCode::from(3);
    };
    let collo = folder(COLLO).unwrap_or_else(|| programs.join("collo"));
    let library = library(&programs);
    for needed in [&collo, &library] {
        if !needed.exists() {
            let build = "in a checkout of collo, `cargo build --package collo --package collo-simgpu` builds the simulator";
            eprintln!("error: {} is not there\nhint: {build}, and `harness/simgpu/install` installs it", needed.display());
            return ExitCode::from(3);
        }
    }
    let profiles = folder(card::FOLDER).unwrap_or_else(|| profiles(&programs));
    let machine = machine();
    let scenario = match Scenario::parse(&machine).and_then(|s| Card::find_in(&profiles, &s.card).map(|_| s)) {
        Ok(scenario) => scenario,
        Err(wrong) => {
            eprintln!("error: `{machine}` is no simulated GPU: {wrong}");
            let models = models(&profiles);
            eprintln!("hint: GPU models are {models}; faults, as in `h100-80gb,gpus=2,lost@5s`: `collo help simulation`");
            return ExitCode::from(2);
        }
    };
    let state = folder("COLLO_SIM_DIR").unwrap_or_else(|| state(&programs, &scenario.card));
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
        .env(COMMAND, std::env::var_os(COMMAND).or_else(|| std::env::args_os().next()).unwrap_or_else(|| "sim".into()))
        .env("COLLO_NVML", library)
        .env("COLLO_PYTHON", programs.join("sim-train"))
        .env(scenario::VARIABLE, &machine)
        .env(card::FOLDER, profiles)
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

/// Installed, this program has the profiles beside it.
fn profiles(programs: &Path) -> PathBuf {
    Some(programs.join("mig-profiles")).filter(|beside| beside.is_dir()).unwrap_or_else(card::of_checkout)
}

/// The names of the models that can be simulated.
fn models(profiles: &Path) -> String {
    let files = std::fs::read_dir(profiles).into_iter().flatten().flatten().map(|entry| entry.path());
    let names = files.filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let mut names: Vec<String> = names.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.extend(scenario::MACHINES.iter().map(|(name, _)| (*name).to_string()));
    names.sort();
    names.join(", ")
}

/// Where the state of the machine lies by default: with the build; installed, in the user's folder of states, one for each card.
fn state(programs: &Path, card: &str) -> PathBuf {
    if programs.join("deps").is_dir() {
        return programs.with_file_name("simulated");
    }
    let home = || folder("HOME").map(|home| home.join(".local/state"));
    folder("XDG_STATE_HOME").or_else(home).unwrap_or_else(std::env::temp_dir).join("collo-simulated").join(card)
}

/// The machine that is asked for, or one card; as many cards as the trace of an experiment is played on, unless their number is given.
fn machine() -> String {
    let asked = std::env::var(scenario::VARIABLE).ok().filter(|text| !text.trim().is_empty());
    let named = std::env::args().skip(1).find_map(|name| std::fs::read_to_string(format!("experiments/{name}.toml")).ok());
    let cards = named.and_then(|text| text.parse::<toml::Table>().ok()?.get("trace")?.get("cards")?.as_integer());
    let machine = asked.unwrap_or_else(|| "a100-40gb".into());
    let is_said = Scenario::parse(&machine).is_ok_and(|scenario| scenario.has("gpus"));
    match cards {
        Some(cards) if cards > 1 && !is_said => format!("{machine},gpus={cards}"),
        _ => machine,
    }
}

fn folder(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}
