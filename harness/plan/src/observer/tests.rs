use std::path::{Path, PathBuf};

use collo_text::Source;

use super::*;
use crate::fixture;

fn parse(text: &str) -> Result<Observer, Diagnostics> {
    read::parse("watch", Path::new("/p/observers/watch.toml"), &Source::file("observers/watch.toml", text))
}

fn wrong(text: &str) -> String {
    parse(text).expect_err("it is wrong").to_string()
}

#[test]
fn an_observer_of_one_line_reads_once_a_second_beside_the_members() {
    let watch =
        parse("command = [\"watch\", \"-d\", \"{interval_s}\", \"-p\", \"{pids}\", \"-o\", \"{folder}/out\"]").expect("right");
    assert_eq!(watch.kind, "monitor");
    assert_eq!((watch.place, watch.rate_hz, watch.is_for_each(), watch.has_rate()), (Place::Beside, 1.0, false, true));
    let room = ObserverRoom { folder: Path::new("/f"), rate_hz: 4.0, pids: &[7, 8], member: None, packages: None };
    assert_eq!(watch.command_in(&room), ["watch", "-d", "0.25", "-p", "7,8", "-o", "/f/out"]);
    let each = parse("command = [\"watch\", \"{pid}\"]").expect("right");
    assert!(each.is_for_each() && !each.has_rate());
}

#[test]
fn nsys_records_what_it_is_said_to_and_samples_no_cpu() {
    let name = "observers/nsys.toml";
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let text = std::fs::read_to_string(&place).expect("it comes with collo");
    let nsys = read::parse("nsys", &place, &Source::file(name, text)).expect("right");
    let room = ObserverRoom { folder: Path::new("/f"), rate_hz: 1.0, pids: &[], member: Some(0), packages: None };
    let command = nsys.around(&["python".to_string()], &room).join(" ");
    // Both are on by default, and write stacks of CPUs for as long as the member lives: gigabytes on one machine.
    for option in ["--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"] {
        assert!(command.contains(option), "{option}: {command}");
    }
}

/// The words of an observer that comes with collo around `python train.py --x`, in a folder whose name a shell would execute. Returns what
/// the program got, its folder first.
fn run_as_shipped(name: &str, program: &str) -> (Vec<String>, PathBuf) {
    let temporary = tempfile::tempdir().expect("a folder");
    let base = temporary.path();
    let folder = base.join("a $(touch HIT) b");
    std::fs::create_dir_all(&folder).expect("made");
    let log = base.join("log");
    let text = format!("#!/bin/sh\n{{ pwd; printf '%s\\n' \"$@\"; }} > '{}'\n", log.display());
    let place = base.join(program);
    std::fs::write(&place, text).expect("written");
    std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    let observers = fixture::observers();
    let observer = observers.iter().find(|o| o.name == name).expect("it comes with collo");
    let packages = Some(folder.as_path());
    let room = ObserverRoom { folder: &folder, rate_hz: 1.0, pids: &[], member: Some(0), packages };
    let python = base.join("python").display().to_string();
    let words = observer.around(&[python, "train.py".into(), "--x".into()], &room);
    let path = format!("{}:{}", base.display(), std::env::var("PATH").unwrap_or_default());
    let ended = std::process::Command::new(&words[0]).args(&words[1..]).env("PATH", path).current_dir(base).status();
    assert!(ended.expect("sh starts").success(), "{words:?}");
    assert!(!base.join("HIT").exists() && !folder.join("HIT").exists(), "a part of the folder's name was executed");
    (std::fs::read_to_string(log).expect("it ran").lines().map(String::from).collect(), folder)
}

#[test]
fn what_comes_with_collo_writes_below_its_folder_whatever_that_is_called() {
    let (radt, folder) = run_as_shipped("radt", "python");
    assert_eq!(radt[0], folder.join("member-0").display().to_string(), "radT works in a folder of its own");
    assert!(radt.contains(&"-c".to_string()) && radt.contains(&"-p --x".to_string()), "{radt:?}");
    let (nsys, folder) = run_as_shipped("nsys", "nsys");
    assert!(nsys.contains(&format!("--output={}/member-0", folder.display())), "{nsys:?}");
    assert!(nsys.ends_with(&["train.py".to_string(), "--x".into()]), "{nsys:?}");
}

