//! A workload's memory is predicted before it is run: asked once, by what was fitted, with the way out where there is none.

use collo_text::quoting::line;
use serde_json::Value;

use crate::sim::{self, Machine, short};
use crate::support::{Bench, checkout};

/// A script that describes itself. Its allocations are whole segments, so that what is reserved is known: `width · (40 + 2 · batch)` MiB.
const DESCRIBES: &str = "import argparse, json, os, sys
p = argparse.ArgumentParser()
for name in ('--width', '--batch-size'):
    p.add_argument(name)
a = p.parse_args()
if os.environ.get('COLLO_DESCRIBE') != '1':
    sys.exit('error: it was run')
with open(os.environ['ASKED'], 'a') as asked:
    asked.write(a.width + '\\n')
mib, width = 1 << 20, int(a.width)
none = {'count': 0, 'flops_per_item': 0, 'bytes_per_item': 0, 'fixed_bytes': 0}
with open(os.environ['COLLO_DESCRIPTION'], 'w') as file:
    json.dump({
        'schema': 1, 'torch': '2.14.1', 'traced_batch': 13, 'precision': 'fp32', 'optimizer': 'Adam', 'approximate': [],
        'parameters': 5 * mib * width, 'parameter_bytes': 20 * mib * width, 'trainable_parameter_bytes': 20 * mib * width,
        'buffer_bytes': 0, 'largest_layer_parameters': 5 * mib * width, 'kinds': ['weights', 'gradients', 'saved'],
        'allocations': [[20 * mib * width, 0, 0], [20 * mib * width, 0, 1], [2 * mib * width, 1, 2]],
        'events': [1, 3, 2, -3, 3, -3, -2], 'steps': [1, 4, 7], 'workspace': {'item_bytes': mib, 'fixed_bytes': 0},
        'operations': {kind: none for kind in ('convolution', 'matmul', 'normalisation', 'activation', 'other')},
        'kernels_per_step': 12, 'forward_flops_per_item': 4.1e9,
        'features': {'convolutions': 0, 'linear': 1, 'activations': 0, 'other': 0, 'model_mb': 21.0},
        'layers': [['linear', 10, 5]], 'horus_activations': 1000, 'fake_tensor': [[mib, mib]],
    }, file)
";

const NET: &str = r#"
command = ["python", "train.py", "{settings}"]
environment = "system"
[settings]
batch_size = 32
width = 8
"#;

fn on(bench: Bench) -> Bench {
    let bench = bench.file("workloads/net/workload.toml", NET).file("workloads/net/train.py", DESCRIBES);
    let card = fs_err::read_to_string(checkout().join("mig-profiles/a100-40gb.toml")).expect("there");
    let bench = bench.file("mig-profiles/a100-40gb.toml", &card);
    let (cache, asked) = (bench.at("cache"), bench.at("asked"));
    let text = |path: std::path::PathBuf| path.to_str().expect("text").to_string();
    bench.env("COLLO_CACHE", &text(cache)).env("ASKED", &text(asked))
}

/// How often a description was asked for.
fn asked(bench: &Bench) -> usize {
    fs_err::read_to_string(bench.at("asked")).map_or(0, |text| text.lines().count())
}

/// A table of measurements that follow the formula: 600 MiB, and 1.1 times what is reserved.
fn table() -> String {
    let mut text = "workload,settings,family,batch_size,memory_bytes,measured_by,state\n".to_string();
    for width in [8_u64, 16, 32, 64] {
        for batch in [16_u64, 32, 64] {
            let bytes = (600 + width * (40 + 2 * batch) * 11 / 10) << 20;
            text += &format!("net,width={width},of-{width},{batch},{bytes},nvidia-smi,\n");
        }
    }
    text + "net,width=64,of-64,512,41000000000,nvidia-smi,out-of-memory\n"
}

