use std::path::PathBuf;

use super::read::is_name;
use super::*;
use crate::fixture::{COOKED, TINY, workloads};
use collo_store::MemberSpec;
use collo_text::{Diagnostics, Source};

fn read_all(text: &str) -> Result<Vec<Workload>, Diagnostics> {
    read::parse("mynet", &PathBuf::from("workloads/mynet"), &Source::file("workloads/mynet/workload.toml", text))
}

fn read(text: &str) -> Result<Workload, Diagnostics> {
    Ok(read_all(text)?.remove(0))
}

fn said(text: &str) -> String {
    read(text).expect_err("it is wrong").to_string()
}

fn member(batch_size: Option<u32>, settings: &[(&str, Json)]) -> MemberSpec {
    let settings = settings.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    MemberSpec { workload: "mynet".into(), batch_size, settings, solo: String::new() }
}

#[test]
fn a_command_has_its_settings_filled_in() {
    let workload = read(TINY).expect("right");
    let words = workload.command_for(&member(Some(128), &[("images", 512.into())])).expect("complete");
    assert_eq!(words, ["python", "train.py", "--batch-size", "128", "--images", "512"]);
    let words = workload.command_for(&member(None, &[])).expect("defaults");
    assert_eq!(words[3..], ["32", "--images", "1024"]);
    let unknown = workload.command_for(&member(None, &[("image", 1.into())])).expect_err("unknown").to_string();
    assert_eq!(unknown, "error: workload `mynet` has no setting `image`\nhint: did you mean `images`?");
}

