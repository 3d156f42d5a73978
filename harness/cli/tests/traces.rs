//! Traces through the command: tasks that arrive one after another, and a policy that decides where each goes.

mod evils;

use collo_store::{AttestationVerdict, Outcome, StoredRun, TaskEnd, read_attempts, read_decisions, read_tasks};

use crate::sim::Machine;
use crate::support::Bench;

const SIX: &str = "description = \"six\"\nsource = \"made up\"\narrivals_s = [0, 0, 0.1, 0.2, 0.3, 0.4]\n\n[[tasks]]\ncount = 6\none_of = [\"sleep 1e\"]\n";
const ON_CORES: &str = "[trace]\nname = \"six\"\norders = [1, 2]\ncards = 2\n[axes]\npolicy = [\"exclusive\", \"slots:3\"]\n[manager]\nwindow = \"1s\"\n";

fn on_cores(experiment: &str) -> Bench {
    Bench::of(experiment).file("traces/six.toml", SIX)
}

/// The runs that are traces.
fn traces(bench: &Bench) -> Vec<StoredRun> {
    bench.runs().into_values().filter(|run| run.record.trace.is_some()).collect()
}

#[test]
fn a_trace_is_planned_played_verified_and_reported_by_policy() {
    let bench = on_cores(ON_CORES);
    let plan = bench.collo(&["plan", "x", "--no-predict"]).exits(0);
    plan.answers("six/1 exclusive naive ×2").answers("six/2 slots:3 naive ×2").answers("2 sets of");
    bench.collo(&["run", "x", "--no-predict"]).exits(0).answers("5 of 5 runs completed");
    let runs = traces(&bench);
    assert_eq!(runs.len(), 4);
    for run in &runs {
        let (tasks, attempts) = (read_tasks(&run.path).expect("read"), read_attempts(&run.path).expect("read"));
        assert_eq!((tasks.len(), attempts.len(), run.record.members.len()), (6, 6, 6));
        assert!(tasks.iter().all(|task| task.end == TaskEnd::Done), "{tasks:?}");
        assert!(attempts.iter().all(|a| a.attested == AttestationVerdict::Attested && a.settled_ns.is_some()), "{attempts:?}");
        let placed =
            read_decisions(&run.path).expect("read").iter().filter(|d| d.card.as_ref().is_some_and(|c| c.chosen)).count();
        assert_eq!(placed, 6, "each placement is stored with the card that it chose");
        let together = attempts.iter().any(|a| {
            attempts
                .iter()
                .any(|b| a.attempt != b.attempt && a.cards == b.cards && a.launched_ns < b.ended_ns && b.launched_ns < a.ended_ns)
        });
        assert_eq!(together, run.record.cell.cell.contains("slots:3"), "{}", run.record.cell.cell);
    }
    bench.collo(&["verify", "last"]).answers("a fresh ledger decides the same in 4 runs, 24 placements");
    bench.collo(&["show", "last", "six/1 slots:3"]).exits(0).answers("6 of 6 tasks done").answers("placed");
    let cell = bench.collo(&["--json", "show", "last", "six/2 exclusive"]).exits(0).json();
    assert_eq!(cell["runs"][0]["tasks"].as_array().map(Vec::len), Some(6), "{cell}");
    bench.collo(&["report", "last", "--format", "csv", "--table", "tasks"]).exits(0).answers("six/2 slots:3 naive");
    let page = fs_err::read_to_string(bench.at("reports/x/report.md")).expect("written");
    assert!(page.contains("slots:3") && page.contains("exclusive") && page.contains("retch"), "{page}");
    bench.nothing_is_left(std::time::Duration::from_secs(60));
}

#[test]
fn a_trace_is_an_ingredient_and_travels_with_its_campaign() {
    let bench = on_cores(ON_CORES);
    // No run is needed to know what a campaign depends on.
    let open = |bench: &Bench| bench.collo(&["run", "x", "--no-predict", "--for", "1ms"]).exits(4);
    open(&bench);
    assert!(bench.campaign().manifest().ingredients.contains_key("traces/six.toml"));
    bench.collo(&["bundle", "last", "--to", "carried.tar.gz"]).exits(0);
    bench.write("traces/six.toml", &SIX.replace("0.4", "0.5"));
    bench.collo(&["bundle", "last"]).exits(2).says("`traces/six.toml` changed since");
    open(&bench).says("is not continued, its ingredients changed").says("  traces/six.toml ");
    let elsewhere = Bench::new();
    fs_err::copy(bench.at("carried.tar.gz"), elsewhere.at("carried.tar.gz")).expect("copied");
    elsewhere.collo(&["run", "carried.tar.gz", "--no-predict", "--for", "1ms"]).exits(4).says("unpacked into");
    let unpacked =
        fs_err::read_dir(elsewhere.at("")).expect("readable").flatten().map(|entry| entry.path().join("traces/six.toml"));
    let texts: Vec<String> = unpacked.filter_map(|path| fs_err::read_to_string(path).ok()).collect();
    assert_eq!(texts, [SIX], "as it was measured");
}

