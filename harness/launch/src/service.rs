//! A program that must run beside the members, or without any, and not outlive collo: an MPS daemon in the foreground, a load
//! that keeps a GPU busy. It has a supervisor of its own.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::supervised::Supervised;
use super::supervisor::{Orders, Output, Report};

/// Time limit for its supervisor to report whether it was started, which takes milliseconds on an idle machine.
const START: Duration = Duration::from_secs(10);

/// A running program; ended by its supervisor on drop.
pub struct Service {
    supervised: Supervised,
    pub pid: u32,
    /// What its supervisor has reported since, as far as it was read.
    reports: Vec<u8>,
}

/// How a service ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceEnd {
    /// `it exited with 1`.
    pub text: String,
    /// Nanoseconds of `CLOCK_MONOTONIC`; `None` if its supervisor did not say.
    pub at_ns: Option<u64>,
    /// Of it and of all its reaped descendants.
    pub cpu_time_s: Option<f64>,
    pub code: Option<i32>,
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
            channels: 0,
            asked_to_end: orders.asked_to_end,
            client_of: None,
        };
        let supervised = Supervised::start(&orders, None)?;
        let answer = first_line(&supervised.control, START)?;
        match serde_json::from_slice::<Report>(&answer) {
            Ok(Report::Started { pid, .. }) => Ok(Service { supervised, pid, reports: Vec::new() }),
            Ok(Report::NotStarted { reason, .. }) => Err(std::io::Error::other(reason)),
            _ => Err(std::io::Error::other("its supervisor ended before it reported a start")),
        }
    }

    /// `None` while it runs; afterwards, how it ended.
    pub fn ended(&mut self) -> Option<String> {
        self.end().map(|end| end.text)
    }

    /// The same in full.
    pub fn end(&mut self) -> Option<ServiceEnd> {
        self.supervised.control.set_nonblocking(true).ok()?;
        let is_over = self.hear();
        let _ = self.supervised.control.set_nonblocking(false);
        let said = String::from_utf8_lossy(&self.reports);
        let report = said.lines().find_map(|l| serde_json::from_str::<Report>(l).ok());
        let Some(Report::Ended { code, signal, at_ns, cpu_time_s, .. }) = report else {
            let gone = || ServiceEnd { text: "its supervisor is gone".into(), at_ns: None, cpu_time_s: None, code: None };
            return is_over.then(gone);
        };
        let text = match (code, signal) {
            (Some(code), _) => format!("it exited with {code}"),
            (None, Some(signal)) => format!("it was killed by signal {signal}"),
            (None, None) => "it ended".into(),
        };
        Some(ServiceEnd { text, at_ns: Some(at_ns), cpu_time_s: Some(cpu_time_s), code })
    }

    /// Read what its supervisor has reported; true if there will be no more.
    fn hear(&mut self) -> bool {
        let mut bytes = [0; 4096];
        loop {
            match (&self.supervised.control).read(&mut bytes) {
                Ok(0) => return true,
                Ok(n) => self.reports.extend_from_slice(&bytes[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            }
        }
    }

    /// Send a signal to it and to what it started in its group, as a terminal does with Ctrl-C.
    pub fn signal(&mut self, signal: Signal) {
        self.supervised.signal_below(signal);
    }

    /// The pid of its supervisor: the service is the tree below.
    pub fn supervisor(&self) -> u32 {
        self.supervised.pid()
    }

    /// End it by force, with everything below, and say how it ended; what is known of that is what its supervisor still could say.
    pub fn kill(mut self, patience: Duration) -> Option<ServiceEnd> {
        self.supervised.end(patience);
        self.end()
    }

    /// End it: its supervisor asks it to end if it is a daemon, and then kills what is left. If that takes longer than `patience`
    /// it is killed; then this returns false. In both cases nothing is left.
    pub fn stop(mut self, patience: Duration) -> bool {
        self.supervised.end(patience)
    }
}

/// The first line of a supervisor, without its end; less if there will be no more. Byte by byte: what follows may be the report of the
/// service's end, which is read later.
fn first_line(mut control: &UnixStream, limit: Duration) -> std::io::Result<Vec<u8>> {
    control.set_read_timeout(Some(limit))?;
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        match control.read(&mut byte) {
            Ok(1) if byte[0] != b'\n' => line.push(byte[0]),
            Ok(_) => return Ok(line),
            // A read with a time limit is not restarted after a signal: signal(7).
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let late = format!(
                    "its supervisor did not report within {} s whether it was started; the machine may be overloaded, or short of memory",
                    limit.as_secs_f64()
                );
                return Err(std::io::Error::new(ErrorKind::TimedOut, late));
            }
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_supervisor_that_reports_nothing_in_time_is_named_with_the_limit() {
        let (control, mut supervisor) = UnixStream::pair().expect("a pair");
        supervisor.write_all(b"torn").expect("written");
        let late = first_line(&control, Duration::from_millis(20)).expect_err("it is late");
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        assert!(late.to_string().starts_with("its supervisor did not report within 0.02 s whether it was started"), "{late}");
    }

    #[test]
    fn the_first_report_is_read_and_the_next_one_left() {
        let (control, mut supervisor) = UnixStream::pair().expect("a pair");
        supervisor.write_all(b"first\nsecond").expect("written");
        drop(supervisor);
        let line = || first_line(&control, START).expect("in time");
        assert_eq!([line(), line(), line()], [&b"first"[..], b"second", b""]);
    }
}
