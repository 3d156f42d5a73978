//! The first screen of a report on campaigns with known truth: what to run, how many, when not, and why it may be doubted.

use crate::support::Fixture;
use crate::support::traces::{PolicyTruth, TraceTruth};
use collo_report::Report;

use collo_store::Outcome;

/// The first section, in Markdown.
fn first_screen(fixture: &Fixture) -> String {
    let runs = tempfile::tempdir().unwrap();
    let report = Report::of(&fixture.write(runs.path())).unwrap();
    let page = String::from_utf8(crate::support::exports::export(&report, "markdown").unwrap()).unwrap();
    let from = page.find("\n## ").unwrap() + 1;
    let section = &page[from..];
    section[..section.find("\n## Guidelines").unwrap()].to_string()
}

/// The paragraphs of the answer, without those of the doubts.
fn answer(fixture: &Fixture) -> String {
    let screen = first_screen(fixture);
    let (answer, _) = screen.split_once("Why you may doubt this:").unwrap();
    answer.split_once("\n\n").unwrap().1.trim().to_string()
}

/// The names of the doubts, in their order.
fn doubts(fixture: &Fixture) -> Vec<String> {
    let screen = first_screen(fixture);
    let named = screen.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**"));
    named.map(|(name, _)| name.to_string()).collect()
}

fn tiny() -> Fixture {
    Fixture::named("answers").solo("tiny", 32, 1.0)
}

#[test]
fn the_answer_is_the_mode_the_degree_the_gain_and_when_not() {
    let gains = tiny().group("tiny", 32, 2, "naive", 1.4).group("tiny", 32, 2, "mps", 1.02).group("tiny", 32, 3, "mps", 1.3);
    insta::assert_snapshot!(answer(&gains), @r"`tiny`: run three together under MPS: 2.31× \[2.25, 2.37\] the throughput of running in turn. More than three were not tried. Where no member may be slowed by more than 10 %, run two together under MPS.");
}

#[test]
fn more_members_that_add_nothing_are_not_advised() {
    let flat = tiny().group("tiny", 32, 2, "naive", 1.1).group("tiny", 32, 3, "naive", 1.65);
    insta::assert_snapshot!(answer(&flat), @r"`tiny`: run two together under naive sharing: 1.83× \[1.80, 1.86\] the throughput of running in turn. A third adds less than 5 %.");
}

#[test]
fn where_sharing_gains_nothing_the_answer_is_in_turn() {
    insta::assert_snapshot!(answer(&tiny().group("tiny", 32, 2, "naive", 2.4)), @r"`tiny`: run in turn. No measured group gains 5 % or more; the nearest is naive ×2, 0.840× \[0.833, 0.848\].");
}

#[test]
fn a_group_that_slows_no_member_is_not_replaced_by_a_simpler_one() {
    let both = tiny().group("tiny", 32, 2, "naive", 1.08).group("tiny", 32, 2, "mps", 1.0);
    insta::assert_snapshot!(answer(&both), @r"`tiny`: run two together under MPS: 2.00× \[1.95, 2.05\] the throughput of running in turn. More than two were not tried. No member is slowed by more than 10 %.");
}

#[test]
fn a_gain_too_small_to_act_on_is_a_reason_to_run_in_turn() {
    insta::assert_snapshot!(answer(&tiny().group("tiny", 32, 2, "naive", 1.96)), @r"`tiny`: run in turn. No measured group gains 5 % or more; the nearest is naive ×2, 1.029× \[1.019, 1.039\].");
}

#[test]
fn threads_are_a_way_to_run_and_not_a_mode_to_be_under() {
    insta::assert_snapshot!(answer(&tiny().group("tiny", 32, 2, "threads", 1.2)), @r"`tiny`: run two together as threads of one process: 1.681× \[1.665, 1.697\] the throughput of running in turn. More than two were not tried. No measured group keeps the slowdown of every member within 10 %.");
}

#[test]
fn what_no_large_group_does_is_not_claimed_of_smaller_ones() {
    let slows = tiny().group("tiny", 32, 7, "mps", 1.4);
    insta::assert_snapshot!(answer(&slows), @r"`tiny`: run seven together under MPS: 4.99× \[4.92, 5.05\] the throughput of running in turn. More than seven were not tried. No measured group keeps the slowdown of every member within 10 %; fewer than seven were not tried.");
    let loses = tiny().group("tiny", 32, 7, "naive", 9.0);
    insta::assert_snapshot!(answer(&loses), @r"`tiny`: run in turn. No measured group gains 5 % or more; the nearest is naive ×7, 0.776× \[0.765, 0.786\]. Fewer than seven were not tried.");
}

#[test]
fn groups_that_failed_are_named_and_decide_nothing() {
    let oom = Outcome::OutOfMemory { member: 1, message: "no memory".into() };
    let failed = tiny().group("tiny", 32, 2, "naive", 1.1).group("tiny", 32, 4, "naive", 1.2).ends(oom);
    insta::assert_snapshot!(answer(&failed), @r"`tiny`: run two together under naive sharing: 1.830× \[1.814, 1.845\] the throughput of running in turn. Out of memory: naive ×4.");
}

