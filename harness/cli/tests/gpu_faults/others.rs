//! Others on the machine: people, their processes and daemons, signals, and a collo that died.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use collo_store::{Outcome, Verdict};
use nix::sys::signal::Signal;

use super::{BLOCKED, HALVES, MIG, MPS, NAIVE};
use crate::gpu_faults::row::{Scenario, all, all_of, hold, honest, nothing_lies_about, row, watched};
use crate::sim::Machine;
use crate::support::{Answer, Running, wait_for};

/// Long enough to be caught in the middle.
const LONG: &str = "epochs = 4\n";

fn scenario(name: &'static str, words: &str, act: fn(&str) -> Result<(), String>) -> Scenario {
    let own = words.to_string();
    Scenario { name, words: words.into(), act: Box::new(move || act(&own)) }
}

/// Somebody else's process.
pub struct Somebody(Child);

impl Somebody {
    pub fn new() -> Somebody {
        let child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("a process");
        Somebody(child)
    }

    pub fn on(&self, card: &str) -> String {
        format!("{card},foreign={}", self.pid())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Somebody {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn only_indicative(machine: &Machine, _: &Answer) -> Result<(), String> {
    let runs = machine.bench.runs();
    let stray = runs.iter().find(|(_, run)| run.record.validity.verdict != Verdict::Indicative);
    hold(stray.is_none(), || format!("not indicative: {stray:?}"))
}

#[test]
fn a_card_that_somebody_uses_is_left_alone_or_its_numbers_are_indicative() {
    let somebody = Somebody::new();
    let busy = somebody.on("a100-40gb");
    let two = somebody.on("a100-40gb,gpus=2");
    all(vec![
        row("somebody computes there", &*busy, NAIVE).exits(BLOCKED).says("GPU 0 is in use: pid ").says("--foreign allow"),
        row("somebody computes there, MPS", &*busy, MPS).exits(BLOCKED).says("GPU 0 is in use"),
        row("somebody computes there, instances", &*busy, MIG).exits(BLOCKED).says("GPU 0 is in use"),
        row("somebody may", &*busy, NAIVE).with(&["--foreign", "allow"]).looks(only_indicative),
        row("somebody may, MPS", &*busy, MPS).with(&["--foreign", "allow"]).looks(only_indicative),
        row("somebody may, but the card cannot be cut under them", &*busy, MIG)
            .with(&["--foreign", "allow"])
            .exits(BLOCKED)
            .says("`sleep` (pid "),
        row("another card is free", two, NAIVE),
    ]);
    // Beside a group that has shown its mode already, and whose members may leave when they are done.
    let later = format!("a100-40gb,foreign@1500ms={}", somebody.pid());
    let long = || format!("epochs = 12\nafter_measured = \"exit\"\n{NAIVE}");
    all(vec![
        row("somebody comes later", &*later, long())
            .once_opened()
            .exits(1)
            .ends("naive", "mode_lost")
            .ends("solo", "completed|mode_lost")
            .says("others on the GPU: asked none, found `sleep` (pid "),
        row("somebody comes later, and may", &*later, long()).with(&["--foreign", "allow"]).once_opened().looks(|machine, _| {
            let runs = machine.bench.runs();
            let beside = |reason: &String| reason.contains("`sleep` (pid ") && reason.ends_with(") computed on the same GPU");
            let of_group = runs.values().filter(|run| run.record.cell.degree > 1).flat_map(|run| &run.record.validity.reasons);
            hold(of_group.clone().any(beside), || format!("no group was measured beside it: {:?}", of_group.collect::<Vec<_>>()))
        }),
    ]);
}

/// A daemon that somebody started where everybody looks for one.
fn beside_a_daemon(words: &str, toml: &str) -> Result<(), String> {
    let machine = Machine::new(words, toml);
    let place = machine.sim().join("nvidia-mps");
    let daemon = |arguments: &[&str]| {
        let mut command = machine.command("nvidia-cuda-mps-control", arguments);
        command.env("CUDA_MPS_PIPE_DIRECTORY", &place).env("CUDA_MPS_LOG_DIRECTORY", &place).env_remove("COLLO_TEST_MARK");
        command
    };
    std::fs::create_dir_all(&place).map_err(|e| e.to_string())?;
    let status = daemon(&["-d"]).stdout(Stdio::null()).stderr(Stdio::null()).status().map_err(|e| e.to_string())?;
    hold(status.success(), || "the other daemon does not start".into())?;
    let ask = |words: &str| {
        let mut child = daemon(&[]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        std::io::Write::write_all(&mut child.stdin.take().expect("its input"), words.as_bytes()).expect("it reads");
        child.wait_with_output().map(Answer::from).expect("it ends")
    };
    let found = machine.cards();
    let (answer, pipes) = watched(&machine, || machine.run(&[]));
    let servers = ask("get_server_list\n");
    let ended = ask("quit\n");
    hold(answer.code == Some(0), || format!("{answer:?}"))?;
    hold(servers.code == Some(0) && servers.stdout.trim().is_empty(), || format!("members joined it: {servers:?}"))?;
    hold(ended.code == Some(0), || format!("the other daemon was ended: {ended:?}"))?;
    machine.bench.runs().values().try_for_each(honest)?;
    nothing_lies_about(&machine, &found, &pipes)
}

/// A long run of this experiment, caught when its members are on the card as it wants it.
fn caught(words: &str, toml: &str, arguments: &[&str]) -> (Machine, Running, serde_json::Value) {
    let machine = Machine::new(words, &format!("{LONG}{toml}"));
    let found = machine.cards();
    let running = machine.start(arguments);
    wait_for("a member on the card", || {
        let cut = machine.cards() != found || !machine.pipes().is_empty();
        let trains = machine.bench.left().iter().filter(|(_, line)| line.starts_with(&trainer(&machine))).count();
        (cut && trains > 0).then_some(())
    });
    (machine, running, found)
}

fn trainer(machine: &Machine) -> String {
    let command = machine.bench.command(&[]);
    let python = command.get_envs().find(|(name, _)| *name == "COLLO_PYTHON").and_then(|(_, value)| value);
    format!("{} train.py", python.expect("it is set").to_string_lossy())
}

/// Signals end it in good order, with the card as it was.
fn signalled(toml: &str, signals: &[Signal], code: i32) -> Result<(), String> {
    let (machine, mut running, found) = caught("a100-40gb", toml, &[]);
    let (answer, pipes) = watched(&machine, || {
        for (number, signal) in signals.iter().enumerate() {
            if number > 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
            running.signal(*signal);
        }
        running.ends()
    });
    hold(answer.code == Some(code), || format!("{answer:?}"))?;
    hold(answer.stderr.contains("resume: collo run x"), || format!("nobody says how to resume: {answer:?}"))?;
    let runs = machine.bench.runs();
    // With one signal it is kept as interrupted; a second one that came in time has thrown it away.
    let interrupted = runs.values().filter(|r| r.record.outcome == Outcome::Interrupted).count();
    let kept = interrupted == 1 || (signals.len() > 1 && interrupted == 0);
    hold(kept, || format!("{interrupted} are kept as interrupted: {answer:?}"))?;
    runs.values().try_for_each(honest)?;
    nothing_lies_about(&machine, &found, &pipes)
}

#[test]
fn a_signal_ends_the_run_with_the_card_as_it_was_found() {
    all_of(vec![
        scenario("Ctrl-C on instances", "", |_| signalled(HALVES, &[Signal::SIGINT], 130)),
        scenario("Ctrl-C twice on instances", "", |_| signalled(HALVES, &[Signal::SIGINT, Signal::SIGINT], 130)),
        scenario("SIGTERM on instances", "", |_| signalled(HALVES, &[Signal::SIGTERM], 4)),
        scenario("Ctrl-C under MPS", "", |_| signalled(MPS, &[Signal::SIGINT], 130)),
        scenario("Ctrl-C twice under MPS", "", |_| signalled(MPS, &[Signal::SIGINT, Signal::SIGINT], 130)),
        scenario("SIGTERM under MPS", "", |_| signalled(MPS, &[Signal::SIGTERM], 4)),
    ]);
}

/// After SIGKILL no process is left; the journal is, and the next run puts the card right and finishes.
fn killed(words: &str, toml: &str, arguments: &[&str]) -> Result<(), String> {
    let (machine, mut running, found) = caught(words, toml, arguments);
    let mut pipes = machine.pipes();
    running.signal(Signal::SIGKILL);
    running.ends();
    machine.bench.nothing_is_left(Duration::from_secs(60));
    hold(machine.journals().len() == 1, || "no journal tells what was found".into())?;
    let (answer, more) = watched(&machine, || machine.run(arguments));
    pipes.extend(more);
    hold(answer.code == Some(0), || format!("the run that repairs: {answer:?}"))?;
    hold(answer.stderr.contains("GPU 0 is as it was found"), || format!("nobody says that it is repaired: {answer:?}"))?;
    let (runs, planned) = (machine.bench.runs(), machine.bench.campaign().manifest().plan.order.len());
    hold(runs.len() == planned, || format!("{} of {planned} runs", runs.len()))?;
    runs.values().try_for_each(honest)?;
    nothing_lies_about(&machine, &found, &pipes)
}

#[test]
fn the_run_after_a_killed_one_puts_the_card_right_and_finishes() {
    all_of(vec![
        scenario("killed on instances", "a100-40gb", |words| killed(words, HALVES, &[])),
        scenario("killed on instances, others were found", "a100-40gb,mig=3g.20gb/2g.10gb", |words| killed(words, HALVES, &[])),
        scenario("killed under MPS", "a100-40gb", |words| killed(words, MPS, &[])),
        scenario("killed under exclusive MPS", "a100-40gb", |words| killed(words, MPS, &["--exclusive"])),
        scenario("killed with MPS in instances", "a100-40gb", |words| killed(words, &super::two("mig:2×3g.20gb+mps"), &[])),
    ]);
}

/// Two of them on one card.
fn second() -> Result<(), String> {
    let (machine, running, found) = caught("a100-40gb", MPS, &[]);
    machine.bench.write("experiments/y.toml", &crate::sim::short(NAIVE));
    let refused = machine.collo(&["run", "y", "--no-report"]);
    let first = running.ends();
    hold(refused.code.is_some_and(|c| c == 3 || c == 4), || format!("{refused:?}"))?;
    hold(refused.stderr.contains("GPU 0 is in use by another collo"), || format!("{refused:?}"))?;
    hold(first.code == Some(0), || format!("the first: {first:?}"))?;
    nothing_lies_about(&machine, &found, &[])
}

#[test]
fn nobody_is_disturbed_by_a_run() {
    all_of(vec![
        scenario("naive beside a daemon", "a100-40gb", |words| beside_a_daemon(words, NAIVE)),
        scenario("MPS beside a daemon", "a100-40gb", |words| beside_a_daemon(words, MPS)),
        scenario("a second collo", "a100-40gb", |_| second()),
    ]);
}
