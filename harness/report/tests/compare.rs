//! Two reports beside each other: what changed is found, what did not is not, and what cannot be held against each other is said.

use collo_compare::campaigns::{Comparison, Options, compare};
use collo_compare::{generations::generations, published::beside, ratio::Finding, side::ComparedReport};
use collo_figures::document::Present;
use collo_report::{Report, json as report_json};
use serde_json::{Value, json};

use crate::support::Fixture;

/// A cell of a made-up report: label, sharing, degree, batch size, and its time with the half-width of the interval.
type Made = (&'static str, &'static str, u64, u64, f64, f64);

const A100: &str = "A100-SXM4-40GB";

fn cell(&(label, sharing, degree, batch, estimate, half): &Made) -> Value {
    let solo = format!("small solo b{batch}");
    let member = json!({ "workload": "small", "batch_size": batch, "settings": {}, "solo": solo });
    json!({
        "cell": label, "sharing": sharing, "degree": degree, "after_measured": "keep-running", "slots": null, "outcome": "completed",
        "validity": "valid", "reasons": [], "members": vec![member; degree as usize], "metrics": {},
        "epoch_time_s": { "estimate": estimate, "low": estimate - half, "high": estimate + half, "repetitions": 3, "df": 9.0 },
    })
}

fn report(id: &str, environment: &[(&str, &str)], cells: &[Made]) -> Value {
    json!({
        "schema": 2, "experiment": "small-7way-mps", "campaign": id, "created_utc": "2026-11-14T02:00:00Z",
        "device": { "name": A100, "kind": "gpu", "simulated": true, "memory_bytes": null, "cores": null },
        "environment": environment.iter().map(|(k, v)| (k.to_string(), json!(v))).collect::<serde_json::Map<_, _>>(),
        "synthetic": [], "shortened": [], "indicative": [], "thresholds": { "relevant_ratio": 0.02 },
        "cells": cells.iter().map(cell).collect::<Vec<_>>(), "guidelines": [], "refusals": [],
    })
}

fn side(report: &Value) -> ComparedReport {
    ComparedReport::of(report.clone(), "made up").unwrap()
}

fn of(left: &Value, right: &Value) -> Comparison {
    compare(&side(left), &side(right), &Options::default()).unwrap()
}

fn alike() -> Vec<(&'static str, &'static str)> {
    vec![("GPU", "A100-SXM4-40GB (40 GiB)"), ("kernel", "6.1.0"), ("torch", "2.14.1")]
}

/// Two nights between which the driver was changed and the power cap lowered.
fn nights() -> (Value, Value) {
    let (mut before, mut after) = (alike(), alike());
    before.extend([("driver", "535.183.06"), ("power cap", "400 W")]);
    after.extend([("driver", "580.95.05"), ("power cap", "350 W")]);
    let left = report(
        "20261114-0200-11d8",
        &before,
        &[
            ("small solo b32", "solo", 1, 32, 21.0, 0.10),
            ("small solo b128", "solo", 1, 128, 11.2, 0.14),
            ("small×7 mps b32", "mps", 7, 32, 28.9, 0.5),
            ("small×7 mps b128", "mps", 7, 128, 26.1, 0.25),
        ],
    );
    let right = report(
        "20261121-0200-93be",
        &after,
        &[
            ("small solo b32", "solo", 1, 32, 21.0, 0.10),
            ("small solo b128", "solo", 1, 128, 11.33, 0.15),
            ("small×3 mps b32", "mps", 3, 32, 22.0, 0.3),
            ("small×7 mps b32", "mps", 7, 32, 26.8, 0.5),
            ("small×7 mps b128", "mps", 7, 128, 27.4, 0.25),
        ],
    );
    (left, right)
}

fn words(comparison: &Comparison) -> Vec<(&str, &str)> {
    comparison.rows.iter().map(|r| (r.label.as_str(), r.finding.as_str())).collect()
}

