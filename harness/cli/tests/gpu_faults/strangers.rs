//! Other users of the machine: their collos on the same card, what they write down, and where they let root stand.
//!
//! The other user is `nobody`, so most of this needs root; elsewhere it is another state folder of the same user.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use collo_device::lease::{Journal, SCHEMA};
use collo_gpus::partition::Partition;

use super::{BLOCKED, HALVES, MIG, MPS, NAIVE};
use crate::gpu_faults::row::{Scenario, all, all_of, hold, nothing_lies_about, row};
use crate::sim::Machine;
use crate::support::skip::skip;
use crate::support::{Answer, wait_for};

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Whether `nobody` can start what is tested: the checkout may lie in root's own home.
fn can_be_nobody() -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_collo"));
    let started = is_root() && command.arg("--version").uid(NOBODY).gid(NOBODY).stdout(Stdio::null()).status().is_ok();
    if !started {
        skip("nobody", "nobody else can start collo here");
    }
    started
}

fn give_to_nobody(path: &Path) {
    let status = Command::new("chown").arg("-Rh").arg(format!("{NOBODY}:{NOBODY}")).arg(path).status();
    assert!(status.expect("chown").success());
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
}

/// A journal that reads well and asks for this folder to be taken away.
fn journal(machine: &Machine, daemon: &Path) -> String {
    let journal = Journal {
        schema: SCHEMA,
        uuid: machine.uuid(0),
        label: "GPU 0".into(),
        name: "NVIDIA A100-SXM4-40GB".into(),
        simulated: true,
        experiment: "x".into(),
        campaign: "20261120-0210-c41d".into(),
        process: 1,
        since_utc: "2026-11-20T02:10:41Z".into(),
        found: Partition::off(),
        daemons: vec![daemon.into()],
        ..Journal::default()
    };
    serde_json::to_string(&journal).expect("JSON")
}

/// A state folder with such a journal, and the folder that it asks for, which is not empty.
fn planted(machine: &Machine) -> (PathBuf, PathBuf) {
    let victim = machine.bench.at("victim");
    std::fs::create_dir_all(victim.join("work")).expect("a folder");
    std::fs::create_dir_all(machine.state()).expect("a folder");
    mode(&machine.state(), 0o700);
    let file = machine.state().join(format!("{}.json", machine.uuid(0)));
    std::fs::write(&file, journal(machine, &victim)).expect("written");
    mode(&file, 0o600);
    (file, victim)
}

/// Every verb that would act on it refuses, and nothing is touched.
fn is_refused(machine: &Machine, victim: &Path, why: &str) -> Result<(), String> {
    let found = machine.cards();
    for arguments in [&["run", "x", "--no-report"][..], &["restore"], &["mig", "apply", "sevenths"]] {
        let answer = machine.collo(arguments);
        hold(answer.code == Some(BLOCKED) && answer.stderr.contains(why), || format!("{arguments:?}: {answer:?}"))?;
    }
    let status = machine.collo(&["status"]);
    hold(status.code == Some(4) && status.stderr.contains(why), || format!("{status:?}"))?;
    hold(victim.join("work").exists(), || "somebody's folder is gone".into())?;
    hold(machine.cards() == found, || "the card was changed".into())
}

fn asks_for_a_folder() -> Result<(), String> {
    let machine = Machine::new("a100-40gb", NAIVE);
    let (file, victim) = planted(&machine);
    is_refused(&machine, &victim, "is not the folder of an MPS daemon of collo")?;
    hold(file.exists(), || "the journal is gone".into())
}

fn folder_of_a_stranger() -> Result<(), String> {
    let machine = Machine::new("a100-40gb", NAIVE);
    let (_, victim) = planted(&machine);
    give_to_nobody(&machine.state());
    is_refused(&machine, &victim, "state belongs to `nobody`")
}

