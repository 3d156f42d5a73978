use super::*;
use collo_launch::protocol::Hello;
use std::path::PathBuf;

use collo_device::mps::{Control, Logged, ReportedLimit};

const GPU: &str = "GPU-00000000-aaaa";

fn hello(device: &str, sms: u32) -> Option<Hello> {
    let text = format!(r#"{{"protocol":1,"pid":7,"device":"{device}","sm_count":{sms},"threads":1}}"#);
    Some(serde_json::from_str(&text).unwrap())
}

fn member(number: usize, pid: u32, device: &str, sms: u32) -> InForce {
    InForce {
        member: number,
        pids: vec![pid],
        process: None,
        hello: hello(device, sms),
        cpu_ns_before: Some(5),
        cpu_ns_now: Some(9),
        cores: Some(vec![0, 1]),
        asked_cores: vec![0, 1],
        asked_threads: 1,
        asked_memory_nodes: None,
        memory_policy: None,
    }
}

fn whole() -> Visible {
    Visible { uuid: GPU.into(), sms: Some(108), gpu_instance: None, compute_instance: None, daemon: None, percent: None }
}

fn card(devices: Vec<Visible>, mig: bool) -> StagedCard {
    StagedCard {
        label: "GPU 0".into(),
        uuid: GPU.into(),
        sms: Some(108),
        mig,
        devices,
        daemons: Vec::new(),
        empty: PathBuf::new(),
        foreign: false,
        thread_limit_percent: None,
        memory_limit_bytes: None,
        own_memory_limits: false,
    }
}

fn on_card(pids: &[u32]) -> Seen {
    let computing = |pid: &u32| Computing { pid: *pid, gpu_instance: None, compute_instance: None };
    Seen {
        computing: Some(pids.iter().map(computing).collect()),
        mps_clients: Some(BTreeSet::new()),
        mig: Some(false),
        ..Seen::default()
    }
}

/// A pid that does not exist on this system.
const NOBODY: u32 = 4_200_000_000;

fn two() -> Vec<InForce> {
    vec![member(0, NOBODY, GPU, 108), member(1, NOBODY + 1, GPU, 108)]
}

fn naive(seen: &Seen, members: &[InForce]) -> Attestation {
    judge(seen, &card(vec![whole(), whole()], false), members)
}

/// The first check that fails.
fn unmet(a: &Attestation) -> Option<&str> {
    a.checks.iter().find(|c| !c.holds).map(|c| c.what.as_str())
}

#[test]
fn members_on_the_card_by_themselves_are_attested() {
    let a = naive(&on_card(&[NOBODY, NOBODY + 1]), &two());
    assert_eq!((a.verdict, unmet(&a)), (AttestationVerdict::Attested, None));
}

#[test]
fn a_descendant_of_a_member_counts_as_the_member() {
    let mut members = two();
    members[0].pids = vec![NOBODY + 8, NOBODY];
    assert_eq!(naive(&on_card(&[NOBODY, NOBODY + 1]), &members).verdict, AttestationVerdict::Attested);
}

#[test]
fn a_member_that_the_driver_does_not_list_takes_the_evidence_from_all() {
    let a = naive(&on_card(&[NOBODY]), &two());
    assert_eq!((a.verdict, unmet(&a)), (AttestationVerdict::Absent, Some("process in the driver's list")));
    let none = Seen { computing: None, ..on_card(&[]) };
    assert_eq!(naive(&none, &two()).verdict, AttestationVerdict::Absent, "a list that could not be read is no evidence");
}

#[test]
fn naive_members_must_not_be_clients_of_any_daemon() {
    let seen = Seen { mps_clients: Some(BTreeSet::from([NOBODY])), ..on_card(&[NOBODY, NOBODY + 1]) };
    let a = naive(&seen, &two());
    assert_eq!((a.verdict, unmet(&a)), (AttestationVerdict::Absent, Some("client of an MPS server")));
    let old = Seen { mps_clients: None, ..on_card(&[NOBODY, NOBODY + 1]) };
    assert_eq!(naive(&old, &two()).verdict, AttestationVerdict::Attested, "an empty folder is the evidence then");
    let trap = Seen { daemon_in_the_way: true, ..old };
    assert_eq!(naive(&trap, &two()).verdict, AttestationVerdict::Absent);
}

#[test]
fn under_mps_every_member_is_on_the_client_list_of_its_own_server() {
    let served = || Visible { daemon: Some(0), ..whole() };
    let card = card(vec![served(), served()], false);
    let seen = |clients: Option<&[u32]>| Seen {
        clients: vec![clients.map(|c| c.iter().copied().collect())],
        servers: BTreeSet::from([77]),
        ..on_card(&[NOBODY, NOBODY + 1, 77])
    };
    assert_eq!(judge(&seen(Some(&[NOBODY, NOBODY + 1])), &card, &two()).verdict, AttestationVerdict::Attested);
    let a = judge(&seen(Some(&[NOBODY])), &card, &two());
    assert_eq!((a.verdict, unmet(&a)), (AttestationVerdict::Absent, Some("on the MPS server's client list")));
    let lacking: Vec<Option<u32>> = a.checks.iter().filter(|c| !c.holds).map(|c| c.member).collect();
    assert_eq!(lacking, [Some(1)], "the one that ran without is named");
    assert_eq!(judge(&seen(None), &card, &two()).verdict, AttestationVerdict::Absent, "a daemon that is silent");
}

#[test]
fn a_limit_of_threads_shows_in_the_sms_that_a_member_sees() {
    let verdict = |sms: u32, percent| {
        let card = card(vec![Visible { percent, ..whole() }], false);
        judge(&on_card(&[NOBODY]), &card, &[member(0, NOBODY, GPU, sms)]).verdict
    };
    assert_eq!(verdict(54, Some(50)), AttestationVerdict::Attested);
    assert_eq!(verdict(108, Some(50)), AttestationVerdict::Absent, "the limit was not in force");
    assert_eq!(verdict(54, None), AttestationVerdict::Absent, "a limit that nobody asked for");
    assert_eq!(verdict(1, Some(1)), AttestationVerdict::Attested);
}

/// A GPU with one daemon, whose clients have half of the threads and 4 GB.
fn limited() -> StagedCard {
    let mut card = card(vec![Visible { daemon: Some(0), percent: Some(50), ..whole() }], false);
    card.daemons.push(MpsDaemon { control: Control::at("/nowhere"), log: PathBuf::new(), devices: 1 });
    card.memory_limit_bytes = Some(4_000_000_000);
    card.thread_limit_percent = Some(50);
    card
}

fn of_limits(card: &StagedCard, reported: Option<ReportedLimit>, logged: Logged) -> Attestation {
    let clients = vec![Some(BTreeSet::from([NOBODY]))];
    let memory_limits = vec![reported.into_iter().map(|limit| (0, limit)).collect()];
    let seen = Seen { clients, memory_limits, logged: vec![logged], ..on_card(&[NOBODY]) };
    judge(&seen, card, &[member(0, NOBODY, GPU, 54)])
}

fn logged(percent: f64, memory: &[(u32, u64)]) -> Logged {
    Logged {
        active_thread_percent: Some(percent),
        memory_limit_bytes: memory.iter().map(|(device, mib)| (*device, mib << 20)).collect(),
        ..Logged::default()
    }
}

fn found_limit(a: &Attestation) -> Option<String> {
    a.checks.iter().find(|c| c.what == MEMORY_LIMIT).and_then(|c| c.found.clone())
}

#[test]
fn a_limit_that_the_server_logged_needs_no_reading_back() {
    let card = limited();
    let exact = of_limits(&card, None, logged(50.0, &[(0, 3814)]));
    assert_eq!(exact.verdict, AttestationVerdict::Attested);
    assert_eq!(found_limit(&exact).as_deref(), Some("3814 MiB, its server logged"));
    assert_eq!(unmet(&of_limits(&card, None, logged(50.0, &[(0, 3072)]))), Some(MEMORY_LIMIT));
    assert_eq!(unmet(&of_limits(&card, None, logged(100.0, &[(0, 3814)]))), Some("active threads that the MPS server logged"));
}

#[test]
fn a_thread_limit_of_which_neither_the_log_nor_the_member_shows_anything_is_not_found() {
    let script = InForce { hello: None, ..member(0, NOBODY, GPU, 54) };
    let on = |common: bool, log: Logged, member: &InForce| {
        let card = StagedCard { thread_limit_percent: common.then_some(50), memory_limit_bytes: None, ..limited() };
        let seen = Seen { clients: vec![Some(BTreeSet::from([NOBODY]))], logged: vec![log], ..on_card(&[NOBODY]) };
        let attestation = judge(&seen, &card, std::slice::from_ref(member));
        assert_eq!(attestation.verdict, AttestationVerdict::Attested);
        attestation.checks.iter().any(|check| check.what == THREAD_LIMIT && check.found.is_none())
    };
    assert!(on(true, Logged::default(), &script) && on(false, logged(100.0, &[]), &script));
    assert!(!on(true, logged(50.0, &[]), &script), "the server logged it");
    assert!(!on(false, logged(100.0, &[]), &member(0, NOBODY, GPU, 54)), "the member sees its SMs");
}

#[test]
fn strangers_between_the_looks_count_as_those_that_a_look_finds() {
    let found = |foreign: bool, strangers: &[&str]| {
        let card = StagedCard { foreign, ..card(vec![whole()], false) };
        let mut attestation = judge(&on_card(&[NOBODY]), &card, &[member(0, NOBODY, GPU, 108)]);
        assert_eq!(attestation.verdict, AttestationVerdict::Attested);
        add_strangers(&mut attestation, &strangers.iter().map(|name| name.to_string()).collect::<Vec<_>>());
        let check = attestation.checks.iter().find(|check| check.what == OTHERS).expect("it is checked");
        (attestation.verdict, check.holds, check.found.clone().expect("found"))
    };
    assert_eq!(found(false, &[]), (AttestationVerdict::Attested, true, "none".into()));
    assert_eq!(
        found(false, &["`a` (pid 1)", "`b` (pid 2)"]),
        (AttestationVerdict::Absent, false, "`a` (pid 1), `b` (pid 2)".into())
    );
    assert_eq!(found(true, &["`a` (pid 1)"]), (AttestationVerdict::Attested, true, "`a` (pid 1)".into()));
}

#[test]
fn a_daemon_on_two_devices_must_limit_memory_on_both() {
    let mut card = limited();
    card.daemons[0].devices = 2;
    assert_eq!(of_limits(&card, None, logged(50.0, &[(0, 3814), (1, 3814)])).verdict, AttestationVerdict::Attested);
    assert_eq!(unmet(&of_limits(&card, None, logged(50.0, &[(0, 3814), (1, 40000)]))), Some(MEMORY_LIMIT));
    let half = of_limits(&card, None, logged(50.0, &[(0, 3814)]));
    assert_eq!((found_limit(&half), unmet(&half)), (None, None), "of the second nothing is known: the run is indicative");
}

#[test]
fn a_member_on_no_client_list_is_explained_by_what_the_daemon_logged() {
    let seen = Seen {
        clients: vec![Some(BTreeSet::new())],
        trouble: vec![Some("Failed to start : no CUDA-capable device is detected".into())],
        ..on_card(&[NOBODY])
    };
    let card = card(vec![Visible { daemon: Some(0), ..whole() }], false);
    let a = judge(&seen, &card, &[member(0, NOBODY, GPU, 108)]);
    let check = a.checks.iter().find(|c| c.what == "on the MPS server's client list").expect("it is checked");
    assert!(!check.holds);
    assert_eq!(check.found.as_deref(), Some("no; it logged `Failed to start : no CUDA-capable device is detected`"));
}

#[test]
fn what_a_member_sees_comes_before_what_others_say_of_it() {
    let elsewhere = [member(0, NOBODY, GPU, 108), member(1, NOBODY + 1, "cpu", 0)];
    let a = naive(&on_card(&[NOBODY]), &elsewhere);
    assert_eq!(unmet(&a), Some("device as it sees it"), "and not the driver's list, where nobody expects it");
    let refused = evidence::misplaced(Some(&card(vec![whole(), whole()], false)), 1, elsewhere[1].hello.as_ref().unwrap());
    let said = evidence::words(&refused.expect("it is on the CPU"));
    assert_eq!(said, "device as it sees it of member 1: asked GPU-00000000-aaaa, found cpu");
    let right = evidence::misplaced(Some(&card(vec![whole(), whole()], false)), 0, elsewhere[0].hello.as_ref().unwrap());
    assert_eq!(right, None);
}

#[test]
fn a_memory_limit_must_be_the_one_that_was_asked_for_where_the_daemon_reports_it() {
    let card = limited();
    let judged = |bytes: u64, whole_gib: bool| of_limits(&card, Some(ReportedLimit { bytes, whole_gib }), Logged::default());
    assert_eq!(judged(3814 << 20, false).verdict, AttestationVerdict::Attested);
    let cut = judged(3 << 30, true);
    assert_eq!(cut.verdict, AttestationVerdict::Attested, "3814 MiB read back as 3G");
    assert_eq!(found_limit(&cut).as_deref(), Some("3 whole GiB"));
    assert_eq!(unmet(&judged(4 << 30, true)), Some(MEMORY_LIMIT));
    assert_eq!(unmet(&judged(0, false)), Some(MEMORY_LIMIT));
    let unread = of_limits(&card, None, Logged::default());
    assert_eq!(unread.verdict, AttestationVerdict::Attested, "the run is lowered elsewhere");
    assert!(unread.checks.iter().any(|c| c.what == MEMORY_LIMIT && c.found.is_none()));
}

#[test]
fn on_a_slice_the_instance_the_device_and_its_sms_must_agree() {
    let slice = Visible {
        uuid: "MIG-1111".into(),
        sms: Some(14),
        gpu_instance: Some(9),
        compute_instance: Some(0),
        daemon: None,
        percent: None,
    };
    let card = card(vec![slice], true);
    let seen = |gi: u32| Seen {
        computing: Some(vec![Computing { pid: NOBODY, gpu_instance: Some(gi), compute_instance: Some(0) }]),
        mig: Some(true),
        ..on_card(&[])
    };
    let verdict = |gi, device: &str, sms| judge(&seen(gi), &card, &[member(0, NOBODY, device, sms)]).verdict;
    assert_eq!(verdict(9, "MIG-1111", 14), AttestationVerdict::Attested);
    assert_eq!(verdict(9, "GPU-1111", 14), AttestationVerdict::Attested, "the prefix is the script's");
    assert_eq!(verdict(9, GPU, 14), AttestationVerdict::Attested, "CUDA may show the card's digits; then the SMs tell");
    assert_eq!(verdict(8, "MIG-1111", 14), AttestationVerdict::Absent, "another instance");
    assert_eq!(verdict(9, "MIG-2222", 14), AttestationVerdict::Absent, "another device");
    assert_eq!(verdict(9, GPU, 108), AttestationVerdict::Absent, "the whole card");
    let off = Seen { mig: Some(false), ..seen(9) };
    assert_eq!(judge(&off, &card, &[member(0, NOBODY, "MIG-1111", 14)]).verdict, AttestationVerdict::Absent);
}

#[test]
fn somebody_else_on_the_card_is_named_and_discards_unless_it_was_allowed() {
    let own = std::process::id();
    let a = naive(&on_card(&[NOBODY, NOBODY + 1, own]), &two());
    assert_eq!((a.verdict, unmet(&a)), (AttestationVerdict::Absent, Some(OTHERS)));
    let mut card = card(vec![whole(), whole()], false);
    card.foreign = true;
    let a = judge(&on_card(&[NOBODY, NOBODY + 1, own]), &card, &two());
    assert_eq!(a.verdict, AttestationVerdict::Attested);
    let found = a.checks.iter().find(|c| c.what == OTHERS).and_then(|c| c.found.clone()).unwrap();
    assert!(found.contains(&own.to_string()), "{found}");
}

#[test]
fn pids_that_a_container_hides_leave_counts_and_nothing_more() {
    let strangers = [NOBODY + 50, NOBODY + 51];
    let a = naive(&on_card(&strangers), &two());
    assert_eq!(a.verdict, AttestationVerdict::CountsOnly);
    assert_eq!(naive(&on_card(&strangers[..1]), &two()).verdict, AttestationVerdict::Absent, "one is missing");
}