#[test]
fn around_a_member_stands_its_command_word_for_word() {
    let nsys = parse("runs = \"around\"\ncommand = [\"nsys\", \"-o\", \"{folder}/{member}\", \"{command}\"]").expect("right");
    assert_eq!(nsys.kind, "profiler", "it runs the member");
    let room = ObserverRoom { folder: Path::new("/f"), rate_hz: 1.0, pids: &[], member: Some(1), packages: None };
    let member = ["python".to_string(), "train.py".into(), "--name={pid}".into()];
    assert_eq!(nsys.around(&member, &room), ["nsys", "-o", "/f/1", "python", "train.py", "--name={pid}"]);
    assert_eq!(nsys.files_of_member(&room), Some("/f/1".into()));
    let all = parse("command = [\"watch\", \"-o\", \"{folder}/out\"]").expect("right");
    assert_eq!(all.files_of_member(&room), None, "it names none for each member");
    let script = |words: &str| parse(&format!("command = [\"sh\", \"-c\", {words}]")).expect("right").files_of_member(&room);
    assert_eq!(script("\"watch -o \\\"$1\\\"\", \"sh\", \"{folder}/log/m-{member}.txt\""), Some("/f/log/m-1".into()));
    assert_eq!(script("\"cd \\\"$1\\\"; watch -o m-{member}\", \"sh\", \"{folder}/log\""), None, "only the script knows");
}

#[test]
fn a_path_inside_a_script_is_refused_with_the_way_to_give_it() {
    let inside = wrong("command = [\"env\", \"bash\", \"-ec\", \"watch > {folder}/out\"]");
    assert!(inside.contains("`{folder}` inside a script: what a path has in it would be executed"), "{inside}");
    assert!(inside.contains("a word of its own behind the script"), "{inside}");
    assert!(wrong("command = [\"python3.12\", \"-c\", \"open('{packages}/x')\"]").contains("`{packages}` inside"));
    assert!(parse("command = [\"sh\", \"-c\", \"sleep {interval_s}; kill {pid}\", \"sh\", \"{folder}\"]").is_ok());
}

#[test]
fn what_could_not_work_is_said_with_its_place() {
    assert!(wrong("about = \"x\"").contains("`command` is missing"));
    assert!(wrong("command = [\"x\", \"{pidz}\"]").contains("did you mean `{pids}`?"));
    assert!(wrong("runs = \"around\"\ncommand = [\"x\"]").contains("so no member would start"));
    assert!(wrong("runs = \"inside\"").contains("no script would know of it"));
    assert!(wrong("command = [\"x\"]\nmost = \"much\"").contains("invalid size"));
    assert!(wrong("comand = [\"x\"]").contains("did you mean `command`?"));
    assert!(wrong("command = [\"x\"]\npackages = \"none.txt\"").contains("which is not there"));
    // What is in braces and no name of ours is the program's own.
    assert!(parse("command = [\"x\", \"{}\", \"{A}\", \"{\"]").is_ok());
}

#[test]
fn names_that_a_label_could_take_for_something_else_are_none() {
    assert!(is_name("py-spy") && is_name("top") && is_name("b2b"));
    assert!(!is_name("b32") && !is_name("none") && !is_name("collo") && !is_name("Top") && !is_name(""));
}

#[test]
fn the_observers_of_this_project_can_be_read() {
    let observers = fixture::observers();
    assert!(observers.broken().is_empty(), "{:?}", observers.broken());
    let names: Vec<&str> = observers.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["dcgmi", "nsys", "nvidia-smi", "pidstat", "py-spy", "radt", "top", "torch-profiler"]);
    for observer in observers.iter() {
        assert!(observer.about.is_some() && observer.source.is_some(), "{} lacks its source", observer.name);
        assert!(observer.hint.is_some() || observer.programs.is_empty(), "{} lacks the way to get it", observer.name);
    }
}

