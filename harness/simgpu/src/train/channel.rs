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

/// The channel, or none: by hand.
pub struct Channel {
    stream: Option<UnixStream>,
    commands: Receiver<Value>,
    stopped: Arc<AtomicBool>,
}

impl Channel {
    pub fn join() -> Result<Channel, String> {
        let stream = match (std::env::var("COLLO_FD"), std::env::var("COLLO_SOCKET")) {
            (Ok(number), _) if !number.is_empty() => {
                let number: i32 = number.parse().map_err(|_| format!("nobody at `COLLO_FD={number}`"))?;
                // SAFETY: the harness hands exactly this descriptor to this process, and nothing else here knows it.
                let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
                fcntl(&descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))
                    .map_err(|e| format!("nobody at `COLLO_FD={number}`: {e}"))?;
                Some(UnixStream::from(descriptor))
            }
            (_, Ok(path)) if !path.is_empty() => {
                Some(UnixStream::connect(&path).map_err(|e| format!("nobody at `COLLO_SOCKET={path}`: {e}"))?)
            }
            _ => None,
        };
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
