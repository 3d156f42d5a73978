//! Groups whose members are threads of one process: what is told of the group, what of nobody, and how they compare with processes.

use collo_guidelines::rule::Guideline;
use collo_guidelines::verdict::Holds;
use collo_report::{Report, json, terminal, terminal_cell, write};
use collo_store::Outcome;
use serde_json::Value;

use crate::support::Fixture;
use crate::support::exports::export;
use crate::support::predictions::{by, in_company, member};
use crate::support::study::analysed;
use crate::support::threads::{on_a_card, on_cores};

const GIB: f64 = 1073741824.0;
const THREADS: &str = "tiny×2 threads b32";

fn cell<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["cells"].as_array().unwrap().iter().find(|c| c["cell"] == name).unwrap()
}

#[track_caller]
fn near(found: &Value, truth: f64, tolerance: f64) {
    let found = found["estimate"].as_f64().unwrap_or_else(|| panic!("{found}"));
    assert!((found / truth - 1.0).abs() < tolerance, "{found} is not within {tolerance} of {truth}");
}

fn one_process(report: &Report) -> &Guideline {
    report.guidelines.iter().find(|g| g.id == "one-process").unwrap()
}

/// The sentence in bold, the finding, what was tested.
fn said(g: &Guideline) -> String {
    format!("{:?}: {}\n{}\n{}", g.holds, g.statement, g.finding, g.tested)
}

#[test]
fn what_the_process_used_is_told_of_the_group_once_and_of_no_member() {
    let report = json(&analysed(&on_cores()));
    let (threads, naive) = (cell(&report, THREADS), cell(&report, "tiny×2 naive b32"));
    near(&threads["memory_bytes"], 0.8 * GIB, 1e-6);
    near(&threads["memory_of_solo"], 0.8 / 1.5, 1e-6);
    assert_eq!(threads["memory_kind"], "pss_peak");
    near(&threads["cpu_ratio"], 2.0 * 0.99, 0.02);
    near(&threads["energy_j_per_epoch"], 30.0 * 2.40 / 2.0, 0.05);
    // The host's own number, of which that of the process is a part.
    near(&threads["metrics"]["cpu_ratio"], 2.0 * 0.99 + 0.02, 1e-3);
    near(&naive["metrics"]["cpu_ratio"], 2.0 * 0.99 + 0.02, 1e-3);
    assert_eq!(threads["validity"], "valid", "{}", threads["reasons"]);
    for member in threads["members"].as_array().unwrap() {
        near(&member["epoch_time_s"], 2.40, 1e-3);
        let absent = ["memory_bytes", "cpu_ratio", "read_bytes_per_s", "involuntary_switches_per_s"];
        assert!(absent.iter().all(|name| member[name].is_null()), "{member:#}");
        let why = "its members are threads of one process, which has the memory of the group";
        assert_eq!(member["absent"]["memory_bytes"], why);
        assert_eq!(member["absent"]["read_bytes_per_s"], "its members are threads of one process");
    }
    assert!(naive["members"][0]["absent"].as_object().unwrap().is_empty() && !naive["members"][0]["memory_bytes"].is_null());
}

#[test]
fn a_card_s_memory_is_that_of_the_process_too() {
    let report = json(&analysed(&on_a_card()));
    let threads = cell(&report, "small×2 threads b32");
    near(&threads["memory_bytes"], 3.0 * GIB, 1e-6);
    near(&threads["memory_headroom_bytes"], 37.0 * GIB, 1e-6);
    assert_eq!((&threads["memory_kind"], &threads["members"][0]["memory_bytes"]), (&"gpu_memory".into(), &Value::Null));
}

#[test]
fn the_data_set_has_the_group_and_leaves_members_empty() {
    let report = analysed(&on_cores());
    let text = String::from_utf8(export(&report, "dataset").unwrap()).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heads = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let at = |row: &csv::StringRecord, name: &str| row[heads.iter().position(|head| head == name).unwrap()].to_string();
    let of = |sharing: &str| rows.iter().find(|row| at(row, "sharing") == sharing).unwrap();
    let threads = of("threads");
    let absent = ["memory_bytes", "memory_kind", "cpu_ratio", "peak_rss_bytes", "allocated_bytes", "read_bytes_per_s"];
    assert!(absent.iter().all(|name| at(threads, name).is_empty()), "{threads:?}");
    let number = |row: &csv::StringRecord, name: &str| at(row, name).parse::<f64>().unwrap_or_else(|_| panic!("{name}"));
    let group = number(threads, "group_memory_bytes") / GIB;
    assert!((group - 0.8).abs() < 1e-3, "{group}");
    assert_eq!(at(threads, "group_memory_kind"), "pss_peak");
    assert!((number(threads, "group_cpu_ratio") - 1.98).abs() < 0.05);
    let naive = of("naive");
    assert!((number(naive, "group_cpu_ratio") - 2.0 * number(naive, "cpu_ratio")).abs() < 0.05);
}

