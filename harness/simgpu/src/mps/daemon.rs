//! The control daemon: it listens in the pipe directory, starts a server with the first client, and does what it is told.
//!
//! In: connections, each either a client that stays (`client PID UID`) or a command. Out: answers, logs, servers. What happens to the
//! cards is in the log of activity, where a server stands like any process.

use std::fs::{DirBuilder, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{SigHandler, Signal, signal};

use super::commands::Reply;
use super::dialect::Dialect;
use super::journal::Journal;
use super::server::{NO_DEVICE, Server};
use super::{CONTROL, PRIVILEGED, commands, fits, limit_of, log_directory, pipe_directory, size_bytes, socket};
use crate::scenario;
use crate::sim::Sim;
use crate::visible::{Place, places};

/// Clients of the server of a whole card.
const MOST_CLIENTS: usize = 48;
const LOOK: Duration = Duration::from_millis(20);

/// What the daemon knows.
pub struct Daemon {
    pub sim: Sim,
    pub devices: Vec<Place>,
    pub dialect: Dialect,
    pub journal: Journal,
    pub servers: Vec<Server>,
    /// For servers started later.
    pub percent: f64,
    pub limits: Vec<(usize, u64)>,
    /// Those of the limits that were set by a command: others are in force, and not reported.
    pub set_by_command: Vec<(usize, u64)>,
    pub priority: u32,
    pub leaving: bool,
    /// A server ended with an error: the daemon ends with 1 then.
    pub failed: bool,
    faulted: bool,
}

pub type Shared = Arc<Mutex<Daemon>>;

pub fn locked(shared: &Shared) -> MutexGuard<'_, Daemon> {
    shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Be the daemon until it is to quit; the error is what the program prints.
pub fn run(in_foreground: bool) -> Result<(), String> {
    let sim = Sim::open()?;
    if sim.scenario.has("mps-no-start") {
        return Err("MPS control daemon failed to start".into());
    }
    let (pipes, logs, path) = (pipe_directory(), log_directory(), socket());
    let folders = if in_foreground { vec![&pipes] } else { vec![&pipes, &logs] };
    for folder in folders {
        DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(|e| format!("`{}`: {e}", folder.display()))?;
    }
    if !fits() {
        return Err(String::new());
    }
    let _only = only(&pipes)?;
    if sim.scenario.has("mps-hang") {
        // SAFETY: ignoring a signal runs no code of ours.
        let _ = unsafe { signal(Signal::SIGTERM, SigHandler::SigIgn) };
    }
    if let Some(seconds) = sim.scenario.duration_s("mps-slow") {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
    let privileged = pipes.join(PRIVILEGED);
    let _ = std::fs::remove_file(&privileged);
    let _privileged = UnixListener::bind(&privileged).map_err(|e| format!("`{}`: {e}", privileged.display()))?;
    let pid = std::process::id();
    let dialect = Dialect::of(&sim);
    if dialect.has_pid_file() {
        let pid_file = pipes.join(format!("{CONTROL}.pid"));
        std::fs::write(&pid_file, format!("{pid}\n")).map_err(|e| format!("`{}`: {e}", pid_file.display()))?;
    }
    let journal = if in_foreground { Journal::Printed } else { Journal::Folder(logs) };
    journal.write("Control", pid, &format!("Starting control daemon using socket {}", path.display()));
    let connect = format!("To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY={}", pipes.display());
    journal.write("Control", pid, &connect);

    let devices = places(&sim, std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref());
    const PERCENTAGE: &str = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
    let percent = std::env::var(PERCENTAGE).ok().map(|text| commands::percent(&text).ok_or(text));
    if matches!(percent, Some(Err(_))) {
        journal.write("Control", pid, &format!("{PERCENTAGE} should be between (0.0, 100.0]"));
    }
    let percent = percent.and_then(Result::ok).unwrap_or(100.0);
    let list = std::env::var("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT").unwrap_or_default();
    let limits = (0..devices.len()).filter_map(|i| Some((i, limit_of(&list, i)?))).collect();
    let daemon = Daemon {
        sim,
        devices,
        dialect,
        journal,
        servers: Vec::new(),
        percent,
        limits,
        set_by_command: Vec::new(),
        priority: 0,
        leaving: false,
        failed: false,
        faulted: false,
    };
    let shared = Arc::new(Mutex::new(daemon));
    let watching = shared.clone();
    std::thread::spawn(move || watch(&watching));
    for stream in listener.incoming().flatten() {
        let shared = shared.clone();
        std::thread::spawn(move || serve(&shared, stream));
    }
    Ok(())
}

/// One daemon per pipe directory.
fn only(pipes: &std::path::Path) -> Result<Flock<File>, String> {
    let file = File::options().create(true).truncate(false).write(true).open(pipes.join("control_lock"));
    let file = file.map_err(|e| format!("`{}`: {e}", pipes.display()))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| "An instance of this daemon is already running".to_string())
}

/// End everything below the daemon. Its sockets stay where they are, as the real ones do; its pid file goes.
pub fn leave(shared: &Shared, status: i32) {
    let mut daemon = locked(shared);
    daemon.note("Control", &format!("Exit with status {status}"));
    daemon.servers.clear();
    let _ = std::fs::remove_file(pipe_directory().join(format!("{CONTROL}.pid")));
}

/// What happens by itself.
fn watch(shared: &Shared) {
    loop {
        std::thread::sleep(LOOK);
        let mut daemon = locked(shared);
        daemon.sim.refresh();
        if daemon.sim.is_on("mps-dies") {
            // Dies as it stands: socket and pid file stay behind.
            daemon.servers.clear();
            std::process::exit(1);
        }
        let card = daemon.sim.scenario.number("mps-fault");
        let is_there = card.is_none_or(|card| daemon.devices.iter().any(|place| place.card as f64 == card));
        if daemon.sim.is_on("mps-fault") && is_there && !daemon.faulted {
            daemon.faulted = true;
            let journal = daemon.journal.clone();
            daemon.servers.iter_mut().for_each(|server| server.fail(&journal));
        }
    }
}

fn serve(shared: &Shared, stream: UnixStream) {
    let Ok(copy) = stream.try_clone() else { return };
    let mut reader = BufReader::new(copy);
    let mut line = String::new();
    if reader.read_line(&mut line).is_err() {
        return;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["client", pid, uid] => {
            let (Ok(pid), Ok(uid)) = (pid.parse(), uid.parse()) else { return };
            client(shared, stream, reader, pid, uid);
        }
        ["command", ..] => command(shared, stream, line.trim_start_matches("command").trim()),
        _ => {}
    }
}

fn command(shared: &Shared, mut stream: UnixStream, text: &str) {
    {
        let daemon = locked(shared);
        daemon.note("Control", "Accepting connection...");
        if daemon.sim.scenario.has("mps-no-credentials") {
            daemon.note("Control", "User did not send valid credentials");
        }
        daemon.note("Control", "NEW UI");
        daemon.note("Control", &format!("Cmd:{text}"));
    }
    let log = locked(shared).sim.folder.join("mps-commands.log");
    record(&log, text);
    let Reply { text, noted, ends_with } = commands::answer(shared, text);
    {
        let daemon = locked(shared);
        noted.iter().map(String::as_str).chain(text.lines()).for_each(|line| daemon.note("Control", line));
        if ends_with.is_none() {
            daemon.note("Control", "UI closed");
        }
    }
    if let Some(status) = ends_with {
        leave(shared, status);
    }
    let _ = stream.write_all(format!("{}\n{text}", ends_with.unwrap_or(0)).as_bytes());
    if let Some(status) = ends_with {
        let _ = stream.shutdown(std::net::Shutdown::Both);
        std::process::exit(status);
    }
}

/// Every command is written down for tests: `NANOSECONDS COMMAND`.
fn record(log: &std::path::Path, text: &str) {
    if let Ok(mut file) = File::options().create(true).append(true).open(log) {
        crate::sim::open_to_all(log);
        let _ = file.write_all(format!("{} {text}\n", crate::clock::now_ns()).as_bytes());
    }
}

/// A client, as long as its connection lasts.
fn client(shared: &Shared, stream: UnixStream, mut reader: BufReader<UnixStream>, pid: u32, uid: u32) {
    locked(shared).note("Control", "Accepting connection...");
    let answer = loop {
        let mut daemon = locked(shared);
        // One user's server at a time: others wait until its clients are gone.
        if daemon.servers.iter().any(|s| s.uid != uid && !s.clients.is_empty()) {
            drop(daemon);
            std::thread::sleep(LOOK);
            continue;
        }
        daemon.servers.retain(|s| s.uid == uid);
        break daemon.admit(&stream, pid, uid);
    };
    let said = match &answer {
        Ok(words) => (&stream).write_all(words.as_bytes()),
        Err(code) => (&stream).write_all(format!("refused {code}\n").as_bytes()),
    };
    if answer.is_err() || said.is_err() {
        return;
    }
    // It says nothing more; this returns when it is gone.
    let _ = reader.read_line(&mut String::new());
    let mut daemon = locked(shared);
    let journal = daemon.journal.clone();
    daemon.servers.iter_mut().for_each(|server| server.part(&journal, pid));
}

impl Daemon {
    pub fn note(&self, who: &str, message: &str) {
        self.journal.write(who, std::process::id(), message);
    }

    pub fn server(&mut self, pid: u32) -> Option<&mut Server> {
        self.servers.iter_mut().find(|s| s.pid() == pid)
    }

    /// The server of this user, started if need be.
    pub fn server_for(&mut self, uid: u32) -> Result<&mut Server, String> {
        self.servers.retain_mut(|s| s.runs());
        if let Some(at) = self.servers.iter().position(|s| s.uid == uid) {
            return Ok(&mut self.servers[at]);
        }
        self.sim.refresh();
        self.devices = self.still_there();
        let able = !self.devices.is_empty() && !self.sim.scenario.has("mps-no-server");
        let places = if able { self.devices.clone() } else { Vec::new() };
        let server = Server::start(&mut self.sim, &places, uid, self.percent, self.limits.clone())?;
        let (own, pid) = (std::process::id(), server.pid());
        self.journal.write("Control", self.dialect.starter(own, pid), &format!("Starting new server {pid} for user {uid}"));
        server.begin(&self.journal);
        self.note("Control", "Accepting connection...");
        if !able {
            server.begin_in_vain(&self.journal);
            self.note("Control", "Server encountered a fatal exception. Shutting down");
            self.note("Control", &format!("Server {pid} exited with status 1"));
            self.note("Control", "Removed Shm file at ");
            self.failed = true;
            return Err(NO_DEVICE.into());
        }
        server.begin_to_serve(&self.journal, self.dialect);
        self.note("Control", &format!("NEW SERVER {pid}: Ready"));
        self.servers.push(server);
        self.servers.last_mut().ok_or(NO_DEVICE.into())
    }

    /// The devices of the daemon that were not destroyed since.
    fn still_there(&self) -> Vec<Place> {
        let there = |p: &Place| places(&self.sim, Some(&p.uuid)).into_iter().next();
        self.devices.iter().filter_map(there).collect()
    }

    /// Clients of the server of a device. On an instance they are lowered "proportionally to the Compute Instance size" (MIG user guide,
    /// Deployment Considerations).
    fn most_clients(&self, device: &Place) -> usize {
        let slices = device.mig.and_then(|(gi, ci)| {
            let mut there = self.sim.state().cards[device.card].compute();
            there.find(|(g, c)| (g.id, c.id) == (gi, ci)).map(|(_, c)| c.slices)
        });
        let all = self.sim.cards[device.card].mig.as_ref().map(|grid| grid.compute_slices);
        match slices.zip(all) {
            Some((slices, all)) => (MOST_CLIENTS * slices as usize / all.max(1) as usize).max(1),
            None => MOST_CLIENTS,
        }
    }

    /// Take a client in: the line that it is told, or the code of CUDA that it gets.
    fn admit(&mut self, stream: &UnixStream, pid: u32, uid: u32) -> Result<String, u32> {
        let has = self.servers.iter().any(|s| s.uid == uid);
        let how = if has { "Server already exists" } else { "Server is not ready, push client to pending list" };
        self.note("Control", &format!("NEW CLIENT {pid} from user {uid}: {how}"));
        if self.leaving {
            return Err(805);
        }
        let devices: Vec<String> = self.devices.iter().map(|d| d.uuid.clone()).collect();
        let most = self.devices.first().map_or(MOST_CLIENTS, |device| self.most_clients(device));
        let (journal, dialect) = (self.journal.clone(), self.dialect);
        let Ok(server) = self.server_for(uid) else { return Err(805) };
        if server.failed {
            return Err(807);
        }
        if server.clients.len() >= most {
            return Err(808);
        }
        let copy = stream.try_clone().map_err(|_| 805_u32)?;
        server.meet(&journal, dialect, pid, copy);
        let limit =
            |device| server.limits.iter().find(|(at, _)| *at == device).map_or("none".into(), |(_, bytes)| bytes.to_string());
        let limits: Vec<String> = (0..devices.len()).map(limit).collect();
        Ok(format!("server {} {} {} {}\n", server.pid(), server.percent, limits.join(","), devices.join(",")))
    }
}

/// A limit for a device in a list of limits; absent text takes it away.
pub fn set_limit(limits: &mut Vec<(usize, u64)>, device: usize, text: &str) -> bool {
    let Some(bytes) = size_bytes(text) else { return false };
    limits.retain(|(at, _)| *at != device);
    limits.push((device, bytes));
    true
}

/// Seconds of `quit -t`.
pub fn timeout(words: &[&str]) -> Option<f64> {
    words.iter().position(|w| *w == "-t").and_then(|i| scenario::seconds(words.get(i + 1)?))
}
