//! How a campaign goes on, or does not, after failures: stopped early, measured again, expected. And how members of MPS are parted from
//! their server before they are killed.

use collo_store::{Outcome, Standing};

use crate::sim::Machine;
use crate::support::Bench;

/// One member or two, of which the first or the second fails in an epoch.
fn faulty(who: u32, more: &str) -> Bench {
    Bench::of(&format!(
        "{more}\n[axes]\nworkload = \"faulty\"\nseconds = 0.05\nitems = 4\nwho = {who}\ndegree = [1, 2]\nfail_at = \"epoch1\"\nhow = \"exit\"\n"
    ))
}

fn expecting(who: u32, degree: u32) -> Bench {
    let bench = faulty(who, "");
    let text = fs_err::read_to_string(bench.at("experiments/x.toml")).expect("readable");
    let expected = "outcome = \"crashed\"\nreason = \"it exits on purpose\"";
    bench.file("experiments/x.toml", &format!("{text}[[expect]]\nwhere = \"degree == {degree}\"\n{expected}\n"))
}

/// A workload that fails the first time it is started in this project, and never again.
fn fails_once(bench: Bench) -> Bench {
    bench
        .file(
            "workloads/flaky/workload.toml",
            "command = [\"python\", \"train.py\", \"--seconds\", \"{seconds}\", \"--items\", \"{items}\"]\nenvironment = \"system\"\n\
             [settings]\nseconds = 0.05\nitems = 4\n",
        )
        .file(
            "workloads/flaky/train.py",
            "import pathlib, runpy, sys\n\
             marker = pathlib.Path('../../failed-once')\n\
             if not marker.exists():\n    marker.touch()\n    sys.exit(3)\n\
             runpy.run_path('../sleep/train.py', run_name='__main__')\n",
        )
}

/// Samples of this GPU, and of no other, are among those of a run.
fn saw(run: &collo_store::StoredRun, uuid: &str) -> bool {
    let path = run.path.join("samples.parquet");
    let series = collo_store::read_series(&path, |_, scope, _| scope.starts_with("gpu:")).expect("samples");
    !series.is_empty() && series.iter().all(|s| s.scope == format!("gpu:{uuid}"))
}

/// `collo verify` ends so, with this among its findings.
fn prints(bench: &Bench, code: i32, said: &str) {
    let found = bench.collo(&["verify", "last"]).exits(code).stdout;
    assert!(found.contains(said), "{found}");
}

#[test]
fn a_campaign_that_fails_fast_stops_at_the_first_failure_and_can_be_resumed() {
    let bench = faulty(0, "");
    let answer = bench.run(&["--fail-fast"]).exits(1).says("stopped after 1 failed run: 1 of 3 runs stored");
    assert!(answer.last_line().starts_with("resume: collo run x"), "{}", answer.last_line());
    assert_eq!(bench.runs().len(), 1);
    bench.run(&["--max-failures", "2"]).exits(1).says("again:  collo run x --only failed");
    assert_eq!(bench.runs().len(), 3, "with the last run there is nothing left to stop");
    let journal = fs_err::read_to_string(bench.campaign().path().join("journal.jsonl")).expect("readable");
    assert!(journal.ends_with("\"reason\":\"too many failures\"}\n"), "but no further round may follow: {journal}");
}

/// One workload that finds no module while `missing` is there, in four cells.
fn without_a_module(more: &str) -> Bench {
    Bench::of(&format!("{more}\n[axes]\nworkload = \"modular\"\ndegree = [1, 2, 3, 4]\n"))
        .file("missing", "")
        .file(
            "workloads/modular/workload.toml",
            "command = [\"python\", \"train.py\", \"--seconds\", \"{seconds}\", \"--items\", \"{items}\"]\nenvironment = \"system\"\n\
             [settings]\nseconds = 0.05\nitems = 4\n",
        )
        .file(
            "workloads/modular/train.py",
            "import pathlib, runpy\n\
             import collo\n\
             if pathlib.Path('../../missing').exists():\n    import no_such_module\n\
             runpy.run_path('../sleep/train.py', run_name='__main__')\n",
        )
}

#[test]
fn a_campaign_whose_first_runs_fail_alike_before_they_train_stops_and_can_be_resumed() {
    let bench = without_a_module("");
    let answer =
        bench.run(&[]).exits(1).says("stopped, since the first 3 runs failed alike before they trained: 3 of 5 runs stored");
    answer.says("cause:  exited with 1 in start: ModuleNotFoundError: No module named 'no_such_module'").says("--keep-going");
    assert_eq!(bench.runs().len(), 3);
    let journal = fs_err::read_to_string(bench.campaign().path().join("journal.jsonl")).expect("readable");
    assert!(journal.ends_with("\"reason\":\"the first runs failed alike\"}\n"), "{journal}");
    fs_err::remove_file(bench.at("missing")).expect("it is there");
    bench.run(&[]).exits(1);
    bench.run(&["--only", "failed"]).exits(0);
    assert_eq!((bench.campaigns(), bench.runs().len()), (1, 5));
}

