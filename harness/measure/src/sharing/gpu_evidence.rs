//! The evidence on an NVIDIA GPU: the driver's process lists, the MPS server's client list, and what each member sees through CUDA.
//!
//! What must not be trusted is the environment that we gave: a client that cannot reach its daemon runs without MPS and says nothing.

use std::collections::BTreeSet;

use collo_store::{Attestation, AttestationVerdict, Check};

use super::Staged;
use super::evidence::{InForce, check, process};
use super::stage::{StagedCard, Visible};
use crate::device::company::{Company, Unlisted};
use crate::device::{holders, nvml};

/// The check that somebody else's work on the card does not pass.
pub const OTHERS: &str = "others on the card";

/// The check of a limit that the MPS daemon was told.
pub const MEMORY_LIMIT: &str = "memory limit of the MPS daemon";

/// What was read of a card at one moment. A list that could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Processes that compute on the card, with their instance where it is cut.
    pub computing: Option<Vec<Computing>>,
    /// Processes that the driver knows as MPS clients.
    pub mps_clients: Option<BTreeSet<u32>>,
    /// By daemon: its servers' clients.
    pub clients: Vec<Option<BTreeSet<u32>>>,
    /// The servers of our daemons, which compute on the card too.
    pub servers: BTreeSet<u32>,
    pub mig: Option<bool>,
    /// By daemon: the limit of memory that it says its clients have.
    pub memory_limits: Vec<Option<u64>>,
    /// What is used of the card by nobody who is listed.
    pub unlisted: Option<Unlisted>,
    /// Whether something lies where members without MPS look for a daemon.
    pub daemon_in_the_way: bool,
}

/// A process that computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Computing {
    pub pid: u32,
    pub gpu_instance: Option<u32>,
    pub compute_instance: Option<u32>,
}

/// Look at the card and hold what is seen against what was asked for.
pub fn on_gpu(staged: &Staged, members: &[InForce]) -> Attestation {
    let Some(card) = &staged.card else { return Attestation::absent("no card was staged") };
    judge(&Seen::of(card), card, members)
}

impl Seen {
    fn of(card: &StagedCard) -> Seen {
        let mut seen = Seen {
            daemon_in_the_way: std::fs::read_dir(&card.empty).is_ok_and(|mut entries| entries.next().is_some()),
            ..Seen::default()
        };
        for daemon in &card.daemons {
            seen.servers.extend(daemon.control.servers().unwrap_or_default());
            seen.memory_limits.push(daemon.control.memory_limit_bytes().ok().flatten());
            seen.clients.push(daemon.control.all_clients().ok().map(BTreeSet::from_iter));
        }
        let Ok(nvml) = nvml::open() else { return seen };
        let Ok(device) = nvml.device_by_uuid(card.uuid.as_str()) else { return seen };
        seen.mig = match device.mig_mode() {
            Ok(mode) => Some(mode.current == 1),
            Err(nvml_wrapper::error::NvmlError::NotSupported) => Some(false),
            Err(_) => None,
        };
        let computing = |p: nvml_wrapper::struct_wrappers::device::ProcessInfo| Computing {
            pid: p.pid,
            gpu_instance: p.gpu_instance_id,
            compute_instance: p.compute_instance_id,
        };
        let clients = device.mps_running_compute_processes().ok();
        let plain = device.running_compute_processes().ok();
        if clients.is_some() || plain.is_some() {
            let all = plain.into_iter().flatten().chain(clients.clone().into_iter().flatten());
            seen.computing = Some(all.map(computing).collect());
        }
        // The list of the whole card may be closed to us, or without instances, where those of the instances are open.
        for part in card.devices.iter().filter(|d| d.gpu_instance.is_some()) {
            let Ok(listed) = nvml.device_by_uuid(part.uuid.as_str()).and_then(|d| d.running_compute_processes()) else {
                continue;
            };
            let all = seen.computing.get_or_insert_default();
            for process in listed {
                let (gpu_instance, compute_instance) = (part.gpu_instance, part.compute_instance);
                let found = Computing { pid: process.pid, gpu_instance, compute_instance };
                if !all.contains(&found) {
                    all.push(found);
                }
            }
        }
        seen.unlisted = Company::of(&nvml, &device, &card.uuid).unlisted;
        seen.mps_clients = clients.map(|all| all.into_iter().map(|p| p.pid).collect());
        seen
    }