#[test]
fn a_record_of_events_that_was_changed_is_noticed() {
    let bench = on_cores(&ON_CORES.replace("[1, 2]", "[1]").replace("\"exclusive\", ", ""));
    bench.run(&["--no-predict"]).exits(0);
    let path = traces(&bench)[0].path.join("happened.jsonl");
    let text = fs_err::read_to_string(&path).expect("read");
    let without: Vec<&str> = text.lines().filter(|line| !line.contains("\"ended\"")).collect();
    fs_err::write(&path, without.join("\n")).expect("written");
    bench.collo(&["verify", "last"]).exits(1).answers("happened.jsonl");
    // Nor is a pipe in its place waited for.
    fs_err::remove_file(&path).expect("removed");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let verified = bench.collo(&["verify", "last"]).exits(1);
    verified.answers("replay").answers("happened.jsonl cannot be read");
}

const TWO_CARDS: &str = "device = \"gpu\"\n[trace]\nname = \"eight\"\ncards = 2\n[axes]\npolicy = \"magm:free=2GB\"\nsharing = \"mps\"\n[manager]\nwindow = \"1s\"\n";
const EIGHT: &str = "description = \"eight\"\narrivals_s = [0, 0, 0.1, 0.1, 0.2, 0.3, 0.4, 0.5]\n[[tasks]]\ncount = 7\none_of = [\"small 1e\"]\n[[tasks]]\ncount = 1\none_of = [\"medium 1e\"]\n";

#[test]
fn a_task_that_always_crashes_fails_once_and_everything_else_completes_under_mps_on_two_cards() {
    let machine = Machine::new("a100-40gb,gpus=2,crashes=resnet50", TWO_CARDS);
    machine.bench.write("traces/eight.toml", EIGHT);
    // The baseline of the task that crashes fails, too.
    machine.run(&["--no-predict"]).exits(1);
    let runs = traces(&machine.bench);
    let [run] = &runs[..] else { panic!("{} runs", runs.len()) };
    assert_eq!(run.record.outcome, Outcome::Completed, "{:?}", run.record.validity);
    assert_eq!(run.record.attestation.verdict, AttestationVerdict::Attested);
    let ends: Vec<TaskEnd> = read_tasks(&run.path).expect("read").into_iter().map(|task| task.end).collect();
    assert_eq!(ends.iter().filter(|end| **end == TaskEnd::Done).count(), 7, "{ends:?}");
    let attempts = read_attempts(&run.path).expect("read");
    assert_eq!(attempts.len(), 8, "a crash is never tried again");
    let crashed: Vec<_> = attempts.iter().filter(|a| matches!(a.outcome, Outcome::Crashed { .. })).collect();
    assert_eq!(crashed.len(), 1, "{attempts:?}");
    assert!(attempts.iter().any(|a| a.cards == [0]) && attempts.iter().any(|a| a.cards == [1]), "both cards are used");
    machine.bench.collo(&["verify", "last"]).answers("a fresh ledger decides the same in 1 run, 8 placements");
}

#[test]
fn what_is_wrong_with_a_trace_is_said_with_the_way_out() {
    let said = |experiment: &str| on_cores(experiment).collo(&["plan", "x", "--no-predict"]).exits(2);
    said(&ON_CORES.replace("slots:3", "magn:sm=80%")).says("magn").says("magm");
    said(&ON_CORES.replace("\"six\"", "\"sic\"")).says("unknown trace").says("did you mean `six`?");
    said(&ON_CORES.replace("[axes]", "[axes]\ndegree = 2")).says("axis `degree` has no meaning beside `[trace]`");
    said("[axes]\nworkload = \"sleep\"\npolicy = \"rr\"\n").says("`policy` is of traces, and this experiment has none");
    let many = on_cores(&ON_CORES.replace("cards = 2", "cards = 4096")).collo(&["plan", "x", "--no-predict"]);
    many.answers("4096 sets of cores need 4096 cores").answers("--set trace.cards=");
    let blind = on_cores(&ON_CORES.replace("slots:3", "magm:dram=40%")).collo(&["plan", "x", "--no-predict"]);
    blind.answers("decides by DRAM activity, which a CPU does not have");
    let oracle = on_cores(&ON_CORES.replace("[axes]", "[axes]\nestimate = \"measured\"").replace("slots:3", "magm"));
    oracle.collo(&["plan", "x", "--no-predict"]).answers("`measured` has no estimate for `sleep solo");
}

