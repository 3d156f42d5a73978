use std::time::Duration;

use collo_text::quoted;
use insta::assert_snapshot;

use super::import::{Rad, rad, script, table};
use super::make::{Class, Log, Window, make};
use super::names::NameMap;
use super::*;

fn file(text: &str) -> Arc<Source> {
    Source::file("traces/t.toml", text)
}

fn read(text: &str) -> Trace {
    Trace::read(&file(text)).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn wrong(text: &str) -> String {
    Trace::read(&file(text)).expect_err("a mistake").to_string()
}

fn seconds(trace: &Trace) -> Vec<f64> {
    trace.arrivals_ns().iter().map(|ns| *ns as f64 / 1e9).collect()
}

const PHILLY: &str = r#"
description = "five tasks"
source = "nobody"
arrivals_s = [0, 73, 514.5, 600]
[[tasks]]
count = 2
one_of = ["resnet18-cifar100:b32 20e", "resnet50"]
[[tasks]]
count = 2
one_of = ["xlnet:b8 8e 2c"]
settings = { lr = 0.1 }
[[task]]
at = "73s"
workload = "efficientnet-b0"
batch_size = 128
epochs = 3
settings = { precision = "bf16" }
"#;

#[test]
fn a_trace_has_the_arrivals_of_its_list_and_of_its_tasks() {
    let trace = read(PHILLY);
    assert_eq!((trace.tasks(), seconds(&trace)), (5, vec![0.0, 73.0, 73.0, 514.5, 600.0]));
    let order = trace.order(1);
    assert_eq!(order.iter().map(|task| task.at_ns).collect::<Vec<_>>(), trace.arrivals_ns());
    assert_eq!(order.iter().map(|task| task.id.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let of = |workload: &str| order.iter().filter(|task| task.workload == workload).collect::<Vec<_>>();
    assert_eq!(of("xlnet").len(), 2);
    let xlnet = of("xlnet")[0];
    assert_eq!((xlnet.epochs, xlnet.cards, &xlnet.settings["batch_size"], &xlnet.settings["lr"]), (8, 2, &8.into(), &0.1.into()));
    let net = of("efficientnet-b0")[0];
    assert_eq!((net.epochs, net.cards, &net.settings["batch_size"]), (3, 1, &128.into()));
    assert_eq!(net.settings["precision"], "bf16");
}

#[test]
fn an_order_shuffles_tasks_over_the_same_arrivals_and_is_the_same_again() {
    let trace = read(PHILLY);
    assert_eq!(trace.order(3), trace.order(3));
    let names = |seed| trace.order(seed).into_iter().map(|task| task.workload).collect::<Vec<_>>();
    assert!((1..20).any(|seed| names(seed) != names(1)), "orders differ");
    assert!((1..20).all(|seed| trace.order(seed).iter().filter(|task| task.cards == 2).count() == 2), "shares are kept");
    // Both of a class are drawn, in some order.
    let drawn: std::collections::BTreeSet<String> = (1..20).flat_map(names).collect();
    assert_eq!(drawn.len(), 4);
}

#[test]
fn order_0_leaves_listed_tasks_as_they_are_written() {
    let trace = read(
        "arrivals_s = [5, 9]\n[[task]]\nworkload = \"a\"\n[[task]]\nworkload = \"b\"\nat = \"7s\"\n[[task]]\nworkload = \"c\"\n",
    );
    let order: Vec<(u64, String)> = trace.order(0).into_iter().map(|task| (task.at_ns / 1_000_000_000, task.workload)).collect();
    assert_eq!(order, [(5, "a".into()), (7, "b".into()), (9, "c".into())]);
}

#[test]
fn a_process_makes_the_same_arrivals_for_every_order() {
    let tasks = "\n[[tasks]]\ncount = 4\none_of = [\"a\"]\n";
    assert_eq!(seconds(&read(&format!("arrivals = {{ burst = 4 }}{tasks}"))), [0.0; 4]);
    assert_eq!(seconds(&read(&format!("arrivals = {{ every = \"5m\" }}{tasks}"))), [0.0, 300.0, 600.0, 900.0]);
    let many = read("arrivals = { poisson = \"20/h\", count = 4000 }\n[[tasks]]\ncount = 4000\none_of = [\"a\"]\n");
    let last_h = many.arrivals_ns()[3999] as f64 / 3.6e12;
    // Five standard deviations around 200 h.
    assert!((last_h - 200.0).abs() < 5.0 * 200.0 / 4000f64.sqrt(), "{last_h}");
    let seed = |seed: u32| read(&format!("arrivals = {{ poisson = \"20/h\", count = 4, seed = {seed} }}{tasks}"));
    assert_ne!(seed(1).arrivals_ns(), seed(2).arrivals_ns());
    assert_eq!(seed(1).arrivals_ns()[0], 0);
}

#[test]
fn a_mistake_is_shown_with_its_place_and_the_way_out() {
    assert_snapshot!(wrong("arrivals_s = [0, 9, 4]\n[[tasks]]\ncount = 3\none_of = [\"a\"]\n"), @r#"
    error: an arrival at 4 s follows one at 9 s at traces/t.toml:1:21
     1 | arrivals_s = [0, 9, 4]
       |                     ^ write them in the order of their times
    "#);
    assert_snapshot!(wrong("arrivals = { burst = 1 }\n[[task]]\nworkload = \"a\"\ncards = 0\n"), @r#"
    error: a task of 0 cards at traces/t.toml:4:9
     4 | cards = 0
       |         ^ write 1 or more
    "#);
    assert_snapshot!(wrong("arrivals = { burst = 1 }\n[[task]]\nworklod = \"a\"\nworkload = \"a\"\n"), @r#"
    error: unknown key `worklod` at traces/t.toml:3:1
     3 | worklod = "a"
       | ^^^^^^^ did you mean `workload`?
    "#);
    assert_snapshot!(wrong("arrivals = { burst = 2 }\n[[task]]\nworkload = \"a\"\n"), @r#"
    error: 2 arrivals for 1 task without a time of their own at traces/t.toml:1:12
     1 | arrivals = { burst = 2 }
       |            ^^^^^^^^^^^^^ give as many as there are tasks, or each task an `at`
    "#);
    assert_snapshot!(wrong("arrivals = { burst = 1 }\n[[tasks]]\ncount = 1\none_of = [\"a:32\"]\n"), @r#"
    error: `32` does not describe a task at traces/t.toml:4:14
     4 | one_of = ["a:32"]
       |              ^^ write `WORKLOAD:b32 20e 2c`: batch size, epochs, cards, each as needed
    "#);
    let many = wrong("arrivals = { burst = 1 }\n[[tasks]]\ncount = 1000001\none_of = [\"a\"]\n");
    assert!(many.contains("1000001 tasks are more") && many.contains("a window of it"), "{many}");
    for (text, what) in [
        ("", "a trace without tasks"),
        ("[[task]]\nworkload = \"a\"\n", "1 task without a time to arrive"),
        ("arrivals = {}\n[[task]]\nworkload = \"a\"\n", "arrivals without a process"),
        ("arrivals = { burst = 1, every = \"1s\" }\n[[task]]\nworkload = \"a\"\n", "more than one process"),
        ("arrivals = { poisson = \"20\" }\n[[task]]\nworkload = \"a\"\n", "`20` is no rate"),
        ("arrivals = { burst = 1 }\narrivals_s = [1]\n[[task]]\nworkload = \"a\"\n", "arrivals are given twice"),
        ("arrivals = { burst = 1 }\n[[task]]\nepochs = 1\n", "a task without a workload"),
        ("arrivals = { burst = 1 }\n[[tasks]]\ncount = 1\n", "does not say what is drawn"),
    ] {
        let said = wrong(text);
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn a_task_in_short_has_its_parts_in_any_order() {
    let what = short::read("resnet50:b64 2c 3e").expect("a task");
    assert_eq!((what.workload.as_str(), what.epochs, what.cards, &what.settings["batch_size"]), ("resnet50", 3, 2, &64.into()));
    for wrong in ["", ":b3", "a:b", "a:b0", "a 0e", "a 3", "a 3e 3e", "a e", "a ü"] {
        assert!(short::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_scale_is_one_to_a_whole_number() {
    let scale = Scale::parse("1:4").expect("a scale");
    assert_eq!((scale.by(), scale.to_string(), Scale::ONE.by()), (4, "1:4".into(), 1));
    for wrong in ["4", "1:0", "2:4", "1:", "1:x"] {
        assert!(Scale::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_least_time_is_bound_by_work_by_the_longest_and_by_the_last() {
    assert_eq!(least_time_ns(&[(0, 10, 1), (0, 10, 1), (0, 10, 1)], 2), 15);
    assert_eq!(least_time_ns(&[(0, 10, 1), (0, 40, 1)], 4), 40);
    assert_eq!(least_time_ns(&[(5, 10, 1), (90, 10, 2)], 2), 95);
    assert_eq!(least_time_ns(&[(0, 10, 2), (0, 10, 2)], 2), 20);
    assert_eq!(least_time_ns(&[], 2), 0);
}

fn classes() -> Vec<Class> {
    vec![Class { share: 2, one_of: vec!["a:b32 20e".into(), "b".into()] }, Class { share: 1, one_of: vec!["c 1e 2c".into()] }]
}

const WHOLE: Window = Window { from_s: 0, length_s: None, tasks: None };

#[test]
fn a_window_of_a_log_becomes_a_trace() {
    let philly = r#"[{"status": "Pass", "submitted_time": "2017-10-09 07:02:18", "attempts": []},
        {"submitted_time": "2017-10-09 07:01:05"}, {"submitted_time": "2017-10-10 07:01:05"}]"#;
    let submissions_s = Log::Philly.submissions_s(&Source::file("cluster_job_log", philly)).expect("a log");
    assert_eq!(submissions_s.iter().map(|s| s - submissions_s[0]).collect::<Vec<_>>(), [0, 73, 86_400]);
    let text = make(Log::Philly, &submissions_s, WHOLE, &classes()).expect("a trace");
    assert_snapshot!(text, @r#"
    description = "3 tasks at the gaps of a window of the philly log, 86400 s from the first to the last"
    source = "arrivals: msr-fiddle/philly-traces, CC-BY-4.0, 0 s after its first submission; tasks: drawn by shares"
    arrivals_s = [
        0, 73, 86400,
    ]

    [[tasks]]
    count = 2
    one_of = ["a:b32 20e", "b"]

    [[tasks]]
    count = 1
    one_of = ["c 1e 2c"]
    "#);
    assert_eq!(seconds(&read(&text)), [0.0, 73.0, 86_400.0]);
    let window = |from_s, length_s, tasks| make(Log::Philly, &submissions_s, Window { from_s, length_s, tasks }, &classes());
    assert_eq!(seconds(&read(&window(1, None, Some(1)).expect("one"))), [0.0]);
    assert_eq!(seconds(&read(&window(0, Some(74), None).expect("two"))), [0.0, 73.0]);
    assert!(window(90_000, None, None).expect_err("none").what().contains("no submission"));
    let many: Vec<u64> = (0..=MOST_TASKS as u64).collect();
    let too_many = make(Log::Philly, &many, WHOLE, &classes()).expect_err("too many");
    assert!(too_many.way_out().is_some_and(|way_out| way_out.contains("--window 4h")), "{too_many}");
}

#[test]
fn a_table_of_helios_is_read_by_its_column_and_not_if_it_is_cut_short() {
    let log = |text: &str| Log::Helios.submissions_s(&Source::file("cluster_log.csv", text));
    assert_eq!(
        log("job_id,submit_time,state\n1,2020-04-01 00:00:21,x\n2,2020-04-01 00:00:20,y\n").expect("a log")[0],
        1_585_699_220
    );
    assert_snapshot!(log("job_id,submit_time,state\n1,2020-04-01 00:00:21,x\n2,2020-04\n").expect_err("cut"), @r#"
    error: a line with 2 of 3 columns at cluster_log.csv:3:1
     3 | 2,2020-04
       | ^^^^^^^^^ the table is cut short; fetch it again
    "#);
    assert!(log("a,b\n").is_err() && log("").is_err());
    assert!(log("submit_time\nyesterday\n").expect_err("no time").what().contains("`yesterday`"));
    let cut = Log::Philly.submissions_s(&Source::file("cluster_job_log", "[{\"submitted_time\": \"2017-10-")).expect_err("cut");
    assert_eq!(cut.way_out(), Some("it is cut short; fetch it again"));
}

#[test]
fn shares_are_whole_numbers_that_add_up() {
    let submissions_s: Vec<u64> = (0..10).collect();
    let classes: Vec<Class> = [1, 1, 1].map(|share| Class { share, one_of: vec!["a".into()] }).to_vec();
    let trace = read(&make(Log::Helios, &submissions_s, WHOLE, &classes).expect("a trace"));
    assert_eq!(trace.tasks(), 10);
    assert!(make(Log::Helios, &submissions_s, WHOLE, &[]).is_err());
}

#[test]
fn a_table_of_submissions_becomes_a_trace() {
    let import = |text: &str| table(&Source::file("t.csv", text), &mut NameMap::default());
    let text = import("submit_time_s,task\n0,a:b32 20e\n73.5,b 2c\n").expect("a trace");
    let order = read(&text).order(0);
    assert_eq!(
        order.iter().map(|t| (t.workload.as_str(), t.at_ns, t.cards)).collect::<Vec<_>>(),
        [("a", 0, 1), ("b", 73_500_000_000, 2)]
    );
    assert_eq!(order[0].settings["batch_size"], 32);
    let as_written = "\u{feff}submit_time_s, task\r\n0, a:b32 20e\r\n73.5, b 2c\r\n";
    assert_eq!(import(as_written).expect("as a spreadsheet writes it"), text);
    assert_snapshot!(import("submit_time_s,task\n0,a\n73").expect_err("cut"), @r#"
    error: a line without a task at t.csv:3:1
     3 | 73
       | ^^ the table is cut short: complete the line, or delete it
    "#);
    for wrong in [
        "",
        "time,task\n",
        "submit_time_s,task\n",
        "submit_time_s,task\n9,a\n4,a\n",
        "submit_time_s,task\nx,a\n",
        "submit_time_s,task\n1,a 3\n",
    ] {
        assert!(import(wrong).is_err(), "{}", quoted(wrong));
    }
}

const RAD: &str = "# a comment\nconda activate e\npython train.py --epochs 20 --model r\nmodel: r.txt\nCIFAR-100\nbatch_size: 32\n\
    policy: collocation\n1\n1960\n2232\n54\n8192\n";

#[test]
fn a_script_and_its_task_files_become_a_trace() {
    let one = rad(&Source::file("tasks/r18_b32.rad", RAD)).expect("a task file");
    let expected = Rad {
        name: "r18_b32".into(),
        command: "python train.py --epochs 20 --model r".into(),
        batch_size: 32,
        cards: 1,
        epochs: 20,
        measured_bytes: Some(1960 << 20),
        horus_bytes: Some(2232 << 20),
        faketensor_bytes: Some(54 << 20),
        gpumemnet_bytes: Some(8192 << 20),
    };
    assert_eq!(one, expected);
    let files = BTreeMap::from([("tasks/r18_b32.rad".to_string(), one)]);
    let lines = "#!/bin/bash\n# sleep 9; submit.py other.rad\npython submit.py tasks/r18_b32.rad\nsleep 73\npython submit.py \"tasks/r18_b32.rad\"; sleep 2s\n";
    let source = Source::file("trace.sh", lines);
    assert_eq!(super::import::submitted(&source), ["tasks/r18_b32.rad"; 2], "not what a comment says");
    let text = script(&source, &files, &mut NameMap::default()).expect("a trace");
    assert_snapshot!(text, @r#"
    description = "2 tasks of a script"
    source = "imported from trace.sh"
    arrivals_s = [
        0, 73,
    ]

    [[task]]
    # python train.py --epochs 20 --model r
    workload = "r18_b32"
    batch_size = 32
    epochs = 20
    cards = 1

    [[task]]
    # python train.py --epochs 20 --model r
    workload = "r18_b32"
    batch_size = 32
    epochs = 20
    cards = 1
    "#);
    assert_eq!(read(&text).order(0)[1].at_ns, u64::try_from(Duration::from_secs(73).as_nanos()).expect("small"));
    let cut =
        |text: &str| script(&Source::file("trace.sh", text), &files, &mut NameMap::default()).expect_err("a mistake").to_string();
    assert!(
        cut("sleep\n").contains("complete the line")
            && cut("submit other.rad\n").contains("`other.rad`")
            && cut("").contains("nothing")
    );
}

#[test]
fn scripts_sleep_and_submit_as_shells_let_them() {
    let one = rad(&Source::file("r18_b32.rad", RAD)).expect("a task file");
    let files = BTreeMap::from([("a/r.rad".to_string(), one.clone()), ("/opt/b.rad".into(), one)]);
    let mut names = NameMap::parse("--map", ["r18_*=resnet18"]).expect("names");
    let mut times = |text: &str| {
        let text = script(&Source::file("trace.sh", text), &files, &mut names).expect("a trace");
        let order = read(&text).order(0);
        order.iter().map(|task| (task.workload.clone(), task.at_ns / 1_000_000_000)).collect::<Vec<_>>()
    };
    let all = times(
        "sleep 1m # sleep 9\nsubmit --task=a/r.rad & sleep 1h 0.5m;submit /opt/b.rad # a/r.rad\n  sleep 2d && submit 'a/r.rad'\n",
    );
    assert_eq!(all, [("resnet18".to_string(), 60), ("resnet18".into(), 3690), ("resnet18".into(), 176_490)]);
    assert_eq!(times("echo for all; submit a/r.rad\nfor x in 1; do echo $x; done; submit a/r.rad\n").len(), 2);
    let wrong =
        |text: &str| script(&Source::file("trace.sh", text), &files, &mut NameMap::default()).expect_err("wrong").to_string();
    assert_snapshot!(wrong("for n in 1 2; do\n  submit a/r.rad; sleep 5\ndone\n"), @r#"
    error: `a/r.rad` in a loop, and a script is read, not executed, at trace.sh:2:1
     2 |   submit a/r.rad; sleep 5
       | ^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: write the loop out: lines such as `sleep 73` and `submit NAME.rad`, in their order
    "#);
    assert_snapshot!(wrong("sleep 60 $GAP\n"), @"
    error: `sleep` with `$GAP`, which is not a time, at trace.sh:1:1
     1 | sleep 60 $GAP
       | ^^^^^^^^^^^^^ write numbers, as in `sleep 73` or `sleep 1.5m`: variables are not known
    ");
    for (unclear, word) in [("sleep $GAP", "$GAP"), ("sleep 5ms", "5ms"), ("sleep -1", "-1"), ("sleep 5 nan", "nan")] {
        assert!(wrong(unclear).contains(&format!("`sleep` with `{word}`, which is not a time")), "{unclear}");
    }
}

#[test]
fn what_a_shell_may_execute_otherwise_than_once_and_in_its_order_is_refused() {
    let one = rad(&Source::file("r.rad", RAD)).expect("a task file");
    let files = BTreeMap::from([("r.rad".to_string(), one)]);
    let read = |text: &str| script(&Source::file("trace.sh", text), &files, &mut NameMap::default());
    for (reason, scripts) in [
        (
            "in a loop",
            &[
                "while true; do sleep 5; done",
                "for x in 1 2; do for y in 1 2; do submit r.rad; done; sleep 5; done",
                "for x in 1 2; do ! for y in 1 2; do true; done; sleep 5; done",
                "if true; then while true; do sleep 5; done; fi",
                "{ time -p until false; do sleep 5; done; }",
                "while sleep 5; do true; done",
            ][..],
        ),
        (
            "behind a condition",
            &[
                "if true; then sleep 5; fi",
                "if true; then true; else for x in 1; do true; done; submit r.rad; fi",
                "case $X in a) sleep 5;; esac",
                "[ -f x ] && sleep 5",
                "submit r.rad || sleep 5",
                "true ||\n  sleep 5",
            ],
        ),
        ("in a function", &["wait_for() { sleep 5; }", "wait_for()\n{\n  sleep 5\n}", "function f {\nsubmit r.rad\n}"]),
        ("in the background", &["sleep 5 &", "sleep 5 && submit r.rad &", "(sleep 5) &"]),
        ("in braces", &["{ sleep 5; submit r.rad; } &", "{\n sleep 5\n submit r.rad\n}"]),
        ("in parentheses", &["(sleep 5; submit r.rad) &", "(\n sleep 5\n submit r.rad\n) &"]),
    ] {
        for text in scripts {
            let wrong = read(text).expect_err(text).to_string();
            assert!(wrong.contains(reason), "{text}: {wrong}");
        }
    }
    for clear in [
        "for x in 1; do if true; then true; fi; done; (sleep 2); submit r.rad",
        "f() {\n  echo $1\n}\nf x || exit 1\nsleep 1; time sleep 1; { cd x && submit r.rad; } &",
        "sleep 2 2>&1; if [ -f x ]; then true; fi; python submit.py r.rad &>log",
    ] {
        assert!(read(clear).expect(clear).contains("\n    2,\n"), "{clear}");
    }
}

#[test]
fn estimates_with_a_fraction_are_rounded_up_to_bytes() {
    let fraction = RAD.replace("\n2232\n54\n", "\n7903.9316\n94.27285004\n");
    let one = rad(&Source::file("r.rad", fraction)).expect("a task file");
    assert_eq!((one.horus_bytes, one.faketensor_bytes), (Some(8_287_872_982), Some(98_852_249)));
    for wrong in ["many", "0", "-1", "nan", "inf", "1e300"] {
        let wrong = rad(&Source::file("r.rad", RAD.replace("\n2232\n", &format!("\n{wrong}\n")))).expect_err("no number");
        assert!(wrong.to_string().contains("on line 10 is no Horus") && wrong.to_string().contains("a number of MB"), "{wrong}");
    }
}

#[test]
fn a_task_file_that_is_cut_short_says_where() {
    let cut: String = RAD.split_inclusive('\n').take(7).collect();
    assert_snapshot!(rad(&Source::file("r.rad", cut)).expect_err("cut"), @r#"
    error: `r.rad` ends after line 7, before its cards, at r.rad:8:1
     8 | 
       | ^ it has 12 lines, and needs the first 8: complete it
    "#);
    let words = RAD.replace("batch_size: 32", "batch_size: many");
    assert!(rad(&Source::file("r.rad", words)).expect_err("no number").what().contains("`many` on line 6"));
    let without: String = RAD.split_inclusive('\n').take(8).collect();
    assert_eq!(rad(&Source::file("r.rad", without)).expect("enough").measured_bytes, None);
}
