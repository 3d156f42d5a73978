//! A CUDA process that asks the MPS daemon for its server.
//!
//! In: the pipe directory. Out: a [`Client`], none where no daemon answers: CUDA then runs without MPS and says nothing. The connection
//! stays open as long as the client lives, so the daemon knows who is there; on it the daemon also tells what ends a client.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::{fits, socket};

/// The server of this client.
#[derive(Debug)]
pub struct Client {
    pub server: u32,
    /// The devices that the daemon has, by UUID.
    pub devices: Vec<String>,
    /// Percent of the threads that the server leaves to its clients.
    pub percent: f64,
    /// By device: bytes of pinned device memory that it leaves to them.
    pub limits_bytes: Vec<Option<u64>>,
    fate: Arc<AtomicU8>,
}

/// What ended a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// A fatal fault on its server.
    Fault,
    /// `terminate_client`.
    Terminated,
    /// The daemon is gone.
    Left,
}

/// What the daemon said to the one who asked.
#[derive(Debug)]
pub enum Answer {
    Served(Client),
    /// No daemon: without MPS.
    Nobody,
    /// With the code of CUDA.
    Refused(u32),
}

/// Ask for a server.
pub fn attach() -> Answer {
    if !fits() {
        return Answer::Nobody;
    }
    let Ok(mut stream) = UnixStream::connect(socket()) else { return Answer::Nobody };
    let asked = format!("client {} {}\n", std::process::id(), nix::unistd::getuid());
    let mut line = String::new();
    let Ok(copy) = stream.try_clone() else { return Answer::Nobody };
    let mut reader = BufReader::new(copy);
    if stream.write_all(asked.as_bytes()).is_err() || reader.read_line(&mut line).is_err() {
        return Answer::Nobody;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["server", pid, percent, limits, devices] => {
            let fate = Arc::new(AtomicU8::new(0));
            watch(reader, stream, fate.clone());
            Answer::Served(Client {
                server: pid.parse().unwrap_or(0),
                devices: devices.split(',').map(str::to_string).collect(),
                percent: percent.parse().unwrap_or(100.0),
                limits_bytes: limits.split(',').map(|limit| limit.parse().ok()).collect(),
                fate,
            })
        }
        ["refused", code] => Answer::Refused(code.parse().unwrap_or(805)),
        _ => Answer::Refused(805),
    }
}

fn watch(mut reader: BufReader<UnixStream>, stream: UnixStream, fate: Arc<AtomicU8>) {
    std::thread::spawn(move || {
        let _open = stream;
        let mut line = String::new();
        let said = reader.read_line(&mut line);
        let word = if said.is_ok() { line.trim() } else { "" };
        let number = match word {
            "fault" => 1,
            "terminate" => 2,
            _ => 3,
        };
        fate.store(number, Ordering::Release);
        // Held until the process ends, because the end of the connection is the end of the client.
        loop {
            std::thread::park();
        }
    });
}

impl Client {
    /// The limit of memory on the device with this UUID.
    pub fn limit_bytes(&self, uuid: &str) -> Option<u64> {
        let device = self.devices.iter().position(|device| device == uuid)?;
        self.limits_bytes.get(device).copied().flatten()
    }

    /// What ended this client, if anything did.
    pub fn fate(&self) -> Option<Fate> {
        match self.fate.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Fate::Fault),
            2 => Some(Fate::Terminated),
            _ => Some(Fate::Left),
        }
    }
}
