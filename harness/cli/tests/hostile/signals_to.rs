//! Moments of a campaign that runs and of a plan that is made, waited for.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::hostile::case::{Check, hold};
use crate::hostile::scene::{Live, Scene};

/// Wait until this is so; the command must not end before.
pub fn until(live: &mut Live, what: &str, mut is_so: impl FnMut() -> bool) -> Check {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        hold(!live.has_ended(), || format!("it ended before {what}:\n{}", live.to_text()))?;
        hold(Instant::now() < deadline, || format!("{what} did not come within 30 s"))?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// A flood makes the rest long.
fn beginning(file: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(file) {
        let _ = file.take(1 << 16).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Wait until a member of experiment `x` trains.
pub fn trains(scene: &Scene, live: &mut Live) -> Check {
    until(live, "a member trained", || {
        let drafts = scene.campaigns().first().and_then(|c| c.partials().ok()).unwrap_or_default();
        drafts.iter().any(|draft| beginning(&draft.join("events.jsonl")).contains("\"ready\""))
    })
}

/// Send it this once a member trains.
pub fn struck(signal: Signal) -> impl Fn(&Scene, &mut Live) -> Check + Send + Sync + 'static {
    move |scene, live| {
        trains(scene, live)?;
        live.signal(signal);
        Ok(())
    }
}

/// A file that is read before the plan is made, and whose length shows in what the process has read.
const LONG: usize = 900_000;

/// An experiment of ten thousand cells: its plan takes much longer than it takes to notice that its file was read.
pub fn long_to_plan() -> String {
    let degrees: Vec<String> = (1..=250).map(|degree| degree.to_string()).collect();
    let cells = format!("batch_size = [{}]\ndegree = [{}]\n", degrees[..40].join(", "), degrees.join(", "));
    format!("[axes]\nworkload = \"tiny\"\n{cells}{}", "# a long file\n".repeat(LONG / 14))
}

/// Whether a process has read such an experiment (proc(5), `rchar`).
pub fn has_read_it(pid: u32) -> bool {
    let read = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let bytes = read.lines().find_map(|line| line.strip_prefix("rchar: ")).and_then(|bytes| bytes.parse::<usize>().ok());
    bytes.is_some_and(|bytes| bytes >= LONG)
}
