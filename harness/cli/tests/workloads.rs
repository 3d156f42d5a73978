//! Workloads can be listed, shown and tried, their data checked and written, and one of your own joins with one file.

use collo_store::Outcome;

use crate::support::{Bench, epochs, events};

/// A script that tells what it was given, in the system's Python.
const TELLS: &str = "import argparse, collo, os, time
p = argparse.ArgumentParser()
for name in ('--width', '--rate', '--amp', '--batch-size', '--limit-batches'):
    p.add_argument(name)
a = p.parse_args()
member = collo.connect()
member.hello(model=('net', int(a.width)), dataset={'name': 'D', 'synthetic': True, 'items': 40}, limit_batches=3, given=vars(a),
             mood=os.environ['MOOD'])
member.features(batch_size=int(a.batch_size), parameters=7, model_mb=0.1, flops_per_item=None, activations_per_item=5, layers={'Linear': 2})
member.wait_for_warm_up()
member.ready()
for epoch in member.epochs():
    for _ in epoch.batches(range(3)):
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            pass
    epoch.finish(items=12, loss=1.0 / (1 + epoch.index))
";

const MINE: &str = r#"
command = ["python", "train.py", "{settings}"]
environment = "system"
prepare = ["python", "prepare.py", "{width}"]
[settings]
width = 64
rate = 0.5
amp = false
batch_size = 4
limit_batches = 0
[variables]
MOOD = "rate {rate}"
[presets.mine-wide]
description = "the wide one"
settings = { width = 512 }
[presets.mine-gpu]
requires = "cuda"
"#;

const PREPARE: &str = "import json, os, sys
kind = open(os.environ['COLLO_DATA'] + '/kind').read()
print(json.dumps({'dataset': 'D', 'synthetic': kind == 'synthetic', 'items': int(sys.argv[1])}))
";

fn bench(experiment: &str) -> Bench {
    Bench::of(experiment)
        .file("workloads/mine/workload.toml", MINE)
        .file("workloads/mine/train.py", TELLS)
        .file("workloads/mine/prepare.py", PREPARE)
        .file("data/kind", "synthetic")
}

#[test]
fn a_preset_trains_with_its_own_settings_and_variables() {
    let bench = bench("[axes]\nworkload = \"mine-wide\"\nrate = 0.25\n");
    bench.run(&[]).exits(0);
    let run = bench.run_of(1);
    assert_eq!(run.record.cell.cell, "mine-wide solo b4 rate=0.25");
    let member = &run.record.members[0];
    let hello = member.hello.as_ref().expect("told");
    let given = serde_json::json!({"width": "512", "rate": "0.25", "amp": "false", "batch_size": "4", "limit_batches": "0"});
    assert_eq!(hello["given"], given);
    assert_eq!(hello["mood"], "rate 0.25");
    assert_eq!((member.limit_batches, member.synthetic), (Some(3), Some(true)));
    let features = member.features.as_ref().expect("told");
    assert_eq!((features.parameters, features.flops_per_item, features.layers["Linear"]), (Some(7), None, 2));
    assert!(events(&run).iter().any(|e| e["said"]["event"] == "features"));
    bench.collo(&["show", "last", "mine-wide"]).exits(0).answers("graph").answers("2 layers");
    bench.collo(&["report"]).exits(0);
    let page = bench.collo(&["show", "last"]).exits(0);
    let page = page.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("shortened epochs: 3 batches of `mine-wide`"), "{page}");
}

#[test]
fn other_data_is_another_campaign() {
    let bench = bench("[axes]\nworkload = \"mine\"\ndegree = 2\n");
    bench.run(&["--for", "0s"]).exits(4);
    fs_err::write(bench.at("data/kind"), "real").expect("written");
    bench
        .run(&["--for", "0s"])
        .exits(4)
        .says("is not continued, its ingredients changed")
        .says("data D   synthetic, 64 items → real, 64 items");
    assert_eq!(bench.campaigns(), 2);
}

