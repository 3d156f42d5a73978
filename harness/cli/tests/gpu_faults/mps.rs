//! MPS as it answers on real machines: control programs that do not read, logs with harmless complaints, lists that are closed, daemons
//! that take their time; and members that train somewhere else than they were asked to.

use std::io::Read;
use std::process::Stdio;

use collo_store::{AttestationVerdict, Outcome, StoredRun, Verdict};

use super::{CUT, MIG, MPS, NAIVE, two};
use crate::gpu_faults::looks::is_told;
use crate::gpu_faults::row::{Row, all, hold, row};
use crate::sim::Machine;
use crate::support::{Answer, epochs, events, wait_for};

const EACH: &str = "[axes]\nworkload = \"small\"\nsharing = [\"mps:50%\", \"mps:25%,mem=4GB\"]\ndegree = 2";
const MEMORY: &str = "[axes]\nworkload = \"small\"\nsharing = \"mps:50%,mem=4GB\"\ndegree = 2";
const INSIDE: &str = "mig:2×3g.20gb+mps";

fn runs(machine: &Machine, sharing: &str) -> Vec<StoredRun> {
    machine.bench.runs().into_values().filter(|r| r.record.cell.sharing == sharing).collect()
}

fn every(machine: &Machine, sharing: &str, look: impl Fn(&StoredRun) -> Result<(), String>) -> Result<(), String> {
    let found = runs(machine, sharing);
    hold(!found.is_empty(), || format!("no run of {sharing}"))?;
    found.iter().try_for_each(look)
}

/// Bits of `SigIgn` of a process.
fn ignores_broken_pipes(pid: u32) -> Option<bool> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let bits = status.lines().find_map(|l| l.strip_prefix("SigIgn:"))?;
    let bits = u64::from_str_radix(bits.trim(), 16).ok()?;
    // SIGPIPE is 13, and bit 0 is signal 1.
    Some(bits >> 12 & 1 == 1)
}

#[test]
fn a_control_program_that_ends_without_reading_does_not_end_collo() {
    let machine = Machine::new("a100-40gb,mps-slow=300ms", &format!("epochs = 4\n{MPS}"));
    let mut running = machine.start(&[]);
    let collo = running.pid();
    wait_for("a campaign", || (machine.bench.campaigns() > 0).then_some(()));
    assert_eq!(ignores_broken_pipes(collo), Some(true), "collo dies where somebody does not read");
    running.ends().exits(0);
    machine.bench.nothing_is_left(std::time::Duration::from_secs(60));
    let slow = |name, delay: &str| row(name, format!("a100-40gb,mps-slow={delay}"), MPS);
    all(vec![
        slow("the daemon answers after 0.3 s", "300ms"),
        slow("the daemon answers after 1 s", "1s"),
        slow("the daemon answers after 3 s", "3s"),
        row("two daemons inside instances answer late", "a100-40gb,mps-slow=400ms", two(INSIDE).replace("= 2", "= 4")),
    ]);
}

#[test]
fn a_reader_that_has_seen_enough_ends_nothing_but_the_text() {
    let machine = Machine::new("a100-40gb", NAIVE);
    let quiet = |arguments: &[&str]| {
        let mut command = machine.bench.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("collo starts");
        // Nobody reads: the first line already finds the pipe closed.
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        (child.wait().expect("it ends").code(), said)
    };
    for arguments in
        [&["list", "layouts"][..], &["list", "modes"], &["schema", "experiment"], &["completions", "bash"], &["--help"]]
    {
        let (code, said) = quiet(arguments);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{arguments:?}");
    }
    let mut command = machine.bench.command(&["run", "x", "--no-report"]);
    let mut campaign = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("collo starts");
    drop(campaign.stderr.take());
    assert_eq!(campaign.wait().expect("it ends").code(), Some(0), "a campaign outlives the one who read of it");
    assert_eq!(machine.bench.runs().len(), machine.bench.campaign().manifest().plan.order.len());
}

