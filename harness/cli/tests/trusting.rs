//! What another user could have written is not executed, and what only looks at a project executes nothing of it.
//!
//! The other user is `nobody`, so most of this needs root.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use collo_prepare::python::{PinSet, PythonEnvironment};

use crate::support::skip::skip;
use crate::support::{Answer, Bench, checkout, collo};

/// Whether files can be given away here.
fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        skip("root", "only root can give files away");
    }
    is_root
}

fn give(path: &Path, to: &str) {
    let status = Command::new("chown").arg("-Rh").arg(to).arg(path).status();
    assert!(status.expect("chown").success());
}

fn give_to_nobody(path: &Path) {
    give(path, "65534:65534");
}

fn give_to_root(path: &Path) {
    give(path, "0:0");
}

fn mode(path: &Path, mode: u32) {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
}

/// A workload whose script notes that it was executed, and in a description says nothing.
const WORKLOAD: &str =
    "command = [\"python\", \"train.py\", \"{settings}\"]\nenvironment = \"system\"\n[settings]\nbatch_size = 32\n";
const SCRIPT: &str = "import os\nopen(os.environ['EXECUTED'], 'a').write('x')\n";

/// A project with that workload in experiment `x`, and where its script notes.
fn project() -> Bench {
    let card = fs_err::read_to_string(checkout().join("mig-profiles/a100-40gb.toml")).expect("there");
    let experiment = "schema = 1\ndevice = \"auto\"\nrepetitions = 1\ncooldown = \"0s\"\n[axes]\nworkload = \"mine\"\n";
    let bench = Bench::new()
        .file("experiments/x.toml", experiment)
        .file("mig-profiles/a100-40gb.toml", &card)
        .file("workloads/mine/workload.toml", WORKLOAD)
        .file("workloads/mine/train.py", SCRIPT);
    let at = |name: &str| bench.at(name).display().to_string();
    let (executed, state, cache) = (at("executed"), at(".state"), at(".cache"));
    bench.env("EXECUTED", &executed).env("COLLO_STATE", &state).env("COLLO_CACHE", &cache)
}

/// How often the script was executed since the last look.
fn executed(bench: &Bench) -> usize {
    let times = fs_err::read_to_string(bench.at("executed")).unwrap_or_default().len();
    let _ = fs_err::remove_file(bench.at("executed"));
    times
}

fn inside(bench: &Bench, folder: &Path, arguments: &[&str]) -> Answer {
    Answer::from(bench.command(arguments).current_dir(folder).output().expect("collo starts"))
}

#[test]
fn a_project_of_another_user_in_a_parent_folder_is_used_only_if_it_is_named() {
    if !is_root() {
        return;
    }
    let bench = project();
    let own = bench.at("own/below");
    fs_err::create_dir_all(&own).expect("a folder");
    for name in ["", "experiments"] {
        give_to_root(&bench.at(""));
        give_to_nobody(&bench.at(name));
        let why = if name.is_empty() { " belongs to `nobody`" } else { "experiments belongs to `nobody`" };
        for arguments in
            [&["run", "x", "--no-report"][..], &["plan", "x"], &["predict", "mine", "--describe"], &["report"], &["list"]]
        {
            let refused =
                inside(&bench, &own, arguments).exits(3).says(why).says("is not used: another user could have written it");
            refused.says("-C ").says("executes what is in it as you");
        }
        assert_eq!(executed(&bench), 0, "{name}");
        assert!(!bench.at("reports").exists() && !bench.at("runs").exists(), "{name}");
    }
    give_to_root(&bench.at(""));
    mode(&bench.at(""), 0o1777);
    inside(&bench, &own, &["run", "x", "--no-report"]).exits(3).says("everyone may write in");
    assert_eq!(executed(&bench), 0);
    let root = bench.at("").display().to_string();
    inside(&bench, &own, &["-C", root.trim_end_matches('/'), "run", "x", "--no-report"]);
    assert!(executed(&bench) > 0, "it was named");
}

#[test]
fn in_sudo_a_project_of_its_caller_is_used() {
    if !is_root() {
        return;
    }
    let bench = project().env("SUDO_UID", "65534").env("SUDO_GID", "65534");
    for name in ["", "experiments", "workloads", "mig-profiles"] {
        give_to_nobody(&bench.at(name));
    }
    bench.collo(&["plan", "x"]).exits(0);
}