#[test]
fn policies_and_traces_are_listed() {
    let bench = on_cores(ON_CORES);
    bench.collo(&["list", "policies"]).exits(0).answers("magm").answers("slots:3");
    bench.collo(&["list", "traces"]).exits(0).answers("six").answers("0:00");
}

/// What a plan of this trace under this policy says.
fn planned(trace: &str, policy: &str) -> crate::support::Answer {
    let experiment = ON_CORES.replace("\"exclusive\", \"slots:3\"", &format!("\"{policy}\""));
    Bench::of(&experiment).file("traces/six.toml", trace).collo(&["plan", "x", "--no-predict"])
}

#[test]
fn what_no_policy_and_no_card_can_do_is_said_before_anything_runs() {
    planned(SIX, "magm:fre=5GB").exits(2).says("`fre`").says("`free`");
    planned(SIX, "magm:margin=2GB")
        .answers("adds a margin to an estimate, and there is none")
        .answers("`estimate = \"measured\"`");
    planned(SIX, "magm:occupancy=40%")
        .answers("decides by occupancy, which a CPU does not have")
        .answers("caps on `sm` and `free`");
    planned(SIX, "packed:sum=100%,most=3")
        .answers("`packed:sum=100%,most=3` decides by how busy each task is believed to keep a card");
    let falls = SIX.replace("0.3, 0.4", "0.4, 0.3");
    planned(&falls, "rr").exits(2).says("an arrival at 0.3 s follows one at 0.4 s").says("traces/six.toml:3");
    planned(&SIX.replace("sleep 1e", "slep 1e"), "rr").exits(2).says("unknown workload `slep`").says("did you mean `sleep`?");
    planned(&SIX.replace("sleep 1e", "sleep 1e 3c"), "rr")
        .answers("runs on 3 cards at once, and the site has 2")
        .answers("trace.cards=3");
    let wide = SIX.replace("sleep 1e", "hungry 1e");
    let hungry = "command = [\"python\"]\n[forecast.cpu]\nmemory_bytes = 99_000_000_000_000\n";
    let experiment = ON_CORES.replace("\"exclusive\", ", "");
    let bench = Bench::of(&experiment).file("traces/six.toml", &wide).file("workloads/hungry/workload.toml", hungry);
    let said = bench.collo(&["plan", "x", "--no-predict"]);
    said.answers("a task of it, `hungry solo`, fits no card").answers("leave it out of traces/six.toml");
    let many = "description = \"many\"\narrivals = { every = \"1s\" }\n[[tasks]]\ncount = 60_000\none_of = [\"sleep 1e\"]\n";
    planned(many, "rr").exits(2).says("more than the 100000 tasks that a plan can have").says("--where 'order == 1'");
    let million = many.replace("60_000", "1_000_001");
    planned(&million, "rr").exits(2).says("1000001 tasks are more than the 1000000").says("a window of it");
}

#[test]
fn more_cards_than_a_trace_has_are_no_part_of_its_site() {
    let machine = Machine::new("a100-40gb,gpus=2", &TWO_CARDS.replace("cards = 2", "cards = 1"));
    machine.bench.write("traces/eight.toml", EIGHT);
    let said = machine.bench.collo(&["plan", "x", "--no-predict", "--gpu", "0,1"]);
    said.answers("1 card is asked for, and 2 are chosen").answers("`--gpu 0`");
}

#[test]
fn a_plan_of_a_trace_says_what_its_tasks_do_and_what_it_takes_at_the_least() {
    let bench = on_cores(ON_CORES).file("workloads/sleep/workload.toml", "command = [\"python\", \"sleep.py\", \"{seconds}\"]\n[settings]\nseconds = 1.0\n[forecast.cpu]\nset_up_s = 1.0\nepoch_s = 1.0\n");
    let said = bench.collo(&["plan", "x", "--no-predict", "--order", "--commands"]).exits(0);
    let said = said
        .answers("6 tasks")
        .answers("4 × a whole trace; its tasks train their own epochs and exit")
        .answers("before the traces");
    // Six tasks of 2 s on two sets of cores; where cores are shared, the last one arrives at 0.4 s.
    let said = said.answers("≥ 0:06").answers("≥ 0:02").answers("forecast  at least");
    let said = said.answers("task 5, 1 epoch, arrives at 0:00").answers("COLLO_MEMBER=5");
    assert!(!said.stdout.contains("keep running"), "{}", said.stdout);
    let json = bench.collo(&["plan", "x", "--no-predict", "--json"]).exits(0).json();
    let cell = json["cells"]
        .as_array()
        .and_then(|cells| cells.iter().find(|c| c["cell"] == "six/1 exclusive naive ×2"))
        .expect("planned");
    assert_eq!((&cell["trace"]["tasks"], &cell["forecast"]["each_at_least_s"]), (&6.into(), &6.0.into()));
    assert!(json["forecast_s"].is_null() && json["forecast_at_least_s"].as_f64().is_some_and(|s| s > 16.0), "{json}");
}

