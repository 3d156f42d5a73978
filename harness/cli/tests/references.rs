//! What an experiment wants of its numbers: reference values, and the width of intervals.

use crate::support::Bench;

const SLEEP: &str = "epochs = 2\n[axes]\nworkload = \"sleep\"\nseconds = 0.05\nitems = 5\ndegree = 2\n";

fn reference(cell: &str, quantity: &str, value: &str) -> String {
    format!("{SLEEP}[[reference]]\ncell = \"{cell}\"\nquantity = \"{quantity}\"\nvalue = {value}\ntolerance = \"40%\"\n")
}

#[test]
fn verify_says_which_values_are_outside_their_tolerance_and_ends_with_1() {
    let planned = Bench::of(SLEEP).collo(&["plan", "x", "--json"]).exits(0).json();
    let labels: Vec<String> =
        planned["cells"].as_array().expect("cells").iter().filter_map(|c| Some(c["cell"].as_str()?.into())).collect();
    let pair = labels.iter().find(|l| !l.contains("solo")).expect("a pair");
    // Two that sleep do not disturb each other.
    let bench = Bench::of(&reference(pair, "slowdown", "1.0"));
    bench.run(&[]).exits(0);
    bench.collo(&["verify"]).exits(0).answers("✓ references  1 of 1 within their tolerance");

    let bench = Bench::of(&reference(pair, "slowdown", "9.0"));
    bench.run(&[]).exits(0);
    let said =
        bench.collo(&["verify"]).exits(1).answers("✗ references  0 of 1 within their tolerance").answers("outside 9.00 ±40 %");
    assert!(!said.stderr.contains("next: collo run"), "nothing is missing: {}", said.stderr);
    bench.collo(&["report", "--format", "junit"]).exits(0).answers("type=\"outside-tolerance\"");
    bench.collo(&["report", "--format", "comment"]).exits(0).answers("- **not as the reference**: ");
}

#[test]
fn cells_are_repeated_until_their_interval_is_narrow_or_the_limit_is_reached() {
    let until = |until: &str| Bench::of(&SLEEP.replace("[axes]", &format!("repetitions = 2\nuntil = {until}\n[axes]")));
    // Nothing is as narrow as that: the limit ends it.
    let bench = until("{ quantity = \"epoch_time_s\", width = 1e-9, at_most = 3 }");
    bench.collo(&["plan", "x"]).exits(0).says("`until` with fewer than 3 planned repetitions");
    bench.run(&[]).exits(0).says("wider than wanted, one more repetition").says("`until` with fewer than 3");
    let campaign = bench.campaign();
    let of = |solo: bool| {
        campaign.manifest().plan.order.iter().filter(|r| campaign.manifest().plan.cells[r.cell].baseline == solo).count()
    };
    assert_eq!((bench.campaigns(), of(false), of(true)), (1, 3, 6), "a baseline runs twice in each block");
    bench.collo(&["report", "--format", "markdown"]).exits(0).answers("reached by 0 of 2 cells; stopped at the limit: `");
    bench.collo(&["verify"]).exits(0);
    // Anything is as narrow as this.
    let bench = until("{ quantity = \"epoch_time_s\", width = \"1000%\", at_most = 3 }");
    assert!(!bench.run(&[]).exits(0).stderr.contains("wider than wanted"));
    bench.collo(&["report", "--format", "markdown"]).exits(0).answers("reached by 2 of 2 cells.").answers("too narrow");
    let wrong = |text: &str, why: &str| {
        until(text).collo(&["plan", "x"]).exits(2).says(why);
    };
    wrong("{ at_most = 5 }", "`until` has no `width`");
    wrong("{ width = \"5%\", at_most = 1 }", "`until` allows 1 repetition of a cell, and 2 are planned");
    wrong("{ width = \"5%\", quantity = \"gain\" }", "unknown quantity `gain`");
}

/// Intervals that are never narrow, of a workload of which these starts fail.
fn unsteady(fails: &str) -> Bench {
    let until = "{ quantity = \"epoch_time_s\", width = 1e-9, at_most = 8 }";
    Bench::of(&format!("repetitions = 2\nuntil = {until}\n[axes]\nworkload = \"unsteady\"\ndegree = 1\n"))
        .file(
            "workloads/unsteady/workload.toml",
            "command = [\"python\", \"train.py\", \"--seconds\", \"{seconds}\", \"--items\", \"{items}\"]\nenvironment = \"system\"\n\
             [settings]\nseconds = 0.05\nitems = 4\n",
        )
        .file(
            "workloads/unsteady/train.py",
            &format!(
                "import pathlib, runpy, sys\n\
                 starts = pathlib.Path('../../starts')\n\
                 n = len(starts.read_text()) + 1 if starts.exists() else 1\n\
                 starts.write_text('.' * n)\n\
                 if {fails}:\n    sys.exit(3)\n\
                 runpy.run_path('../sleep/train.py', run_name='__main__')\n"
            ),
        )
}

#[test]
fn failures_are_counted_over_all_rounds_of_repetitions() {
    // One in each round: no round alone has two.
    let bench = unsteady("n > 2 and n % 2 == 1");
    let answer = bench.run(&["--max-failures", "2"]).exits(1).says("stopped after 2 failed runs");
    assert!(answer.stderr.contains("resume: collo run "), "{}", answer.stderr);
    let failed = bench.runs().values().filter(|run| run.record.outcome != collo_store::Outcome::Completed).count();
    assert_eq!(failed, 2);
}

#[test]
fn what_failed_and_is_measured_again_is_then_repeated_until_it_is_narrow() {
    let bench = unsteady("pathlib.Path('../../fail').exists()").file("fail", "");
    bench.run(&["--keep-going"]).exits(1);
    let first = bench.runs().len();
    fs_err::remove_file(bench.at("fail")).expect("it is there");
    bench.run(&["--only", "failed"]).exits(0).says("wider than wanted");
    let stored = bench.runs().len();
    assert!(stored > first, "nothing can be said of the width of what failed");
    assert_eq!(stored, bench.campaign().manifest().plan.order.len(), "what was added is measured");
}

#[test]
fn a_night_is_repeated_until_it_is_narrow() {
    let bench = unsteady("False");
    bench.collo(&["nightly", "x"]).exits(0).says("wider than wanted, one more repetition");
    let campaign = bench.campaign();
    assert_eq!((bench.campaigns(), bench.runs().len()), (1, campaign.manifest().plan.order.len()));
    let id = &campaign.manifest().id;
    let night = fs_err::read_to_string(bench.at(&format!("reports/history/x/nights/{id}.json"))).expect("kept");
    let night: serde_json::Value = serde_json::from_str(&night).expect("JSON");
    assert!(night["cells"][0]["cell"] == "unsteady solo" && night["incomplete"].is_null(), "{night}");
}

#[test]
fn a_reference_of_nothing_is_refused_with_what_was_meant() {
    let plan = |toml: &str| Bench::of(toml).collo(&["plan", "x"]).exits(2);
    plan(&reference("sleep×2 naive", "slowdwon", "1.0")).says("unknown quantity `slowdwon`").says("`slowdown`");
    plan(&reference("slep×2 naiv", "slowdown", "1.0")).says("`slep×2 naiv`, which is no cell of this experiment");
    plan(&format!("{SLEEP}[[reference]]\ncell = \"x\"\nquantity = \"slowdown\"\nvalue = 1\n"))
        .says("a reference value has no `tolerance`");
    plan(&reference("x", "slowdown", "\"one\"")).says("value");
}
