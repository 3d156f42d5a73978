//! The cells of an experiment and their order, and what it is made of besides its own file: `--set`, included files, and the
//! machine's `collo.toml`.

use crate::support::Bench;

const SLEEP: &str = "[axes]\nworkload = \"sleep\"\nseconds = 0.05\nitems = 5\ndegree = 1\n";

#[test]
fn a_campaign_with_a_set_is_another_one_and_is_continued_with_it() {
    let bench = Bench::of(SLEEP);
    bench.run(&["--set", "repetitions=2", "--for", "1ms"]).exits(4).says("resume: collo run x --set repetitions=2");
    let first = bench.campaign().manifest().clone();
    assert_eq!(first.ingredients["--set repetitions"].version.as_deref(), Some("`repetitions=2`"));
    assert!(first.source_toml.ends_with("# --set 'repetitions=2'\n"), "{}", first.source_toml);
    let planned = first.plan.order.len();
    // By its name the campaign has what was set; the experiment without it is another campaign.
    bench.run_named(first.short_id(), &[]).exits(0);
    assert_eq!((bench.campaigns(), bench.runs().len()), (1, planned));
    bench.run(&["--set", "repetitions=3", "--for", "1ms"]).exits(4);
    bench.run(&[]).exits(0).says("is not continued, its ingredients changed");
    assert_eq!(bench.campaigns(), 3);
}

#[test]
fn an_included_file_is_no_experiment_and_a_change_of_it_begins_another_campaign() {
    let common = "epochs = 1\n[axes]\nworkload = \"sleep\"\nseconds = 0.05\n";
    let bench = Bench::of("include = [\"common.toml\"]\n").file("experiments/common.toml", "epochs = 1\n");
    bench.write(
        "experiments/x.toml",
        &format!("device = \"cpu\"\nrepetitions = 2\ncooldown = \"0s\"\ninclude = [\"common.toml\"]\n{SLEEP}"),
    );
    let listed = bench.collo(&["list", "experiments"]).exits(0);
    assert!(!listed.stdout.contains("common") && !listed.stderr.contains("error"), "{}{}", listed.stdout, listed.stderr);
    bench.collo(&["plan", "x", "--explain"]).exits(0).answers("experiments/common.toml:1");
    bench.run(&["--for", "1ms"]).exits(4);
    assert!(bench.campaign().manifest().ingredients.contains_key("include common.toml"));
    bench.write("experiments/common.toml", common.replace("epochs = 1", "epochs = 2").split("[axes]").next().unwrap_or_default());
    bench.run(&["--for", "1ms"]).says("is not continued, its ingredients changed");
    assert_eq!(bench.campaigns(), 2);
}

#[test]
fn the_machines_file_is_below_the_experiment_and_its_cores_are_part_of_the_campaign() {
    let bench = Bench::of(SLEEP).file("collo.toml", "cores = \"0\"\ngpu = \"7\"\nprice_per_hour = 1.5\ncurrency = \"EUR\"\n");
    bench.collo(&["plan", "x", "--explain"]).exits(0).answers("collo.toml:1").answers("cores 0").answers("collo.toml:3");
    bench.run(&["--for", "1ms", "--set", "repetitions=2"]).exits(4);
    assert!(bench.campaign().manifest().ingredients.contains_key("collo.toml"), "cores change what is measured");
    bench.write("collo.toml", "cores = \"shared\"\n");
    bench.run(&["--for", "1ms", "--set", "repetitions=2"]).says("is not continued, its ingredients changed");
    bench.write("collo.toml", "cpus = \"0\"\n");
    bench.collo(&["plan", "x"]).exits(2).says("unknown key `cpus` at collo.toml:1:1");
    bench.collo(&["schema", "host"]).exits(0).answers("price_per_hour");
}

/// The labels of the cells of `x`, in the order of the plan.
fn cells(bench: &Bench) -> Vec<String> {
    let planned = bench.collo(&["plan", "x", "--json"]).exits(0).json();
    planned["cells"].as_array().expect("cells").iter().filter_map(|c| c["cell"].as_str().map(str::to_string)).collect()
}

#[test]
fn zipped_axes_are_planned_step_by_step() {
    let bench = Bench::of("[[zip]]\nworkload = [\"tiny\", \"small\"]\nbatch_size = [32, \"2 * 64\"]\n");
    assert_eq!(cells(&bench), ["tiny solo b32", "small solo b128"]);
}

#[test]
fn every_combination_is_a_cell_but_for_those_excluded_and_brings_its_baseline() {
    let excluded = "[[exclude]]\nwhere = \"degree == 3 && workload == 'small'\"\n";
    let axes = "[axes]\nworkload = [\"tiny\", \"small\"]\nbatch_size = 32\ndegree = [2, 3]\n";
    let mut planned = vec!["tiny solo b32", "tiny×2 naive b32", "tiny×3 naive b32", "small solo b32", "small×2 naive b32"];
    assert_eq!(cells(&Bench::of(&format!("{axes}{excluded}"))), planned);
    planned.push("small×3 naive b32");
    assert_eq!(cells(&Bench::of(axes)), planned);
}

#[test]
fn a_group_beside_the_matrix_is_a_cell_and_in_another_order_the_same_cell() {
    let group = |workloads: [&str; 2]| {
        let members = workloads.map(|name| format!("{{ workload = \"{name}\", batch_size = 32 }}"));
        format!("[[group]]\nmembers = [{}]\n", members.join(", "))
    };
    let axes = "[axes]\nworkload = \"tiny\"\nbatch_size = 32\n";
    let bench = Bench::of(&format!("{axes}{}{}", group(["small", "tiny"]), group(["tiny", "small"])));
    assert_eq!(cells(&bench), ["tiny solo b32", "small solo b32", "small+tiny naive b32"]);
}

#[test]
fn the_order_is_shuffled_by_the_seed_that_is_stored() {
    let bench = Bench::of("repetitions = 2\n[axes]\nworkload = \"sleep\"\nseconds = [0.05, 0.06, 0.07]\ndegree = [1, 2]\n");
    let order = |seed: &str| bench.collo(&["plan", "x", "--set", seed, "--json"]).exits(0).json()["order"].clone();
    assert_eq!(order("seed=1"), order("seed=1"));
    assert_ne!(order("seed=1"), order("seed=2"));
    bench.run(&["--set", "seed=1", "--for", "1ms"]).exits(4);
    let plan = bench.campaign().manifest().plan.clone();
    let stored = plan.order.iter().map(|run| serde_json::json!([run.block, plan.cells[run.cell].cell, run.repetition]));
    assert_eq!((plan.seed, stored.collect::<serde_json::Value>()), (1, order("seed=1")));
}
