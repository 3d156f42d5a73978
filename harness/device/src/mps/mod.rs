//! Talking to an MPS control daemon: one command, one bounded answer.
//!
//! In: the folder of its pipe. Out: its replies, parsed into values. It starts no daemon; `launch/service.rs` does.

pub mod folder;
mod replies;

use collo_plan::sharing::MPS_PROGRAM;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use collo_launch::{CommandOutput, Errand};

pub use replies::{Logged, ReportedLimit, ServerStart, Status, has_fault, logged, server_start, trouble, understood};

/// The name of the server's process, which the driver's process list shows.
pub const SERVER: &str = "nvidia-cuda-mps-server";
/// The folder contains Unix sockets, whose paths are limited: NVIDIA's daemon does not start where its own has more than 87 bytes.
pub const LONGEST_FOLDER: usize = 80;
/// The file of a daemon's log folder with everything that the daemon and its servers print. One in the foreground (`-f`) prints to standard
/// output, and writes none of the files that one in the background has (nvidia-cuda-mps-control(1)).
pub const LOG: &str = "daemon.log";
/// The switch to another interface of the control program, from r615 on; ours is the default one
/// (<https://docs.nvidia.com/deploy/mps/615/quick-start.html>).
const PROTOCOL: &str = "CUDA_MPS_PROTOCOL_VERSION";
/// The folder of the state folder in which members without MPS look for a daemon, and find none.
pub const NO_DAEMON: &str = "no-mps";

/// Time limit for an answer. A daemon that hangs must not hang the campaign.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A daemon, by the folder of its pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    pub pipe: PathBuf,
}

/// Why it gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MpsUnanswered {
    #[error("`{MPS_PROGRAM}` is not on the PATH")]
    NoProgram,
    #[error("`{0}` got no reply from the MPS daemon within {1} s")]
    Slow(String, u64),
    #[error("the MPS daemon replied to `{words}` with: {answer}")]
    Refused { words: String, answer: String },
}

impl Control {
    pub fn at(pipe: impl Into<PathBuf>) -> Control {
        Control { pipe: pipe.into() }
    }

    /// Send one command and read the answer, whatever it says: the exit status is 0 wherever a daemon answered, but for `quit`.
    pub fn say(&self, words: &str) -> Result<String, MpsUnanswered> {
        self.say_within(words, TIMEOUT)
    }

    fn say_within(&self, words: &str, patience: Duration) -> Result<String, MpsUnanswered> {
        let errand =
            Errand::to(MPS_PROGRAM, patience).env("CUDA_MPS_PIPE_DIRECTORY", Some(&self.pipe)).env(PROTOCOL, None::<&str>);
        let errand = errand.input(format!("{words}\n"));
        match errand.ask() {
            Ok(said) if said.success() => Ok(said.out() + &said.err()),
            Ok(said @ CommandOutput { status: Some(_), .. }) => Err(refused(words, &(said.out() + &said.err()))),
            Ok(CommandOutput { status: None, .. }) => Err(MpsUnanswered::Slow(words.into(), patience.as_secs())),
            Err(_) => Err(MpsUnanswered::NoProgram),
        }
    }

    /// True if it answers quickly. Without a daemon the program fails immediately, so this takes long only with a slow one.
    pub fn is_ready(&self) -> bool {
        self.say("get_default_active_thread_percentage").is_ok()
    }

    /// The pids of its servers; empty before the first client has connected.
    pub fn servers(&self) -> Result<Vec<u32>, MpsUnanswered> {
        self.list("get_server_list")
    }

    /// The pids of a server's clients.
    pub fn clients(&self, server: u32) -> Result<Vec<u32>, MpsUnanswered> {
        self.list(&format!("get_client_list {server}"))
    }

    fn list(&self, words: &str) -> Result<Vec<u32>, MpsUnanswered> {
        let answer = self.say(words)?;
        replies::only_pids(&answer).ok_or_else(|| refused(words, &answer))
    }

    /// Start the server of a user now, instead of with the first client. The daemon does not wait for it: its log reports how that goes.
    pub fn start_server(&self, uid: u32) -> Result<(), MpsUnanswered> {
        let words = format!("start_server -uid {uid}");
        match self.say(&words)? {
            answer if answer.trim().is_empty() => Ok(()),
            answer => Err(refused(&words, &answer)),
        }
    }

    pub fn status(&self, server: u32) -> Result<Status, MpsUnanswered> {
        self.say(&format!("get_server_status {server}")).map(|answer| replies::status(&answer))
    }

    /// The memory that each client may have on one of the daemon's devices, as far as the daemon reports it; `None` for a limit that its
    /// environment sets, and where the answer is not understood.
    pub fn memory_limit(&self, device: u32) -> Result<Option<ReportedLimit>, MpsUnanswered> {
        self.say(&format!("get_default_device_pinned_mem_limit {device}")).map(|answer| replies::reported_limit(&answer))
    }

    /// Shut it down: its clients first, each by the server's own method, then itself, within the time limit.
    pub fn end(&self, patience: Duration) -> Result<(), MpsUnanswered> {
        let deadline = Instant::now() + patience;
        let servers = match self.servers() {
            // It answers, in whatever form: it can be asked to end.
            Err(MpsUnanswered::Refused { .. }) => Vec::new(),
            servers => servers?,
        };
        for server in servers {
            for client in self.clients(server).unwrap_or_default() {
                // A client that is gone meanwhile is what we want.
                let _ = self.say(&format!("terminate_client {server} {client}"));
            }
        }
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
        match self.say_within("quit", left) {
            // The status is the daemon's, which is 1 after any server has failed: it has ended all the same.
            Err(MpsUnanswered::Refused { answer, .. }) if answer.is_empty() => Ok(()),
            ended => ended.map(drop),
        }
    }

    /// End the GPU work of those of these processes that are clients, before they are killed: a client that ends by a signal while
    /// its kernels run leaves the server, and with it the other clients, in an undefined state
    /// (<https://docs.nvidia.com/deploy/mps/>: `terminate_client` before any signal).
    pub fn terminate(&self, processes: &[u32], patience: Duration) {
        let deadline = Instant::now() + patience;
        let ask = |words: &str| match deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => String::new(),
            // Without an answer there is nothing more to do than what follows anyway.
            left => self.say_within(words, left).unwrap_or_default(),
        };
        for server in replies::pids(&ask("get_server_list")) {
            let clients = replies::pids(&ask(&format!("get_client_list {server}")));
            for client in clients.into_iter().filter(|client| processes.contains(client)) {
                ask(&format!("terminate_client {server} {client}"));
            }
        }
    }
}

fn refused(words: &str, answer: &str) -> MpsUnanswered {
    MpsUnanswered::Refused { words: words.into(), answer: answer.trim().replace('\n', "; ") }
}

/// Whether the program is there to be run.
pub fn program() -> Option<PathBuf> {
    collo_text::on_path(MPS_PROGRAM)
}
