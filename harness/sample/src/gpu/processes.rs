//! GPU memory of each member, and who else computes on its GPU, from NVML's process lists.
//!
//! On a slow thread: a list takes two calls, each of which walks the driver's clients, and a training's memory changes in a few
//! steps, so that once a second is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use collo_store::{Sample, monotonic_ns};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;

use super::handle::{GpuHandle, Opened};
use crate::Sampler;
use crate::account::Account;
use crate::member::Trees;
use collo_device::holders;
use collo_device::nvml::text;
use collo_launch::tree;

const METRIC: &str = "gpu_memory_bytes";

/// Memory of a process on one GPU or GPU instance; `None` if the driver does not report how much.
type Held = BTreeMap<(usize, u32, Option<u32>), Option<u64>>;

/// A process that is not collo's and computed on one of its GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Stranger {
    pub name: String,
    /// When it was first and last in a list.
    pub first_ns: u64,
    pub last_ns: u64,
}

/// Those that were seen, by pid.
#[derive(Clone, Default)]
pub struct Strangers(Arc<Mutex<BTreeMap<u32, Stranger>>>);

impl Strangers {
    /// The names of those that were there at some moment of this span.
    pub fn between(&self, from_ns: u64, until_ns: u64) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let were_there = all.values().filter(|stranger| stranger.first_ns <= until_ns && stranger.last_ns >= from_ns);
        were_there.map(|stranger| stranger.name.clone()).collect()
    }

    /// Note who is in a list and no process of this collo: neither a member nor a daemon of its own, nor one that is gone already, which
    /// may have been either.
    fn note(&self, pids: &BTreeSet<u32>, at_ns: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter_mut().filter(|(pid, _)| pids.contains(pid)).for_each(|(_, stranger)| stranger.last_ns = at_ns);
        let mut unknown = pids.iter().filter(|pid| !all.contains_key(pid)).copied().collect::<Vec<u32>>();
        if unknown.is_empty() {
            return;
        }
        let own = tree::descendants(std::process::id());
        unknown.retain(|pid| !own.contains(pid) && Path::new(&format!("/proc/{pid}")).exists() && !is_mps_server(*pid));
        for pid in unknown {
            all.insert(pid, Stranger { name: holders::named(pid), first_ns: at_ns, last_ns: at_ns });
        }
    }
}

/// A server of MPS computes for its clients, which are in the lists themselves. `comm` has the first 15 characters of a name (proc(5)).
fn is_mps_server(pid: u32) -> bool {
    tree::name_of(pid).is_some_and(|name| name == "nvidia-cuda-mps")
}

/// Reads the lists of all GPUs.
pub struct Processes {
    boards: Vec<Arc<Opened>>,
    trees: Trees,
    strangers: Strangers,
    account: Account,
}

impl Processes {
    pub fn of(boards: &[Arc<Opened>], trees: Trees, strangers: Strangers) -> Processes {
        Processes { boards: boards.to_vec(), trees, strangers, account: Account::default() }
    }

    /// The processes of all GPUs, including MPS clients.
    fn held(&self) -> Result<Held, NvmlError> {
        let mut held = Held::new();
        for (board, opened) in self.boards.iter().enumerate() {
            let whole = list(&opened.card);
            // A card that is cut lists the processes of its instances too, but perhaps not to everybody.
            let parts = opened.parts.iter().filter_map(|p| Some((p.gpu_instance, p.card.as_ref().ok()?)));
            match whole {
                Ok(processes) if !processes.is_empty() || opened.parts.is_empty() => gather(&mut held, board, processes),
                Err(e) if opened.parts.is_empty() => return Err(e),
                _ => {
                    for (id, card) in parts {
                        let of_part = |p| ProcessInfo { gpu_instance_id: Some(id), ..p };
                        gather(&mut held, board, list(card)?.into_iter().map(of_part).collect());
                    }
                }
            }
        }
        Ok(held)
    }
}

/// Both lists of a GPU or an instance.
fn list(card: &GpuHandle) -> Result<Vec<ProcessInfo>, NvmlError> {
    let mut processes = card.ask(|d| d.running_compute_processes())?;
    // Not every driver has this list; those without show the clients in the other, or their memory as the server's.
    processes.extend(card.ask(|d| d.mps_running_compute_processes()).unwrap_or_default());
    Ok(processes)
}

/// A process that is in both lists counts once.
fn gather(held: &mut Held, board: usize, processes: Vec<ProcessInfo>) {
    for p in processes {
        let bytes = match p.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        let known = held.entry((board, p.pid, p.gpu_instance_id)).or_insert(None);
        *known = (*known).max(bytes);
    }
}

