//! A program that is run for its answer: querying an interpreter, preparing data, an installer.
//!
//! It runs under a supervisor as members do, so nothing that it starts outlives it, nor collo, however collo ends. Its output is
//! bounded, it has a time limit, and each signal that asks collo to end ends it with a message. One that is short, and starts nothing that
//! could stay, is run without a supervisor (`ask.rs`).
//!
//! To add a helper program: `Errand::to(program, limit)`, then `.run()` under a supervisor or `.ask()` for a short answer; never
//! a `Command` of its own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, PipeReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::supervised::{BUSY, Supervised};
use super::supervisor::{Orders, Output, Report};
use crate::interrupted::{Noted, Stopped};

/// Bytes kept of the end of each stream: an answer, and an error, come last.
const KEPT: usize = 1 << 20;
/// Polling interval while it prints nothing.
const LOOK: Duration = Duration::from_millis(100);

/// What to run.
#[derive(Debug, Clone)]
pub struct Errand {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    /// If `None`, that of collo.
    pub(super) folder: Option<PathBuf>,
    pub(super) env: BTreeMap<String, Option<OsString>>,
    /// Input, if run without a supervisor.
    pub(super) input: Vec<u8>,
    log: Option<PathBuf>,
    pub(super) limit: Duration,
}

/// Its output, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrandOutput {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

/// Why there is no answer. In any case none of its processes is left.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    #[error("{0}")]
    NotStarted(String),
    /// No process could be started for it, its supervisor or itself, e.g. because of a process limit.
    #[error("no process can be started for it: {0}")]
    Unsupervised(#[source] std::io::Error),
    #[error("it did not finish within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// `how`: ` by SIGKILL`, as far as that is known.
    #[error("its supervisor was killed{}", .how.as_deref().unwrap_or_default())]
    SupervisorLost { how: Option<String> },
    /// Collo was asked to end.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl ErrandOutput {
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.err).into_owned()
    }
}

impl Errand {
    /// An errand to run this program, with this time limit.
    pub fn to(program: impl AsRef<OsStr>, limit: Duration) -> Errand {
        let (program, arguments) = (program.as_ref().to_os_string(), Vec::new());
        Errand { program, arguments, folder: None, env: BTreeMap::new(), input: Vec::new(), log: None, limit }
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Errand {
        self.arguments.push(argument.as_ref().to_os_string());
        self
    }

    pub fn args<S: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = S>) -> Errand {
        arguments.into_iter().fold(self, Errand::arg)
    }

    pub fn folder(mut self, folder: &Path) -> Errand {
        self.folder = Some(folder.into());
        self
    }

    /// On top of collo's own environment; `None` removes a variable.
    pub fn env(mut self, name: impl Into<String>, value: Option<impl Into<OsString>>) -> Errand {
        self.env.insert(name.into(), value.map(Into::into));
        self
    }

    /// Its input, if run without a supervisor.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Errand {
        self.input = input.into();
        self
    }

    /// Append its output to this file, instead of the answer.
    pub fn log(mut self, log: &Path) -> Errand {
        self.log = Some(log.into());
        self
    }

    /// Run it to its end under a supervisor.
    pub fn run(self) -> Result<ErrandOutput, Unanswered> {
        self.watched(&mut || ())
    }

    /// The same; `look` is called about ten times a second.
    pub fn watched(self, look: &mut dyn FnMut()) -> Result<ErrandOutput, Unanswered> {
        let noted = Noted::begin();
        noted.go_on()?;
        let answer = self.answer(&noted, look);
        if answer.is_err() {
            // Ctrl-C in a terminal may also reach a supervisor that has only just begun.
            noted.go_on()?;
        }
        answer
    }

    fn answer(self, noted: &Noted, look: &mut dyn FnMut()) -> Result<ErrandOutput, Unanswered> {
        let (out, their_out) = std::io::pipe().map_err(Unanswered::Unsupervised)?;
        let (err, their_err) = std::io::pipe().map_err(Unanswered::Unsupervised)?;
        // What is no text cannot be ordered of a supervisor; it becomes a path that is not there, and the error names it.
        let text = |word: OsString| word.to_string_lossy().into_owned();
        let orders = Orders {
            command: std::iter::once(self.program).chain(self.arguments).map(text).collect(),
            folder: self.folder.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| "/".into()),
            env: self.env.into_iter().map(|(name, value)| (name, value.map(text))).collect(),
            output: self.log.map_or(Output::Inherited, Output::Log),
            cores: None,
            memory_nodes: None,
            adapter: None,
            has_channel: false,
            channels: 0,
            asked_to_end: None,
            client_of: None,
        };
        let streams = (Stdio::from(their_out), Stdio::from(their_err));
        let mut supervised = Supervised::start(&orders, Some(streams)).map_err(Unanswered::Unsupervised)?;
        let mut heard = SupervisedOutput { out: LastBytes::of(out), err: LastBytes::of(err), reports: Vec::new() };
        let deadline = Instant::now() + self.limit;
        let end = loop {
            let over = heard.hear(&supervised, LOOK);
            if let Err(stopped) = noted.go_on() {
                break Err(stopped.into());
            }
            match heard.report() {
                Some(Report::Started { .. }) | None if over => break Err(Unanswered::SupervisorLost { how: None }),
                Some(Report::Started { .. }) | None => {}
                Some(Report::NotStarted { of_limit: true, .. }) => {
                    break Err(Unanswered::Unsupervised(std::io::Error::from(Errno::EAGAIN)));
                }
                Some(Report::NotStarted { reason, .. }) => break Err(Unanswered::NotStarted(reason)),
                Some(Report::Ended { code, .. }) => break Ok(code),
            }
            if Instant::now() >= deadline {
                break Err(Unanswered::TimedOut(self.limit));
            }
            look();
        };
        match end {
            Ok(code) => {
                // Everything below has ended before that is reported, so what was said is in the pipes.
                supervised.wait_or_kill(BUSY);
                heard.rest();
                Ok(ErrandOutput { code, out: heard.out.bytes(), err: heard.err.bytes() })
            }
            Err(why) => {
                supervised.end(BUSY);
                Err(match why {
                    Unanswered::SupervisorLost { .. } => Unanswered::SupervisorLost { how: supervised.killed_by() },
                    other => other,
                })
            }
        }
    }
}