#[test]
fn nothing_is_predicted_of_threads_and_the_law_of_processes_is_not_held_against_them() {
    let mut fixture = on_a_card();
    let claims = by(vec![member("small", false, 2.0, 4), member("small", true, 1.8, 0)]);
    let reason = "nothing is predicted of members that share as `threads`";
    let groups = [("small×2 naive b32", Ok(&[1.9, 1.9][..])), ("small×2 threads b32", Err(reason))];
    fixture.predicted = Some(in_company(claims, &groups));
    let report = analysed(&fixture);
    let quantities = report.analysis.predicted();
    let of_threads = |name: &str| name.contains("threads");
    assert!(quantities.iter().any(|q| !q.points.is_empty()));
    assert!(quantities.iter().flat_map(|q| &q.points).all(|point| !of_threads(point.cell.name())));
    let uncompared = quantities.iter().flat_map(|q| &q.uncompared).filter(|one| of_threads(one.cell.name()));
    let mut why: Vec<&str> = uncompared.inspect(|one| assert!(one.claim.is_none())).map(|one| one.why.as_str()).collect();
    why.dedup();
    assert_eq!(why, ["memory is predicted of processes, and its members are threads of one", reason]);
    let json = json(&report);
    assert!(cell(&json, "small×2 threads b32")["members"][0]["predicted"].is_null());
    assert!(!cell(&json, "small×2 naive b32")["members"][0]["predicted"].is_null());
    assert_eq!(report.analysis.may_run_out(report.analysis.cell("small×2 threads").unwrap()), None);
}

