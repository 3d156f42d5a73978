//! `collo plan --commands` shows what `collo run` executes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::sim::Machine;
use crate::support::{Bench, log};

const ENVIRONMENT: &str = "import json, os, time\nshown = [dict(os.environ), os.getcwd(), sorted(os.sched_getaffinity(0))]\n\
                           print(json.dumps(shown), flush=True)\n\
                           for epoch in range(3):\n    time.sleep(0.1)\n    print('epoch', epoch, flush=True)\n";

/// The planned starts of members, by cell, repetition, member.
fn members(planned: &Value) -> BTreeMap<(String, u64, u64), Value> {
    let steps = planned["steps"].as_array().expect("steps").iter().filter(|step| step["step"] == "member");
    let of = |step: &Value| {
        let number = |key: &str| step[key].as_u64().expect("a number");
        let cell = step["cell"].as_str().expect("a label").to_string();
        ((cell, number("repetition"), number("member")), step["start"].clone())
    };
    steps.map(of).collect()
}

#[test]
fn what_is_printed_is_what_members_are_started_with() {
    let toml = "command = [\"python\", \"train.py\", \"{batch_size}\"]\nenvironment = \"system\"\n[settings]\nbatch_size = 4\n\
                [epochs]\npattern = \"^epoch (?P<epoch>[0-9]+)\"\n[variables]\nOWN = \"of {batch_size}\"\n";
    let bench = Bench::of("cores = \"0\"\nrepetitions = 2\n[axes]\nworkload = \"shows\"\nbatch_size = 8\ndegree = 2\n")
        .file("workloads/shows/workload.toml", toml)
        .file("workloads/shows/train.py", ENVIRONMENT);
    let planned = members(&bench.collo(&["plan", "x", "--commands", "--json"]).exits(0).json());
    bench.run(&[]).exits(0);
    let runs = bench.runs();
    assert_eq!(runs.values().map(|run| run.record.members.len()).sum::<usize>(), planned.len());
    for run in runs.values() {
        for (index, member) in run.record.members.iter().enumerate() {
            let key = (run.record.cell.cell.clone(), u64::from(run.record.repetition), index as u64);
            let start = &planned[&key];
            assert_eq!(start["command"], serde_json::json!(member.command), "{key:?}");
            let printed = log(run, index);
            let seen: Value = serde_json::from_str(printed.lines().next().expect("a line")).expect("JSON");
            for (name, value) in start["environment"].as_object().expect("variables") {
                assert_eq!(seen[0].get(name), Some(value).filter(|value| !value.is_null()), "{name} of {key:?}");
            }
            assert_eq!((&seen[1], &seen[2]), (&start["folder"], &start["cores"]), "{key:?}");
        }
    }
    let text = bench.collo(&["plan", "x", "--commands"]).exits(0);
    assert!(text.stdout.contains("member 1 on cores 0") && text.stdout.contains("OWN='of 8'"), "{}", text.stdout);
}

#[test]
fn before_every_run_a_thermal_gate_is_waited_for_after_the_pause() {
    let toml = "cooldown = \"until 3C above idle\"\n[axes]\nworkload = \"small\"\nlimit_batches = 20\n";
    let json = Machine::new("a100-40gb", toml).bench.collo(&["plan", "x", "--commands", "--json"]).exits(0).json();
    let words = json["steps"].as_array().expect("steps").iter().filter_map(|step| step["step"].as_str());
    let words: Vec<&str> = words.filter(|word| ["pause", "cool-down", "member"].contains(word)).collect();
    assert_eq!(words[..5], ["cool-down", "member", "pause", "cool-down", "member"], "{words:?}");
}

#[test]
fn on_a_gpu_the_steps_are_in_order_and_what_is_not_known_yet_is_a_placeholder() {
    let toml =
        "[axes]\nworkload = \"small\"\nlimit_batches = 20\nsharing = [\"naive\", \"mps:50%\", \"mig:2×3g.20gb\"]\ndegree = 2\n";
    let machine = Machine::new("a100-40gb", toml);
    let bench = &machine.bench;
    let json = bench.collo(&["plan", "x", "--commands", "--json"]).exits(0).json();
    let planned = members(&json);
    let of = |cell: &str, name: &str| {
        let found = planned.iter().find(|((label, _, member), _)| label.contains(cell) && *member == 1).expect("planned");
        found.1["environment"][name].as_str().unwrap_or_default().to_string()
    };
    assert_eq!(of("naive", "CUDA_VISIBLE_DEVICES"), machine.uuid(0));
    assert_eq!(of("mps:50%", "CUDA_MPS_PIPE_DIRECTORY"), "<pipe folder>");
    assert_eq!(of("mps:50%", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "50");
    assert_eq!(of("×2 mig", "CUDA_VISIBLE_DEVICES"), "<UUID of 3g.20gb@4>");
    let words: Vec<&str> = json["steps"].as_array().expect("steps").iter().filter_map(|step| step["step"].as_str()).collect();
    let place = |word: &str| words.iter().position(|other| *other == word).unwrap_or_else(|| panic!("no {word} in {words:?}"));
    assert!(place("prepare") < place("start-daemon") && place("start-daemon") < place("stop-daemon"), "{words:?}");
    assert!(place("stop-daemon") < place("partition"), "MIG off comes first, as found: {words:?}");
    assert_eq!(words.last(), Some(&"restore"));
    // The same commands as recorded.
    bench.run(&[]).exits(0);
    for run in bench.runs().values() {
        for (index, member) in run.record.members.iter().enumerate() {
            let key = (run.record.cell.cell.clone(), u64::from(run.record.repetition), index as u64);
            assert_eq!(planned[&key]["command"], serde_json::json!(member.command), "{key:?}");
        }
    }
}
