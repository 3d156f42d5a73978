//! What is brought home from a real card, and what is tried on one before its numbers are believed: on a simulated one, in good order and
//! with each fault.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use collo_sample::gpu::dcgm_texts;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::{NAIVE, all};
use crate::gpu_faults::row::{Scenario, all_of, hold, row};
use crate::sim::Machine;
use crate::support::{Answer, wait_for};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A bundle that was written and unpacked.
struct Unpacked(PathBuf);

impl Unpacked {
    fn of(machine: &Machine, name: &str) -> Unpacked {
        let folder = machine.bench.at("unpacked");
        std::fs::create_dir_all(&folder).expect("a folder");
        let archive = machine.bench.at(name);
        let done = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder).output().expect("tar");
        assert!(done.status.success(), "{done:?}");
        Unpacked(folder.join("collo-card"))
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).unwrap_or_else(|e| panic!("{file}: {e}\n{}", self.steps()))
    }

    fn json(&self, file: &str) -> Value {
        serde_json::from_str(&self.text(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    fn steps(&self) -> String {
        std::fs::read_to_string(self.0.join("steps.json")).unwrap_or_default()
    }

    fn files(&self) -> Vec<PathBuf> {
        fn below(folder: &Path) -> Vec<PathBuf> {
            let all = std::fs::read_dir(folder).expect("readable").flatten().map(|e| e.path());
            all.flat_map(|p| if p.is_dir() { below(&p) } else { vec![p] }).collect()
        }
        below(&self.0)
    }
}

fn collect(machine: &Machine, more: &[&str]) -> Answer {
    let usual = ["doctor", "--collect", "--seconds", "1", "--to", "card.tgz"];
    machine.collo(&[&usual[..], more].concat())
}

#[test]
fn what_a_card_answers_is_brought_home_with_nothing_private_in_it() {
    let machine = Machine::new("a100-40gb", NAIVE);
    let answer = collect(&machine, &[]).exits(0);
    let listed = answer.stderr.find("dcgm/dmon-*.txt").expect("the list of contents");
    assert!(listed < answer.stderr.find("collecting:").expect("a step"), "the list comes first: {}", answer.stderr);
    assert!(!answer.stderr.contains("mig/state.json"), "nothing of MIG is promised");
    let bundle = Unpacked::of(&machine, "card.tgz");
    for file in
        ["README.txt", "machine/holders.json", "dcgm/discovery-l.txt", "nvml/idle.json", "mps/daemon.log", "load/alone.txt"]
    {
        assert!(!bundle.text(file).is_empty(), "{file}");
    }
    // Under load dmon tells activity, and the driver a process; each call has its code.
    let read = dcgm_texts::dmon(&bundle.text("dcgm/dmon-1001-1003.txt"));
    assert!(read.rows >= 5 && read.values >= 15 && read.unread.is_empty(), "{read:?}");
    let loaded = bundle.json("nvml/load.json");
    let running = &loaded["card"]["processes"]["nvmlDeviceGetComputeRunningProcesses_v3"];
    assert_eq!((running["rc"].as_u64(), running["value"]["count"].as_u64()), (Some(0), Some(1)), "{loaded}");
    assert_eq!(running["value"]["bytes"].as_str().map(str::len), Some(64), "32 bytes of each");
    assert!(loaded["card"]["profiles"].as_array().is_some_and(|all| all.len() >= 5), "{loaded}");
    assert!(bundle.json("nvml/energy.json")["steps"].as_array().is_some_and(|s| s.len() > 10));
    let replies = bundle.json("mps/replies.json");
    let said = |words: &str| {
        let all = replies.as_array().expect("a list");
        all.iter().rfind(|r| r["asked"].as_str().is_some_and(|a| a.starts_with(words))).unwrap_or(&Value::Null).clone()
    };
    assert_eq!(said("get_default_device_pinned_mem_limit")["answer"], "3G\n");
    assert!(said("start_server")["served_after_s"].is_number() && said("start_server")["failed"].is_null(), "{replies}");
    let clients = said("get_client_list");
    assert_eq!(clients["answer"].as_str().map(|a| a.lines().count()), Some(2), "{clients}");
    assert!(bundle.text("mps/daemon.log").contains("Active Threads Percentage set to 100.0"));
    let sms = |percent: u32| {
        let text = bundle.text(&format!("load/sms-{percent}.txt"));
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.iter().position(|w| w.starts_with("SMs")).unwrap_or_else(|| panic!("no SMs in {text}"));
        words[at - 1].parse::<u32>().unwrap_or_else(|e| panic!("{e}: {text}"))
    };
    assert_eq!([10, 25, 50, 75].map(sms), [10, 26, 54, 80], "as clients see them");
    assert!(bundle.text("load/sms-25.txt").contains("SMs"), "{}", bundle.text("load/sms-25.txt"));
    // Nobody can tell whose machine it was.
    let host = nix::unistd::gethostname().expect("a name").to_string_lossy().into_owned();
    let own = machine.uuid(0);
    for file in bundle.files() {
        let text = String::from_utf8_lossy(&std::fs::read(&file).expect("readable")).into_owned();
        let home = machine.bench.at("").display().to_string();
        for secret in [own.as_str(), &own[4..12], home.trim_end_matches('/'), &host] {
            assert!(secret.len() < 4 || !text.contains(secret), "`{secret}` is in {}", file.display());
        }
    }
    machine.bench.nothing_is_left(TIMEOUT);
    assert!(machine.journals().is_empty(), "without --mig nothing is changed");
}

#[test]
fn with_mig_one_card_is_cut_three_ways_and_put_back() {
    let machine = Machine::new("a100-40gb,gpus=2,mig=2×3g.20gb", NAIVE);
    let found = machine.cards();
    collect(&machine, &["--mig", "--gpu", "0"]).exits(0).says("mig/state.json").says("GPU 0 is as it was found");
    assert_eq!(machine.cards(), found);
    assert!(machine.journals().is_empty());
    machine.bench.nothing_is_left(TIMEOUT);
    let bundle = Unpacked::of(&machine, "card.tgz");
    let states = bundle.json("mig/state.json");
    let when: Vec<&str> = states.as_array().expect("a list").iter().filter_map(|s| s["when"].as_str()).collect();
    assert_eq!(when.len(), 5, "{when:?}");
    assert!(states.as_array().expect("a list").iter().all(|s| s["refused"].is_null()), "{states}");
    for (layout, instances) in [("equal", 7), ("unequal", 4), ("mixed", 3)] {
        let hierarchy = bundle.text(&format!("mig/{layout}/discovery-c.txt"));
        assert_eq!(hierarchy.matches("-> I 0/").count(), instances, "{hierarchy}");
        let read = dcgm_texts::dmon(&bundle.text(&format!("mig/{layout}/dmon.txt")));
        assert!(read.rows >= instances && read.unread.is_empty(), "{layout}: {read:?}");
        let raw = bundle.json(&format!("mig/{layout}/nvml.json"));
        assert_eq!(raw["card"]["mig_devices"].as_array().map(Vec::len), Some(instances), "{raw}");
        assert!(bundle.text(&format!("load/mig-{layout}-0.txt")).contains("device MIG-"));
        let other = dcgm_texts::dmon(&bundle.text(&format!("mig/{layout}/dmon-other.txt")));
        assert!(other.rows > 0 && other.unread.is_empty(), "{layout}: {other:?}");
    }
}

#[test]
fn what_cannot_be_had_is_written_down_and_the_rest_is_collected() {
    let without =
        |name: &'static str, words: &'static str, more: &'static [&'static str], wanted: &'static [&'static str]| Scenario {
            name,
            words: words.into(),
            act: Box::new(move || {
                let machine = Machine::new(words, NAIVE);
                let machine = if name.contains("no Python") { machine.env("COLLO_PYTHON", "/bin/false") } else { machine };
                let machine = if name.contains("no dcgmi") { machine.without("dcgmi") } else { machine };
                let found = machine.cards();
                let answer = collect(&machine, more);
                hold(answer.code == Some(0), || format!("{answer:?}"))?;
                let bundle = Unpacked::of(&machine, "card.tgz");
                let steps = bundle.steps();
                for text in wanted {
                    hold(steps.contains(text), || format!("`{text}` is not in {steps}"))?;
                }
                let idle = bundle.json("nvml/idle.json");
                hold(idle["driver"].is_string(), || "NVML was not asked".into())?;
                let refused = idle["card"]["profiles"][0]["nvmlDeviceGetGpuInstances"]["rc"].as_u64() == Some(4);
                hold(refused == words.contains("=4"), || format!("the code of a refused call is not told: {idle}"))?;
                hold(machine.cards() == found && machine.journals().is_empty(), || "the card was changed".into())?;
                machine.bench.nothing_is_left(TIMEOUT);
                Ok(())
            }),
        };
    all_of(vec![
        without("no Python with torch", "a100-40gb", &[], &["\"without\""]),
        without("no dcgmi", "a100-40gb", &[], &["dcgm/discovery-l.txt", "\"absent\""]),
        without("no host engine", "a100-40gb,no-dcgm", &[], &["unable to establish a connection"]),
        without("a daemon that does not start", "a100-40gb,mps-no-start", &[], &["MPS control daemon failed to start"]),
        without("a control program that is slow", "a100-40gb,slow-control=200ms", &[], &["dcgm/version.txt"]),
        without("members that find no CUDA", "a100-40gb,no-cuda", &[], &["dcgm/version.txt"]),
        without("no right to cut", "a100-40gb,mig-no-permission", &["--mig", "--gpu", "0"], &["no permission"]),
        without("no MIG at all", "a100-40gb,mig-not-supported", &["--mig", "--gpu", "0"], &["has no MIG"]),
        without("instances cannot be made", "a100-40gb,no-resources", &["--mig", "--gpu", "0"], &["insufficient resources"]),
        without("calls that are refused", "a100-40gb,nvml:nvmlDeviceGetGpuInstances=4", &[], &["dcgm/version.txt"]),
    ]);
}