#[test]
fn a_comparison_reads_as_the_manual_has_it() {
    let (left, right) = nights();
    insta::assert_snapshot!(of(&left, &right).text(100), @"
    small-7way-mps 20261114-0200-11d8 → 20261121-0200-93be, both on a simulated A100-SXM4-40GB
    cell              epoch s left  epoch s right  ratio              p  verdict
    small×7 mps b32   28.9  ±0.5    26.8  ±0.5     0.93  ±0.02   <0.001  better
    small×7 mps b128  26.1  ±0.2    27.4  ±0.2     1.050 ±0.014  <0.001  worse
    small solo b128   11.20 ±0.14   11.33 ±0.15    1.012 ±0.019    0.38  can't tell (9 more each)
    small solo b32    21.00 ±0.10   21.00 ±0.10    1.000 ±0.007    1.00  same
    only right: small×3 mps b32
    environment  left        right
    driver       535.183.06  580.95.05
    power cap    400 W       350 W      may explain `worse`
    identical: GPU, kernel, torch
    1 better, 1 worse, 1 can't tell, 1 same; relevant from 2 %, 95 % intervals, p by Holm over 4
    not in the intervals: what campaigns differ by without a change, which eight cells or five nights
      would show; `--quantity slowdown` and `throughput_gain` do not see what moves all cells
    decide: collo --simulate a100-40gb run 93be --where 'degree == 1 && batch_size == 128' --more 9
    decide: collo --simulate a100-40gb run 11d8 --where 'degree == 1 && batch_size == 128' --more 9
    ");
}

/// A campaign of a CPU with noise of 1 %, the right one slower by a factor in one cell.
fn campaign(step: f64, seed: u64, id: &str) -> Value {
    let mut fixture = Fixture::named("truth").seed(seed).repetitions(5);
    fixture.samples_hz = 1.0;
    for i in 0..6u32 {
        let step = if i == 0 { step } else { 1.0 };
        fixture = fixture.solo("tiny", 8 << i, 1.0 + 0.1 * f64::from(i));
        fixture = fixture.group("tiny", 8 << i, 2, "naive", (1.5 + 0.1 * f64::from(i)) * step);
    }
    let runs = tempfile::tempdir().unwrap();
    let mut report = report_json(&Report::of(&fixture.write(runs.path())).unwrap());
    report["campaign"] = json!(id);
    report
}

#[test]
fn a_step_of_five_percent_in_stored_runs_is_found_and_noise_is_not() {
    let base = campaign(1.0, 1, "20261120-0000-aaaa");
    for seed in 2..3 {
        let quiet = of(&base, &campaign(1.0, seed, "20261121-0000-bbbb"));
        assert!(!quiet.has_worse() && quiet.count("better") == 0, "{:?}", words(&quiet));
        let mut stepped = campaign(1.08, seed, "20261121-0000-bbbb");
        stepped["thresholds"]["relevant_ratio"] = json!(0.02);
        let found = of(&base, &stepped);
        let worse: Vec<_> = found.rows.iter().filter(|r| r.finding == Finding::Worse).map(|r| r.label.as_str()).collect();
        assert_eq!(worse, ["tiny×2 naive b8"], "{:?}", words(&found));
        assert!((found.threshold, found.thresholds_differ) == (0.02, true));
    }
}

#[test]
fn a_report_lists_its_environment_and_its_schema_knows_it() {
    let report = campaign(1.0, 1, "20261120-0000-aaaa");
    let environment = report["environment"].as_object().unwrap();
    for (name, text) in [("torch", "2.14.1"), ("git", "4e1a9c2"), ("kernel", "6.1.0"), ("data", "synthetic CIFAR-10")] {
        assert_eq!(environment[name], text, "{environment:?}");
    }
    assert!(environment.values().all(|v| v.as_str().is_some_and(|t| !t.is_empty())));
    assert_eq!(report["cells"][0]["epoch_time_s"]["repetitions"], 10, "five blocks, each opened and closed by it");
    assert!(report["cells"][0]["epoch_time_s"]["df"].as_f64().unwrap() > 4.0);
}

#[test]
fn what_makes_times_incomparable_is_said_and_not_judged() {
    let (left, right) = nights();
    let with = |key: &str, value: Value| {
        let mut right = right.clone();
        right[key] = value;
        of(&left, &right)
    };
    let warned = |comparison: &Comparison, words: &str| comparison.warnings.iter().any(|w| w.contains(words));

    let stand_in = with("synthetic", json!(["CIFAR-10"]));
    assert!(warned(&stand_in, "the left trained on real data, the right on stand-ins for CIFAR-10"), "{:?}", stand_in.warnings);
    let shorter = with("shortened", json!([{ "workload": "small", "limit_batches": 20 }]));
    assert!(warned(&shorter, "epochs of `small` differ (whole epochs left, 20 batches right)"), "{:?}", shorter.warnings);
    assert_eq!(shorter.count("not_judged"), 4);
    let mut measured = right["device"].clone();
    measured["simulated"] = json!(false);
    let measured = with("device", measured);
    assert!(warned(&measured, "the left side is simulated, the other measured") && measured.count("not_judged") == 4);
    let mut set = right["environment"].clone();
    set["python set"] = json!("cuda13");
    let set = with("environment", set);
    assert!(warned(&set, "different Python sets (`none`, torch 2.14.1 and `cuda13`, torch 2.14.1)"), "{:?}", set.warnings);
    let elsewhere = |key: &str, value: Value| {
        let mut right = right.clone();
        (right[key], right["measured_by"]) = (value, json!("radT"));
        of(&left, &right)
    };
    let unknown = [elsewhere("synthetic", json!(["CIFAR-10"])), elsewhere("environment", json!({}))];
    for other in &unknown {
        let said = warned(other, "stand-ins") || warned(other, "Python sets");
        assert!(!said, "of another program's data and Python nothing is known: {:?}", other.warnings);
    }
    let other = with("experiment", json!("other"));
    assert!(warned(&other, "different experiments, `small-7way-mps` and `other`: cells are matched by their labels"));
    let same = with("campaign", left["campaign"].clone());
    assert!(warned(&same, "share runs") && same.count("not_judged") == 4 && !same.has_worse());
}

#[test]
fn discarded_indicative_and_failed_cells_are_shown_and_never_judged() {
    let (left, mut right) = nights();
    let cells = right["cells"].as_array_mut().unwrap();
    cells[0]["validity"] = json!("indicative");
    cells[0]["reasons"] = json!(["other processes used 30 % of the cores"]);
    cells[1]["epoch_time_s"] = json!({ "estimate": 11.0, "low": null, "high": null, "repetitions": 1, "df": null });
    cells[3]["outcome"] = json!("out_of_memory");
    cells[3]["epoch_time_s"] = Value::Null;
    for member in cells[4]["members"].as_array_mut().unwrap() {
        member["settings"] = json!({ "workers": 4 });
    }
    let comparison = of(&left, &right);
    insta::assert_snapshot!(comparison.text(100), @"
    small-7way-mps 20261114-0200-11d8 → 20261121-0200-93be, both on a simulated A100-SXM4-40GB
    cell              epoch s left  epoch s right  ratio               p  verdict
    small×7 mps b128  26.1  ±0.2    27.4  ±0.2     1.050 ±0.014   <0.001  worse
    small×7 mps b32   28.9  ±0.5    –              –                   –  no longer runs: out of memory
    small solo b128   11.20 ±0.14   11.0  (1 run)  0.982 (1 run)       –  can't tell (no interval)
    small solo b32    21.00 ±0.10   21.00 ±0.10    1.000 ±0.007        –  not judged: indicative right
    `small×7 mps b128`: settings differ: workers none → 4
    only right: small×3 mps b32
    environment  left        right
    driver       535.183.06  580.95.05
    power cap    400 W       350 W      may explain `worse`
    identical: GPU, kernel, torch
    1 worse, 1 no longer runs, 1 can't tell, 1 not judged; relevant from 2 %, 95 % intervals, p by Holm
      over 1
    not in the intervals: what campaigns differ by without a change, which eight cells or five nights
      would show; `--quantity slowdown` and `throughput_gain` do not see what moves all cells
    decide: collo --simulate a100-40gb run 93be --where 'degree == 1 && batch_size == 128' --more 2
    ");
    assert!(comparison.has_worse(), "a cell that no longer runs is worse than a slower one");
}

#[test]
fn nothing_in_common_says_what_each_side_has() {
    let (left, mut right) = nights();
    right["cells"] = json!([cell(&("medium×2 naive b32", "naive", 2, 32, 4.0, 0.1))]);
    let why = compare(&side(&left), &side(&right), &Options::default()).unwrap_err().to_string();
    insta::assert_snapshot!(why, @r"`11d8` and `93be` have no cell in common: `small×7 mps b32` and 3 more on a simulated A100-SXM4-40GB, `medium×2 naive b32` on a simulated A100-SXM4-40GB");
}

/// A side on another card, with gains in the place of times.
fn card(name: &str, id: &str, gains: &[(&'static str, &'static str, u64, Option<&str>, f64)]) -> Value {
    let mut made = report(id, &[], &[]);
    made["device"]["name"] = json!(name);
    made["cells"] = gains
        .iter()
        .map(|&(label, sharing, degree, slots, gain)| {
            let mut cell = cell(&(label, sharing, degree, 32, 10.0, 0.1));
            cell["slots"] = json!(slots);
            cell["throughput_gain"] =
                json!({ "estimate": gain, "low": gain * 0.98, "high": gain * 1.02, "repetitions": 3, "df": 9.0 });
            cell
        })
        .collect();
    made
}

#[test]
fn different_cards_are_compared_by_gain_and_their_slices_by_share() {
    let left = card(
        "NVIDIA A100-SXM4-40GB",
        "20261114-0200-11d8",
        &[
            ("small×7 mig:1g.5gb b32", "mig:1g.5gb", 7, Some("7×1g.5gb"), 2.9),
            ("small×2 mig b32", "mig", 2, Some("2×3g.20gb"), 1.8),
            ("small×7 mps b32", "mps", 7, Some("whole GPU, shared"), 5.4),
        ],
    );
    let right = card(
        "NVIDIA H100 80GB HBM3",
        "20261121-0200-93be",
        &[
            ("small×7 mig:1g.10gb b32", "mig:1g.10gb", 7, Some("7×1g.10gb"), 3.4),
            ("small×2 mig b32", "mig", 2, Some("2×3g.40gb"), 1.8),
            ("small×7 mps b32", "mps", 7, Some("whole GPU, shared"), 5.4),
        ],
    );
    let comparison = of(&left, &right);
    insta::assert_snapshot!(comparison.text(120), @r#"
    small-7way-mps 20261114-0200-11d8 on a simulated NVIDIA A100-SXM4-40GB → 20261121-0200-93be on a
      simulated NVIDIA H100 80GB HBM3
    different devices: compared by throughput gain, each side against its own baseline, never by times;
      slices are matched by their share of the GPU
    cell                                              gain left   gain right  ratio            p  verdict
    small×7 mig:1g.5gb b32 ↔ small×7 mig:1g.10gb b32  2.90 ±0.06  3.40 ±0.07  1.17 ±0.03  <0.001  better
    small×2 mig b32                                   1.80 ±0.04  1.80 ±0.04  1.00 ±0.03    1.00  can't tell (3 more each)
    small×7 mps b32                                   5.40 ±0.11  5.40 ±0.11  1.00 ±0.03    1.00  can't tell (3 more each)
    `small×7 mig:1g.10gb b32`: 14 of 108 SMs left, 16 of 132 SMs right
    `small×2 mig b32`: 42 of 108 SMs left, 60 of 132 SMs right
    1 better, 2 can't tell; relevant from 2 %, 95 % intervals, p by Holm over 3
    not in the intervals: what campaigns differ by without a change, which eight cells or five nights
      would show
    decide: collo --simulate h100-80gb run 93be --where 'cell == "small×2 mig b32" || cell == "small×7 mps b32"' --more 3
    decide: collo --simulate a100-40gb run 11d8 --where 'cell == "small×2 mig b32" || cell == "small×7 mps b32"' --more 3
    "#);
    let asked = Options { quantity: Some("epoch_time_s".into()), by: None, variation: None };
    let why = compare(&side(&left), &side(&right), &asked).unwrap_err().to_string();
    insta::assert_snapshot!(why, @"`epoch_time_s` is not compared between different devices, simulated NVIDIA A100-SXM4-40GB and simulated NVIDIA H100 80GB HBM3");
}

/// A side on a card with advice.
fn advised(name: &str, id: &str, label: &'static str, sharing: &'static str, gain: f64, holds: &str) -> ComparedReport {
    let mut made = card(name, id, &[(label, sharing, 7, None, gain), ("small×7 mps b32", "mps", 7, None, 5.4)]);
    let advice =
        |id: &str, holds: &str| json!({ "id": id, "statement": format!("Do {id}."), "finding": "As found.", "holds": holds });
    made["guidelines"] = json!([advice("collocate", "yes"), advice("isolation", holds), advice("mixing", "open")]);
    side(&made)
}

#[test]
fn generations_stand_beside_each_other_with_what_changed_first() {
    let sides = [
        advised("NVIDIA A100-SXM4-40GB", "20261114-0200-11d8", "small×7 mig:1g.5gb b32", "mig:1g.5gb", 2.9, "yes"),
        advised("NVIDIA H100 80GB HBM3", "20261121-0200-93be", "small×7 mig:1g.10gb b32", "mig:1g.10gb", 3.4, "no"),
    ];
    let found = generations(&sides, None, &[]).unwrap();
    insta::assert_snapshot!(found.text(100), @"
    Nothing is known about the best way to share: earlier versions wrote these reports, without
      decisions; collo report writes them again.
    simulated A100-SXM4-40GB: small-7way-mps 20261114-0200-11d8
    simulated H100 80GB HBM3: small-7way-mps 20261121-0200-93be
    isolation: changed
      simulated A100-SXM4-40GB: ✓ holds here: Do isolation. As found.
      simulated H100 80GB HBM3: ✕ does not hold here: Do isolation. As found.
    collocate: ✓ holds here on every GPU: Do collocate.
    open on every GPU: mixing
    gain of                 simulated A100-SXM4-40GB  simulated H100 80GB HBM3
    small×7 mig:1g.5gb b32  2.90 ±0.06                3.40 ±0.07
    small×7 mps b32         5.40 ±0.11                5.40 ±0.11
    cells: gain with 95 % intervals, each GPU against its own baseline; slices are matched by their
      share of the GPU; times are not compared
    ");
    let folder = tempfile::tempdir().unwrap();
    let page = fs_err::read_to_string(found.write(folder.path()).unwrap().html).unwrap();
    assert!(page.contains("✕ does not hold here") && page.contains("16 of 132 SMs") && page.contains("SIMULATED"));
    assert_eq!(found.json()["guidelines"][0]["id"], "isolation", "changed first");
    assert!(generations(&sides, Some("epoch_time_s"), &[]).unwrap_err().to_string().contains("different devices"));
}

/// A side on a GPU with items per second of a workload alone, with two and with seven members, and its decision.
fn fast(name: &str, id: &str, items: [f64; 3], decided: Value) -> ComparedReport {
    let mut made = report(
        id,
        &[("driver", "580.95.05")],
        &[
            ("small solo b32", "solo", 1, 32, 21.0, 0.1),
            ("small×2 naive b32", "naive", 2, 32, 21.0, 0.1),
            ("small×7 mps b32", "mps", 7, 32, 21.0, 0.1),
        ],
    );
    made["device"]["name"] = json!(name);
    for (cell, items) in items.into_iter().enumerate() {
        let rate = json!({ "estimate": items, "low": items * 0.99, "high": items * 1.01, "repetitions": 3, "df": 9.0 });
        made["cells"][cell]["items_per_s"] = rate;
        let energy = json!({ "estimate": 100.0 / items, "low": null, "high": null, "repetitions": 1, "df": null });
        made["cells"][cell]["energy_j_per_item"] = energy;
    }
    made["decisions"] = json!([decided]);
    side(&made)
}

fn decided(throughput: &str, cells: &[&str]) -> Value {
    let reason = (throughput == "open").then_some("2 not run");
    json!({ "subject": "small", "members": ["small solo b32"], "throughput": throughput, "cells": cells, "reason": reason,
            "few_energy_steps": throughput == "in_turn" })
}

#[test]
fn the_best_way_on_each_gpu_is_a_sentence_a_table_and_a_figure() {
    let sides = [
        fast("NVIDIA A100-SXM4-40GB", "20261114-0200-11d8", [1800.0, 3500.0, 1700.0], decided("in_turn", &[])),
        fast("NVIDIA H100 80GB HBM3", "20261121-0200-93be", [2200.0, 4000.0, 15000.0], decided("run", &["small×7 mps b32"])),
        fast("NVIDIA H200", "20261122-0200-0001", [2500.0, 4500.0, 18000.0], decided("open", &[])),
    ];
    let found = generations(&sides, None, &[1.2, 3.5, 4.0]).unwrap();
    insta::assert_snapshot!(found.text(80), @"
    From simulated A100-SXM4-40GB to simulated H100 80GB HBM3, the best measured way
      to run a workload has 8.33× [8.22, 8.45] the items per second for small (in
      turn, then MPS ×7).
    From simulated A100-SXM4-40GB to simulated H200, nothing is known about the
      throughput of small: open on simulated H200 (2 not run).
    simulated A100-SXM4-40GB: small-7way-mps 20261114-0200-11d8
    simulated H100 80GB HBM3: small-7way-mps 20261121-0200-93be
    simulated H200: small-7way-mps 20261122-0200-0001
    workload  simulated GPU   best way  items/s     ÷ first    J/item  cost/1e6
    small     A100-SXM4-40GB  in turn      1800              0.0556 ?    0.1852
              H100 80GB HBM3  MPS ×7      15000  8.33 ±0.12   0.00667    0.0648
              H200            open            –           –         –         –
    gain of            simulated A100-SXM4-40GB  simulated H100 80GB HBM3  simulated H200
    small×2 naive b32  –                         –                         –
    small×7 mps b32    –                         –                         –
    cells: gain with 95 % intervals, each GPU against its own baseline; slices are
      matched by their share of the GPU; times are not compared
    ?: of too few steps of the energy counter to be sound
    ");
    let folder = tempfile::tempdir().unwrap();
    let written = found.write(folder.path()).unwrap();
    let page = fs_err::read_to_string(&written.markdown).unwrap();
    insta::assert_snapshot!(&page[page.find("## Best way").unwrap()..page.find("## Guidelines").unwrap()], @r"
    ## Best way to share

    From simulated A100-SXM4-40GB to simulated H100 80GB HBM3, the best measured way to run a workload has 8.33× \[8.22, 8.45\] the items per second for `small` (in turn, then MPS ×7).

    From simulated A100-SXM4-40GB to simulated H200, nothing is known about the throughput of `small`: open on simulated H200 (2 not run).

    What to run on each GPU (simulated)

    | workload | GPU | best way | items per second | ÷ first GPU | joules per item | gain | cost per million items |
    |---|---|---|--:|--:|--:|--:|--:|
    | small | simulated A100-SXM4-40GB | in turn | 1800 ±18 | 1 | 0.0556 ? | – | 0.1852 ±0.0019 |
    | small | simulated H100 80GB HBM3 | MPS ×7 | 15000 ±150 | 8.33 ±0.12 | 0.00667 | – | 0.0648 ±0.0006 |
    | small | simulated H200 | open: 2 not run | – | –: open on simulated H200 (2 not run) | – | – | – |

    The best way is the decision of each report, among what was measured there. Intervals are of the repetitions of one campaign on each GPU: what changes on another day or another machine is not in them. Cost: from the price of an hour, in its currency. ?: of too few steps of the energy counter to be sound; longer epochs have more.

    ![Throughput by GPU model (simulated)](plots/throughput-by-gpu.svg)

    Items per second of all members together. Of each mode the number of members with the largest mean, which is below its mark. Whiskers: 95 % intervals of the repetitions. Each workload has its own scale.

    | workload | GPU | cell | items/s | 95 % interval | validity |
    |---|---|---|--:|---|---|
    | small | simulated A100-SXM4-40GB | small solo b32 | 1800 | \[1782, 1818\] | valid |
    | small | simulated A100-SXM4-40GB | small×2 naive b32 | 3500 | \[3470, 3540\] | valid |
    | small | simulated A100-SXM4-40GB | small×7 mps b32 | 1700 | \[1683, 1717\] | valid |
    | small | simulated H100 80GB HBM3 | small solo b32 | 2200 | \[2180, 2220\] | valid |
    | small | simulated H100 80GB HBM3 | small×2 naive b32 | 4000 | \[3960, 4040\] | valid |
    | small | simulated H100 80GB HBM3 | small×7 mps b32 | 15000 | \[14850, 15150\] | valid |
    | small | simulated H200 | small solo b32 | 2500 | \[2480, 2530\] | valid |
    | small | simulated H200 | small×2 naive b32 | 4500 | \[4460, 4550\] | valid |
    | small | simulated H200 | small×7 mps b32 | 18000 | \[17820, 18180\] | valid |
    ");
    let names: Vec<_> = written.plots.iter().map(|plot| plot.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["throughput-by-gpu.svg"]);
    assert!(written.plots[0].with_extension("png").is_file() && written.plots[0].with_extension("csv").is_file());
    let drawn = fs_err::read_to_string(&written.plots[0]).unwrap();
    assert!(drawn.contains("simulated") && drawn.contains("×7") && drawn.contains("H200"), "{drawn}");
    let best = &found.json()["best"][0]["on"];
    assert_eq!((&best[0]["way"], &best[2]["no_ratio"]), (&json!("in turn"), &json!("open on simulated H200 (2 not run)")));
}

#[test]
fn throughputs_that_are_of_different_things_have_no_ratio() {
    let run = || decided("run", &["small×7 mps b32"]);
    let first = fast("NVIDIA A100-SXM4-40GB", "20261114-0200-11d8", [1800.0, 3500.0, 9000.0], run());
    let other = |change: fn(&mut Value)| {
        let other = fast("NVIDIA H100 80GB HBM3", "20261121-0200-93be", [2200.0, 4000.0, 15000.0], run());
        let mut json = json!(*other);
        change(&mut json);
        let found = generations(&[first.clone(), side(&json)], None, &[]).unwrap();
        (found.json()["summary"][0].as_str().unwrap().to_string(), found)
    };
    let (measured, found) = other(|report| report["device"]["simulated"] = json!(false));
    insta::assert_snapshot!(measured, @"From simulated A100-SXM4-40GB to H100 80GB HBM3, nothing is known about the throughput of `small`: one GPU is simulated, the other was measured.");
    let folder = tempfile::tempdir().unwrap();
    let drawn = fs_err::read_to_string(&found.write(folder.path()).unwrap().plots[0]).unwrap();
    assert!(drawn.contains("sim. A100") && drawn.contains("partly simulated"), "each bar shows which it is: {drawn}");
    assert_eq!(drawn.matches("<g class=\"sim\"><g class=\"h ").count(), 3, "those of one GPU are hatched: {drawn}");
    insta::assert_snapshot!(other(|report| report["synthetic"] = json!(["cifar-10"])).0, @"From simulated A100-SXM4-40GB to simulated H100 80GB HBM3, nothing is known about the throughput of `small`: trained on different data.");
    insta::assert_snapshot!(other(|report| report["cells"][2]["items_per_s"] = json!(null)).0, @"From simulated A100-SXM4-40GB to simulated H100 80GB HBM3, nothing is known about the throughput of `small`: one of them has no valid items per second.");
    insta::assert_snapshot!(other(|report| report["decisions"] = json!([])).0, @"From simulated A100-SXM4-40GB to simulated H100 80GB HBM3, nothing is known about the throughput of `small`: an earlier version wrote the report of simulated H100 80GB HBM3, without decisions; `collo report` writes it again.");
    insta::assert_snapshot!(other(|_| {}).0, @"From simulated A100-SXM4-40GB to simulated H100 80GB HBM3, the best measured way to run a workload has 1.67× [1.64, 1.69] the items per second for `small` (MPS ×7 on both).");
    let without = [advised("NVIDIA A100-SXM4-40GB", "1", "small×7 naive b32", "naive", 2.9, "yes"), {
        advised("NVIDIA H100 80GB HBM3", "2", "small×7 naive b32", "naive", 3.4, "no")
    }];
    insta::assert_snapshot!(generations(&without, None, &[]).unwrap().json()["summary"][0].as_str().unwrap(), @"Nothing is known about the best way to share: earlier versions wrote these reports, without decisions; `collo report` writes them again.");
}

#[test]
fn a_campaign_stands_beside_what_was_published_without_a_verdict() {
    let made = card(
        "NVIDIA A100-SXM4-40GB",
        "20261121-0200-93be",
        &[
            ("small×7 mps b32", "mps", 7, None, 5.3),
            ("small×7 naive b32", "naive", 7, None, 1.7),
            ("tiny×2 mps b8", "mps", 3, None, 1.1),
        ],
    );
    let found = beside(&side(&made));
    insta::assert_snapshot!(found.text(100), @"
    published:study → small-7way-mps 20261121-0200-93be, on a simulated NVIDIA A100-SXM4-40GB
    warning: the device is simulated and was calibrated on these figures: agreement is circular
    warning: not reported by members here, may differ from the study: augmentation, keep cache, label
      smoothing, nesterov, optimiser, precision, read loss, schedule, validate, weight decay, workers
    cell               quantity  published  here        ratio  the published value is
    small×7 mps b32    gain      5.35       5.30 ±0.11  0.99   inside our interval
    small×7 naive b32  gain      1.98       1.70 ±0.03  0.86   outside: ours is at least 12.4 % lower
    2 published figures for cells of this campaign: 1 inside our interval or the same outcome, 1 outside
      or another outcome, 0 without an interval or a number; nothing was published for 1 cell
    published by others, without intervals, so no verdict is given: collocation study on an A100-40GB,
      PhD thesis, chapter 4; EuroMLSys 2024, doi 10.1145/3642970.3655827
    ");
    let folder = tempfile::tempdir().unwrap();
    let page = fs_err::read_to_string(found.write(folder.path()).unwrap().html).unwrap();
    assert!(page.contains("agreement is circular") && page.contains("EuroMLSys 2024"));
}

/// The study's own regime, as a member's hello tells it.
fn regime_of_the_study() -> Value {
    json!({
        "recipe": "timm", "precision": "tf32", "read_loss": "step", "workers": 4, "keep_cache": true, "learning_rate": 0.0125,
        "augmentation": "timm", "crop": null, "validate": true, "optimiser": "sgd", "nesterov": true, "weight_decay": 2e-5,
        "label_smoothing": 0.1, "schedule": "cosine", "schedule_epochs": 300,
    })
}

/// Seven small ones under MPS and naive; each cell's members told this regime.
fn seven_in(regimes: [Value; 2]) -> Value {
    let cells = [("small×7 mps b32", "mps", 7, None, 5.3), ("small×7 naive b32", "naive", 7, None, 1.7)];
    let mut made = card("NVIDIA A100-SXM4-40GB", "20261121-0200-93be", &cells);
    made["device"]["simulated"] = json!(false);
    for (cell, regime) in made["cells"].as_array_mut().unwrap().iter_mut().zip(regimes) {
        cell["members"].as_array_mut().unwrap().iter_mut().for_each(|m| m["regime"] = regime.clone());
    }
    made
}

#[test]
fn a_campaign_in_the_studys_regime_is_held_against_it_without_a_word_of_conditions() {
    let found = beside(&side(&seven_in([regime_of_the_study(), regime_of_the_study()])));
    insta::assert_snapshot!(found.text(100), @"
    published:study → small-7way-mps 20261121-0200-93be, on an NVIDIA A100-SXM4-40GB
    cell               quantity  published  here        ratio  the published value is
    small×7 mps b32    gain      5.35       5.30 ±0.11  0.99   inside our interval
    small×7 naive b32  gain      1.98       1.70 ±0.03  0.86   outside: ours is at least 12.4 % lower
    2 published figures for cells of this campaign: 1 inside our interval or the same outcome, 1 outside
      or another outcome, 0 without an interval or a number; nothing was published for 0 cells
    published by others, without intervals, so no verdict is given: collocation study on an A100-40GB,
      PhD thesis, chapter 4; EuroMLSys 2024, doi 10.1145/3642970.3655827
    ");
    assert_eq!(found.json()["figures"][0]["conditions"], json!({ "differ": [], "not_told": [] }));
}

#[test]
fn a_campaign_in_another_regime_says_what_differs_cell_by_cell_and_is_not_held_against_the_study() {
    let mut fp32 = regime_of_the_study();
    fp32["precision"] = json!("fp32");
    fp32["read_loss"] = json!("epoch");
    let mut idle = regime_of_the_study();
    idle["workers"] = json!(0);
    idle["validate"] = json!(false);
    let found = beside(&side(&seven_in([fp32, idle])));
    insta::assert_snapshot!(found.text(100), @"
    published:study → small-7way-mps 20261121-0200-93be, on an NVIDIA A100-SXM4-40GB
    cell               quantity  published  here        ratio  the published value is
    small×7 mps b32    gain      5.35       5.30 ±0.11  0.99   not compared: other conditions
    small×7 naive b32  gain      1.98       1.70 ±0.03  0.86   not compared: other conditions
    conditions that differ from the published ones:
    small×7 mps b32: precision fp32, published with tf32; loss read each epoch, published each step
    small×7 naive b32: workers 0, published with 4; no validation, published with one
    2 published figures for cells of this campaign: 0 inside our interval or the same outcome, 0 outside
      or another outcome, 0 without an interval or a number, 2 published under other conditions; nothing
      was published for 0 cells
    published by others, without intervals, so no verdict is given: collocation study on an A100-40GB,
      PhD thesis, chapter 4; EuroMLSys 2024, doi 10.1145/3642970.3655827
    ");
    let row = &found.json()["figures"][0];
    assert_eq!(row["place"], "other_conditions");
    assert_eq!(
        row["conditions"]["differ"][0],
        json!({ "workload": "small", "name": "precision", "here": "fp32", "published": "tf32", "text": "precision fp32, published with tf32" })
    );
    let folder = tempfile::tempdir().unwrap();
    let written = found.write(folder.path()).unwrap();
    for path in [&written.html, &written.markdown] {
        let text = fs_err::read_to_string(path).unwrap();
        assert!(text.contains("loss read each epoch, published each step") && text.contains("workers 0, published with 4"));
    }
}

#[test]
fn hostile_names_do_not_run_in_the_page() {
    let (mut left, mut right) = nights();
    for report in [&mut left, &mut right] {
        for cell in report["cells"].as_array_mut().unwrap() {
            cell["cell"] = json!(format!("{}</svg><script>alert(1)</script>", cell["cell"].as_str().unwrap()));
            cell["sharing"] = json!("mps\"><img src=x onerror=alert(1)>");
        }
        report["environment"]["torch"] = json!(format!("<b>{}</b>", report["campaign"].as_str().unwrap()));
        report["synthetic"] = json!(["<i>x</i>"]);
    }
    right["synthetic"] = json!([]);
    let folder = tempfile::tempdir().unwrap();
    let written = of(&left, &right).write(folder.path()).unwrap();
    let page = fs_err::read_to_string(&written.html).unwrap();
    for tag in ["<script", "<img", "<b>2026", "<i>x"] {
        assert!(!page.contains(tag), "{tag}");
    }
    let markdown = fs_err::read_to_string(&written.markdown).unwrap();
    assert!(!markdown.contains("<script") || markdown.contains("\\<script"), "{markdown}");
}

#[test]
fn hostile_names_reach_neither_the_terminal_nor_the_shell() {
    let (mut left, mut right) = nights();
    for report in [&mut left, &mut right] {
        report["experiment"] = json!("x\u{1b}[31m");
        for cell in report["cells"].as_array_mut().unwrap() {
            let label = format!("{}\u{1b}[2J'; rm -rf ~; '", cell["cell"].as_str().unwrap());
            cell["cell"] = json!(label);
            cell["members"][0]["solo"] = json!(label);
        }
    }
    let comparison = of(&left, &right);
    let text = comparison.text(100);
    assert!(!text.contains('\u{1b}') && text.contains(r"\x1b[2J"), "{text}");
    assert!(comparison.decide.iter().all(|c| !c.contains("rm")));
}

#[test]
fn of_two_thousand_cells_the_terminal_shows_the_first_and_the_json_all() {
    let many = |id: &str, factor: f64| {
        let mut made = report(id, &alike(), &[]);
        let cells = (0..2000u64).map(|i| {
            let estimate =
                10.0 * (1.0 + 0.001 * (i % 97) as f64) * if i % 10 == 0 { factor } else { 1.0 + 0.0001 * (i % 31) as f64 };
            let mut cell = cell(&("", "mps", 7, 32, estimate, 0.1 + 0.002 * (i % 89) as f64));
            cell["cell"] = json!(format!("small{i}×7 mps b32"));
            cell
        });
        made["cells"] = cells.collect();
        made
    };
    let folder = tempfile::tempdir().unwrap();
    let paths = ["left.json", "right.json"].map(|name| folder.path().join(name));
    for (path, report) in paths.iter().zip([many("20261114-0200-11d8", 1.0), many("20261121-0200-93be", 1.05)]) {
        fs_err::write(path, serde_json::to_string_pretty(&report).unwrap()).unwrap();
    }
    let (left, right) = (ComparedReport::read(&paths[0]).unwrap(), ComparedReport::read(&paths[1]).unwrap());
    let comparison = compare(&left, &right, &Options::default()).unwrap();
    let text = comparison.text(100);
    assert_eq!(comparison.rows.len(), 2000);
    assert!(text.contains("… 1940 more") && comparison.json()["cells"].as_array().unwrap().len() == 2000);
}

#[test]
fn cells_of_one_label_on_other_instances_are_shown_and_not_judged() {
    let left = card(A100, "20261114-0200-11d8", &[("small×2 mig b32", "mig", 2, Some("2×3g.20gb"), 1.8)]);
    let right = card(A100, "20261121-0200-93be", &[("small×2 mig b32", "mig", 2, Some("2×2g.10gb"), 1.2)]);
    let found = of(&left, &right);
    assert_eq!(found.rows[0].finding.text(), "not judged: 2×3g.20gb left, 2×2g.10gb right");
}

#[test]
fn a_merged_campaign_shares_runs_with_those_that_it_comes_from() {
    let (left, mut right) = nights();
    right["merged_from"] = json!([left["campaign"], "20261115-0200-22e9"]);
    for found in [of(&left, &right), of(&right, &left)] {
        assert!(found.count("not_judged") == 4 && !found.has_worse(), "{:?}", words(&found));
        assert!(found.warnings.iter().any(|w| w.contains("11d8 and share runs")), "{:?}", found.warnings);
    }
}

#[test]
fn what_was_measured_for_a_time_is_compared_by_its_epochs_or_the_way_is_shown() {
    let (mut left, mut right) = nights();
    let each = |side: &mut Value, change: &dyn Fn(&mut Value)| side["cells"].as_array_mut().unwrap().iter_mut().for_each(change);
    for side in [&mut left, &mut right] {
        each(side, &|cell| cell["after_measured"] = json!("exit"));
    }
    let found = of(&left, &right);
    assert!(found.rows.iter().all(|row| row.quantity == "epoch_time_s" && row.finding.as_str() != "not_judged"));
    let power = json!({ "power_w": { "estimate": 200.0, "low": 199.0, "high": 201.0, "repetitions": 3, "df": 9.0 } });
    for side in [&mut left, &mut right] {
        each(side, &|cell| (cell["epoch_time_s"], cell["metrics"]) = (Value::Null, power.clone()));
    }
    let answer = of(&left, &right).rows[0].finding.text();
    assert_eq!(answer, "not judged: neither side has its makespan (`--quantity power_w` compares it)");
}

#[test]
fn between_simulated_and_measured_even_out_of_memory_is_no_verdict() {
    let (left, mut right) = nights();
    right["device"]["simulated"] = json!(false);
    (right["cells"][3]["outcome"], right["cells"][3]["epoch_time_s"]) = (json!("out_of_memory"), Value::Null);
    let found = of(&left, &right);
    assert!(found.count("not_judged") == 4 && !found.has_worse(), "{:?}", words(&found));
}
