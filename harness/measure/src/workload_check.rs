//! A trial of one workload: two tiny epochs, alone, to see whether it speaks the protocol.
//!
//! In: a workload; later the stored run. Out: the experiment to run, and its findings. Nothing measured here is worth keeping.

use std::time::Duration;

use collo_store::{AfterMeasured, EpochRecord, MemberRecord, Outcome, RunRecord, Serving};
use serde_json::Value as Json;

use crate::stage::CPU_TIME;
use collo_launch::{NOT_STARTED, bar_without_terminal};
use collo_plan::workload::{EpochsAdapter, LIMIT_BATCHES, Requirement, Workload};
use collo_text::units::duration;

/// Items of a batch in a trial, and batches of an epoch: enough for batch normalisation, few enough for a large model on a CPU.
const BATCH_SIZE: u64 = 4;
const BATCHES: u64 = 2;
/// An epoch of a serving member, in a trial.
const WINDOW: &str = "1s";
/// A member that takes longer to exit would delay every group that it is in.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

/// The text of a trial's experiment. `given` are settings that the user chose.
pub fn experiment(workload: &Workload, given: &[(String, Json)]) -> String {
    let mut axes = vec![("workload".to_string(), Json::from(workload.name.as_str()))];
    let is_given = |name: &str| given.iter().any(|(n, _)| n == name);
    // Where epochs cannot be cut short a smaller batch would only make them longer.
    if workload.settings.contains_key(LIMIT_BATCHES) {
        let small = [("batch_size", BATCH_SIZE), (LIMIT_BATCHES, BATCHES)];
        axes.extend(small.iter().filter(|(name, _)| workload.settings.contains_key(*name) && !is_given(name)).map(
            |(name, most)| {
                let own = workload.settings.get(*name).and_then(Json::as_u64).filter(|n| (1..*most).contains(n));
                (name.to_string(), own.unwrap_or(*most).into())
            },
        ));
    }
    // Who serves does so for as long as it is told.
    if workload.settings.get("window").is_some_and(|w| w.as_str().is_some_and(|w| duration(w).is_some())) && !is_given("window") {
        axes.push(("window".into(), WINDOW.into()));
    }
    axes.extend(given.iter().cloned());
    let axes: Vec<String> = axes.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    format!(
        "name = \"trial\"\ndevice = \"cpu\"\nrepetitions = 1\nepochs = 2\nafter_measured = \"{}\"\n[axes]\nsharing = \"solo\"\n{}",
        AfterMeasured::KeepRunning.as_str(),
        axes.concat()
    )
}

/// No text matches it.
const NOTHING: &str = r"[^\s\S]";
/// How long its output is searched.
const SEARCH: &str = "2m";

/// Whether a script that should speak the protocol did not fail, and said nothing: it ended with 0, or was still running after the time for its
/// set-up.
pub fn only_prints(workload: &Workload, run: &RunRecord, epochs: &[EpochRecord]) -> bool {
    let Some(member) = run.members.first() else { return false };
    let has_time = member.exit.as_deref() == Some("exited with 0") || matches!(run.outcome, Outcome::TimedOut { .. });
    workload.epochs.is_none() && member.hello.is_none() && epochs.is_empty() && has_time
}

/// The workload as one whose output is searched for progress: no line of it ends an epoch, so that a pattern is proposed.
pub fn searched(workload: &Workload) -> Workload {
    let epochs = regex::Regex::new(NOTHING).ok().map(|pattern| EpochsAdapter { pattern, preset: None, items: None });
    Workload { epochs, ..workload.clone() }
}

/// The text of the experiment that searches its output.
pub fn search(workload: &Workload, given: &[(String, Json)]) -> String {
    // Alone a script trains from its launch on, and ends no epoch: the limit between two epochs is that of the search.
    format!("set_up_timeout = \"{SEARCH}\"\nstall_timeout = \"{SEARCH}\"\n{}", experiment(workload, given))
}

/// One property that a trial checked.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    pub what: &'static str,
    pub verdict: Shown,
    pub said: String,
}

/// Whether it was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    Yes,
    No,
    /// It is optional.
    Absent,
}

impl Finding {
    fn new(what: &'static str, holds: bool, said: impl Into<String>) -> Finding {
        Finding { what, verdict: if holds { Shown::Yes } else { Shown::No }, said: said.into() }
    }

    fn absent(what: &'static str, said: impl Into<String>) -> Finding {
        Finding { what, verdict: Shown::Absent, said: said.into() }
    }
}

