//! Members that answer requests: on the CPU with the real script, and on a simulated card under every mode.

use collo_store::{Outcome, RequestRecord, StoredRun, Verdict};

use crate::sim::Machine;
use crate::support::{Bench, epochs, events};

fn requests(run: &StoredRun) -> Vec<RequestRecord> {
    collo_store::read_requests(&run.path.join("requests.parquet")).expect("stored where a member serves")
}

/// What must be so of every run in which a member serves: its requests are whole, within its life, and as many as its epochs say.
fn serves(run: &StoredRun, rate_per_s: f64) {
    let name = &run.record.cell.cell;
    assert_eq!(run.record.outcome, Outcome::Completed, "{name}");
    let at = run.record.members.iter().position(|m| m.spec.workload.starts_with("serve")).expect("one serves");
    let serving = run.record.members[at].serving.clone().expect("its hello says so");
    assert_eq!(serving.rate_per_s, rate_per_s, "{name}");
    assert!(serving.capacity_per_s.expect("told") > rate_per_s, "{name}: {serving:?}");
    assert!(run.record.members.iter().enumerate().all(|(i, m)| i == at || m.serving.is_none()), "{name}");
    let all = requests(run);
    assert!(all.iter().all(|r| r.member as usize == at), "{name}");
    let go_ns = run.record.timeline.go_ns.expect("it went");
    assert!(all.iter().all(|r| r.arrival_ns >= go_ns && r.end_ns.is_none_or(|e| e <= run.record.timeline.ended_ns)), "{name}");
    let own: Vec<_> = epochs(run).into_iter().filter(|e| e.member as usize == at).collect();
    let last_ns = own.iter().map(|e| e.end_ns).max().expect("it told of epochs");
    let items: u64 = own.iter().filter_map(|e| e.items).sum();
    let answered = all.iter().filter(|r| r.end_ns.is_some_and(|end| end <= last_ns)).count() as u64;
    assert_eq!(items, answered, "{name}");
    let span_s = (last_ns - own[0].start_ns) as f64 / 1e9;
    let came = all.iter().filter(|r| r.arrival_ns <= last_ns).count() as f64;
    let wanted = rate_per_s * span_s;
    assert!((came - wanted).abs() < 5.0 * wanted.sqrt() + 1.0, "{name}: {came} came in {span_s} s at {rate_per_s} a second");
    let counted = |e: &serde_json::Value| e["said"]["event"] == "requests" && e["said"]["requests"].is_u64();
    assert!(events(run).iter().any(counted), "the log of events counts them, the table has them");
}

#[test]
fn a_server_beside_a_trainer_is_measured_and_its_window_is_shown_as_no_epoch_time() {
    let bench = Bench::of(
        "after_measured = \"keep-running\"\n[thresholds]\nstart_skew = \"5s\"\n[[group]]\nmembers = [{ workload = \"serve\", rate = 30.0, \
         image_size = 32, window = \"1500ms\" }, { workload = \"sleep\", seconds = 0.5 }]\n",
    );
    let answer = bench.run(&[]).exits(0).says("99 % answered within");
    for run in bench.runs().values().filter(|r| r.record.members.iter().any(|m| m.spec.workload == "serve")) {
        serves(run, 30.0);
    }
    let mixed = bench.run_of(2);
    assert_eq!(mixed.record.cell.after_measured, collo_store::AfterMeasured::KeepRunning);
    let said = |line: &&str| line.contains("serve solo") && line.contains("completed");
    let line = answer.stderr.lines().find(said).unwrap_or_else(|| panic!("{}", answer.stderr));
    assert!(!line.contains("per epoch"), "{line}");
}

#[test]
fn a_rate_that_the_machine_cannot_serve_alone_is_said_with_the_one_it_can() {
    let bench = Bench::of(
        "[axes]\nworkload = \"serve\"\nsharing = \"solo\"\nkind = \"decode\"\ntokens = 64\nrate = 5000.0\nwindow = \"1s\"\n",
    );
    bench.run(&[]).exits(1).says("`rate` is 5000 a second, this device answers ").says("a second alone");
}

