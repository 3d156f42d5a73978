//! The verbs that are about the card itself, on a simulated one: how it is cut, whether it is as it was found, what it can measure.

use std::path::Path;
use std::sync::Arc;

use collo_device::layout;
use collo_device::lease::Journal;
use collo_gpus::mig::{Cards, GpuModel, Profile};
use collo_gpus::partition::Partition;

use crate::sim;
use crate::support::{Answer, Bench, checkout};

/// Every set of plain instances that fits a card, the first of which there is room for and all that can be added to it.
fn every_set(card: &GpuModel, names: &[&str]) -> Vec<Partition> {
    let mut all = Vec::new();
    let mut open: Vec<(usize, Vec<Arc<Profile>>)> = vec![(0, Vec::new())];
    while let Some((from, set)) = open.pop() {
        for (at, name) in names.iter().enumerate().skip(from) {
            let mut larger = set.clone();
            larger.push(Arc::clone(card.profile(name).expect("it has it")));
            if let Ok(instances) = card.place(&larger, &[]) {
                all.push(Partition::of(&instances));
                open.push((at, larger));
            }
        }
    }
    all
}

/// Instances of one cut, without their places: `3g.20gb+2×2g.10gb`.
fn typed(partition: &Partition) -> String {
    partition.to_string().replace(' ', "")
}

#[test]
fn all_37_layouts_are_applied_exported_asserted_and_cleared() {
    let bench = sim::bench("a100-40gb");
    let cards = Cards::load(&checkout().join("mig-profiles")).expect("readable");
    let card = cards.find("a100-40gb").expect("it is known");
    let sets = every_set(card, &["7g.40gb", "4g.20gb", "3g.20gb", "2g.10gb", "1g.5gb"]);
    assert_eq!(sets.len(), 37);
    for (number, set) in sets.iter().enumerate() {
        let cut = typed(set);
        bench.collo(&["mig", "assert", &cut]).exits(1).answers("does not have layout");
        bench.collo(&["mig", "apply", &cut]).exits(0).answers(&format!("GPU 0 has layout `{cut}`"));
        bench.collo(&["mig", "assert", &cut]).exits(0);
        // What is exported is exactly what there is, and makes it again after everything was taken away.
        let exported = bench.collo(&["mig", "export"]).exits(0).stdout;
        let (toml, yaml) = (format!("{number}.toml"), format!("{number}.yaml"));
        bench.write(&toml, &exported);
        bench.write(&yaml, &bench.collo(&["mig", "export", "--format", "mig-parted"]).exits(0).stdout);
        bench.collo(&["mig", "clear"]).exits(0).answers("MIG mode   on → off");
        bench.collo(&["mig", "assert", &toml]).exits(1);
        bench.collo(&["mig", "apply", &toml]).exits(0);
        assert_eq!(bench.collo(&["mig", "export"]).exits(0).stdout, exported, "{cut}");
        bench.collo(&["mig", "assert", &yaml]).exits(0);
        bench.collo(&["mig", "apply", &yaml]).exits(0).answers("already; nothing was changed");
        bench.collo(&["mig", "assert", &layout::cut_text(set)]).exits(0);
    }
    bench.collo(&["mig", "clear"]).exits(0);
    bench.collo(&["mig", "clear"]).exits(0).answers("already; nothing was changed");
    bench.collo(&["mig", "assert", "off"]).exits(0);
    bench.collo(&["restore"]).exits(0).answers("every GPU is as it was found");
}

#[test]
fn a_layout_is_asserted_and_applied_by_its_name() {
    let bench = sim::bench("a100-40gb");
    bench.collo(&["mig", "apply", "balanced"]).exits(0);
    let answer = bench.collo(&["mig", "assert", "sevenths"]).exits(1).says("hint: collo mig apply sevenths");
    assert_eq!(
        answer.stdout,
        "simulated GPU 0 does not have layout `sevenths`: asked 7×1g.5gb, found 3g.20gb + 2g.10gb + 2×1g.5gb\n"
    );
    let answer = bench.collo(&["mig", "apply", "sevenths"]).exits(0).answers("  ✓ created    ");
    let back = answer.last_line().strip_prefix("back: collo ").expect("it names the way back").to_string();
    bench.collo(&["mig", "assert", "sevenths"]).exits(0).answers("GPU 0 has layout `sevenths`");
    bench.collo(&back.split(' ').collect::<Vec<_>>()).exits(0);
    bench.collo(&["mig", "assert", "balanced"]).exits(0);
    let value = bench.collo(&["mig", "export", "--json"]).exits(0).json();
    assert_eq!((&value["gpus"][0]["simulated"], &value["gpus"][0]["mig"]), (&true.into(), &true.into()));
    assert_eq!(value["gpus"][0]["cut"].as_array().expect("a list").len(), 4);
}

