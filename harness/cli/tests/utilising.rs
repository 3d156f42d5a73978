//! How busy a workload keeps a card is predicted before it is run: fitted on tables of trainings alone, judged with families left out.

use serde_json::Value;

use crate::support::{Bench, checkout};

/// A script that describes itself: an operation moves `width · batch` MiB of activations.
const DESCRIBES: &str = "import argparse, json, os, sys
p = argparse.ArgumentParser()
for name in ('--width', '--batch-size'):
    p.add_argument(name)
a = p.parse_args()
if os.environ.get('COLLO_DESCRIBE') != '1':
    sys.exit('error: it was run')
mib, width = 1 << 20, int(a.width)
none = {'count': 0, 'flops_per_item': 0, 'bytes_per_item': 0, 'fixed_bytes': 0}
of = {kind: none for kind in ('convolution', 'matmul', 'normalisation', 'activation', 'other')}
of['other'] = {'count': 100, 'flops_per_item': 0, 'bytes_per_item': 100 * mib * width, 'fixed_bytes': 20 * mib}
with open(os.environ['COLLO_DESCRIPTION'], 'w') as file:
    json.dump({
        'schema': 1, 'torch': '2.14.1', 'traced_batch': 13, 'precision': 'torch', 'optimizer': 'Adam', 'approximate': [],
        'parameters': 5 * mib, 'parameter_bytes': 20 * mib, 'trainable_parameter_bytes': 20 * mib,
        'buffer_bytes': 0, 'largest_layer_parameters': 5 * mib, 'kinds': ['weights', 'gradients', 'saved'],
        'allocations': [[20 * mib, 0, 0], [20 * mib, 0, 1], [2 * mib, 1, 2]],
        'events': [1, 3, 2, -3, 3, -3, -2], 'steps': [1, 4, 7], 'workspace': {'item_bytes': mib, 'fixed_bytes': 0},
        'operations': of, 'kernels_per_step': 100, 'forward_flops_per_item': 5e8 * width,
        'features': {'convolutions': 3, 'linear': 1, 'activations': 2, 'other': 4, 'model_mb': 21.0},
        'layers': [['linear', 10, 5]], 'horus_activations': 1000, 'fake_tensor': [[mib, mib]],
    }, file)
";

const NET: &str = r#"
command = ["python", "train.py", "{settings}"]
environment = "system"
[settings]
batch_size = 32
width = 1
"#;

fn bench() -> Bench {
    let bench = Bench::new().file("workloads/net/workload.toml", NET).file("workloads/net/train.py", DESCRIBES);
    let card = fs_err::read_to_string(checkout().join("mig-profiles/a100-40gb.toml")).expect("there");
    let bench = bench.file("mig-profiles/a100-40gb.toml", &card);
    let cache = bench.at("cache").to_str().expect("text").to_string();
    bench.env("COLLO_CACHE", &cache)
}

/// SM active as the law has it: `ln(1 + percent) = 4.5 + 0.3 · ln(computes ÷ step)`, by three times the published bandwidth, 120 µs for each
/// operation, and 150 µs for each item.
fn sm_active_percent(width: i32, batch: i32) -> f64 {
    let moved = f64::from(width * batch) * 1_048_576.0;
    let computes_s = (100.0 * moved + 20.0 * 1_048_576.0) / (3.0 * 1.555e12);
    let step_s = computes_s + 100.0 * 120e-6 + f64::from(batch) * 150e-6;
    (4.5 + 0.3 * (computes_s / step_s).ln()).exp_m1()
}

/// Six families at three batch sizes.
fn table() -> String {
    let mut text =
        "# trainings alone\nworkload,settings,family,batch_size,sm_active_ratio,step_s,power_w,device,measured_by\n".to_string();
    for width in [1, 2, 3, 5, 8, 13] {
        for batch in [4, 16, 64] {
            let moved = f64::from(width * batch) * 1_048_576.0;
            let percent = sm_active_percent(width, batch);
            let step_s = 2.0 * (100.0 * moved + 20.0 * 1_048_576.0) / 1.555e12 + 100.0 * 60e-6;
            text += &format!(
                "net,width={width},of {width},{batch},{:.6},{step_s:.9},,NVIDIA A100-SXM4-40GB,a test\n",
                percent / 100.0
            );
        }
    }
    text
}

