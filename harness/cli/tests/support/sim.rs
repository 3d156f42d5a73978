//! A simulated GPU of one test's own, and a project on it: the command meets it as it would meet a card.
//!
//! In: words of the simulation and an experiment. Out: a [`Machine`] with the command in it, its card's state, and what is left of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Answer, Bench, Running, checkout};

/// Seconds of an epoch alone.
pub const EPOCH_S: &str = "0.3";

/// A machine with a simulated card, and a project with an experiment `x`.
pub struct Machine {
    pub bench: Bench,
    folder: tempfile::TempDir,
    /// The part of the folder that the simulation has; another one is another machine with the same card.
    room: String,
    path: String,
}

/// Where the simulation was built: the library, and the folder of its programs.
fn built() -> (PathBuf, PathBuf) {
    let own = std::env::current_exe().expect("this test");
    let deps = own.parent().expect("its folder");
    let debug = deps.parent().expect("the folder above");
    let made = |path: &PathBuf| path.metadata().and_then(|m| m.modified()).ok();
    let programs = ["sim-train", "nvidia-cuda-mps-control", "dcgmi", "nvidia-smi", "systemctl"].map(|p| debug.join(p));
    let linked = programs.iter().map(made).min().flatten();
    let mut libraries = vec![debug.join("libsimgpu.so"), deps.join("libsimgpu.so")];
    libraries.retain(|l| l.is_file());
    // Programs are linked after their library: a newer one is of another build, and they would not understand each other.
    libraries.sort_by_key(|l| (made(l) <= linked, made(l)));
    match (libraries.pop(), linked) {
        (Some(library), Some(_)) => (library, debug.to_path_buf()),
        _ => panic!("the simulated GPU is not built: run `cargo build -p collo-simgpu` first"),
    }
}

