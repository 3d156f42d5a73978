//! The evidence for those on a card: gathered when a member is ready and when company changes, and again if company changed meanwhile.

use std::sync::Arc;
use std::time::Duration;

use collo_store::{Attestation, AttestationVerdict};
use tokio::sync::mpsc::UnboundedSender;

use crate::stage::{InForce, StagedCard, attest_beside};

/// Evidence of a card being gathered.
#[derive(Debug, Default, Clone)]
pub struct Gathering {
    /// Members that it is about, by their places in the evidence; empty if none is being gathered.
    pub own: Vec<usize>,
    /// Whoever else may be on the lists of its GPU.
    pub besides: Vec<usize>,
    pub runs: bool,
    pub began_ns: u64,
    /// How often company had changed when it began.
    pub company: u64,
    /// It is to be gathered once more.
    pub again: bool,
    /// How often in a row it has failed.
    pub tries: u32,
    /// Attempts that left the card idle, which is one of their further ones, when it was gathered before.
    pub idle_before: Vec<usize>,
}

/// What a card's evidence brings.
pub enum Evidence {
    Found(Found),
    /// Gather it once more.
    Again(usize),
}

/// What was found of a card.
pub struct Found {
    pub card: usize,
    /// `None` if there is nobody to be attested.
    pub attestation: Option<Attestation>,
    /// By member besides: whether it computes here.
    pub besides: Vec<Option<bool>>,
}

/// So often evidence may fail in a row while company changes; then it counts as absent.
const MOST_TRIES: u32 = 44;
/// So often it may fail in a row although nobody is known to have come or gone: who has just ended is gone from the lists before it is
/// known to have ended. With the pauses between, half a second.
const MOST_UNCHANGED: u32 = 9;
/// The first pause before it is gathered again, and the longest: whoever is ready waits for it, and who ended is mostly known to have in a
/// few milliseconds.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Whether evidence that failed so often in a row may be gathered again.
pub fn may_try_again(tries: u32, changed: bool) -> bool {
    tries < if changed { MOST_TRIES } else { MOST_UNCHANGED }
}

/// The pause after so many failures in a row.
fn pause(tries: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << tries.min(10)).min(LONGEST_PAUSE)
}

/// Gather once more, after a pause, what has failed so often in a row before.
pub fn again(card: usize, tries: u32, found: &UnboundedSender<Evidence>) {
    let found = found.clone();
    tokio::spawn(async move {
        tokio::time::sleep(pause(tries)).await;
        // Whoever waited for it may be gone.
        let _ = found.send(Evidence::Again(card));
    });
}

/// Gather on a thread of its own; drivers and daemons take their time. Without a thread nothing is found, which is said. `besides` have the
/// devices of their main cards.
pub fn gather(
    card: usize,
    staged: Option<Arc<StagedCard>>,
    own: Vec<InForce>,
    besides: Vec<(InForce, Option<String>)>,
    found: &UnboundedSender<Evidence>,
) {
    let (found, failed) = (found.clone(), found.clone());
    let count = besides.len();
    let begun = std::thread::Builder::new().name("evidence".into()).spawn(move || {
        let (attestation, besides) = attest_beside(staged.as_deref(), &own, &besides);
        let _ = found.send(Evidence::Found(Found { card, attestation, besides }));
    });
    if let Err(e) = begun {
        let attestation = Some(Attestation::absent(format!("no thread can be started to gather evidence: {e}")));
        let _ = failed.send(Evidence::Found(Found { card, attestation, besides: vec![None; count] }));
    }
}

/// True if it is evidence, if only by counts.
pub fn holds(attestation: &Attestation) -> bool {
    attestation.verdict != AttestationVerdict::Absent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_for_evidence_waits_milliseconds_at_first_and_half_a_second_in_all() {
        assert_eq!([0, 1, 2].map(pause), [5, 10, 20].map(Duration::from_millis));
        assert_eq!(pause(MOST_TRIES), LONGEST_PAUSE);
        let all: Duration = (0..).take_while(|tries| may_try_again(*tries, false)).map(pause).sum();
        assert!((Duration::from_millis(500)..Duration::from_millis(600)).contains(&all), "{all:?}");
    }
}