#[test]
fn what_needs_cuda_is_refused_here_and_the_rest_is_measured() {
    let bench = bench("[axes]\nworkload = [\"mine\", \"mine-gpu\"]\n");
    if collo_device::has_gpu() {
        return crate::support::skip::skip("a machine without a GPU", "this machine has a GPU");
    }
    let answer = bench
        .run(&[])
        .exits(0)
        .says("mine-gpu solo b4 is refused: `mine-gpu` needs an NVIDIA GPU with CUDA, this device is a CPU");
    assert!(bench.runs().values().all(|r| r.record.cell.members[0].workload == "mine"), "{}", answer.stderr);
    bench.collo(&["workload", "check", "mine-gpu"]).exits(3).says("`mine-gpu` needs an NVIDIA GPU with CUDA");
}

#[test]
fn workloads_are_listed_with_their_presets() {
    let bench = bench("").file("workloads/bad/workload.toml", "command = 3\n");
    let list = bench.collo(&["workload", "list", "--json"]).exits(0).says("`command` must be a list, not a whole number").json();
    let of = |name: &str| list["workloads"].as_array().expect("a list").iter().find(|w| w["workload"] == name).cloned();
    let wide = of("mine-wide").expect("listed");
    assert_eq!((&wide["preset_of"], &wide["settings"]["width"]), (&"mine".into(), &512.into()));
    for name in ["small", "medium", "large", "tiny", "mine", "mine-gpu"] {
        assert!(of(name).is_some(), "{name}");
    }
    assert_eq!(bench.collo(&["list", "workloads", "--json"]).json(), list);
}

const COOKED: &str = r#"
command = ["python", "train.py", "{settings}"]
environment = "system"
[settings]
width = 64
workers = 0
recipe = "ours"
[recipes.paper]
width = 96
workers = 4
[presets.cooked-wide]
settings = { width = 512 }
"#;

#[test]
fn a_recipe_is_shown_with_what_it_changes_and_planned_with_what_is_in_force() {
    let text = "[axes]\nworkload = [\"cooked\", \"cooked-wide\"]\nrecipe = \"paper\"\n";
    let bench = bench(text).file("workloads/cooked/workload.toml", COOKED).file("workloads/cooked/train.py", "");
    bench.collo(&["workload", "show", "cooked"]).exits(0).answers("  recipe       paper: width=96 workers=4");
    bench.collo(&["workload", "show", "cooked-wide"]).exits(0).answers("  recipe       paper: workers=4");
    let plan = bench.collo(&["plan", "x", "--json"]).exits(0).json();
    let cells: Vec<&str> = plan["cells"].as_array().expect("a list").iter().map(|c| c["cell"].as_str().expect("text")).collect();
    assert_eq!(cells, ["cooked solo recipe=paper", "cooked-wide solo recipe=paper"]);
    let text = "[axes]\nworkload = \"cooked\"\nrecipe = \"papre\"\n";
    let bench = self::bench(text).file("workloads/cooked/workload.toml", COOKED).file("workloads/cooked/train.py", "");
    bench.collo(&["plan", "x"]).exits(2).says("workload `cooked` has no recipe `papre`").says("did you mean `paper`?");
}

