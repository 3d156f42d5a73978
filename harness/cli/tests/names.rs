//! What campaigns, cells and experiments are called on the command line.

use crate::support::Bench;

const SHORT: &str = "epochs = 2\n[axes]\nworkload = \"sleep\"\nseconds = 0.05\ndegree = [1, 2, 3]";

#[test]
fn an_experiment_names_its_newest_campaign_and_a_cell_needs_no_campaign() {
    let bench = Bench::of(SHORT);
    bench.run(&[]).exits(0);
    let id = bench.campaign().manifest().id.clone();
    bench.collo(&["show", "x"]).exits(0).answers("sleep×2 naive");
    bench.collo(&["show", "x/last"]).exits(0).answers("sleep×2 naive");
    bench.collo(&["report", "x", "-q"]).exits(0);
    bench.collo(&["verify", "x"]).exits(0).answers("usable      ").answers("of 3 cells valid");
    bench.collo(&["status", "x"]).exits(0);
    for arguments in [&["show", "x", "sleepx2"][..], &["show", "sleepx2"], &["show", "SLEEP×2 naive"]] {
        bench
            .collo(arguments)
            .exits(0)
            .answers("sleep×2 naive")
            .answers(&format!("of {}", id.rsplit('-').next().expect("a part")));
    }
    assert_eq!(bench.collo(&["show", "sleepx2", "--json"]).exits(0).json()["cell"], "sleep×2 naive seconds=0.05");
    bench.collo(&["show", "last", "sleepx2_naive~0000"]).exits(2).says("has no cell `sleepx2_naive~0000`");
    bench
        .collo(&["show", "sleep"])
        .exits(2)
        .says("`sleep` begins 3 cells: `sleep solo seconds=0.05`, `sleep×2 naive seconds=0.05`, ");
    bench.collo(&["show", "zzz"]).exits(2).says("no campaign `zzz`; the newest is ");
}

#[test]
fn what_a_tag_selects_is_not_stopped_by_a_file_with_errors_or_by_what_cannot_run_here() {
    let short = format!("tags = [\"t\"]\n{SHORT}");
    let bench = Bench::new()
        .experiment("broken", "tags = [\"t\"]\nrepetition = 3")
        .experiment("gpu", &short.replace("naive", "mps").replace("[axes]", "[axes]\nsharing = \"mps\""))
        .experiment("y", &short);
    let plan = bench.collo(&["plan", "--tag", "t"]).exits(3).answers("y on cpu");
    plan.says("did you mean `repetitions`?").says("warning: `experiments/broken.toml` is left out");
    let run = bench.collo(&["run", "--tag", "t", "--no-report"]).exits(3);
    run.says("`experiments/broken.toml` is left out").says("`gpu` is left out");
    assert_eq!(bench.campaign().manifest().experiment, "y");
    bench.collo(&["run", "gpu"]).exits(3);
    // A tag is a word, and words have `&&`, `||`, `!` and brackets.
    for (tag, listed) in [("t && !(u || v)", 2), ("t && u", 0), ("u || t", 2), ("!t", 0)] {
        let found = bench.collo(&["list", "experiments", "--tag", tag, "--json"]).exits(0).json();
        assert_eq!(found["experiments"].as_array().map(Vec::len), Some(listed), "{tag}");
    }
    bench.collo(&["list", "experiments", "--tag", "t && u"]).exits(0).says("no experiment has the tag `t && u`");
    // Campaigns have the tags of their experiments.
    for (tag, listed) in [("t", 1), ("t && !u", 1), ("!t", 0)] {
        let found = bench.collo(&["list", "--tag", tag, "--json"]).exits(0).json();
        assert_eq!(found["campaigns"].as_array().map(Vec::len), Some(listed), "{tag}");
    }
    bench.collo(&["list", "--tag", "!t"]).exits(0).says("no stored campaign has the tag `!t`");
    bench.collo(&["list", "--tag", "t & u"]).exits(2).says("unexpected `&`");
    bench.collo(&["plan", "--tag", "t && u"]).exits(2).says("no experiment has the tag `t && u`");
    bench.collo(&["plan", "--tag", "t & u"]).exits(2).says("unexpected `&` at column 3 of `--tag`");
    bench.collo(&["plan", "experiments/broken.toml"]).exits(2).says("did you mean `repetitions`?");
    // One that is left out is in the exit code, one with other tags is nobody's business, and what is no TOML may have any.
    let bench = Bench::new().experiment("broken", "tags = [\"t\"]\nrepetition = 3").experiment("y", &short);
    bench.collo(&["plan", "--tag", "t"]).exits(2).answers("y on cpu");
    bench.write("experiments/broken.toml", "tags = [\"other\"]\nrepetition = 3");
    assert!(!bench.collo(&["plan", "--tag", "t"]).exits(0).stderr.contains("broken"));
    bench.write("experiments/broken.toml", "tags = [");
    bench.collo(&["plan", "--tag", "t"]).exits(2).answers("y on cpu").says("is left out");
}

#[test]
fn a_gpu_model_that_is_not_known_is_said_to_be_unknown_whether_or_not_there_is_a_gpu() {
    let bench = Bench::new().file("experiments/g.toml", "device = \"gpu\"\n[axes]\nworkload = \"small\"");
    fs_err::create_dir(bench.at("mig-profiles")).expect("a folder");
    for name in ["a100-40gb", "a100-80gb"] {
        let text =
            fs_err::read_to_string(crate::support::checkout().join(format!("mig-profiles/{name}.toml"))).expect("it is there");
        bench.write(&format!("mig-profiles/{name}.toml"), &text);
    }
    for verb in ["plan", "run"] {
        let answer = bench.collo(&[verb, "g", "--gpu", "a100"]).exits(2).says("unknown GPU `a100`");
        answer.says("did you mean `a100-40gb` or `a100-80gb`? All: `collo list gpus`");
        bench.collo(&[verb, "g", "--gpu", "rtx4090"]).exits(2).says("unknown GPU `rtx4090`");
    }
}

#[test]
fn a_folder_that_is_none_is_said_to_be_none() {
    let bench = Bench::new();
    bench.collo(&["-C", "nowhere", "list"]).exits(2).says("error: `-C nowhere`: it does not exist");
    bench.collo(&["-C", "workloads/collo.py", "list"]).exits(2).says("it is not a folder");
}