#[test]
fn a_workload_is_predicted_without_being_run_and_asked_only_when_something_changed() {
    let bench = on(Bench::new());
    let predict = |more: &[&str]| bench.collo(&[&["predict", "net", "--describe", "--gpu", "a100-40gb"], more].concat()).exits(0);
    let said = predict(&["--peers"]);
    let said = said.answers("net at batch size 32: predicted, not measured").answers("upper bound").answers("largest batch");
    said.answers("under naive sharing").answers("Horus").says("predicted by published-a100").says("published measurements");
    assert_eq!(asked(&bench), 1);
    // One description serves every batch size.
    let small = predict(&["--batch", "8", "--json"]).json();
    let large = predict(&["--set", "batch_size=64", "--json"]).json();
    let part = |answer: &Value, kind: &str| {
        let parts = answer["parts"].as_array().expect("a list").iter();
        parts.filter(|p| p["kind"] == kind).filter_map(|p| p["bytes"].as_f64()).sum::<f64>() / 1_048_576.0
    };
    assert_eq!((part(&small, "saved"), part(&large, "saved")), (8.0 * 2.0 * 8.0, 8.0 * 2.0 * 64.0));
    assert_eq!(part(&small, "weights"), 160.0);
    assert!(small["upper_bytes"].as_f64() > small["memory_bytes"].as_f64());
    assert!(small["fits"]["largest_degree_naive"].as_u64() > large["fits"]["largest_degree_naive"].as_u64());
    let sum: f64 = small["parts"].as_array().expect("a list").iter().filter_map(|p| p["bytes"].as_f64()).sum();
    assert!((sum - small["memory_bytes"].as_f64().expect("one")).abs() < 1.0, "the parts are the whole");
    assert_eq!(asked(&bench), 1, "the batch size is in no description");
    predict(&["--set", "width=16"]);
    assert_eq!(asked(&bench), 2);
    predict(&["--fresh"]);
    assert_eq!(asked(&bench), 3);
    bench.write("workloads/net/train.py", &format!("{DESCRIBES}# edited\n"));
    predict(&[]);
    predict(&[]);
    assert_eq!(asked(&bench), 4, "once, after the script was edited");
    assert_eq!(bench.campaigns(), 0);
    assert_eq!(bench.left(), []);
}

/// A script whose first step frees what no later one needs.
#[test]
fn of_a_cache_that_is_kept_nothing_is_given_back() {
    let larger = DESCRIBES
        .replace("a = p.parse_args()", "a = p.parse_known_args()[0]")
        .replace("[2 * mib * width, 1, 2]]", "[2 * mib * width, 1, 2], [512 * mib * width, 0, 0]]")
        .replace("[1, 3, 2, -3, 3, -3, -2], 'steps': [1, 4, 7]", "[1, 3, 2, 4, -4, -3, 3, -3, -2], 'steps': [1, 6, 9]");
    let bench = on(Bench::new()).file("workloads/net/train.py", &larger);
    bench.write("workloads/net/workload.toml", &format!("{NET}keep_cache = false\n"));
    let predict = |more: &[&str]| bench.collo(&[&["predict", "net", "--describe", "--gpu", "a100-40gb"], more].concat()).exits(0);
    let (words, kept) = ("once the cache of the warm-up was given back", ["--set", "keep_cache=true"]);
    predict(&[]).answers(words);
    let said = predict(&kept).stdout;
    assert!(!said.contains(words), "{said}");
    let said = predict(&[&kept[..], &["--json"]].concat()).json();
    assert_eq!(
        (said["training_bytes"].as_f64(), said["warm_up_bytes"].as_f64()),
        (said["memory_bytes"].as_f64(), said["memory_bytes"].as_f64())
    );
}

#[test]
fn what_cannot_be_described_is_said_with_the_reason() {
    let bench = on(Bench::new());
    let refused = |script: &str| {
        bench.write("workloads/net/train.py", script);
        bench.collo(&["predict", "net", "--describe", "--gpu", "a100-40gb"])
    };
    refused("import sys; sys.exit('error: it reads its data first\\nhint: give it some')")
        .exits(2)
        .says("`net` cannot be described")
        .says("it reads its data first")
        .says("hint: give it some");
    refused("pass").exits(2).says("it ended without a training step").says("collo_torch.warm_up");
    refused("import os; open(os.environ['COLLO_DESCRIPTION'], 'w').write('{\"schema\": 99}')").exits(2).says("schema 99");
    refused("import os; open(os.environ['COLLO_DESCRIPTION'], 'w').write('NaN')").exits(2).says("not a description");
    bench.write("workloads/net/workload.toml", &format!("{NET}[epochs]\npattern = 'epoch (?P<epoch>\\d+)'\n"));
    bench.collo(&["predict", "net", "--describe"]).exits(2).says("a foreign script");
    bench.collo(&["predict", "nett"]).exits(2).says("did you mean `net`?");
    assert!(!bench.at("cache/descriptions").exists(), "nothing wrong is kept");
}

