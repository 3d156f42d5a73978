//! A case's own world: a project with the misbehaving members, on the CPU or on a simulated card, with a campaign stored in it before.
//!
//! In: a card's words if there is a card, an experiment. Out: a [`Scene`] in which the command is started under a line of shell, what
//! it said, and what is left of it.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use collo_store::{CampaignFolder, Outcome, Runs, StoredRun, sha256_file};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::sim::Machine;
use crate::support::{Bench, checkout, is_alive};

/// What is read of a stream: nobody should say more.
const MOST_SAID: u64 = 20 << 20;

const MEMORY_TO_STOP_AT_KIB: u64 = 1536 << 10;

enum Place {
    Cpu(Box<Bench>),
    Card(Box<Machine>),
}

pub struct Scene {
    place: Place,
    project: PathBuf,
    /// For what is not the project's.
    aside: tempfile::TempDir,
    mark: String,
    under: String,
    /// How the card was found.
    pub found: Option<serde_json::Value>,
}

/// Copy files, folders and links as they are.
pub fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp starts");
    assert!(copied.success(), "{} cannot be copied", from.display());
}

/// Two campaigns of well-behaved members, `good` and `damaged`, measured once for all cases.
fn stored_before() -> &'static Path {
    static STORED: OnceLock<Bench> = OnceLock::new();
    let bench = STORED.get_or_init(|| {
        let sleep = "[axes]\nworkload = \"sleep\"\nseconds = 0.05\nitems = 5\ndegree = ";
        let bench = Bench::new().experiment("good", &format!("{sleep}1"));
        let bench = bench.experiment("damaged", &format!("repetitions = 2\n{sleep}[1, 2]"));
        for name in ["good", "damaged"] {
            bench.collo(&["run", name, "--no-report", "-q"]).exits(0);
        }
        bench
    });
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| bench.at("")).as_path()
}

impl Scene {
    /// The project lies in a folder of this name, where one is given, and the command starts after these lines of shell.
    pub fn new(words: Option<&str>, toml: &str, folder: Option<&std::ffi::OsStr>, under: &str) -> Scene {
        let place = match words {
            Some(words) => Place::Card(Box::new(Machine::new(words, toml))),
            None => {
                let bench = Bench::of(toml);
                let state = bench.at(".state").display().to_string();
                Place::Cpu(Box::new(bench.env("COLLO_STATE", &state)))
            }
        };
        let mut scene = Scene {
            place,
            project: PathBuf::new(),
            aside: tempfile::tempdir().expect("a folder"),
            mark: String::new(),
            under: under.into(),
            found: None,
        };
        scene.project = scene.bench().at("");
        let collo = scene.bench().command(&[]);
        let mark = collo.get_envs().find(|(name, _)| *name == "COLLO_TEST_MARK").and_then(|(_, value)| value);
        scene.mark = mark.expect("every bench has one").to_string_lossy().into_owned();
        for entry in fs_err::read_dir(checkout().join("harness/cli/tests/hostile/members")).expect("readable") {
            copy(&entry.expect("readable").path(), &scene.at("workloads"));
        }
        let stored = stored_before();
        for name in ["good", "damaged"] {
            let experiment = format!("experiments/{name}.toml");
            copy(&stored.join(&experiment), &scene.at(&experiment));
        }
        copy(&stored.join("runs"), &scene.at("runs"));
        if let Some(folder) = folder {
            let inner = scene.project.join(folder);
            fs_err::create_dir(&inner).expect("a folder");
            for name in ["experiments", "workloads", "runs"] {
                fs_err::rename(scene.at(name), inner.join(name)).expect("moved");
            }
            scene.project = inner;
        }
        scene.found = scene.machine().map(Machine::cards);
        scene
    }

    pub fn bench(&self) -> &Bench {
        match &self.place {
            Place::Cpu(bench) => bench,
            Place::Card(machine) => &machine.bench,
        }
    }

    pub fn machine(&self) -> Option<&Machine> {
        match &self.place {
            Place::Cpu(_) => None,
            Place::Card(machine) => Some(machine),
        }
    }

