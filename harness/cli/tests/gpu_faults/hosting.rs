//! Threads of one process on a card: what is evidence that each has a stream of its own and all have one process, and what one of them
//! does to the others.

use std::collections::BTreeMap;

use collo_store::{AttestationVerdict, Outcome};

use super::{NAIVE, two};
use crate::gpu_faults::looks::indicative;
use crate::gpu_faults::row::{all, hold, row};
use crate::sim::Machine;
use crate::support::{Answer, epochs};

/// Two of them, and a machine on which noise does not decide who is faster.
const WAYS: &str = "epochs = 3\n[axes]\nworkload = \"small\"\nsharing = [\"naive\", \"mps\", \"threads\"]\ndegree = 2";
const STEADY: &str = "dgx-a100,noise=0,seed=1";

/// Every group of threads was one process, seen as such by the driver, with as many streams as members.
fn one_process(machine: &Machine, _: &Answer) -> Result<(), String> {
    let runs = machine.bench.runs();
    let groups: Vec<_> = runs.values().filter(|r| r.record.cell.sharing == "threads").collect();
    hold(!groups.is_empty(), || "no run of threads".into())?;
    for run in groups {
        let r = &run.record;
        hold(r.attestation.verdict == AttestationVerdict::Attested, || format!("{:?}", r.attestation))?;
        let found = |what: &str| r.attestation.checks.iter().filter(|c| c.what.starts_with(what)).count();
        let counts = [found("process of all members"), found("CUDA stream"), found("thread of the process")];
        hold(counts == [2, r.members.len(), r.members.len()], || format!("{counts:?} checks: {:?}", r.attestation.checks))?;
        let mut pids: Vec<_> = r.members.iter().map(|m| m.pid).collect();
        pids.dedup();
        hold(pids.len() == 1 && pids[0].is_some(), || format!("processes {pids:?}"))?;
        hold(r.process.is_some(), || "nothing is told of the process".into())?;
        // The peaks of an allocator that all share are nobody's own.
        hold(r.members.iter().all(|m| m.reserved_bytes.is_none()), || "a thread tells an allocator of its own".into())?;
    }
    Ok(())
}

/// By turns is slowest, and Python's lock costs more than MPS does.
fn between_turns_and_mps(machine: &Machine, _: &Answer) -> Result<(), String> {
    let mut means: BTreeMap<String, f64> = BTreeMap::new();
    for run in machine.bench.runs().values().filter(|r| r.record.cell.degree == 2) {
        let lengths: Vec<f64> = epochs(run).iter().filter(|e| e.measured).map(|e| (e.end_ns - e.start_ns) as f64).collect();
        means.insert(run.record.cell.sharing.clone(), lengths.iter().sum::<f64>() / lengths.len() as f64);
    }
    let [naive, mps, threads] = ["naive", "mps", "threads"].map(|way| means.get(way).copied().unwrap_or(f64::NAN));
    hold(mps <= threads && threads < naive, || format!("mean epochs: {means:?}"))
}

/// All of a group ended with the error that one of them met, because they had one context.
fn both_say_it(machine: &Machine, _: &Answer) -> Result<(), String> {
    let runs = machine.bench.runs();
    let run = runs.values().find(|r| r.record.cell.sharing == "threads").ok_or("no run of threads")?;
    hold(matches!(run.record.outcome, Outcome::Crashed { .. }), || format!("{:?}", run.record.outcome))
}

#[test]
fn members_of_one_process_are_attested_and_faster_than_by_turns() {
    all(vec![
        row("two threads", "dgx-a100", two("threads")).looks(one_process),
        row("beside turns and MPS", STEADY, WAYS).looks(one_process).looks(between_turns_and_mps),
        row(
            "a mixed group",
            "dgx-a100",
            "[[group]]\nmembers = [{ workload = \"small\" }, { workload = \"medium\" }]\nsharing = \"threads\"",
        )
        .looks(one_process),
        row("one process is what exclusive allows", "dgx-a100,exclusive", two("threads")).looks(one_process),
        row("a container hides the pid", "dgx-a100,hidden-pids", two("threads")).looks(indicative),
    ]);
}

#[test]
fn threads_without_streams_of_their_own_or_in_two_processes_give_no_number() {
    let lost = |name, words: &str| row(name, format!("dgx-a100,{words}"), two("threads")).exits(1).ends("threads", "mode_lost");
    all(vec![
        lost("the second has the stream of the first", "one-stream=1")
            .says("CUDA stream of member 0")
            .says("which another member has too"),
        lost("all have one stream", "one-stream").says("which another member has too"),
        lost("one has the default stream", "default-stream=1").says("CUDA stream of member 1").says("the default stream"),
        lost("one computes in another process", "two-processes=1").says("process of all members on GPU 0"),
        row("by turns nobody asks for streams", "dgx-a100,default-stream,two-processes", NAIVE),
    ]);
}

#[test]
fn a_thread_that_goes_wrong_ends_its_group_with_its_own_reason() {
    let threads = two("threads");
    all(vec![
        row("one runs out of memory", "dgx-a100,oom=1", &*threads).ends("threads", "out_of_memory").says("CUDA out of memory"),
        row("nine large ones", "dgx-a100", threads.replace("small", "large").replace("= 2", "= 9"))
            .ends("threads", "out_of_memory"),
        row("one breaks the context of all", "dgx-a100,crash=1@200ms", &*threads)
            .once_opened()
            .exits(1)
            .ends("threads", "crashed")
            .says("illegal memory")
            .looks(both_say_it),
        row("lost while they train", "dgx-a100,lost@200ms", &*threads).once_opened().exits(4).ends("threads", "device_lost"),
        row("one says nothing", "dgx-a100,silent=1", format!("set_up_timeout = \"2s\"\n{threads}"))
            .exits(1)
            .ends("threads", "timed_out"),
    ]);
}