#[test]
fn no_python_of_another_user_is_started_whatever_the_home_and_the_cache() {
    if !is_root() {
        return;
    }
    collo_launch::supervisor::is_at(collo());
    let bench = Bench::new();
    let home = bench.at("home");
    let log = bench.at("log");
    let cache = home.join(".cache/collo");
    let environment =
        PythonEnvironment::of(&bench.at("workloads"), &cache, PinSet::for_this_machine()).expect("the pins are there");
    let python = environment.interpreter();
    fs_err::create_dir_all(python.parent().expect("a folder")).expect("a folder");
    fs_err::write(&python, format!("#!/bin/sh\nid -u >> {}\nexec python3 \"$@\"\n", log.display())).expect("written");
    mode(&python, 0o755);
    let doctor = |cache: Option<&Path>, home: &Path| {
        let mut command = bench.command(&["doctor"]);
        command.env_remove("COLLO_CACHE").env_remove("XDG_CACHE_HOME").env("HOME", home);
        command.envs(cache.map(|cache| ("COLLO_CACHE", cache)));
        Answer::from(command.output().expect("collo starts"))
    };
    doctor(None, &home);
    assert!(log.exists(), "root's own is started, or this test proves nothing");
    fs_err::remove_file(&log).expect("there");
    give_to_nobody(&home);
    doctor(None, &home);
    assert!(!log.exists(), "the home is another's");
    doctor(Some(&cache), &home).answers("others could have written there");
    assert!(!log.exists(), "the cache is another's");
    give_to_root(&home);
    give_to_nobody(&python);
    doctor(Some(&cache), &home);
    assert!(!log.exists(), "the interpreter is another's");
}

#[test]
fn root_starts_no_interpreter_that_a_project_names_and_another_user_could_have_written() {
    if !is_root() {
        return;
    }
    let own = WORKLOAD.replace("\"system\"", "\"../../elsewhere\"");
    let bench = project().file("workloads/mine/workload.toml", &own);
    let elsewhere = bench.at("elsewhere/bin/python");
    bench.write("elsewhere/bin/python", "#!/bin/sh\necho x >> \"$EXECUTED\"\nexec python3 \"$@\"\n");
    mode(&elsewhere, 0o755);
    give_to_nobody(&bench.at("elsewhere"));
    bench
        .collo(&["run", "x", "--no-report"])
        .exits(3)
        .says("is not started as root")
        .says("belongs to `nobody`")
        .says("chown -R root");
    assert_eq!(executed(&bench), 0);
}

#[test]
fn a_plan_starts_no_script_of_a_project_before_the_user_ran_it_or_asked_for_it() {
    let bench = project();
    let plan = |bench: &Bench, more: &[&str]| bench.collo(&[&["plan", "x", "--gpu", "a100-40gb"], more].concat());
    let first = plan(&bench, &[]).exits(0).says("memory is not predicted: that starts scripts of this project");
    first.says("`--describe` starts them");
    let json = plan(&bench, &["--json"]).exits(0).json();
    let forecast = &json["cells"][0]["forecast"];
    assert!(forecast["memory_bytes"].is_null() && forecast["memory_from"].is_null(), "absent, not 0: {json}");
    bench
        .collo(&["predict", "mine", "--gpu", "a100-40gb"])
        .exits(2)
        .says("`mine` is not predicted")
        .says("`--describe` starts them");
    bench.collo(&["predict", "x", "--gpu", "a100-40gb"]).exits(2).says("`x` is not predicted").says("`--describe` starts them");
    assert_eq!(executed(&bench), 0, "nobody asked for it");
    plan(&bench, &["--describe"]).exits(0);
    assert!(executed(&bench) > 0, "it was asked for");
    plan(&bench, &[]).exits(0);
    assert_eq!(executed(&bench), 0, "a plan is no run");
    bench.run(&[]);
    assert!(executed(&bench) > 0, "it ran");
    plan(&bench, &[]).exits(0);
    assert!(executed(&bench) > 0, "it was run before");
    // The same files elsewhere, stored runs and all, are another project.
    let copy = project();
    let status = Command::new("cp").arg("-a").arg(bench.at("runs")).arg(copy.at("runs")).status();
    assert!(status.expect("cp").success());
    let state = bench.at(".state").display().to_string();
    let copy = copy.env("COLLO_STATE", &state);
    plan(&copy, &[]).exits(0).says("memory is not predicted");
    assert_eq!(executed(&copy), 0);
}

