//! The turn of a collo that waits until no other collo uses a GPU, or measures this CPU.
//!
//! In: what it will measure on. Out: a turn, once all of that is free. If several wait for the same, only one of them has the turn, so that
//! they begin one after the other. A turn is a name in the same table as the lock of a GPU, and ends with its process.

use std::io::ErrorKind;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use collo_plan::facts::Gpu;
use collo_text::Diagnostic;

use super::lock::{CpuNotice, LockHolder, bind, holder, taken};

/// The time between two looks.
const BETWEEN: Duration = Duration::from_secs(1);

/// The turns of all that a collo waited for; given up when dropped.
#[derive(Debug)]
pub struct Turn {
    _names: Vec<UnixListener>,
    /// Whether anything was in use at first.
    pub has_waited: bool,
}

/// What is waited for.
enum Awaited {
    Card { uuid: String, label: String },
    Cpu,
}

impl Awaited {
    fn turn_name(&self) -> String {
        match self {
            Awaited::Card { uuid, .. } => format!("turn-{uuid}"),
            Awaited::Cpu => "turn-cpu".into(),
        }
    }

    /// Who uses it, as far as visible from here.
    fn user(&self) -> Option<LockHolder> {
        match self {
            Awaited::Card { uuid, .. } => holder(uuid),
            Awaited::Cpu => CpuNotice::others().into_iter().next(),
        }
    }

    fn refused(&self, user: LockHolder) -> Diagnostic {
        match self {
            Awaited::Card { uuid, label } => taken(label, Some(user), uuid),
            Awaited::Cpu => Diagnostic::new(format!("another collo measures this CPU: {}", user.text()))
                .hint("without `--wait` both measure at once, and disturb each other")
                .of_machine(),
        }
    }
}

/// Wait until no other collo uses any of these GPUs, or measures this CPU if there are none, for at most so long. `busy` is called with
/// each collo that is waited for; an error of `go_on` ends the waiting.
pub fn wait(
    gpus: &[Gpu],
    at_most: Duration,
    busy: &mut dyn FnMut(&str),
    go_on: &dyn Fn() -> Result<(), Diagnostic>,
) -> Result<Turn, Diagnostic> {
    let cards = gpus.iter().filter_map(|gpu| Some(Awaited::Card { uuid: gpu.at.as_ref()?.uuid.clone(), label: gpu.label() }));
    let mut awaited: Vec<Awaited> = cards.collect();
    if gpus.is_empty() {
        awaited.push(Awaited::Cpu);
    }
    wait_for(awaited, at_most, busy, go_on)
}

fn wait_for(
    mut awaited: Vec<Awaited>,
    at_most: Duration,
    busy: &mut dyn FnMut(&str),
    go_on: &dyn Fn() -> Result<(), Diagnostic>,
) -> Result<Turn, Diagnostic> {
    // All in one order: otherwise each of two could have the turn that the other waits for.
    awaited.sort_by_key(Awaited::turn_name);
    let begun = Instant::now();
    let mut turn = Turn { _names: Vec::new(), has_waited: false };
    for one in &awaited {
        let mut own = None;
        let mut named = String::new();
        loop {
            if own.is_none() {
                own = match bind(&one.turn_name()) {
                    Err(e) if e.kind() == ErrorKind::AddrInUse => None,
                    bound => Some(
                        bound
                            .map_err(|e| Diagnostic::new("`--wait` cannot take a turn").caused_by(e.to_string()).of_machine())?,
                    ),
                };
            }
            let user = match &own {
                Some(_) => one.user(),
                None => Some(holder(&one.turn_name()).unwrap_or_default()),
            };
            let Some(user) = user else { break };
            turn.has_waited = true;
            if begun.elapsed() >= at_most {
                return Err(one.refused(user));
            }
            // After many questions its socket names no process.
            if user.pid.is_some() && user.text() != named {
                named = user.text();
                busy(&named);
            }
            std::thread::sleep(BETWEEN.min(at_most.saturating_sub(begun.elapsed())));
            go_on()?;
        }
        turn._names.extend(own);
    }
    Ok(turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uuid(name: &str) -> String {
        format!("GPU-{name}-{}", std::process::id())
    }

    fn card(name: &str) -> Vec<Awaited> {
        vec![Awaited::Card { uuid: uuid(name), label: "GPU 0".into() }]
    }

    fn take(name: &str) -> Result<Turn, Diagnostic> {
        wait_for(card(name), Duration::ZERO, &mut |_| {}, &|| Ok(()))
    }

    #[test]
    fn a_free_card_is_not_waited_for_and_one_collo_has_the_turn() {
        let turn = take("turn").expect("it is free");
        assert!(!turn.has_waited);
        let refused = take("turn").expect_err("another has the turn");
        assert!(refused.what().contains("is in use by another collo: process "), "{}", refused.what());
        drop(turn);
        take("turn").expect("the turn is free again");
    }

    #[test]
    fn a_card_in_use_is_waited_for_until_it_is_free() {
        let mut user = Some(bind(&uuid("used")).expect("it is free"));
        let mut named = Vec::new();
        let mut busy = |who: &str| {
            named.push(who.to_string());
            user = None;
        };
        let turn = wait_for(card("used"), Duration::from_secs(60), &mut busy, &|| Ok(())).expect("it becomes free");
        assert!(turn.has_waited);
        assert!(named.len() == 1 && named[0].starts_with(&format!("process {}", std::process::id())), "{named:?}");
    }

    #[test]
    fn a_signal_ends_the_waiting() {
        let _user = bind(&uuid("stopped")).expect("it is free");
        let stopped = wait_for(card("stopped"), Duration::from_secs(60), &mut |_| {}, &|| Err(Diagnostic::new("stopped")));
        assert_eq!(stopped.expect_err("a signal came").what(), "stopped");
    }
}
