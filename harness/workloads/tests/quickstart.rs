//! The whole way, small: real PyTorch on the CPU, from an experiment to its report.

#[expect(dead_code, reason = "each test program uses its part of it")]
#[path = "../../cli/tests/support/mod.rs"]
mod support;

use std::path::Path;

use collo_store::{AttestationVerdict, Outcome, Verdict};
use serde_json::Value;
use support::{Bench, epochs};

/// Four epochs of 128 images: long enough for the loss to fall. On a busy machine such short epochs drift.
const TINY: &str = "repetitions = 2
epochs = 4
[axes]
workload = \"tiny\"
images = 128
degree = [1, 2]
[thresholds]
overlap = \"50%\"
start_skew = \"5s\"
baseline_drift = \"90%\"";

#[test]
fn an_experiment_on_real_processes_becomes_a_report() {
    let bench = Bench::of(TINY);
    let answer = bench.collo(&["run", "x"]).exits(0);
    let answer = answer.answers("x on cpu: 6 of 6 runs completed").answers("tiny×2 naive").says("report: reports/x/report.html");
    assert!(answer.stdout.contains("synthetic"), "{}", answer.stdout);
    stored(&bench);
    let report: Value = serde_json::from_str(&file(&bench, "reports/x/report.json")).expect("JSON");
    reported(&report);
    let markdown = file(&bench, "reports/x/report.md");
    assert!(markdown.contains("tiny×2 naive") && markdown.contains("synthetic"));
    let html = file(&bench, "reports/x/report.html");
    assert!(html.contains("<svg") && html.contains("synthetic") && html.contains("tiny×2 naive"));
    // A reader may follow the identifier of a paper; the page loads nothing from there.
    let own = html.replace("<a href=\"https://doi.org/", "<a href=\"");
    assert!(!own.contains("src=\"http") && !own.contains("href=\"http"), "the page needs nothing from elsewhere");
    answers(&bench, &report);
}

fn file(bench: &Bench, name: &str) -> String {
    fs_err::read_to_string(bench.at(name)).expect("written")
}

fn stored(bench: &Bench) {
    for (folder, run) in bench.runs() {
        let record = &run.record;
        assert_eq!(record.outcome, Outcome::Completed, "{folder}");
        assert_eq!(record.attestation.verdict, AttestationVerdict::Attested, "{folder}: {:?}", record.attestation);
        assert_eq!(record.validity.verdict, Verdict::Valid, "{folder}: {:?}", record.validity);
        for (index, member) in record.members.iter().enumerate() {
            assert_eq!(member.synthetic, Some(true), "there is no real data set in a new project");
            assert!(member.peak_rss_bytes.expect("read") > 100 << 20, "torch takes more than that");
            assert_eq!(member.allocated_bytes, None, "a CPU has no allocator of its own, and 0 would be a reading");
            assert!(member.cpu_time_s.expect("reaped") > 0.5);
            let hello = member.hello.as_ref().expect("it said hello");
            assert_eq!((hello["device"].as_str(), hello["threads"].as_u64()), (Some("cpu"), Some(1)));
            let losses: Vec<f64> = epochs(&run).iter().filter(|e| e.member as usize == index).filter_map(|e| e.loss).collect();
            assert!(losses.len() >= 4 && losses[3] < losses[0], "{folder}: the loss does not fall: {losses:?}");
        }
    }
}

fn reported(report: &Value) {
    assert_eq!(report.as_object().and_then(|o| o.keys().next()).map(String::as_str), Some("schema"));
    assert_eq!((&report["planned"], &report["accounted"]["completed"]), (&6.into(), &6.into()));
    let accounted = report["accounted"].as_object().expect("an object").values().filter_map(Value::as_u64).sum::<u64>();
    assert_eq!(accounted, 6, "planned = accounted");
    assert_eq!(report["device"]["kind"], "cpu");
    assert_eq!(report["device"]["simulated"], false);
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2);
    let readable_energy = Path::new("/sys/class/powercap/intel-rapl:0/energy_uj").exists();
    for cell in cells {
        // A test machine may be busy, or slower in the solo runs than later, which the report says of itself, and a repetition that is left
        // out for it may have been one of two; nothing else may be wrong.
        let reasons: Vec<&str> = cell["reasons"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let busy = |r: &&str| {
            r.split("; ").all(|r| r.starts_with("other processes used ") || r.contains("left out: other processes used "))
        };
        let alone = |r: &&str| *r == "one repetition carries no interval";
        let is_slower_alone = |r: &&str| r.starts_with("implausible: its members were faster than alone ");
        let is_noise = |r: &&str| busy(r) || is_slower_alone(r);
        let only_busy = reasons.iter().any(is_noise) && reasons.iter().all(|r| is_noise(r) || alone(r));
        assert!(cell["validity"] == "valid" || only_busy, "{cell}");
        assert!(cell["epoch_time_s"]["estimate"].as_f64().expect("measured") > 0.0);
        assert!(cell["memory_bytes"]["estimate"].as_f64().expect("measured") > 1e8);
        assert!(readable_energy || cell["energy_j_per_epoch"].is_null(), "absent is null, never 0: {cell}");
    }
    let pair = cells.iter().find(|c| c["degree"] == 2).expect("the pair");
    for quantity in ["slowdown", "throughput_gain", "stp", "antt", "fairness", "overlap_ratio"] {
        assert!(pair[quantity]["estimate"].as_f64().is_some_and(|v| v > 0.0), "{quantity}: {pair}");
    }
}

/// Whatever someone would parse can be parsed, and says its schema first.
fn answers(bench: &Bench, report: &Value) {
    let plan = bench.collo(&["plan", "x", "--json"]).exits(0).json();
    assert_eq!(plan["order"].as_array().map(Vec::len), Some(6));
    let list = bench.collo(&["list", "--json"]).exits(0).json();
    assert_eq!(list["campaigns"][0]["state"], "complete");
    assert_eq!(list["campaigns"][0]["campaign"], report["campaign"]);
    let verify = bench.collo(&["verify", "--json"]).exits(0).json();
    assert_eq!(verify["holds"], true);
    bench.collo(&["show", "--json"]).exits(0).json();
    bench.collo(&["show", "last", "tinyx2", "--json"]).exits(0).json();
    bench.collo(&["status", "--json"]).exits(0).json();
    let again = bench.collo(&["report", "--json"]).exits(0).json();
    assert_eq!(again["cells"], report["cells"], "a report made again says the same");
}
