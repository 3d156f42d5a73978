//! What a plan takes from stored runs: time, energy, money, memory.

use crate::sim::Machine;
use crate::support::Bench;

#[test]
fn after_a_run_the_plan_knows_what_its_cells_take_and_those_of_members_alone() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.05\nitems = 5\ndegree = [1, 2]\n");
    bench.run(&[]).exits(0);
    bench.collo(&["plan", "x"]).exits(0).answers(&format!("from {} stored runs", bench.runs().len()));
    let json = bench.collo(&["plan", "x", "--set", "axes.degree=[2, 3]", "--json"]).exits(0).json();
    let from: Vec<&str> =
        json["cells"].as_array().expect("cells").iter().filter_map(|c| c["forecast"]["from"].as_str()).collect();
    assert_eq!(from, ["stored runs", "stored runs", "stored runs of its members alone"]);
    // Another setting was never measured: the file of the workload tells that.
    let other = bench.collo(&["plan", "x", "--set", "axes.seconds=0.07", "--json"]).exits(0).json();
    assert!(other["cells"].as_array().expect("cells").iter().all(|cell| cell["forecast"]["stored_runs"] == 0), "{other}");
    // What cannot be read does not matter.
    for run in bench.runs().values() {
        fs_err::write(run.path.join("run.json"), "{").expect("written");
    }
    let plan = bench.collo(&["plan", "x"]).exits(0);
    assert!(!plan.stdout.contains("stored run"), "{}", plan.stdout);
}

#[test]
fn forty_newer_campaigns_of_something_else_do_not_hide_what_a_cell_took() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.05\nitems = 5\ndegree = [1, 2]\n");
    bench.run(&[]).exits(0);
    let written = fs_err::read_to_string(bench.at("experiments/x.toml")).expect("there");
    bench.write("experiments/other.toml", &written.replace("[1, 2]", "1").replace("0.05", "0.06"));
    bench.collo(&["run", "other"]).exits(0);
    bench.add_newer("other", 45, &[]);
    let json = bench.collo(&["plan", "x", "--json"]).exits(0).json();
    assert!(json["cells"].as_array().expect("cells").iter().all(|cell| cell["forecast"]["from"] == "stored runs"), "{json}");
}

#[test]
fn a_newer_campaign_of_cells_that_differ_only_in_what_finished_members_do_hides_nothing() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.05\nitems = 5\ndegree = [1, 2]\n");
    bench.run(&[]).exits(0);
    bench.run(&["--set", "after_measured=exit"]).exits(0);
    let json = bench.collo(&["plan", "x", "--json"]).exits(0).json();
    assert!(json["cells"].as_array().expect("cells").iter().all(|c| c["forecast"]["from"] == "stored runs"), "{json}");
}

#[test]
fn on_a_gpu_the_plan_has_time_energy_money_and_memory_of_stored_runs_and_only_of_that_model() {
    let toml = "epochs = 2\n[axes]\nworkload = \"small\"\nlimit_batches = 20\ndegree = [1, 2]\n";
    let machine = Machine::new("a100-40gb", toml);
    let bench = &machine.bench;
    bench.write("collo.toml", "price_per_hour = 36.0\ncurrency = \"EUR\"\n");
    bench.collo(&["plan", "x"]).exits(0).answers("unknown for 2 of 2 cells");
    bench.run(&[]).exits(0);
    let json = bench.collo(&["plan", "x", "--json"]).exits(0).json();
    for cell in json["cells"].as_array().expect("cells") {
        let forecast = &cell["forecast"];
        assert_eq!(forecast["from"], "stored runs");
        assert!(forecast["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 100_000_000), "{cell}");
        assert!(forecast["each_s"].as_f64().is_some_and(|s| s > 0.0), "{cell}");
    }
    let (amount, seconds) = (json["cost"]["amount"].as_f64().expect("known"), json["forecast_s"].as_f64().expect("known"));
    assert!((amount - seconds / 100.0).abs() < 1e-9, "36 EUR an hour");
    bench.collo(&["plan", "x"]).exits(0).answers("from 3 stored runs").answers(" EUR");
    let wide = bench.collo(&["plan", "x", "--set", "axes.degree=[2, 40, 200]"]).exits(0);
    assert!(wide.stdout.contains("from those of their members alone, at most"), "{}", wide.stdout);
    assert!(wide.stdout.contains("may run out of memory"), "{}", wide.stdout);
    assert!(!wide.stdout.contains("by stored runs"), "{}", wide.stdout);
    // Runs of a simulated GPU tell nothing of a real one of the same name, and none of them anything of another model.
    let real = bench.collo(&["plan", "x", "--gpu", "a100-40gb", "--no-predict"]).exits(0);
    assert!(real.stdout.contains("unknown for 2 of 2 cells"), "{}", real.stdout);
}
