//! A campaign carried to another folder as a bundle, its comments and its provenance.

use std::process::Command;

use crate::sim::Machine;
use crate::support::Bench;
use crate::support::skip::skip;

fn measured() -> Bench {
    let bench = Bench::of("repetitions = 2\nepochs = 2\n[axes]\nworkload = \"sleep\"\ndegree = 2\nseconds = 0.1\n");
    bench.run(&[]).exits(0);
    bench
}

#[test]
fn a_bundle_is_read_and_run_again_in_a_folder_of_its_own() {
    let bench = measured();
    bench.collo(&["show", "last", "--comment", "for the paper"]).exits(0).answers("for the paper");
    bench.collo(&["bundle", "last", "--to", "carried.tar.gz"]).exits(0).answers("files").says("collo run carried.tar.gz");
    // Elsewhere nothing of the project is there.
    let elsewhere = Bench::new();
    fs_err::remove_dir_all(elsewhere.at("workloads")).expect("removed");
    fs_err::remove_dir_all(elsewhere.at("experiments")).expect("removed");
    fs_err::copy(bench.at("carried.tar.gz"), elsewhere.at("carried.tar.gz")).expect("copied");
    elsewhere.collo(&["verify", "carried.tar.gz"]).exits(0).answers("checksums agree");
    // It is unpacked below the cache, where there is no project; the folder of temporary files may be as small as memory.
    let verified = elsewhere.command(&["verify", "carried.tar.gz"]).env("TMPDIR", "/nowhere").output().expect("collo starts");
    crate::support::Answer::from(verified).exits(0).answers("checksums agree");
    elsewhere.collo(&["show", "carried.tar.gz"]).exits(0).answers("for the paper");
    let campaign = bench.campaign();
    let folder = format!("x-{}", campaign.manifest().id);
    let next = format!("next:   collo -C {folder} show last");
    elsewhere.collo(&["run", "carried.tar.gz"]).exits(0).says("unpacked into").says(&next);
    let runs = collo_store::Runs::at(elsewhere.at(&folder).join("runs"));
    let (campaigns, _) = runs.campaigns().expect("readable");
    assert_eq!(campaigns.len(), 2, "that of the bundle, and a new one");
    let files = |c: &collo_store::CampaignFolder| {
        let all = c.manifest().ingredients.clone().into_iter();
        all.filter(|(name, _)| name.starts_with("workloads/") || name == "experiment").collect::<Vec<_>>()
    };
    assert_eq!(files(&campaigns[0]), files(&campaigns[1]), "the same ingredients");
    elsewhere.collo(&["run", "carried.tar.gz"]).exits(2).says("already exists");
    elsewhere.collo(&["-C", &folder, "compare", "last-1", "last"]).exits(0);
    let typed = format!("collo -C {folder} run study-uniform");
    elsewhere.collo(&["-C", &folder, "compare", "published:study", "last"]).exits(2).answers(&typed);
}

#[test]
fn a_bundle_keeps_what_was_included_set_and_selected() {
    let bench = Bench::of(
        "include = [\"parts/common.toml\"]\nrepetitions = 1\n# included: is no file here\n[axes]\nworkload = \"sleep\"\ndegree = [1, 2]\n",
    );
    bench.write("experiments/parts/common.toml", "include = [\"../../shared.toml\"]\nepochs = 2\n");
    bench.write("shared.toml", "[axes]\nseconds = 0.1\n");
    bench.run(&["--set", "repetitions=2", "--where", "degree == 2"]).exits(0);
    // What lies there now is not what was measured.
    bench.write("experiments/parts/common.toml", "epochs = 9\n");
    bench.collo(&["bundle", "last", "--to", "carried.tar.gz"]).exits(0);
    bench.collo(&["run", "carried.tar.gz"]).exits(0);
    let there = bench.campaign();
    let folder = bench.at(&format!("x-{}", there.manifest().id));
    assert_eq!(fs_err::read_to_string(folder.join("shared.toml")).expect("there"), "[axes]\nseconds = 0.1\n");
    let (campaigns, _) = collo_store::Runs::at(folder.join("runs")).campaigns().expect("readable");
    assert_eq!(campaigns.len(), 2);
    let planned = |c: &collo_store::CampaignFolder| {
        let m = c.manifest();
        let cells: Vec<_> = m.plan.cells.iter().map(|cell| cell.cell.clone()).collect();
        let of_experiment =
            |name: &str| ["experiment", "include ", "--set ", "--where"].iter().any(|kind| name.starts_with(kind));
        let texts: Vec<_> = m.ingredients.clone().into_iter().filter(|(name, _)| of_experiment(name)).collect();
        (cells, m.plan.order.len(), m.plan.epochs, texts, m.source_toml.clone())
    };
    assert_eq!(planned(&campaigns[0]), planned(&campaigns[1]));
    assert_eq!(planned(&there).3.len(), 5, "{:?}", planned(&there).3);
}