#[test]
fn a_word_of_an_experiment_is_nobody_collo_or_a_program_with_its_rate() {
    let observers = fixture::observers();
    let label = |text: &str| Observe::parse(text, &observers).map(|o| o.label());
    for text in ["none", "collo", "collo:100Hz", "collo:0.5Hz", "top", "top:10Hz"] {
        assert_eq!(label(text).expect("right"), text);
    }
    assert_eq!(Observe::parse("top", &observers).expect("right").rate_hz(), Some(1.0));
    assert_eq!(Observe::parse("collo:10Hz", &observers).expect("right").collo_hz(), Some(10.0));
    let wrong = |text: &str| label(text).expect_err("it is wrong").to_string();
    assert!(wrong("none:1Hz").contains("has no rate"));
    assert!(wrong("tpo").contains("did you mean `top`?"));
    assert!(wrong("top:fast").contains("as in `top:10Hz`"));
    assert!(wrong("torch-profiler:10Hz").contains("would change nothing"));
}

#[test]
fn packages_are_not_installed_beside_a_python_of_ones_own() {
    let observers = fixture::observers();
    let mut facts = DeviceFacts::of_cpu(2, 24 << 30);
    let lacking = |facts: &DeviceFacts| Observe::parse("radt", &observers).expect("it is known").lacking(facts, []);
    assert_eq!(lacking(&facts), None);
    facts.python.is_own = true;
    let refused = lacking(&facts).expect("it has packages");
    assert!(refused.reason.contains("does not install beside a Python of your own"), "{refused:?}");
    let none = Observe::parse("torch-profiler", &observers).expect("it is known");
    assert_eq!(none.lacking(&facts, []), None);
}

#[test]
fn one_around_the_members_lacks_what_is_not_where_they_are_started_and_one_beside_them_what_collo_has_not() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, runs) in
        [("wraps", "around\"\ncommand = [\"no-such-tool\", \"{command}\"]"), ("sees", "beside\"\ncommand = [\"x\"]")]
    {
        let text = format!("needs = [\"no-such-tool\"]\nhint = \"get it\"\nruns = \"{runs}\n");
        std::fs::write(folder.path().join(format!("{name}.toml")), text).expect("written");
    }
    let observers = Observers::load(folder.path());
    let workloads = fixture::workloads();
    let of = |name: &str| workloads.get(name).expect("there is one");
    let mut facts = DeviceFacts::of_cpu(2, 24 << 30);
    let reason = |name: &str, facts: &DeviceFacts, workload: &str| {
        Observe::parse(name, &observers).expect("it is known").lacking(facts, [of(workload)]).map(|refused| refused.reason)
    };
    assert_eq!(reason("wraps", &facts, "tiny"), None, "it is there, or the members are elsewhere");
    assert_eq!(reason("sees", &facts, "tiny").as_deref(), Some("observer `sees` needs `no-such-tool`, which is not on the PATH"));
    facts.python.missing_around = ["tiny", "sleep"].map(|name| (name.to_string(), "no-such-tool".to_string())).into();
    assert_eq!(reason("wraps", &facts, "small"), None, "another Python has it");
    let at = "observer `wraps` needs `no-such-tool`, which is neither in `bin` of the Python of `tiny` nor on the PATH";
    assert_eq!(reason("wraps", &facts, "tiny").as_deref(), Some(at));
    let of_system = "observer `wraps` needs `no-such-tool`, which is not on the PATH";
    assert_eq!(reason("wraps", &facts, "sleep").as_deref(), Some(of_system));
}

#[test]
fn where_packages_are_is_not_known_before_they_are_provided_for_a_card_elsewhere() {
    let observers = fixture::observers();
    let room = ObserverRoom { folder: Path::new("/f"), rate_hz: 100.0, pids: &[7], member: Some(0), packages: None };
    assert_eq!(observers.find("py-spy").expect("it is known").command_in(&room)[0], "<packages>/bin/py-spy");
}
