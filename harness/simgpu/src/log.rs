//! The log of activity: who came to a card, trained, rested, left. One JSON line each, appended under the folder's lock, never changed.
//!
//! In: records of processes that simulate. Out: the records, in the order of their time, to whoever asks again later: [`Reader`] reads
//! only what is new.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Something that happened at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub at_ns: u64,
    #[serde(flatten)]
    pub actor: Actor,
    pub event: Event,
}

/// Whose doing it is: that of a process, or of one thread of it that trains by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    pub pid: u32,
    /// None is the process: alone on its card, or with the context that its threads share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
}

impl From<u32> for Actor {
    fn from(pid: u32) -> Actor {
        Actor { pid, thread: None }
    }
}

impl Actor {
    /// The process that it is, or is of.
    pub fn process(self) -> Actor {
        self.pid.into()
    }
}

/// What happened to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It has a context on a card, or on a further one.
    Start(Arrival),
    /// It holds so much memory on that card from now on, all told.
    Memory {
        card: usize,
        bytes: u64,
    },
    /// It warms up, which loads the card but starts no clock of the scenario.
    Warm,
    Train,
    Idle,
    /// It is gone; with a process all of its threads are.
    End,
}

/// Who comes, and what it will load the card with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// With the pid, this is who it is.
    pub born: u64,
    pub card: usize,
    /// GPU instance and compute instance.
    pub gi: Option<u32>,
    pub ci: Option<u32>,
    /// Shares of the card of that instance.
    #[serde(default)]
    pub sms: f64,
    #[serde(default)]
    pub memory: f64,
    /// The MPS server it is a client of.
    pub server: Option<u32>,
    /// It is a thread of a process whose threads train, with Python's lock in force or without; none for a process.
    #[serde(default)]
    pub lock: Option<bool>,
    /// It is such a server.
    #[serde(default)]
    pub serves: bool,
    pub bytes: u64,
    #[serde(default)]
    pub u: f64,
    #[serde(default)]
    pub a: f64,
    #[serde(default)]
    pub m: f64,
    #[serde(default)]
    pub pcie: f64,
    #[serde(default)]
    pub occupancy: Option<f64>,
    pub cap: Option<f64>,
    #[serde(default)]
    pub pace: f64,
}

/// Append records; the caller holds the lock.
pub fn append(path: &Path, records: &[Record]) -> std::io::Result<()> {
    let mut text = String::new();
    for record in records {
        text.push_str(&serde_json::to_string(record).map_err(std::io::Error::other)?);
        text.push('\n');
    }
    let mut file = File::options().create(true).append(true).open(path)?;
    crate::sim::open_to_all(path);
    file.write_all(text.as_bytes())
}

/// Reads the log on from where it was.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    /// Which file, and how much of it was read.
    inode: u64,
    offset: u64,
}

/// What is new.
pub enum News {
    Nothing,
    More(Vec<Record>),
    /// The log was begun anew: all there is.
    Anew(Vec<Record>),
}

impl Reader {
    pub fn new(path: PathBuf) -> Reader {
        Reader { path, inode: 0, offset: 0 }
    }

    pub fn read(&mut self) -> News {
        let Ok(meta) = std::fs::metadata(&self.path) else { return News::Nothing };
        if meta.ino() == self.inode && meta.len() == self.offset {
            return News::Nothing;
        }
        let anew = meta.ino() != self.inode || meta.len() < self.offset;
        if anew {
            self.inode = meta.ino();
            self.offset = 0;
        }
        let mut text = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.offset))?;
            file.read_to_end(&mut text)
        });
        if read.is_err() {
            return News::Nothing;
        }
        let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        self.offset += whole as u64;
        let lines = text[..whole].split(|b| *b == b'\n').filter(|l| !l.is_empty());
        let records = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        if anew { News::Anew(records) } else { News::More(records) }
    }
}