#[test]
fn one_workload_is_shown_in_full() {
    let bench = bench("");
    let answer = bench.collo(&["workload", "show", "mine-wide"]).exits(0).says("next: collo workload check mine-wide");
    insta::assert_snapshot!(answer.stdout, @r"
    mine-wide, a preset of mine: the wide one
      folder       workloads/mine
      command      python train.py {settings}
      python       the system's
      data         python prepare.py {width}
      variable     MOOD=rate {rate}
      epochs       reported by the script itself
      settings     amp            false
                   batch_size     4
                   limit_batches  0
                   rate           0.5
                   width          512   (64 in mine)
    ");
    assert_eq!(bench.collo(&["workload", "show", "mine", "--json"]).exits(0).json()["workload"], "mine");
    bench.collo(&["workload", "show", "mine-wid"]).exits(2).says("unknown workload `mine-wid`").says("did you mean `mine-wide`?");
}

#[test]
fn a_trial_says_what_a_workload_tells_and_what_it_does_not() {
    let bench = bench("");
    let answer = bench.collo(&["workload", "check", "mine", "--set", "width=128"]).exits(0);
    for line in [
        "✓ hello    net, 128 parameters, device cpu, threads 1",
        "✓ data     D, synthetic, 40 items",
        "✓ graph    2 layers, FLOPs unknown",
        "✓ epochs   a warm-up of ",
        "✓ items    12 in an epoch, loss 1.000 → 0.500",
        "✓ end      exited with 0",
        "`mine` speaks the protocol",
    ] {
        assert!(answer.stdout.contains(line), "no `{line}` in\n{}", answer.stdout);
    }
    assert!(!bench.at("runs").exists(), "a trial is not kept");
    bench.collo(&["workload", "check", "mine", "--set", "widht=1"]).exits(2).says("did you mean `width`?");
    bench.collo(&["workload", "check", "mine", "--set", "width=wide"]).exits(2).says("must be a whole number, not text");
    bench.collo(&["workload", "check", "lines"]).exits(0).answers("`lines` can be measured by its output lines");
}

#[test]
fn a_workload_that_breaks_the_protocol_fails_its_trial() {
    let silent = "for n in range(2):\n    print(f'Epoch {n}: loss 1')\nprint('bye')\n";
    let bench = bench("").file("workloads/mine/train.py", silent);
    let answer = bench.collo(&["workload", "check", "mine"]).exits(1);
    let said = "✗ start    it ended with exit code 0 without speaking the protocol; it prints `Epoch 0: loss 1`, `Epoch 1: loss 1`: describe \
                that line with `[epochs] pattern = …`";
    assert!(answer.stdout.contains(said), "{}", answer.stdout);
    assert_eq!(answer.stdout.matches('✗').count(), 1, "{}", answer.stdout);
    assert!(answer.stdout.contains("`mine` cannot be measured as it is"), "{}", answer.stdout);
    answer.says("│ bye");
    fs_err::rename(bench.at("workloads/mine/train.py"), bench.at("workloads/mine/other.py")).expect("renamed");
    let answer = bench.collo(&["workload", "check", "mine"]).exits(1);
    let first = answer.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("✗ start") && first.contains("can't open file") && first.contains("train.py"), "{}", answer.stdout);
    assert_eq!(answer.stdout.matches('✗').count(), 1, "{}", answer.stdout);
    bench.write("workloads/mine/train.py", &TELLS.replace("limit_batches=3,", "limit_batches=3, threads=4,"));
    let answer = bench.collo(&["workload", "check", "mine"]).exits(1);
    assert!(answer.stdout.contains("✗ end      mode lost: intra-op threads of member 0: asked 1, found 4"), "{}", answer.stdout);
    let wrong =
        bench.collo(&["workload", "check", "faulty", "--set", "fail_at=epoch1", "--set", "how=garbage", "--json"]).exits(1);
    let json = wrong.json();
    let of =
        |what: &str| json["findings"].as_array().expect("a list").iter().find(|f| f["what"] == what).cloned().expect("there");
    assert_eq!((json["passes"].as_bool(), &of("end")["verdict"]), (Some(false), &"no".into()));
    let said = of("end")["said"].as_str().expect("a sentence").to_string();
    assert!(said.starts_with("protocol error: line ") && said.contains("is not JSON"), "{said}");
}