#[test]
fn arguments_that_do_not_fit_have_a_way_out() {
    let bench = on(Bench::new());
    let refused = |arguments: &[&str]| bench.collo(arguments).exits(2);
    refused(&["predict", "net", "--describe", "--set", "widht=3"]).says("did you mean `width`?");
    refused(&["predict", "net", "--describe", "--batch", "8", "--set", "batch_size=8"]).says("given twice");
    refused(&["predict", "net", "--describe", "--gpu", "a100-40g"]).says("a100-40gb");
    refused(&["predict", "net", "--describe", "--predictor", "published-a10"]).says("did you mean `published-a100`?");
    refused(&["predict", "evaluate", "--describe", "published:all"]).says("published:estimators");
    refused(&["predict", "evaluate", "--describe", "none.csv"]).says("cannot be read");
    bench.write("mine.csv", "workload,memory,measured_by\nnet,1,x\n");
    refused(&["predict", "evaluate", "--describe", "mine.csv"]).says("has no column `memory_bytes`");
    assert_eq!(asked(&bench), 0, "nothing was described for it");
}

#[test]
fn measurements_are_fitted_and_the_fit_predicts() {
    let bench = on(Bench::new()).file("mine.csv", &table());
    bench
        .collo(&["predict", "fit", "--describe", "mine.csv", "--to", "predictors/mine.json"])
        .exits(0)
        .answers("600 MiB")
        .says("rows that are not compared: 1;");
    let mine = bench.collo(&["predict", "show", "mine", "--json"]).exits(0).json();
    let coefficient = |name: &str| mine["law"]["coefficients"][name].as_f64().expect("a number");
    assert!((coefficient("context_bytes") / 1_048_576.0 - 600.0).abs() < 0.5, "{mine}");
    assert!((coefficient("per_reserved_byte") - 1.1).abs() < 1e-3 && coefficient("per_workspace_byte") < 1e-3, "{mine}");
    assert_eq!((&mine["mark"], &mine["law"]["left_out"]["families"]), (&"table".into(), &4.into()));
    bench.collo(&["predict", "list"]).exits(0).answers("mine").answers("published-a100");
    let said =
        bench.collo(&["predict", "net", "--describe", "--predictor", "mine", "--gpu", "a100-40gb", "--json"]).exits(0).json();
    let mib = said["memory_bytes"].as_f64().expect("a number") / 1_048_576.0;
    assert!((mib - (600.0 + 1.1 * 8.0 * 104.0)).abs() < 1.0, "{mib}");
    assert_eq!(said["predictor"], "mine");
    let scores = bench.collo(&["predict", "evaluate", "--describe", "mine.csv", "--json"]).exits(0).json();
    let estimators = scores["measured"][0]["estimators"].as_array().expect("a list");
    assert_eq!(estimators[0]["estimator"], "collo, architecture left out");
    assert!(estimators[0]["median_relative_error"].as_f64() < Some(0.001), "{scores}");
    assert_eq!((estimators[0]["rows"].as_u64(), scores["left_out"][0]["rows"].as_u64()), (Some(12), Some(1)));
    bench
        .collo(&["predict", "evaluate", "--describe", "mine.csv"])
        .exits(0)
        .answers("12 trainings, measured by nvidia-smi")
        .answers("Horus");
}

#[test]
fn estimators_are_judged_by_bins_where_asked_beside_the_commonest() {
    let bench = on(Bench::new()).file("mine.csv", &table());
    let evaluate = |more: &[&str]| bench.collo(&[&["predict", "evaluate", "--describe", "mine.csv"], more].concat());
    let said = evaluate(&["--bins", "1000", "--bins", "8000", "--json"]).exits(0).json();
    let bins = said["measured"][0]["bins"].as_array().expect("a list").clone();
    assert_eq!(bins.iter().map(|b| b["bin_mib"].as_u64()).collect::<Vec<_>>(), [Some(1000), Some(8000)]);
    let (first, commonest) = (&bins[1]["estimators"][0], bins[1]["commonest"].as_f64().expect("a share"));
    assert_eq!((&first["estimator"], first["rows"].as_u64()), (&"collo, architecture left out".into(), Some(12)));
    assert_eq!((first["right"].as_f64(), first["below"].as_f64()), (Some(1.0), Some(0.0)), "{first}");
    assert!((commonest - 11.0 / 12.0).abs() < 1e-9, "eleven of the twelve need less than 8000 MiB: {commonest}");
    let said = evaluate(&["--bins", "1000"]).exits(0);
    said.answers("in bins of 1000 MiB").answers("always the commonest bin, from 1000 MiB");
    assert!(!evaluate(&[]).exits(0).stdout.contains("in bins of"));
    evaluate(&["--bins", "0"]).exits(2);
    evaluate(&["--scaled"]).exits(2).says("--memnet");
    assert_eq!(asked(&bench), 4, "each was described once");
}

