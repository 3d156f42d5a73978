//! Members that are threads of one process, played by scripts of a few lines.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;

use super::hosted::HostLaunch;
use crate::group::{Ended, Group, Live, MemberLaunch, Signal};
use crate::protocol::MemberEvent;

/// What each of two members says, in the order of the signals.
type Heard = Vec<(usize, String)>;

/// Orders to start Python with a script.
fn python(folder: &std::path::Path, script: &str) -> MemberLaunch {
    MemberLaunch {
        command: vec!["python3".into(), "-c".into(), script.into()],
        folder: folder.into(),
        env: BTreeMap::new(),
        log: folder.join("process.log"),
        cores: None,
        memory_nodes: None,
        adapter: None,
        client_of: None,
    }
}

/// Run a process that hosts two members, whose channels it finds as `a` and `b`; `kill` ends it when that member has said `ready`.
fn host(script: &str, kill: Option<usize>) -> (Heard, Option<Ended>) {
    let folder = tempfile::tempdir().expect("a folder");
    let head = "import os, socket, sys, time\na, b = (socket.socket(fileno=fd) for fd in (3, 4))\n\
                def say(to, event, **more):\n    import json\n    to.sendall((json.dumps({'event': event, **more}) + '\\n').encode())\n";
    let process = python(folder.path(), &format!("{head}{script}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (sender, mut signals) = mpsc::channel(8);
        let group = Group::host(&HostLaunch { process, members: 2 }, &sender).expect("it starts");
        let (mut heard, mut left) = (Vec::new(), 2);
        while left > 0 {
            let next = tokio::time::timeout(Duration::from_secs(60), signals.recv());
            let (member, signal) = next.await.expect("soon").expect("a signal");
            let text = match signal {
                Signal::Started { .. } => "started".into(),
                Signal::Said { event: MemberEvent::Ready, .. } => {
                    if kill == Some(member) {
                        group.kill(member);
                    }
                    "ready".into()
                }
                Signal::Said { raw, .. } => raw["event"].as_str().unwrap_or_default().to_string(),
                Signal::Garbage { reason } => reason,
                Signal::Ended(ended) => {
                    left -= 1;
                    ended.live.to_string()
                }
            };
            heard.push((member, text));
        }
        (heard, group.process_ended())
    })
}

fn of(member: usize, heard: &Heard) -> Vec<&str> {
    heard.iter().filter(|(who, _)| *who == member).map(|(_, text)| &**text).collect()
}

#[test]
fn each_member_has_a_channel_and_an_end_of_its_own_and_the_last_ends_with_the_process() {
    let (heard, process) = host(
        "say(a, 'ready'); say(b, 'ready'); say(a, 'left', code=0); time.sleep(0.3); say(b, 'done'); say(b, 'left', code=0)",
        None,
    );
    assert_eq!(of(0, &heard), ["started", "ready", "exited with 0"]);
    assert_eq!(of(1, &heard), ["started", "ready", "done", "exited with 0"]);
    assert!(heard.iter().position(|h| h.1 == "exited with 0") < heard.iter().position(|h| h.1 == "done"), "{heard:?}");
    assert_eq!(process.map(|p| p.live), Some(Live::Exited(0)));
}

#[test]
fn one_that_fails_leaves_with_its_code_and_the_other_goes_on() {
    let fails = "say(a, 'error', kind='other', message='no'); say(a, 'left', code=1); say(b, 'done'); say(b, 'left', code=0)";
    let (heard, _) = host(fails, None);
    assert_eq!(of(0, &heard), ["started", "error", "exited with 1"]);
    assert_eq!(of(1, &heard), ["started", "done", "exited with 0"]);
}

#[test]
fn the_end_of_the_process_ends_all_that_had_not_left() {
    let (heard, process) = host("say(a, 'left', code=0); say(b, 'ready'); time.sleep(0.3); os._exit(7)", None);
    assert_eq!(of(0, &heard), ["started", "exited with 0"]);
    assert_eq!(of(1, &heard), ["started", "ready", "ended with the process of all members (exited with 7)"]);
    assert_eq!(process.map(|p| p.live), Some(Live::Exited(7)));
    let (heard, _) = host("time.sleep(0.2); os.kill(os.getpid(), 11)", None);
    assert_eq!(of(0, &heard), ["started", "ended with the process of all members (killed by SIGSEGV)"]);
}

