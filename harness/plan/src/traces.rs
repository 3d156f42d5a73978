//! The traces of a project: the files of `traces/`, and their tasks as members.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_schedule::trace::{LARGEST, Trace, TraceTask, least_time_ns};
use collo_store::{CellRecord, DeviceRecord, Runs};
use collo_text::{Diagnostic, Diagnostics, Source, nearest, quoted, shown};
use serde_json::Value as Json;

use crate::cell::{Cell, CellTask, Member};
use crate::past::{AloneTime, PastCell, PastRuns};
use crate::workload::{LIMIT_BATCHES, Workload, Workloads};

/// The traces of a folder by name; none if there is no such folder.
pub fn all(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let mut all: Vec<(String, PathBuf)> =
        files.filter_map(|path| Some((path.file_stem()?.to_str()?.to_string(), path.clone()))).collect();
    all.sort();
    all
}

/// Where the trace of this name is, if there is one.
pub fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.toml"))
}

/// The trace of this name, or what is wrong with it.
pub fn find(folder: &Path, name: &str) -> Result<Trace, Diagnostics> {
    let known = all(folder);
    let Some((_, path)) = known.iter().find(|(own, _)| own == name) else {
        let unknown = Diagnostic::new(format!("unknown trace {}", quoted(name)));
        return Err(match nearest(name, known.iter().map(|(own, _)| own.as_str())) {
            Some(near) => unknown.note(format!("did you mean `{near}`? All: `collo list traces`")),
            None => unknown.note(format!("all: `collo list traces`; they are files in {}", shown(folder))),
        }
        .into());
    };
    let unreadable = |cause: String| Diagnostic::new(format!("trace {} cannot be read", quoted(&shown(path)))).caused_by(cause);
    let text = collo_text::read_small_text(path, LARGEST).map_err(|e| unreadable(e.to_string()))?;
    Trace::read(&Source::file(shown(path), text))
}

/// Members by workload, settings and share of an epoch, so that those of many tasks are made once.
pub type MemberCache = HashMap<String, Arc<Member>>;

/// The tasks of one order, their arrivals and epochs divided by the scale.
///
/// # Errors
/// An unknown workload, a setting that it does not have, a workload that cannot train the part of an epoch that the scale leaves.
pub fn tasks(
    trace: &Trace,
    seed: u64,
    scale: u32,
    workloads: &Workloads,
    members: &mut MemberCache,
) -> Result<Vec<CellTask>, Diagnostics> {
    let mut tasks = Vec::new();
    for TraceTask { at_ns, workload, settings, epochs, cards, .. } in trace.order(seed) {
        let workload = workloads.find(&workload)?;
        let scaled = ScaledEpochs::of(epochs, scale);
        let key = format!("{} {} {}", workload.name, serde_json::json!(settings), scaled.share);
        let member = match members.get(&key) {
            Some(member) => member.clone(),
            None => {
                let member = Arc::new(member(workload, &settings, scaled.share)?);
                members.insert(key, member.clone());
                member
            }
        };
        tasks.push(CellTask { member, arrives_ns: at_ns / u64::from(scale), epochs: scaled.epochs, cards });
    }
    Ok(tasks)
}

/// What is wrong with the tasks that some order of a trace can have: workloads that are not there, settings that they do not have.
pub fn wrong_tasks(trace: &Trace, workloads: &Workloads) -> Vec<Diagnostics> {
    let wrong = |(workload, settings): (&str, &BTreeMap<String, Json>)| {
        let found = workloads.find(workload).and_then(|workload| Ok(member(workload, settings, 1.0)?));
        found.err()
    };
    trace.kinds().into_iter().filter_map(wrong).collect()
}

/// What a task is to its cards at the least: its arrival, its time on them, and how many they are. On several cards it is nowhere
/// faster than its time on one, divided among them.
fn least_work(task: &CellTask, alone: AloneTime) -> (u64, u64, u32) {
    let shared = AloneTime { epoch_s: alone.epoch_s / f64::from(task.cards.max(1)), ..alone };
    (task.arrives_ns, (shared.of_epochs_s(task.epochs) * 1e9) as u64, task.cards)
}

/// The work of these tasks, for `least_time_ns`; `None` if of one of them is not known what it takes alone.
pub fn work_of(tasks: &[CellTask], alone: impl Fn(&Member) -> Option<AloneTime>) -> Option<Vec<(u64, u64, u32)>> {
    tasks.iter().map(|task| Some(least_work(task, alone(&task.member)?))).collect()
}

/// The least time of this work in seconds, whatever the policy: on so many cards with one task on each at a time, or where they are shared
/// (`None`), whose only bound is that nobody is faster than alone.
pub fn least_s(work: &[(u64, u64, u32)], cards: Option<u32>) -> f64 {
    least_time_ns(work, cards.unwrap_or(u32::MAX)) as f64 / 1e9
}

/// What the members of tasks take alone, as far as stored runs tell.
#[derive(Debug, Clone)]
pub struct MeasuredTasks {
    pub device: DeviceRecord,
    past: PastRuns,
    /// Runs that it is from.
    pub stored_runs: usize,
    /// Of how many of the distinct members it is known.
    pub known: usize,
}