#[test]
fn many_are_described_by_one_process_and_one_that_cannot_be_leaves_the_others() {
    let fails = DESCRIBES.replace("mib, width =", "if a.width == '64':\n    sys.exit('error: too wide')\nmib, width =");
    let counts = fails.replace(
        "a = p.parse_args()",
        "a = p.parse_args()\nopen(os.environ['ASKED'] + '.parents', 'a').write(f'{os.getppid()}\\n')",
    );
    let bench = on(Bench::new()).file("mine.csv", &table()).file("workloads/net/train.py", &counts);
    let said = bench.collo(&["predict", "evaluate", "--describe", "mine.csv", "--json"]).exits(0);
    let said = said.says("`net` cannot be described").says("too wide").says("the rows of `net` are left out").json();
    assert_eq!(said["measured"][0]["estimators"][0]["rows"], 9);
    let parents = fs_err::read_to_string(bench.at("asked.parents")).expect("written");
    let mut parents: Vec<&str> = parents.lines().collect();
    assert_eq!(parents.len(), 4);
    parents.dedup();
    assert_eq!(parents.len(), 1, "one process has asked them all");
    bench.collo(&["predict", "evaluate", "--describe", "mine.csv"]).exits(0);
    assert_eq!(asked(&bench), 5, "three are kept, one is asked again");
    assert_eq!(bench.left(), []);
}

#[test]
fn a_predictor_file_that_was_edited_wrongly_is_refused_and_the_others_are_listed() {
    let bench = on(Bench::new());
    let shipped = bench.collo(&["predict", "show", "published-a100", "--json"]).exits(0).stdout;
    let edited = |name: &str, from: &str, to: &str| {
        assert!(shipped.contains(from), "{shipped}");
        bench.write(&format!("predictors/{name}.json"), &shipped.replacen(from, to, 1));
        bench.collo(&["predict", "net", "--describe", "--gpu", "a100-40gb", "--predictor", name]).exits(2)
    };
    edited("newer", "\"schema\": 1", "\"schema\": 7").says("schema 7");
    edited("other", "\"memory\"", "\"power\"").says("predicts `power`");
    edited("simulated", "\"mark\": \"published\"", "\"mark\": \"simulated\"").says("was fitted on simulated runs");
    bench.collo(&["predict", "list"]).exits(0).answers("published-a100").says("schema 7").says("`power`");
}

#[test]
fn what_a_predictor_says_of_itself_stays_in_its_line() {
    let bench = on(Bench::new());
    let mut file = bench.collo(&["predict", "show", "published-a100", "--json"]).exits(0).json();
    file["source"] = "x\nerror: FORGED".into();
    file["name"] = "mine".into();
    bench.write("predictors/mine.json", &file.to_string());
    let shown = bench.collo(&["predict", "show", "mine"]).exits(0).answers("x\\x0aerror: FORGED");
    assert!(!shown.stdout.contains("\nerror: FORGED"), "{}", shown.stdout);
}

#[test]
fn a_workload_that_is_called_like_a_verb_is_predicted_by_a_path() {
    let bench = on(Bench::new()).file("workloads/list/workload.toml", NET).file("workloads/list/train.py", DESCRIBES);
    let said = bench.collo(&["predict", "list"]).exits(0).answers("published-a100");
    said.says("`list` is a verb here").says("`collo predict ./list`");
    bench
        .collo(&["predict", "./list", "--describe", "--gpu", "a100-40gb"])
        .exits(0)
        .answers("list at batch size 32: predicted, not measured");
    // After an option no verb is expected.
    bench
        .collo(&["predict", "--describe", "--gpu", "a100-40gb", "list"])
        .exits(0)
        .answers("list at batch size 32: predicted, not measured");
    bench.collo(&["predict", "--gpu", "a100-40gb", "show"]).exits(2).says("the verb stands before every option");
    bench.collo(&["predict"]).exits(2).says("WORKLOAD|EXPERIMENT");
}