#[test]
fn a_collection_that_cannot_be_begun_says_why_and_touches_nothing() {
    let machine = Machine::new("a100-40gb,gpus=2", NAIVE);
    collect(&machine, &["--mig"]).exits(2).says("so it must be named");
    collect(&machine, &["--gpu", "0,1"]).exits(2).says("takes one GPU");
    machine.bench.write("card.tgz", "somebody's");
    collect(&machine, &[]).exits(2).says("already exists");
    let none = machine.env("COLLO_NVML", "/nowhere/libnvidia-ml.so");
    none.collo(&["doctor", "--collect", "--to", "other.tgz"]).exits(3).says("needs an NVIDIA GPU");
    none.collo(&["doctor", "--mig"]).exits(2);
}

#[test]
fn a_collection_that_is_ended_puts_the_card_back_or_leaves_word() {
    let started = || {
        let machine = Machine::new("a100-40gb", NAIVE);
        let found = machine.cards();
        let running = machine.bench.start(&["doctor", "--collect", "--seconds", "1", "--to", "card.tgz", "--mig", "--gpu", "0"]);
        (machine, found, running)
    };
    let (machine, found, mut running) = started();
    wait_for("a cut", || (machine.cards() != found).then_some(()));
    running.signal(Signal::SIGINT);
    running.ends().exits(130).says("GPU 0 is as it was found");
    assert_eq!(machine.cards(), found);
    assert!(machine.journals().is_empty());
    machine.bench.nothing_is_left(TIMEOUT);
    Unpacked::of(&machine, "card.tgz").json("mig/state.json");

    let (machine, found, mut running) = started();
    wait_for("a cut", || (machine.cards() != found).then_some(()));
    running.signal(Signal::SIGKILL);
    let _ = running.ends();
    machine.bench.nothing_is_left(TIMEOUT);
    assert_eq!(machine.journals().len(), 1, "what was found is written down");
    machine.collo(&["restore"]).exits(0);
    assert_eq!(machine.cards(), found);
}