#[test]
fn a_workload_may_bring_a_python_of_its_own() {
    collo_launch::supervisor::is_at(env!("CARGO_BIN_EXE_collo"));
    let system = collo_prepare::python::find_system().expect("there is one").path;
    let bench = Bench::of("[axes]\nworkload = \"own\"\n");
    let toml = format!("command = [\"python\", \"train.py\"]\nenvironment = \"{}\"\n", system.display());
    let script = "import collo, sys, time\nm = collo.connect()\nm.hello(interpreter=sys.executable)\nm.wait_for_warm_up()\nm.ready()\n\
                  for e in m.epochs():\n    end = time.monotonic() + 0.15\n    while time.monotonic() < end:\n        pass\n    \
                  e.finish(items=1)\n";
    let bench = bench.file("workloads/own/workload.toml", &toml).file("workloads/own/train.py", script);
    bench.run(&[]).exits(0);
    let run = bench.run_of(1);
    assert_eq!(run.record.outcome, Outcome::Completed);
    assert_eq!(run.record.members[0].hello.as_ref().expect("told")["interpreter"], system.display().to_string());
    assert!(!epochs(&run).is_empty());
    assert!(bench.campaign().manifest().ingredients.contains_key("python of own"));
    bench.write("workloads/own/workload.toml", "command = [\"python\", \"train.py\"]\nenvironment = \"no/such/python\"\n");
    bench.run(&["--new"]).exits(3).says("no/such/python` is not a usable Python");
}

#[test]
fn data_is_written_and_checked_by_name() {
    let bench = Bench::new();
    bench.collo(&["data", "synthesize", "cifar-100", "--scale", "0.004"]).exits(0).answers("synthetic CIFAR-100");
    bench.collo(&["data", "check", "cifar-100"]).exits(0).answers("✓");
    let folder = bench.at("data/synthetic/cifar-100");
    let damaged = folder.join("cifar-100-python/train");
    let bytes = fs_err::read(&damaged).expect("written");
    fs_err::write(&damaged, &bytes[..bytes.len() / 2]).expect("cut");
    let folder = folder.to_str().expect("text");
    bench.collo(&["data", "check", "cifar-100", folder]).exits(1).answers("✗").answers("truncated");
    bench.collo(&["data", "check", "cifar-1000"]).exits(2).says("did you mean `cifar-100`?");
    bench.collo(&["data", "check", "imagenet64"]).exits(3).says("collo data synthesize imagenet64 --scale");
    bench.collo(&["data", "list", "--json"]).exits(0).json();
    assert!(bench.at("data").read_dir().expect("there").count() == 1, "nothing but the stand-ins was written");
}