fn file_of_a_stranger() -> Result<(), String> {
    let machine = Machine::new("a100-40gb", NAIVE);
    let (file, victim) = planted(&machine);
    give_to_nobody(&file);
    is_refused(&machine, &victim, ".json belongs to `nobody`")
}

fn folder_that_is_open() -> Result<(), String> {
    let machine = Machine::new("a100-40gb", NAIVE);
    let (_, victim) = planted(&machine);
    mode(&machine.state(), 0o777);
    is_refused(&machine, &victim, "everyone may write in")
}

fn link_of_a_stranger() -> Result<(), String> {
    let machine = Machine::new("a100-40gb", NAIVE);
    let (_, victim) = planted(&machine);
    let real = machine.bench.at("elsewhere");
    std::fs::rename(machine.state(), &real).expect("moved");
    symlink(&real, machine.state()).expect("a link");
    give_to_nobody(&machine.state());
    is_refused(&machine, &victim, "is a link of `nobody`")
}

/// As under a sudo that keeps `HOME`: root's memory is not in the caller's home, whatever lies there.
fn home_of_a_stranger() -> Result<(), String> {
    let machine = Machine::new("a100-40gb", NAIVE);
    let (file, _) = planted(&machine);
    let home = machine.bench.at("home");
    let state = home.join(".local/state/collo");
    std::fs::create_dir_all(&state).expect("a folder");
    std::fs::rename(&file, state.join(file.file_name().expect("a name"))).expect("moved");
    give_to_nobody(&home);
    let mut command = machine.bench.command(&["status", "--json"]);
    command.env_remove("COLLO_STATE").env_remove("XDG_STATE_HOME").env("HOME", &home);
    let answer = Answer::from(command.output().map_err(|e| e.to_string())?);
    hold(answer.stdout.contains("\"gpus\"") && !answer.stdout.contains(&machine.uuid(0)), || format!("{answer:?}"))
}

#[test]
fn what_a_stranger_could_have_written_down_is_not_believed() {
    let of = |name, act: fn() -> Result<(), String>| Scenario { name, words: String::new(), act: Box::new(act) };
    let mut rows =
        vec![of("a folder that is none of ours", asks_for_a_folder), of("anybody may write there", folder_that_is_open)];
    if is_root() {
        rows.extend([
            of("a stranger's state folder", folder_of_a_stranger),
            of("a stranger's journal", file_of_a_stranger),
            of("a stranger's link", link_of_a_stranger),
            of("a stranger's home", home_of_a_stranger),
        ]);
    } else {
        skip("root", "only root can give files away");
    }
    all_of(rows);
}

/// Another one's project on the same machine.
fn neighbour(machine: &Machine, toml: &str) -> Machine {
    let sim = machine.sim().display().to_string();
    let serial = machine.bench.at("").display().to_string();
    let other = Machine::new("a100-40gb", toml).env("COLLO_SIM_DIR", &sim).env("COLLO_SIM_SERIAL", &serial);
    assert_eq!(other.program("nvidia-smi", &["-L"]).stdout, machine.program("nvidia-smi", &["-L"]).stdout, "one card");
    other
}