#[test]
fn a_card_whose_numbers_can_be_believed_passes_and_each_fault_is_named() {
    let deep = |name: &'static str, words: &'static str, code: i32, wanted: &'static [&'static str]| Scenario {
        name,
        words: words.into(),
        act: Box::new(move || {
            let machine = Machine::new(&format!("{words},noise=0,seed=1"), NAIVE).env("COLLO_SIM_EPOCH_S", "0.7");
            let found = machine.cards();
            let answer = machine.collo(&["doctor", "--deep"]);
            hold(answer.code == Some(code), || format!("it exits with {:?}: {answer:?}", answer.code))?;
            for text in wanted {
                hold(answer.stdout.contains(text), || format!("nobody says `{text}`: {}", answer.stdout))?;
            }
            hold(machine.cards() == found && machine.journals().is_empty(), || "the card was changed".into())?;
            hold(machine.bench.campaigns() == 0, || "a campaign is kept".into())?;
            machine.bench.nothing_is_left(TIMEOUT);
            Ok(())
        }),
    };
    all_of(vec![
        deep(
            "healthy",
            "a100-40gb",
            0,
            &[
                "✓ shares",
                "2 share, naive",
                "2 share, mps",
                "✓ full load",
                "✓ dmon",
                "✓ limits",
                "2 under mps:50%: asked 50 % of 108 SMs, which is 54.0, members see 54 and 54",
                "2 under mps:14%: asked 14 % of 108 SMs, which is 15.1, members see ",
                "2 under mps:mem=4GB: asked 3814 MiB, found 3814 MiB",
                "✓ lists",
                "members listed from *go* to the first `done`",
            ],
        ),
        deep("a limit that is only logged", "a100-40gb,mps=535", 0, &["✓ limits", "found 3814 MiB, its server logged"]),
        deep("SMs that are not as asked", "a100-40gb,wrong-sm=1", 1, &["✗ limits", "members see 54 and 56", "mode lost"]),
        deep("lists of a container", "a100-40gb,hidden-pids", 0, &["! lists", "--pid=host"]),
        deep("healthy, with GPM", "h100-80gb", 0, &["✓ full load", "✓ dmon"]),
        deep("cut as found", "a100-40gb,mig=2×3g.20gb", 0, &["2 share, mig:", "instance 2", "✓ full load"]),
        deep("CUDA cannot be used", "a100-40gb,no-cuda", 1, &["✗ shares", "found cpu", "fabric manager"]),
        deep("MPS does not start", "a100-40gb,mps-no-start", 1, &["✓ full load", "✗ shares", "did not start"]),
        deep("MPS is not in force", "a100-40gb,mps-no-attach=1", 1, &["✗ shares", "client list of member 1"]),
        deep("no host engine", "a100-40gb,no-dcgm", 1, &["✗ full load", "✗ dmon", "nvidia-dcgm"]),
        deep("fields that are blank", "a100-40gb,dcgm-blank", 1, &["✗ full load"]),
        deep("the wrong card", "a100-40gb,wrong-device", 1, &["✗ shares", "device as it sees it"]),
    ]);
    let nobody = Machine::new("a100-40gb", NAIVE).env("COLLO_NVML", "/nowhere/libnvidia-ml.so");
    nobody.collo(&["doctor", "--deep"]).exits(3).says("needs an NVIDIA GPU");
}

