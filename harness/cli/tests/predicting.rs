//! A workload's memory is predicted before it is run: asked once, by what was fitted, with the way out where there is none.

use collo_store::text::line;
use serde_json::Value;

use crate::sim;
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
    let predict = |more: &[&str]| bench.collo(&[&["predict", "net", "--gpu", "a100-40gb"], more].concat()).exits(0);
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

#[test]
fn what_cannot_be_described_is_said_with_the_reason() {
    let bench = on(Bench::new());
    let refused = |script: &str| {
        bench.write("workloads/net/train.py", script);
        bench.collo(&["predict", "net", "--gpu", "a100-40gb"])
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
    bench.collo(&["predict", "net"]).exits(2).says("a foreign script");
    bench.collo(&["predict", "nett"]).exits(2).says("did you mean `net`?");
    assert!(!bench.at("cache/descriptions").exists(), "nothing wrong is kept");
}

#[test]
fn arguments_that_do_not_fit_have_a_way_out() {
    let bench = on(Bench::new());
    let refused = |arguments: &[&str]| bench.collo(arguments).exits(2);
    refused(&["predict", "net", "--set", "widht=3"]).says("did you mean `width`?");
    refused(&["predict", "net", "--batch", "8", "--set", "batch_size=8"]).says("given twice");
    refused(&["predict", "net", "--gpu", "a100-40g"]).says("a100-40gb");
    refused(&["predict", "net", "--predictor", "published-a10"]).says("did you mean `published-a100`?");
    refused(&["predictor", "evaluate", "published:all"]).says("published:estimators");
    refused(&["predictor", "evaluate", "none.csv"]).says("cannot be read");
    bench.write("mine.csv", "workload,memory,measured_by\nnet,1,x\n");
    refused(&["predictor", "evaluate", "mine.csv"]).says("has no column `memory_bytes`");
    assert_eq!(asked(&bench), 0, "nothing was described for it");
}

#[test]
fn measurements_are_fitted_and_the_fit_predicts() {
    let bench = on(Bench::new()).file("mine.csv", &table());
    bench
        .collo(&["predictor", "fit", "mine.csv", "--to", "predictors/mine.json"])
        .exits(0)
        .answers("600 MiB")
        .says("1 rows are not");
    let mine = bench.collo(&["predictor", "show", "mine", "--json"]).exits(0).json();
    let coefficient = |name: &str| mine["coefficients"][name].as_f64().expect("a number");
    assert!((coefficient("context_bytes") / 1_048_576.0 - 600.0).abs() < 0.5, "{mine}");
    assert!((coefficient("per_reserved_byte") - 1.1).abs() < 1e-3 && coefficient("per_workspace_byte") < 1e-3, "{mine}");
    assert_eq!((&mine["mark"], &mine["left_out"]["families"]), (&"own".into(), &4.into()));
    bench.collo(&["predictor", "list"]).exits(0).answers("mine").answers("published-a100");
    let said = bench.collo(&["predict", "net", "--predictor", "mine", "--gpu", "a100-40gb", "--json"]).exits(0).json();
    let mib = said["memory_bytes"].as_f64().expect("a number") / 1_048_576.0;
    assert!((mib - (600.0 + 1.1 * 8.0 * 104.0)).abs() < 1.0, "{mib}");
    assert_eq!(said["predictor"], "mine");
    let scores = bench.collo(&["predictor", "evaluate", "mine.csv", "--json"]).exits(0).json();
    let estimators = scores["measured"][0]["estimators"].as_array().expect("a list");
    assert_eq!(estimators[0]["estimator"], "collo, architecture left out");
    assert!(estimators[0]["median_relative_error"].as_f64() < Some(0.001), "{scores}");
    assert_eq!((estimators[0]["rows"].as_u64(), scores["left_out"][0]["rows"].as_u64()), (Some(12), Some(1)));
    bench.collo(&["predictor", "evaluate", "mine.csv"]).exits(0).answers("12 trainings, measured by nvidia-smi").answers("Horus");
}

#[test]
fn a_predictor_file_that_was_edited_wrongly_is_refused_and_the_others_are_listed() {
    let bench = on(Bench::new());
    let shipped = bench.collo(&["predictor", "show", "published-a100", "--json"]).exits(0).stdout;
    let edited = |name: &str, from: &str, to: &str| {
        assert!(shipped.contains(from), "{shipped}");
        bench.write(&format!("predictors/{name}.json"), &shipped.replacen(from, to, 1));
        bench.collo(&["predict", "net", "--gpu", "a100-40gb", "--predictor", name]).exits(2)
    };
    edited("newer", "\"schema\": 1", "\"schema\": 7").says("schema 7");
    edited("other", "\"memory\"", "\"power\"").says("predicts `power`");
    edited("simulated", "\"mark\": \"published\"", "\"mark\": \"simulated\"").says("was fitted on simulated runs");
    bench.collo(&["predictor", "list"]).exits(0).answers("published-a100").says("schema 7").says("`power`");
}

#[test]
fn what_was_fitted_on_real_cards_says_nothing_about_a_simulated_one() {
    let bench = on(sim::bench("a100-40gb"));
    let refused = bench.collo(&["predict", "net"]).exits(2);
    let refused = refused.says("was fitted on real runs, but this GPU is simulated");
    assert!(line(&refused.stderr).contains("--gpu a100-40gb"));
    bench.collo(&["predict", "net", "--gpu", "a100-40gb"]).exits(0);
}