/// Two of them begin so long after another, both want the card otherwise: one gets it, the other is told who has it.
fn at_once(nobody: bool, apart: std::time::Duration) -> Result<(), String> {
    let machine = Machine::new("a100-40gb,mig=balanced", &format!("epochs = 2\n{MPS}"));
    let other = neighbour(&machine, &format!("epochs = 2\n{HALVES}")).env("COLLO_SIM", "a100-40gb,mig=balanced");
    let found = machine.cards();
    let mut command = other.bench.command(&["run", "x", "--no-report"]);
    if nobody {
        mode(machine.sim().parent().expect("a folder"), 0o755);
        for own in [other.bench.at("").as_path(), other.state().parent().expect("a folder")] {
            give_to_nobody(own);
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    let first = machine.start(&[]);
    std::thread::sleep(apart);
    let second = command.output().map(Answer::from).map_err(|e| e.to_string())?;
    let first = first.ends();
    let told =
        |answer: &Answer| answer.code == Some(BLOCKED) && answer.stderr.contains("GPU 0 is in use by another collo: process ");
    let one = (first.code == Some(0) && told(&second)) || (second.code == Some(0) && told(&first));
    hold(one, || format!("the first: {first:?}\nthe second: {second:?}"))?;
    let user = if nobody && told(&first) { "nobody" } else { "root" };
    let refused = if told(&first) { &first } else { &second };
    hold(!nobody || refused.stderr.contains(&format!(" of `{user}`")), || format!("nobody says whose: {refused:?}"))?;
    hold(refused.stderr.contains("collo run x") || refused.stderr.contains("runs `x`"), || {
        format!("not what it runs: {refused:?}")
    })?;
    hold(other.journals().is_empty(), || "the second one's journal is left".into())?;
    nothing_lies_about(&machine, &found, &[])
}

/// Whoever sets a layout, or restores, keeps off a card that another user's collo has.
fn beside_a_run() -> Result<(), String> {
    let machine = Machine::new("a100-40gb", &format!("epochs = 4\n{NAIVE}"));
    let other = neighbour(&machine, NAIVE);
    let running = machine.start(&[]);
    wait_for("a member on the card", || {
        let seen = std::fs::read_to_string(machine.sim().join("activity.log")).unwrap_or_default();
        seen.contains("rain").then_some(())
    });
    for arguments in [&["run", "x", "--no-report"][..], &["mig", "apply", "sevenths"], &["run", "x", "--no-report", "--as-found"]]
    {
        let refused = other.collo(arguments);
        hold(refused.code == Some(BLOCKED) && refused.stderr.contains("GPU 0 is in use by another collo"), || {
            format!("{refused:?}")
        })?;
    }
    // In a network of its own it does not see the lock; the state folder that both have tells.
    let mut apart = machine.bench.command(&["mig", "apply", "sevenths"]);
    // SAFETY: a single system call between fork and exec.
    unsafe { apart.pre_exec(|| Ok(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)?)) };
    if let Ok(output) = apart.output() {
        let refused = Answer::from(output);
        hold(refused.code == Some(BLOCKED) && refused.stderr.contains("GPU 0 is in use by another collo"), || {
            format!("{refused:?}")
        })?;
    }
    let first = running.ends();
    hold(first.code == Some(0), || format!("the first: {first:?}"))
}

#[test]
fn two_users_never_cut_one_card() {
    let of = |name, act: fn() -> Result<(), String>| Scenario { name, words: String::new(), act: Box::new(act) };
    let mut rows = vec![
        of("two state folders, at once", || at_once(false, std::time::Duration::ZERO)),
        of("two state folders, a moment later", || at_once(false, std::time::Duration::from_millis(1500))),
        of("beside a run", beside_a_run),
    ];
    if can_be_nobody() {
        rows.push(of("root and nobody", || at_once(true, std::time::Duration::from_millis(100))));
    }
    all_of(rows);
}

/// `sudo collo mig apply sevenths` in a folder of the caller's: the name means what collo says, not what the caller wrote.
#[test]
fn root_takes_no_layout_from_a_strangers_folder() {
    if !is_root() {
        return skip("root", "only root can give files away");
    }
    let machine = Machine::new("a100-40gb", NAIVE);
    let path = machine.bench.at("mig-profiles/a100-40gb.toml");
    let text = std::fs::read_to_string(&path).expect("readable");
    let sly: String = text
        .lines()
        .map(|line| if line.starts_with("sevenths") { "sevenths = [\"7g.40gb\"]\n".into() } else { format!("{line}\n") })
        .collect();
    assert_ne!(sly, text);
    std::fs::write(&path, sly).expect("written");
    machine.collo(&["mig", "apply", "sevenths"]).exits(0);
    machine.collo(&["mig", "assert", "7g.40gb"]).exits(0);
    machine.collo(&["mig", "clear"]).exits(0);
    give_to_nobody(&machine.bench.at(""));
    machine.collo(&["mig", "apply", "sevenths"]).exits(0).says("mig-profiles is not used").says("belongs to `nobody`");
    machine.collo(&["mig", "assert", "7×1g.5gb"]).exits(0);
    // One file among root's own will do.
    machine.collo(&["mig", "clear"]).exits(0);
    let status = Command::new("chown").args(["-Rh", "0:0"]).arg(machine.bench.at("")).status();
    assert!(status.expect("chown").success());
    give_to_nobody(&path);
    machine.collo(&["mig", "apply", "sevenths"]).exits(0).says("a100-40gb.toml belongs to `nobody`");
    machine.collo(&["mig", "assert", "7×1g.5gb"]).exits(0);
    // Without any project a name means what collo carries.
    let mut command = machine.bench.command(&["mig", "assert", "sevenths"]);
    Answer::from(command.current_dir("/").output().expect("collo starts")).exits(0);
}

/// Whatever a program leaves behind with its streams open, nobody waits for it.
#[test]
fn a_child_that_a_program_leaves_behind_holds_nothing_up() {
    all(vec![
        row("children of all programs, MPS", "a100-40gb,lingers", MPS).looks(|_, answer| {
            let late = answer.stderr.contains("did not answer");
            hold(!late, || answer.stderr.clone())
        }),
        row("children of all programs, instances", "dgx-a100,lingers", MIG),
    ]);
}

/// A card that was found in a compute mode that its MIG mode lets nobody set: it is not changed, so there is nothing to put back.
#[test]
fn a_compute_mode_that_cannot_be_set_again_is_not_lost() {
    let refused =
        |name, words| row(name, words, MPS).exits(BLOCKED).says("compute mode ExclusiveProcess").says("nvidia-smi -c DEFAULT");
    all(vec![
        refused("with instances", "a100-40gb,exclusive,mig=balanced"),
        refused("without", "a100-40gb,exclusive,mig=none"),
        row("MIG off, which can be put back", "a100-40gb,exclusive", MIG),
    ]);
}

/// What a collo leaves that is killed while only the server may use the card: it is told, and the next one goes on where it was.
#[test]
fn a_kill_in_exclusive_mode_is_told_and_resumed() {
    let both = "[axes]\nworkload = \"small\"\nsharing = [\"naive\", \"mps\"]\ndegree = 2";
    let machine = Machine::new("a100-40gb", &format!("epochs = 3\n{both}"));
    let found = machine.cards();
    let mut running = machine.start(&["--exclusive"]);
    wait_for("a daemon on an exclusive card", || {
        let exclusive = machine.cards()["cards"][0]["compute_mode"] == 3;
        (exclusive && !machine.pipes().is_empty()).then_some(())
    });
    running.signal(nix::sys::signal::Signal::SIGKILL);
    running.ends();
    machine.bench.nothing_is_left(std::time::Duration::from_secs(60));
    let status = machine.collo(&["status"]).exits(4);
    status.answers("compute mode ExclusiveProcess").answers("compute mode Default");
    machine.run(&["--exclusive"]).exits(0).says("GPU 0 is as it was found: compute mode Default");
    assert_eq!(machine.bench.campaigns(), 1, "it was resumed");
    assert_eq!(machine.cards(), found);
}

/// Where the mode cannot be set back, nobody is measured in it for whom it was not made.
#[test]
fn nobody_is_measured_in_a_mode_that_was_made_for_others() {
    let both = "repetitions = 3\n[axes]\nworkload = \"small\"\nsharing = [\"naive\", \"mps\"]\ndegree = 2";
    all(vec![
        row("it cannot be set back", "a100-40gb,exclusive-sticks", both)
            .with(&["--exclusive"])
            .exits(1)
            .ends("naive", "completed|not_staged")
            .ends("solo", "completed|not_staged")
            .says("the compute mode of GPU 0 cannot be set to Default")
            .and_repaired_under("a100-40gb"),
    ]);
}
