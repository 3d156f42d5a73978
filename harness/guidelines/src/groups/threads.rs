//! One process instead of several: compares groups whose members are threads of one process with the same members in processes of
//! their own.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::stats::{Quantity, RatioVerdict};
use collo_quantity::{Key, number};

use crate::rule::pairs::{Pair, Pairs, corrected_together, matched, together};
use crate::rule::{Claim, Guideline, decide, nothing, on_a_card};
use crate::verdict::{Agreement, Holds};

/// The mode in which threads take turns with Python's lock; its variant has none.
const WITH_LOCK: &str = "threads";
const WITHOUT_LOCK: &str = "threads:no-lock";

/// What holds of it whatever its speed.
const CAVEATS: &str = "A crash ends all members at once; they share one random number generator and torch's settings; memory is \
                       told for the group only.";

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let hosted = crate::rule::training(analysis).filter(|c| c.record.mode.one_process);
    let mut modes: Vec<&str> = hosted.map(|c| c.record.sharing.as_str()).collect();
    modes.sort_unstable();
    modes.dedup();
    if modes.is_empty() {
        return None;
    }
    let against = |other: &str| {
        let of_mode = modes.iter().map(|mode| Pairs::of_work(analysis, mode, other));
        of_mode.fold(Pairs::default(), Pairs::with)
    };
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    let [naive, mps] = corrected_together([against("naive"), against("mps")], threshold);
    let pairs = naive.clone().with(mps);
    let (ahead, behind, same) = (pairs.ahead(), pairs.behind(), pairs.how_many(RatioVerdict::Same));
    let open = pairs.may_be_below(threshold) + pairs.unjudged.len();
    let all = pairs.all() - pairs.unjudged.len();
    let holds = match () {
        () if behind > 0 => Holds::No,
        () if all == 0 || open > 0 => Holds::Open,
        () if 2 * ahead > all => Holds::Yes,
        () if ahead + same == all => Holds::No,
        () => Holds::Open,
    };
    let key = pairs.extreme(behind == 0);
    let groups = pairs.groups();
    let finding = match key {
        None if ahead + behind > 0 => format!(
            "Threads of one process are {}, decided by which groups fit into memory.",
            pairs.text("processes").unwrap_or_default()
        ),
        None => nothing(&groups, "the work per second", "No group is planned both as threads of one process and as processes."),
        Some(pair) => {
            let ratio = number::with_interval(&pair.ratio);
            let mut said = format!("`{}` does {ratio} times the work of `{}` per second", pair.left.name(), pair.right.name());
            said += &memory(pair.left, pair.right)
                .map_or_else(String::new, |q| format!(", in {} times the memory", number::with_interval(&q)));
            format!("{said}.{}", lock(analysis, &naive.judged).unwrap_or_default())
        }
    };
    Some(
        Claim {
            id: "one-process",
            question: "Is one process better than several?",
            advice: "Run members as threads of one process.".into(),
            otherwise: if behind > 0 { "keep a process for each member." } else { "it is no better than processes in most groups." }.into(),
            finding: format!("{finding} {CAVEATS}"),
            holds,
            agrees: Agreement::NotStudied,
            key: key.map(|pair| pair.evidence(Key::ThroughputGain).picked_from(pairs.judged.len())),
            tested: format!(
                "work per second as threads of one process ÷ as processes, naive or under MPS, same members: never below 1 by more than \
                 {0}, and above it by more than {0} in most groups; Holm-corrected over the groups of all modes. Where only one of both does \
                 not fit into memory, it is behind",
                number::percent_as_written(threshold)
            ),
            evidence: pairs.evidence(Key::ThroughputGain),
            published: None,
            next: decide(analysis, &groups, pairs.tests(), "workload == \"small\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}

/// The memory of one process ÷ that of several, if both were read in one way.
fn memory(threads: &Cell, processes: &Cell) -> Option<Quantity> {
    let comparable = threads.memory_kind == processes.memory_kind && together(threads, processes);
    threads.get(Key::Memory).filter(|_| comparable)?.over(processes.get(Key::Memory)?)
}

/// On a CPU, where members compute instead of waiting for a card: how many times as long an epoch takes with Python's lock, against
/// processes, each with a lock of its own, and against threads without one.
fn lock(analysis: &Analysis, naive: &[Pair]) -> Option<String> {
    if on_a_card(analysis) {
        return None;
    }
    let with_lock = naive.iter().filter(|h| h.left.record.sharing == WITH_LOCK);
    let longest = with_lock.filter_map(|pair| Some((pair, epochs(pair.left, pair.right)?)));
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
