//! What an experiment is made of besides its own file: `--set`, included files, the machine's `collo.toml`, and axes that step
//! together.

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

#[test]
fn zipped_axes_are_planned_step_by_step() {
    let bench = Bench::of("[[zip]]\nworkload = [\"tiny\", \"small\"]\nbatch_size = [32, \"2 * 64\"]\n");
    let planned = bench.collo(&["plan", "x", "--json"]).exits(0).json();
    let labels: Vec<&str> = planned["cells"].as_array().expect("cells").iter().filter_map(|c| c["cell"].as_str()).collect();
    assert_eq!(labels, ["tiny solo b32", "small solo b128"]);
}