#[test]
fn two_compute_instances_in_one_gpu_instance_are_a_layout_too() {
    let bench = sim::bench("a100-40gb");
    bench.collo(&["mig", "apply", "2×1c.3g.20gb"]).exits(0).answers("created    2×1c.3g.20gb");
    let text = bench.collo(&["mig", "export"]).exits(0).answers("1c+1c.3g.20gb@").stdout;
    bench.write("divided.toml", &text);
    bench.collo(&["mig", "apply", "off"]).exits(0);
    bench.collo(&["mig", "apply", "divided.toml"]).exits(0);
    bench.collo(&["mig", "assert", "2x1c.3g.20gb"]).exits(0);
    bench.collo(&["mig", "assert", "3g.20gb"]).exits(1);
}

#[test]
fn of_several_gpus_each_gets_what_its_file_says_and_a_name_alone_is_for_none() {
    let bench = sim::bench("a100-40gb,gpus=2");
    bench.collo(&["mig", "apply", "sevenths"]).exits(2).says("2 GPUs can be partitioned, and none is named");
    bench.collo(&["mig", "apply", "halves", "--gpu", "1"]).exits(0).answers("GPU 1 has layout `halves`");
    bench.write("second.yaml", "version: v1\nmig-configs:\n  a: [{devices: [1], mig-enabled: true, mig-devices: {1g.5gb: 4}}]\n");
    for apply in [&["second.yaml"][..], &["sevenths", "--gpu", "1"]] {
        let answer = bench.collo(&[&["mig", "apply"], apply].concat()).exits(0);
        let back = answer.last_line().strip_prefix("back: collo ").expect("it names the way back").to_string();
        bench.collo(&back.split(' ').collect::<Vec<_>>()).exits(0);
        bench.collo(&["mig", "assert", "halves", "--gpu", "1"]).exits(0);
    }
    let text = bench.collo(&["mig", "export"]).exits(0).stdout;
    assert!(text.contains("[layout.gpu0]\ngpu = \"a100-40gb\"\nmig = false"), "{text}");
    bench.write("both.toml", &text);
    bench.write(
        "both.yaml",
        "version: v1\nmig-configs:\n  a: [{devices: [0], mig-enabled: true, mig-devices: {7g.40gb: 1}}]\n  \
         b: [{devices: all, device-filter: '0x20B010DE', mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n",
    );
    bench.collo(&["mig", "assert", "both.toml"]).exits(0);
    bench.collo(&["mig", "apply", "both.yaml"]).exits(2).says("name one, as in `both.yaml:a`");
    bench.collo(&["mig", "apply", "both.yaml:a"]).exits(0);
    bench.collo(&["mig", "assert", "both.toml"]).exits(1);
    bench.collo(&["mig", "apply", "both.yaml:b"]).exits(0);
    bench.collo(&["mig", "assert", "thirds", "--gpu", "0,1"]).exits(0);
    bench.collo(&["mig", "apply", "both.toml"]).exits(0);
    assert_eq!(bench.collo(&["mig", "export"]).exits(0).stdout, text);
}

#[test]
fn what_stands_in_the_way_of_a_cut_is_told_and_nothing_is_changed() {
    let refused = |scenario: &str, arguments: &[&str], code: i32| {
        let bench = sim::bench(scenario);
        let answer = bench.collo(arguments).exits(code);
        bench.collo(&["restore"]).exits(0).answers("every GPU is as it was found");
        answer
    };
    let apply = ["mig", "apply", "sevenths"];
    refused("a100-40gb,mig-no-permission", &apply, 3).says("it requires root or the capability `mig/config`");
    refused("a100-40gb,no-resources", &apply, 3).says("insufficient resources");
    let own = std::process::id();
    refused(&format!("a100-40gb,foreign={own}"), &apply, 3).says(&format!("GPU 0 is in use: pid {own}"));
    refused("a100-40gb", &["mig", "apply", "8×1g.5gb"], 2).says("`7×1g.5gb` would fit");
    refused("a100-40gb", &["mig", "apply", "seventh"], 2).says("did you mean `sevenths`?");
    refused("a100-40gb", &["mig", "apply", "none.toml"], 2).says("layout `none.toml` cannot be read");
    refused("a100-40gb", &["mig", "apply", "sevenths", "--gpu", "9"], 3).says("no GPU `9` here");
    // What was half done is undone.
    let bench = sim::bench("a100-40gb,ci-fails");
    bench.collo(&apply).exits(3);
    bench.collo(&["mig", "assert", "off"]).exits(0);
}

