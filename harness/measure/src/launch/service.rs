//! A program that must run beside the members, or without any, and not outlive collo: an MPS daemon in the foreground, a load that keeps a
//! card busy. It has a supervisor of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};

use super::supervisor::{self, Orders, Report};

/// The supervisors of all services of this process: a group that sweeps up its own must know them.
static SUPERVISORS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Their pids.
pub fn supervisors() -> Vec<u32> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A program that runs. Dropped, it is ended by its supervisor.
pub struct Service {
    supervisor: Child,
    control: UnixStream,
    pub pid: u32,
}

/// What to run.
pub struct ServiceOrders {
    pub command: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    pub env: BTreeMap<String, Option<String>>,
    pub log: PathBuf,
    /// The pipe folder of an MPS daemon, which is told to end its clients and itself before it is killed.
    pub mps_pipe: Option<PathBuf>,
}

impl Service {
    /// Start it; it runs when this returns, or the reason is told.
    pub fn start(orders: ServiceOrders) -> std::io::Result<Service> {
        let (control, their_control) = UnixStream::pair()?;
        let (channel, their_channel) = UnixStream::pair()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(supervisor::VERB).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mappings = vec![
            FdMapping { parent_fd: OwnedFd::from(their_control), child_fd: supervisor::CONTROL_FD },
            FdMapping { parent_fd: OwnedFd::from(their_channel), child_fd: supervisor::CHANNEL_FD },
        ];
        command.fd_mappings(mappings).map_err(std::io::Error::other)?;
        let mut supervisor = command.spawn()?;
        SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner).push(supervisor.id());
        // The command holds this side's copies of both sockets.
        drop(command);
        drop(channel);
        let mut line = serde_json::to_string(&Orders {
            command: orders.command,
            folder: orders.folder,
            env: orders.env,
            log: orders.log,
            cores: None,
            adapter: None,
            is_service: true,
            mps_pipe: orders.mps_pipe,
        })?;
        line.push('\n');
        (&control).write_all(line.as_bytes())?;
        control.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut answer = String::new();
        BufReader::new(&control).read_line(&mut answer)?;
        match serde_json::from_str::<Report>(&answer) {
            Ok(Report::Started { pid, .. }) => Ok(Service { supervisor, control, pid }),
            Ok(Report::NotStarted { reason }) => {
                let _ = supervisor.wait();
                Err(std::io::Error::other(reason))
            }
            _ => Err(std::io::Error::other("its supervisor said nothing")),
        }
    }

    /// Whether it still runs; once it is over, how it ended.
    pub fn ended(&mut self) -> Option<String> {
        self.control.set_nonblocking(true).ok()?;
        let mut bytes = [0; 4096];
        let read = self.control.read(&mut bytes);
        let _ = self.control.set_nonblocking(false);
        match read {
            Ok(0) => Some("its supervisor is gone".into()),
            Ok(n) => {
                let text = String::from_utf8_lossy(&bytes[..n]);
                Some(match text.lines().find_map(|l| serde_json::from_str::<Report>(l).ok()) {
                    Some(Report::Ended { code: Some(code), .. }) => format!("it exited with {code}"),
                    Some(Report::Ended { signal: Some(signal), .. }) => format!("it was killed by signal {signal}"),
                    _ => "it ended".into(),
                })
            }
            Err(_) => None,
        }
    }

    /// End it: its supervisor does what is due before the end, and then kills what is left.
    pub fn stop(mut self, patience: Duration) -> bool {
        let _ = self.control.write_all(b"kill\n");
        let deadline = Instant::now() + patience;
        loop {
            match self.supervisor.try_wait() {
                Ok(Some(_)) => return true,
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                _ => return false,
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let own = self.supervisor.id();
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        // A zombie of ours would count as a process that is left.
        let deadline = Instant::now() + Duration::from_secs(15);
        while matches!(self.supervisor.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner).retain(|pid| *pid != own);
    }
}