#[test]
fn a_trace_is_shown_with_what_its_tasks_take_alone_once_that_was_measured() {
    let bench = on_cores(&ON_CORES.replace("[1, 2]", "[1]").replace("\"exclusive\", ", ""));
    let unknown = bench.collo(&["trace", "show", "six"]).exits(0);
    let unknown = unknown.answers("6 in order 1, 1 distinct").answers("█").answers("unknown: 1 of its 1 distinct tasks");
    unknown.says("hint: `collo run x` measures each of its tasks alone");
    bench.run(&["--no-predict"]).exits(0);
    let shown = bench.collo(&["trace", "show", "six", "--cards", "3", "--json"]).exits(0).json();
    let (work_s, least_s) = (shown["work_s"].as_f64().expect("known"), shown["least"][0]["least_s"].as_f64().expect("known"));
    assert!(least_s >= work_s / 3.0 - 1e-6 && least_s <= work_s && shown["least_shared_s"].as_f64() <= Some(least_s), "{shown}");
    assert_eq!((&shown["distinct"][0]["count"], &shown["stored_runs"]), (&6.into(), &1.into()));
    bench.collo(&["trace", "show", "six"]).exits(0).answers("on 2 cards").answers("where cards are shared");
    bench.write("traces/wide.toml", &SIX.replace("sleep 1e", "sleep 1e 2c"));
    bench.collo(&["trace", "show", "wide", "--cards", "1"]).exits(2).says("runs on 2 cards at once").says("`--cards 2`");
    bench.collo(&["trace", "show", "sic"]).exits(2).says("did you mean `six`?");
}

#[test]
fn a_window_of_a_log_becomes_a_trace_that_is_read_before_it_is_written() {
    let log = r#"[{"submitted_time": "2017-10-09 07:01:05"}, {"submitted_time": "2017-10-09 07:02:18"}, {"submitted_time": "2017-10-09 11:02:18"}]"#;
    let bench = Bench::new().file("log.json", log).file("cut.json", &log[..50]);
    let make = |more: &[&str]| bench.collo(&[&["trace", "make", "mine", "--from", "philly"], more].concat());
    let sleep = "--class=2=sleep 1e, sleep 2e";
    make(&["--log", "log.json", "--window", "4h", sleep]).exits(0).answers("traces/mine.toml: 2 tasks within 1:13");
    make(&["--log", "log.json", sleep]).exits(2).says("traces/mine.toml exists already").says("--force");
    make(&["--log", "log.json", "--tasks", "1", "--force", sleep]).exits(0).answers("1 task within 0:00");
    make(&["--log", "cut.json", "--force", sleep])
        .exits(2)
        .says("`cut.json` is no list of jobs, at line 1 column 5")
        .says("it is cut short");
    make(&["--log", "log.json", "--force", "--class=1=slep 1e"]).exits(2).says("unknown workload `slep`").says("`sleep`");
    make(&["--log", "log.json", "--force", "--class=sleep"]).exits(2).says("a class without its share");
    make(&["--log", "log.json", "--force", "--after", "9h", sleep]).exits(2).says("no submission from 32400 s on");
    let listed = bench.collo(&["trace", "list"]).exits(0);
    assert_eq!(listed.stdout, bench.collo(&["list", "traces"]).stdout);
    listed.answers("1 task at the gaps of a window of the philly log");
}

