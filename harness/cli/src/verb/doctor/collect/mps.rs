//! MPS behaviour here: a daemon of our own, its replies before any client connects, with two clients under limits, and its logs.

use std::path::Path;
use std::time::{Duration, Instant};

use collo_measure::mps::{self, Control};
use collo_measure::sharing::{DaemonProcess, Limits};
use serde_json::{Value, json};

use super::bundle::Bundle;
use super::busy::{self, Busy};
use super::{SelectedGpu, nvml_of};

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
        return bundle.note(REPLIES, json!({"absent": format!("`{}` is not on the PATH", mps::PROGRAM)}));
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
    replies.push(json!({"asked": "start_server", "served_after_s": begun.elapsed().as_secs_f64(), "failed": server.err()}));
    if let Some(busy) = busy {
        with_clients(bundle, card, busy, &control, folder.path(), &mut replies);
    }
    ask(&control, "quit", &mut replies);
    process.stop(ENDS_WITHIN);
    bundle.json(REPLIES, &json!(replies));
    bundle.take(LOG, &folder.path().join(mps::LOG));
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
    nvml_of(bundle, card, "nvml/mps.json");
    bundle.command("machine/nvidia-smi-mps.txt", "nvidia-smi", &[]);
    running.into_iter().for_each(|load| load.stop(bundle));
    for percent in ALONE {
        if let Some(load) = busy.start(bundle, card, &format!("load/sms-{percent}.txt"), &card.uuid, &client(percent)) {
            load.stop(bundle);
        }
    }
}