#[test]
fn profiles_are_fitted_judged_without_their_family_and_predict_a_workload() {
    let bench = bench().file("profiles.csv", &table());
    let judged = bench.collo(&["predict", "evaluate", "--describe", "profiles.csv", "--json"]).exits(0).json();
    let ours = &judged["measured"][0]["estimators"][0];
    assert_eq!(ours["estimator"], "collo, architecture left out");
    assert!(ours["rmsle"]["sm_active"].as_f64().expect("judged") < 0.01, "{ours}");
    let trainings = judged["measured"][0]["trainings"].as_array().expect("each");
    assert_eq!((trainings.len(), &trainings[0]["activities"]["dram_active"]["measured_percent"]), (18, &Value::Null));
    let fit = bench.collo(&["predict", "fit", "--describe", "profiles.csv", "--to", "predictors/mine.json"]).exits(0);
    fit.answers("SM active").answers("2.00 × the roofline + 60.0 µs an operation");
    bench.collo(&["predict", "list"]).exits(0).answers("RMSLE 0.0").answers("published-a100-utilisation");
    let asked = ["predict", "net", "--describe", "--gpu", "a100-40gb", "--json"];
    let nearest = bench.collo(&asked).exits(0).json();
    assert_eq!(nearest["alone"]["predictor"], "published-a100-utilisation", "a table comes after what was published");
    let said = bench.collo(&[&asked[..], &["--predictor", "mine"]].concat()).exits(0).json();
    let alone = &said["alone"];
    assert_eq!((&alone["predictor"], &alone["mark"]), (&"mine".into(), &"table".into()));
    assert_eq!(said["predictor"], nearest["predictor"], "memory is by the nearest, as without a name");
    let percent = sm_active_percent(1, 32);
    assert!((alone["sm_active_percent"]["estimate"].as_f64().expect("said") / percent - 1.0).abs() < 0.02, "{alone}");
    assert!(alone["power_w"].is_null() && alone["step_s"]["estimate"].as_f64().is_some_and(|s| s > 0.006), "{alone}");
    let features = &said["features"];
    assert_eq!((features["convolutions"].as_f64(), features["gflops"].as_f64()), (Some(3.0), Some(16.0)));
    let text = bench.collo(&["predict", "net", "--describe", "--gpu", "a100-40gb", "--peers"]).exits(0);
    text.answers("alone on it").answers("p  95 % between").answers("3 convolutions, 1 linear, 2 activation functions, 4 other");
}

/// The same trainings as the data set of a campaign has them, and a group, whose members' activity nobody can tell apart.
fn data_set() -> String {
    let mut text =
        "experiment,campaign,cell,repetition,outcome,validity,memory_kind,device,device_kind,simulated,sharing,degree,workload,\
        settings,family,batch_size,items_per_s,device_sm_active_ratio,device_gpu_utilization_ratio,device_power_w\n"
            .to_string();
    let table = table();
    for line in table.lines().skip(2) {
        let fields: Vec<&str> = line.split(',').collect();
        let [_, settings, family, batch, sm_active, step_s, _, device, _] = fields[..] else { panic!("{line}") };
        let width = settings.trim_start_matches("width=");
        let items_per_s = batch.parse::<f64>().expect("a number") / step_s.parse::<f64>().expect("a number");
        for (degree, cell) in [(1, "solo"), (2, "naive")] {
            text += &format!(
                "x,20261123-0000-aaaa,net {cell} {width} {batch},1,completed,valid,gpu_memory,{device},gpu,false,{cell},{degree},net,\
                 \"{{\"\"width\"\": {width}}}\",{family},{batch},{items_per_s},{sm_active},0.5,200\n"
            );
        }
    }
    text
}

#[test]
fn a_data_set_of_campaigns_is_read_by_its_own_columns_and_groups_are_left_out() {
    let bench = bench().file("data.csv", &data_set());
    let fit = bench
        .collo(&["predict", "fit", "--describe", "--quantity", "utilisation", "data.csv", "--to", "predictors/mine.json"])
        .exits(0);
    fit.says("rows that are not compared: 18; each is of a group");
    let mine = bench.collo(&["predict", "show", "mine", "--json"]).exits(0).json();
    for target in ["sm_active", "gpu_utilisation"] {
        assert_eq!(mine["law"]["targets"][target]["left_out"]["rows"], 18, "{mine}");
    }
    assert_eq!((&mine["mark"], mine["law"]["time"].is_object()), (&"own".into(), true));
}