#[test]
fn what_was_fitted_on_real_cards_says_nothing_about_a_simulated_one() {
    let bench = on(sim::bench("a100-40gb"));
    let refused = bench.collo(&["predict", "net", "--describe"]).exits(2);
    let refused = refused.says("was fitted on real runs, but this GPU is simulated");
    assert!(line(&refused.stderr).contains("--gpu a100-40gb"));
    bench.collo(&["predict", "net", "--describe", "--gpu", "a100-40gb"]).exits(0);
}

/// The same script on a CPU: it also trains, and then holds what it describes.
fn trains() -> String {
    let instead = "if os.environ.get('COLLO_DESCRIBE') != '1':
    import collo, time
    member = collo.connect()
    member.hello(device='cpu')
    held = b'\\1' * (int(a.width) * (40 + 2 * int(a.batch_size)) << 20)
    member.wait_for_warm_up()
    member.ready()
    for epoch in member.epochs(2):
        for _ in epoch.batches(range(30)):
            time.sleep(0.01)
        epoch.finish(items=30)
    sys.exit()
";
    DESCRIBES.replacen("if os.environ.get('COLLO_DESCRIBE') != '1':\n    sys.exit('error: it was run')\n", instead, 1)
}

const WIDTHS: &str = "epochs = 2\n[axes]\nworkload = \"net\"\nbatch_size = 16\nwidth = [1, 2, 3]\ndegree = [1, 2]\n";

#[test]
fn own_campaigns_on_a_cpu_give_its_own_constant() {
    let bench = on(Bench::of(WIDTHS)).file("workloads/net/train.py", &trains());
    bench.run(&[]).exits(0);
    let said = bench.collo(&["predict", "fit", "x", "--to", "predictors/here.json"]).exits(0);
    let said = said.answers("fitted on own measurements").answers("a byte for each byte: not fitted");
    said.says("rows that are not fitted: ").says("they are cpu, PSS in company");
    let here = bench.collo(&["predict", "show", "here", "--json"]).exits(0).json();
    assert_eq!(
        (&here["conditions"]["device"], &here["mark"], &here["law"]["factors"]),
        (&"cpu".into(), &"own".into(), &"one".into())
    );
    // Of Python itself, which holds nothing else.
    let mib = here["law"]["coefficients"]["context_bytes"].as_f64().expect("a number") / 1_048_576.0;
    assert!((1.0..60.0).contains(&mib), "{here}");
    // Of the three members alone, some of which ran before and after the groups.
    assert!(here["law"]["left_out"]["rows"].as_u64() >= Some(3), "{here}");
    assert_eq!(here["law"]["left_out"]["families"], 1);
    let source = here["source"].as_str().expect("a text");
    assert!(
        source.starts_with("campaign x/") && source.contains("(sha256 ") && source.contains(" rows, measured by cpu, PSS"),
        "{source}"
    );
    let scores = bench.collo(&["predict", "evaluate", "x", "--json"]).exits(0).json();
    let alone = scores["measured"].as_array().expect("a list").iter().find(|part| part["measured_by"] == "cpu, PSS");
    let estimator = &alone.expect("there")["estimators"][0];
    assert_eq!(estimator["estimator"], "collo, context alone fitted, architecture left out");
    assert!(estimator["worst_relative_error"].as_f64() < Some(0.2), "{scores}");
    let refused = bench.collo(&["predict", "net", "--gpu", "a100-40gb", "--predictor", "here"]).exits(2);
    refused.says("is of the memory of processes on a CPU, but this is a GPU");
    // The data set of the campaign is the same measurements.
    bench.collo(&["report", "x", "--format", "csv", "--table", "dataset", "--to", "rows.csv"]).exits(0);
    bench.collo(&["report", "x", "--format", "parquet", "--table", "dataset", "--to", "rows.parquet"]).exits(0);
    for file in ["rows.csv", "rows.parquet"] {
        let again = bench.collo(&["predict", "evaluate", file, "--json"]).exits(0).json();
        assert_eq!(again["measured"], scores["measured"], "{file}");
    }
}

