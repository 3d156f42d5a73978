//! The evidence on an NVIDIA GPU: the driver's process lists, the MPS server's client list, and what each member sees through CUDA.
//!
//! The environment that we set is not evidence: a client that cannot reach its daemon silently runs without MPS.

use collo_device::{company, holders, mps, namespace, nvml};
use std::collections::{BTreeMap, BTreeSet};

use collo_store::{Attestation, AttestationVerdict, Check};
use nvml_wrapper::Device;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;

use super::daemon::MpsDaemon;
use super::evidence::{self, InForce, check, process};
use crate::stage::staging::{StagedCard, Visible};
use collo_device::mps::ReportedLimit;
use collo_device::nvml::instances::Raw;
use collo_launch::protocol::Hello;
use collo_plan::facts::Unlisted;

/// The check that fails if others use the GPU.
pub const OTHERS: &str = "others on the GPU";
/// What it finds where nobody does.
pub const NOBODY: &str = "none";
/// What is asked of others where they may be there.
const ALLOWED: &str = "allowed";

/// The check of a limit set in the MPS daemon.
pub const MEMORY_LIMIT: &str = "memory limit of the MPS daemon";
/// The check of the share of SMs of a member that shows none.
pub const THREAD_LIMIT: &str = "thread limit of MPS";

/// A snapshot of a GPU. A list that could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// Processes that compute on the GPU, with their instance if it is partitioned.
    pub computing: Option<Vec<Computing>>,
    /// MPS clients according to the driver.
    pub mps_clients: Option<BTreeSet<u32>>,
    /// By daemon: its servers' clients.
    pub clients: Vec<Option<BTreeSet<u32>>>,
    /// The servers of our daemons, which compute on the GPU too.
    pub servers: BTreeSet<u32>,
    pub mig: Option<bool>,
    /// By daemon, by device: the memory limit of its clients that it reports, where its server logged none.
    pub memory_limits: Vec<BTreeMap<u32, ReportedLimit>>,
    /// By daemon: the limits that its server logged.
    pub logged: Vec<mps::Logged>,
    /// By daemon: the error that it or its server logged.
    pub trouble: Vec<Option<String>>,
    /// Usage of the GPU not explained by listed processes.
    pub unlisted: Option<Unlisted>,
    /// Whether the folder in which members without MPS look for a daemon is not empty.
    pub daemon_in_the_way: bool,
}

/// A process that computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Computing {
    pub pid: u32,
    pub gpu_instance: Option<u32>,
    pub compute_instance: Option<u32>,
}

/// Read the GPU's state and compare it with the request.
pub fn on_gpu(card: &StagedCard, members: &[InForce]) -> Attestation {
    judge(&Seen::of(card), card, members)
}

/// Whether one of these processes computes on a device; `None` if its lists cannot be read.
pub fn computes(uuid: &str, pids: &[u32]) -> Option<bool> {
    let nvml = nvml::open().ok()?;
    let device = nvml.device_by_uuid(uuid).ok()?;
    Some(ProcessLists::of(&device).all()?.iter().any(|found| pids.contains(&found.pid)))
}

impl Seen {
    fn of(card: &StagedCard) -> Seen {
        let mut seen = Seen {
            daemon_in_the_way: std::fs::read_dir(&card.empty).is_ok_and(|mut entries| entries.next().is_some()),
            ..Seen::default()
        };
        // The driver first: it answers at once, and where members leave when they are done they may be gone before a daemon has.
        seen.look(card);
        for daemon in &card.daemons {
            seen.ask(daemon, card.memory_limit_bytes.is_some());
        }
        seen
    }