    /// The card of a case that has one.
    pub fn card(&self) -> &Machine {
        self.machine().expect("the case is on a card")
    }

    /// A place in the project.
    pub fn at(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.project.clone() } else { self.project.join(name) }
    }

    /// A place outside of it.
    pub fn aside(&self, name: &str) -> PathBuf {
        self.aside.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let place = self.at(name);
        fs_err::create_dir_all(place.parent().expect("in the project")).expect("a folder");
        fs_err::write(place, text).expect("written");
    }

    fn shell(&self, under: &str, arguments: &[&str]) -> Command {
        let collo = self.bench().command(&[]);
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(format!("{under}\nexec \"$COLLO\" \"$@\"")).arg("collo").args(arguments);
        for (name, value) in collo.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        // A group of its own, as a shell would give it.
        shell.env("COLLO", collo.get_program()).env("ASIDE", self.aside.path()).current_dir(&self.project).process_group(0);
        shell.stdin(Stdio::null());
        shell
    }

    /// Start the command as the case has it.
    pub fn start(&self, arguments: &[&str]) -> Live {
        Live::of(self.shell(&self.under, arguments))
    }

    /// The same to its end.
    pub fn collo(&self, arguments: &[&str], within: Duration) -> Result<Said, String> {
        self.start(arguments).ends(within)
    }

    /// Run the command when all is well again: members behave, and nothing is odd about the shell.
    pub fn calmly(&self, arguments: &[&str]) -> Result<Said, String> {
        let mut shell = self.shell("", arguments);
        shell.env("HOSTILE_CALM", "1");
        Live::of(shell).ends(Duration::from_secs(60))
    }

    /// Start it after other lines of shell.
    pub fn start_under(&self, under: &str, arguments: &[&str]) -> Live {
        Live::of(self.shell(under, arguments))
    }

    /// Campaigns of experiment `x`, newest first.
    pub fn campaigns(&self) -> Vec<CampaignFolder> {
        let all = Runs::at(self.at("runs")).campaigns().map(|(all, _)| all).unwrap_or_default();
        all.into_iter().filter(|c| c.manifest().experiment == "x").collect()
    }

    /// The complete runs of all of them, by campaign and folder.
    pub fn runs(&self) -> BTreeMap<String, StoredRun> {
        let of = |c: CampaignFolder| {
            let id = c.manifest().id.clone();
            c.runs()
                .map(|(runs, _)| runs)
                .unwrap_or_default()
                .into_iter()
                .map(move |(folder, run)| (format!("{id}/{folder}"), run))
        };
        self.campaigns().into_iter().flat_map(of).collect()
    }

    /// A stored campaign that a case may damage.
    pub fn damaged(&self) -> PathBuf {
        only_folder(&self.at("runs/damaged"))
    }

    /// Every file of every completed run of these experiments, with its digest.
    pub fn digests(&self, experiments: &[&str]) -> BTreeMap<PathBuf, String> {
        let campaigns = experiments.iter().flat_map(|name| below(&self.at("runs").join(name)));
        // Drafts and what was superseded begin with a dot.
        let is_stored = |f: &PathBuf| !f.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b".")) && is_completed(f);
        let runs = campaigns.flat_map(|c| below(&c)).filter(is_stored);
        let mut found = BTreeMap::new();
        runs.for_each(|run| collect(&run, &mut found));
        found
    }

    /// Live processes that were started from here: by their environment, their folder or their last argument.
    pub fn left(&self) -> Vec<(u32, String)> {
        let (variable, argument) = (format!("COLLO_TEST_MARK={}", self.mark), format!("hostile-{}", self.mark));
        let has = |file: String, text: &str| {
            std::fs::read(file).unwrap_or_default().split(|&b| b == 0).any(|word| word == text.as_bytes())
        };
        let ours = |pid: &u32| {
            has(format!("/proc/{pid}/environ"), &variable)
                || has(format!("/proc/{pid}/cmdline"), &argument)
                || std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&self.project))
        };
        let line = |pid: u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").trim().chars().take(120).collect::<String>()
        };
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(ours).filter(|&pid| is_alive(pid)).map(|pid| (pid, line(pid))).collect()
    }

    /// Nothing that was started from here lives after so long.
    pub fn nothing_is_left(&self, patience: Duration) -> Result<(), String> {
        let deadline = Instant::now() + patience;
        loop {
            let left = self.left();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let some: Vec<_> = left.iter().take(3).collect();
                return Err(format!("{} processes are left: {some:?}", left.len()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// End what is left, whatever it is: the next case must not meet it.
    pub fn end_all(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let left = self.left();
            if left.is_empty() || Instant::now() > deadline {
                return;
            }
            for (pid, _) in left {
                let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.end_all();
        // Whatever a case left there, such as a folder without rights, must not stand in the way of removing it.
        let _ = Command::new("chmod").args(["-R", "u+rwx"]).arg(&self.project).stderr(Stdio::null()).status();
    }
}

fn below(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect()
}

/// The only folder in it.
pub fn only_folder(folder: &Path) -> PathBuf {
    below(folder).into_iter().find(|p| p.is_dir()).unwrap_or_else(|| panic!("nothing in {}", folder.display()))
}

/// Its run folders.
pub fn run_folders(campaign: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = below(campaign).into_iter().filter(|f| f.join("run.json").is_file()).collect();
    found.sort();
    found
}

fn is_completed(folder: &Path) -> bool {
    let text = std::fs::read(folder.join("run.json")).unwrap_or_default();
    let record = serde_json::from_slice::<collo_store::RunRecord>(&text);
    record.is_ok_and(|r| r.outcome == Outcome::Completed)
}

fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for path in below(folder) {
        match path.symlink_metadata() {
            Ok(m) if m.is_dir() => collect(&path, found),
            Ok(m) if m.is_file() => {
                found.insert(path.clone(), sha256_file(&path).unwrap_or_default());
            }
            _ => {}
        }
    }
}

/// A command that runs; its streams go to files, so that nobody who holds them open is waited for.
pub struct Live {
    child: Child,
    streams: tempfile::TempDir,
}

/// What it said, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub stdout: String,
    pub stderr: String,
    /// The exit code, or the number of the signal below zero.
    pub code: i32,
    /// The most resident memory that was seen.
    pub peak_kib: u64,
}

impl Live {
    fn of(mut command: Command) -> Live {
        let streams = tempfile::tempdir().expect("a folder");
        let file = |name: &str| fs_err::File::create(streams.path().join(name)).expect("a file").into_file();
        command.stdout(file("out")).stderr(file("err"));
        Live { child: command.spawn().expect("sh starts"), streams }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Send a signal to this process alone; it may have ended.
    pub fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.pid() as i32), signal);
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// What it said so far on stderr.
    pub fn to_text(&self) -> String {
        read(&self.streams.path().join("err"))
    }

    /// Wait for its end, which must come within this time.
    pub fn ends(mut self, within: Duration) -> Result<Said, String> {
        let (deadline, mut peak_kib) = (Instant::now() + within, 0);
        let status = loop {
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                break status;
            }
            peak_kib = peak_kib.max(peak_kib_of(self.pid()).unwrap_or(0));
            // Before it takes the machine down.
            let takes_all = peak_kib > MEMORY_TO_STOP_AT_KIB;
            if takes_all || Instant::now() > deadline {
                self.signal(Signal::SIGKILL);
                let _ = self.child.wait();
                if takes_all {
                    return Err(format!("it held {} MiB of memory, and was ended", peak_kib >> 10));
                }
                let said = self.to_text();
                let end: Vec<&str> = said.lines().rev().take(4).collect();
                return Err(format!("it did not end within {within:?}; its last lines, backwards: {end:?}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let code = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
        let stream = |name: &str| read(&self.streams.path().join(name));
        Ok(Said { stdout: stream("out"), stderr: stream("err"), code, peak_kib })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(MOST_SAID).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The most resident memory that a process has had so far (proc(5), `VmHWM`).
pub fn peak_kib_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