#[test]
fn an_experiment_that_includes_what_lies_elsewhere_is_no_bundle() {
    let above = tempfile::Builder::new().suffix(".toml").tempfile().expect("a file beside the project");
    fs_err::write(above.path(), "[axes]\nseconds = 0.1\n").expect("written");
    let name = above.path().file_name().expect("a name").to_string_lossy();
    let bench = Bench::of(&format!("include = [\"../../{name}\"]\n[axes]\nworkload = \"sleep\"\ndegree = 1\n"));
    bench.run(&[]).exits(0);
    bench.collo(&["bundle", "last"]).exits(2).says("which has no place in a bundle");
}

#[test]
fn a_bundle_of_changed_workloads_is_refused_and_a_damaged_one_is_none() {
    let bench = measured();
    let script = fs_err::read_to_string(bench.at("workloads/sleep/train.py")).expect("a script");
    bench.write("workloads/sleep/train.py", &format!("{script}\n# changed\n"));
    bench.collo(&["bundle", "last"]).exits(2).says("workloads/sleep/train.py");
    assert_eq!(
        fs_err::read_dir(bench.at(""))
            .expect("readable")
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().ends_with(".gz"))
            .count(),
        0
    );
    bench.collo(&["bundle", "last", "--force", "--to", "b.tar.gz"]).exits(0);
    // The folder that it is in here is not there.
    let place = bench.at("").display().to_string();
    let named = bench.collo(&["-C", &place, "bundle", "last", "--force", "--to", "c.tar.gz"]).exits(0);
    named.says("next, on another machine: collo run c.tar.gz");
    let mut bytes = fs_err::read(bench.at("b.tar.gz")).expect("there");
    bytes.truncate(bytes.len() / 2);
    fs_err::write(bench.at("half.tar.gz"), bytes).expect("written");
    bench.collo(&["run", "half.tar.gz"]).exits(2).says("is not a bundle of collo");
    bench.collo(&["bundle", "last", "--force", "--to", "b.zip"]).exits(2).says("does not end in `.tar.gz`");
}

#[test]
fn a_bundle_contains_nothing_from_outside_the_project_that_its_user_does_not_know_of() {
    use std::os::unix::fs::symlink;
    let secret = tempfile::NamedTempFile::new().expect("a file outside the project");
    fs_err::write(secret.path(), "a key").expect("written");
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\ndegree = 1\nseconds = 0.1\n");
    symlink(secret.path(), bench.at("workloads/sleep/data.txt")).expect("linked");
    symlink("train.py", bench.at("workloads/sleep/same.py")).expect("linked");
    bench.run(&[]).exits(0);
    let place = format!("`workloads/sleep/data.txt` is `{}`", secret.path().canonicalize().expect("there").display());
    let refused =
        bench.collo(&["bundle", "last", "--to", "b.tar.gz"]).exits(2).says(&place).says("links that lead out of the project");
    assert!(!refused.stderr.contains("same.py"), "a link inside the project is a file of it: {}", refused.stderr);
    assert!(!bench.at("b.tar.gz").exists());
    bench.collo(&["bundle", "last", "--to", "b.tar.gz", "--force"]).exits(0).says(&place).says("its contents are packed");
}