    /// The driver's report of the GPU and of the instances that members are on.
    fn look(&mut self, card: &StagedCard) {
        let Ok(nvml) = nvml::open() else { return };
        let Ok(device) = nvml.device_by_uuid(card.uuid.as_str()) else { return };
        self.mig = match device.mig_mode() {
            Ok(mode) => Some(mode.current == 1),
            Err(nvml_wrapper::error::NvmlError::NotSupported) => Some(false),
            Err(_) => None,
        };
        let whole = ProcessLists::of(&device);
        self.mps_clients = whole.clients();
        self.computing = whole.all();
        // The lists of the whole card may be closed to us, or without what runs on instances, where those of the instances are open; and
        // a client of MPS (`M+C`) may be on either of the two lists alone. So both are asked of both.
        // All instances, not only those of members: a process on another one shares the card's power, clocks and links.
        let parts = Raw::new(&nvml, &device).mig_devices().ok().filter(|_| self.mig == Some(true));
        for part in parts.unwrap_or_default() {
            let Ok(device) = nvml.device_by_uuid(part.uuid.as_str()) else { continue };
            let listed = ProcessLists::of(&device);
            if let Some(clients) = listed.clients() {
                self.mps_clients.get_or_insert_default().extend(clients);
            }
            let Some(listed) = listed.all() else { continue };
            let all = self.computing.get_or_insert_default();
            for process in listed {
                let found = Computing {
                    gpu_instance: process.gpu_instance.or(Some(part.gpu_instance)),
                    compute_instance: process.compute_instance.or(Some(part.compute_instance)),
                    ..process
                };
                if !all.contains(&found) {
                    all.push(found);
                }
            }
        }
        // Where everybody is listed the lists have the say: what their memory does not add up to is the driver's own.
        if namespace::is_first() != Some(true) {
            self.unlisted = company::company(&nvml, &device, &card.uuid).unlisted;
        }
    }

    /// The replies of a daemon and its server. Each query runs a program that may be slow, so none is repeated.
    fn ask(&mut self, daemon: &MpsDaemon, limited: bool) {
        let servers = daemon.control.servers();
        let clients = servers.as_ref().ok().and_then(|servers| {
            let each: Option<Vec<Vec<u32>>> = servers.iter().map(|s| daemon.control.clients(*s).ok()).collect();
            Some(each?.into_iter().flatten().collect())
        });
        self.servers.extend(servers.unwrap_or_default());
        self.clients.push(clients);
        let log = daemon.log_text();
        let logged = mps::logged(&log);
        let unknown = (0..daemon.devices).filter(|device| limited && !logged.memory_limit_bytes.contains_key(device));
        let reported = |device| Some((device, daemon.control.memory_limit(device).ok().flatten()?));
        self.memory_limits.push(unknown.filter_map(reported).collect());
        self.logged.push(logged);
        self.trouble.push(mps::trouble(&log));
    }

    /// Pids on the GPU that are neither of a member nor of our servers.
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
        none_is_ours && others.len() >= processes(members) && !others.iter().any(known)
    }
}

/// The number of processes that members are: threads of one are one.
fn processes(members: &[InForce]) -> usize {
    if members.iter().any(|m| m.process.is_some()) { 1 } else { members.len() }
}

/// The driver's two lists of a device; an unreadable or unsupported one is absent.
struct ProcessLists {
    plain: Option<Vec<ProcessInfo>>,
    clients: Option<Vec<ProcessInfo>>,
}

impl ProcessLists {
    fn of(device: &Device<'_>) -> ProcessLists {
        ProcessLists { plain: device.running_compute_processes().ok(), clients: device.mps_running_compute_processes().ok() }
    }

    fn clients(&self) -> Option<BTreeSet<u32>> {
        self.clients.as_ref().map(|all| all.iter().map(|p| p.pid).collect())
    }

    /// Processes on either; `None` if neither can be read.
    fn all(&self) -> Option<Vec<Computing>> {
        let lists = [&self.plain, &self.clients];
        let computing =
            |p: &ProcessInfo| Computing { pid: p.pid, gpu_instance: p.gpu_instance_id, compute_instance: p.compute_instance_id };
        lists.iter().any(|l| l.is_some()).then(|| lists.into_iter().flatten().flatten().map(computing).collect())
    }
}