/// Total GPU memory of a member's processes: `Some(None)` if any is unreported, `None` if none of them is listed.
fn of_member(held: &Held, pids: &[u32]) -> Option<Option<u64>> {
    let pids: BTreeSet<u32> = pids.iter().copied().collect();
    let mut ours = held.iter().filter(|((_, pid, _), _)| pids.contains(pid)).map(|(_, bytes)| *bytes).peekable();
    ours.peek()?;
    Some(ours.sum())
}

impl Sampler for Processes {
    fn sample(&mut self, _: u64, samples: &mut Vec<Sample>) {
        let held = self.held();
        let at_ns = monotonic_ns();
        let members = self.trees.pids();
        if let Ok(held) = &held {
            let is_of_member = |pid: &u32| members.iter().any(|(_, pids)| pids.contains(pid));
            let others = held.keys().map(|(_, pid, _)| *pid).filter(|pid| !is_of_member(pid)).collect();
            self.strangers.note(&others, at_ns);
        }
        for (scope, pids) in members {
            let value = match &held {
                Ok(held) => match of_member(held, &pids) {
                    Some(Some(bytes)) => Ok(bytes as f64),
                    Some(None) => Err("the driver does not report memory per process".to_string()),
                    // It has no context yet, or any more; or its number is another outside this container.
                    None => {
                        let why =
                            if held.is_empty() { "no process is on the GPU" } else { "none of its processes is in NVML's list" };
                        self.account.lacks(METRIC, &scope, why);
                        continue;
                    }
                },
                Err(_) if pids.is_empty() => continue,
                Err(e) => Err(text(e)),
            };
            match &value {
                Ok(_) => self.account.gave(METRIC, &scope),
                Err(why) => self.account.lacks(METRIC, &scope, why),
            }
            samples.push(Sample { at_ns, window_ns: 0, source: "nvml", scope, metric: METRIC, value: value.ok() });
        }
    }

    fn account(&self) -> Option<&Account> {
        Some(&self.account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, bytes: Option<u64>, gpu_instance_id: Option<u32>) -> ProcessInfo {
        let used_gpu_memory = bytes.map_or(UsedGpuMemory::Unavailable, UsedGpuMemory::Used);
        ProcessInfo { pid, used_gpu_memory, gpu_instance_id, compute_instance_id: None }
    }

    fn held(lists: &[(usize, Vec<ProcessInfo>)]) -> Held {
        let mut held = Held::new();
        for (board, list) in lists {
            gather(&mut held, *board, list.clone());
        }
        held
    }

    #[test]
    fn a_process_that_is_neither_below_this_process_nor_gone_is_a_stranger_for_as_long_as_it_is_listed() {
        let mut own = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let (init, gone) = (1, u32::MAX >> 1);
        let strangers = Strangers::default();
        strangers.note(&BTreeSet::from([own.id(), gone]), 5);
        assert!(strangers.between(0, 100).is_empty());
        strangers.note(&BTreeSet::from([own.id(), init]), 10);
        strangers.note(&BTreeSet::from([init]), 20);
        strangers.note(&BTreeSet::from([own.id()]), 30);
        own.kill().unwrap();
        own.wait().unwrap();
        assert_eq!(strangers.between(0, 10), [holders::named(init)]);
        assert_eq!(strangers.between(15, 40).len(), 1);
        assert!(strangers.between(0, 9).is_empty() && strangers.between(21, 40).is_empty());
    }

    #[test]
    fn a_client_of_mps_that_stands_in_both_lists_counts_once() {
        let held = held(&[(0, vec![process(7, None, None), process(9, Some(400), None)]), (0, vec![process(7, Some(5), None)])]);
        assert_eq!(of_member(&held, &[7]), Some(Some(5)));
    }

    #[test]
    fn a_member_holds_what_its_processes_hold_on_every_card_and_instance() {
        let held =
            held(&[(0, vec![process(7, Some(1), Some(1)), process(7, Some(2), Some(2))]), (1, vec![process(8, Some(4), None)])]);
        assert_eq!((of_member(&held, &[7, 8]), of_member(&held, &[8])), (Some(Some(7)), Some(Some(4))));
    }

    #[test]
    fn a_member_whose_memory_is_not_told_has_none_and_one_that_is_not_there_has_no_reading() {
        let held = held(&[(0, vec![process(7, None, None), process(8, Some(4), None)])]);
        assert_eq!((of_member(&held, &[7, 8]), of_member(&held, &[5])), (Some(None), None));
    }
}