#[test]
fn comments_are_listed_with_their_time_and_are_no_part_of_what_was_measured() {
    let bench = measured();
    assert!(!bench.collo(&["show"]).exits(0).stdout.contains("comment, "));
    bench.collo(&["show", "last", "--comment", "fans at full speed"]).exits(0);
    bench.collo(&["show", "x", "--comment", "second\u{1b}[31m"]).exits(0).answers("fans at full speed");
    bench.collo(&["list"]).exits(0).answers("second");
    bench.collo(&["show"]).exits(0).answers("comment, 20").answers("fans at full speed");
    bench.collo(&["verify"]).exits(0);
    let report = bench.collo(&["--json", "report"]).exits(0).json();
    assert_eq!(report["comments"][0]["text"], "fans at full speed");
    let answer = bench.collo(&["show", "--comment", "third", "--json"]).exits(0).json();
    assert_eq!((&answer["schema"], &answer["comments"][2]["text"]), (&1.into(), &"third".into()));
    bench.collo(&["show", "last", "--comment", "  "]).exits(2);
}

#[test]
fn how_a_campaign_was_started_is_stored_and_its_secrets_are_not() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\ndegree = 1\nseconds = 0.1\n")
        .env("OMP_PROC_BIND", "close")
        .env("HF_TOKEN", "hf_very_secret");
    bench.run(&[]).exits(0);
    let shown = bench.collo(&["show", "--provenance"]).exits(0);
    for there in ["collo run x --no-report", "OMP_PROC_BIND", "close", "train.py --seconds 0.1", "the packages of"] {
        assert!(shown.stdout.contains(there), "{there} is not in\n{}", shown.stdout);
    }
    let report = bench.collo(&["--json", "report"]).exits(0).json();
    assert_eq!(report["surroundings"]["variables"]["HF_TOKEN"], "(set)");
    let stored = fs_err::read_to_string(bench.campaign().path().join("campaign.json")).expect("there");
    assert!(!stored.contains("hf_very_secret"));
}

#[test]
fn the_commit_is_stored_and_whether_anything_is_not_committed() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.05\n").file(".gitignore", "/runs\n__pycache__\n");
    let git = |arguments: &[&str]| {
        let author = ["-c", "user.name=x", "-c", "user.email=x@localhost"];
        let output = Command::new("git").args(author).args(arguments).current_dir(bench.at("")).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    if git(&["init", "--quiet"]).is_none() {
        return skip("git", "there is no git");
    }
    git(&["add", "."]).expect("added");
    git(&["commit", "--quiet", "--message", "x"]).expect("committed");
    let commit = git(&["rev-parse", "--short", "HEAD"]).expect("there");
    bench.run(&[]).exits(0);
    bench.collo(&["show", "--provenance"]).exits(0).answers(&format!("  git               {commit}\n"));
    bench.write("notes", "of nothing that is committed");
    bench.run(&["--new"]).exits(0);
    bench.collo(&["show", "--provenance"]).exits(0).answers(&format!("  git               {commit}\n"));
    bench.write(".gitignore", "/runs\n/reports\n__pycache__\n");
    bench.run(&["--new"]).exits(0);
    bench.collo(&["show", "--provenance"]).exits(0).answers(&format!("  git               {commit}-dirty\n"));
}

#[test]
fn the_gpu_is_stored_with_its_driver_clocks_and_settings() {
    let machine = Machine::new("a100-40gb,driver=580.1", "[axes]\nworkload = \"small\"\n");
    machine.run(&[]).exits(0);
    let shown = machine.collo(&["show", "--provenance"]).exits(0);
    let uuid = machine.uuid(0);
    for (name, value) in [
        ("GPU", "simulated NVIDIA A100-SXM4-40GB"),
        ("UUID", uuid.as_str()),
        ("driver", "580.1"),
        ("CUDA", "13."),
        ("VBIOS", "92."),
        ("clocks", "at most 1410 MHz"),
        ("power cap", "400 W"),
        ("ECC", "on"),
        ("persistence", "on"),
        ("compute mode", "Default"),
        ("MIG as found", "MIG off"),
        ("kernel", "Linux "),
        ("memory", ""),
        ("os", ""),
    ] {
        assert!(shown.stdout.contains(&format!("\n  {name:<17} {value}")), "{name} is not {value} in\n{}", shown.stdout);
    }
}