#[test]
fn a_result_that_cannot_be_written_is_an_error_and_no_panic() {
    let machine = Machine::new("a100-40gb", NAIVE);
    let full = std::fs::File::options().write(true).open("/dev/full").expect("every Linux has it");
    let answer = Answer::from(machine.bench.command(&["list", "modes"]).stdout(full).output().expect("collo starts"));
    answer.exits(3).says("the result cannot be written");
}

/// The logs of the daemon complain of every command, as healthy ones do; that is in no message.
fn no_harmless_word(machine: &Machine, answer: &Answer) -> Result<(), String> {
    let text = format!("{}{}{}", answer.stdout, answer.stderr, crate::gpu_faults::row::told(machine));
    hold(!text.contains("valid credentials"), || format!("a harmless line is blamed: {text}"))?;
    let logs: Vec<String> =
        machine.bench.runs().values().filter_map(|r| std::fs::read_to_string(r.path.join("mps/daemon.log")).ok()).collect();
    hold(logs.iter().any(|l| l.contains("valid credentials")), || "the daemon's log is too friendly".into())
}

/// The server served before its first client came, in every run under MPS.
fn serves_first(machine: &Machine, _: &Answer) -> Result<(), String> {
    every(machine, "mps", |run| {
        let log = std::fs::read_to_string(run.path.join("mps/daemon.log")).map_err(|e| e.to_string())?;
        let (served, came) = (log.find("Server has started"), log.find("NEW CLIENT"));
        hold(served.is_some() && came.is_some() && served < came, || format!("a client came before its server served: {log}"))
    })
}

/// The drivers in whose words MPS answers.
const DRIVERS: [&str; 4] = ["535", "550", "555", "580"];

#[test]
fn what_a_daemon_logs_is_blamed_only_where_it_is_to_blame() {
    let row_under = |name, word: String| row(name, format!("a100-40gb,mps-no-credentials{word}"), MPS).looks(no_harmless_word);
    let at = |name, word: String| row_under(name, word).once_opened().exits(1);
    // Whatever the driver reports of its servers, the log names the client at fault.
    let faults = DRIVERS.map(|driver| {
        let fault = at("the server is in FAULT", format!(",mps={driver},mps-fault@200ms"));
        fault
            .ends("mps", "mode_lost")
            .says("the MPS server is in FAULT; it logged `Client process ")
            .says("encountered a fatal GPU error")
    });
    all(faults.into());
    all(vec![
        at("the daemon dies", ",mps-dies@200ms".into()).ends("mps", "mode_lost").says("the MPS daemon ended while members ran"),
        row_under("a healthy daemon", String::new()),
        row("a server that takes its time", "a100-40gb,mps-server-slow=700ms", MPS).looks(serves_first),
        row("no server can start, and its log gives the reason", "a100-40gb,mps-no-server", MPS)
            .exits(1)
            .ends("mps", "not_staged")
            .says("no MPS server can start; it logged `Failed to start : no CUDA-capable device is detected`"),
        row("a daemon that does not start says why", "a100-40gb,mps-no-start", MPS)
            .exits(1)
            .ends("mps", "not_staged")
            .says("MPS control daemon failed to start"),
    ]);
}

/// Runs with a limit of memory are valid, and the limit stands in the evidence.
fn limit_is_attested(machine: &Machine, _: &Answer) -> Result<(), String> {
    every(machine, "mps:50%,mem=4GB", |run| {
        let r = &run.record;
        let check = r.attestation.checks.iter().find(|c| c.what.starts_with("memory limit"));
        let found = check.and_then(|c| c.found.clone()).unwrap_or_default();
        hold(found == "3814 MiB, its server logged", || format!("{check:?}"))?;
        hold(r.validity.verdict == Verdict::Valid, || format!("{:?}", r.validity))?;
        let threads = r.attestation.checks.iter().find(|c| c.what.starts_with("active threads"));
        hold(threads.is_some_and(|c| c.holds && c.found.as_deref() == Some("50 %")), || format!("{threads:?}"))
    })
}

