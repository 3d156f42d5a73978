//! `collo compare`: every way to name a side, what ends with which code, and what is written.

use serde_json::{Value, json};

use crate::sim::Machine;
use crate::support::Bench;

const SLEEP: &str = "repetitions = 3\n[axes]\nworkload = \"sleep\"\nseconds = 0.2\nitems = 20\ndegree = [1, 2]\n[thresholds]\nstart_skew = \"5s\"\noverlap = \"50%\"";

/// Two campaigns of one experiment, the reports of both written.
fn two() -> Bench {
    let bench = Bench::of(SLEEP);
    bench.collo(&["run", "x"]).exits(0);
    bench.collo(&["run", "x", "--new"]).exits(0);
    bench
}

fn report(bench: &Bench) -> Value {
    serde_json::from_str(&fs_err::read_to_string(bench.at("reports/x/report.json")).expect("written")).expect("JSON")
}

/// The newest report with every time multiplied, as another campaign's.
fn slower(bench: &Bench, name: &str, factor: f64) {
    let mut slow = report(bench);
    slow["campaign"] = json!("20991231-0000-ffff");
    for cell in slow["cells"].as_array_mut().expect("cells") {
        let q = &mut cell["epoch_time_s"];
        let estimate = q["estimate"].as_f64().expect("a number");
        // Tight intervals, whatever the machine did meanwhile.
        *q = json!({ "estimate": estimate * factor, "low": estimate * factor * 0.999, "high": estimate * factor * 1.001,
                     "repetitions": 5, "df": 8.0 });
        cell["validity"] = json!("valid");
        cell["reasons"] = json!([]);
    }
    bench.write(name, &slow.to_string());
}

#[test]
fn sides_are_campaigns_folders_and_files_and_all_are_alike() {
    let bench = two();
    bench.collo(&["compare", "last-1", "last"]).exits(0).answers("both on a CPU").answers("sleep×2 naive");
    let ids: Vec<String> =
        ["last-1", "last"].iter().map(|n| bench.runs_folder().find(n).expect("stored").manifest().id.clone()).collect();
    let (older, newer) = (ids[0].rsplit('-').next().expect("a part"), format!("runs/x/{}", ids[1]));
    let by_folder = bench.collo(&["compare", older, &newer, "--json"]).exits(0).json();
    assert_eq!((&by_folder["left"]["campaign"], &by_folder["right"]["campaign"]), (&json!(ids[0]), &json!(ids[1])));
    let by_file = bench.collo(&["compare", &format!("reports/x/{}", ids[0]), "reports/x/report.json", "--json"]).exits(0).json();
    assert_eq!(by_folder["cells"], by_file["cells"], "a report that was written compares as its campaign does");
    assert_eq!(by_folder["environment"], by_file["environment"]);
}

#[test]
fn worse_fails_only_if_asked_to_and_what_cannot_be_told_never_does() {
    let bench = two();
    slower(&bench, "same.json", 1.0);
    slower(&bench, "slow.json", 1.5);
    let set = |name: &str| bench.at(name).to_str().expect("text").to_string();
    bench.write(
        "fast.json",
        &fs_err::read_to_string(set("same.json")).expect("there").replace("20991231-0000-ffff", "20991230-0000-eeee"),
    );
    bench.collo(&["compare", "fast.json", "slow.json"]).exits(0).answers("worse");
    bench.collo(&["compare", "fast.json", "slow.json", "--fail-on", "worse"]).exits(1).answers("worse");
    bench.collo(&["compare", "slow.json", "fast.json", "--fail-on", "worse"]).exits(0).answers("better");
    bench.collo(&["compare", "fast.json", "same.json", "--fail-on", "worse", "--by", "mode"]).exits(0).answers("naive: 1 same");
}