#[test]
fn the_adapter_of_a_foreign_script_is_checked() {
    let text = r"
command = ['python', 'fit.py']
environment = 'system'
[epochs]
pattern = '^epoch (?P<epoch>\d+) done in (?P<seconds>[0-9.]+) s'
items = 1000
";
    let adapter = read(text).expect("right").epochs.expect("there");
    assert_eq!(&adapter.pattern.captures("epoch 3 done in 0.25 s").expect("a match")["seconds"], "0.25");
    assert_eq!(adapter.items, Some(1000));
    insta::assert_snapshot!(said("command = ['x']\n[epochs]\npattern = 'epoch (?P<epoch>\\d+'\n"), @r"
    error: `pattern` is not a regular expression: unclosed group at workloads/mynet/workload.toml:3:11
     3 | pattern = 'epoch (?P<epoch>\d+'
       |           ^^^^^^^^^^^^^^^^^^^^^
    ");
    assert!(read("command = ['x']\n[epochs]\npattern = 'epoch (?P<epoch>\\d+)'\n").is_ok(), "seconds may be missing");
    let reads = |pattern: &str| read(&format!("command = ['x']\n[epochs]\npattern = '{pattern}'\n")).is_ok();
    assert!(reads(r"took (?P<seconds>\d+)") && reads("^Test set:") && reads(r"(?P<step>\d+) (?P<accuracy>\S+)"));
    insta::assert_snapshot!(said("command = ['x']\n[epochs]\npattern = 'took (?P<second>\\d+)'\n"), @r"
    error: the group `second` of `pattern` means nothing at workloads/mynet/workload.toml:3:11
     3 | pattern = 'took (?P<second>\d+)'
       |           ^^^^^^^^^^^^^^^^^^^^^^ did you mean `seconds`?
    ");
    insta::assert_snapshot!(said("command = ['x']\n[epochs]\npattern = '(?P<epoch>\\d+) (?P<step>\\d+)'\n"), @r"
    error: `pattern` has both a group `epoch` and a group `step` at workloads/mynet/workload.toml:3:11
     3 | pattern = '(?P<epoch>\d+) (?P<step>\d+)'
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: the one that is the unit of a line: leave out the other
    ");
    insta::assert_snapshot!(said("command = ['x']\n[epochs]\nitems = 3\n"), @r"
    error: `pattern` is missing in `[epochs]` at workloads/mynet/workload.toml:2:1
     2 | [epochs]
       | ^ a regular expression over output lines, or a `preset`
    ");
}

#[test]
fn an_adapter_may_be_a_preset() {
    for name in adapters::PRESETS.iter().map(|preset| preset.name) {
        let adapter = read(&format!("command = ['x']\n[epochs]\npreset = '{name}'\nitems = 3\n")).expect("right").epochs;
        assert_eq!(adapter.expect("there").items, Some(3), "{name}");
    }
    insta::assert_snapshot!(said("command = ['x']\n[epochs]\npreset = 'lightening'\n"), @r"
    error: unknown preset `lightening` at workloads/mynet/workload.toml:3:10
     3 | preset = 'lightening'
       |          ^^^^^^^^^^^^ did you mean `lightning`?
    ");
    insta::assert_snapshot!(said("command = ['x']\n[epochs]\npreset = 'timm'\npattern = 'x'\n"), @r"
    error: both `pattern` and `preset` are given at workloads/mynet/workload.toml:4:1
     4 | pattern = 'x'
       | ^^^^^^^ a preset is a pattern: leave one out
    ");
}

#[test]
fn placeholders_and_settings_belong_together() {
    insta::assert_snapshot!(said("command = ['python', 'train.py', '{image}']\n[settings]\nimages = 1\n"), @"
    error: `{image}` is not a setting at workloads/mynet/workload.toml:1:34
     1 | command = ['python', 'train.py', '{image}']
       |                                  ^^^^^^^^^ did you mean `{images}`?
    error: setting `images` is not in `command`, so it would have no effect, at workloads/mynet/workload.toml:3:1
     3 | images = 1
       | ^^^^^^ add `{images}` to `command`
    ");
    insta::assert_snapshot!(said("command = ['python', '{n}']\n"), @"
    error: `{n}` is not a setting at workloads/mynet/workload.toml:1:22
     1 | command = ['python', '{n}']
       |                      ^^^^^ add `n = …` to `[settings]`
    ");
}

#[test]
fn a_workload_needs_its_command_and_types_are_told() {
    insta::assert_snapshot!(said("description = 'x'\n"), @r#"
    error: `command` is missing in workloads/mynet/workload.toml
    hint: the only required line: `command = ["python", "train.py"]`
    "#);
    insta::assert_snapshot!(said("command = 'python train.py'\nenviroment = 'torch'\n"), @r#"
    error: `command` must be a list, not text, at workloads/mynet/workload.toml:1:11
     1 | command = 'python train.py'
       |           ^^^^^^^^^^^^^^^^^ write `["python", "train.py"]`
    error: unknown key `enviroment` at workloads/mynet/workload.toml:2:1
     2 | enviroment = 'torch'
       | ^^^^^^^^^^ did you mean `environment`?
    "#);
    insta::assert_snapshot!(said("command = ['{batch_size}', '{degree}']\n[settings]\nbatch_size = 0\ndegree = 1\n[forecast.cpu]\nepoch_s = -1\n"), @r"
    error: `batch_size` is a whole number between 1 and 1000000 at workloads/mynet/workload.toml:3:14
     3 | batch_size = 0
       |              ^
    error: invalid setting name `degree` at workloads/mynet/workload.toml:4:1
     4 | degree = 1
       | ^^^^^^ that is already an axis or a key of every experiment
    error: epoch_s -1 is not 0 or more at workloads/mynet/workload.toml:6:11
     6 | epoch_s = -1
       |           ^^
    ");
}

#[test]
fn a_folder_without_its_file_says_what_one_line_would_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let mynet = folder.path().join("mynet");
    std::fs::create_dir(&mynet).expect("created");
    for file in ["train.py", "model.py"] {
        std::fs::write(mynet.join(file), "").expect("written");
    }
    let workloads = Workloads::load(folder.path()).expect("readable");
    insta::assert_snapshot!(workloads.find("mynet").expect_err("no file"), @r#"
    error: workload `mynet` has no `workload.toml`, only train.py and model.py
    hint: it needs one line to start: `command = ["python", "train.py"]`
    "#);
    assert_eq!(workloads.iter().count() + workloads.broken().len(), 0);
}

#[test]
fn a_broken_workload_hurts_only_who_asks_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("good", TINY), ("bad", "command = 3\n"), ("net2x4", "command = ['x']\n")] {
        std::fs::create_dir(folder.path().join(name)).expect("created");
        std::fs::write(folder.path().join(name).join("workload.toml"), text).expect("written");
    }
    let workloads = Workloads::load(folder.path()).expect("readable");
    assert!(workloads.find("good").is_ok());
    assert_eq!(workloads.broken().keys().collect::<Vec<_>>(), ["bad", "net2x4"]);
    assert!(workloads.find("bad").expect_err("broken").to_string().contains("`command` must be a list, not a whole number"));
    insta::assert_snapshot!(workloads.find("net2x4").expect_err("its name reads as a count"), @r"
    error: invalid workload name `net2x4`
    hint: a name is a letter, then letters, digits and `-`, at most 40, not ending in `x` and digits
    ");
}

#[test]
fn names_end_in_no_count() {
    for name in ["a", "resnet26", "small-2", "max"] {
        assert!(is_name(name), "{name}");
    }
    for name in ["", "2a", "netx2", "Net", "a_b", "a×2", &"a".repeat(41)] {
        assert!(!is_name(name), "{name}");
    }
}

#[test]
fn the_forecast_is_absent_where_nobody_measured() {
    let all = workloads();
    assert_eq!(all.get("sleep").expect("there").forecast, WorkloadForecast::default());
    assert_eq!(all.get("tiny").expect("there").forecast.cpu.memory_bytes, Some(800_000_000));
}

const NET: &str = r#"
command = ["python", "train.py", "--model={model}", "{settings}"]
prepare = ["python", "-m", "collo_data", "prepare", "{dataset}"]
packages = "requirements.txt"
[settings]
model = "resnet26"
dataset = "cifar-10"
batch_size = 32
learning_rate = 0.1
channels_last = false
allocator = "native"
[variables]
PYTORCH_CUDA_ALLOC_CONF = "backend:{allocator}"
[presets.large]
description = "the large one"
settings = { model = "resnet152", dataset = "imagenet", learning_rate = 1 }
[presets.large-gpu]
requires = "cuda"
settings = { allocator = "cudaMallocAsync" }
forecast.cpu.epoch_s = 3
"#;

#[test]
fn settings_without_a_place_of_their_own_become_options() {
    let net = read(NET).expect("right");
    let words = net.command_for(&member(Some(64), &[])).expect("complete");
    let options = ["--allocator=native", "--batch-size=64", "--channels-last=false", "--dataset=cifar-10", "--learning-rate=0.1"];
    assert_eq!(words[..3], ["python", "train.py", "--model=resnet26"]);
    assert_eq!(words[3..], options);
}

#[test]
fn data_and_variables_follow_the_settings() {
    let net = read(NET).expect("right");
    let asked = member(None, &[("dataset", "imagenet".into()), ("allocator", "cudaMallocAsync".into())]);
    let words = net.prepare_for(&asked).expect("complete").expect("there");
    assert_eq!(words, ["python", "-m", "collo_data", "prepare", "imagenet"]);
    assert_eq!(net.variables_for(&asked).expect("complete")["PYTORCH_CUDA_ALLOC_CONF"], "backend:cudaMallocAsync");
}

#[test]
fn a_preset_is_the_workload_with_other_settings() {
    let all = read_all(NET).expect("right");
    let names: Vec<&str> = all.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names, ["mynet", "large", "large-gpu"]);
    let (large, gpu) = (&all[1], &all[2]);
    assert_eq!(large.preset_of.as_deref(), Some("mynet"));
    assert_eq!(large.description.as_deref(), Some("the large one"));
    assert_eq!((&large.settings["model"], &large.settings["batch_size"]), (&"resnet152".into(), &32.into()));
    assert!(large.settings["learning_rate"].is_f64(), "a whole number where a fraction is the default is that fraction");
    assert_eq!(large.packages, Some(PathBuf::from("workloads/mynet/requirements.txt")));
    assert_eq!((large.requires, gpu.requires), (None, Some(Requirement::Cuda)));
    assert_eq!(gpu.forecast.cpu.epoch_s, Some(3.0));
    assert_eq!(gpu.description.as_deref(), Some("mynet with allocator=cudaMallocAsync"));
}

#[test]
fn a_preset_has_no_settings_of_its_own() {
    let text = "command = ['x', '{settings}']\n[settings]\nbatch_size = 1\nmodel = 'a'\n[presets.bigx2]\nsettings = { modle = 'b', batch_size = 0, model = 3 }\n";
    insta::assert_snapshot!(said(text), @r"
    error: invalid workload name `bigx2` at workloads/mynet/workload.toml:5:10
     5 | [presets.bigx2]
       |          ^^^^^
    hint: a name is a letter, then letters, digits and `-`, at most 40, not ending in `x` and digits
    error: workload `mynet` has no setting `modle` at workloads/mynet/workload.toml:6:14
     6 | settings = { modle = 'b', batch_size = 0, model = 3 }
       |              ^^^^^ did you mean `model`?
    error: `batch_size` is a whole number between 1 and 1000000 at workloads/mynet/workload.toml:6:40
     6 | settings = { modle = 'b', batch_size = 0, model = 3 }
       |                                        ^
    error: `model` of `mynet` must be text, not a whole number, at workloads/mynet/workload.toml:6:51
     6 | settings = { modle = 'b', batch_size = 0, model = 3 }
       |                                                   ^ its default is `a`
    ");
}

#[test]
fn what_collo_tells_a_member_is_not_for_workloads_to_say() {
    insta::assert_snapshot!(said("command = ['x']\nenvironment = 'sytem'\n[variables]\nCUDA_MPS_PIPE_DIRECTORY = '/tmp'\nNCCL_P2P = '{p2p}'\n"), @"
    error: unknown environment `sytem` at workloads/mynet/workload.toml:2:15
     2 | environment = 'sytem'
       |               ^^^^^^^ did you mean `system`?
    error: the variable `CUDA_MPS_PIPE_DIRECTORY` is collo's own at workloads/mynet/workload.toml:4:1
     4 | CUDA_MPS_PIPE_DIRECTORY = '/tmp'
       | ^^^^^^^^^^^^^^^^^^^^^^^ it selects a member's device
    error: `{p2p}` is not a setting at workloads/mynet/workload.toml:5:12
     5 | NCCL_P2P = '{p2p}'
       |            ^^^^^^^ add `p2p = …` to `[settings]`
    ");
    let own = read("command = ['x']\nenvironment = 'venv/bin/python'\n").expect("right");
    assert_eq!(own.environment, WorkloadPython::Own("workloads/mynet/venv/bin/python".into()));
    let home = collo_text::trust::home().expect("there is one");
    let below_home = read("command = ['x']\nenvironment = '~/venv'\n").expect("right");
    assert_eq!(below_home.environment, WorkloadPython::Own(home.join("venv")));
}

#[test]
fn of_two_workloads_with_one_name_neither_is_meant() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("one", "command = ['x']\n[presets.two]\n"), ("two", "command = ['x']\n")] {
        std::fs::create_dir(folder.path().join(name)).expect("created");
        std::fs::write(folder.path().join(name).join("workload.toml"), text).expect("written");
    }
    let workloads = Workloads::load(folder.path()).expect("readable");
    assert!(workloads.find("one").is_ok());
    let said = workloads.find("two").expect_err("either").to_string();
    assert!(said.starts_with("error: two workloads are called `two`: "), "{said}");
    assert!(said.contains("one/workload.toml, "), "{said}");
}

/// Precision, workers and rate of a workload under a recipe.
fn cooked(workload: &Workload, recipe: Option<&str>) -> String {
    let recipe = recipe.map(Json::from);
    let settings = workload.under(recipe.as_ref());
    ["recipe", "precision", "workers", "rate"].map(|name| plain(&settings[name])).join(" ")
}

#[test]
fn a_recipe_sets_many_settings_and_what_a_preset_says_itself_wins() {
    let all = read_all(COOKED).expect("right");
    let [own, large, table] = &all[..] else { panic!("three") };
    assert_eq!(cooked(own, None), "own fp32 0 0.5");
    assert_eq!(cooked(own, Some("timm")), "timm tf32 4 0.0", "written as its default is");
    assert_eq!(cooked(own, Some("other")), "other fp32 2 0.5");
    assert_eq!(cooked(large, None), "own fp32 0 0.25");
    assert_eq!(cooked(large, Some("timm")), "timm tf32 4 0.25");
    assert_eq!(cooked(table, None), "timm tf32 8 0.0", "a preset may choose a recipe");
    assert_eq!(cooked(table, Some("own")), "own fp32 8 0.5");
}

#[test]
fn a_recipe_that_cannot_be_is_underlined() {
    let with = |lines: &str| said(&format!("command = ['x', '{{settings}}']\n[settings]\nrecipe = 'own'\nworkers = 0\n{lines}"));
    insta::assert_snapshot!(with("[recipes.timm]\nworkers = 'four'\n"), @r"
    error: `workers` of `mynet` must be a whole number, not text, at workloads/mynet/workload.toml:6:11
     6 | workers = 'four'
       |           ^^^^^^ its default is `0`
    ");
    insta::assert_snapshot!(with("[recipes.timm]\nworker = 4\n"), @r"
    error: workload `mynet` has no setting `worker` at workloads/mynet/workload.toml:6:1
     6 | worker = 4
       | ^^^^^^ did you mean `workers`?
    ");
    insta::assert_snapshot!(with("[recipes.own]\nworkers = 4\n"), @r"
    error: the recipe `own` is already that of `[settings]` at workloads/mynet/workload.toml:5:10
     5 | [recipes.own]
       |          ^^^ leave it out, or rename it
    ");
    insta::assert_snapshot!(with("[recipes.timm]\nrecipe = 'own'\n"), @r"
    error: a recipe cannot name another at workloads/mynet/workload.toml:6:1
     6 | recipe = 'own'
       | ^^^^^^
    ");
    insta::assert_snapshot!(with("[recipes.timm]\nworkers = 4\n[presets.big]\nsettings = { recipe = 'tim' }\n"), @r"
    error: workload `mynet` has no recipe `tim` at workloads/mynet/workload.toml:8:23
     8 | settings = { recipe = 'tim' }
       |                       ^^^^^ did you mean `timm`?
    ");
    insta::assert_snapshot!(said("command = ['x', '{workers}']\n[settings]\nworkers = 0\n[recipes.timm]\nworkers = 4\n"), @r#"
    error: `recipes` without a setting `recipe` to choose one at workloads/mynet/workload.toml:4:2
     4 | [recipes.timm]
       |  ^ add `recipe = "NAME"` to `[settings]`: NAME is the name of the defaults
    "#);
}