#[test]
fn limits_are_proven_by_what_the_server_wrote_down() {
    let drivers = DRIVERS.map(|driver| row("logged", format!("a100-40gb,mps={driver}"), MEMORY).looks(limit_is_attested));
    all(drivers.into());
    all(vec![
        row("limits for each of a mixed group", "a100-40gb", EACH),
        row("MPS in instances", "a100-40gb", two("mig:2×3g.20gb+mps").replace("= 2", "= 4")),
    ]);
}

#[test]
fn clients_are_found_in_whichever_list_they_are() {
    all(vec![
        row("only in the MPS list of their instance", "a100-40gb,mps-list-only", two(INSIDE).replace("= 2", "= 4")),
        row("the parent is closed, without MPS", "a100-40gb,mps-list-only", MIG),
        row("the parent is closed, on a whole card", "a100-40gb,mps-list-only", MPS),
        row(
            "the parent is closed, and one does not attach",
            "a100-40gb,mps-list-only,mps-no-attach=1",
            two(INSIDE).replace("= 2", "= 4"),
        )
        .exits(1)
        .ends(INSIDE, "mode_lost")
        .says("on the MPS server's client list of member 1"),
    ]);
}

/// Nothing was measured of such a group: it ended at `hello`.
fn refused_at_hello(machine: &Machine, _: &Answer) -> Result<(), String> {
    let lost: Vec<StoredRun> =
        machine.bench.runs().into_values().filter(|r| matches!(r.record.outcome, Outcome::ModeLost { .. })).collect();
    hold(!lost.is_empty(), || "nothing was refused".into())?;
    lost.iter().try_for_each(|run| {
        let r = &run.record;
        hold(r.timeline.go_ns.is_none(), || "`go` was given".into())?;
        hold(epochs(run).is_empty(), || "epochs are stored".into())?;
        hold(r.attestation.verdict == AttestationVerdict::Absent, || format!("{:?}", r.attestation.verdict))?;
        let first = r.attestation.checks.iter().find(|c| !c.holds);
        hold(first.is_some_and(|c| c.what == "device as it sees it"), || format!("{:?}", r.attestation.checks))
    })
}

#[test]
fn a_member_on_another_device_than_it_was_given_is_refused_before_it_trains() {
    let on =
        |name, words: &str, toml: &str| -> Row { row(name, format!("a100-40gb,{words}"), toml).exits(1).looks(refused_at_hello) };
    all(vec![
        on("one trains on the CPU", "no-cuda=1", NAIVE)
            .ends("naive", "mode_lost")
            .says("device as it sees it of member 1: asked GPU-")
            .says("found cpu"),
        on("all train on the CPU", "no-cuda", NAIVE).ends("solo", "mode_lost").ends("naive", "mode_lost").says("found cpu"),
        on("one trains on the CPU under MPS", "no-cuda=0", MPS)
            .ends("solo", "mode_lost")
            .ends("mps", "mode_lost")
            .says("device as it sees it of member 0"),
        on("one of an instance trains on the CPU", "no-cuda=1", MIG).ends(CUT, "mode_lost").says("found cpu"),
        on("one trains on another card", "wrong-device=1", NAIVE)
            .ends("naive", "mode_lost")
            .says("found GPU-00000000-0000-5000-8000-000000000000"),
        on("one trains on another card than its instance", "wrong-device=1", MIG).ends(CUT, "mode_lost"),
    ]);
}

/// Everything was heard when it was said: the loop that watches was never held up.
fn heard_at_once(machine: &Machine, _: &Answer) -> Result<(), String> {
    every(machine, "mps", |run| {
        let late = |e: &serde_json::Value| {
            let said = &e["said"];
            let spoken = (said["event"] == "epoch").then(|| said["end_ns"].as_u64()).flatten()?;
            Some(e["at_ns"].as_u64()?.saturating_sub(spoken) as f64 / 1e9)
        };
        let latest = events(run).iter().filter_map(late).fold(0.0, f64::max);
        hold(latest < 0.5, || format!("an epoch was heard {latest:.2} s after it ended"))
    })
}

