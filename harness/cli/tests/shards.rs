//! One experiment divided among several runs of collo, and merged into one campaign.

use serde_json::Value;

use crate::sim::{Machine, short};
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

/// A second workload like `sleep`.
fn with_nap(bench: Bench) -> Bench {
    for file in ["train.py", "workload.toml"] {
        let text = fs_err::read_to_string(bench.at(&format!("workloads/sleep/{file}"))).expect("readable");
        bench.write(&format!("workloads/nap/{file}"), &text);
    }
    bench
}

#[test]
fn shards_with_different_workloads_become_one_campaign_with_the_facts_of_both() {
    let toml = EXPERIMENT.replace("\"sleep\"", "[\"sleep\", \"nap\"]").replace("[2, 3]", "2");
    let reference = |cell: &str| {
        format!(
            "[[reference]]\ncell = \"{cell}×2 naive seconds=0.1\"\nquantity = \"slowdown\"\nvalue = 1\ntolerance = \"1000%\"\n"
        )
    };
    let bench = with_nap(Bench::of(&format!("{toml}{}{}", reference("sleep"), reference("nap"))));
    let workloads = |c: &collo_store::CampaignFolder| {
        let names = ["sleep", "nap"].map(|name| format!("workloads/{name}/train.py"));
        names.map(|name| c.manifest().ingredients.contains_key(&name))
    };
    let mut shards = Vec::new();
    for shard in ["1/2", "2/2"] {
        bench.run(&["--shard", shard]).exits(0);
        shards.push(workloads(&bench.campaign()));
    }
    shards.sort_unstable();
    assert_eq!(shards, [[false, true], [true, false]], "each has the files of its own cells");
    let merged = bench.collo(&["--json", "merge", "x", "--shards"]).exits(0).json();
    assert_eq!((&merged["runs"], &merged["indicative"]), (&12.into(), &serde_json::json!([])));
    let merged = bench.campaign();
    assert_eq!(workloads(&merged), [true, true]);
    assert_eq!(merged.manifest().surroundings, None, "each was started by its own command");
    bench.collo(&["verify", "last"]).exits(0).answers("2 of 2 within their tolerance");
}

#[test]
fn shards_of_an_earlier_measurement_are_not_merged_with_those_of_this_one() {
    let bench = measured();
    bench.collo(&["merge", "x", "--shards"]).exits(0);
    let into = bench.campaign().manifest().short_id().to_string();
    bench.run(&["--shard", "1/2", "--new"]).exits(0);
    let of_now = bench.campaign().manifest().short_id().to_string();
    let said = bench.collo(&["merge", "x", "--shards"]).exits(2);
    let said = said.says(&format!("2/2 is already merged in `{into}`, and the others are not"));
    let by_name = said.stderr.split_once("`collo merge ").and_then(|(_, rest)| rest.split_once('`')).expect("the way out").0;
    let ids: Vec<&str> = by_name.split(' ').collect();
    assert_eq!(ids[0], of_now);
    bench.collo(&[&["merge"], &ids[..]].concat()).exits(0);
    bench.run(&["--shard", "2/2", "--new"]).exits(0);
    bench.run(&["--shard", "1/2", "--new"]).exits(0);
    bench.collo(&["merge", "x", "--shards"]).exits(0);
}

#[test]
fn a_report_of_several_campaigns_with_different_files_is_refused_and_offers_no_force() {
    let toml = |workload: &str| format!("epochs = 2\n[axes]\nworkload = \"{workload}\"\ndegree = 2\nseconds = 0.1\n");
    let bench = with_nap(Bench::of(&toml("sleep")).experiment("y", &toml("sleep")).experiment("z", &toml("nap")));
    bench.run(&[]).exits(0);
    bench.run_named("z", &[]).exits(0);
    bench.collo(&["report", "x", "z"]).exits(0);
    let script = fs_err::read_to_string(bench.at("workloads/sleep/train.py")).expect("a script");
    bench.write("workloads/sleep/train.py", &format!("{script}\n# changed\n"));
    bench.run_named("y", &[]).exits(0);
    let said = bench.collo(&["report", "x", "y", "z"]).exits(2).says("workloads/sleep/train.py: ").says("`collo compare`");
    assert!(!said.stderr.contains("--force"), "{}", said.stderr);
}

/// The only group of a report under a mode.
fn group<'a>(report: &'a Value, mode: &str) -> &'a Value {
    let cells = report["cells"].as_array().expect("cells");
    cells.iter().find(|c| c["sharing"] == mode && c["degree"] == 2).unwrap_or_else(|| panic!("no {mode} in {report}"))
}

#[test]
fn three_modes_of_several_campaigns_stand_side_by_side_each_with_the_baseline_of_its_own() {
    let of_modes = |modes: &str| {
        format!("repetitions = 2\n[axes]\nworkload = [\"small\"]\nlimit_batches = 100\nsharing = [{modes}]\ndegree = [2]\n")
    };
    let machine = Machine::new("a100-40gb", &of_modes("\"naive\", \"mps\", \"mig\""));
    let report = |words: &[&str]| machine.collo(&[&["--json", "report"], words].concat()).exits(0).json();
    let modes = ["naive", "mps", "mig"];
    // Of each group the campaign that it was measured in.
    let check = |whole: &Value, of: &[String; 3]| {
        assert_eq!(whole["merged_from"].as_array().map(Vec::len), Some(3));
        for (mode, campaign) in modes.iter().zip(of) {
            let (here, own) = (group(whole, mode).clone(), report(&[campaign]));
            let own = group(&own, mode);
            assert!(own["throughput_gain"]["estimate"].is_number(), "{own}");
            for key in ["throughput_gain", "slowdown"] {
                assert_eq!(here[key]["estimate"], own[key]["estimate"], "{mode}: {key}");
            }
        }
        let solo = whole["cells"].as_array().expect("cells").iter().find(|c| c["sharing"] == "solo").expect("the baseline");
        assert_eq!(solo["repetitions"], 12, "that of all three is one row");
    };
    for mode in modes {
        machine.bench.write(&format!("experiments/{mode}.toml"), &short(&of_modes(&format!("\"{mode}\""))));
        machine.collo(&["run", mode, "--no-report"]).exits(0);
    }
    check(&report(&modes), &modes.map(String::from));
    machine.collo(&["merge", "naive", "mps", "mig"]).exits(2).says("experiment: naive in ");
    let mut shards = Vec::new();
    for shard in ["1/3", "2/3", "3/3"] {
        machine.collo(&["run", "x", "--no-report", "--shard", shard]).exits(0);
        shards.push(machine.bench.campaign());
    }
    let of = modes.map(|mode| {
        let has = |c: &&collo_store::CampaignFolder| {
            c.manifest().plan.cells.iter().any(|cell| cell.sharing == mode && cell.degree == 2)
        };
        shards.iter().find(has).expect("each mode is in a shard").manifest().id.clone()
    });
    machine.collo(&["merge", "x", "--shards"]).exits(0);
    check(&report(&["last"]), &of);
    machine.collo(&["verify", "last"]).exits(0);
}