#[test]
fn a_campaign_that_keeps_going_measures_every_run_and_so_does_one_of_which_a_workload_trains() {
    let bench = without_a_module("");
    let answer = bench.run(&["--keep-going"]).exits(1);
    assert!(!answer.stderr.contains("stopped, since"), "{}", answer.stderr);
    assert_eq!(bench.runs().len(), 5);
    bench.run(&["--new", "--keep-going", "--fail-fast"]).exits(2);
    let two = without_a_module("")
        .experiment("x", "[axes]\nworkload = [\"modular\", \"sleep\"]\nseconds = 0.05\nitems = 4\ndegree = [1, 2]\n");
    two.run(&[]).exits(1);
    assert_eq!(two.runs().len(), two.campaign().manifest().plan.order.len());
}

#[test]
fn where_no_member_finds_cuda_a_campaign_and_a_night_stop_after_three_runs_and_the_gpu_is_as_found() {
    let toml = "repetitions = 3\n[axes]\nworkload = \"small\"\nsharing = [\"naive\", \"mig:2×3g.20gb\"]\ndegree = 2\n";
    let machine = Machine::new("a100-40gb,no-cuda,mig=7×1g.5gb", toml);
    let found = machine.cards();
    for (verb, stored) in [(&["nightly", "x"][..], 3), (&["run", "x", "--no-report"], 6)] {
        let answer = machine.collo(verb).exits(1).says("stopped, since the first 3 runs failed alike before they trained");
        let answer = answer.says("cause:  ").says("found cpu");
        assert!(answer.stderr.contains(&format!("resume: collo {} x", verb[0])), "{}", answer.stderr);
        assert_eq!(machine.bench.runs().len(), stored);
        assert_eq!(machine.cards(), found);
    }
    assert_eq!(machine.bench.campaigns(), 1, "what was stopped is continued");
}

#[test]
fn a_failed_run_is_measured_again_and_its_first_attempt_is_kept() {
    let bench = fails_once(Bench::of("retries = { each = 1, total = 2 }\n[axes]\nworkload = \"flaky\"\n"));
    bench.run(&[]).exits(0).says("retry   flaky solo 1/2: attempt 2");
    let runs = bench.runs();
    let retried: Vec<_> = runs.values().filter(|run| !run.record.failed_attempts.is_empty()).collect();
    assert!(runs.values().all(|run| run.record.outcome == Outcome::Completed));
    assert!(matches!(retried[..], [run] if matches!(run.record.failed_attempts[..], [Outcome::Crashed { .. }])));
    let kept = bench.campaign().path().join(".superseded");
    assert_eq!(fs_err::read_dir(kept).expect("there").count(), 1);
    prints(&bench, 0, "1 earlier attempt failed and was retried, kept in .superseded/\n");
    bench.collo(&["bundle", "last", "--to", "b.tar.gz"]).exits(0);
    bench.collo(&["verify", "b.tar.gz"]).exits(0).answers("1 earlier attempt failed and was retried\n");
    let report = bench.collo(&["report", "last", "--format", "markdown"]).exits(0);
    assert!(report.stdout.contains("Retried after a failure: 1 crashed"), "{}", report.stdout);
}

#[test]
fn retries_end_with_their_budget() {
    let bench = faulty(0, "retries = { each = 1, total = 2 }");
    bench.run(&[]).exits(1);
    let attempts: usize = bench.runs().values().map(|run| run.record.failed_attempts.len()).sum();
    assert_eq!(attempts, 2, "three runs failed, and the campaign has two retries");
    for _ in 0..2 {
        bench.run(&["--only", "failed"]).exits(1);
        assert!(bench.runs().values().all(|run| run.record.failed_attempts.is_empty()), "the two are spent for ever");
    }
    bench.run(&[]).exits(1);
    assert_eq!(bench.campaigns(), 2, "nothing is left to do, so this is another campaign");
}