#[test]
fn gathering_evidence_holds_nothing_up_and_its_moment_is_inside_the_window() {
    let slow = |name, words: &str, toml: &str| row(name, format!("a100-40gb,{words}"), toml).looks(heard_at_once);
    let release = format!("epochs = 2\nafter_measured = \"exit\"\n{MPS}");
    all(vec![
        slow("a control program that takes 0.7 s", "slow-control=700ms", MPS),
        slow("a control program that takes 2 s", "slow-control=2s", MPS),
        slow("the driver takes 1 s to open", "slow-nvml=1s", MPS),
        slow("who is done leaves", "slow-control=300ms", &release.replace("epochs = 2", "epochs = 12")),
        slow("activity is sampled meanwhile", "slow-control=1s,noise=0,seed=1", MPS)
            .once_dcgm_prints()
            .env("COLLO_SIM_EPOCH_S", "0.5")
            .looks(is_told),
    ]);
}

#[test]
fn no_program_of_mps_gets_the_protocol_version_of_the_surroundings() {
    let machine = Machine::new("a100-40gb", &format!("epochs = 1\n{MPS}"));
    let real = crate::sim::program("nvidia-cuda-mps-control");
    let noted = "echo \"$# ${CUDA_MPS_PROTOCOL_VERSION-none}\" >> \"$NOTED\"";
    machine.bench.write("wrapped/nvidia-cuda-mps-control", &format!("#!/bin/sh\n{noted}\nexec {} \"$@\"\n", real.display()));
    let wrapper = machine.bench.at("wrapped/nvidia-cuda-mps-control");
    fs_err::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    let folders = [&wrapper, &real].map(|program| program.parent().expect("its folder").display().to_string());
    let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
    let file = machine.bench.at("noted").display().to_string();
    let machine = machine.env("PATH", &path).env("NOTED", &file).env("CUDA_MPS_PROTOCOL_VERSION", "3");
    machine.run(&[]).exits(0);
    let noted = fs_err::read_to_string(&file).expect("it ran");
    let of = |arguments: &str| noted.lines().filter(|line| line.starts_with(arguments)).count();
    assert!(of("1 none") >= 1 && of("0 none") >= 2, "the daemon, with one argument, and the front end, without: {noted}");
    assert_eq!(of("1 none") + of("0 none"), noted.lines().count(), "{noted}");
}

const APART: &str = "limits = { small = \"20%,mem=4GB\", medium = \"50%\" }\n[[group]]\n\
    members = [{ workload = \"small\" }, { workload = \"medium\" }]\nsharing = [\"mps:each\"]";

#[test]
fn a_daemon_that_takes_its_time_and_does_something_else_wrong_is_judged_by_that() {
    let slow = |name, words: &str| row(name, format!("a100-40gb,slow-control=300ms,{words}"), MPS);
    all(vec![
        slow("slow, and in FAULT", "mps-fault@200ms").once_opened().exits(1).ends("mps", "mode_lost").says("fatal GPU error"),
        slow("slow, and dies", "mps-dies@200ms").once_opened().exits(1).ends("mps", "mode_lost").says("MPS daemon"),
        slow("slow, and does not go", "mps-hang"),
        slow("slow, and one does not attach", "mps-no-attach=1")
            .exits(1)
            .ends("mps", "mode_lost")
            .says("on the MPS server's client list of member 1"),
        slow("slow, and the card is lost", "lost@400ms")
            .once_opened()
            .exits(4)
            .ends("mps", "device_lost")
            .and_repaired_under("a100-40gb"),
        slow("slow, and a member crashes", "crash=1@200ms").once_opened().exits(1).ends("mps", "crashed"),
        slow("slow, and only the server uses the card", "noise=0").with(&["--exclusive"]),
        row("slow, and each has limits of its own", "a100-40gb,slow-control=300ms", format!("epochs = 8\n{APART}")),
        row("each has limits of its own, and one trains on the CPU", "a100-40gb,no-cuda=1", APART)
            .exits(1)
            .ends("mps:each", "mode_lost")
            .says("device as it sees it of member 1"),
    ]);
}
