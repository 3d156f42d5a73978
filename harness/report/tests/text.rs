//! What a person reads: the terminal and Markdown.

use crate::support::card::CardTruth;
use crate::support::{Fixture, predictions};
use collo_report::{Report, json, terminal, terminal_cell, write};
use collo_store::Outcome;

fn analysed(fixture: &Fixture) -> Report {
    let folder = tempfile::tempdir().unwrap();
    Report::of(&fixture.write(folder.path())).unwrap()
}

#[test]
fn the_end_of_a_run_is_one_table_with_its_notes() {
    insta::assert_snapshot!(terminal(&analysed(&Fixture::quickstart()), 100), @r"
    quickstart on cpu: 12 of 12 runs completed in 1 min 27 s

    cell              epoch s       slowdown      gain        fairness    memory    cpu  overlap
    tiny solo b32     1.579 ±0.011  1             1           –         0.75 GiB   99 %  –
    tiny×2 naive b32  1.600 ±0.015  1.013 ±0.011  1.97 ±0.02  0.99      1.20 GiB  198 %  100 %
    tiny×3 naive b32  2.47 ±0.02    1.564 ±0.018  1.92 ±0.02  0.99      1.80 GiB  200 %  100 %

    ± 95 % interval, pooled t, 3 repetitions, 6 solo; gain is work per second against running in turn,
      each member with 1 thread on 2 cores
    energy absent: no readable counter; data: synthetic stand-in for CIFAR-10
    2 together have 1.97× the throughput of running in turn; a third adds less than 5 %
    ");
}

#[test]
fn what_was_never_launched_adds_nothing_to_the_time_of_a_campaign() {
    let title = |fixture: &Fixture| terminal(&analysed(fixture), 100).lines().next().expect("a title").to_string();
    let not_staged = Outcome::NotStaged { reason: "no daemon".into() };
    insta::assert_snapshot!(title(&Fixture::quickstart().ends(not_staged)), @"quickstart on cpu: 9 of 12 runs completed in 1 min 27 s, 3 not staged");
}

#[test]
fn failed_cells_keep_their_row_and_say_how_they_ended() {
    let crash = Outcome::Crashed { member: 1, status: "exited with 1".into(), message: "in epoch 1".into(), place_alone: true };
    let mut fixture = Fixture::quickstart().ends(crash);
    fixture.repetitions = 1;
    insta::assert_snapshot!(terminal(&analysed(&fixture), 100), @r#"
    quickstart on cpu: 3 of 4 runs completed in 29 s, 1 crashed

    cell              epoch s       slowdown      gain          fairness    memory    cpu  validity
    tiny solo b32     1.57 ±0.08    1             1             –         0.75 GiB   99 %  –
    tiny×2 naive b32  1.59 (1 run)  1.01 (1 run)  1.97 (1 run)  0.99      1.20 GiB  198 %  indicative
    tiny×3 naive b32  crashed       –             –             –                –      –  –
    (not shown at this width: overlap)

    No group is decided, because each run measured only 1.6 s of training and groups have 1 repetition.
      To decide: set `measure_for = "10s"` in the experiment, or more `epochs`; or more repetitions,
      `collo run quickstart --more 2`.

    ± 95 % interval, pooled t, 1 repetition, 2 solo; gain is work per second against running in turn,
      each member with 1 thread on 2 cores
    energy absent: no readable counter; data: synthetic stand-in for CIFAR-10
    `tiny×2 naive b32` is indicative: one repetition carries no interval
    "#);
}

#[test]
fn narrow_terminals_lose_columns_from_the_right_and_labels_never() {
    let report = analysed(&Fixture::quickstart());
    for width in [100, 80, 60, 40, 20] {
        let text = terminal(&report, width);
        let table: Vec<&str> = text.lines().skip(2).take(4).collect();
        assert!(table[2].starts_with("tiny×2 naive b32"), "{text}");
        assert!(text.lines().skip(2).all(|l| l.chars().count() <= width.max(18)), "{width}:\n{text}");
    }
    assert!(!terminal(&report, 60).contains("fairness  "));
}

#[test]
fn the_table_of_a_gpu_has_its_activity_and_its_energy_at_80_columns() {
    let truth = |sm_active_ratio: f64, power_w: f64| CardTruth { sm_active_ratio, power_w, ..predictions::card() };
    let mut fixture = Fixture::named("card");
    (fixture.device.name, fixture.device.kind) = ("NVIDIA A100-SXM4-40GB".into(), "gpu".into());
    (fixture.device.memory_bytes, fixture.device.simulated) = (Some(40 << 30), true);
    let two = [("small", 1.25), ("small", 1.25)];
    let fixture = fixture.on_card("solo", &[("small", 1.0)], truth(0.2, 110.0), 0.0).on_card("mps", &two, truth(0.4, 150.0), 0.0);
    let text = terminal(&analysed(&fixture), 80);
    let table: Vec<&str> = text.lines().skip(2).take(4).collect();
    insta::assert_snapshot!(table.join("\n"), @r"
    cell             epoch s       slowdown      gain          SMACT  J per item
    small solo b32   1.003 ±0.002  1             1              20 %  0.108
    small×2 mps b32  1.253 ±0.004  1.249 ±0.009  1.601 ±0.012   40 %  0.0917
    (not shown at this width: fairness, memory, overlap)
    ");
}

#[test]
fn nothing_to_say_is_said_shortly() {
    let mut fixture = Fixture::quickstart();
    fixture.stop_after = 0;
    insta::assert_snapshot!(terminal(&analysed(&fixture), 100), @r"
    quickstart on cpu: 0 of 12 runs completed, 12 not run

    cell              epoch s
    tiny solo b32     not run
    tiny×2 naive b32  not run
    tiny×3 naive b32  not run

    unfinished: 12 of 12 runs are missing; nothing was measured under naive; `collo run 7f3a` continues
    ");
}

#[test]
fn one_cell_in_full() {
    let report = analysed(&Fixture::quickstart());
    insta::assert_snapshot!(terminal_cell(&report, "tinyx3", usize::MAX).unwrap(), @r"
    tiny×3 naive b32 of 7f3a, quickstart, cpu: valid, 3 of 3 repetitions
      epoch      2.47 ±0.02 s       solo 1.579 ±0.011 s  slowdown 1.564 ±0.018
      gain       1.92 ±0.02         STP 1.92 ±0.02, ANTT 1.564 ±0.018  better (p <0.001)
      fairness   0.994 ±0.005       overlap 100 %      skew 0.2 ms
      makespan   5.20 ±0.05 s
      memory     1.80 of 24.0 GiB   solo 0.75 GiB      0.800 ±0 of the sum of solo  the peak of PSS, which counts shared pages once
      cpu        200 %              solo 99 %          pressure 30 %
      items      1244 ±12 per second
      member     0                  tiny               2.47 ±0.02 s       slowdown 1.563 ±0.015  loss 2.10
      member     1                  tiny               2.47 ±0.02 s       slowdown 1.567 ±0.015  loss 2.10
      member     2                  tiny               2.47 ±0.02 s       slowdown 1.563 ±0.015  loss 2.10
      graph      tiny               0.175 M parameters  0.703 MB           0.0256 GFLOP forward per item  0.400 M activations per item  16 layers
      ran on     Some CPU, 2 logical cores, torch 2.14.1, synthetic data
      attested   3 of 3 runs by cpu time in the window
      absent     energy per epoch: no readable counter
    ");
    assert_eq!(terminal_cell(&report, "tiny×3 naive b32", usize::MAX), terminal_cell(&report, "tinyx3", usize::MAX));
    assert_eq!(terminal_cell(&report, "tiny", usize::MAX), None, "three cells begin so");
    assert_eq!(terminal_cell(&report, "medium", usize::MAX), None);
}

#[test]
fn shortened_epochs_and_mixed_data_are_said_on_every_face() {
    let mut fixture = Fixture::quickstart();
    fixture.limit_batches = Some(4);
    let report = analysed(&fixture);
    let said = terminal(&report, 200).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("shortened epochs: 4 batches of `tiny`"), "{said}");
    assert_eq!(json(&report)["shortened"][0]["limit_batches"], 4);
    let reports = tempfile::tempdir().unwrap();
    let written = write(&report, reports.path()).unwrap();
    let text = std::fs::read_to_string(written.markdown).unwrap();
    assert!(text.contains("(synthetic data, shortened epochs)"), "{text}");

    let mut fixture = Fixture::quickstart();
    fixture.real_from_block = Some(2);
    let report = analysed(&fixture);
    let said = terminal(&report, 200).split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "CIFAR-10 was real in some runs of this campaign and synthetic in others: their times are not comparable";
    assert!(said.contains(why), "{said}");
    assert!(report.analysis.cells.iter().all(|c| c.validity.verdict != collo_store::Verdict::Valid), "{said}");
}

#[test]
fn markdown_begins_with_what_to_do() {
    let reports = tempfile::tempdir().unwrap();
    let written = write(&analysed(&Fixture::quickstart()), reports.path()).unwrap();
    let text = std::fs::read_to_string(written.markdown).unwrap();
    let head: Vec<&str> = text.lines().take(32).collect();
    insta::assert_snapshot!(head.join("\n"), @r"
    # How to share two cores

    One small network, alone, twice and three times on the same cores: experiment `quickstart`

    - Device: cpu (2 cores, 24 GiB); Some CPU; torch 2.14.1
    - Campaign: 2026-11-20 18:42:09 UTC; `20261120-1842-7f3a`
    - 12 planned, 12 accounted for: 12 completed in 1 min 27 s; 3 cells valid, 0 indicative

    Links to files need the folder of this report; `collo bundle 7f3a` packs it with the runs and `campaign.json` (SHA-256 b012a284427ecfeb…).

    ## How to use these cores

    `tiny`: run two together under naive sharing: 1.97× \[1.95, 2.00\] the throughput of running in turn. A third adds less than 5 %. No member is slowed by more than 10 %.

    Why you may doubt this:

    - **synthetic data**: a stand-in for CIFAR-10: times are real, losses are not those of the real data
    - **few repetitions**: groups have three: a rare slow run may be in none of them
    - **scope**: nothing follows for other models, batch sizes, numbers of members, modes, devices or drivers; of many 95 % intervals some miss the truth

    What to run; intervals allow for the group being picked from several (synthetic data)

    | workload | most throughput | slowest member within 10 % | least energy |
    |---|---|---|---|
    | tiny: resnet8 / CIFAR-10, batch 32 | naive ×2: gain 1.97 ±0.03 | naive ×2: slowdown 1.013 ±0.014 | –: no readable counter |

    ![Throughput gain by mode and degree (synthetic data)](20261120-1842-7f3a/plots/gain-by-mode.svg)

    Work per second compared with running the members in turn: above 1 sharing pays; darker gains more, on one scale; below, where there is room, the 95 % interval. ✕ OOM: ran out of memory; refused: cannot run here; dashed: not measured. In turn means each member with 1 thread on 2 cores.

    | workload | naive ×2 | naive ×3 |
    |---|--:|--:|
    ");
    for figure in text.lines().filter_map(|l| l.strip_prefix("![")?.split_once("](")) {
        let path = figure.1.trim_end_matches(')');
        assert!(reports.path().join("quickstart").join(path).exists(), "{path}");
    }
}

#[test]
fn a_cell_is_shown_beside_its_published_figure_with_the_conditions_that_differ() {
    let mut fixture = Fixture::named("small-7way").solo("small", 32, 6.0).group("small", 32, 7, "mps", 8.0);
    fixture.device.name = "NVIDIA A100-SXM4-40GB".into();
    let shown = |regime: serde_json::Value| {
        let report = analysed(&Fixture { regime, ..fixture.clone() });
        let cell = json(&report)["cells"].as_array().unwrap().iter().find(|c| c["degree"] == 7).unwrap().clone();
        (terminal_cell(&report, "small×7 mps b32", usize::MAX).unwrap(), cell["members"][6]["regime"].clone())
    };
    let (text, regime) = shown(serde_json::json!({ "precision": "fp32", "workers": 4 }));
    assert!(text.contains("published 5.35 under other conditions (precision fp32, published with tf32)"), "{text}");
    assert_eq!(regime, serde_json::json!({ "precision": "fp32", "workers": 4 }), "the report keeps what each member told");
    let (text, _) = shown(serde_json::json!({ "precision": "tf32", "workers": 4 }));
    assert!(text.contains("published 5.35") && !text.contains("conditions"), "{text}");
    let (text, regime) = shown(serde_json::Value::Null);
    assert!(text.contains("published 5.35") && regime.is_null(), "{text}");
}

#[test]
fn what_lowers_all_groups_is_the_reason_why_none_is_decided() {
    let said = |fixture: &Fixture| terminal(&analysed(fixture), 100).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut forced = Fixture::quickstart();
    forced.indicative = vec!["continued with --force although driver changed".into()];
    let text = said(&forced);
    let why = "No group is decided, because their numbers are indicative only (continued with --force although driver changed).";
    assert!(text.contains(why) && text.contains("To decide: remove that cause, then `collo run quickstart --new`."), "{text}");
    let mut mixed = Fixture::quickstart();
    mixed.real_from_block = Some(2);
    let text = said(&mixed);
    assert!(text.contains("indicative only (CIFAR-10 was real in some runs") && !text.contains("--more"), "{text}");
}

#[test]
fn a_makespan_is_absent_where_runs_are_measured_for_a_time() {
    let mut fixture = Fixture::quickstart();
    fixture.measure_for_s = Some(1.0);
    let why = &json(&analysed(&fixture))["cells"][1]["absent"]["makespan_s"];
    assert_eq!(why, "runs are measured for a time, not for an amount of work");
}

#[test]
fn a_block_with_two_baselines_is_one_block() {
    let mut fixture = Fixture::quickstart().solo("small", 32, 3.0);
    fixture.drift = 1.3;
    let reports = tempfile::tempdir().unwrap();
    let written = write(&analysed(&fixture), reports.path()).unwrap();
    let text = std::fs::read_to_string(written.markdown).unwrap();
    let note = text.lines().find(|l| l.contains("Baseline drift")).unwrap();
    assert!(note.contains("3 of 3 blocks beyond"), "{note}");
}

#[test]
fn a_table_names_the_numbers_that_a_figure_draws_pale() {
    let markdown = |repetitions: u32| {
        let reports = tempfile::tempdir().unwrap();
        let report = analysed(&Fixture::quickstart().repetitions(repetitions));
        std::fs::read_to_string(write(&report, reports.path()).unwrap().markdown).unwrap()
    };
    let once = markdown(1);
    for part in [
        "| workload | naive ×2 | naive ×3 | indicative |",
        "| naive ×2, naive ×3 |",
        "| against 1 | STP | ANTT | validity |",
        "| members' slowdown | validity |",
    ] {
        assert!(once.contains(part), "{part}: {once}");
    }
    assert!(!markdown(3).contains("| members' slowdown | validity |"), "all are valid");
}

#[test]
fn thresholds_are_printed_as_they_were_set() {
    let mut fixture = Fixture::quickstart();
    (fixture.thresholds.relevant_ratio, fixture.thresholds.slowdown) = (0.025, 1.075);
    let reports = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(write(&analysed(&fixture), reports.path()).unwrap().markdown).unwrap();
    assert!(page.contains("Differences below 2.5 % count as none; a slowdown of up to 7.5 % is accepted."), "{page}");
    assert!(page.contains("slowest member within 7.5 %"), "{page}");
}

#[test]
fn a_member_without_a_slowdown_keeps_its_place_in_the_list() {
    let fixture = Fixture::named("exit").solo("large", 32, 9.0).solo("small", 32, 1.0);
    let fixture = fixture.mixed(("large", 9.0), ("small", 1.0), "naive", "exit");
    let reports = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(write(&analysed(&fixture), reports.path()).unwrap().markdown).unwrap();
    assert!(page.contains("| –, "), "{page}");
}