/// The findings of a trial's run, in the order of a member's life.
pub fn findings(workload: &Workload, run: &RunRecord, epochs: &[EpochRecord]) -> Vec<Finding> {
    let Some(member) = run.members.first() else { return vec![Finding::new("start", false, run.outcome.text())] };
    let mut all = Vec::new();
    if let Some(cause) = silent(workload, member, &run.outcome, epochs) {
        all.push(cause);
        // Nothing else is to be found out about a script that never spoke.
        return all;
    }
    if workload.epochs.is_some() {
        all.push(Finding::absent("hello", "a foreign script: it has no barrier, and reports no device, model or data"));
    } else {
        all.push(hello(member));
        if member.serving.is_none() {
            all.push(data(member));
        }
        all.push(features(member));
        all.push(match (member.ready_ns, run.timeline.launched_ns) {
            (Some(ready), launched) => {
                Finding::new("ready", true, format!("after {:.1} s", ready.saturating_sub(launched) as f64 / 1e9))
            }
            (None, _) => Finding::new("ready", false, "it was never ready: call `member.ready()` after set-up and warm-up"),
        });
    }
    all.push(epoch_times(epochs));
    all.push(match &member.serving {
        Some(serving) => answers(serving, epochs),
        None => counts(epochs),
    });
    if workload.epochs.is_none() && run.outcome == Outcome::Completed {
        all.push(stop(run));
    }
    let ending = match workload.epochs.is_some() && run.outcome == Outcome::Completed {
        true => "ended after the last epoch: a foreign script cannot be asked to stop".into(),
        false => ending(member, &run.outcome),
    };
    all.push(match &run.outcome {
        // Epochs as tiny as these may leave no time to gather the evidence in, or for CPU time to accrue. What was found and is
        // not as asked, another device or number of threads, is another matter.
        Outcome::ModeLost { reason }
            if run.attestation.checks.iter().all(|c| c.holds || c.found.is_none() || c.what == CPU_TIME) =>
        {
            Finding::absent("end", format!("with such short epochs the mode could not be attested: {reason}"))
        }
        Outcome::ModeLost { reason } => Finding::new("end", false, format!("mode lost: {reason}")),
        outcome => Finding::new("end", *outcome == Outcome::Completed, ending),
    });
    all
}

/// Why a script that should speak the protocol said nothing: it is missing, failed before, or only prints.
fn silent(workload: &Workload, member: &MemberRecord, outcome: &Outcome, epochs: &[EpochRecord]) -> Option<Finding> {
    let exit = member.exit.as_deref()?;
    if exit.starts_with(NOT_STARTED) {
        return Some(Finding::new("start", false, exit));
    }
    if workload.epochs.is_some() || member.hello.is_some() || !epochs.is_empty() {
        return None;
    }
    if let Some(missing) = member.log_tail.iter().find(|line| line.contains("can't open file")) {
        let name = &workload.name;
        return Some(Finding::new("start", false, format!("{missing}: `command` in `workloads/{name}/workload.toml` names it")));
    }
    if !exit.starts_with("exited with") {
        // It hung and was killed: its exit is not the cause.
        return Some(Finding::new("start", false, ending(member, outcome)));
    }
    if exit != "exited with 0" {
        return Some(Finding::new("start", false, format!("it {exit} before it said hello; the end of its log is below")));
    }
    let mut said = "it ended with exit code 0 without speaking the protocol".to_string();
    if let Some(bar) = bar_without_terminal(member.log_tail.iter().map(String::as_str)) {
        return Some(Finding::new("start", false, format!("{said}; {bar}")));
    }
    let printed: Vec<String> =
        member.log_tail.iter().filter(|line| looks_like_an_epoch(line)).take(2).map(|l| format!("`{}`", l.trim())).collect();
    said += &match printed.is_empty() {
        true => "; if it prints its epochs, describe the line with `[epochs] pattern = …`, or call `collo.connect()`".to_string(),
        false => format!("; it prints {}: describe that line with `[epochs] pattern = …`", printed.join(", ")),
    };
    Some(Finding::new("start", false, said))
}

/// A line that reports an epoch, in all likelihood: the word, and a number.
fn looks_like_an_epoch(line: &str) -> bool {
    line.to_lowercase().contains("epoch") && line.chars().any(|c| c.is_ascii_digit())
}

fn hello(member: &MemberRecord) -> Finding {
    let Some(hello) = &member.hello else {
        return Finding::new("hello", false, "it sent no hello: call `collo.connect()` and `member.hello(…)`");
    };
    let text = |path: &str| hello.pointer(path).and_then(Json::as_str).map(str::to_string);
    let mut parts: Vec<String> = text("/model/name").into_iter().collect();
    parts.extend(hello.pointer("/model/parameters").and_then(Json::as_u64).map(|n| format!("{n} parameters")));
    parts.push(format!("device {}", text("/device").unwrap_or_default()));
    parts.extend(hello.pointer("/threads").and_then(Json::as_u64).map(|n| format!("threads {n}")));
    parts.extend(text("/versions/torch").map(|v| format!("torch {v}")));
    Finding::new("hello", true, parts.join(", "))
}

