//! Moments of a campaign that runs and of a plan that is made, waited for.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::hostile::case::{Check, hold};
use crate::hostile::scene::{Live, Scene, peak_kib_of};

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

/// Whether this stands in this file of a run of experiment `x` that is measured now.
fn is_in_a_draft(scene: &Scene, file: &str, text: &str) -> bool {
    let drafts = scene.campaigns().first().and_then(|c| c.partials().ok()).unwrap_or_default();
    drafts.iter().any(|draft| beginning(&draft.join(file)).contains(text))
}

/// Wait until a member of experiment `x` has sent this message of the protocol, and collo has read it.
pub fn was_heard(scene: &Scene, live: &mut Live, message: &str) -> Check {
    until(live, &format!("`{message}` was heard"), || is_in_a_draft(scene, "events.jsonl", &format!("\"{message}\"")))
}

/// Wait until a member of experiment `x` trains.
pub fn trains(scene: &Scene, live: &mut Live) -> Check {
    was_heard(scene, live, "ready")
}

/// Wait until the first member of experiment `x` has printed this.
pub fn logs(scene: &Scene, live: &mut Live, text: &str) -> Check {
    until(live, &format!("its member printed `{text}`"), || is_in_a_draft(scene, "member-0.log", text))
}

/// Stop it by SIGSTOP, and wait until it stands still (proc(5), `T (stopped)`).
pub fn stop(live: &mut Live) -> Check {
    live.signal(Signal::SIGSTOP);
    let stat = format!("/proc/{}/stat", live.pid());
    until(live, "it stood still", || {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
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

/// Memory that no file takes which it reads, and that its ten thousand cells exceed by far.
const CELLS_KIB: u64 = 150 << 10;

/// Whether a process makes the plan of such an experiment: it holds a part of the cells.
pub fn plans(pid: u32) -> bool {
    has_read_it(pid) && peak_kib_of(pid).is_some_and(|peak| peak >= CELLS_KIB)
}
