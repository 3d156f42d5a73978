//! The smallest member: this binary, executed again, which speaks the protocol and sleeps. It starts in a few milliseconds, where an
//! interpreter would need the cores on which other members start.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use collo_store::monotonic_ns;
use fs_err as fs;
use serde_json::{Value as Json, json};

/// The hidden first argument that makes this binary a member.
const VERB: &str = "__nap";
/// Its workload's name.
pub const WORKLOAD: &str = "nap";

/// Write its workload into the folder of a project's workloads.
pub fn write_workload(workloads: &Path) -> Result<()> {
    let own = std::env::current_exe()?;
    let folder = workloads.join(WORKLOAD);
    fs::create_dir_all(&folder)?;
    let text = format!(
        "description = \"Sleeps for an epoch, without an interpreter\"\ncommand = [{:?}, {VERB:?}, \"{{seconds}}\"]\n\
         environment = \"system\"\n\n[settings]\nseconds = 1.0\n",
        own.to_string_lossy()
    );
    fs::write(folder.join("workload.toml"), text)?;
    Ok(())
}

/// If this process is such a member, sleep; call it at the beginning of `main`.
pub fn entry() -> Option<ExitCode> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() != Some(VERB) {
        return None;
    }
    let seconds = words.next().and_then(|word| word.parse().ok()).and_then(|s| Duration::try_from_secs_f64(s).ok());
    let channel = std::env::var("COLLO_FD").ok().and_then(|number| number.parse().ok()).map(|number| {
        // SAFETY: collo hands exactly this descriptor to this process, and nothing else here knows it.
        UnixStream::from(unsafe { OwnedFd::from_raw_fd(number) })
    });
    let slept = seconds.context("it takes a number of seconds").and_then(|seconds| nap(seconds, channel));
    Some(match slept {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// One epoch of sleep: as a member if there is a channel, by hand without one.
fn nap(seconds: Duration, channel: Option<UnixStream>) -> Result<()> {
    let Some(channel) = channel else {
        std::thread::sleep(seconds);
        return Ok(());
    };
    let say = |message: Json| (&channel).write_all(format!("{message}\n").as_bytes());
    let mut orders = BufReader::new(&channel).lines();
    let mut awaits = |command: &str| -> Result<()> {
        let line = orders.next().with_context(|| format!("nobody said `{command}`"))??;
        let said: Json = serde_json::from_str(&line)?;
        ensure!(said["command"] == command, "`{command}` was to come, not {line}");
        Ok(())
    };
    let pid = std::process::id();
    say(json!({"event": "hello", "protocol": 1, "pid": pid, "versions": {}, "device": "cpu", "sm_count": null, "threads": 1}))?;
    awaits("warm_up")?;
    say(json!({"event": "ready"}))?;
    awaits("go")?;
    let start_ns = monotonic_ns();
    std::thread::sleep(seconds);
    let end_ns = monotonic_ns();
    say(json!({
        "event": "epoch", "index": 0, "measured": true, "items": 1, "start_ns": start_ns, "end_ns": end_ns, "loss": null
    }))?;
    say(json!({"event": "done"}))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_a_member_says_and_waits_to_be_told() {
        let (own, its) = UnixStream::pair().unwrap();
        let member = std::thread::spawn(move || nap(Duration::from_millis(1), Some(its)));
        let mut heard = BufReader::new(&own).lines();
        let mut event = || serde_json::from_str::<Json>(&heard.next().unwrap().unwrap()).unwrap()["event"].clone();
        assert_eq!(event(), "hello");
        (&own).write_all(b"{\"command\":\"warm_up\"}\n").unwrap();
        assert_eq!(event(), "ready");
        (&own).write_all(b"{\"command\":\"go\",\"epochs\":1,\"after_measured\":\"exit\"}\n").unwrap();
        assert_eq!((event(), event()), ("epoch".into(), "done".into()));
        member.join().unwrap().unwrap();
        let (own, its) = UnixStream::pair().unwrap();
        (&own).write_all(b"{\"command\":\"stop\"}\n").unwrap();
        let error = nap(Duration::ZERO, Some(its)).unwrap_err().to_string();
        assert_eq!(error, r#"`warm_up` was to come, not {"command":"stop"}"#);
    }
}