/// What was collected somewhere, and lies in the simulation's fixtures.
fn bundles() -> Vec<PathBuf> {
    let folder = simgpu::dcgm::bundle::folder("");
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("fixtures").flatten().map(|e| e.path()).filter(|p| p.is_dir()).collect();
    all.sort();
    all
}

#[test]
fn every_text_that_was_brought_home_is_read_without_a_rest() {
    let all = bundles();
    assert!(!all.is_empty(), "one bundle of the simulated card is always there");
    for bundle in all {
        let files = Unpacked(bundle.clone()).files();
        let mut rows = 0;
        for file in &files {
            let name = file.file_name().expect("named").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            if name.starts_with("dmon") {
                let read = dcgm_texts::dmon(&text);
                assert!(read.unread.is_empty(), "{}: {:?}", file.display(), read.unread);
                rows += read.rows;
            } else if name.ends_with(".json") {
                let _: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            } else if name == "discovery-c.txt" && text.contains("EntityID") {
                let card = text.split_whitespace().find(|w| w.starts_with("GPU-")).expect("a card");
                assert!(dcgm_texts::hierarchy_has(&text, card), "{}", file.display());
            } else if name == collo_device::mps::LOG {
                let logged = collo_device::mps::logged(&text);
                assert!(logged.active_thread_percent.is_some(), "{}: the share of threads is not read", file.display());
                let trouble = collo_device::mps::trouble(&text);
                assert_eq!(trouble, None, "{}: the log of a healthy daemon", file.display());
            }
        }
        assert!(rows > 0, "{}: no row of dmon", bundle.display());
        replies_are_read(&bundle);
    }
}

/// Answers that are numbers or lists are read as such.
fn replies_are_read(bundle: &Path) {
    let Ok(text) = std::fs::read_to_string(bundle.join("mps/replies.json")) else { return };
    let replies: Value = serde_json::from_str(&text).expect("JSON");
    for reply in replies.as_array().into_iter().flatten() {
        let (Some(asked), Some(answer)) = (reply["asked"].as_str(), reply["answer"].as_str()) else { continue };
        let read = collo_device::mps::understood(asked, answer);
        assert!(read, "{}: `{asked}` was answered with {answer:?}", bundle.display());
    }
}

#[test]
fn collected_texts_play_the_part_of_dcgm() {
    all(vec![
        row("the texts of the simulated card", "a100-40gb,bundle=simulated-a100", NAIVE)
            .env(super::SERIAL, "")
            .env("COLLO_SIM_EPOCH_S", "0.6"),
    ]);
}