#[test]
fn tables_and_scripts_of_others_become_traces() {
    let rad = "# one\nconda activate e\npython train.py --epochs 2\nm.txt\nCIFAR-10\nbatch_size: 32\npolicy: x\n1\n";
    let bench = Bench::new()
        .file("t.csv", "submit_time_s,task\n0,sleep 1e\n3.5,slep 2e\n")
        .file("cut.csv", "submit_time_s,task\n0,sleep 1e\n3.5")
        .file("s/run.sh", "sleep 4\nsubmit tasks/tiny.rad\nsleep 9\nsubmit tasks/tiny.rad\n")
        .file("s/tasks/tiny.rad", rad)
        .file("s/cut.rad", "# one\nconda\n")
        .file("s/cut.sh", "submit cut.rad\n");
    let import = |words: &[&str]| bench.collo(&[&["trace", "import"], words].concat());
    let said = import(&["table", "t.csv"]).exits(0).answers("traces/table.toml: 2 tasks within 0:04");
    said.says("traces/table.toml, unknown workload `slep`: did you mean `sleep`?");
    import(&["script", "s/run.sh"]).exits(0).answers("2 tasks within 0:13");
    assert!(fs_err::read_to_string(bench.at("traces/script.toml")).expect("written").contains("epochs = 2"));
    import(&["cut", "cut.csv"]).exits(2).says("a line without a task at cut.csv:3:1").says("cut short");
    import(&["cut", "s/cut.sh"]).exits(2).says("ends after line 2, before its command").says("complete it");
    import(&["cut", "s/run.sh", "t.csv"]).exits(2).says("more than one table or script");
    import(&["cut", "s/cut.rad"]).exits(2).says("do not say when they arrive");
    import(&["a/b", "t.csv"]).exits(2).says("invalid trace name `a/b`");
    assert!(!bench.at("traces/cut.toml").exists());
}

#[test]
fn a_script_names_task_files_from_a_repository_and_as_its_author_has_them() {
    let rad = |epochs: u32, batch: u32| {
        let lines = "# one\nconda activate e\npython train.py --epochs EPOCHS\nm.model\n/data\nBATCH\nexclusive\n1\n2512\n7903.9316\n72.5\n8000";
        lines.replace("EPOCHS", &epochs.to_string()).replace("BATCH", &batch.to_string())
    };
    let script = "python src/submit.py --task work/Net3.rad\nsleep 1m\npython src/submit.py --task=/home/author/repository/work/deep/Net_e.rad\n\
        sleep 10\nsubmit Other.rad\nsleep 5\nsubmit ../work/Net3.rad\n";
    let bench = Bench::new()
        .file("repository/work/Net3.rad", &rad(3, 8))
        .file("repository/work/deep/Net_e.rad", &rad(4, 16))
        .file("repository/assets/traces/run.sh", script)
        .file("repository/assets/traces/other/Other.rad", &rad(5, 2))
        .file("elsewhere/Other.rad", &rad(6, 4));
    let import = |words: &[&str]| bench.collo(&[&["trace", "import"], words].concat());
    let run = "repository/assets/traces/run.sh";
    import(&["t", run])
        .exits(2)
        .says("there is no task file `Other.rad` at repository/assets/traces/run.sh:5:1")
        .says("or name it");
    let named = import(&["t", run, "elsewhere/Other.rad"]).exits(0).answers("4 tasks within 1:15");
    named.says("unknown workload `Net3`").says("unknown workload `Other`");
    let others = ["t", run, "elsewhere/Other.rad", "--force"];
    let mapped = |maps: &[&str]| import(&[&others[..], maps].concat());
    mapped(&["--map", "Net*=sleep", "--map", "Other=slep"]).exits(2).says("unknown workload `slep`").says("`sleep`");
    mapped(&["--map", "Net*=sleep", "--map", "Net3=sleep"]).exits(2).says("no task of").says("is named `Net3`");
    let quiet = mapped(&["--map", "Net*=sleep", "--map", "Other=sleep"]).exits(0);
    assert!(!quiet.stderr.contains("unknown workload"), "{}", quiet.stderr);
    let trace = fs_err::read_to_string(bench.at("traces/t.toml")).expect("written");
    let tasks: Vec<&str> = trace.split("[[task]]").skip(1).collect();
    assert_eq!(
        tasks[1].trim(),
        "# Net_e.rad: python train.py --epochs 4\nworkload = \"sleep\"\nbatch_size = 16\nepochs = 4\ncards = 1"
    );
}

#[test]
fn the_names_of_a_table_can_be_given_workloads_too() {
    let bench = Bench::new().file("t.csv", "submit_time_s,task\n0,theirs 1e\n3.5,sleep 2e\n");
    bench.collo(&["trace", "import", "t", "t.csv", "--map", "theirs=sleep"]).exits(0);
    let trace = fs_err::read_to_string(bench.at("traces/t.toml")).expect("written");
    assert_eq!(trace.matches("workload = \"sleep\"").count(), 2, "{trace}");
}