#[test]
fn names_and_ids_complete() {
    let bench = measured().experiment("other", "tags = [\"nightly\"]\n[axes]\nworkload = \"sleep\"\ndegree = 1\n");
    let complete = |words: &[&str]| {
        let mut command = bench.command(&[&["--"], words].concat());
        command.env("COLLO_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
        command.env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "false");
        let answer = command.output().expect("it starts");
        String::from_utf8(answer.stdout).expect("text").lines().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["collo", "plan", "oth"]), ["other"]);
    let id = bench.campaign().manifest().short_id().to_string();
    assert!(complete(&["collo", "report", ""]).contains(&id));
    assert!(complete(&["collo", "show", "last", "sleepx2"]).iter().any(|c| c.starts_with("sleepx2")));
    assert_eq!(complete(&["collo", "run", "--tag", "ni"]), ["nightly"]);
    assert!(complete(&["collo", "workload", "show", "sl"]).contains(&"sleep".to_string()));
    let script = bench.collo(&["completions", "bash"]).exits(0);
    assert!(script.stdout.contains("COLLO_COMPLETE=\"bash\""), "{}", script.stdout);
}

#[test]
fn every_verb_has_a_manual_page_and_help() {
    let bench = Bench::new();
    bench.collo(&["man", "man1"]).exits(0).says("man -l");
    for page in ["collo.1", "collo-run.1", "collo-merge.1", "collo-completions.1", "collo-man.1"] {
        let text = fs_err::read_to_string(bench.at(&format!("man1/{page}"))).expect(page);
        assert!(text.contains(".SH NAME"), "{text}");
    }
    bench.collo(&["help", "run"]).exits(0).answers("--shard");
    let page = bench.collo(&["--help"]).exits(0).stdout;
    let daily = page.split("\n\n").find(|part| part.starts_with("Every day")).expect("a group");
    insta::assert_snapshot!(daily, @r"
    Every day
      try          Run commands of your own alone and together, and report whether they should share this machine's GPU or CPU
      init         Write the built-in experiments, workloads and MIG profiles, and a justfile
      plan         Show the cells of an experiment, their order, the forecast, and what cannot run here
      run          Measure an experiment, or finish an unfinished campaign
      report       Write the guideline report of a campaign
      compare      Compare two campaigns, or GPU generations, with a verdict per cell
      list         List campaigns; or experiments, workloads, modes, observers, gpus, layouts, policies, traces
      show         Show a campaign, or one of its cells in full; --comment adds a comment
      doctor       Check this machine: GPUs, driver, MPS, MIG, permissions
    ");
    let all = bench.collo(&["help", "all"]).exits(0).stdout;
    assert!(page.contains("\nAll commands: collo help all\n") && all.starts_with(daily), "{page}{all}");
    assert!(all.contains("\nMeasure\n  status") && all.contains("\n  completions"), "{all}");
    bench.collo(&["all"]).exits(2);
    bench.collo(&["help", "simulation"]).exits(0).answers("The simulated GPU\n====");
    bench.collo(&["help", "topics"]).exits(0).answers("real-gpu     Measuring a real NVIDIA GPU");
    bench.collo(&["help", "servings"]).exits(2).says("did you mean `collo help serving`?");
}

#[test]
fn a_report_is_opened_where_there_is_a_display_and_where_not_it_says_so() {
    let bench = measured();
    let opens = |bench: &Bench, display: &str| {
        let mut command = bench.command(&["report", "--open"]);
        command.env("DISPLAY", display).env_remove("WAYLAND_DISPLAY").env_remove("BROWSER");
        command.env("PATH", format!("{}:{}", bench.at("bin").display(), std::env::var("PATH").unwrap_or_default()));
        let answer = command.output().expect("it starts");
        (answer.status.code(), String::from_utf8_lossy(&answer.stderr).into_owned())
    };
    let (code, said) = opens(&bench, "");
    assert!(code == Some(3) && said.contains("no display"), "{said}");
    for (status, expected, words) in [(0, Some(0), "report: "), (3, Some(3), "no browser was found")] {
        bench.write("bin/xdg-open", &format!("#!/bin/sh\necho \"$1\" > opened\nexit {status}\n"));
        std::fs::set_permissions(bench.at("bin/xdg-open"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
        let (code, said) = opens(&bench, ":0");
        assert!(code == expected && said.contains(words), "{said}");
        assert!(fs_err::read_to_string(bench.at("opened")).expect("it was started").contains(".html"));
    }
}

#[test]
fn a_cell_is_shown_by_its_number_in_the_plan() {
    let bench = measured();
    let cells = bench.campaign().manifest().plan.cells.clone();
    for (place, cell) in cells.iter().enumerate() {
        let number = (place + 1).to_string();
        bench.collo(&["plan", "x"]).exits(0).answers(&format!("\n{number}  {}", cell.cell));
        bench.collo(&["show", "last", &number]).exits(0).answers(&format!("{} of ", cell.cell));
    }
    bench.collo(&["show", "last", "99"]).exits(2).says(&format!("they have numbers from 1 to {}", cells.len()));
    bench.collo(&["show", "last", "sleep x2"]).exits(0).answers("sleep×2 naive");
    bench.collo(&["show", "last", "slep×2"]).exits(2).says("did you mean `sleep×2 naive");
}

#[test]
fn several_experiments_are_measured_once_every_name_is_understood() {
    let bench = measured();
    let text = fs_err::read_to_string(bench.at("experiments/x.toml")).expect("there");
    bench.write("experiments/y.toml", &text);
    let before = bench.campaigns();
    bench.collo(&["run", "x", "nothing", "--new", "--no-report"]).exits(2).says("unknown experiment `nothing`");
    bench.collo(&["run", "python", "train.py"]).exits(2).says("`collo try 'python train.py'` measures it");
    assert_eq!(bench.campaigns(), before);
    bench.collo(&["run", "x", "y", "--new", "--no-report"]).exits(0);
    assert_eq!(bench.campaigns(), before + 2);
}

#[test]
fn hints_lead_somewhere() {
    let bench = measured().env("COLLO_COMMAND", "sim");
    bench.collo(&["plan", "x"]).exits(0).says("next: sim run x");
    bench.collo(&["plan"]).exits(2).says("experiments are x").says("--tag TAG");
    bench.collo(&["run", "x", "degree=2"]).exits(2).says("--where 'degree == 2'");
    bench.write(
        "experiments/mine.toml",
        "schema = 1\nname = \"other\"\ndevice = \"cpu\"\n[axes]\nworkload = \"sleep\"\ndegree = 1\n",
    );
    bench.collo(&["plan", "mine"]).exits(0).says("next: sim run mine");
    let planned = bench.collo(&["plan", "x", "--gpu", "a100-40gb"]);
    assert!(!planned.stderr.contains("next: "), "{}", planned.stderr);
    // One run decides nothing, however quiet the machine is.
    let once = Bench::of("repetitions = 1\nepochs = 2\n[axes]\nworkload = \"sleep\"\ndegree = 2\nseconds = 0.1\n");
    let once = once.env("COLLO_COMMAND", "sim");
    once.run(&[]).exits(0);
    once.collo(&["report", "last"]).exits(0).answers("`sim run x --more ");
}

#[test]
fn a_bundle_has_every_file_that_a_run_knows_of() {
    let bench = measured();
    let campaign = bench.campaign();
    let run = campaign.runs().expect("readable").0.into_values().next().expect("one").path;
    let file = run.join("run.json");
    let mut record: serde_json::Value = serde_json::from_str(&fs_err::read_to_string(&file).expect("there")).expect("JSON");
    for name in ["observer/.duct", "observer/lock"] {
        fs_err::create_dir_all(run.join("observer")).expect("made");
        fs_err::write(run.join(name), "x").expect("written");
        record["files"][name] = serde_json::json!({"bytes": 1, "sha256": ""});
    }
    fs_err::write(&file, record.to_string()).expect("written");
    crate::support::noted::noted(campaign.path());
    bench.collo(&["verify"]).exits(0);
    bench.collo(&["bundle", "last", "--to", "b.tar.gz"]).exits(0);
    bench.collo(&["verify", "b.tar.gz"]).exits(0).answers("checksums agree");
}
