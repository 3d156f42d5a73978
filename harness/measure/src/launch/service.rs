//! A program that must run beside the members, or without any, and not outlive collo: an MPS daemon in the foreground, a load
//! that keeps a GPU busy. It has a supervisor of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::time::Duration;

use super::supervised::Supervised;
use super::supervisor::{Orders, Output, Report};

/// A running program; ended by its supervisor on drop.
pub struct Service {
    supervised: Supervised,
    pub pid: u32,
}

/// What to run.
pub struct ServiceOrders {
    pub command: Vec<String>,
    /// Its working folder.
    pub folder: PathBuf,
    pub env: BTreeMap<String, Option<String>>,
    pub log: PathBuf,
    /// The pipe folder of an MPS daemon, which is asked to end its clients and itself before it is killed.
    pub asked_to_end: Option<PathBuf>,
}

impl Service {
    /// Start it; returns once it runs, or the reason why not.
    pub fn start(orders: ServiceOrders) -> std::io::Result<Service> {
        let orders = Orders {
            command: orders.command,
            folder: orders.folder,
            env: orders.env,
            output: Output::Log(orders.log),
            cores: None,
            memory_nodes: None,
            adapter: None,
            has_channel: false,
            asked_to_end: orders.asked_to_end,
            client_of: None,
        };
        let supervised = Supervised::start(&orders, None)?;
        supervised.control.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut answer = String::new();
        BufReader::new(&supervised.control).read_line(&mut answer)?;
        match serde_json::from_str::<Report>(&answer) {
            Ok(Report::Started { pid, .. }) => Ok(Service { supervised, pid }),
            Ok(Report::NotStarted { reason }) => Err(std::io::Error::other(reason)),
            _ => Err(std::io::Error::other("its supervisor sent nothing")),
        }
    }

    /// `None` while it runs; afterwards, how it ended.
    pub fn ended(&mut self) -> Option<String> {
        let control = &mut self.supervised.control;
        control.set_nonblocking(true).ok()?;
        let mut bytes = [0; 4096];
        let read = control.read(&mut bytes);
        let _ = control.set_nonblocking(false);
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

    /// End it: its supervisor asks it to end if it is a daemon, and then kills what is left. If that takes longer than `patience`
    /// it is killed; then this returns false. In both cases nothing is left.
    pub fn stop(mut self, patience: Duration) -> bool {
        self.supervised.end(patience)
    }
}