#[test]
fn a_campaign_that_measured_nothing_has_a_way_out() {
    let bench = on(Bench::of("[axes]\nworkload = \"net\"\n"));
    bench.run(&[]);
    let refused = bench.collo(&["predict", "fit", "x", "--to", "mine.json"]).exits(2);
    refused.says("has no completed run, so nothing was measured").says("`collo run x`");
    assert!(!bench.at("mine.json").exists());
    bench.collo(&["predict", "evaluate", "nobody"]).exits(2).says("nobody");
    bench.collo(&["predict", "evaluate", "x", "published:estimators"]).exits(2).says("mixed with nothing");
}

/// A data set as a campaign on a device exports it: the formula with 600 MiB and a factor of 1.1.
fn exported(device: &str, simulated: bool, widths: &[u64]) -> String {
    let mut text = "experiment,campaign,device,device_kind,device_architecture,torch,simulated,cell,sharing,degree,repetition,\
        outcome,validity,workload,batch_size,settings,memory_bytes,memory_kind\n"
        .to_string();
    for width in widths {
        for batch in [16_u64, 32, 64] {
            let bytes = (600 + width * (40 + 2 * batch) * 11 / 10) << 20;
            text += &format!("x,1,{device},gpu,ampere,2.14.1,{simulated},net{width} b{batch},solo,1,1,completed,valid,");
            text += &format!("net,{batch},\"{{\"\"width\"\":{width}}}\",{bytes},gpu_memory\n");
        }
    }
    text + &format!("x,1,{device},gpu,ampere,2.14.1,{simulated},net b512,solo,1,1,out_of_memory,discarded,net,512,{{}},,\n")
}

#[test]
fn a_predictor_of_a_simulated_card_serves_simulated_cards_alone() {
    let a100 = "NVIDIA A100-SXM4-40GB";
    let bench = on(Bench::new()).file("sim.csv", &exported(a100, true, &[8, 16]));
    let fit = |bench: &Bench, files: &[&str]| {
        bench.collo(&[&["predict", "fit", "--describe"], files, &["--to", "predictors/mine.json"]].concat())
    };
    let said = fit(&bench, &["sim.csv"]).exits(0);
    said.answers("fitted on simulated measurements")
        .says("only the context is fitted")
        .says("rows that are not compared: 1; each ran out");
    bench.collo(&["predict", "list"]).exits(0).answers("simulated measurements").answers(a100);
    let refused = bench.collo(&["predict", "net", "--describe", "--gpu", "a100-40gb", "--predictor", "mine"]).exits(2);
    refused.says("was fitted on simulated runs");
    let file = fs_err::read_to_string(bench.at("predictors/mine.json")).expect("written");
    on(sim::bench("a100-40gb"))
        .file("predictors/mine.json", &file)
        .collo(&["predict", "net", "--describe", "--predictor", "mine"])
        .exits(0);
    // A real card of the same name is another device, and so is another card.
    bench.write("real.csv", &exported(a100, false, &[8, 16]));
    bench.write("a30.csv", &exported("NVIDIA A30", false, &[8, 16]));
    for other in ["sim.csv", "a30.csv"] {
        let refused = fit(&bench, &["real.csv", other]).exits(2);
        refused.says("a fit mixes no sources").says("`--measured-by");
    }
    // With few architectures the factors are the published ones; the context is the card's own.
    fit(&bench, &["real.csv"]).exits(0).answers("as published").says("only the context is fitted: 1 architectures are too few");
    let mine = bench.collo(&["predict", "show", "mine", "--json"]).exits(0).json();
    assert_eq!((&mine["law"]["factors"], &mine["conditions"]["gpu"]), (&"published".into(), &a100.into()));
    assert_eq!((&mine["conditions"]["torch"], &mine["conditions"]["architecture"]), (&"2.14.1".into(), &"ampere".into()));
}