#[test]
fn on_a_cpu_the_guideline_says_what_the_lock_costs() {
    let report = analysed(&on_cores());
    insta::assert_snapshot!(said(one_process(&report)), @r"
    No: Is one process better than several?
    No: keep a process for each member. `tiny×2 threads b32` does 0.66667 ±0.00009 times the work of `tiny×2 naive b32` per second, in 0.667 ±0 times the memory. With Python's lock, and all else that a process has once, an epoch of `tiny×2 threads b32` takes 1.5000 ±0.0002 times as long. What of that is the lock's is not known: no free-threaded Python was measured. A crash ends all members at once; they share one random number generator and torch's settings; memory is told for the group only.
    work per second as threads of one process ÷ as processes, naive or under MPS, same members: never below 1 by more than 5 %, and above it by more than 5 % in most groups; Holm-corrected over the groups of all modes. Where only one of both does not fit into memory, it is behind
    ");
    let unlocked = analysed(&on_cores().group("tiny", 32, 2, "threads:no-lock", 1.65).holding(0.4));
    insta::assert_snapshot!(one_process(&unlocked).finding, @"No: keep a process for each member. `tiny×2 threads b32` does 0.66665 ±0.00007 times the work of `tiny×2 naive b32` per second, in 0.667 ±0 times the memory. With Python's lock, and all else that a process has once, an epoch of `tiny×2 threads b32` takes 1.5000 ±0.0002 times as long. The lock alone makes it 1.4546 ±0.0002 times as long. A crash ends all members at once; they share one random number generator and torch's settings; memory is told for the group only.");
    assert_eq!(one_process(&unlocked).holds, Holds::No);
}

#[test]
fn on_a_card_one_process_is_advised_where_it_does_more_and_nobody_does_more_than_it() {
    let report = analysed(&on_a_card());
    insta::assert_snapshot!(said(one_process(&report)), @r"
    No: Is one process better than several?
    No: it is no better than processes in most groups. `small×2 threads b32` does 1.580 ±0.011 times the work of `small×2 naive b32` per second, in 0.750 ±0 times the memory. A crash ends all members at once; they share one random number generator and torch's settings; memory is told for the group only.
    work per second as threads of one process ÷ as processes, naive or under MPS, same members: never below 1 by more than 5 %, and above it by more than 5 % in most groups; Holm-corrected over the groups of all modes. Where only one of both does not fit into memory, it is behind
    ");
    // Behind MPS it is not advised, however far it is ahead of processes that take turns; ahead of it MPS is not the best mode.
    let with = |epoch_s: f64| {
        let mut fixture = on_a_card();
        fixture.cells.last_mut().unwrap().epoch_s.fill(epoch_s);
        analysed(&fixture)
    };
    let best = |report: &Report| report.guidelines.iter().find(|g| g.id == "best-mode").unwrap().holds;
    let (behind, ahead) = (with(1.5), with(1.05));
    assert_eq!((one_process(&behind).holds, best(&behind)), (Holds::No, Holds::Yes), "{}", one_process(&behind).finding);
    assert_eq!((one_process(&ahead).holds, best(&ahead)), (Holds::Yes, Holds::No), "{}", one_process(&ahead).finding);
}

#[test]
fn threads_that_do_not_fit_where_processes_do_are_behind() {
    let out = Outcome::OutOfMemory { member: 1, message: "CUDA out of memory".into() };
    let report = analysed(&on_a_card().ends(out));
    let g = one_process(&report);
    assert_eq!(g.holds, Holds::No, "{}", g.finding);
    let why = "No: keep a process for each member. Threads of one process are behind processes in 2 of 2 groups, decided by which groups fit into memory.";
    assert!(g.finding.starts_with(why), "{}", g.finding);
}

#[test]
fn without_groups_to_compare_with_it_is_open_and_without_threads_it_is_not_asked() {
    let alone = analysed(&Fixture::named("alone").solo("tiny", 32, 1.57).group("tiny", 32, 2, "threads", 2.4));
    assert_eq!(one_process(&alone).holds, Holds::Open);
    assert!(one_process(&alone).finding.starts_with("No group is planned both as threads of one process and as processes."));
    assert!(!analysed(&Fixture::quickstart()).guidelines.iter().any(|g| g.id == "one-process"));
}

#[test]
fn footprints_of_processes_are_added_up_and_that_of_one_process_is_not() {
    let report = analysed(&on_cores());
    let g = report.guidelines.iter().find(|g| g.id == "memory-adds-up").unwrap();
    assert!(g.evidence.iter().all(|e| !e.cell.contains("threads")) && !g.evidence.is_empty());
}

#[test]
fn the_end_of_the_process_reads_well_and_leads_to_its_log() {
    let message = "member 0 in epoch 1, member 1 in epoch 2".to_string();
    let outcome = Outcome::ProcessEnded { status: "killed by SIGSEGV".into(), message };
    let report = analysed(&on_cores().ends(outcome));
    let full = "process ended, killed by SIGSEGV: member 0 in epoch 1, member 1 in epoch 2";
    let junit = String::from_utf8(export(&report, "junit").unwrap()).unwrap();
    assert!(junit.contains(&format!("message=\"{full}\"")) && junit.contains("type=\"process_ended\""), "{junit}");
    assert!(terminal(&report, 120).contains("process ended"));
    let accounted: usize = report.analysis.accounted.iter().map(|(_, runs)| runs).sum();
    assert_eq!(accounted, report.analysis.planned, "every run is accounted for");
    let log = |cell: &str| report.analysis.cell(cell).unwrap().repetitions[0].record().log_of(1);
    assert_eq!((log(THREADS), log("tiny×2 naive b32")), ("process.log".into(), "member-1.log".into()));
}

#[test]
fn a_cell_of_threads_in_full() {
    let report = analysed(&on_cores());
    insta::assert_snapshot!(terminal_cell(&report, THREADS, 120).unwrap(), @r"
    tiny×2 threads b32 of 7f3a, one-process, cpu: valid, 3 of 3 repetitions
      epoch      2.4000 ±0.0002 s   solo 1.5700 ±0.0001 s  slowdown 1.5286 ±0.0003
      gain       1.3083 ±0.0002     STP 1.3083 ±0.0002, ANTT 1.5286 ±0.0003  better (p <0.001)
      fairness   1.00000 [0.99999, 1.00000]  overlap 100 %      skew 0.1 ms
      makespan   5.0404 ±0.0004 s
      memory     0.80 of 24.0 GiB   solo 0.75 GiB      0.533 ±0 of the sum of solo  the peak of PSS, which counts shared pages once
      cpu        198 %              solo 99 %          pressure 5 %
      items      853.32 ±0.08 per second
      energy     36.001 ±0.003 J per member and epoch
      member     0                  tiny               2.4000 ±0.0003 s   slowdown 1.5286 ±0.0002  loss 2.10
      member     1                  tiny               2.4001 ±0.0003 s   slowdown 1.5286 ±0.0002  loss 2.10
      graph      tiny               0.175 M parameters  0.703 MB           0.0256 GFLOP forward per item  0.400 M activations per item  16 layers
      ran on     Some CPU, 2 logical cores, torch 2.14.1, synthetic data
      attested   3 of 3 runs by cpu time in the window
    ");
}

#[test]
fn figures_have_a_hue_and_a_mark_for_threads_and_one_segment_for_their_process() {
    let report = analysed(&on_cores().group("tiny", 32, 2, "threads:no-lock", 1.65));
    let reports = tempfile::tempdir().unwrap();
    let written = write(&report, reports.path()).unwrap();
    let page = std::fs::read_to_string(written.html).unwrap();
    assert!(page.contains("class=\"threads\"") && page.contains("threads no-lock"));
    let memory = page.split_once("id=\"sec-memory\"").unwrap().1.split_once("</section>").unwrap().0;
    assert!(memory.contains("Threads of one process: one segment, of that process."));
}