/// Output of a supervisor and of what it started.
struct SupervisedOutput {
    out: LastBytes,
    err: LastBytes,
    reports: Vec<u8>,
}

impl SupervisedOutput {
    /// Wait for output, within this time; true once the supervisor has nothing more to report.
    fn hear(&mut self, supervised: &Supervised, at_most: Duration) -> bool {
        let nobody: Option<&PipeReader> = None;
        let (out, err) = (self.out.pipe.as_ref().or(nobody), self.err.pipe.as_ref().or(nobody));
        let mut fds = vec![PollFd::new(supervised.control.as_fd(), PollFlags::POLLIN)];
        fds.extend(out.iter().chain(&err).map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        // A signal cuts it short; whoever asks will ask again.
        let _ = poll(&mut fds, PollTimeout::try_from(at_most).unwrap_or(PollTimeout::ZERO));
        let mut ready = fds.iter().map(|fd| fd.any().unwrap_or(false));
        let reported = ready.next() == Some(true);
        let (out, err) = (out.is_some() && ready.next() == Some(true), err.is_some() && ready.next() == Some(true));
        if out {
            self.out.read();
        }
        if err {
            self.err.read();
        }
        reported && {
            let mut piece = [0; 4096];
            match (&supervised.control).read(&mut piece) {
                Ok(n) => {
                    self.reports.extend_from_slice(&piece[..n]);
                    n == 0
                }
                Err(e) => e.kind() != ErrorKind::Interrupted,
            }
        }
    }

    /// The last complete report.
    fn report(&self) -> Option<Report> {
        let text = String::from_utf8_lossy(&self.reports);
        text.lines().rev().find_map(|line| serde_json::from_str(line).ok())
    }

    /// Read what is still in the pipes. None of our processes has their other ends open any more; others are not waited for.
    fn rest(&mut self) {
        for kept in [&mut self.out, &mut self.err] {
            while let Some(pipe) = &kept.pipe {
                let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
                match poll(&mut fds, PollTimeout::ZERO) {
                    Ok(0) => break,
                    _ => kept.read(),
                }
            }
        }
    }
}

/// The end of a stream.
struct LastBytes {
    pipe: Option<PipeReader>,
    bytes: Vec<u8>,
}

impl LastBytes {
    fn of(pipe: PipeReader) -> LastBytes {
        LastBytes { pipe: Some(pipe), bytes: Vec::new() }
    }