#[test]
fn a_plan_starts_no_interpreter_that_a_project_names() {
    let own = WORKLOAD.replace("\"system\"", "\"./env\"");
    let bench = project().file("workloads/mine/workload.toml", &own).file(
        "experiments/x.toml",
        "schema = 1\ndevice = \"cpu\"\n[axes]\nworkload = \"mine\"\ndegree = 2\nsharing = [\"threads\"]\n",
    );
    bench.write("workloads/mine/env/bin/python", "#!/bin/sh\necho x >> \"$EXECUTED\"\nexec python3 \"$@\"\n");
    mode(&bench.at("workloads/mine/env/bin/python"), 0o755);
    bench.collo(&["plan", "x"]);
    assert_eq!(executed(&bench), 0);
    bench.collo(&["plan", "x", "--describe"]);
    assert!(executed(&bench) > 0, "it was asked for");
}

#[test]
fn a_bundle_is_looked_at_without_executing_anything_and_its_project_counts_as_never_run() {
    let bench = project();
    bench.run(&[]);
    bench.collo(&["bundle", "last", "--to", "x.tar.gz"]).exits(0);
    executed(&bench);
    let place = tempfile::tempdir().expect("a folder");
    fs_err::copy(bench.at("x.tar.gz"), place.path().join("x.tar.gz")).expect("copied");
    // Programs that nobody is to start.
    let programs = place.path().join("programs");
    fs_err::create_dir(&programs).expect("a folder");
    for name in ["git", "python3"] {
        fs_err::write(programs.join(name), "#!/bin/sh\necho \"$0 $*\" >> \"$EXECUTED\"\nexit 1\n").expect("written");
        mode(&programs.join(name), 0o755);
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let bench = bench.env("PATH", &path);
    // Its runs crashed, which is what `verify` ends with.
    for (verb, code) in [("show", 0), ("verify", 1), ("report", 0)] {
        inside(&bench, place.path(), &[verb, "x.tar.gz"]).exits(code);
        assert_eq!(executed(&bench), 0, "{verb}");
    }
    let status = Command::new("tar").arg("-xzf").arg("x.tar.gz").current_dir(place.path()).status();
    assert!(status.expect("tar").success());
    let unpacked = fs_err::read_dir(place.path()).expect("there").flatten().map(|e| e.path());
    let unpacked = unpacked.into_iter().find(|p| p.join("workloads").is_dir()).expect("a project");
    assert!(unpacked.join("runs").is_dir(), "with stored runs");
    let said = inside(&bench, &unpacked, &["plan", "x", "--gpu", "a100-40gb"]).says("memory is not predicted");
    assert_eq!((executed(&bench), said.code), (0, Some(0)));
}

#[test]
fn a_bundle_that_another_user_could_have_written_is_not_run_as_root() {
    if !is_root() {
        return;
    }
    let bench = project();
    bench.run(&[]);
    bench.collo(&["bundle", "last", "--to", "x.tar.gz"]).exits(0);
    executed(&bench);
    give_to_nobody(&bench.at("x.tar.gz"));
    bench.collo(&["run", "x.tar.gz"]).exits(3).says("is not run as root").says("belongs to `nobody`").says("copy it");
    assert_eq!(executed(&bench), 0);
}

#[test]
fn what_a_checkout_names_is_not_executed() {
    let bench = project();
    let git = |arguments: &[&str]| {
        let author = ["-c", "user.name=x", "-c", "user.email=x@example.org"];
        let made = Command::new("git").args(author).args(arguments).current_dir(bench.at("")).output();
        made.is_ok_and(|made| made.status.success())
    };
    if !git(&["init", "--quiet"]) {
        return skip("git", "there is no git");
    }
    assert!(git(&["add", "workloads", "experiments"]) && git(&["commit", "--quiet", "--message", "x"]));
    let sly = bench.at(".git/sly");
    fs_err::write(&sly, "#!/bin/sh\ntouch \"$EXECUTED.by-git\"\n").expect("written");
    mode(&sly, 0o755);
    assert!(git(&["config", "core.fsmonitor", &sly.display().to_string()]));
    bench.run(&[]);
    assert!(executed(&bench) > 0 && bench.campaign().manifest().machine.git.is_some(), "git was asked");
    assert!(!bench.at("executed.by-git").exists());
}
