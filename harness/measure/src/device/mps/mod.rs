//! Talking to an MPS control daemon: one command, one bounded answer.
//!
//! In: the folder of its pipe. Out: what it says, read into values. It starts no daemon; `launch/service.rs` does.

mod replies;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::launch::children;
pub use replies::{Logged, Status, logged, trouble, understood};

/// The program, looked for on the PATH.
pub const PROGRAM: &str = "nvidia-cuda-mps-control";
/// The name of the server's process, which the driver's process list shows.
pub const SERVER: &str = "nvidia-cuda-mps-server";
/// A Unix socket lies in the folder; longer paths of one are cut off by the system.
pub const LONGEST_FOLDER: usize = 80;

/// How long an answer may take. A daemon that hangs must not hang the campaign.
const PATIENCE: Duration = Duration::from_secs(5);

/// A daemon, by the folder of its pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    pub pipe: PathBuf,
}

/// Why it gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    #[error("`{PROGRAM}` is not on the PATH")]
    NoProgram,
    #[error("`{0}` got no answer from the MPS daemon within {1} s")]
    Slow(String, u64),
    #[error("the MPS daemon answered `{words}` with: {answer}")]
    Refused { words: String, answer: String },
}

impl Control {
    pub fn at(pipe: impl Into<PathBuf>) -> Control {
        Control { pipe: pipe.into() }
    }

    /// Say one command and read the answer.
    pub fn say(&self, words: &str) -> Result<String, Unanswered> {
        self.say_within(words, PATIENCE)
    }

    fn say_within(&self, words: &str, patience: Duration) -> Result<String, Unanswered> {
        let mut command = Command::new(PROGRAM);
        command.env("CUDA_MPS_PIPE_DIRECTORY", &self.pipe);
        match bounded(&mut command, &format!("{words}\n"), patience) {
            Ok(Some((true, answer))) => Ok(answer),
            Ok(Some((false, answer))) => {
                Err(Unanswered::Refused { words: words.into(), answer: answer.trim().replace('\n', "; ") })
            }
            Ok(None) => Err(Unanswered::Slow(words.into(), patience.as_secs())),
            Err(_) => Err(Unanswered::NoProgram),
        }
    }

    /// True when it answers, and so soon. Where no daemon listens the program says so at once, so this is long only where one is slow.
    pub fn is_ready(&self) -> bool {
        self.say("get_default_active_thread_percentage").is_ok()
    }

    /// The pids of its servers; none before the first client has come.
    pub fn servers(&self) -> Result<Vec<u32>, Unanswered> {
        self.say("get_server_list").map(|answer| replies::pids(&answer))
    }

    /// The pids of a server's clients.
    pub fn clients(&self, server: u32) -> Result<Vec<u32>, Unanswered> {
        self.say(&format!("get_client_list {server}")).map(|answer| replies::pids(&answer))
    }

    pub fn status(&self, server: u32) -> Result<Status, Unanswered> {
        self.say(&format!("get_server_status {server}")).map(|answer| replies::status(&answer))
    }

    /// The share of threads that clients get where nothing else is said.
    pub fn active_thread_percentage(&self) -> Result<Option<f64>, Unanswered> {
        self.say("get_default_active_thread_percentage").map(|answer| replies::number(&answer))
    }

    /// The memory that each client may have on the daemon's only device, bytes; none where the answer is not understood.
    pub fn memory_limit_bytes(&self) -> Result<Option<u64>, Unanswered> {
        self.say("get_default_device_pinned_mem_limit 0").map(|answer| replies::size_bytes(&answer))
    }

    /// End it in good order: its clients first, each by the server's own way, then itself, and only so long.
    pub fn end(&self, patience: Duration) -> Result<(), Unanswered> {
        let deadline = Instant::now() + patience;
        let servers = self.servers()?;
        for server in servers {
            for client in self.clients(server).unwrap_or_default() {
                // A client that is gone meanwhile is what we want.
                let _ = self.say(&format!("terminate_client {server} {client}"));
            }
        }
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
        self.say_within("quit", left).map(drop)
    }

    /// The daemon's pid, as it wrote it down.
    pub fn pid(&self) -> Option<u32> {
        std::fs::read_to_string(self.pipe.join(format!("{PROGRAM}.pid"))).ok()?.trim().parse().ok()
    }
}

/// The place where a daemon is that nobody named another place for.
pub fn usual_place() -> PathBuf {
    std::env::var_os("CUDA_MPS_PIPE_DIRECTORY").filter(|p| !p.is_empty()).map_or("/tmp/nvidia-mps".into(), PathBuf::from)
}

/// Whether the program is there to be run.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(|p| is_executable(p))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// Run a command with an input, but not for longer than this; what it says on both streams. None if it took too long.
///
/// Not by a library: it also runs inside supervisors, whose SIGCHLD is theirs.
fn bounded(command: &mut Command, input: &str, patience: Duration) -> std::io::Result<Option<(bool, String)>> {
    let deadline = Instant::now() + patience;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut child, _own) = children::spawn(command)?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may be gone already, for without a daemon it ends before it reads; then its status tells. SIGPIPE is ignored in every
        // process that this runs in: collo has Rust's own setting, supervisors set it.
        let _ = stdin.write_all(input.as_bytes());
    }
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = out.as_mut().map(|o| o.take(1 << 20).read_to_end(&mut said));
        let _ = err.as_mut().map(|e| e.take(1 << 20).read_to_end(&mut said));
        String::from_utf8_lossy(&said).into_owned()
    });
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some((status.success(), reader.join().unwrap_or_default())));
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_answered_or_cut_off() {
        let mut cat = Command::new("cat");
        assert_eq!(bounded(&mut cat, "x\n", PATIENCE).unwrap(), Some((true, "x\n".into())));
        let mut sleep = Command::new("sleep");
        assert_eq!(bounded(sleep.arg("30"), "", Duration::from_millis(50)).unwrap(), None);
        assert!(bounded(&mut Command::new("/no/such/program"), "", PATIENCE).is_err());
    }

    #[test]
    fn who_does_not_read_is_no_error_and_a_program_has_its_own_pipes_end_it() {
        // More than a pipe holds: the writing comes to an end only because nobody reads any more.
        let much = "x".repeat(1 << 20);
        assert_eq!(bounded(&mut Command::new("false"), &much, PATIENCE).unwrap(), Some((false, String::new())));
        let mut own = Command::new("sh");
        let (_, said) = bounded(own.args(["-c", "grep SigIgn /proc/self/status"]), "", PATIENCE).unwrap().unwrap();
        let bits = u64::from_str_radix(said.trim_start_matches("SigIgn:").trim(), 16).unwrap();
        // SIGPIPE is 13, and bit 0 is signal 1.
        assert_eq!(bits >> 12 & 1, 0, "{said}");
    }
}