    /// Read once; call it when there is data, or the pipe is closed.
    fn read(&mut self) {
        let mut piece = [0; 1 << 16];
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(&mut piece) {
            Ok(0) => self.pipe = None,
            Ok(n) => self.bytes.extend_from_slice(&piece[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
        if self.bytes.len() > 2 * KEPT {
            self.bytes.drain(..self.bytes.len() - KEPT);
        }
    }

    fn bytes(mut self) -> Vec<u8> {
        let over = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..over);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    fn shell(script: &str) -> Errand {
        Errand::to("sh", Duration::from_secs(60)).args(["-c", script])
    }

    /// The processes with this variable in their environment.
    fn marked(mark: &str) -> Vec<u32> {
        let is_marked = |pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|&b| b == 0).any(|v| v == mark.as_bytes())
        };
        process::all().filter(is_marked).filter(|pid| process::stat(*pid).is_some_and(|stat| !stat.is_over())).collect()
    }

    #[test]
    fn what_it_says_and_how_it_ends_comes_back() {
        let answer = shell("echo $A; echo no >&2; exit 3").env("A", Some("yes")).run().expect("it ran");
        assert_eq!(answer, ErrandOutput { code: Some(3), out: b"yes\n".into(), err: b"no\n".into() });
        let error = Errand::to("/no/such/program", Duration::from_secs(60)).run().expect_err("there is none");
        assert_eq!(error.to_string(), "`/no/such/program` does not start: No such file or directory (os error 2)");
        assert_eq!(shell("kill -9 $$").run().expect("it ran").code, None);
    }

    /// Production code that starts programs otherwise: supervisors, and what is not a query, because it keeps running, streams or
    /// replaces collo.
    const OTHERWISE: [&str; 7] = [
        "bench/src/bench/gpu_sampler.rs",
        "bench/src/bench/staging.rs",
        "cli/src/machine/simulate.rs",
        "cli/src/project/data.rs",
        "launch/src/supervised.rs",
        "launch/src/supervisor.rs",
        "sample/src/gpu/dcgm/command.rs",
    ];
    /// Packages that are no part of collo: the simulated GPU, and tests.
    const APART: [&str; 3] = ["house", "simgpu", "workloads"];

    #[test]
    fn nothing_is_asked_of_a_program_but_by_an_errand_or_by_duct() {
        let harness = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("above");
        let packages = fs_err::read_dir(harness).expect("readable").map(|entry| entry.expect("readable").path());
        let of_collo = packages.filter(|package| !APART.iter().any(|apart| package.ends_with(apart)));
        let mut folders: Vec<PathBuf> = of_collo.map(|package| package.join("src")).filter(|src| src.is_dir()).collect();
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for path in fs_err::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if !path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests")) {
                    let text = fs_err::read_to_string(&path).expect("readable");
                    let ours = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
                    let name = path.strip_prefix(harness).expect("below").display().to_string();
                    let ours = ours.replace("clap::Command::new(", "");
                    found.extend(ours.contains("Command::new(").then_some(name));
                }
            }
        }
        found.sort();
        assert_eq!(found, OTHERWISE);
    }

    #[test]
    fn of_an_endless_answer_the_end_is_kept() {
        let answer = shell("head -c 50000000 /dev/zero; echo the end").run().expect("it ran");
        assert_eq!(answer.out.len(), KEPT);
        assert!(answer.out.ends_with(b"\0the end\n"));
    }

    #[test]
    fn a_child_that_holds_its_streams_open_is_not_waited_for_and_does_not_stay() {
        let mark = format!("COLLO_TEST_ERRAND=child-{}", std::process::id());
        let (name, value) = mark.split_once('=').expect("both");
        let script = "trap '' TERM HUP INT; (setsid sleep 600 &) ; sleep 600 & echo done";
        assert_eq!(shell(script).env(name, Some(value)).run().expect("it ran").out(), "done\n");
        assert_eq!(marked(&mark), [0u32; 0]);
    }

    #[test]
    fn one_that_takes_too_long_is_ended_with_all_that_it_started() {
        let mark = format!("COLLO_TEST_ERRAND=slow-{}", std::process::id());
        let (name, value) = mark.split_once('=').expect("both");
        let mut errand = shell("(setsid sleep 600 &) ; sleep 600").env(name, Some(value));
        errand.limit = Duration::from_millis(300);
        let error = errand.run().expect_err("it hangs");
        assert_eq!(error.to_string(), "it did not finish within 0.3 s");
        assert_eq!(marked(&mark), [0u32; 0]);
    }

    #[test]
    fn a_supervisor_that_was_stopped_does_not_keep_anything_alive() {
        let mark = format!("COLLO_TEST_ERRAND=stopped-{}", std::process::id());
        let (name, value) = mark.split_once('=').expect("both");
        let mut errand = shell("kill -STOP $PPID; exec sleep 600").env(name, Some(value));
        errand.limit = Duration::from_secs(1);
        assert!(matches!(errand.run(), Err(Unanswered::TimedOut(_))));
        // What was killed is gone once the kernel has come to it.
        let left = (0..200).map(|_| (marked(&mark), std::thread::sleep(Duration::from_millis(10))).0).find(Vec::is_empty);
        assert_eq!(left, Some(Vec::new()));
    }

    #[test]
    fn its_own_output_can_go_to_a_file() {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let mut looks = 0;
        let answer = shell("echo said; sleep 0.3; exit 1").log(log.path()).watched(&mut || looks += 1).expect("it ran");
        assert_eq!((answer.code, answer.out.len()), (Some(1), 0));
        assert_eq!(fs_err::read_to_string(log.path()).expect("written"), "said\n");
        assert!(looks > 0);
    }
}
