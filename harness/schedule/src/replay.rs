//! The same in, the same out: what a run did, from what happened in it.

use collo_text::Diagnostic;

use crate::decided::Decided;
use crate::event::{Act, Happened};
use crate::ledger::Ledger;
use crate::rules::Rules;

/// What was replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// Each act with the time of the event that it came of.
    pub acts: Vec<(u64, Act)>,
    pub decided: Vec<Decided>,
}

/// Everything that a fresh ledger does under these rules when this happens, each at its time, as `Ledger::on` was told it.
///
/// # Errors
/// Rules that no ledger can be opened with, and an event before the one that it follows.
pub fn replay(rules: &Rules, events: impl IntoIterator<Item = (u64, Happened)>) -> Result<Replayed, Diagnostic> {
    let mut ledger = Ledger::open(rules)?;
    let (mut acts, mut done, mut last_ns) = (Vec::new(), Vec::new(), 0);
    for (now_ns, what) in events {
        if now_ns < last_ns {
            let wrong = format!("an event at {now_ns} ns follows one at {last_ns} ns");
            return Err(Diagnostic::new(wrong).hint("the record of this run is damaged"));
        }
        last_ns = now_ns;
        ledger.on(what, now_ns, &mut acts);
        done.extend(acts.drain(..).map(|act| (now_ns, act)));
    }
    Ok(Replayed { acts: done, decided: ledger.take_decided() })
}