/// A short experiment on a GPU, with what is given.
pub fn short(toml: &str) -> String {
    let mut text = "schema = 1\n".to_string();
    for (key, value) in [("device", "\"gpu\""), ("repetitions", "1"), ("cooldown", "\"0s\"")] {
        if !toml.lines().any(|line| line.trim_start().starts_with(key)) {
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    text + toml
}

/// One of its programs.
pub fn program(name: &str) -> PathBuf {
    built().1.join(name)
}

/// A project with cards that are simulated by this scenario, and a state folder of its own.
pub fn bench(scenario: &str) -> Bench {
    put_on(Bench::new(), scenario)
}

/// The same for a project that is there.
pub fn put_on(bench: Bench, scenario: &str) -> Bench {
    let (library, programs) = built();
    let profiles = checkout().join("mig-profiles");
    for entry in fs_err::read_dir(&profiles).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("named").to_string_lossy().into_owned();
        bench.write(&format!("mig-profiles/{name}"), &fs_err::read_to_string(&path).expect("readable"));
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let at = |name: &str| bench.at(name).display().to_string();
    let (folder, state) = (at(".sim"), at(".state"));
    let serial = at("");
    bench
        .env("COLLO_NVML", &library.display().to_string())
        .env("COLLO_SIM", scenario)
        .env("COLLO_SIM_DIR", &folder)
        .env("COLLO_SIM_CARDS", &profiles.display().to_string())
        .env("COLLO_SIM_SERIAL", &serial)
        .env("COLLO_STATE", &state)
        .env("PATH", &path)
}

impl Machine {
    /// A card with these words, and experiment `x`.
    pub fn new(words: &str, toml: &str) -> Machine {
        let folder = tempfile::Builder::new().prefix("collo-gpu-").tempdir().expect("a folder");
        let (_, programs) = built();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let state = folder.path().join("state").display().to_string();
        let bench = put_on(Bench::new(), words)
            .file("experiments/x.toml", &short(toml))
            .env("COLLO_PYTHON", &programs.join("sim-train").display().to_string())
            .env("COLLO_STATE", &state)
            .env("COLLO_SIM_EPOCH_S", EPOCH_S);
        Machine { bench, folder, room: "sim".into(), path }.under(words)
    }

    /// The same card with other words from now on: whoever looks next finds them.
    pub fn under(self, words: &str) -> Machine {
        let folder = self.sim().display().to_string();
        let bench = self.bench.env("COLLO_SIM", words).env("COLLO_SIM_DIR", &folder);
        let machine = Machine { bench, ..self };
        let listed = machine.program("nvidia-smi", &["-L"]);
        assert!(machine.sim().join("state.json").is_file(), "`{words}` is no machine: {listed:?}");
        machine
    }

    /// An equal machine on which nothing ever trained, with the same project and the same memory of what was changed.
    pub fn anew(self, words: &str) -> Machine {
        let room = format!("{}-anew", self.room);
        Machine { room, ..self }.under(words)
    }

    /// A variable for the command and everything below it.
    pub fn env(self, name: &str, value: &str) -> Machine {
        Machine { bench: self.bench.env(name, value), ..self }
    }

    /// Without one of the simulation's programs on the PATH.
    pub fn without(self, program: &str) -> Machine {
        let kept = self.folder.path().join("programs");
        fs_err::create_dir_all(&kept).expect("a folder");
        let (_, built) = built();
        for name in ["nvidia-cuda-mps-control", "dcgmi", "nvidia-smi", "systemctl"].iter().filter(|n| **n != program) {
            std::os::unix::fs::symlink(built.join(name), kept.join(name)).expect("a link");
        }
        // Another one may lie elsewhere.
        let has_it = |folder: &&str| Path::new(folder).join(program).exists();
        let rest: Vec<&str> = self.path.split(':').filter(|folder| !has_it(folder)).collect();
        let path = format!("{}:{}", kept.display(), rest.join(":"));
        self.env("PATH", &path)
    }

    /// The folder of the simulation.
    pub fn sim(&self) -> PathBuf {
        self.folder.path().join(&self.room)
    }

    /// The UUID of a card.
    pub fn uuid(&self, index: usize) -> String {
        let text = fs_err::read_to_string(self.sim().join("state.json")).expect("the machine is on");
        let state: Value = serde_json::from_str(&text).expect("JSON");
        state["cards"][index]["uuid"].as_str().expect("a text").to_string()
    }

    /// The folder of journals.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn collo(&self, arguments: &[&str]) -> Answer {
        self.bench.collo(arguments)
    }

    /// Run experiment `x`, without a report.
    pub fn run(&self, arguments: &[&str]) -> Answer {
        self.bench.run(arguments)
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        self.bench.start(&[&["run", "x", "--no-report"], arguments].concat())
    }

    /// One of the simulation's programs, as a person on this machine would start it.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let (_, built) = built();
        let mut command = Command::new(built.join(program));
        // The environment is that of the command, and so is the mark.
        let like = self.bench.command(&[]);
        let values = like.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.args(arguments).envs(values).stdin(Stdio::null());
        command
    }

    pub fn program(&self, program: &str, arguments: &[&str]) -> Answer {
        Answer::from(self.command(program, arguments).output().expect("it starts"))
    }

    /// How every card stands: MIG and what it is cut into, compute mode, what somebody set; and which services run. Instances have new
    /// numbers each time they are made.
    pub fn cards(&self) -> Value {
        let text = fs_err::read_to_string(self.sim().join("state.json")).expect("the machine is on");
        let state: Value = serde_json::from_str(&text).expect("JSON");
        let cards = state["cards"].as_array().expect("cards");
        let runs = |service: &Value| json!([service["unit"], service["active"]]);
        let services = state["services"].as_array().into_iter().flatten().map(runs);
        json!({"cards": cards.iter().map(stands).collect::<Vec<_>>(), "services": services.collect::<Vec<_>>()})
    }

    /// How often the first card was reset, or its mode turned without, since the machine was switched on.
    pub fn turns(&self) -> u64 {
        let text = fs_err::read_to_string(self.sim().join("state.json")).expect("the machine is on");
        let state: Value = serde_json::from_str(&text).expect("JSON");
        state["cards"][0]["resets"].as_u64().expect("a number")
    }

    /// The services that were started anew since the machine was switched on.
    pub fn restarted(&self) -> Vec<String> {
        let text = fs_err::read_to_string(self.sim().join("state.json")).expect("the machine is on");
        let state: Value = serde_json::from_str(&text).expect("JSON");
        let all = state["services"].as_array().cloned().unwrap_or_default();
        let first = all.iter().filter_map(|s| s["since_ns"].as_u64()).min();
        let later = all.iter().filter(|s| s["since_ns"].as_u64() > first);
        later.filter_map(|s| s["unit"].as_str().map(str::to_string)).collect()
    }

    /// Cards that are written down as changed.
    pub fn journals(&self) -> Vec<Value> {
        let entries = std::fs::read_dir(self.state()).into_iter().flatten().flatten();
        let files = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "json"));
        files.filter_map(|p| serde_json::from_str(&std::fs::read_to_string(p).ok()?).ok()).collect()
    }

    /// Pipe folders of MPS daemons that are written down now.
    pub fn pipes(&self) -> Vec<PathBuf> {
        let daemons = |journal: Value| journal["daemons"].as_array().cloned().unwrap_or_default();
        let all = self.journals().into_iter().flat_map(daemons);
        all.filter_map(|pipe| Some(Path::new(pipe.as_str()?).to_path_buf())).collect()
    }
}

fn stands(card: &Value) -> Value {
    let whole = |i: &Value, compute: Vec<Value>| json!([i["profile"], i["start"], compute]);
    let mut instances: Vec<Value> = card["instances"]
        .as_array()
        .expect("instances")
        .iter()
        .map(|i| {
            let compute = i["compute"].as_array().expect("compute instances");
            whole(i, compute.iter().map(|c| json!([c["profile"], c["start"]])).collect())
        })
        .collect();
    instances.sort_by_key(Value::to_string);
    json!({
        "mig": card["mig"], "pending": card["mig_pending"], "compute_mode": card["compute_mode"],
        "persistence": card["persistence"], "instances": instances, "power_limit_w": card["power_limit_w"],
        "application_mhz": card["application_mhz"], "locked_mhz": card["locked_mhz"],
    })
}