#[test]
fn a_group_measured_once_leaves_the_answer_open() {
    let once = tiny().group("tiny", 32, 2, "naive", 1.1).repetitions(1);
    insta::assert_snapshot!(answer(&once), @r#"
    `tiny`: open. No group is shown to have more throughput than running in turn. None is judged: with one run.

    No group is decided, because each run measured only 1.0 s of training and groups have 1 repetition. To decide: set `measure_for = "10s"` in the experiment, or more `epochs`; or more repetitions, `collo run answers --more 2`.
    "#);
}

#[test]
fn two_batch_sizes_of_a_workload_are_two_answers_that_can_be_distinguished() {
    let both = tiny().group("tiny", 32, 2, "naive", 1.1).solo("tiny", 64, 1.0).group("tiny", 64, 2, "naive", 1.5);
    insta::assert_snapshot!(answer(&both), @r"
    `tiny b32`: run two together under naive sharing: 1.810× \[1.794, 1.826\] the throughput of running in turn. More than two were not tried.

    `tiny b64`: run two together under naive sharing: 1.340× \[1.329, 1.352\] the throughput of running in turn. More than two were not tried. No measured group keeps the slowdown of every member within 10 %.
    ");
}

#[test]
fn what_is_true_of_both_batch_sizes_is_said_once() {
    let both = tiny().group("tiny", 32, 2, "naive", 1.4).solo("tiny", 64, 1.0).group("tiny", 64, 2, "naive", 1.5);
    let said = answer(&both);
    assert_eq!(said.matches("More than two were not tried.").count(), 1, "{said}");
    assert!(said.contains("For each of them: More than two were not tried."), "{said}");
}

#[test]
fn workloads_with_the_same_answer_are_in_one_paragraph_and_what_did_not_run_is_not_discarded() {
    let both = tiny().group("tiny", 32, 2, "naive", 1.1).solo("small", 32, 1.0).group("small", 32, 2, "naive", 1.5);
    let begun = Fixture { stop_after: 1, ..both };
    insta::assert_snapshot!(answer(&begun), @"`tiny`, `small`: open. No group is shown to have more throughput than running in turn. None is judged: not run.");
    let runs = tempfile::tempdir().unwrap();
    let report = Report::of(&begun.write(runs.path())).unwrap();
    let page = String::from_utf8(crate::support::exports::export(&report, "markdown").unwrap()).unwrap();
    assert!(page.contains("0 cells valid, 1 indicative, 3 not run"), "{page}");
}

#[test]
fn failed_runs_are_a_doubt_and_those_that_ran_out_of_memory_a_result() {
    let crash = Outcome::Crashed { member: 0, status: "exited with 1".into(), message: "boom".into(), place_alone: false };
    let oom = Outcome::OutOfMemory { member: 1, message: "no memory".into() };
    let two = || tiny().group("tiny", 32, 2, "naive", 1.1).group("tiny", 32, 3, "naive", 1.2);
    let is_doubted = |outcome| doubts(&two().ends(outcome)).iter().any(|name| name.starts_with("failed runs"));
    assert_eq!([crash, oom].map(is_doubted), [true, false]);
}

#[test]
fn doubts_are_listed_where_they_apply_the_gravest_first() {
    let quiet = Fixture { synthetic: Some(false), ..tiny().group("tiny", 32, 2, "naive", 1.1).repetitions(5) };
    assert_eq!(doubts(&quiet), ["scope"]);
    let mut doubtful = tiny().group("tiny", 32, 2, "naive", 1.1);
    doubtful.indicative = vec!["the clocks were throttled".into()];
    doubtful.regime = serde_json::json!({ "seed": 7 });
    assert_eq!(doubts(&doubtful), ["indicative", "synthetic data", "few repetitions", "one seed", "scope"]);
    assert!(first_screen(&doubtful).contains("every member of every repetition begins with seed 7"));
}

#[test]
fn where_nothing_is_decided_the_findings_of_what_was_measured_are_the_answer() {
    let exclusive = PolicyTruth::of("exclusive", "none", "naive", 1, 1.0);
    let packed = PolicyTruth::of("magm", "none", "mps", 2, 0.7);
    let one_order = TraceTruth::burst(1).policy(exclusive).policy(packed);
    insta::assert_snapshot!(answer(&crate::traces::campaign(one_order)), @"
    burst, 2 cards: 2 policies in one order: no interval, and no policy is said to be better.

    A task under `exclusive` waits 16.7 s on average, stretch 1.00; under `magm MPS` waits 4.78 s on average, stretch 0.868.
    ");
    insta::assert_snapshot!(answer(&crate::support::watching::tools()), @"Monitor while you measure: it does not change the times.");
}