#[test]
fn a_simulated_campaign_makes_the_predictor_of_simulated_cards() {
    let toml = "epochs = 2\n[axes]\nworkload = [\"small\", \"medium\"]\ndegree = [1, 2]\nsharing = [\"naive\", \"mps\"]\n";
    // Long enough for a reading of each member.
    let machine = Machine::new("a100-40gb", toml).env("COLLO_SIM_EPOCH_S", "0.8");
    machine.run(&[]).exits(0);
    let said = machine.collo(&["predict", "fit", "x", "--to", "predictors/mine.json"]).exits(0);
    said.answers("fitted on simulated measurements").says("of MPS clients, whose members need less than alone");
    let mine = machine.collo(&["predict", "show", "mine", "--json"]).exits(0).json();
    assert_eq!((&mine["mark"], &mine["conditions"]["architecture"]), (&"simulated".into(), &"Ampere".into()));
    assert!(mine["law"]["left_out"]["worst_relative_error"].as_f64() < Some(0.2), "{mine}");
    // It is the nearest to the card and the torch that it was fitted on.
    let plain = machine.collo(&["predict", "small"]).exits(0).says("predicted by mine");
    assert!(!plain.stderr.contains("times as wide"), "{}", plain.stderr);
    let width = |machine: &Machine| {
        let said = machine.collo(&["predict", "small", "--json"]).exits(0).json();
        let number = |key: &str| said[key].as_f64().expect("a number");
        ((number("high_bytes") / number("memory_bytes")).ln(), number("widened"))
    };
    let own = mine["law"]["width"]["above_log"].as_f64().expect("a number");
    let (log, widened) = width(&machine);
    assert!((log - own).abs() < 1e-9 && widened == 1.0, "{log} is {own}");
    let at = machine.bench.at("predictors/mine.json");
    let torch = mine["conditions"]["torch"].as_str().expect("known");
    let older = fs_err::read_to_string(&at).expect("written").replace(torch, "2.4.0");
    fs_err::write(&at, older).expect("written");
    let said = machine.collo(&["predict", "small"]).exits(0);
    let said = line(&said.stderr).into_owned();
    let why =
        "its intervals are 1.5 times as wide, as logarithms: it was fitted on this device, with another torch or one unknown";
    assert!(said.contains(why), "{said}");
    let (log, widened) = width(&machine);
    assert!((log - 1.5 * own).abs() < 1e-9 && widened == 1.5, "{log} is 1.5 times {own}");
    // As the plan has it.
    machine.bench.write("experiments/y.toml", &short("[axes]\nworkload = \"small\"\nbatch_size = 64\ndegree = 1\n"));
    let plan = machine.collo(&["plan", "y"]).exits(0);
    assert!(
        line(&plan.stdout).contains("simulated measurements of NVIDIA A100-SXM4-40GB, intervals 1.5 times as wide"),
        "{}",
        plan.stdout
    );
}

/// Several hundred rows with what such tables have: spikes that nobody marked, and runs that ended at the card's size.
#[test]
fn a_large_table_with_hidden_spikes_and_ends_at_the_cards_size_is_compared_and_doubted() {
    let mut text = "workload,settings,family,batch_size,memory_bytes,measured_by\n".to_string();
    let mut number = 0_u64;
    for width in 4..64_u64 {
        for batch in [16_u64, 32, 64, 128, 256] {
            number += 1;
            // These do not fit the card, by far.
            let batch = if batch == 256 && width >= 60 { 1024 } else { batch };
            // Noise of a percent either way, the same every time.
            let noise = 990 + number * 7919 % 21;
            let times = if number.is_multiple_of(33) { 6 } else { 1 };
            let mib = (600 + width * (40 + 2 * batch) * 11 / 10) * times * noise / 1000;
            text += &format!("net,width={width},of-{width},{batch},{},nvidia-smi\n", mib.min(39_500) << 20);
        }
    }
    let bench = on(Bench::new()).file("mine.csv", &text);
    let said = bench
        .collo(&["predict", "evaluate", "--describe", "mine.csv", "--json"])
        .exits(0)
        .says("far below what their trainings need");
    let scores = said.json();
    let own = &scores["measured"][0]["estimators"][0];
    assert_eq!((own["rows"].as_u64(), own["estimator"].as_str()), (Some(300), Some("collo, architecture left out")));
    assert!(own["median_relative_error"].as_f64() < Some(0.01) && own["p90_relative_error"].as_f64() < Some(0.08), "{own}");
    assert!(own["spikes"].as_u64() >= Some(5), "{own}");
    let covered = own["bounded"]["covered"].as_f64().expect("a number") / 300.0;
    assert!((0.92..=0.97).contains(&covered), "{covered}");
}