/// Pure: compares the snapshot with the request.
fn judge(seen: &Seen, card: &StagedCard, members: &[InForce]) -> Attestation {
    let hidden = seen.hidden(members);
    let mut checks = vec![of_mig(seen, card)];
    if !hidden {
        checks.push(of_others(seen, card, members));
    }
    checks.extend(of_memory(seen, card));
    checks.extend(of_threads(seen, card, members));
    if !hidden {
        checks.extend(of_one_process(seen, card, members));
    }
    for member in members {
        let Some(device) = card.devices.get(member.member) else { continue };
        // Where a member trains decides more than anything else that is found of it.
        checks.extend(evidence::as_it_sees(Some(card), member.member, member.hello.as_ref()));
        checks.extend(process(member));
        if !hidden {
            checks.push(on_its_device(seen, card, member, device));
            checks.push(through_mps(seen, member, device));
        }
    }
    let mut attestation = Attestation::from_checks(checks);
    if hidden {
        let count = seen.others(members).len();
        attestation.checks.push(Check {
            what: "processes on the GPU, by count".into(),
            member: None,
            asked: format!("{} of members whose pids are hidden here", processes(members)),
            found: Some(count.to_string()),
            holds: true,
        });
        // What a count can tell of MPS: every client list has as many.
        let clients = seen.clients.iter().flatten().map(BTreeSet::len).sum::<usize>();
        let enough = card.daemons.is_empty() || clients >= processes(members);
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
    let found = if all.is_empty() { NOBODY.into() } else { all.join(", ") };
    Check {
        what: OTHERS.into(),
        member: None,
        asked: if card.foreign { ALLOWED.into() } else { NOBODY.into() },
        found: seen.computing.as_ref().map(|_| found),
        // Who is not listed is only inferred: what was found says so, and the run is indicative.
        holds: seen.computing.is_some() && (card.foreign || others.is_empty()),
    }
}

/// Who was seen on the GPU between the looks: evidence is gathered once, and others may come later or leave before. Only where that look
/// could distinguish them, and found none.
pub fn add_strangers(attestation: &mut Attestation, strangers: &[String]) {
    let mut checks = attestation.checks.iter_mut();
    let Some(check) = checks.find(|check| check.what == OTHERS && check.found.as_deref() == Some(NOBODY)) else { return };
    if strangers.is_empty() {
        return;
    }
    check.found = Some(strangers.join(", "));
    check.holds = check.asked == ALLOWED;
    if !check.holds {
        attestation.verdict = AttestationVerdict::Absent;
    }
}

/// The memory limit in force for the clients of every daemon, on each of its devices: the one that its server logged, which is exact; else
/// the one that the daemon reports. A limit that is set by the daemon's environment is not reported, and one in GiB has lost its rest
/// (NVIDIA's daemons of drivers 535 to 555). If neither is known nothing is found, and the run is indicative.
fn of_memory(seen: &Seen, card: &StagedCard) -> Vec<Check> {
    if card.own_memory_limits {
        let (what, asked) = (MEMORY_LIMIT.into(), "one for each member".into());
        return vec![Check { what, member: None, asked, found: None, holds: true }];
    }
    let Some(asked) = card.memory_limit_bytes else { return Vec::new() };
    let mib = |bytes: u64| bytes >> 20;
    let on_device = |daemon: usize, device: u32| {
        let logged = seen.logged.get(daemon).and_then(|l| l.memory_limit_bytes.get(&device));
        let reported = || seen.memory_limits.get(daemon).and_then(|limits| limits.get(&device));
        match logged {
            Some(bytes) => (Some(format!("{} MiB, its server logged", mib(*bytes))), mib(*bytes) == mib(asked)),
            None => match reported() {
                Some(limit) if limit.whole_gib => (Some(format!("{} whole GiB", limit.bytes >> 30)), limit.agrees_with(asked)),
                Some(limit) => (Some(format!("{} MiB", mib(limit.bytes))), limit.agrees_with(asked)),
                None => (None, true),
            },
        }
    };
    let check = |(number, daemon): (usize, &MpsDaemon)| {
        let each: Vec<_> = (0..daemon.devices).map(|device| on_device(number, device)).collect();
        // One device without the limit decides, then one of which it is not known.
        let worst = each.iter().find(|(_, holds)| !holds).or(each.iter().find(|(found, _)| found.is_none())).or(each.first());
        let (found, holds) = worst.cloned().unwrap_or((None, true));
        Check { what: MEMORY_LIMIT.into(), member: None, asked: format!("{} MiB", mib(asked)), found, holds }
    };
    card.daemons.iter().enumerate().map(check).collect()
}

/// The thread percentage that the server of every daemon logged for its clients. A server that logged nothing is no evidence
/// either way: the SMs that members see are. Of a member that shows neither nothing is found, and the run is indicative.
fn of_threads(seen: &Seen, card: &StagedCard, members: &[InForce]) -> Vec<Check> {
    let is_logged = |daemon: usize| seen.logged.get(daemon).is_some_and(|logged| logged.active_thread_percent.is_some());
    let unseen = |member: &InForce| {
        let device = card.devices.get(member.member)?;
        let (percent, daemon) = (device.percent?, device.daemon?);
        let is_seen = member.hello.as_ref().is_some_and(|hello| hello.sm_count.is_some()) && device.sms.is_some();
        let is_common = card.thread_limit_percent.is_some();
        (!(is_seen || is_common && is_logged(daemon)))
            .then(|| check(member.member, THREAD_LIMIT, format!("{percent} %"), None, true))
    };
    let unseen: Vec<Check> = members.iter().filter_map(unseen).collect();
    let Some(asked) = card.thread_limit_percent.map(f64::from) else { return unseen };
    let check = |found: f64| Check {
        what: "active threads that the MPS server logged".into(),
        member: None,
        asked: format!("{asked} %"),
        found: Some(format!("{found} %")),
        // It may have been rounded to what the hardware can divide.
        holds: (found - asked).abs() < 1.0,
    };
    seen.logged.iter().filter_map(|l| l.active_thread_percent).map(check).chain(unseen).collect()
}

/// Members that are threads of one process are one in the driver's list, whatever helpers they started.
fn of_one_process(seen: &Seen, card: &StagedCard, members: &[InForce]) -> Option<Check> {
    let process = members.iter().find_map(|m| m.process)?;
    let ours = |pid: &u32| members.iter().any(|m| m.pids.contains(pid));
    let listed: Option<BTreeSet<u32>> = seen.computing.as_ref().map(|all| all.iter().map(|c| c.pid).filter(ours).collect());
    let text = |pids: &BTreeSet<u32>| pids.iter().map(|pid| format!("pid {pid}")).collect::<Vec<_>>().join(", ");
    Some(Check {
        what: format!("process of all members on {}", card.label),
        member: None,
        asked: format!("pid {process}"),
        found: listed.as_ref().filter(|pids| !pids.is_empty()).map(text),
        holds: listed.is_some_and(|pids| pids.into_iter().eq([process])),
    })
}

/// The driver lists one of its processes on its device.
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
    check(member.member, "process in the driver's list", place, found, holds)
}

