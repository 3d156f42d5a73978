use std::path::Path;
use std::time::Duration;

use collo_store::Thresholds;
use collo_text::Source;

use super::*;
use crate::cell::Settle;
use crate::fixture::{experiment, mine, read, said, workloads};
use crate::project::Project;
use crate::workload::Workloads;
use proptest::prelude::*;

const AXES: &str = "[axes]\nworkload = \"tiny\"\n";

#[test]
fn every_field_is_read_as_written() {
    let e = experiment(
        r#"
schema = 1
description = "d"
tags = ["a", "b"]
repetitions = 5
epochs = 3
seed = 7
after_measured = "exit"
timeout = "1h"
set_up_timeout = "90s"
stall_timeout = "2m"
cooldown = "500ms"
member_failure = "keep-survivors"
threads = 2
cores = "0-1,3"
[axes]
workload = ["tiny", "small"]
batch_size = [32, 128]
images = [256, 512]
sharing = ["naive", "mps:50%"]
degree = [1, 2]
[[exclude]]
where = "degree == 2 && batch_size == 128"
[[group]]
members = [{ workload = "small", count = 2, batch_size = 128, amp = "bf16" }, { workload = "tiny" }]
sharing = "streams"
after_measured = "keep-running"
[sampling]
rate_hz = 20
pss_every = "10s"
[thresholds]
relevant = "2%"
overlap = 0.9
start_skew = "20ms"
"#,
    );
    assert_eq!((e.name.as_str(), e.description.as_deref(), e.tags.len()), ("mine", Some("d"), 2));
    assert_eq!(
        (e.device, e.repetitions, e.epochs, e.seed, e.after_measured),
        (DeviceChoice::Cpu, 5, 3, 7, Some(AfterMeasured::Exit))
    );
    assert_eq!(
        [e.timeout, e.set_up_timeout, e.stall_timeout, e.cooldown].map(|d| d.as_millis()),
        [3_600_000, 90_000, 120_000, 500]
    );
    assert_eq!((e.member_failure, e.threads, &e.cores), (FailureRule::KeepSurvivors, 2, &Cores::Listed(vec![0, 1, 3])));
    assert_eq!((e.axes.workload.len(), &e.axes.batch_size[..], e.axes.degree.len()), (2, &[32, 128][..], 2));
    assert_eq!(e.axes.settings, [("images".to_string(), vec![256.into(), 512.into()])]);
    assert_eq!(e.axes.sharing.iter().map(|s| s.mode.label()).collect::<Vec<_>>(), ["naive", "mps:50%"]);
    assert_eq!(e.exclude.len(), 1);
    let group = &e.groups[0];
    assert_eq!((group.members.len(), group.members[0].1, group.after_measured), (2, 2, Some(AfterMeasured::KeepRunning)));
    assert_eq!(group.members[0].0.settings()["amp"], "bf16");
    assert_eq!(group.sharing[0].mode.label(), "naive");
    assert_eq!((e.sampling.rate_hz, e.sampling.slow_rate_hz, e.sampling.pss_every), (20.0, 1.0, Duration::from_secs(10)));
    assert_eq!((e.thresholds.relevant_ratio, e.thresholds.overlap_ratio, e.thresholds.start_skew_s), (0.02, 0.9, 0.02));
    assert!(e.warnings.is_empty());
}

#[test]
fn members_that_tune_one_after_another_have_longer_unless_the_file_says_how_long() {
    let minutes = |e: &Experiment, members, in_turn| e.set_up_timeout_of(members, in_turn).as_secs_f64() / 60.0;
    let e = experiment(AXES);
    assert_eq!([minutes(&e, 1, true), minutes(&e, 7, true), minutes(&e, 7, false)], [5.0, 11.0, 5.0]);
    let origin = e.explain().into_iter().find(|o| o.key == "set_up_timeout").unwrap();
    assert_eq!(origin.value, "\"5m\", or more if members take turns");
    let explicit = experiment(&format!("set_up_timeout = \"3m\"\n{AXES}"));
    assert_eq!([minutes(&explicit, 1, true), minutes(&explicit, 7, true)], [3.0, 3.0]);
    assert_eq!(explicit.explain().into_iter().find(|o| o.key == "set_up_timeout").unwrap().value, "\"3m\"");
}

