//! One experiment divided among several runs of collo, and merged into one campaign.

use crate::support::Bench;

const EXPERIMENT: &str = "repetitions = 2\nepochs = 2\n[axes]\nworkload = \"sleep\"\ndegree = [2, 3]\nseconds = 0.1\n";

fn measured() -> Bench {
    let bench = Bench::of(EXPERIMENT);
    bench.run(&["--shard", "1/2"]).exits(0);
    bench.run(&["--shard", "2/2"]).exits(0);
    bench
}

#[test]
fn two_shards_become_one_campaign_that_is_read_as_any_other() {
    let bench = measured();
    let merged = bench.collo(&["--json", "merge", "x", "--shards"]).exits(0).json();
    assert_eq!((&merged["runs"], merged["merged_from"].as_array().map(Vec::len)), (&12.into(), Some(2)));
    let id = merged["campaign"].as_str().expect("an id");
    bench.collo(&["verify", id]).exits(0);
    let report = bench.collo(&["--json", "report", id]).exits(0).json();
    let cells = report["cells"].as_array().expect("cells");
    let of = |begins: &str| cells.iter().find(|c| c["cell"].as_str().is_some_and(|l| l.starts_with(begins))).expect(begins);
    assert_eq!(cells.len(), 3, "the solo cell of both is one");
    assert_eq!(of("sleep solo")["repetitions"], 8);
    for group in ["sleep×2", "sleep×3"] {
        assert_eq!(of(group)["repetitions"], 2);
        assert!(of(group)["throughput_gain"]["estimate"].is_number(), "{group} has its baseline: {}", of(group));
    }
    bench.collo(&["show", id]).exits(0).answers("merged from").answers("shard 2/2");
    bench.collo(&["compare", "x/last-1", id]).exits(0);
}

#[test]
fn a_shard_is_continued_by_its_own_and_a_merged_campaign_by_nobody() {
    let bench = Bench::of(EXPERIMENT);
    bench.run(&["--shard", "1/2", "--for", "1ms"]).exits(4);
    bench.run(&["--shard", "2/2"]).exits(0);
    assert_eq!(bench.campaigns(), 2);
    bench.collo(&["merge", "x", "--shards"]).exits(2).says("of 6 runs");
    bench.run(&["--shard", "1/2"]).exits(0);
    assert_eq!(bench.campaigns(), 2, "the unfinished shard is continued, the other left alone");
    bench.collo(&["merge", "x", "--shards"]).exits(0);
    bench.run_named("last", &[]).exits(2).says("was merged from");
}

#[test]
fn campaigns_that_differ_are_not_merged_and_each_difference_is_named() {
    let bench = Bench::of(EXPERIMENT);
    bench.run(&["--shard", "1/2"]).exits(0);
    let script = fs_err::read_to_string(bench.at("workloads/sleep/train.py")).expect("a script");
    bench.write("workloads/sleep/train.py", &format!("{script}\n# changed\n"));
    bench.run(&["--shard", "2/2"]).exits(0);
    bench.collo(&["merge", "x", "--shards"]).exits(2).says("workloads/sleep");
    bench.collo(&["merge", "x", "--shards", "--force"]).exits(0);
    assert!(
        bench.campaign().manifest().indicative[0].contains("workloads/sleep"),
        "{:?}",
        bench.campaign().manifest().indicative
    );
    bench.collo(&["merge", "last", "x/last-1"]).exits(2).says("would be in it twice");
}

#[test]
fn a_shard_without_a_cell_says_so() {
    let bench = Bench::of(EXPERIMENT);
    bench.run(&["--shard", "3/3"]).exits(2).says("fewer cells than shards");
    bench.run(&["--shard", "3/2"]).exits(2);
}

#[test]
fn campaigns_of_several_experiments_on_the_same_ingredients_become_one_report() {
    let of = |degree: u32, epochs: u32| {
        format!("repetitions = 2\nepochs = {epochs}\n[axes]\nworkload = \"sleep\"\ndegree = [{degree}]\nseconds = 0.1\n")
    };
    let bench = Bench::of(&of(2, 2));
    bench.write("experiments/y.toml", &of(3, 2));
    bench.write("experiments/z.toml", &of(3, 3));
    for name in ["x", "y", "z"] {
        bench.run_named(name, &[]).exits(0);
    }
    let report = bench.collo(&["--json", "report", "x", "y"]).exits(0).json();
    let cells: Vec<&str> = report["cells"].as_array().expect("cells").iter().filter_map(|c| c["cell"].as_str()).collect();
    assert_eq!(cells.len(), 3, "the solo cell of both is one: {cells:?}");
    assert_eq!((&report["experiment"], report["merged_from"].as_array().map(Vec::len)), (&"x+y".into(), Some(2)));
    for group in report["cells"].as_array().expect("cells").iter().filter(|c| c["degree"] != 1) {
        assert!(group["throughput_gain"]["low"].is_number(), "{group} has the baseline of its own campaign");
    }
    assert!(bench.at("reports/x+y/report.html").exists() && bench.campaigns() == 3, "nothing else is kept");
    bench.collo(&["report", "x", "z"]).exits(2).says("epochs: 2 in ").says(", 3 in ");
}