#[test]
fn a_failure_that_is_expected_fails_neither_the_command_nor_the_test_case() {
    let bench = expecting(1, 2);
    bench.run(&[]).exits(0);
    assert_eq!(bench.run_of(2).record.standing(), Standing::Expected);
    prints(&bench, 0, "ended as the experiment expects: 1 of 1 runs");
    let suite = bench.collo(&["report", "last", "--format", "junit"]).exits(0).stdout;
    assert!(suite.contains("skipped message=\"expected, it exits on purpose"), "{suite}");
    assert!(!suite.contains("type=\"crashed\"") && !suite.contains("type=\"unexpected\""), "{suite}");
    bench.run(&["--only", "failed"]).exits(0);
    assert_eq!(bench.run_of(2).record.standing(), Standing::Expected, "it is not measured again");
}

#[test]
fn a_run_that_completes_against_expectation_fails_loudly() {
    let bench = expecting(1, 1);
    let said = "completed, although `crashed` is expected: it exits on purpose";
    bench.run(&[]).exits(1).says(said).says("remove its `[[expect]]`");
    prints(&bench, 1, said);
    let suite = bench.collo(&["report", "last", "--format", "junit"]).exits(0).stdout;
    assert!(suite.contains("type=\"unexpected\""), "{suite}");
}

#[test]
fn members_of_mps_leave_their_server_before_they_are_killed() {
    // The second member never becomes ready, so the group is ended while both are clients.
    let machine = Machine::new(
        "a100-40gb,silent=1",
        "set_up_timeout = \"2s\"\n[axes]\nworkload = \"small\"\nsharing = \"mps\"\ndegree = 2\n",
    );
    machine.run(&[]).exits(1).says("timed out");
    let run = machine.bench.run_of(2);
    let logs: Vec<String> = (0..2).map(|member| crate::support::log(&run, member)).collect();
    assert!(logs.iter().all(|log| log.contains("the MPS client has been terminated (810)")), "{logs:?}");
    let commands = fs_err::read_to_string(machine.sim().join("mps-commands.log")).expect("commands were given");
    let order: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .filter(|word| ["terminate_client", "quit"].contains(word))
        .collect();
    assert_eq!(order, ["terminate_client", "terminate_client", "quit"], "{commands}");
    assert!(run.record.members.iter().all(|m| m.exit.as_deref() != Some("killed by SIGKILL")), "{:?}", run.record.members);
}

#[test]
fn an_xid_during_a_run_is_stored_and_its_numbers_are_indicative() {
    let machine = Machine::new("a100-40gb,xid=63@100ms", "epochs = 3\n[axes]\nworkload = \"small\"\n");
    machine.run(&[]).exits(0);
    let runs = machine.bench.runs();
    let struck: Vec<_> = runs.values().filter(|r| r.record.sampling.iter().any(|q| !q.xids.is_empty())).collect();
    let [run] = struck[..] else { panic!("{} runs have it", struck.len()) };
    let said = "the driver reported Xid 63 (GPU memory remapping event) while it ran";
    assert!(run.record.validity.reasons.iter().any(|why| why == said), "{:?}", run.record.validity);
    assert_eq!(run.record.validity.verdict, collo_store::Verdict::Indicative);
}

#[test]
fn an_xid_of_a_program_is_shown_and_leaves_the_numbers_of_the_others_as_they_are() {
    let toml = "epochs = 3\n[axes]\nworkload = \"small\"\ndegree = 2\n";
    let machine = Machine::new("a100-40gb,xid=45@100ms", toml);
    machine.run(&[]).exits(0);
    let runs = machine.bench.runs();
    assert_eq!(runs.values().filter(|r| !r.record.xids().is_empty()).count(), 1);
    assert!(runs.values().all(|r| r.record.validity.verdict == collo_store::Verdict::Valid), "a program's end is its own");
    let report = machine.collo(&["report", "last", "--format", "markdown"]).exits(0);
    let said = "Errors of programs that the driver reported: Xid 45 (preemptive cleanup, due to previous errors or the end of a program) in 1 run.";
    assert!(report.stdout.contains(said), "{}", report.stdout);
}

#[test]
fn an_xid_of_a_member_that_fails_stands_beside_its_outcome_and_not_among_the_reasons() {
    let toml = "epochs = 3\n[axes]\nworkload = \"small\"\ndegree = 1\n";
    let machine = Machine::new("a100-40gb,xid=31@300ms,crash=0@500ms", toml);
    machine.run(&[]).exits(1).says("crashed: member 0").says("the driver reported Xid 31 (GPU memory page fault)");
    let runs = machine.bench.runs();
    let struck: Vec<_> = runs.values().filter(|r| !r.record.xids().is_empty()).collect();
    let [run] = struck[..] else { panic!("{} runs have it", struck.len()) };
    assert_eq!(run.record.validity.reasons, ["crashed: no time of it is used"]);
}