#[test]
fn without_a_driver_the_verbs_say_what_was_tried() {
    let bench = Bench::new().env("COLLO_NVML", "/no/such/library.so");
    bench.collo(&["mig", "export"]).exits(3).says("`collo mig export` needs an NVIDIA GPU: `COLLO_NVML=/no/such/library.so`");
}

/// What a campaign that was killed leaves behind: the card cut anew, and the journal of what was found.
fn killed(bench: &Bench, layout: &str) -> Journal {
    let before = bench.collo(&["mig", "export", "--json"]).exits(0).json();
    let text = bench.collo(&["mig", "export"]).exits(0).stdout;
    bench.write("before.toml", &text);
    bench.collo(&["mig", "apply", layout]).exits(0);
    let (card, mut ended) = (&before["gpus"][0], std::process::Command::new("true").spawn().expect("it starts"));
    let process = ended.id();
    ended.wait().expect("it ends");
    let slices = card["cut"].as_array().expect("a list").iter().map(|text| {
        let (profile, start) = text.as_str().expect("a text").split_once('@').expect("with its place");
        let compute = vec![profile[..1].parse().expect("a number")];
        collo_gpus::partition::Slice { profile: profile.into(), start: Some(start.parse().expect("a number")), compute }
    });
    let found = if card["mig"] == true { Partition::on(slices.collect()) } else { Partition::off() };
    let journal = Journal {
        schema: 1,
        uuid: card["uuid"].as_str().expect("a text").into(),
        label: "GPU 0".into(),
        name: "NVIDIA A100-SXM4-40GB".into(),
        simulated: true,
        experiment: "small-7way-mig".into(),
        campaign: "20261120-0210-c41d".into(),
        process,
        since_utc: "2026-11-20T02:10:41Z".into(),
        found,
        ..Journal::default()
    };
    bench.write(&format!(".state/{}.json", journal.uuid), &serde_json::to_string(&journal).expect("JSON"));
    journal
}

fn is_as_before(bench: &Bench) {
    bench.collo(&["mig", "assert", "before.toml"]).exits(0);
    assert!(journals(&bench.at(".state")).is_empty());
    bench.collo(&["restore"]).exits(0).answers("every GPU is as it was found");
}

fn journals(state: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs_err::read_dir(state).into_iter().flatten().flatten().map(|e| e.path());
    entries.filter(|p| p.extension().is_some_and(|e| e == "json")).collect()
}

#[test]
fn a_card_that_a_killed_collo_left_staged_goes_back_to_what_it_was() {
    let bench = sim::bench("a100-40gb");
    let journal = killed(&bench, "sevenths");
    let answer = bench.collo(&["restore"]).exits(0).says("resume: collo run small-7way-mig");
    let process = journal.process;
    assert_eq!(
        answer.stdout,
        format!(
            "20261120-0210-c41d of small-7way-mig left GPU 0 staged (process {process} is gone; simulated NVIDIA A100-SXM4-40GB)
  ✓ members        none left
  ✓ GPU instances  7 destroyed, with their compute instances
  ✓ MIG mode       on → off, as found at 02:10:41
  ! locked clocks  clocks locked with `nvidia-smi -lgc` were unlocked by the reset and cannot be read back
GPU 0 is as it was found
"
        )
    );
    is_as_before(&bench);
}

#[test]
fn instances_that_an_administrator_had_made_are_there_again_after_a_restore() {
    let bench = sim::bench("a100-40gb");
    bench.collo(&["mig", "apply", "3g.20gb+2g.10gb"]).exits(0);
    killed(&bench, "sevenths");
    bench.collo(&["restore", "--gpu", "0"]).exits(0).answers("2 created again, as found at 02:10:41");
    is_as_before(&bench);
}

#[test]
fn a_card_that_was_put_back_by_a_reboot_needs_only_its_journal_forgotten() {
    let bench = sim::bench("a100-40gb");
    killed(&bench, "sevenths");
    bench.collo(&["mig", "export", "--json"]).exits(0);
    fs_err::remove_dir_all(bench.at(".sim")).expect("there");
    bench.collo(&["restore"]).exits(0).answers("MIG off, as found at 02:10:41: nothing had to be done");
    is_as_before(&bench);
}

