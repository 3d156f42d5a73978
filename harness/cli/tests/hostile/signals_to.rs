//! Moments of a campaign that runs, waited for.

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
