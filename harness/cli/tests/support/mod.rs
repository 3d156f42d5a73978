//! A project in a folder of its own, and the real command in it: what the tests of whole campaigns are written with.
//!
//! Every process below carries a mark in its environment, so that a test can ask what is left of it, whoever its parent is now.

#[path = "../../../store/tests/support/noted.rs"]
pub mod noted;
#[path = "../../../store/tests/support/skip.rs"]
pub mod skip;

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use collo_store::{CampaignFolder, EpochRecord, Outcome, Runs, StoredRun};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// The checkout that is tested.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout is there")
}

/// The command that is tested: of the same package, or lying beside what is tested.
pub fn collo() -> PathBuf {
    let beside = || {
        let own = std::env::current_exe().expect("this test");
        own.ancestors().nth(2).expect("the folder of the build").join("collo")
    };
    let found = option_env!("CARGO_BIN_EXE_collo").map_or_else(beside, PathBuf::from);
    assert!(found.is_file(), "collo is not built: run `cargo build` first");
    found
}

/// A project of its own, with the checkout's workloads and no experiment.
pub struct Bench {
    folder: tempfile::TempDir,
    mark: String,
    env: Vec<(String, String)>,
}

impl Bench {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::tempdir().expect("a folder");
        copy_workloads(&checkout().join("workloads"), &folder.path().join("workloads"));
        fs_err::create_dir(folder.path().join("experiments")).expect("a folder");
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // Which projects were run is noted for the user: not for the one who tests.
        let state = folder.path().join(".state").display().to_string();
        Bench { folder, mark, env: vec![("COLLO_STATE".into(), state)] }
    }

    /// A project with one experiment, `x`: one repetition on the CPU without a pause, and what is given.
    pub fn of(toml: &str) -> Self {
        Bench::new().experiment("x", toml)
    }

    /// Add an experiment.
    pub fn experiment(self, name: &str, toml: &str) -> Self {
        let mut text = "schema = 1\ndevice = \"cpu\"\n".to_string();
        for (key, value) in [("repetitions", "1"), ("cooldown", "\"0s\"")] {
            if !toml.contains(key) {
                text.push_str(&format!("{key} = {value}\n"));
            }
        }
        text.push_str(toml);
        self.file(&format!("experiments/{name}.toml"), &text)
    }

    /// Write a file of the project.
    pub fn file(self, name: &str, text: &str) -> Self {
        self.write(name, text);
        self
    }

    /// Write a file of the project, now.
    pub fn write(&self, name: &str, text: &str) {
        let place = self.at(name);
        fs_err::create_dir_all(place.parent().expect("in the project")).expect("a folder");
        fs_err::write(place, text).expect("written");
    }

    /// A variable for the command.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// A place in the project.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, ready to start in the project.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(collo());
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("COLLO_TEST_MARK", &self.mark).env_remove("COLLO_PYTHON").env_remove("NO_COLOR");
        command.envs(self.env.iter().cloned());
        command
    }

    /// Run the command to its end.
    pub fn collo(&self, arguments: &[&str]) -> Answer {
        Answer::from(self.command(arguments).output().expect("collo starts"))
    }

    /// Run experiment `x`, without a report.
    pub fn run(&self, arguments: &[&str]) -> Answer {
        self.collo(&[&["run", "x", "--no-report"], arguments].concat())
    }

    /// Finish a campaign by its name, without a report.
    pub fn run_named(&self, campaign: &str, arguments: &[&str]) -> Answer {
        self.collo(&[&["run", campaign, "--no-report"], arguments].concat())
    }

    /// Start the command, and let it be.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        // A group of its own, as a shell would give it.
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        Running { child: Some(command.spawn().expect("collo starts")) }
    }

    /// So many campaigns without runs that are newer than all others: copies of an experiment's campaign, with these texts replaced.
    pub fn add_newer(&self, experiment: &str, count: usize, changes: &[(&str, &str)]) {
        let folder = self.at("runs").join(experiment);
        let stored = fs_err::read_dir(&folder).expect("there").next().expect("a campaign").expect("read");
        let id = stored.file_name().into_string().expect("text");
        let manifest = fs_err::read_to_string(stored.path().join("campaign.json")).expect("there");
        for number in 0..count {
            let newer = format!("20991231-2359-{number:04}");
            fs_err::create_dir_all(folder.join(&newer)).expect("made");
            let copy = changes.iter().fold(manifest.replace(&id, &newer), |text, (from, to)| text.replace(from, to));
            fs_err::write(folder.join(&newer).join("campaign.json"), copy).expect("written");
        }
    }

    pub fn runs_folder(&self) -> Runs {
        Runs::at(self.at("runs"))
    }

    /// The newest campaign.
    pub fn campaign(&self) -> CampaignFolder {
        self.runs_folder().find("last").expect("a campaign is stored")
    }

    /// How many campaigns there are.
    pub fn campaigns(&self) -> usize {
        self.runs_folder().campaigns().expect("readable").0.len()
    }

    /// The complete runs of the newest campaign, by folder; every one must be readable.
    pub fn runs(&self) -> BTreeMap<String, StoredRun> {
        let (runs, foreign) = self.campaign().runs().expect("readable");
        assert!(foreign.is_empty(), "{foreign:?}");
        runs
    }

    /// The first repetition of the only cell of this degree.
    pub fn run_of(&self, degree: u32) -> StoredRun {
        let runs = self.runs();
        let found = runs.values().find(|r| r.record.cell.degree == degree && r.record.repetition == 1);
        found.unwrap_or_else(|| panic!("no run of degree {degree} in {:?}", runs.keys())).clone()
    }

    /// Live processes that were started from here, with their command lines.
    pub fn left(&self) -> Vec<(u32, String)> {
        let mark = format!("COLLO_TEST_MARK={}\0", self.mark);
        let marked = |pid: &u32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environ).contains(&mark)
        };
        processes().filter(marked).filter(|&pid| is_alive(pid)).map(|pid| (pid, command_line(pid))).collect()
    }

    /// Wait until nothing that was started from here lives; what does after so long is the test's failure.
    pub fn nothing_is_left(&self, patience: Duration) {
        // Between two programs, and in its last moments, a process has no environment that could be read; and while the numbers of
        // processes begin anew, a child has a lower one than its parent. Whoever is not seen twice is gone.
        let look = || Some(self.left()).filter(|l| !l.is_empty());
        let again = || {
            std::thread::sleep(Duration::from_millis(20));
            look()
        };
        let left = || look().or_else(again);
        let deadline = Instant::now() + patience;
        while let Some(left) = left() {
            assert!(Instant::now() < deadline, "left after {patience:?}: {left:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for (pid, _) in self.left() {
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
    }
}

fn copy_workloads(from: &Path, to: &Path) {
    fs_err::create_dir_all(to).expect("a folder");
    for entry in fs_err::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("named").to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "__pycache__", ".pytest_cache"].contains(&&*name) {
            copy_workloads(&path, &to.join(name));
        } else if path.is_file() {
            fs_err::copy(&path, to.join(name)).expect("copied");
        }
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok())
}