fn data(member: &MemberRecord) -> Finding {
    let set = member.hello.as_ref().and_then(|h| h.get("dataset")).filter(|d| !d.is_null());
    let Some(set) = set else { return Finding::absent("data", "not named: the report cannot state whether it is synthetic") };
    let kind = if member.synthetic == Some(true) { "synthetic" } else { "real" };
    let items = set["items"].as_u64().map(|n| format!(", {n} items")).unwrap_or_default();
    Finding::new("data", true, format!("{}, {kind}{items}", set["name"].as_str().unwrap_or("?")))
}

fn features(member: &MemberRecord) -> Finding {
    let Some(f) = &member.features else {
        return Finding::absent("graph", "no features of its computation graph: predictors will lack them");
    };
    let layers: u64 = f.layers.values().sum();
    let flops = f.flops_per_item.map_or("FLOPs unknown".into(), |n| format!("{:.3} GFLOP forward per item", n / 1e9));
    Finding::new("graph", true, format!("{layers} layers, {flops}"))
}

fn epoch_times(epochs: &[EpochRecord]) -> Finding {
    let measured = epochs.iter().filter(|e| e.measured).count();
    let warm_up = epochs.iter().any(|e| e.index == 0 && !e.measured);
    let times: Vec<String> =
        epochs.iter().take(2).map(|e| format!("{:.2} s", e.end_ns.saturating_sub(e.start_ns) as f64 / 1e9)).collect();
    match (warm_up, measured) {
        (true, 1) => Finding::new("epochs", true, format!("a warm-up of {}, measured {}", times[0], times[1..].concat())),
        (_, 0) => {
            Finding::new("epochs", false, format!("{} of 2 epochs were reported, none of them measured", epochs.len().min(2)))
        }
        _ => Finding::new("epochs", false, format!("{measured} measured epochs were reported, 1 was expected")),
    }
}

fn counts(epochs: &[EpochRecord]) -> Finding {
    let Some(last) = epochs.iter().rfind(|e| e.measured) else { return Finding::absent("items", "none was reported") };
    let losses: Vec<f64> = epochs.iter().take(2).filter_map(|e| e.loss).collect();
    let loss = match losses[..] {
        [first, second] => format!(", loss {first:.3} → {second:.3}"),
        _ => ", no loss".into(),
    };
    match last.items {
        Some(0) => Finding::new("items", false, "0 in an epoch: nothing was trained"),
        Some(n) => Finding::new("items", true, format!("{n} in an epoch{loss}")),
        None => Finding::absent("items", "not reported: energy and traffic per item will be absent"),
    }
}

/// The answers of a serving member.
fn answers(serving: &Serving, epochs: &[EpochRecord]) -> Finding {
    let asked = format!("asked {} a second", serving.rate_per_s);
    let most = serving.capacity_per_s.map_or("its capacity is not reported".into(), |n| format!("it can answer {n:.1}"));
    match epochs.iter().rfind(|e| e.measured).and_then(|e| e.items) {
        None | Some(0) => Finding::absent("answers", format!("none in a measured epoch: {asked}, {most}")),
        Some(n) => Finding::new("answers", true, format!("{n} in an epoch: {asked}, {most}")),
    }
}

fn stop(run: &RunRecord) -> Finding {
    let Some(done) = run.timeline.done_ns else { return Finding::new("stop", false, "it sent no `done`") };
    let took = Duration::from_nanos(run.timeline.ended_ns.saturating_sub(done));
    let said = format!("it exited {:.1} s after its last measured epoch", took.as_secs_f64());
    let late = took > LEAVES_WITHIN;
    let hint = if late { ": get the batches from `epoch.batches(…)`, so that it can exit between them" } else { "" };
    Finding::new("stop", !late, format!("{said}{hint}"))
}

fn ending(member: &MemberRecord, outcome: &Outcome) -> String {
    let exit = member.exit.clone().unwrap_or_else(|| "it did not start".into());
    let left = match member.orphans.len() {
        0 => String::new(),
        1 => ", and left a process behind".into(),
        n => format!(", and left {n} processes behind"),
    };
    match outcome {
        Outcome::Completed => format!("{exit}{left}"),
        // Its message has what it left behind.
        Outcome::EndedEarly { message, .. } => format!("{}: {message}", outcome.text()),
        Outcome::ProtocolError { message, .. } | Outcome::TimedOut { message, .. } => {
            format!("{}: {message}{left}", outcome.text())
        }
        other => format!("{}{left}", other.text()),
    }
}