#[test]
fn a_card_that_a_living_collo_holds_is_left_alone() {
    let bench = sim::bench("a100-40gb");
    let journal = killed(&bench, "sevenths");
    let lock = fs_err::OpenOptions::new().append(true).create(true).open(bench.at(&format!(".state/{}.lock", journal.uuid)));
    let lock = lock.expect("a file").into_file();
    lock.lock().expect("free");
    bench.collo(&["restore"]).exits(3).says(&format!("GPU 0 is in use by another collo: process {}", journal.process));
    bench.collo(&["mig", "apply", "halves"]).exits(3).says("GPU 0 is in use by another collo");
    bench.collo(&["mig", "assert", "sevenths"]).exits(0);
    drop(lock);
    bench.collo(&["restore"]).exits(0);
    is_as_before(&bench);
}

#[test]
fn a_card_that_cannot_be_put_back_keeps_its_journal() {
    let bench = sim::bench("a100-40gb");
    killed(&bench, "sevenths");
    let bench = bench.env("COLLO_SIM", "a100-40gb,mig-no-permission");
    let answer: Answer = bench.collo(&["restore"]).exits(3);
    let answer = answer.says("error: GPU 0 is not as it was found (MIG off)");
    answer.says("it requires root or the capability `mig/config`").says("the journal is kept");
    assert_eq!(journals(&bench.at(".state")).len(), 1);
    let bench = bench.env("COLLO_SIM", "a100-40gb");
    bench.collo(&["restore"]).exits(0);
    is_as_before(&bench);
}

/// What becomes of a journal's text.
type Damage = fn(&str) -> String;

/// What can become of one, and what is said of it.
const DAMAGES: [(&str, Damage); 6] = [
    ("it is not JSON", |text| text[..text.len() / 2].into()),
    ("it is empty", |_| String::new()),
    ("it is not JSON", |_| "\u{1}garbage".into()),
    ("its schema is 999, and this collo reads 1", |text| text.replace("\"schema\":1", "\"schema\":999")),
    ("`stuck` is missing or unknown", |text| text.replace("\"schema\":1", "\"schema\":1,\"stuck\":true")),
    ("missing field `found`", |text| text.replace("\"found\":", "\"was\":")),
];

#[test]
fn a_journal_that_cannot_be_read_is_refused_and_kept() {
    let bench = sim::bench("a100-40gb");
    let journal = killed(&bench, "sevenths");
    bench.write(
        "experiments/x.toml",
        "schema = 1\ndevice = \"gpu\"\n[axes]\nworkload = \"small\"\nsharing = \"naive\"\ndegree = 2",
    );
    let path = bench.at(&format!(".state/{}.json", journal.uuid));
    let whole = fs_err::read_to_string(&path).expect("readable");
    let refused = |why: &str| {
        for arguments in [&["run", "x", "--no-report"][..], &["restore"], &["mig", "apply", "halves"]] {
            let answer =
                bench.collo(arguments).exits(3).says("cannot be read, so the original state of that GPU is unknown").says(why);
            assert_eq!(answer.stdout, "", "no all-clear");
        }
        bench.collo(&["status"]).exits(4).says(why).says(&format!("`rm {}`", path.display()));
        bench.collo(&["doctor"]).answers("cannot be read: ").answers(why);
        bench.collo(&["mig", "assert", "sevenths"]).exits(0);
    };
    for (why, damage) in DAMAGES {
        let text = damage(&whole);
        assert_ne!(text, whole);
        fs_err::write(&path, &text).expect("written");
        refused(why);
        assert_eq!(fs_err::read_to_string(&path).expect("kept"), text);
    }
    fs_err::remove_file(&path).expect("there");
    fs_err::os::unix::fs::symlink("/nowhere", &path).expect("a link");
    refused("is a link");
    fs_err::remove_file(&path).expect("kept");
    // Whole again, it is what it was.
    fs_err::write(&path, &whole).expect("written");
    bench.collo(&["restore"]).exits(0);
    is_as_before(&bench);
}

