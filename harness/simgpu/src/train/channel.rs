//! The member's side of the channel: JSON lines both ways.
//!
//! In: `COLLO_FD` or `COLLO_SOCKET`. Out: [`Channel`], with the commands that come in on a thread of their own.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use serde_json::{Value, json};

/// The stream at a descriptor that the harness has handed to this process.
fn inherited(number: i32) -> nix::Result<UnixStream> {
    // SAFETY: the harness hands exactly this descriptor to this process, and nothing else here knows it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl(&descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    Ok(UnixStream::from(descriptor))
}

/// The channel, or none: by hand.
pub struct Channel {
    stream: Option<UnixStream>,
    commands: Receiver<Value>,
    stopped: Arc<AtomicBool>,
}

impl Channel {
    /// That of this process, which is a member.
    pub fn join() -> Result<Channel, String> {
        let stream = match (std::env::var("COLLO_FD"), std::env::var("COLLO_SOCKET")) {
            (Ok(number), _) if !number.is_empty() => {
                let number: i32 = number.parse().map_err(|_| format!("nobody at `COLLO_FD={number}`"))?;
                Some(inherited(number).map_err(|e| format!("nobody at `COLLO_FD={number}`: {e}"))?)
            }
            (_, Ok(path)) if !path.is_empty() => {
                Some(UnixStream::connect(&path).map_err(|e| format!("nobody at `COLLO_SOCKET={path}`: {e}"))?)
            }
            _ => None,
        };
        Channel::of(stream)
    }

    /// That of one member of this process, at the descriptor that its orders name.
    pub fn at(number: i32) -> Result<Channel, String> {
        Channel::of(Some(inherited(number).map_err(|e| format!("nobody at descriptor {number}: {e}"))?))
    }

    fn of(stream: Option<UnixStream>) -> Result<Channel, String> {
        let stopped = Arc::new(AtomicBool::new(false));
        let (send, commands) = channel();
        if let Some(stream) = &stream {
            let reader = BufReader::new(stream.try_clone().map_err(|e| e.to_string())?);
            let stopped = stopped.clone();
            std::thread::spawn(move || {
                for line in reader.lines().map_while(Result::ok) {
                    let Ok(message) = serde_json::from_str::<Value>(&line) else { break };
                    if message["command"] == "stop" || send.send(message).is_err() {
                        break;
                    }
                }
                stopped.store(true, Ordering::Release);
            });
        }
        Ok(Channel { stream, commands, stopped })
    }

    pub fn by_hand(&self) -> bool {
        self.stream.is_none()
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Say something; nobody there any more means stop.
    pub fn say(&self, event: &str, fields: Value) {
        let mut message = json!({ "event": event });
        if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
            message.extend(fields);
        }
        if let Some(mut stream) = self.stream.as_ref()
            && stream.write_all(format!("{message}\n").as_bytes()).is_err()
        {
            self.stopped.store(true, Ordering::Release);
        }
    }

    /// The last word of a member that is a thread: how it left, and why if it never was one.
    pub fn leave(self, how: Value, why: Option<&str>) {
        if let Some(why) = why {
            self.say("error", json!({ "kind": "other", "message": why }));
        }
        self.say("left", how);
        // Its reader has a copy of the descriptor, so dropping this one would end nothing.
        if let Some(stream) = &self.stream {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// A command that has come, waiting for at most so long.
    pub fn command(&self, wait: Duration) -> Option<Value> {
        match self.commands.recv_timeout(wait) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(wait.min(Duration::from_millis(5)));
                None
            }
        }
    }
}
