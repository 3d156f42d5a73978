//! A server of MPS: a process that holds the card for its clients, and what the daemon knows of it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::sys::prctl;

use super::SERVER;
use super::dialect::Dialect;
use super::journal::Journal;
use crate::clock;
use crate::log::{Arrival, Event};
use crate::sim::Sim;
use crate::visible::Place;

/// The hidden argument that makes the program a server.
pub const ROLE: &str = "__server";
/// Why a server cannot start where CUDA finds no device, in CUDA's words.
pub const NO_DEVICE: &str = "no CUDA-capable device is detected";
const CONTEXT_BYTES: u64 = 30 << 20;

/// A running server; it ends when this is dropped.
pub struct Server {
    process: Child,
    pub uid: u32,
    /// It had a fatal fault, and not all of its clients are gone.
    pub failed: bool,
    pub percent: f64,
    pub limits: Vec<(usize, u64)>,
    pub clients: Vec<ServedClient>,
    /// The names of its devices.
    devices: Vec<String>,
    met: u32,
}

/// A client of a server.
pub struct ServedClient {
    pub pid: u32,
    /// Its number at this server.
    pub id: u32,
    stream: UnixStream,
}

/// Be a server: hold the name, and wait for the daemon's end, which closes the input.
pub fn main() {
    let _ = prctl::set_name(c"nvidia-cuda-mps-server");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

impl Server {
    /// A server on all devices of its daemon.
    pub fn start(sim: &mut Sim, places: &[Place], uid: u32, percent: f64, limits: Vec<(usize, u64)>) -> Result<Server, String> {
        let failed = |e: std::io::Error| format!("MPS server failed to start: {e}");
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg0(SERVER).arg(ROLE).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(failed)?;
        let born = clock::born(process.id()).unwrap_or(0);
        let arrival = |place: &Place| Arrival {
            born,
            card: place.card,
            gi: place.mig.map(|(gi, _)| gi),
            ci: place.mig.map(|(_, ci)| ci),
            sms: place.sm_share,
            memory: place.memory_share,
            server: None,
            lock: None,
            serves: true,
            bytes: CONTEXT_BYTES,
            u: 0.0,
            a: 0.0,
            m: 0.0,
            pcie: 0.0,
            occupancy: None,
            cap: None,
            pace: 1.0,
        };
        let pid = process.id();
        let devices = places.iter().map(|place| sim.cards[place.card].name.clone()).collect();
        let server = Server { process, uid, failed: false, percent, limits, clients: Vec::new(), devices, met: 0 };
        sim.append(|_| places.iter().map(|place| (pid, Event::Start(arrival(place)))).collect())?;
        Ok(server)
    }

    /// What every server logs first.
    pub fn begin(&self, journal: &Journal) {
        let own = self.pid();
        journal.write("Other", own, "Startup");
        journal.write("Other", own, &format!("Connecting to control daemon on socket: {}", super::socket().display()));
        journal.write("Other", own, "Initializing server process");
    }

    /// What it logs where CUDA finds no device.
    pub fn begin_in_vain(&self, journal: &Journal) {
        journal.write("Other", self.pid(), &format!("Driver initialization failed with: {NO_DEVICE}"));
        journal.write("Other", self.pid(), &format!("Failed to start : {NO_DEVICE}"));
    }

    /// What it logs once it serves: its devices and the limits of its clients (bottlerocket-os/bottlerocket-kernel-kit #415; format strings
    /// of libcuda 535.309.01, 550.163.01 and 555.58.02).
    pub fn begin_to_serve(&self, journal: &Journal, dialect: Dialect) {
        let own = self.pid();
        let write = |message: &str| journal.write("Server", own, message);
        for (device, name) in self.devices.iter().enumerate() {
            write(&format!("Creating server context on device {device} ({name})"));
        }
        dialect.versions().iter().for_each(|line| write(line));
        write(&format!("Active Threads Percentage set to {:.1}", self.percent));
        for (device, bytes) in &self.limits {
            write(&format!("Device pinned memory limit for device {device} set to {bytes:#x} bytes"));
        }
        write("Server Priority set to 0");
        write("Server has started");
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn runs(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    pub fn status(&self) -> &'static str {
        if self.failed { "FAULT" } else { "ACTIVE" }
    }

    pub fn meet(&mut self, journal: &Journal, dialect: Dialect, pid: u32, stream: UnixStream) {
        self.met += 1;
        let own = self.pid();
        dialect.connected(pid, self.met).iter().for_each(|line| journal.write("Server", own, line));
        self.clients.push(ServedClient { pid, id: self.met, stream });
    }

    pub fn part(&mut self, journal: &Journal, pid: u32) {
        let Some(at) = self.clients.iter().position(|c| c.pid == pid) else { return };
        let client = self.clients.remove(at);
        let own = self.pid();
        journal.write("Server", own, "Client process disconnected");
        journal.write("Server", own, &format!("Client {{{pid}, {}}} exit", client.id));
        journal.write("Server", own, &format!("Client {pid} disconnected"));
        if self.failed && self.clients.is_empty() {
            self.failed = false;
            for (device, name) in self.devices.iter().enumerate() {
                journal.write("Server", own, &format!("Destroy server context on device {device}"));
                journal.write("Server", own, &format!("Creating server context on device {device} ({name})"));
            }
        }
    }

    /// A fatal fault, of the first client: every client dies of it. The lines are those of NVIDIA's guide to MPS ("MPS Error Containment")
    /// in the words of libcuda 535 and later.
    pub fn fail(&mut self, journal: &Journal) {
        let own = self.pid();
        let write = |message: &str| journal.write("Server", own, message);
        if let Some(client) = self.clients.first() {
            write(&format!("Client process {} encountered a fatal GPU error.", client.pid));
        }
        write("Server is handling a fatal GPU error.");
        for client in &self.clients {
            write(&format!("Status of client {{{}, {}}} is INACTIVE", client.pid, client.id));
        }
        write("The following devices will be reset:");
        (0..self.devices.len()).for_each(|device| write(&device.to_string()));
        write("The following clients have a sticky error set:");
        for client in &self.clients {
            write(&client.pid.to_string());
        }
        self.failed = !self.clients.is_empty();
        self.tell("fault\n");
    }

    /// End one client, or say that there is none.
    pub fn terminate(&self, pid: u32) -> bool {
        let Some(client) = self.clients.iter().find(|c| c.pid == pid) else { return false };
        (&client.stream).write_all(b"terminate\n").is_ok()
    }

    pub fn terminate_all(&self) {
        self.tell("terminate\n");
    }

    fn tell(&self, word: &str) {
        for client in &self.clients {
            let _ = (&client.stream).write_all(word.as_bytes());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