#[test]
fn whoever_said_that_it_fails_is_heard_first() {
    let (heard, _) = host("say(b, 'error', kind='other', message='no'); os._exit(1)", None);
    let ends: Vec<usize> = heard.iter().filter(|(_, text)| text.starts_with("ended with")).map(|(member, _)| *member).collect();
    assert_eq!(ends, [1, 0]);
}

#[test]
fn nothing_is_heard_of_a_member_that_has_left() {
    let (heard, _) = host("say(a, 'left', code=0); say(a, 'done'); say(b, 'left', code=0)", None);
    assert_eq!(of(0, &heard), ["started", "exited with 0"]);
}

#[test]
fn a_member_whose_channel_is_closed_ends_with_the_process_and_not_before() {
    let (heard, _) = host("a.close(); time.sleep(0.2); say(b, 'ready'); say(b, 'left', code=0)", None);
    assert_eq!(of(0, &heard), ["started", "ended with the process of all members (exited with 0)"]);
    assert_eq!(heard.iter().position(|h| h.1 == "ready").expect("said") + 2, heard.len() - 1, "{heard:?}");
}

#[test]
fn whoever_kills_a_member_kills_the_process_with_all_below_it() {
    let (heard, process) = host("say(a, 'ready'); import subprocess; subprocess.Popen(['sleep', '60']); time.sleep(60)", Some(0));
    let killed = "ended with the process of all members (killed by SIGKILL)";
    assert_eq!((of(0, &heard).last(), of(1, &heard).last()), (Some(&killed), Some(&killed)));
    assert_eq!(process.map(|p| p.live), Some(Live::Killed(9)));
}

#[test]
fn a_process_that_does_not_start_is_the_reason_of_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let process = MemberLaunch {
        command: vec!["/no/such/python".into()],
        folder: folder.path().into(),
        env: BTreeMap::new(),
        log: folder.path().join("process.log"),
        cores: None,
        memory_nodes: None,
        adapter: None,
        client_of: None,
    };
    runtime.block_on(async {
        let (sender, mut signals) = mpsc::channel(8);
        let _group = Group::host(&HostLaunch { process, members: 2 }, &sender).expect("its supervisor starts");
        for _ in 0..2 {
            let Some((_, Signal::Ended(ended))) = signals.recv().await else { panic!("it ends") };
            assert!(ended.live.to_string().contains("`/no/such/python` does not start"), "{}", ended.live);
        }
    });
}

/// What a group says to a receiver that takes a tenth of a second for each message.
async fn listen_slowly(group: Group, mut signals: mpsc::Receiver<(usize, Signal)>, members: usize) -> Vec<String> {
    let (mut heard, mut left) = (Vec::new(), members);
    // Together they take longer than the second for which last messages were once waited for.
    while left > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        match signals.recv().await.expect("a signal").1 {
            Signal::Said { raw, .. } => heard.push(raw["event"].as_str().unwrap_or_default().to_string()),
            Signal::Ended(ended) => {
                left -= 1;
                heard.push(ended.live.to_string());
            }
            _ => {}
        }
    }
    drop(group);
    heard
}

#[test]
fn what_a_member_said_last_is_heard_however_late_it_is_handed_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let launch = |script: &str| python(folder.path(), script);
    let ready = "b'{\"event\": \"ready\"}\\n'";
    let done = "b'{\"event\": \"done\"}\\n'";
    let own = format!(
        "import os, socket; s = socket.socket(fileno=int(os.environ['COLLO_FD']))\nfor _ in range(20): s.sendall({ready})\ns.sendall({done})"
    );
    // Two threads of one process.
    let left = "b'{\"event\": \"left\", \"code\": 0}\\n'";
    let both = format!(
        "import socket\nfor fd in (3, 4):\n    s = socket.socket(fileno=fd)\n    for _ in range(20): s.sendall({ready})\n    s.sendall({done}); s.sendall({left})"
    );
    runtime.block_on(async {
        let (sender, signals) = mpsc::channel(1);
        let group = Group::launch(&[launch(&own)], &sender).expect("it starts");
        let heard = listen_slowly(group, signals, 1).await;
        assert_eq!((heard.len(), &heard[20..]), (22, &["done".to_string(), "exited with 0".to_string()][..]));
        let (sender, signals) = mpsc::channel(1);
        let group = Group::host(&HostLaunch { process: launch(&both), members: 2 }, &sender).expect("it starts");
        let heard = listen_slowly(group, signals, 2).await;
        assert_eq!(heard.iter().filter(|text| *text == "done").count(), 2, "{heard:?}");
        assert_eq!(heard.iter().filter(|text| *text == "exited with 0").count(), 2, "{heard:?}");
    });
}