#[test]
fn what_campaigns_differ_by_comes_from_the_nights_of_the_experiment_on_that_device() {
    let bench = two();
    slower(&bench, "slow.json", 1.06);
    let text = fs_err::read_to_string(bench.at("slow.json")).expect("there");
    bench.write("fast.json", &text.replace("20991231-0000-ffff", "20991230-0000-eeee"));
    let between =
        |bench: &Bench| bench.collo(&["--json", "compare", "fast.json", "slow.json"]).exits(0).json()["between"].clone();
    assert_eq!(between(&bench)["source"], "unknown", "two cells and no history");
    bench.collo(&["nightly", "x", "--judge-only"]);
    let nights = bench.at("reports/history/x/nights");
    let kept = fs_err::read_dir(&nights).expect("kept").filter_map(|e| Some(e.ok()?.path())).next().expect("a night");
    let night: Value = serde_json::from_str(&fs_err::read_to_string(kept).expect("there")).expect("JSON");
    for k in 0..8u32 {
        let mut old = night.clone();
        let id = match k {
            0 => "20991231-0000-ffff".to_string(),
            1 => "20991230-0000-eeee".to_string(),
            _ => format!("2026010{k}-0200-000{k}"),
        };
        (old["id"], old["incomplete"]) = (json!(id), Value::Null);
        for (i, cell) in old["cells"].as_array_mut().expect("cells").iter_mut().enumerate() {
            let wobble = f64::from((k * 7 + i as u32 * 3) % 11) / 11.0 - 0.5;
            (cell["first"], cell["outcome"]) = (json!([0.02 * wobble, 3, 1e-6]), json!("completed"));
        }
        fs_err::write(nights.join(format!("{id}.json")), old.to_string()).expect("written");
    }
    let found = between(&bench);
    assert_eq!(found["source"], "nights", "{found}");
    assert!(found["nights"].as_u64().is_some_and(|n| n >= 6) && found["sd_ratio"].as_f64() > Some(0.003), "{found}");
    bench.collo(&["compare", "fast.json", "slow.json"]).exits(0).answers("what campaigns differ by without a change, from ");
}

#[test]
fn the_page_is_written_where_it_is_asked_for() {
    let bench = two();
    slower(&bench, "slow.json", 1.5);
    bench.collo(&["compare", "last", "slow.json", "--to", "out"]).exits(0).says("page: out/compare.html");
    let read = |name: &str| fs_err::read_to_string(bench.at(name)).expect("written");
    let html = read("out/compare.html");
    assert!(
        html.contains("What changed: x ") && html.contains("<svg") && !html.contains("http://") && !html.contains("https://")
    );
    assert!(read("out/compare.md").starts_with("# What changed: x "));
    assert_eq!(serde_json::from_str::<Value>(&read("out/compare.json")).expect("JSON")["schema"], 1);
}

#[test]
fn last_1_is_of_the_same_experiment_and_the_message_says_so() {
    let bench = Bench::of(SLEEP);
    bench.collo(&["run", "x", "--no-report"]).exits(0);
    bench
        .collo(&["compare", "last-1", "last"])
        .exits(2)
        .says("no campaign `last-1`: it counts back from the newest campaign of the same experiment, and `x` has 1 campaign")
        .says("hint: another experiment: `NAME/last-1`; all: `collo list`");
}

#[test]
fn what_is_no_side_is_said_to_be_none() {
    let bench = two();
    bench.collo(&["compare", "last", "last"]).exits(2).says("are the same campaign").says("hint: previous and newest");
    bench.collo(&["compare", "last"]).exits(2);
    bench.collo(&["compare", "last-1", "last", "last"]).exits(2).says("has two sides, not 3").says("--generations");
    bench.collo(&["compare", "last", "nowhere.json"]).exits(2).says("no `nowhere.json` here");
    bench.collo(&["compare", "last", "none/last"]).exits(2);
    bench.collo(&["compare", "last", "published:other"]).exits(2).says("hint: available: `published:study`");
    let whole = fs_err::read_to_string(bench.at("reports/x/report.json")).expect("written");
    bench.write("half.json", &whole.chars().take(whole.chars().count() / 2).collect::<String>());
    bench.collo(&["compare", "last", "half.json"]).exits(3).says("`half.json` is not a collo report: it is truncated");
    bench.write("new.json", &whole.replacen("\"schema\": 2", "\"schema\": 9", 1));
    bench.collo(&["compare", "last", "new.json"]).exits(3).says("it has schema 9, and this collo reads schema 2");
    bench
        .collo(&["compare", "last-1", "last", "--quantity", "beauty"])
        .exits(2)
        .says("has a quantity `beauty`")
        .says("epoch_time_s");
    let mut other = report(&bench);
    other["campaign"] = json!("20991231-0000-ffff");
    for cell in other["cells"].as_array_mut().expect("cells") {
        cell["cell"] = json!(format!("other {}", cell["cell"].as_str().expect("text")));
    }
    bench.write("other.json", &other.to_string());
    bench.collo(&["compare", "last", "other.json"]).exits(2).says("have no cell in common").says("on a CPU");
}