#[test]
fn without_recording_there_is_no_time_series_and_the_mode_is_attested_all_the_same() {
    let toml = "epochs = 3\n[sampling]\nrecording = \"off\"\n[axes]\nworkload = \"small\"\nsharing = \"mps\"\ndegree = 2\n";
    let machine = Machine::new("a100-40gb,xid=63@100ms", toml);
    machine.run(&[]).exits(0).says("sampling is off: no time series is recorded");
    let runs = machine.bench.runs();
    for run in runs.values() {
        let series = collo_store::read_series(&run.path.join("samples.parquet"), |_, _, _| true).expect("readable");
        assert!(series.is_empty(), "{} series", series.len());
        assert_eq!(run.record.attestation.verdict, collo_store::AttestationVerdict::Attested);
    }
    assert!(runs.values().any(|r| r.record.sampling.iter().any(|q| !q.xids.is_empty())), "errors of the GPU are heard of");
    let report = machine.collo(&["report", "last", "--format", "json"]).exits(0).json();
    for cell in report["cells"].as_array().expect("cells") {
        for key in ["sm_active_ratio", "energy_j_per_epoch", "cpu_ratio"] {
            assert_eq!(cell["absent"][key], "sampling was off", "{key} of {cell}");
        }
    }
}

#[test]
fn a_thermal_gate_lets_no_run_begin_warmer_and_is_refused_where_there_is_no_temperature() {
    let toml = "cooldown = \"until 3C above idle, at most 1m\"\nepochs = 3\n[axes]\nworkload = \"small\"\n";
    let machine = Machine::new("a100-40gb", toml);
    machine.run(&[]).exits(0);
    let runs = machine.bench.runs();
    let coolings: Vec<_> = runs.values().map(|run| run.record.cooling.clone().expect("a gate")).collect();
    assert!(coolings.iter().all(|c| c.is_reached() && c.limit_c == c.idle_c.map(|idle| idle + 3.0)), "{coolings:?}");
    let machine = Machine::new("a100-40gb,nvml:nvmlDeviceGetTemperature=3", toml);
    machine.run(&[]).exits(3).says("waits for a temperature, which");
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.05\n");
    let text = fs_err::read_to_string(bench.at("experiments/x.toml")).expect("readable");
    let bench = bench.file("experiments/x.toml", &text.replace("\"0s\"", "\"until 5C above idle\""));
    bench.run(&[]).exits(3).says("waits for a GPU's temperature, and this device is a CPU");
}

#[test]
fn a_gpu_that_a_batch_system_allocated_is_the_one_that_is_chosen() {
    let machine = Machine::new("a100-40gb,gpus=2", "[axes]\nworkload = \"small\"\n");
    let second = machine.uuid(1);
    let machine = ["1", &second[..12], &second].into_iter().fold(machine, |machine, named| {
        let machine = machine.env("CUDA_VISIBLE_DEVICES", named);
        for arguments in [&["plan", "x"][..], &["plan", "x", "--gpu", "auto"]] {
            let plan = machine.collo(arguments).exits(0).stdout;
            assert!(plan.starts_with("x on GPU 1, "), "{named}: {plan}");
        }
        machine
    });
    machine.run(&[]).exits(0);
    assert!(machine.bench.runs().values().all(|run| saw(run, &second)), "another GPU than the allocated one was read");
}

#[test]
fn energy_is_divided_among_members_only_where_asked_and_the_model_is_named() {
    let machine = Machine::new("a100-40gb", "epochs = 4\n[axes]\nworkload = \"small\"\nsharing = \"mps\"\ndegree = 2\n");
    machine.run(&[]).exits(0);
    let report = |more: &[&str]| machine.collo(&[&["report", "last", "--format", "markdown"], more].concat()).exits(0).stdout;
    assert!(!report(&[]).contains("modelled"));
    let asked = report(&["--energy-model", "sm-share"]);
    assert!(asked.contains("Energy by member, modelled") && asked.contains("`sm-share`"), "{asked}");
}

#[test]
fn a_second_campaign_on_one_cpu_says_so_before_it_starts() {
    let first = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 2\n");
    let running = first.start(&["run", "x", "--no-report"]);
    crate::support::wait_for("a run", || (first.campaigns() > 0).then_some(()));
    let second = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.05\n").run(&[]).exits(0);
    let told = second.stderr.find("another collo measures this CPU now: process").expect(&second.stderr);
    assert!(told < second.stderr.find(" on cpu: ").expect("the first line of a campaign"), "{}", second.stderr);
    running.ends().exits(0);
}
