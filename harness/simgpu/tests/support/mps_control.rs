//! A control program of MPS, NVIDIA's or the simulated one, in folders of its own: started, asked, and read.

use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::vendor::Vendor;

const SIMULATED: &str = env!("CARGO_BIN_EXE_nvidia-cuda-mps-control");
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// What is asked last before a transcript begins.
const LAST: &str = "nothing-further";

/// Wait for an event of a control program.
pub fn until(control: &Control, what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < TIMEOUT, "waiting for {what}; {}", control.printed());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A control program, a folder for its pipes and logs, and its environment.
pub struct Control {
    pub program: PathBuf,
    env: Vec<(&'static str, String)>,
    folder: tempfile::TempDir,
    /// Another user than the test's own.
    pub user: Option<u32>,
}

impl Control {
    pub fn new(program: PathBuf, env: Vec<(&'static str, String)>) -> Control {
        // A short path: sockets lie in it.
        let folder = tempfile::Builder::new().prefix("mps").tempdir_in("/tmp").expect("a folder");
        for name in ["pipe", "log"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        Control { program, env, folder, user: None }
    }

    pub fn of_vendor(vendor: &Vendor) -> Control {
        Control::new(vendor.control(), vendor.environment().to_vec())
    }

    /// The simulated one, in the words of this driver, on a machine where servers find no device, as here.
    pub fn simulated(driver: u32) -> Control {
        let mut control = Control::new(SIMULATED.into(), Vec::new());
        let machine = control.path("machine").display().to_string();
        let scenario = format!("a100-40gb,mps={driver},mps-no-server");
        control.env.extend([("COLLO_SIM", scenario), ("COLLO_SIM_DIR", machine)]);
        control
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.env.iter().cloned());
        command.env("CUDA_MPS_PIPE_DIRECTORY", self.path("pipe")).env("CUDA_MPS_LOG_DIRECTORY", self.path("log"));
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// The daemon in the foreground, once it answers.
    pub fn start(&self, env: &[(&str, &str)]) -> Daemon<'_> {
        let out = std::fs::File::create(self.path("printed")).expect("a file");
        let child = self.command().arg("-f").envs(env.iter().copied()).stdin(Stdio::null()).stdout(out).spawn();
        let daemon = Daemon { control: self, child: child.expect("it starts") };
        daemon.until("an answer", || self.say("get_server_list").1 == 0);
        // Its log lags behind its answers: it is up to date once it has closed the last of our questions.
        self.say(LAST);
        let is_closed = |log: &str| log.split(&format!("Cmd:{LAST}")).nth(1).is_some_and(|rest| rest.contains("UI closed"));
        daemon.until("the end of the last question", || is_closed(&self.printed()));
        daemon
    }

    /// What the front end prints, and its status.
    pub fn say(&self, words: &str) -> (String, i32) {
        let streams = || Stdio::piped();
        let mut child = self.command().stdin(streams()).stdout(streams()).stderr(streams()).spawn().expect("it starts");
        // Where no daemon is, it ends without reading.
        let _ = child.stdin.take().expect("a pipe").write_all(format!("{words}\n").as_bytes());
        let output = child.wait_with_output().expect("it ends");
        let said = [output.stdout, output.stderr].concat();
        (String::from_utf8_lossy(&said).into_owned(), output.status.code().unwrap_or(-1))
    }

    pub fn printed(&self) -> String {
        std::fs::read_to_string(self.path("printed")).unwrap_or_default()
    }

    /// The names in a folder of it.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).expect("readable").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

pub struct Daemon<'a> {
    control: &'a Control,
    pub child: Child,
}

impl Daemon<'_> {
    pub fn until(&self, what: &str, done: impl Fn() -> bool) {
        until(self.control, what, done);
    }

    /// One command, with everything that is logged because of it.
    pub fn ask(&self, words: &str) -> Exchange {
        let before = self.control.printed().len();
        let words = words.replace("UID", &nix::unistd::getuid().to_string());
        let (answer, status) = self.control.say(&words);
        let starts_server = words.starts_with("start_server -uid ") && answer.is_empty();
        let is_over = |log: &str| match words.as_str() {
            "quit" => log.contains("Exit with status"),
            _ => log.contains("UI closed") && (!starts_server || log.contains("Removed Shm file")),
        };
        self.until("the end of a command", || is_over(&self.control.printed()[before..]));
        let log = self.control.printed()[before..].to_string();
        Exchange { words, answer, status, log: self.masked(&log) }
    }

    /// The lines of a log without times and with names for pids and folders. Those of one command are sorted: the server logs beside
    /// the daemon.
    fn masked(&self, log: &str) -> Vec<String> {
        let own = self.child.id().to_string();
        let pipe = self.control.path("pipe").display().to_string();
        let server = log.split("Starting new server ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or("none");
        let mask = |line: &str| {
            let line = line.split_once(|c: char| c.is_ascii_alphabetic()).map_or(line, |(before, _)| &line[before.len()..]);
            let word = |word: &str| match word.trim_end_matches(']') {
                pid if pid == own => word.replace(pid, "OWN"),
                pid if pid == server => word.replace(pid, "SERVER"),
                _ => word.replace(&pipe, "PIPE"),
            };
            line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
        };
        let mut lines: Vec<String> = log.lines().map(mask).collect();
        lines.sort();
        lines
    }

    pub fn end(mut self) -> i32 {
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug, PartialEq)]
pub struct Exchange {
    pub words: String,
    pub answer: String,
    pub status: i32,
    pub log: Vec<String>,
}