#[test]
fn a_campaign_that_nothing_was_published_of_says_so() {
    let bench = Bench::of(SLEEP);
    bench.collo(&["run", "x", "--no-report"]).exits(0);
    bench.collo(&["compare", "published:study", "last"]).exits(2).answers("0 published figures for cells of this campaign");
    bench.collo(&["compare", "last", "published:study", "--fail-on", "worse"]).exits(2).says("no verdict");
}

#[test]
fn a_share_is_measured_as_the_profile_of_each_gpu_model_and_generations_pair_it() {
    let shares = "[axes]\nworkload = \"small\"\nsharing = [\"mig:1/7\", \"mig:1g\"]\ndegree = 2\n";
    let cells = |machine: &Machine| -> Vec<String> {
        let campaign = machine.bench.campaign();
        let cells = &campaign.manifest().plan.cells;
        cells.iter().map(|c| format!("{}: {}", c.cell, c.slots.clone().unwrap_or_default())).collect()
    };
    let machine = Machine::new("a100-40gb", shares);
    machine.run(&[]).exits(0);
    let with = |profile: &str| {
        let alone = format!("small mig:{profile} b32: {profile}");
        ["small solo b32: whole GPU".to_string(), alone, format!("small×2 mig:{profile} b32: 2×{profile}")]
    };
    assert_eq!(cells(&machine), with("1g.5gb"), "both shares are one cell, which is named by its profile");
    // The share, as it was typed, selects it in the campaign, too: there is nothing left to do.
    machine.run(&["--where", "sharing == 'mig:1/7'"]).exits(0).says("complete");
    let machine = machine.anew("h100-80gb");
    machine.run(&["--new"]).exits(0);
    assert_eq!(cells(&machine), with("1g.10gb"));
    let compared = machine.collo(&["--json", "compare", "--generations", "last-1", "last"]).exits(0).json();
    let rows = compared["cells"].as_array().expect("cells");
    let labels: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| row["on"].as_array().expect("each").iter().map(|on| on["cell"].as_str().expect("paired")).collect())
        .collect();
    assert!(labels.contains(&vec!["small×2 mig:1g.5gb b32", "small×2 mig:1g.10gb b32"]), "{compared:#}");
    // One repetition decides nothing, and that is what is printed.
    let summary = compared["summary"][0].as_str().expect("a sentence");
    assert!(summary.contains("nothing is known about the throughput of `small`: open on simulated A100"), "{summary}");
    machine.collo(&["compare", "--generations", "last-1", "last", "--price-per-hour", "1.2"]).exits(2).says("1 of 2 prices");
    machine.collo(&["compare", "--generations", "last-1", "last", "--price-per-hour", "1.2,0"]).exits(2).says("above 0");
    // Both campaigns are in the list of reports once they have one.
    for campaign in ["last-1", "last"] {
        machine.collo(&["report", campaign]).exits(0);
    }
    let list = fs_err::read_to_string(machine.bench.at("reports/index.html")).expect("a list");
    assert_eq!(list.matches("<a href=\"x/").count(), 2, "{list}");
    assert!(list.contains("H100") && list.contains("simulated") && list.contains(": open. No group"), "{list}");
}