#[test]
fn the_doctor_says_what_simulated_cards_can_measure_and_that_they_are_simulated() {
    let bench = sim::bench("a100-40gb,gpus=2");
    let answer = bench.collo(&["doctor", "--require", "gpu,mps,mig,smact,energy"]).exits(0);
    assert!(answer.stdout.starts_with("! simulated: every number here comes from a model\n"), "{}", answer.stdout);
    let answer = answer.answers("gpus        0 and 1 NVIDIA A100-SXM4-40GB; MIG off").answers("a private daemon responds in");
    let answer = answer.answers("agree on 7 of 7 profiles");
    assert!(answer.stdout.ends_with("can measure: naive, mps, mig on GPUs 0 and 1\n"), "{}", answer.stdout);
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

#[test]
fn the_doctor_names_what_is_required_and_missing() {
    let own = std::process::id();
    let bench = sim::bench(&format!("a100-40gb,no-dcgm,no-persistence,mps-no-start,foreign={own}"));
    let answer = bench.collo(&["doctor", "--require", "gpu,mps,smact,energy"]).exits(3);
    let answer = answer.says("missing requirements: mps, smact, energy").answers("✗ mps ");
    let answer = answer.answers("hint: `sudo nvidia-smi -pm 1`").answers(&format!("! in use      GPU 0: pid {own}"));
    answer.answers("Cannot: anything on a GPU: none is free, mps");
    let value = bench.collo(&["doctor", "--json"]).exits(0).json();
    assert_eq!(value["checks"][0]["check"], "simulated");
    Bench::new()
        .env("COLLO_NVML", "/no/such.so")
        .collo(&["doctor", "--require", "gpu"])
        .exits(3)
        .says("missing requirements: gpu");
}

#[test]
fn a_daemon_that_hangs_does_not_hang_the_doctor() {
    let bench = sim::bench("a100-40gb,mps-slow=30s");
    let begun = std::time::Instant::now();
    bench.collo(&["doctor"]).exits(0).answers("✗ mps ");
    assert!(begun.elapsed().as_secs() < 25, "{:?}", begun.elapsed());
    bench.nothing_is_left(std::time::Duration::from_secs(60));
}

#[test]
fn status_and_doctor_tell_a_card_that_is_not_as_it_was_found() {
    let bench = sim::bench("a100-40gb");
    killed(&bench, "sevenths");
    let text = "GPU 0  left staged: 7×1g.5gb; found: MIG off";
    bench.collo(&["status"]).exits(4).answers(text).says("back: collo restore");
    bench.collo(&["doctor"]).exits(0).answers("GPU 0 is not as it was found (MIG off): 20261120-0210-c41d of small-7way-mig");
    let value = bench.collo(&["status", "--json"]).exits(4).json();
    assert_eq!((&value["gpus"][0]["held"], &value["gpus"][0]["found"]), (&false.into(), &"MIG off".into()));
    bench.collo(&["restore"]).exits(0);
    bench.collo(&["status"]).exits(0);
}

#[test]
fn a_campaign_that_is_killed_on_a_cut_card_is_put_back_from_its_own_journal() {
    let bench = sim::bench("a100-40gb");
    bench.write(
        "experiments/x.toml",
        "schema = 1\ndevice = \"gpu\"\nrepetitions = 1\ncooldown = \"0s\"\n[axes]\nworkload = \"small\"\nbatch_size = 32\ndegree = 7\nsharing = \"mig\"\n",
    );
    let python = sim::program("sim-train").display().to_string();
    bench.write("before.toml", &bench.collo(&["mig", "export"]).exits(0).stdout);
    let mut running = bench.start(&["run", "x", "--no-report", "--python", &python]);
    crate::support::wait_for("a journal", || (!journals(&bench.at(".state")).is_empty()).then_some(()));
    crate::support::wait_for("a cut", || (bench.collo(&["mig", "assert", "off"]).code == Some(1)).then_some(()));
    bench.collo(&["restore"]).exits(3).says("GPU 0 is in use by another collo: process");
    // The card is cut before its campaign is begun.
    crate::support::wait_for("a campaign in the journal", || {
        let text = fs_err::read_to_string(journals(&bench.at(".state")).first()?).ok()?;
        let journal: serde_json::Value = serde_json::from_str(&text).ok()?;
        journal["campaign"].as_str().filter(|name| !name.is_empty()).map(str::to_string)
    });
    running.signal(nix::sys::signal::Signal::SIGKILL);
    running.ends();
    bench.nothing_is_left(std::time::Duration::from_secs(60));
    bench.collo(&["restore"]).exits(0).says("resume: collo run x").answers("runs are stored");
    is_as_before(&bench);
}