/// On its server's client list if MPS is requested, otherwise on none.
fn through_mps(seen: &Seen, member: &InForce, device: &Visible) -> Check {
    let on = |list: &BTreeSet<u32>| member.pids.iter().find(|pid| list.contains(pid)).copied();
    match device.daemon {
        Some(daemon) => {
            let list = seen.clients.get(daemon).and_then(Option::as_ref);
            let found = list.and_then(on).map(|pid| format!("pid {pid}"));
            let holds = found.is_some();
            let trouble = seen.trouble.get(daemon).and_then(Option::as_ref);
            let found = found.or_else(|| trouble.map(|line| format!("no; it logged `{line}`")));
            check(member.member, "on the MPS server's client list", "yes".into(), found, holds)
        }
        None => {
            // An old driver has no such list; then an empty folder where it would have looked for a daemon is the evidence.
            let client = seen.mps_clients.as_ref().and_then(on).map(|pid| format!("a client, pid {pid}"));
            let found = client.or(seen.daemon_in_the_way.then(|| "a daemon's folder that is not empty".into()));
            let holds = found.is_none();
            check(member.member, "client of an MPS server", "no".into(), found.or(Some("no".into())), holds)
        }
    }
}

/// The device, and its number of SMs, as CUDA shows them to the member; `what` is the word for the first.
pub fn as_it_sees(card: &StagedCard, member: usize, hello: &Hello, what: &str) -> Vec<Check> {
    let Some(device) = card.devices.get(member) else { return Vec::new() };
    // Inside an instance CUDA gives its digits, or the card's, with a prefix of the script's: the digits tell.
    let digits = |text: &str| text.trim_start_matches("GPU-").trim_start_matches("MIG-").to_lowercase();
    let seen = digits(&hello.device);
    let holds = seen == digits(&device.uuid) || (card.mig && seen == digits(&card.uuid) && hello.sm_count.is_some());
    let mut checks = vec![check(member, what, device.uuid.clone(), Some(hello.device.clone()), holds)];
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