#[test]
fn the_papers_protocol_stands_beside_architectures_left_out() {
    let bench = bench().file("profiles.csv", &table());
    let said =
        bench.collo(&["predict", "evaluate", "--describe", "profiles.csv", "--like", "hotcloud20", "--seeds", "1"]).exits(0);
    said.answers("random forest").answers("second-order boosting").answers("in the paper, shuffled");
}

/// The GPU models of the checkout, as files of the project.
fn with_all_gpus(bench: Bench) -> Bench {
    for entry in fs_err::read_dir(checkout().join("mig-profiles")).expect("there") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        bench.write(&format!("mig-profiles/{name}"), &fs_err::read_to_string(&path).expect("readable"));
    }
    bench
}

#[test]
fn every_gpu_model_is_planned_and_predicted_for_by_its_file() {
    let bench =
        with_all_gpus(bench()).file("experiments/g.toml", "device = \"gpu\"\n[axes]\nworkload = \"net\"\nsharing = \"naive\"\n");
    let listed = bench.collo(&["list", "gpus", "--json"]).exits(0).json();
    let gpus = listed["gpus"].as_array().expect("a list");
    for gpu in gpus {
        let name = gpu["gpu"].as_str().expect("named");
        let plan = bench.collo(&["plan", "g", "--gpu", name, "--no-predict", "--json"]).exits(0).json();
        assert!(plan["cells"].as_array().is_some_and(|cells| !cells.is_empty()), "{name}: {plan}");
        let said = bench.collo(&["predict", "net", "--describe", "--gpu", name, "--json"]).exits(0).json();
        assert!(gpu["memory_bytes"].is_u64(), "{name}");
        assert_eq!((&said["fits"]["gpu"], &said["fits"]["memory_bytes"]), (&gpu["gpu"], &gpu["memory_bytes"]), "{name}");
        let has_peaks = gpu["peaks"].as_array().is_some_and(|peaks| !peaks.is_empty());
        let seconds = &said["alone"]["step_s"]["estimate"];
        assert_eq!((seconds.is_f64(), said["alone"]["absent"].is_string()), (has_peaks, !has_peaks), "{name}: {said}");
    }
    assert!(gpus.len() >= 24, "only {}", gpus.len());
}

#[test]
fn peaks_that_a_project_gives_a_gpu_are_those_that_it_is_predicted_by() {
    let mine = |gb_per_s: u32| {
        format!(
            "product_names = [\"Voodoo 2\"]\nmemory_gb = 12\n[[peaks]]\nmemory_gb_per_s = {gb_per_s}\nl2_mib = 1\nfp32_tflops = 10\n"
        )
    };
    let bench = bench().file("mig-profiles/mine.toml", &mine(200));
    let seconds = |bench: &Bench| {
        let said = bench.collo(&["predict", "net", "--describe", "--gpu", "mine", "--json"]).exits(0).json();
        said["alone"]["step_s"]["estimate"].as_f64().unwrap_or_else(|| panic!("{said}"))
    };
    let slow = seconds(&bench);
    bench.write("mig-profiles/mine.toml", &mine(2000));
    assert!(seconds(&bench) < slow, "a faster memory");
    bench.write("mig-profiles/mine.toml", "product_names = [\"Voodoo 2\"]\nmemory_gb = 12\n");
    let said = bench.collo(&["predict", "net", "--describe", "--gpu", "mine"]).exits(0);
    said.says("nothing is said of utilisation: the published peaks of `Voodoo 2` are not known here");
}

#[test]
fn a_table_of_profiles_that_cannot_be_read_says_what_it_lacks() {
    let bench = bench()
        .file("keys.csv", "# another's\nkey,solo_s,sm_active_ratio\nen64,162.5,0.6\n")
        .file("much.csv", "workload,batch_size,sm_active_ratio,device\n# a slip\nnet,32,60.3,NVIDIA A100-SXM4-40GB\n")
        .file("card.csv", "workload,batch_size,sm_active_ratio,device\nnet,32,0.6,Voodoo 2\n");
    let refused = |table: &str| bench.collo(&["predict", "evaluate", "--describe", table]).exits(2);
    refused("keys.csv").says("no column `workload` (or `model`)").says("a `key` of another's table");
    refused("much.csv").says("`sm_active_ratio` is `60.3`, not a number from 0 to 1");
    refused("card.csv").says("the published peaks of `Voodoo 2` are not known");
}