    /// Pids on the card that are neither of a member nor of our servers.
    fn others(&self, members: &[InForce]) -> Vec<u32> {
        let ours = |pid: &u32| self.servers.contains(pid) || members.iter().any(|m| m.pids.contains(pid));
        let pids: BTreeSet<u32> = self.computing.iter().flatten().map(|c| c.pid).collect();
        pids.into_iter().filter(|pid| !ours(pid)).collect()
    }

    /// As many processes as members, and none of them is known here: a container hides their pids.
    fn hidden(&self, members: &[InForce]) -> bool {
        let others = self.others(members);
        let known = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
        let none_is_ours = !self.computing.iter().flatten().any(|c| members.iter().any(|m| m.pids.contains(&c.pid)));
        none_is_ours && others.len() >= members.len() && !others.iter().any(known)
    }
}

/// Pure: what was seen against what was asked.
fn judge(seen: &Seen, card: &StagedCard, members: &[InForce]) -> Attestation {
    let hidden = seen.hidden(members);
    let mut checks = vec![of_mig(seen, card)];
    if !hidden {
        checks.push(of_others(seen, card, members));
    }
    checks.extend(of_memory(seen, card));
    for member in members {
        let Some(device) = card.devices.get(member.member) else { continue };
        checks.extend(process(member));
        if !hidden {
            checks.push(on_its_device(seen, card, member, device));
            checks.push(through_mps(seen, member, device));
        }
        checks.extend(as_it_sees(card, member, device));
    }
    let mut attestation = Attestation::from_checks(checks);
    if hidden {
        let count = seen.others(members).len();
        attestation.checks.push(Check {
            what: "processes on the card, by count".into(),
            member: None,
            asked: format!("{} of members whose pids are hidden here", members.len()),
            found: Some(count.to_string()),
            holds: true,
        });
        // What a count can tell of MPS: every client list has as many.
        let clients = seen.clients.iter().flatten().map(BTreeSet::len).sum::<usize>();
        let enough = card.daemons.is_empty() || clients >= members.len();
        if attestation.verdict == AttestationVerdict::Attested {
            attestation.verdict = if enough { AttestationVerdict::CountsOnly } else { AttestationVerdict::Absent };
        }
    }
    attestation
}

fn of_mig(seen: &Seen, card: &StagedCard) -> Check {
    let word = |on: bool| if on { "on" } else { "off" }.to_string();
    Check {
        what: format!("MIG of {}", card.label),
        member: None,
        asked: word(card.mig),
        found: seen.mig.map(word),
        holds: seen.mig == Some(card.mig),
    }
}

fn of_others(seen: &Seen, card: &StagedCard, members: &[InForce]) -> Check {
    let others = seen.others(members);
    let name = |pid: &u32| holders::named(*pid);
    let all: Vec<String> = others.iter().map(name).chain(seen.unlisted.as_ref().map(Unlisted::to_string)).collect();
    let found = if all.is_empty() { "nobody".into() } else { all.join(", ") };
    Check {
        what: OTHERS.into(),
        member: None,
        asked: if card.foreign { "allowed".into() } else { "nobody".into() },
        found: seen.computing.as_ref().map(|_| found),
        holds: seen.computing.is_some() && (card.foreign || all.is_empty()),
    }
}