/// True if no requirement is violated.
pub fn passes(findings: &[Finding]) -> bool {
    findings.iter().all(|f| f.verdict != Shown::No)
}

/// Why a workload cannot be tried on this machine at all.
pub fn lacking(workload: &Workload) -> Option<String> {
    let why = |Requirement::Cuda| format!("`{}` needs an NVIDIA GPU with CUDA, and trials run on the CPU", workload.name);
    workload.requires.map(why)
}

#[cfg(test)]
mod tests {
    use collo_text::Source;

    use super::*;
    use crate::fixture;
    use std::path::Path;

    fn axes(text: &str) -> Vec<&str> {
        text.lines().skip_while(|l| *l != "[axes]").skip(1).collect()
    }

    #[test]
    fn a_trial_is_an_experiment_that_can_be_read() {
        let workloads = fixture::workloads();
        for workload in workloads.iter() {
            let text = experiment(workload, &[]);
            let experiment = collo_plan::experiment::Experiment::parse(
                Path::new("trial.toml"),
                &Source::file("trial.toml", &text),
                &workloads,
            );
            assert_eq!(experiment.expect("right").axes.workload[0].name, workload.name, "{text}");
        }
    }

    #[test]
    fn a_script_that_hung_or_did_not_start_is_not_said_to_have_exited() {
        let tiny = fixture::workloads().get("tiny").expect("there").clone();
        let said = |exit: &str, outcome: Outcome| {
            let member = serde_json::json!({"spec": {"workload": "tiny", "batch_size": 1, "settings": {}, "solo": "tiny solo b1"},
                "barrier": true, "exit": exit, "orphans": [], "log_tail": []});
            let member: MemberRecord = serde_json::from_value(member).expect("a member");
            silent(&tiny, &member, &outcome, &[]).expect("it never spoke").said
        };
        let crashed =
            |status: &str| Outcome::Crashed { member: 0, status: status.into(), message: String::new(), place_alone: false };
        let hung = Outcome::TimedOut { member: 0, phase: "set-up".into(), message: "it was not ready".into() };
        assert_eq!(said("killed by SIGKILL", hung.clone()), format!("{}: it was not ready", hung.text()));
        let missing = "not started: `nowhere` does not start";
        assert_eq!(said(missing, crashed(missing)), missing);
        assert!(said("exited with 3", crashed("exited with 3")).contains("it exited with 3 before it said hello"));
    }

    #[test]
    fn a_bar_that_is_printed_once_is_no_line_to_describe() {
        let tiny = fixture::workloads().get("tiny").expect("there").clone();
        let bar = "Epoch 5/5  ━━━━━━━━━━━━━━━━━━━━━━━━━━━ 3000/3000 0:00:02 • 0:00:00 1211.77it/s";
        let member = serde_json::json!({"spec": {"workload": "tiny", "batch_size": 1, "settings": {}, "solo": "tiny solo b1"},
            "barrier": true, "exit": "exited with 0", "orphans": [], "log_tail": [bar]});
        let member: MemberRecord = serde_json::from_value(member).expect("a member");
        let crashed = Outcome::Crashed { member: 0, status: "exited with 0".into(), message: String::new(), place_alone: false };
        let said = silent(&tiny, &member, &crashed, &[]).expect("it never spoke").said;
        assert!(said.contains("its bar is one of `rich`") && !said.contains("describe that line"), "{said}");
    }

    #[test]
    fn epochs_are_cut_short_where_they_can_be() {
        let tiny = (**fixture::workloads().get("tiny").expect("there")).clone();
        assert_eq!(axes(&experiment(&tiny, &[])), ["sharing = \"solo\"", "workload = \"tiny\""]);
        let mut net = tiny.clone();
        net.settings.insert("limit_batches".into(), 0.into());
        assert_eq!(axes(&experiment(&net, &[]))[2..], ["batch_size = 4", "limit_batches = 2"]);
        let given = [("batch_size".to_string(), Json::from(16))];
        assert_eq!(axes(&experiment(&net, &given))[2..], ["limit_batches = 2", "batch_size = 16"]);
        let mut server = tiny.clone();
        server.settings.insert("window".into(), "10s".into());
        assert_eq!(axes(&experiment(&server, &[]))[2..], ["window = \"1s\""]);
        let given = [("window".to_string(), Json::from("3s"))];
        assert_eq!(axes(&experiment(&server, &given))[2..], ["window = \"3s\""]);
        net.settings.insert("batch_size".into(), 1.into());
        assert_eq!(axes(&experiment(&net, &[]))[2..], ["batch_size = 1", "limit_batches = 2"]);
    }
}
