//! What another program scheduled is planned here, and what it tracked is compared, never as measured by collo.

use serde_json::Value;

use crate::support::{Bench, checkout};

const SCHEDULE: &str = "Experiment,Workload,Status,Run,Devices,Collocation,     File,Listeners,Params
         3,       1,      ,   ,      0,          -,mine/net.py,smi+top,--batch-size 64
         3,       2,      ,   ,      0,        MPS,mine/net.py,smi+top,--batch-size 64
         3,       2,      ,   ,      0,        MPS,mine/net.py,smi+top,--batch-size 64
         3,       3,      ,   ,      0,    1g.5gb,mine/net.py,smi+top,--batch-size 8
         3,       3,      ,   ,      0,   3g.20gb,mine/net.py,smi+top,--batch-size 8
         3,       4,      ,   ,    0+1,          -,mine/net.py,smi+top,--batch-size 64
";

fn scheduled() -> Bench {
    let gpu = fs_err::read_to_string(checkout().join("mig-profiles/a100-40gb.toml")).expect("there");
    Bench::new()
        .file("mig-profiles/a100-40gb.toml", &gpu)
        .file("mine.csv", SCHEDULE)
        .file("mine/net.py", "print('epoch 1 took 2 s')\n")
}

#[test]
fn a_schedule_of_radts_is_an_experiment_that_plans() {
    let bench = scheduled();
    let answer = bench.collo(&["import", "radt", "mine.csv"]).exits(0);
    assert!(answer.stderr.contains("line 7: it runs on several GPUs, `0+1`"), "{}", answer.stderr);
    assert!(answer.stderr.contains("lines 2, 3, 4, 5, 6: Listeners `smi+top`"), "{}", answer.stderr);
    let plan = bench.collo(&["plan", "mine", "--gpu", "a100-40gb", "--no-predict", "--json"]).exits(0);
    let plan: Value = serde_json::from_str(&plan.stdout).expect("JSON");
    let mut cells: Vec<&str> = plan["cells"].as_array().expect("a list").iter().filter_map(|c| c["cell"].as_str()).collect();
    cells.sort_unstable();
    insta::assert_snapshot!(format!("{}\n{}", cells.join("\n"), plan["refusals"]), @"
    net solo b64
    net-1g-5gb mig:1g.5gb b8
    net-1g-5gb solo b8
    net-1g-5gb+net-3g-20gb mig b8
    net-3g-20gb mig:3g.20gb b8
    net-3g-20gb solo b8
    net×2 mps b64
    []
    ");
    let again = bench.collo(&["import", "radt", "mine.csv"]).exits(2);
    assert!(again.stderr.contains("experiments/mine.toml exists already"), "{}", again.stderr);
}

#[test]
fn a_schedule_of_which_nothing_can_be_carried_is_an_error_and_nothing_is_written() {
    let rows = "Experiment,Workload,Devices,Collocation,File,Params\n1,1,0,-,a.py,\n1,1,1,-,a.py,\n";
    let bench = Bench::new().file("two.csv", rows);
    let answer = bench.collo(&["import", "radt", "two.csv"]).exits(2);
    assert!(
        answer.stderr.contains("nothing of two.csv can be imported") && answer.stderr.contains("line 3"),
        "{}",
        answer.stderr
    );
    assert!(!bench.at("experiments/two.toml").exists() && !bench.at("workloads/a").exists());
}

/// A run as radT tracks it, with its board power each second.
fn track(bench: &Bench, id: &str, letter: &str, parent: Option<&str>, power_w: &[f64]) {
    let write = |name: &str, text: &str| bench.write(&format!("mlruns/3/{id}/{name}"), text);
    write("meta.yaml", "end_time: 1700000060000\nlifecycle_stage: active\nstart_time: 1700000000000\nstatus: 3\n");
    for (name, value) in [("letter", letter), ("workload", "1"), ("file", "net.py"), ("batch-size", "64"), ("model", "net.py")] {
        write(&format!("params/{name}"), value);
    }
    parent.iter().for_each(|parent| write("tags/mlflow.parentRunId", parent));
    let lines: Vec<String> =
        power_w.iter().enumerate().map(|(at, w)| format!("{} {w} 0\n", 1_700_000_000_000 + at * 1000)).collect();
    write("metrics/SMI - Power Draw", &lines.concat());
    write("metrics/DCGMI - SN Active", "1700000000000 0.0 0\n1700000001000 0.0 0\n");
}

#[test]
fn runs_that_radt_tracked_are_compared_and_every_word_says_that_collo_did_not_measure_them() {
    let bench = scheduled();
    bench.collo(&["import", "radt", "mine.csv"]).exits(0);
    bench.write("mlruns/3/meta.yaml", "name: nets\n");
    track(&bench, "aa", "0_A_MPS", None, &[100.0, 120.0]);
    track(&bench, "bb", "0_B_MPS", Some("aa"), &[100.0, 120.0]);
    track(&bench, "cc", "0", None, &[90.0]);
    let import = bench.collo(&["import", "radt", "mlruns", "--to", "old.json", "--gpu", "NVIDIA A100-SXM4-40GB"]).exits(0);
    assert!(import.stdout.contains("2 cells of 2 groups, imported from radT, not measured by collo"), "{}", import.stdout);
    assert!(
        import.stderr.contains("absent: sm_active_ratio of `net×2 mps b64`, `net solo b64`: every reading is 0"),
        "{}",
        import.stderr
    );
    bench.collo(&["import", "radt", "mlruns", "--to", "old.json"]).exits(2);
    track(&bench, "dd", "0", None, &[110.0]);
    std::fs::remove_dir_all(bench.at("mlruns/3/aa")).expect("there");
    std::fs::remove_dir_all(bench.at("mlruns/3/bb")).expect("there");
    bench.collo(&["import", "radt", "mlruns/3", "--to", "new.json", "--gpu", "NVIDIA A100-SXM4-40GB"]).exits(0);
    let compared = bench.collo(&["compare", "old.json", "new.json", "--quantity", "power_w"]).exits(0);
    for said in [
        "the left side is indicative: imported from radT, not measured by collo",
        "not judged: indicative left, indicative right",
        "only left: net×2 mps b64",
    ] {
        assert!(compared.stdout.contains(said), "{said}: {}", compared.stdout);
    }
    let published = bench.collo(&["compare", "published:study", "new.json"]);
    published.answers("all of it is indicative: imported from radT, not measured by collo");
}
