//! MPS behaviour here: a daemon of our own, its replies before any client connects, with two clients under limits, and its logs.

use collo_plan::sharing::{Limits, MPS_PROGRAM};
use std::path::Path;
use std::time::{Duration, Instant};

use collo_device::mps::{self, Control, Logged};
use collo_measure::stage::DaemonProcess;
use serde_json::{Value, json};

use super::SelectedGpu;
use super::bundle::Bundle;
use super::busy::{self, Busy};
use super::files::When;

/// Time limit for a daemon to answer.
const READY_WITHIN: Duration = Duration::from_secs(20);
const ENDS_WITHIN: Duration = Duration::from_secs(15);
/// The shares of two clients, whose SMs are recorded.
const SHARES: [u32; 2] = [50, 25];
const ALONE: [u32; 4] = [10, 25, 50, 75];

pub fn collect(bundle: &mut Bundle, card: &SelectedGpu, busy: Option<&Busy>) {
    const REPLIES: &str = "mps/replies.json";
    const LOG: &str = "mps/daemon.log";
    if mps::program().is_none() {
        return bundle.note(REPLIES, json!({"absent": format!("`{}` is not on the PATH", MPS_PROGRAM)}));
    }
    if card.gpu.partition.as_ref().is_some_and(|p| p.mig) {
        return bundle.note(REPLIES, json!({"without": "MIG is on, and a daemon is checked on the whole GPU"}));
    }
    // A short path: a Unix socket lies in it.
    let folder = match tempfile::Builder::new().prefix("collo-mps-").tempdir_in("/tmp") {
        Ok(folder) => folder,
        Err(e) => return bundle.note(REPLIES, json!({"without": e.to_string()})),
    };
    let begun = Instant::now();
    let mut process = match DaemonProcess::start(&card.uuid, folder.path(), folder.path(), &Limits::default(), READY_WITHIN) {
        Ok(process) => process,
        Err(reason) => {
            bundle.note(REPLIES, json!({"without": reason}));
            return bundle.take(LOG, &folder.path().join(mps::LOG));
        }
    };
    let mut replies = vec![json!({"ready_after_s": begun.elapsed().as_secs_f64()})];
    let control = process.daemon().control.clone();
    before(&control, &mut replies);
    let begun = Instant::now();
    let server = process.start_server(READY_WITHIN);
    let failed = server.as_ref().err();
    replies.push(json!({"asked": "start_server", "served_after_s": begun.elapsed().as_secs_f64(), "failed": failed}));
    if let Some(differs) = server.map_or_else(Some, |logged| unlike(&logged)) {
        bundle.note("mps/limits", json!({ "differs": differs }));
    }
    if let Some(busy) = busy {
        with_clients(bundle, card, busy, &control, folder.path(), &mut replies);
    }
    ask(&control, "quit", &mut replies);
    process.stop(ENDS_WITHIN);
    for words in unread(&replies) {
        bundle.note(REPLIES, json!({"differs": format!("the answer to `{words}` is in an unknown form")}));
    }
    bundle.json(REPLIES, &json!(replies));
    bundle.take(LOG, &folder.path().join(mps::LOG));
}

/// What [`before`] sets.
const LIMITS: Limits = Limits { active_thread_percent: Some(100), memory_bytes: Some(3 << 30) };

/// How the server's log differs from the limits that were set, or what it leaves out; `None` if it has them.
fn unlike(logged: &Logged) -> Option<String> {
    let absent =
        |what: &str| format!("the MPS server logged no {what} in a known form: cells with such a limit are indicative here");
    match logged.contradicts(&LIMITS, 1) {
        Some(what) => Some(format!("the limits of MPS are not in force: {what}")),
        None if logged.active_thread_percent.is_none() => Some(absent("percentage of active threads")),
        None if logged.memory_limit_bytes.is_empty() => Some(absent("memory limit")),
        None => None,
    }
}

