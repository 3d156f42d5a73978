//! One process whose threads are members, as `collo_host.py` is.
//!
//! In: `COLLO_HOST`, one line of JSON with the members, each with its options, its folder, its variables and the descriptor of its channel.
//! Out: each member trains in a thread of its own and says last of all how it left. The process ends when every member has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::json;

use super::channel::Channel;
use super::member::{self, Seat};
use super::options::Options;
use super::variables::Variables;
use crate::clock;
use crate::log::{Actor, Event};
use crate::scenario::Scenario;
use crate::sim::Sim;

/// The variable of the orders.
pub const ORDERS: &str = "COLLO_HOST";
/// What the host's script is called.
pub const SCRIPT: &str = "collo_host.py";
/// Streams that are made lie at such addresses; the default one is 0.
const FIRST_STREAM: u64 = 0x5581_4c00_a2c0;
const STREAM_BYTES: u64 = 0x70;

/// What the process is to do.
#[derive(Debug, Deserialize)]
struct Orders {
    lock: bool,
    members: Vec<Ordered>,
}

#[derive(Debug, Deserialize)]
struct Ordered {
    index: u32,
    arguments: Vec<String>,
    folder: PathBuf,
    fd: i32,
    env: BTreeMap<String, Option<String>>,
}

/// What a member that is a thread has in common with the others of its process.
#[derive(Debug)]
pub struct Hosted {
    /// With Python's lock.
    pub lock: bool,
    pub thread: u32,
    pub stream: u64,
    /// What broke the CUDA context of the process, for all of its threads.
    pub broken: Arc<OnceLock<String>>,
    /// Where it computes instead, if it is not in the process that it says it is in.
    elsewhere: Option<Elsewhere>,
}

/// A process that holds a context for somebody else, until that one leaves.
#[derive(Debug)]
struct Elsewhere(Child);

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // It reads until nobody writes.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

impl Hosted {
    /// Whose doing the driver says it is.
    pub fn actor(&self) -> Actor {
        let pid = self.elsewhere.as_ref().map_or(std::process::id(), |process| process.0.id());
        Actor { pid, thread: Some(self.thread) }
    }
}

/// Be the process.
pub fn main(orders: &str) -> ExitCode {
    let orders: Orders = match serde_json::from_str(orders) {
        Ok(orders) => orders,
        Err(why) => {
            eprintln!("error: `{ORDERS}` is not understood: {why}");
            return ExitCode::FAILURE;
        }
    };
    let broken = Arc::new(OnceLock::new());
    let lock = orders.lock;
    // All channels first: no process that a member starts is to have one.
    let joined: Vec<_> = orders.members.into_iter().map(|ordered| (Channel::at(ordered.fd), ordered)).collect();
    let start = |(channel, ordered): (Result<Channel, String>, Ordered)| {
        let broken = broken.clone();
        std::thread::spawn(move || run(ordered, channel, lock, broken))
    };
    let threads: Vec<_> = joined.into_iter().map(start).collect();
    let ended: Vec<_> = threads.into_iter().map(std::thread::JoinHandle::join).collect();
    let all_left = ended.iter().all(Result::is_ok);
    // The context goes with the process.
    if let Ok(mut sim) = Sim::open() {
        let _ = sim.append(|_| vec![(std::process::id(), Event::End)]);
    }
    if all_left { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(ordered: Ordered, channel: Result<Channel, String>, lock: bool, broken: Arc<OnceLock<String>>) {
    let Ordered { index, arguments, folder, env, .. } = ordered;
    let channel = match channel {
        Ok(channel) => channel,
        Err(why) => return eprintln!("error: member {index}: {why}"),
    };
    let hosted = match hosted(index, lock, broken) {
        Ok(hosted) => hosted,
        Err(why) => return channel.leave(json!({ "code": 1 }), Some(&why)),
    };
    let folder = folder.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let seat = Seat { folder, variables: Variables(env), hosted: Some(hosted) };
    let (code, channel) = member::train(seat, &Options::read(&arguments), channel);
    channel.leave(json!({ "code": code }), None);
}

/// A thread of this process with a stream of its own, unless the scenario has it otherwise.
fn hosted(index: u32, lock: bool, broken: Arc<OnceLock<String>>) -> Result<Hosted, String> {
    let scenario = Scenario::from_environment()?;
    let has = |word: &str| scenario.has(word) && scenario.means_member(word, Some(index));
    let stream = match () {
        () if has("default-stream") => 0,
        () if has("one-stream") => FIRST_STREAM,
        () => FIRST_STREAM + u64::from(index) * STREAM_BYTES,
    };
    let elsewhere = if has("two-processes") { Some(elsewhere()?) } else { None };
    Ok(Hosted { lock, thread: nix::unistd::gettid().as_raw() as u32, stream, broken, elsewhere })
}

/// `cat`, which lives as long as somebody may write to it.
fn elsewhere() -> Result<Elsewhere, String> {
    let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let child = child.map_err(|e| format!("a second process does not start: {e}"))?;
    // It is on a card from its first moment on, so it has to be there.
    clock::born(child.id()).ok_or("a second process ended at once")?;
    Ok(Elsewhere(child))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orders_of_the_harness_are_understood() {
        let line = r#"{"lock": true, "members": [{"index": 1, "script": "/w/vision/train.py", "arguments": ["--batch-size=32"],
            "folder": "/w/vision", "fd": 4, "env": {"COLLO_MEMBER": "1", "COLLO_COPY": null}}]}"#;
        let orders: Orders = serde_json::from_str(line).expect("orders");
        let member = &orders.members[0];
        assert!(orders.lock && (member.index, member.fd) == (1, 4));
        assert_eq!((member.env["COLLO_MEMBER"].as_deref(), member.env["COLLO_COPY"].as_deref()), (Some("1"), None));
    }
}
