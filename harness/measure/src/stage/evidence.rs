//! What is read of a member while it trains: the basis of an attestation.

use collo_store::{Attestation, AttestationVerdict, Check, DEVICE_SEEN};

use super::{gpu_evidence, thread_evidence};
use crate::stage::staging::StagedCard;
use collo_launch::memory_policy;
use collo_launch::protocol::Hello;
use collo_plan::sharing::Hosting;
use collo_text::units::ranges;

/// The check that a process too short for the system's clock ticks can miss.
pub const CPU_TIME: &str = "cpu time in the window";

/// The request for a member, and what was found inside the measured window.
#[derive(Debug, Clone, Default)]
pub struct InForce {
    pub member: usize,
    /// Every process below the member's supervisor.
    pub pids: Vec<u32>,
    /// The process that it shares with all members, as a thread of it.
    pub process: Option<u32>,
    /// What it sees itself; `None` for a foreign script.
    pub hello: Option<Hello>,
    /// CPU time of those processes when the window opened.
    pub cpu_ns_before: Option<u64>,
    /// CPU time of those processes now.
    pub cpu_ns_now: Option<u64>,
    /// Logical processors that every one of its threads may run on; `None` if they differ or could not be read.
    pub cores: Option<Vec<u32>>,
    /// All cores that collo may use, if no pinning was requested.
    pub asked_cores: Vec<u32>,
    pub asked_threads: u32,
    /// NUMA nodes that its memory is to be bound to, if it is.
    pub asked_memory_nodes: Option<Vec<u32>>,
    /// The NUMA memory policy of every one of its threads; `None` if they differ, could not be read, or none was asked for.
    pub memory_policy: Option<String>,
}

/// The evidence, gathered inside the measured window, that the request was in force; without a GPU the members are on a CPU.
/// `hosting`: they are threads of one process.
pub fn attest(card: Option<&StagedCard>, hosting: Option<Hosting>, members: &[InForce]) -> Attestation {
    let mut found = match card {
        None => on_cpu(members),
        Some(card) => gpu_evidence::on_gpu(card, members),
    };
    if let Some(hosting) = hosting {
        let Attestation { verdict, checks } =
            Attestation::from_checks(thread_evidence::of_threads(members, hosting, card.is_some()));
        if verdict == AttestationVerdict::Absent {
            found.verdict = AttestationVerdict::Absent;
        }
        found.checks.extend(checks);
    }
    found
}

/// The evidence on a CPU: each member is alive, has used CPU time inside the window, on the cores and with the threads requested,
/// and itself sees no other device.
fn on_cpu(members: &[InForce]) -> Attestation {
    // Where a member trains decides more than anything else that is found of it.
    let checks = members.iter().flat_map(|m| as_it_sees(None, m.member, m.hello.as_ref()).into_iter().chain(process(m)));
    Attestation::from_checks(checks.collect())
}

pub fn check(member: usize, what: &str, asked: String, found: Option<String>, holds: bool) -> Check {
    Check { what: what.into(), member: Some(member as u32), asked, found, holds }
}

/// The device as the member's framework sees it, compared with the assigned one; empty for a foreign script.
pub fn as_it_sees(card: Option<&StagedCard>, member: usize, hello: Option<&Hello>) -> Vec<Check> {
    let Some(hello) = hello else { return Vec::new() };
    match card {
        Some(card) => gpu_evidence::as_it_sees(card, member, hello, DEVICE_SEEN),
        None => vec![check(member, DEVICE_SEEN, "cpu".into(), Some(hello.device.clone()), hello.device == "cpu")],
    }
}

/// The check that fails if a hello names another device than the assigned one. Such a group must not train: the problem would
/// only be found at the end, perhaps under another reason.
pub fn misplaced(card: Option<&StagedCard>, member: usize, hello: &Hello) -> Option<Check> {
    as_it_sees(card, member, Some(hello)).into_iter().find(|c| !c.holds)
}

/// A failed check, in words.
pub fn words(check: &Check) -> String {
    let who = check.member.map(|m| format!(" of member {m}")).unwrap_or_default();
    let found = check.found.as_deref().unwrap_or("nothing");
    format!("{}{who}: asked {}, found {found}", check.what, check.asked)
}