/// The commands whose answers are in a form that is not known.
fn unread(replies: &[Value]) -> Vec<String> {
    let asked = replies.iter().filter_map(|reply| Some((reply["asked"].as_str()?, reply["answer"].as_str()?)));
    asked.filter(|(words, answer)| !mps::understood(words, answer)).map(|(words, _)| words.to_string()).collect()
}

fn ask(control: &Control, words: &str, replies: &mut Vec<Value>) -> Option<String> {
    let begun = Instant::now();
    let answer = control.say(words);
    let took_s = begun.elapsed().as_secs_f64();
    let (said, refused) = match &answer {
        Ok(said) => (Some(said.clone()), None),
        Err(e) => (None, Some(e.to_string())),
    };
    replies.push(json!({"asked": words, "answer": said, "refused": refused, "took_s": took_s}));
    answer.ok()
}

/// All queries possible without a client.
fn before(control: &Control, replies: &mut Vec<Value>) {
    for words in [
        "get_default_active_thread_percentage",
        "set_default_active_thread_percentage 50",
        "get_default_active_thread_percentage",
        // A client's own share can only lower it, and three quarters are to be seen too.
        "set_default_active_thread_percentage 100",
        "get_default_device_pinned_mem_limit 0",
        "set_default_device_pinned_mem_limit 0 3G",
        "get_default_device_pinned_mem_limit 0",
        "get_server_list",
        "ps",
    ] {
        ask(control, words, replies);
    }
}

/// The same with two clients, NVML's lists meanwhile, and the SMs that one alone sees under each share.
fn with_clients(bundle: &mut Bundle, card: &SelectedGpu, busy: &Busy, control: &Control, pipe: &Path, replies: &mut Vec<Value>) {
    let client = |percent: u32| {
        vec![("CUDA_MPS_PIPE_DIRECTORY", pipe.display().to_string()), ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent.to_string())]
    };
    let before = busy::seen(&card.uuid);
    let started: Vec<_> = SHARES
        .iter()
        .filter_map(|percent| busy.launch(bundle, &format!("load/mps-{percent}.txt"), &card.uuid, &client(*percent)))
        .collect();
    let running = busy.wait(bundle, card, started, before);
    let servers = ask(control, "get_server_list", replies).unwrap_or_default();
    ask(control, "ps", replies);
    for server in servers.lines().filter_map(|l| l.trim().parse::<u32>().ok()) {
        for words in ["get_server_status", "get_client_list", "get_active_thread_percentage", "get_device_client_list"] {
            ask(control, &format!("{words} {server}"), replies);
        }
        ask(control, &format!("get_device_pinned_mem_limit {server} 0"), replies);
    }
    bundle.fill(When::Clients);
    running.into_iter().for_each(|load| load.stop(bundle));
    for percent in ALONE {
        if let Some(load) = busy.start(bundle, card, &format!("load/sms-{percent}.txt"), &card.uuid, &client(percent)) {
            load.stop(bundle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_the_server_does_not_log_or_logs_otherwise_are_reported() {
        let logged = |percent, bytes: &[u64]| Logged {
            active_thread_percent: percent,
            memory_limit_bytes: bytes.iter().map(|bytes| (0, *bytes)).collect(),
            ..Logged::default()
        };
        assert_eq!(unlike(&logged(Some(100.0), &[3 << 30])), None);
        let other = unlike(&logged(Some(100.0), &[1 << 30])).expect("another limit");
        assert_eq!(other, "the limits of MPS are not in force: memory limit on device 0: asked for 3072 MiB, logged 1024 MiB");
        assert!(unlike(&logged(Some(100.0), &[])).is_some_and(|text| text.contains("logged no memory limit")));
        assert!(unlike(&logged(None, &[3 << 30])).is_some_and(|text| text.contains("logged no percentage")));
    }

    #[test]
    fn answers_in_an_unknown_form_are_named_by_their_command() {
        let reply = |asked: &str, answer: &str| json!({"asked": asked, "answer": answer});
        let replies = [reply("get_server_list", "4711\n"), reply("get_server_status 4711", "READY\n"), json!({"asked": "ps"})];
        assert_eq!(unread(&replies), ["get_server_status 4711"]);
    }
}