/// True for a process that is there and not only waits to be reaped.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn command_line(pid: u32) -> String {
    String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).replace('\0', " ")
}

/// What the command said, and how it ended.
#[derive(Debug)]
pub struct Answer {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Answer { stdout: text(&output.stdout), stderr: text(&output.stderr), code: output.status.code() }
    }
}

impl Answer {
    /// It must have ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// It must have said this on stderr.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "`{text}` is not in stderr:\n{}\nstdout:\n{}", self.stderr, self.stdout);
        self
    }

    /// It must have answered this on stdout.
    #[track_caller]
    pub fn answers(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "`{text}` is not in stdout:\n{}", self.stdout);
        self
    }

    /// Its last line on stderr.
    pub fn last_line(&self) -> &str {
        self.stderr.trim_end().lines().last().unwrap_or_default()
    }

    /// The one object that it printed; it begins with its schema.
    #[track_caller]
    pub fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout));
        let first = value.as_object().and_then(|o| o.keys().next()).map(String::as_str);
        assert_eq!(first, Some("schema"), "{value}");
        value
    }
}

/// A command that runs.
pub struct Running {
    child: Option<Child>,
}

impl Running {
    fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("it was not waited for yet")
    }

    pub fn pid(&mut self) -> u32 {
        self.child().id()
    }

    /// Send a signal to this process alone.
    pub fn signal(&mut self, signal: Signal) {
        kill(Pid::from_raw(self.pid() as i32), signal).expect("it is there");
    }

    /// Send a signal to its process group, as a terminal does with Ctrl-C.
    pub fn signal_group(&mut self, signal: Signal) {
        kill(Pid::from_raw(-(self.pid() as i32)), signal).expect("it is there");
    }

    /// Wait for the first line of its answer, which is not part of what `ends` gives.
    pub fn first_line(&mut self) -> String {
        let stdout = self.child().stdout.as_mut().expect("it is piped");
        // Byte by byte: what follows is left to be read.
        let bytes = std::io::Read::bytes(stdout).map(|byte| byte.expect("it is read"));
        String::from_utf8(bytes.take_while(|byte| *byte != b'\n').collect()).expect("UTF-8")
    }

    /// Wait for its end; it must come.
    #[track_caller]
    pub fn ends(mut self) -> Answer {
        let child = self.child.take().expect("it was not waited for yet");
        let pid = child.id();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        match receiver.recv_timeout(PATIENCE) {
            Ok(output) => Answer::from(output.expect("it can be waited for")),
            Err(_) => {
                let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
                panic!("it did not end within {PATIENCE:?}");
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How long a test waits for an event that must come: much longer than on the busiest machine, so that only a fault takes so long.
const PATIENCE: Duration = Duration::from_secs(240);

/// Wait until something is there; it must come.
#[track_caller]
pub fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What happened in a run, a line each.
pub fn events(run: &StoredRun) -> Vec<Value> {
    let text = fs_err::read_to_string(run.path.join("events.jsonl")).expect("stored");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

/// The epochs of a run.
pub fn epochs(run: &StoredRun) -> Vec<EpochRecord> {
    collo_store::read_epochs(&run.path.join("epochs.parquet")).expect("readable")
}

/// What a member printed.
pub fn log(run: &StoredRun, member: usize) -> String {
    fs_err::read_to_string(run.path.join(format!("member-{member}.log"))).expect("stored")
}

/// The crash that a run ended with: member, status, message.
#[track_caller]
pub fn crash(run: &StoredRun) -> (u32, String, String) {
    match &run.record.outcome {
        Outcome::Crashed { member, status, message, .. } => (*member, status.clone(), message.clone()),
        other => panic!("not crashed but {other:?}"),
    }
}