#[test]
fn what_a_user_set_for_other_trainings_does_not_reach_a_member_and_both_are_told() {
    let seen = "import collo, os, time
member = collo.connect()
member.hello(device='cpu', seen={name: os.environ.get(name) for name in
    ('NVIDIA_TF32_OVERRIDE', 'PYTORCH_CUDA_ALLOC_CONF', 'TORCH_HOME', 'COLLO_MEMBER', 'COLLO_MEMBERS')})
member.wait_for_warm_up()
member.ready()
for epoch in member.epochs():
    time.sleep(0.1)
    epoch.finish(items=1)
";
    let workload = "command = [\"python\", \"train.py\"]\nenvironment = \"system\"\n\
                    [variables]\nPYTORCH_CUDA_ALLOC_CONF = \"backend:native\"\n";
    let bench = Bench::of("repetitions = 1\n[axes]\nworkload = \"seen\"\ndegree = 2")
        .file("workloads/seen/workload.toml", workload)
        .file("workloads/seen/train.py", seen)
        .env("NVIDIA_TF32_OVERRIDE", "1")
        .env("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
        .env("TORCH_HOME", "/weights");
    let told = "NVIDIA_TF32_OVERRIDE, PYTORCH_CUDA_ALLOC_CONF are set here but not passed on to members";
    bench.run(&[]).exits(0).says(told);
    for member in [0, 1] {
        let hello = bench.run_of(2).record.members[member].hello.clone().expect("it said hello");
        let seen = &hello["seen"];
        assert!(seen["NVIDIA_TF32_OVERRIDE"].is_null(), "{seen}");
        assert_eq!((&seen["PYTORCH_CUDA_ALLOC_CONF"], &seen["TORCH_HOME"]), (&"backend:native".into(), &"/weights".into()));
        assert_eq!((&seen["COLLO_MEMBER"], &seen["COLLO_MEMBERS"]), (&member.to_string().into(), &"2".into()));
    }
    let names = ["NVIDIA_TF32_OVERRIDE", "PYTORCH_CUDA_ALLOC_CONF"];
    assert_eq!(bench.campaign().manifest().machine.withheld, names);
}

/// A script that finds ranks where torchvision's references and Lightning look for them, and prints what started it.
const FINDS_RANKS: &str = "import os, sys, time
ranks = [name for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_ADDR', 'SLURM_PROCID', 'SLURM_NTASKS', 'OMPI_COMM_WORLD_RANK') if name in os.environ]
assert not ranks, ranks
assert os.environ['SLURM_JOB_ID'] == '7'
for epoch in range(6):
    time.sleep(0.1)
    print(f'epoch {epoch} took 0.1 s', flush=True)
";

#[test]
fn what_makes_collo_a_rank_of_a_job_reaches_no_member_and_is_listed() {
    let bench = Bench::of("repetitions = 1\nepochs = 2\n[axes]\nworkload = \"ranks\"\ndegree = 2")
        .file(
            "workloads/ranks/workload.toml",
            "command = [\"python\", \"train.py\"]\nenvironment = \"system\"\n\
            [epochs]\npattern = '^epoch (?P<epoch>\\d+) took (?P<seconds>[0-9.]+) s'\n",
        )
        .file("workloads/ranks/train.py", FINDS_RANKS)
        .env("RANK", "0")
        .env("WORLD_SIZE", "4")
        .env("MASTER_ADDR", "10.0.0.1")
        .env("OMPI_COMM_WORLD_RANK", "0")
        .env("SLURM_PROCID", "0")
        .env("SLURM_NTASKS", "1")
        .env("SLURM_JOB_ID", "7");
    let told = "MASTER_ADDR, OMPI_COMM_WORLD_RANK, RANK, SLURM_NTASKS, SLURM_PROCID, WORLD_SIZE are set here but not passed on";
    bench.run(&[]).exits(0).says(told);
    assert!(bench.runs().values().all(|run| run.record.outcome == Outcome::Completed));
}

#[test]
fn a_workload_starts_the_programs_of_its_environment_by_their_names() {
    let bench = Bench::of("repetitions = 1\nepochs = 2\n[axes]\nworkload = [\"launched\", \"shell\"]");
    let made = std::process::Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(bench.at("venv")).status();
    assert!(made.expect("python3 starts").success());
    let epochs = "environment = \"../../venv\"\n[epochs]\npattern = '^epoch (?P<epoch>\\d+) took (?P<seconds>[0-9.]+) s'\n";
    let train = "import os, sys, time
assert os.environ['VIRTUAL_ENV'] == sys.prefix, sys.prefix
for epoch in range(6):
    time.sleep(0.1)
    print(f'epoch {epoch} took 0.1 s', flush=True)
";
    let bench = bench
        .file("workloads/launched/workload.toml", &format!("command = [\"launch\", \"train.py\"]\n{epochs}"))
        .file("workloads/launched/train.py", train)
        .file("workloads/shell/workload.toml", &format!("command = [\"sh\", \"-c\", \"python train.py && true\"]\n{epochs}"))
        .file("workloads/shell/train.py", train)
        .file("venv/bin/launch", "#!/bin/sh\nexec python \"$@\"\n");
    std::fs::set_permissions(bench.at("venv/bin/launch"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    bench.run(&[]).exits(0);
    assert!(bench.runs().values().all(|run| run.record.outcome == Outcome::Completed));
    bench.collo(&["plan", "x", "--commands"]).exits(0).answers("venv/bin:\"$PATH\"");
}