#[test]
fn what_is_not_written_has_its_documented_default() {
    let e = experiment(AXES);
    assert_eq!((e.repetitions, e.epochs, e.seed, e.after_measured, e.threads), (3, 2, 42, None, 1));
    assert_eq!((e.device, e.member_failure, &e.cores), (DeviceChoice::Cpu, FailureRule::EndGroup, &Cores::Shared));
    assert_eq!([e.timeout, e.set_up_timeout, e.stall_timeout, e.cooldown].map(|d| d.as_secs()), [1800, 300, 600, 1]);
    assert_eq!((e.axes.degree.as_slice(), e.axes.sharing.len(), e.thresholds), (&[1][..], 1, Thresholds::default()));
    for (key, written) in [("timeout", "\"30m\""), ("threads", "1"), ("repetitions", "3"), ("seed", "42"), ("epochs", "2")] {
        let documented = Experiment::KEYS.keys.iter().find(|k| k.name == key).and_then(|k| k.default);
        assert_eq!(documented, Some(written), "{key}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_shown_in_order() {
    insta::assert_snapshot!(said(
        r#"schema = 1
name = "mine"
description = "all kinds of mistakes"
repetition = 3
repetitions = "3"
device = "cpu"
after_measured = "kep-running"

timeout = "30 mins"
[axes]
workload = ["smal", "tiny"]
batch_size = [32, 32]
sharing = ["naive", "msp:50%"]
degree = [2, 1000000, 0]
"#
    ), @r#"
    error: unknown key `repetition` at experiments/mine.toml:4:1
     4 | repetition = 3
       | ^^^^^^^^^^ did you mean `repetitions`?
    error: `repetitions` must be a whole number, not text, at experiments/mine.toml:5:15
     5 | repetitions = "3"
       |               ^^^ write `3`
    error: unknown after_measured `kep-running` at experiments/mine.toml:7:18
     7 | after_measured = "kep-running"
       |                  ^^^^^^^^^^^^^ did you mean `keep-running`?
    error: invalid duration `30 mins` at experiments/mine.toml:9:11
     9 | timeout = "30 mins"
       |           ^^^^^^^^^ write `"30m"`; units are ms, s, m, h
    error: unknown workload `smal` at experiments/mine.toml:11:13
    11 | workload = ["smal", "tiny"]
       |             ^^^^^^ did you mean `small`? All: `collo list workloads`
    error: axis `batch_size` has 32 twice at experiments/mine.toml:12:19
    12 | batch_size = [32, 32]
       |                   ^^ leave one out
    error: unknown sharing mode `msp:50%` at experiments/mine.toml:13:21
    13 | sharing = ["naive", "msp:50%"]
       |                     ^^^^^^^^^ did you mean `mps:50%`? All: `collo list modes`
    error: degree 1000000 is not between 1 and 256 at experiments/mine.toml:14:14
    14 | degree = [2, 1000000, 0]
       |              ^^^^^^^
    error: degree 0 is not between 1 and 256 at experiments/mine.toml:14:23
    14 | degree = [2, 1000000, 0]
       |                       ^
    "#);
}

#[test]
fn retries_and_expected_failures_are_read_and_half_of_one_is_refused_at_its_place() {
    let e = experiment(&format!(
        "retries = {{ total = 9 }}\ncooldown = \"until 5C above idle\"\n{AXES}degree = [1, 2]\n[[expect]]\nwhere = \"degree == 2\"\n\
         outcome = \"out_of_memory\"\nreason = \"too many\"\n"
    ));
    assert_eq!(e.retries, RetryBudget { each: 1, total: 9 });
    assert_eq!((e.thermal_gate.map(|gate| gate.above_idle_c), e.cooldown.as_secs()), (Some(5.0), 1));
    assert_eq!((e.expect.len(), &*e.expect[0].expectation.outcome), (1, "out_of_memory"));
    assert_eq!(experiment(AXES).retries, RetryBudget::default());
    let wrong = |lines: &str| said(&mine(&format!("{AXES}{lines}")));
    let half = wrong("[[expect]]\nwhere = \"degree == 2\"\noutcome = \"crashed\"\n");
    assert!(half.contains("an expected failure has no `reason`"), "{half}");
    let unknown = wrong("[[expect]]\nwhere = \"degree == 2\"\noutcome = \"crash\"\nreason = \"x\"\n");
    assert!(unknown.contains("unknown outcome `crash`") && unknown.contains("did you mean `crashed`?"), "{unknown}");
    let gate = said(&mine(&format!("cooldown = \"until cool\"\n{AXES}")));
    assert!(gate.contains("invalid cooldown `until cool`") && gate.contains("until 5C above idle, at most 10m"), "{gate}");
}

#[test]
fn a_reference_is_read_whole_and_a_misspelt_quantity_is_refused_at_its_place() {
    let lines = "[[reference]]\ncell = \"tiny×2 naive b32\"\nquantity = \"throughput_gain\"\nvalue = 1.9\ntolerance = \"5%\"\n";
    let e = experiment(&format!("{AXES}{lines}device = \"A100\"\n"));
    let [r] = &e.references[..] else { panic!("{:?}", e.references) };
    assert_eq!((&*r.cell, &*r.quantity, r.value, r.tolerance_ratio), ("tiny×2 naive b32", "throughput_gain", 1.9, 0.05));
    assert!(r.is_about("NVIDIA a100-SXM4-40GB") && !r.is_about("NVIDIA H100"));
    let wrong = |lines: &str| said(&mine(&format!("{AXES}{lines}")));
    let unknown = wrong(&lines.replace("throughput_gain", "throughput_gian"));
    assert!(unknown.contains("unknown quantity `throughput_gian`") && unknown.contains("`throughput_gain`"), "{unknown}");
    let part = wrong(&lines.replace("throughput_gain", "gain"));
    assert!(part.contains("did you mean `throughput_gain`?"), "{part}");
    let other = wrong(&lines.replace("throughput_gain", "speed"));
    assert!(other.contains("as in `epoch_time_s`: `collo schema experiment` lists them"), "{other}");
    let half = wrong(&lines.replace("value = 1.9\n", ""));
    assert!(half.contains("a reference value has no `value`"), "{half}");
}

#[test]
fn a_syntax_error_has_its_line_and_column() {
    insta::assert_snapshot!(said("name = \"mine\"\n[axes]\ndegree = [1, 2, 4\n"), @r"
    error: not valid TOML: unclosed array, expected `]`, at experiments/mine.toml:3:18
     3 | degree = [1, 2, 4
       |                  ^
    ");
    insta::assert_snapshot!(said("name = \"mine\nx = 1\n"), @r#"
    error: not valid TOML: invalid basic string, expected `"`, at experiments/mine.toml:1:13
     1 | name = "mine
       |             ^
    "#);
}

#[test]
fn empty_axes_and_missing_ones_say_what_to_write() {
    insta::assert_snapshot!(said(&mine("[axes]\nworkload = \"tiny\"\nsharing = []\n")), @r#"
    error: axis `sharing` is empty, so there is no cell, at experiments/mine.toml:5:11
     5 | sharing = []
       |           ^^ for baselines alone: `["solo"]`
    "#);
    insta::assert_snapshot!(said(&mine("")), @r#"
    error: axis `workload` is missing in experiments/mine.toml, so there is no cell
    hint: add `[axes]` with `workload = ["tiny"]`, or a `[[group]]`
    "#);
    insta::assert_snapshot!(said(&mine("[[group]]\nsharing = \"naive\"\n")), @r#"
    error: a group has no members at experiments/mine.toml:3:1
     3 | [[group]]
       | ^^ as in `members = [{ workload = "tiny", count = 2 }]`
    "#);
}

#[test]
fn settings_are_those_of_the_workloads_and_of_their_type() {
    insta::assert_snapshot!(said(&mine("[axes]\nworkload = [\"tiny\", \"small\"]\nimges = [1, 2]\n")), @r"
    error: workload `tiny` has no setting `imges` at experiments/mine.toml:5:1
     5 | imges = [1, 2]
       | ^^^^^ did you mean `images`?
    ");
    insta::assert_snapshot!(said(&mine("[axes]\nworkload = \"tiny\"\nimages = [512, \"all\"]\n")), @r#"
    error: `images` of `tiny` must be a whole number, not text, at experiments/mine.toml:5:16
     5 | images = [512, "all"]
       |                ^^^^^ its default is `1024`
    "#);
    insta::assert_snapshot!(said(&mine("[axes]\nworkload = [\"tiny\", \"sleep\"]\nbatch_size = 32\n")), @r"
    error: workload `sleep` has no setting `batch_size` at experiments/mine.toml:5:1
     5 | batch_size = 32
       | ^^^^^^^^^^ it has `seconds`
    ");
    insta::assert_snapshot!(said(&mine("[axes]\nworkload = \"tiny\"\ndegre = 2\n")), @r"
    error: unknown axis `degre` at experiments/mine.toml:5:1
     5 | degre = 2
       | ^^^^^ did you mean `degree`?
    ");
    insta::assert_snapshot!(said(&mine("[[group]]\nmembers = [{ workload = \"small\", ampp = \"bf16\" }, { workload = \"tiny\", images = true }]\n")), @r#"
    error: workload `small` has no setting `ampp` at experiments/mine.toml:4:34
     4 | members = [{ workload = "small", ampp = "bf16" }, { workload = "tiny", images = true }]
       |                                  ^^^^ did you mean `amp`?
    error: `images` of `tiny` must be a whole number, not `true` or `false`, at experiments/mine.toml:4:81
     4 | members = [{ workload = "small", ampp = "bf16" }, { workload = "tiny", images = true }]
       |                                                                                 ^^^^
    hint: its default is `1024`
    "#);
}

#[test]
fn a_limit_of_batches_is_a_number_or_a_share_of_the_epoch() {
    let right = experiment("[axes]\nworkload = \"net\"\nlimit_batches = [7, 0.25, \"1 / 8\"]\n");
    let limits = ("limit_batches".to_string(), vec![7.into(), 0.25.into(), 0.125.into()]);
    assert_eq!(right.axes.settings, [limits]);
    insta::assert_snapshot!(said(&mine("[axes]\nworkload = \"net\"\nlimit_batches = 1.5\n")), @r"
    error: `limit_batches` of `net` is a number of batches, or a share of the epoch between 0 and 1, at experiments/mine.toml:5:17
     5 | limit_batches = 1.5
       |                 ^^^ a number of batches is whole; 0 is the whole epoch
    ");
}

#[test]
fn an_expression_in_the_file_is_shown_where_it_stands() {
    insta::assert_snapshot!(said(&mine(&format!("{AXES}[[exclude]]\nwhere = \"degre > 4\"\n"))), @r#"
    error: unknown axis `degre` at experiments/mine.toml:6:10
     6 | where = "degre > 4"
       |          ^^^^^ did you mean `degree`?
    "#);
    insta::assert_snapshot!(said(&mine(&format!("{AXES}[[exclude]]\nwhere = 'degree = 4'\n"))), @"
    error: unexpected `=` at experiments/mine.toml:6:17
     6 | where = 'degree = 4'
       |                 ^ equal is `==`
    ");
    insta::assert_snapshot!(said(&mine(&format!("{AXES}[[exclude]]\n"))), @r#"
    error: an exclusion has no `where` at experiments/mine.toml:5:1
     5 | [[exclude]]
       | ^^ as in `where = "degree > 4"`
    "#);
}

#[test]
fn a_newer_schema_and_a_name_that_is_no_folder_are_refused() {
    insta::assert_snapshot!(said("schema = 2\nname = \"../up\"\n[axes]\nworkload = \"tiny\"\n"), @r#"
    error: schema 2 is newer than this collo, which reads up to 1, at experiments/mine.toml:1:10
     1 | schema = 2
       |          ^ update collo
    error: invalid experiment name `../up` at experiments/mine.toml:2:8
     2 | name = "../up"
       |        ^^^^^^^ letters, digits, `-`, `_` and `.`, at most 80
    "#);
}

#[test]
fn a_name_other_than_the_files_is_a_warning() {
    let e = read(&format!("name = \"other\"\n{AXES}")).expect("not wrong");
    assert_eq!(e.warnings, ["`other` is in experiments/mine.toml: rename one, so that `collo run other` finds it"]);
}

#[test]
fn a_width_wanted_after_too_few_repetitions_is_a_warning() {
    let warnings = |planned: &str| read(&format!("{planned}until = {{ width = \"5%\" }}\n{AXES}")).expect("not wrong").warnings;
    assert_eq!((warnings(""), warnings("repetitions = 3\n")), (Vec::new(), Vec::new()));
    for few in ["repetitions = 1\n", "repetitions = 2\n"] {
        let said = warnings(few);
        assert!(said.len() == 1 && said[0].contains("`until` with fewer than 3 planned repetitions"), "{said:?}");
    }
    assert_eq!(read(&format!("repetitions = 2\n{AXES}")).expect("not wrong").warnings, [""; 0]);
}

#[test]
fn slices_name_workloads_and_profiles() {
    let e = experiment(&format!("slices = {{ tiny = \"1g.5gb\" }}\n{AXES}"));
    assert_eq!(e.each.slices["tiny"], "1g.5gb");
    let wrong = said(&mine(&format!("slices = {{ tiny = \"half\", nobody = \"1g.5gb\" }}\n{AXES}")));
    assert!(wrong.contains("invalid profile name `half`") && wrong.contains("unknown workload `nobody`"), "{wrong}");
}

#[test]
fn every_value_tells_where_it_comes_from() {
    let origins = experiment("repetitions = 5\n[axes]\nworkload = \"tiny\"\nimages = [256,\n  512]\n").explain();
    let find = |key: &str| origins.iter().find(|o| o.key == key).map(|o| (o.value.as_str(), o.place.as_deref()));
    assert_eq!(find("repetitions"), Some(("5", Some("experiments/mine.toml:3"))));
    assert_eq!(find("axes.images"), Some(("[256, 512]", Some("experiments/mine.toml:6"))));
    assert_eq!(find("axes.sharing"), Some(("[\"naive\"]", None)));
    assert_eq!(find("thresholds.relevant"), Some(("\"5%\"", None)));
    assert_eq!(find("description"), None);
}

fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, Project) {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join("experiments").join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        std::fs::write(path, text).expect("written");
    }
    let project = Project::at(folder.path());
    (folder, project)
}

fn located(project: &Project, typed: &str) -> String {
    let text = match locate(project, typed) {
        Ok(path) => path.display().to_string(),
        Err(mistakes) => mistakes.to_string(),
    };
    text.replace(&project.root().display().to_string(), "")
}

#[test]
fn a_bare_name_is_a_file_of_experiments_and_a_path_is_itself() {
    let (_kept, project) =
        project(&[("nightly.toml", "name = \"nightly\"\n"), ("old/n2.toml", "\nname = \"nightly\"\n"), ("quick.toml", "")]);
    assert_eq!(located(&project, "quick"), "/experiments/quick.toml");
    let path = project.experiments().join("old/n2.toml");
    assert_eq!(located(&project, &path.display().to_string()), "/experiments/old/n2.toml");
    insta::assert_snapshot!(located(&project, "nightly"), @r"
    error: two experiments are called `nightly`: /experiments/nightly.toml:1, /experiments/old/n2.toml:2
    hint: rename one, or give the path: `collo run /experiments/old/n2.toml`
    ");
    insta::assert_snapshot!(located(&project, "quik"), @r"
    error: unknown experiment `quik`
    hint: did you mean `quick`? All: `collo list experiments`
    ");
    insta::assert_snapshot!(located(&project, "none/here.toml"), @r"
    error: no experiment at `none/here.toml`
    hint: all: `collo list experiments`
    ");
    insta::assert_snapshot!(located(&project, "quick.toml"), @r"
    error: no experiment at `quick.toml`
    hint: did you mean `quick`? All: `collo list experiments`
    ");
}

#[test]
fn a_file_that_is_no_text_or_too_large_is_said_to_be() {
    let (_kept, project) = project(&[("big.toml", &"#".repeat(1_000_001))]);
    let big = Experiment::resolve(&project, "big", &workloads()).expect_err("too large").to_string();
    assert!(big.contains("is larger than 1000000 bytes"), "{big}");
    std::fs::write(project.experiments().join("odd.toml"), [0xff, 0xfe]).expect("written");
    let odd = Experiment::resolve(&project, "odd", &workloads()).expect_err("no text").to_string();
    assert!(odd.contains("cannot be read"), "{odd}");
}

proptest! {
    #[test]
    fn no_text_breaks_the_reading_of_experiments(text in "\\PC*|(\\[axes\\]\n|\\[\\[group\\]\\]\n|[a-z_]{1,12} = |\"tiny\"|\\[|\\]|\\{|\\}|,|\n|[0-9]{1,3}|workload = \"tiny\"\n){0,12}") {
        drop(read(&text).map_err(|mistakes| mistakes.to_string()));
    }
}

#[test]
fn a_manager_has_its_documented_rules_and_settles_when_the_file_says() {
    let workloads = Workloads::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")).expect("readable");
    let rules = |text: &str| {
        let text = format!("name = \"mine\"\n[axes]\npolicy = \"exclusive\"\n[trace]\nname = \"tiny-12\"\n[manager]\n{text}");
        let file = "experiments/mine.toml";
        let read = Experiment::parse(Path::new(file), &Source::file(file, text), &workloads).expect("right");
        read.trace.expect("there").manager
    };
    let usual = rules("");
    assert_eq!((usual.window_ns, usual.settle, usual.attempts, usual.idle_first), (90_000_000_000, Settle::Ready, 4, true));
    assert_eq!([&usual.queue, &usual.recovery, &usual.recovery_keeps], ["fifo", "exclusive", "card"]);
    assert_eq!(rules("settle = \"ready\"\n"), usual);
    let other = rules("settle = \"20s\"\nidle_first = \"no\"\n");
    assert_eq!((other.settle, other.idle_first, other.decide_every_ns), (Settle::After(20_000_000_000), false, None));
}

#[test]
fn a_share_above_one_needs_its_sign() {
    let of = |relevant: &str| read(&mine(&format!("[axes]\nworkload = \"tiny\"\n[thresholds]\nrelevant = {relevant}\n")));
    let refused = of("5").expect_err("500 %").to_string();
    assert!(refused.contains("invalid share `5`") && refused.contains("write `\"5%\"` or `0.05`"), "{refused}");
    assert_eq!(of("\"120%\"").expect("written out").thresholds.relevant_ratio, 1.2);
    assert_eq!(of("1").expect("all of it").thresholds.relevant_ratio, 1.0);
}