#[test]
fn a_server_can_be_tried() {
    let bench = Bench::new();
    let answer = bench.collo(&["workload", "check", "serve", "--set", "image_size=32"]).exits(0);
    let answer = answer.answers("✓ answers").answers("asked 20 a second, it can answer ");
    answer.answers("`serve` speaks the protocol");
}

/// A server beside one that trains, on a simulated card.
fn beside(sharing: &str, settings: &str) -> String {
    format!(
        "after_measured = \"keep-running\"\nslices = {{ serve-resnet50 = \"2g.10gb\", small = \"3g.20gb\" }}\n[axes]\nsharing = \"{sharing}\"\n\
         [[group]]\nmembers = [{{ workload = \"serve-resnet50\"{settings} }}, {{ workload = \"small\" }}]\n"
    )
}

fn median_s(run: &StoredRun) -> f64 {
    let mut all: Vec<u64> = requests(run).iter().filter_map(|r| Some(r.end_ns? - r.arrival_ns)).collect();
    all.sort_unstable();
    all[all.len() / 2] as f64 / 1e9
}

fn measured_under(sharing: &str) {
    let machine = Machine::new("a100-40gb,noise=0,seed=1", &beside(sharing, "")).env("COLLO_SIM_EPOCH_S", "1");
    machine.run(&[]).exits(0);
    let run = machine.bench.run_of(2);
    serves(&run, 50.0);
    assert_ne!(run.record.validity.verdict, Verdict::Discarded, "{sharing}: {:?}", run.record.validity);
    let runs = machine.bench.runs();
    let alone = runs.values().find(|r| r.record.cell.degree == 1 && r.record.cell.cell.starts_with("serve-resnet50 solo"));
    let alone_s = median_s(alone.expect("its baseline"));
    assert!((0.006..0.02).contains(&alone_s), "{sharing}: {alone_s}");
    assert!(median_s(&run) > alone_s, "{sharing}: company costs");
}

#[test]
fn a_simulated_server_is_measured_under_every_mode() {
    std::thread::scope(|scope| {
        for sharing in ["naive", "mps", "mig"] {
            scope.spawn(move || measured_under(sharing));
        }
    });
}

#[test]
fn a_simulated_server_refuses_what_a_real_one_refuses() {
    let ends = |settings: &str, words: &str| {
        let machine = Machine::new("a100-40gb,noise=0,seed=1", &beside("naive", settings));
        machine.run(&[]).exits(1).says(words);
    };
    ends(", slo = \"50\"", "`slo` is `50`: it is a time above 0 with its unit");
    ends(", rate = 9000.0", "`rate` is 9000 a second, this device answers 6");
}

#[test]
fn a_server_below_its_rate_is_a_result() {
    let settings = ", rate = 900.0, slo = \"50ms\"";
    let machine = Machine::new("a100-40gb,noise=0,seed=1", &beside("naive", settings)).env("COLLO_SIM_EPOCH_S", "1");
    machine.run(&[]).exits(0);
    let run = machine.bench.run_of(2);
    assert_eq!(run.record.outcome, Outcome::Completed);
    let report = machine.collo(&["report", "--json"]).exits(0).json();
    let served = report["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .filter(|c| c["cell"].as_str().is_some_and(|name| name.starts_with("serve-resnet50")));
    for cell in served {
        let why = cell["absent"]["latency_p99_s"].as_str().expect("a reason");
        assert!(why.starts_with("its `rate` is 900 a second, and alone it answers "), "{why}");
        assert_eq!((cell["latency_p99_s"].is_null(), cell["within_slo_ratio"]["estimate"].as_f64()), (true, Some(0.0)), "{cell}");
    }
}