/// The limit of memory that every daemon says its clients have. Drivers may write it in a form that is not known here: then nothing is found,
/// and the run is informative.
fn of_memory(seen: &Seen, card: &StagedCard) -> Vec<Check> {
    if card.own_memory_limits {
        let (what, asked) = (MEMORY_LIMIT.into(), "one for each member".into());
        return vec![Check { what, member: None, asked, found: None, holds: true }];
    }
    let Some(asked) = card.memory_limit_bytes else { return Vec::new() };
    let mib = |bytes: u64| bytes >> 20;
    let check = |found: &Option<u64>| Check {
        what: MEMORY_LIMIT.into(),
        member: None,
        asked: format!("{} MiB", mib(asked)),
        found: found.map(|bytes| format!("{} MiB", mib(bytes))),
        holds: found.is_none_or(|bytes| mib(bytes) == mib(asked)),
    };
    seen.memory_limits.iter().map(check).collect()
}

/// The driver has one of its processes on its device.
fn on_its_device(seen: &Seen, card: &StagedCard, member: &InForce, device: &Visible) -> Check {
    let there = seen.computing.as_ref().map(|all| {
        all.iter()
            .filter(|c| member.pids.contains(&c.pid))
            .filter(|c| {
                let same = |asked: Option<u32>, found: Option<u32>| asked.is_none() || found == asked;
                same(device.gpu_instance, c.gpu_instance) && same(device.compute_instance, c.compute_instance)
            })
            .map(|c| c.pid)
            .collect::<Vec<_>>()
    });
    let place = match (device.gpu_instance, device.compute_instance) {
        (Some(gi), Some(ci)) => format!("{}, GPU instance {gi}, compute instance {ci}", card.label),
        _ => card.label.clone(),
    };
    let found = there.as_ref().and_then(|pids| pids.first()).map(|pid| format!("pid {pid}"));
    let holds = found.is_some();
    check(member, "process in the driver's list", place, found, holds)
}

/// On its server's client list where MPS is asked for, on no list where it is not.
fn through_mps(seen: &Seen, member: &InForce, device: &Visible) -> Check {
    let on = |list: &BTreeSet<u32>| member.pids.iter().find(|pid| list.contains(pid)).copied();
    match device.daemon {
        Some(daemon) => {
            let list = seen.clients.get(daemon).and_then(Option::as_ref);
            let found = list.and_then(on).map(|pid| format!("pid {pid}"));
            let holds = found.is_some();
            check(member, "on the MPS server's client list", "yes".into(), found, holds)
        }
        None => {
            // An old driver has no such list; then an empty folder where it would have looked for a daemon is the evidence.
            let client = seen.mps_clients.as_ref().and_then(on).map(|pid| format!("a client, pid {pid}"));
            let found = client.or(seen.daemon_in_the_way.then(|| "a daemon's folder that is not empty".into()));
            let holds = found.is_none();
            check(member, "client of an MPS server", "no".into(), found.or(Some("no".into())), holds)
        }
    }
}

/// The device, and how many SMs of it, as CUDA shows them to the member.
fn as_it_sees(card: &StagedCard, member: &InForce, device: &Visible) -> Vec<Check> {
    let Some(hello) = &member.hello else { return Vec::new() };
    // Inside an instance CUDA gives its digits, or the card's, with a prefix of the script's: the digits tell.
    let digits = |text: &str| text.trim_start_matches("GPU-").trim_start_matches("MIG-").to_lowercase();
    let seen = digits(&hello.device);
    let holds = seen == digits(&device.uuid) || (card.mig && seen == digits(&card.uuid) && hello.sm_count.is_some());
    let mut checks = vec![check(member, "device as it sees it", device.uuid.clone(), Some(hello.device.clone()), holds)];
    if let (Some(all), Some(sms)) = (device.sms, hello.sm_count) {
        let (least, most) = match device.percent {
            None => (all, all),
            // The limit is rounded to what the hardware can divide: two SMs at a time, never to nothing.
            Some(percent) => {
                let share = f64::from(all) * f64::from(percent) / 100.0;
                ((share - 2.0).max(1.0) as u32, (share + 2.0).ceil() as u32)
            }
        };
        let asked = if least == most { all.to_string() } else { format!("{least} to {most} of {all}") };
        checks.push(check(member, "SMs as it sees them", asked, Some(sms.to_string()), (least..=most).contains(&sms)));
    }
    checks
}

#[cfg(test)]
#[path = "gpu_evidence_tests.rs"]
mod tests;