impl MeasuredTasks {
    /// On the device of which most is known; between equals on the one that was measured last. `None` if nothing is known on any.
    pub fn read(runs: &Runs, tasks: &[CellTask]) -> Option<MeasuredTasks> {
        let mut members: Vec<&Arc<Member>> = tasks.iter().map(|task| &task.member).collect();
        members.sort_by_key(|member| member.key());
        members.dedup_by_key(|member| member.key());
        let cells: Vec<CellRecord> = members.iter().map(|member| Cell::solo(member, None).record(1)).collect();
        let mut best: Option<MeasuredTasks> = None;
        for device in PastRuns::devices(runs) {
            let past = PastRuns::read(runs, &device, None, cells.iter());
            let found: Vec<&PastCell> = members.iter().filter_map(|member| past.alone(&member.spec())).collect();
            let known = found.iter().filter(|cell| cell.alone_time().is_some()).count();
            let stored: BTreeSet<String> = found.iter().flat_map(|cell| cell.folders()).collect();
            if known > best.as_ref().map_or(0, |best| best.known) {
                best = Some(MeasuredTasks { device, known, stored_runs: stored.len(), past });
            }
        }
        best
    }

    pub fn alone(&self, member: &Member) -> Option<AloneTime> {
        self.past.alone(&member.spec())?.alone_time()
    }
}

/// What the epochs of a task are after scaling: so many, each this share of a whole one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ScaledEpochs {
    epochs: u32,
    share: f64,
}

impl ScaledEpochs {
    fn of(epochs: u32, scale: u32) -> ScaledEpochs {
        let wanted = f64::from(epochs) / f64::from(scale);
        let epochs = wanted.ceil().max(1.0);
        ScaledEpochs { epochs: epochs as u32, share: wanted / epochs }
    }
}

/// A task's member: its settings as the trace has them, and the share of an epoch that is left after scaling.
fn member(workload: &Arc<Workload>, settings: &BTreeMap<String, Json>, share: f64) -> Result<Member, Diagnostic> {
    let mut given: Vec<(&str, Json)> = settings.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    if share < 1.0 {
        if !workload.settings.contains_key(LIMIT_BATCHES) {
            let what = format!("`{}` cannot train a part of an epoch, which the scale of this trace asks for", workload.name);
            let hint = format!("`scale = \"1:1\"`, or give the workload the setting `{LIMIT_BATCHES}`");
            return Err(Diagnostic::new(what).hint(hint));
        }
        given.push((LIMIT_BATCHES, share.into()));
    }
    Member::new(workload, given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_divided_first_and_then_cut_short() {
        let scaled = |epochs, scale| {
            let ScaledEpochs { epochs, share } = ScaledEpochs::of(epochs, scale);
            (epochs, (share * 1e4).round() / 1e4)
        };
        assert_eq!(scaled(50, 1), (50, 1.0));
        assert_eq!(scaled(50, 10), (5, 1.0));
        assert_eq!(scaled(50, 20), (3, 0.8333), "two and a half epochs are three shorter ones");
        assert_eq!(scaled(1, 300), (1, 0.0033));
    }

    #[test]
    fn tasks_of_several_cards_are_at_best_divided_among_them_and_shared_cards_bound_only_the_longest() {
        let workloads = crate::fixture::workloads();
        let text = "arrivals_s = [0, 10]\n[[tasks]]\ncount = 1\none_of = [\"tiny 4e\"]\n[[tasks]]\ncount = 1\none_of = [\"sleep 4e 2c\"]\n";
        let trace = Trace::read(&Source::file("t.toml", text)).unwrap_or_else(|wrong| panic!("{wrong}"));
        let tasks = tasks(&trace, 1, 1, &workloads, &mut MemberCache::new()).unwrap_or_else(|wrong| panic!("{wrong}"));
        let work = work_of(&tasks, |_| Some(AloneTime { set_up_s: 2.0, epoch_s: 5.0 })).expect("all are known");
        let mut each: Vec<(u32, u64)> = work.iter().map(|(_, ns, cards)| (*cards, ns / 1_000_000_000)).collect();
        each.sort_unstable();
        assert_eq!(each, [(1, 22), (2, 12)]);
        assert_eq!(least_s(&[(0, 22_000_000_000, 1), (0, 12_000_000_000, 2)], Some(2)), 23.0);
        assert_eq!(least_s(&[(0, 22_000_000_000, 1), (10_000_000_000, 13_000_000_000, 2)], None), 23.0);
        let of_tiny = |member: &Member| (member.workload().name == "tiny").then_some(AloneTime { set_up_s: 0.0, epoch_s: 1.0 });
        assert_eq!(work_of(&tasks, of_tiny), None, "of one of them nothing is known");
    }

    #[test]
    fn a_task_of_an_unknown_workload_is_wrong_whether_or_not_an_order_draws_it() {
        let text = "arrivals_s = [0]\n[[tasks]]\ncount = 1\none_of = [\"tiny:b32\", \"tini:b32\", \"sleep:b3\"]\n";
        let trace = Trace::read(&Source::file("t.toml", text)).unwrap_or_else(|wrong| panic!("{wrong}"));
        let wrong: Vec<String> =
            wrong_tasks(&trace, &crate::fixture::workloads()).iter().map(|wrong| wrong.to_string()).collect();
        let [unknown, setting] = &wrong[..] else { panic!("{wrong:?}") };
        assert!(unknown.contains("`tini`") && unknown.contains("did you mean `tiny`?"), "{unknown}");
        assert!(setting.contains("sleep"), "{setting}");
    }
}
