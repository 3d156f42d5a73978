//! One process instead of several: compares groups whose members are threads of one process with the same members in processes of
//! their own.

use super::{
    Agreement, Evidence, Guideline, Held, Holds, advantage, command, held, how_many, matched, never_below, on_a_card, together,
    worded,
};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::quantity::Key;
use crate::stats::{Quantity, RatioVerdict};

/// The mode in which threads take turns with Python's lock; its variant has none.
const WITH_LOCK: &str = "threads";
const WITHOUT_LOCK: &str = "threads:no-lock";

/// What holds of it whatever its speed.
const CAVEATS: &str = "A crash ends all members at once; they share one random number generator and torch's settings; memory is \
                       told for the group only.";

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let hosted = analysis.groups().filter(|c| c.record.mode.one_process && c.record.degree > 1 && !c.serves());
    let mut modes: Vec<&str> = hosted.map(|c| c.record.sharing.as_str()).collect();
    modes.sort_unstable();
    modes.dedup();
    if modes.is_empty() {
        return None;
    }
    let against = |other: &str| -> Vec<Held> {
        let pairs = modes.iter().flat_map(|mode| matched(analysis, mode, other)).collect();
        held(analysis, pairs, advantage)
    };
    let (naive, mps) = (against("naive"), against("mps"));
    let all = || naive.iter().chain(&mps);
    let number_of = |said: RatioVerdict| how_many(&naive, said) + how_many(&mps, said);
    let (ahead, behind) = (number_of(RatioVerdict::Better), number_of(RatioVerdict::Worse));
    let pairs = naive.len() + mps.len();
    let holds = match (ahead, behind) {
        (_, 1..) => Holds::No,
        (1.., 0) if never_below(analysis, all()) => Holds::Yes,
        _ if pairs > 0 && number_of(RatioVerdict::Same) == pairs => Holds::No,
        _ => Holds::Open,
    };
    let by_ratio = |a: &&Held, b: &&Held| a.ratio.estimate.total_cmp(&b.ratio.estimate);
    let key = match behind {
        0 => all().max_by(by_ratio),
        _ => all().filter(|h| h.said == RatioVerdict::Worse).min_by(by_ratio),
    };
    let finding = match key {
        None => "No valid group was measured both as threads of one process and as processes, with an interval.".to_string(),
        Some(h) => {
            let ratio = number::with_interval(&h.ratio);
            let mut said = format!("`{}` does {ratio} times the work of `{}` per second", h.left.name(), h.right.name());
            said += &memory(h.left, h.right)
                .map_or_else(String::new, |q| format!(", in {} times the memory", number::with_interval(&q)));
            format!("{said}.{}", lock(analysis, &naive).unwrap_or_default())
        }
    };
    let (statement, finding) = worded(
        holds,
        "Is one process better than several?",
        "Run members as threads of one process.",
        "keep a process for each member.",
        finding,
    );
    Some(Guideline {
        id: "one-process",
        statement,
        finding: format!("{finding} {CAVEATS}"),
        agrees: Agreement::NotStudied,
        key: key.map(|h| Evidence::between(h.left, h.right, Key::ThroughputGain, h.ratio.clone())),
        tested: format!(
            "work per second as threads of one process ÷ as processes, naive or under MPS, same members: never below 1 by more than \
             {}, and above it somewhere; Holm-corrected over the groups of each mode",
            number::percent(analysis.campaign.thresholds.relevant_ratio)
        ),
        holds,
        evidence: all().map(|h| Evidence::between(h.left, h.right, Key::ThroughputGain, h.ratio.clone())).collect(),
        published: None,
        command: (holds == Holds::Open && pairs > 0).then(|| command(analysis)).flatten(),
        summary: false,
    })
}

/// The memory of one process ÷ that of several, if both were read in one way.
fn memory(threads: &Cell, processes: &Cell) -> Option<Quantity> {
    let comparable = threads.memory_kind == processes.memory_kind && together(threads, processes);
    threads.get(Key::Memory).filter(|_| comparable)?.over(processes.get(Key::Memory)?)
}

/// On a CPU, where members compute instead of waiting for a card: how many times as long an epoch takes with Python's lock, against
/// processes, each with a lock of its own, and against threads without one.
fn lock(analysis: &Analysis, naive: &[Held]) -> Option<String> {
    if on_a_card(analysis) {
        return None;
    }
    let with_lock = naive.iter().filter(|h| h.left.record.sharing == WITH_LOCK);
    let longest = with_lock.filter_map(|h| Some((h, epochs(h.left, h.right)?)));
    let (h, q) = longest.max_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate))?;
    let unlocked = matched(analysis, WITH_LOCK, WITHOUT_LOCK).into_iter().find(|m| m.left.name() == h.left.name());
    let alone = unlocked.and_then(|m| epochs(m.left, m.right)).map_or_else(
        || " What of that is the lock's is not known: no free-threaded Python was measured.".to_string(),
        |q| format!(" The lock alone makes it {} times as long.", number::with_interval(&q)),
    );
    Some(format!(
        " With Python's lock, and all else that a process has once, an epoch of `{}` takes {} times as long.{alone}",
        h.left.name(),
        number::with_interval(&q)
    ))
}

/// The epoch time of one ÷ that of the other, both of equal members.
fn epochs(one: &Cell, other: &Cell) -> Option<Quantity> {
    one.get(Key::EpochTime).filter(|_| together(one, other))?.over(other.get(Key::EpochTime)?)
}
