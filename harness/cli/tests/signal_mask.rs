//! Whatever collo starts begins with no signal blocked: a mask that is inherited would change what programs see of their children.

use std::os::unix::fs::PermissionsExt;

use crate::gpu_faults::MPS;
use crate::sim::Machine;
use crate::support::{Bench, checkout};

/// A shell command that adds this word and the blocked signals of a process to the file of masks.
fn notes(word: &str) -> String {
    format!("echo {word} $(sed -n 's/^SigBlk:[[:space:]]*//p' /proc/$$/status) >> \"$MASKS\"")
}

/// A script of a workload that notes its mask, when it trains and when it describes itself, and ends.
const SCRIPT: &str = "import os
word = 'description' if os.environ.get('COLLO_DESCRIBE') == '1' else 'member'
mask = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('SigBlk'))
with open(os.environ['MASKS'], 'a') as masks:
    masks.write(f'{word} {mask}\\n')
";

/// The words with their masks, each once.
fn masks(bench: &Bench) -> Vec<String> {
    let text = fs_err::read_to_string(bench.at("masks")).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    lines.sort();
    lines.dedup();
    lines
}

const NONE: &str = "0000000000000000";

#[test]
fn members_preparations_descriptions_and_observers_begin_with_no_signal_blocked() {
    let toml = "command = [\"python\", \"train.py\", \"{settings}\"]\nenvironment = \"system\"\nprepare = [\"sh\", \"prepare.sh\"]\n\
        [settings]\nbatch_size = 32\n";
    let card = fs_err::read_to_string(checkout().join("mig-profiles/a100-40gb.toml")).expect("there");
    let bench = Bench::of("[axes]\nworkload = \"mine\"\n")
        .experiment(
            "watched",
            "epochs = 1\n[axes]\nworkload = \"sleep\"\nseconds = 0.1\nsharing = [\"solo\"]\nobserve = [\"masks\"]\n",
        )
        .file("mig-profiles/a100-40gb.toml", &card)
        .file("workloads/mine/workload.toml", toml)
        .file("workloads/mine/train.py", SCRIPT)
        .file(
            "workloads/mine/prepare.sh",
            &format!("{}\necho '{{\"dataset\": \"none\", \"synthetic\": true}}'\n", notes("prepare")),
        );
    let watch = bench.at("watch.sh");
    bench.write("watch.sh", &format!("{}\nexec sleep 600\n", notes("observer")));
    bench.write("observers/masks.toml", &format!("command = [\"sh\", \"{}\"]\n", watch.display()));
    let (file, cache) = (bench.at("masks").display().to_string(), bench.at("cache").display().to_string());
    let bench = bench.env("MASKS", &file).env("COLLO_CACHE", &cache);
    bench.run(&[]);
    bench.collo(&["run", "watched", "--no-report"]).exits(0);
    bench.collo(&["predict", "mine", "--gpu", "a100-40gb"]);
    let expected = ["description", "member", "observer", "prepare"].map(|word| format!("{word} {NONE}"));
    assert_eq!(masks(&bench), expected);
}

#[test]
fn daemons_of_mps_begin_with_no_signal_blocked() {
    let machine = Machine::new("a100-40gb", &format!("epochs = 1\n{MPS}"));
    let real = crate::sim::program("nvidia-cuda-mps-control").display().to_string();
    machine.bench.write("wrapped/nvidia-cuda-mps-control", &format!("#!/bin/sh\n{}\nexec {real} \"$@\"\n", notes("mps")));
    let wrapper = machine.bench.at("wrapped/nvidia-cuda-mps-control");
    fs_err::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let folder = wrapper.parent().expect("its folder").display().to_string();
    let simulated = crate::sim::program("nvidia-smi");
    let simulated = simulated.parent().expect("its folder").display();
    let path = format!("{folder}:{simulated}:{}", std::env::var("PATH").unwrap_or_default());
    let file = machine.bench.at("masks").display().to_string();
    let machine = machine.env("PATH", &path).env("MASKS", &file);
    machine.run(&[]).exits(0);
    assert_eq!(masks(&machine.bench), [format!("mps {NONE}")]);
}
