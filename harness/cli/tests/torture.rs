//! collo is killed at random instants, as a machine under memory pressure or an impatient administrator would: nothing that it
//! started survives, nothing that it stored is harmed, and the campaign ends as if nothing had happened.

mod strikes;

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::gpu_kill::kills::{Random, intact_runs, is_complete};
use crate::support::{Bench, crash, wait_for};

/// Sleepers alone and in pairs, and one that leaves a daemon behind beside one that does not.
const CAMPAIGN: &str = "repetitions = 2
[axes]
workload = \"sleep\"
seconds = 0.1
items = 10
degree = [1, 3]
[[group]]
after_measured = \"keep-running\"
members = [
    { workload = \"faulty\", seconds = 0.2, items = 10, fail_at = \"epoch0\", how = \"daemon\" },
    { workload = \"sleep\", seconds = 0.1, items = 10 },
]";

/// How long the processes of a killed collo may take to be gone.
const TIMEOUT: Duration = Duration::from_secs(3);

/// What of a report does not depend on times; how many repetitions count does, because a busy machine drifts.
fn shape(report: &Value) -> Value {
    let cells = report["cells"].as_array().expect("cells");
    let member = |m: &Value| json!([m["workload"], m["batch_size"], m["settings"], m["solo"]]);
    let members = |c: &Value| c["members"].as_array().expect("members").iter().map(member).collect::<Vec<_>>();
    let cell = |c: &Value| json!([c["cell"], c["sharing"], c["degree"], members(c), c["outcome"], c["outcomes"]]);
    let keys: Vec<&String> = report.as_object().expect("an object").keys().collect();
    json!({"keys": keys, "planned": report["planned"], "accounted": report["accounted"], "refusals": report["refusals"],
        "cells": cells.iter().map(cell).collect::<Vec<_>>()})
}

/// Kill a campaign so many times, let it end, and hold it against an undisturbed one.
fn torture(kills: u32, seed: u64) {
    let undisturbed = std::thread::spawn(|| {
        let bench = Bench::of(CAMPAIGN);
        shape(&bench.collo(&["run", "x", "--json", "-q"]).exits(0).json())
    });
    let bench = Bench::of(CAMPAIGN);
    let mut random = Random(seed);
    let (mut hit, mut finished, mut longest, mut cut_off) = (0, 0, Duration::ZERO, 0);
    while hit < kills {
        let campaigns = bench.campaigns();
        let stored = intact_runs(&bench);
        let mut running = bench.start(&["run", "x", "--no-report"]);
        std::thread::sleep(random.below(Duration::from_millis(2500)));
        running.signal(Signal::SIGKILL);
        let at = Instant::now();
        bench.nothing_is_left(TIMEOUT);
        longest = longest.max(at.elapsed());
        match running.ends().code {
            // By a signal: the kill came before the end.
            None => hit += 1,
            Some(code) => {
                assert_eq!(code, 0);
                finished += 1;
            }
        }
        let now = intact_runs(&bench);
        assert!(bench.campaigns() > campaigns || now >= stored, "{stored} runs were stored, {now} are left");
        cut_off += usize::from(bench.runs_folder().find("last").is_ok_and(|c| !c.partials().expect("readable").is_empty()));
    }
    if !is_complete(&bench) {
        bench.run(&[]).exits(0);
    }
    bench.nothing_is_left(Duration::ZERO);
    assert!(bench.campaign().partials().expect("readable").is_empty(), "what was cut off was measured again");
    bench.collo(&["verify"]).exits(0);
    let report = bench.collo(&["report", "--json"]).exits(0).json();
    assert_eq!(shape(&report), undisturbed.join().expect("the undisturbed campaign completes"));
    println!(
        "{hit} kills (seed {seed}), a run was cut off after {cut_off} of them; {finished} ends before the kill; {} campaigns; \
         the slowest clean-up took {longest:.0?}",
        bench.campaigns()
    );
}

#[test]
fn killed_at_random_instants_a_campaign_still_ends_whole() {
    torture(4, 1);
}

#[test]
#[ignore = "minutes; `just torture` runs it"]
fn killed_many_times_nothing_is_left_lost_or_changed() {
    let asked = std::env::var("COLLO_TORTURE").ok().and_then(|n| n.parse().ok());
    strikes::all(asked.unwrap_or(50), 1);
}

#[test]
fn when_a_supervisor_is_killed_everything_below_it_goes_too() {
    let bench = Bench::of("[axes]\nworkload = \"faulty\"\nseconds = 1\nitems = 100\nfail_at = \"epoch0\"\nhow = \"daemon\"");
    let running = bench.start(&["run", "x", "--no-report"]);
    let supervisor = wait_for("a daemon under a supervisor", || {
        let partials = bench.runs_folder().find("last").ok()?.partials().ok()?;
        let log = std::fs::read_to_string(partials.first()?.join("member-0.log")).ok()?;
        log.contains("left behind").then_some(())?;
        bench.left().into_iter().find(|(_, line)| line.contains("__supervise"))
    });
    kill(Pid::from_raw(supervisor.0 as i32), Signal::SIGKILL).expect("it is there");
    running.ends().exits(1).says("its supervisor was killed");
    bench.nothing_is_left(Duration::from_secs(60));
    let (member, status, _) = crash(&bench.run_of(1));
    assert_eq!((member, &*status), (0, "its supervisor was killed"));
}