/// Checks of a process on any device: alive, working, on its cores and with its threads.
pub fn process(m: &InForce) -> Vec<Check> {
    let used_ns = m.cpu_ns_now.zip(m.cpu_ns_before).map(|(now, before)| now.saturating_sub(before));
    let used = used_ns.map(|ns| format!("{:.3} s", ns as f64 / 1e9));
    let cores = m.cores.as_ref().map(|c| ranges(c));
    let mut found = vec![
        check(m.member, "process", "alive".into(), m.pids.first().map(|pid| format!("pid {pid}")), !m.pids.is_empty()),
        check(m.member, CPU_TIME, "more than 0 s".into(), used, used_ns.is_some_and(|ns| ns > 0)),
        check(m.member, "affinity", ranges(&m.asked_cores), cores, m.cores.as_ref() == Some(&m.asked_cores)),
    ];
    if let Some(nodes) = &m.asked_memory_nodes {
        let asked = memory_policy::text(nodes);
        let holds = m.memory_policy.as_ref() == Some(&asked);
        found.push(check(m.member, "NUMA memory policy", asked, m.memory_policy.clone(), holds));
    }
    // A workload without a notion of threads does not say any; that is no contradiction.
    if let Some(threads) = m.hello.as_ref().and_then(|hello| hello.threads) {
        let (asked, holds) = (m.asked_threads.to_string(), threads == m.asked_threads);
        found.push(check(m.member, "intra-op threads", asked, Some(threads.to_string()), holds));
    }
    found
}

/// Whether a member that was to train on a GPU found none: CUDA cannot be used.
pub fn found_cpu(attestation: &Attestation) -> bool {
    attestation.checks.iter().any(|check| !check.holds && check.found.as_deref() == Some("cpu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> InForce {
        InForce {
            member: 0,
            pids: vec![7],
            process: None,
            hello: None,
            cpu_ns_before: Some(5),
            cpu_ns_now: Some(9),
            cores: Some(vec![0, 1]),
            asked_cores: vec![0, 1],
            asked_threads: 1,
            asked_memory_nodes: None,
            memory_policy: None,
        }
    }

    fn verdict(m: InForce) -> AttestationVerdict {
        on_cpu(&[member(), m]).verdict
    }

    #[test]
    fn a_member_that_used_the_cpu_where_it_should_is_attested() {
        assert_eq!(verdict(member()), AttestationVerdict::Attested);
    }

    #[test]
    fn one_member_without_evidence_takes_it_from_all() {
        assert_eq!(verdict(InForce { cpu_ns_now: Some(5), ..member() }), AttestationVerdict::Absent);
        assert_eq!(verdict(InForce { cpu_ns_now: None, ..member() }), AttestationVerdict::Absent);
        assert_eq!(verdict(InForce { cores: Some(vec![0]), ..member() }), AttestationVerdict::Absent);
        assert_eq!(verdict(InForce { pids: vec![], ..member() }), AttestationVerdict::Absent);
    }

    #[test]
    fn memory_that_is_to_be_bound_is_bound_to_those_nodes_and_no_others() {
        let bound = |policy: Option<&str>| {
            let policy = policy.map(str::to_string);
            verdict(InForce { asked_memory_nodes: Some(vec![0, 1]), memory_policy: policy, ..member() })
        };
        assert_eq!(bound(Some("bind:0-1")), AttestationVerdict::Attested);
        for other in [Some("bind:0"), Some("prefer:0"), Some("default"), None] {
            assert_eq!(bound(other), AttestationVerdict::Absent, "{other:?}");
        }
    }

    #[test]
    fn what_a_member_sees_itself_must_agree() {
        let hello = |device: &str, threads| {
            let text = format!(r#"{{"protocol":1,"pid":7,"device":"{device}","threads":{threads}}}"#);
            Some(serde_json::from_str(&text).unwrap())
        };
        assert_eq!(verdict(InForce { hello: hello("cpu", "1"), ..member() }), AttestationVerdict::Attested);
        assert_eq!(verdict(InForce { hello: hello("cpu", "null"), ..member() }), AttestationVerdict::Attested);
        assert_eq!(verdict(InForce { hello: hello("cpu", "2"), ..member() }), AttestationVerdict::Absent);
        assert_eq!(verdict(InForce { hello: hello("GPU-1", "1"), ..member() }), AttestationVerdict::Absent);
    }
}
