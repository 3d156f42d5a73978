//! A machine with simulated GPUs for one benchmark, and processes in it.
//!
//! The path of the NVML library is passed in the environment, before it is opened: so a part that calls it runs in a process of
//! its own, this binary executed again. In: the machine's specification and the name of a part. Out: the part's measurement, as
//! one line of JSON.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::scratch_project::ScratchProject;

/// The hidden first argument that makes this binary measure one part inside a simulated machine.
const VERB: &str = "__simulated";

/// A part by its name; it gets an empty folder and the amount of work, and prints its measurement.
pub type Part = (&'static str, fn(&Task) -> Result<()>);

/// A part's task.
pub struct Task {
    /// A folder of its own.
    pub folder: PathBuf,
    /// Repetitions or seconds, depending on the part.
    pub amount: usize,
}

/// Required beside this binary.
const LIBRARY: &str = "libsimgpu.so";
const PROGRAMS: [&str; 4] = ["sim-train", "nvidia-cuda-mps-control", "nvidia-smi", "dcgmi"];

/// A simulated machine of its own: its state, the state folder of collo, and the environment that leads there.
pub struct SimMachine {
    folder: PathBuf,
    programs: PathBuf,
    env: Vec<(&'static str, std::ffi::OsString)>,
}

impl SimMachine {
    /// A machine with this specification, as in `COLLO_SIM`; the error says what has to be built.
    pub fn new(ground: &ScratchProject, name: &str, words: &str) -> Result<SimMachine> {
        let programs = beside()?;
        let library = library(&programs)
            .with_context(|| format!("the simulated GPU is not next to this program; hint: {}", build("collo-simgpu")))?;
        let folder = ground.path().join(name);
        fs::create_dir_all(folder.join("work"))?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([programs.clone()].into_iter().chain(std::env::split_paths(&path)))?;
        let env = vec![
            ("COLLO_NVML", library.into()),
            ("COLLO_PYTHON", programs.join("sim-train").into()),
            ("COLLO_SIM", words.into()),
            ("COLLO_SIM_DIR", folder.join("machine").into()),
            ("COLLO_SIM_CARDS", ground.checkout().mig_profiles().into()),
            ("COLLO_SIM_SERIAL", folder.clone().into()),
            ("COLLO_STATE", folder.join("state").into()),
            ("PATH", path),
        ];
        Ok(SimMachine { folder, programs, env })
    }

    /// The built `collo`, or how to build it.
    pub fn collo(&self) -> Result<PathBuf> {
        let collo = self.programs.join("collo");
        ensure!(collo.is_file(), "`collo` is not next to this program; hint: {}", build("collo"));
        Ok(collo)
    }

    /// A program in this machine, isolated from the real machine's GPU.
    pub fn command<A: Into<OsString>>(&self, program: &Path, arguments: impl IntoIterator<Item = A>) -> duct::Expression {
        let command = duct::cmd(program, arguments).stdin_null().unchecked();
        let cuda = std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("CUDA_"));
        let command = cuda.fold(command, |command, name| command.env_remove(name));
        self.env.iter().fold(command, |command, (name, value)| command.env(name, value))
    }

    /// Measure a part inside, in a process of its own.
    pub fn ask<T: DeserializeOwned>(&self, part: &str, amount: usize, more: &[(&str, &str)]) -> Result<T> {
        let (amount, work) = (amount.to_string(), self.folder.join("work"));
        let words = [VERB.as_ref(), part.as_ref(), amount.as_ref(), work.as_os_str()];
        let command = self.command(&std::env::current_exe()?, words);
        let output = more.iter().fold(command, |command, (name, value)| command.env(name, value)).stdout_capture().run()?;
        ensure!(output.status.success(), "inside the simulated machine it exited with {}", output.status);
        serde_json::from_slice(&output.stdout).context("what was measured inside the simulated machine cannot be read")
    }
}

/// If this process is to measure a part inside a simulated machine, do so; call it at the beginning of `main`.
pub fn entry(parts: &[Part]) -> Option<ExitCode> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() != Some(VERB) {
        return None;
    }
    let part = words.next().and_then(|name| parts.iter().find(|(part, _)| *part == name));
    let (amount, folder) = (words.next().and_then(|n| n.parse().ok()), words.next());
    let Some(((_, part), amount, folder)) = part.zip(amount).zip(folder).map(|((p, a), f)| (p, a, f)) else {
        eprintln!("error: no such part");
        return Some(ExitCode::FAILURE);
    };
    Some(match part(&Task { folder: folder.into(), amount }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// Print what a part measured.
pub fn say(measured: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(measured)?);
    Ok(())
}

/// The folder that this binary was built into.
fn beside() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.parent().context("a program lies in a folder")?.to_path_buf())
}

/// The library that the programs were linked with, if all are there. They are linked after it: a newer one is of another build.
fn library(programs: &Path) -> Option<PathBuf> {
    let made = |path: &PathBuf| path.metadata().and_then(|m| m.modified()).ok();
    let linked = PROGRAMS.iter().map(|program| made(&programs.join(program))).min().flatten()?;
    let places = [programs.join(LIBRARY), programs.join("deps").join(LIBRARY)];
    places.into_iter().filter(|place| place.is_file()).max_by_key(|place| (made(place) <= Some(linked), made(place)))
}

fn build(package: &str) -> String {
    let release = if cfg!(debug_assertions) { "" } else { " --release" };
    format!("`cargo build{release} -p {package}`")
}
