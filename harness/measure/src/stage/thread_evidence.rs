//! The evidence that members are threads of one process: each thread is in the kernel's list of that process, is nobody else's, has a
//! CUDA stream of its own that is not the default one, and sees Python's lock as requested.

use collo_store::Check;

use super::evidence::{InForce, check};
use collo_plan::sharing::Hosting;

/// Of all members; their CPU time is that of their own threads, which [`super::evidence::process`] checks.
pub fn of_threads(members: &[InForce], hosting: Hosting, on_card: bool) -> Vec<Check> {
    let mut checks = vec![of_process(members)];
    for member in members {
        let thread = member.hello.as_ref().and_then(|hello| hello.thread);
        let streams = || members.iter().filter_map(|m| m.hello.as_ref()?.thread);
        let alone = thread.is_some_and(|own| streams().filter(|other| other.id == own.id).count() == 1);
        let in_process = thread.zip(member.process).is_some_and(|(own, pid)| is_thread(pid, own.id));
        let found = thread.map(|own| match (in_process, alone) {
            (false, _) => format!("thread {}, which is not of that process", own.id),
            (true, false) => format!("thread {}, which another member names too", own.id),
            (true, true) => format!("thread {}", own.id),
        });
        checks.push(check(member.member, "thread of the process", "one of its own".into(), found, in_process && alone));
        let lock = |held: bool| if held { "held".to_string() } else { "none".to_string() };
        let held = thread.map(|own| own.lock);
        checks.push(check(member.member, "Python's lock", lock(hosting.lock), held.map(lock), held == Some(hosting.lock)));
        if on_card {
            let stream = thread.and_then(|own| own.stream);
            let own = stream
                .filter(|handle| *handle != 0)
                .is_some_and(|handle| streams().filter(|other| other.stream == Some(handle)).count() == 1);
            let found = stream.map(|handle| match (handle, own) {
                (0, _) => "the default stream".to_string(),
                (_, true) => format!("stream {handle:#x}"),
                (_, false) => format!("stream {handle:#x}, which another member has too"),
            });
            checks.push(check(member.member, "CUDA stream", "one of its own, not the default".into(), found, own));
        }
    }
    checks
}

/// All members name the one process that was started.
fn of_process(members: &[InForce]) -> Check {
    let mut named: Vec<u32> = members.iter().filter_map(|m| m.hello.as_ref().map(|hello| hello.pid)).collect();
    named.sort_unstable();
    named.dedup();
    let started = members.first().and_then(|m| m.process);
    let found: Vec<String> = named.iter().map(|pid| format!("pid {pid}")).collect();
    Check {
        what: "process of all members".into(),
        member: None,
        asked: started.map_or("one".into(), |pid| format!("pid {pid}")),
        found: (!found.is_empty()).then(|| found.join(", ")),
        holds: started.is_some_and(|pid| named == [pid]),
    }
}

/// The kernel lists the threads of a process (proc(5), `/proc/PID/task`).
fn is_thread(pid: u32, tid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}/task/{tid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_store::{Attestation, AttestationVerdict};

    /// A member that says it is this thread of this process; with a stream on a GPU.
    fn member(index: usize, pid: u32, tid: u32, lock: bool, stream: Option<u64>) -> InForce {
        let hello = serde_json::json!({
            "protocol": 1, "pid": pid, "device": "cpu", "thread": {"id": tid, "lock": lock, "stream": stream},
        });
        let hello = serde_json::from_value(hello).expect("a hello");
        InForce { member: index, process: Some(std::process::id()), hello: Some(hello), ..InForce::default() }
    }

    /// Judge two members, which are this thread of the test and another one that lives meanwhile.
    fn judged(on_card: bool, lock: bool, say: impl Fn(u32, u32) -> [InForce; 2]) -> (AttestationVerdict, String) {
        let (send, receive) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            send.send(nix::unistd::gettid().as_raw() as u32).expect("heard");
            let _ = ended.recv();
        });
        let tids = (nix::unistd::gettid().as_raw() as u32, receive.recv().expect("its number"));
        let found = Attestation::from_checks(of_threads(&say(tids.0, tids.1), Hosting { lock }, on_card));
        drop(end);
        other.join().expect("it ended");
        let failed: Vec<String> = found.checks.iter().filter(|c| !c.holds).map(crate::stage::evidence::words).collect();
        (found.verdict, failed.join("; "))
    }

    #[test]
    fn two_threads_of_one_process_with_streams_of_their_own_are_attested() {
        let own = std::process::id();
        let (verdict, failed) = judged(true, true, |a, b| [member(0, own, a, true, Some(7)), member(1, own, b, true, Some(8))]);
        assert_eq!((verdict, &*failed), (AttestationVerdict::Attested, ""));
        let (verdict, failed) = judged(false, false, |a, b| [member(0, own, a, false, None), member(1, own, b, false, None)]);
        assert_eq!((verdict, &*failed), (AttestationVerdict::Attested, ""), "on a CPU there are no streams");
    }

    #[test]
    fn what_is_not_as_asked_takes_the_evidence_from_all() {
        let own = std::process::id();
        let (verdict, failed) = judged(true, true, |a, b| [member(0, own, a, true, Some(7)), member(1, own, b, true, Some(7))]);
        assert_eq!(verdict, AttestationVerdict::Absent);
        assert!(failed.contains("stream 0x7, which another member has too"), "{failed}");
        let (_, failed) = judged(true, true, |a, b| [member(0, own, a, true, Some(7)), member(1, own, b, true, Some(0))]);
        assert_eq!(failed, "CUDA stream of member 1: asked one of its own, not the default, found the default stream");
        let (_, failed) = judged(true, true, |a, b| [member(0, own, a, true, Some(7)), member(1, own, b, true, None)]);
        assert_eq!(failed, "CUDA stream of member 1: asked one of its own, not the default, found nothing");
        let (_, failed) = judged(false, false, |a, b| [member(0, own, a, false, None), member(1, own, b, true, None)]);
        assert_eq!(failed, "Python's lock of member 1: asked none, found held");
        let (_, failed) = judged(false, true, |a, _| [member(0, own, a, true, None), member(1, own, a, true, None)]);
        assert!(failed.contains("which another member names too"), "{failed}");
        let (_, failed) = judged(false, true, |a, b| [member(0, own, a, true, None), member(1, own + 1, b, true, None)]);
        assert!(failed.contains("process of all members"), "{failed}");
        let (_, failed) = judged(false, true, |a, _| [member(0, own, a, true, None), member(1, own, 1, true, None)]);
        assert_eq!(
            failed,
            "thread of the process of member 1: asked one of its own, found thread 1, which is not of that process"
        );
    }
}
