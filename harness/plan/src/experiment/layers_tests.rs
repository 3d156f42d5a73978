use std::path::Path;

use collo_text::{Diagnostics, Source};

use super::{Experiment, Overrides};
use crate::fixture::workloads;
use crate::host::HostFile;

const MINE: &str = "include = [\"common.toml\"]\nrepetitions = 5\n[axes]\nworkload = \"tiny\"\n";
const COMMON: &str = "name = \"common\"\nrepetitions = 9\nepochs = 4\ncores = \"0\"\n[axes]\ndegree = [1, 2]\nworkload = \"small\"\n[thresholds]\nslowdown = 1.2\n";

/// `experiments/mine.toml` among these files, read with `--set` and a machine's `collo.toml`.
fn read(files: &[(&str, &str)], set: &[&str], host: &str) -> Result<Experiment, Diagnostics> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        std::fs::write(path, text).expect("written");
    }
    let host = match host {
        "" => HostFile::default(),
        text => HostFile::parse(&Source::file("collo.toml", text), folder.path())?,
    };
    let overrides = Overrides { set: set.iter().map(ToString::to_string).collect(), host };
    Experiment::read(&folder.path().join("mine.toml"), &workloads(), &overrides)
}

fn said(files: &[(&str, &str)], set: &[&str]) -> String {
    let text = read(files, set, "").expect_err("it is wrong").to_string();
    // The folder has another name each time.
    let mut shown = String::new();
    for line in text.lines() {
        match line.split_once("/tmp/") {
            Some((before, rest)) => shown += &format!("{before}{}\n", rest.split_once('/').map_or(rest, |(_, name)| name)),
            None => shown += &format!("{line}\n"),
        }
    }
    shown
}

fn places(e: &Experiment) -> Vec<(String, String, String)> {
    let name = |place: &str| Path::new(place).file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let row = |o: super::Origin| (o.key, o.value, o.place.map_or("default".into(), |place| name(&place)));
    e.explain().into_iter().map(row).collect()
}

fn place(e: &Experiment, key: &str) -> (String, String) {
    let found = places(e).into_iter().find(|(name, ..)| name == key);
    found.map(|(_, value, place)| (value, place)).unwrap_or_default()
}

#[test]
fn the_command_line_wins_then_the_own_file_then_what_it_includes_then_the_machine() {
    let files = [("mine.toml", MINE), ("common.toml", COMMON)];
    let e = read(&files, &["axes.degree=[3]", "thresholds.relevant=3%"], "cores = \"1\"\ngpu = \"0\"\n").expect("right");
    assert_eq!((e.name.as_str(), e.repetitions, e.epochs), ("mine", 5, 4));
    assert_eq!((e.axes.workload[0].name.as_str(), &e.axes.degree[..]), ("tiny", &[3][..]));
    assert_eq!((e.thresholds.relevant_ratio, e.thresholds.slowdown), (0.03, 1.2));
    let table = [
        ("repetitions", "5", "mine.toml:2"),
        ("epochs", "4", "common.toml:3"),
        ("axes.degree", "[3]", "--set"),
        ("thresholds.relevant", "\"3%\"", "--set"),
        ("thresholds.slowdown", "1.2", "common.toml:9"),
        ("cores", "\"0\"", "common.toml:4"),
        ("gpu", "\"0\"", "collo.toml:2"),
        ("seed", "42", "default"),
    ];
    for (key, value, from) in table {
        assert_eq!(place(&e, key), (value.to_string(), from.to_string()), "{key}");
    }
    let only_host = read(&[("mine.toml", "[axes]\nworkload = \"tiny\"\n")], &[], "cores = \"1\"\n").expect("right");
    assert_eq!(place(&only_host, "cores"), ("\"1\"".into(), "collo.toml:1".into()));
}

#[test]
fn of_several_included_files_the_last_wins_and_what_it_includes_comes_after_it() {
    let files = [
        ("mine.toml", "include = [\"a.toml\", \"b.toml\"]\n[axes]\nworkload = \"tiny\"\n"),
        ("a.toml", "epochs = 3\nseed = 1\nthreads = 2\n"),
        ("b.toml", "include = [\"deep/c.toml\"]\nepochs = 4\n"),
        ("deep/c.toml", "epochs = 5\nseed = 2\n"),
    ];
    let e = read(&files, &[], "").expect("right");
    assert_eq!((e.epochs, e.seed, e.threads), (4, 2, 2));
    let names: Vec<String> = e.layers.ingredients().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["experiment", "include b.toml", "include deep/c.toml", "include a.toml"]);
}

#[test]
fn what_is_set_is_an_ingredient_by_its_key() {
    let e = read(&[("mine.toml", "[axes]\nworkload = \"tiny\"\n")], &["repetitions = 7", "device=cpu"], "").expect("right");
    let names: Vec<_> = e.layers.ingredients().into_iter().map(|(name, _, version)| (name, version)).collect();
    assert_eq!(names[1], ("--set repetitions".into(), Some("`repetitions=7`".into())));
    assert_eq!(names[2], ("--set device".into(), Some("`device=\"cpu\"`".into())));
    assert_eq!(e.layers.set(), ["repetitions=7", "device=\"cpu\""]);
}

#[test]
fn an_axis_may_be_set_by_its_name_alone() {
    let e = read(&[("mine.toml", "[axes]\nworkload = \"tiny\"\n")], &["degree=4", "sharing=naive"], "").expect("right");
    assert_eq!(e.axes.degree, [4]);
    assert_eq!(e.layers.set(), ["axes.degree=4", "axes.sharing=\"naive\""]);
    let several = read(&[("mine.toml", "[axes]\nworkload = \"tiny\"\n")], &["degree=1, 2"], "").expect("right");
    assert_eq!(several.axes.degree, [1, 2]);
    let setting = said(&[("mine.toml", "[axes]\nworkload = \"tiny\"\n")], &["width=96"]);
    assert!(setting.contains("`tiny`") && setting.contains("width"), "a setting that it lacks: {setting}");
    let mistyped = said(&[("mine.toml", "[axes]\nworkload = \"tiny\"\n")], &["repetition=9"]);
    assert!(mistyped.contains("did you mean `repetitions`?"), "{mistyped}");
    let twice = said(&[("mine.toml", "[axes]\nworkload = \"tiny\"\n")], &["degree=4", "axes.degree=2"]);
    assert!(twice.starts_with("error: `axes.degree` is set twice"), "{twice}");
}

#[test]
fn a_mistake_is_shown_in_the_text_that_it_is_in() {
    let files = [("mine.toml", MINE), ("common.toml", "epoch = 3\n")];
    insta::assert_snapshot!(said(&files, &["repetitions=many", "axes.degre=2"]), @r#"
    error: unknown axis `degre` at column 6 of `--set`
       | axes.degre=2
       |      ^^^^^ did you mean `degree`?
    error: `repetitions` must be a whole number, not text, at column 13 of `--set`
       | repetitions="many"
       |             ^^^^^^
    error: unknown key `epoch` at common.toml:1:1
     1 | epoch = 3
       | ^^^^^ did you mean `epochs`?
    "#);
    insta::assert_snapshot!(said(&[("mine.toml", MINE)], &[]), @r#"
    error: included file `common.toml` cannot be read at mine.toml:1:12
     1 | include = ["common.toml"]
       |            ^^^^^^^^^^^^^
      caused by: there is no file `common.toml`
    "#);
    insta::assert_snapshot!(said(&[("mine.toml", MINE), ("common.toml", "include = [\"mine.toml\"]\n")], &[]), @r#"
    error: `mine.toml` includes itself at common.toml:1:12
     1 | include = ["mine.toml"]
       |            ^^^^^^^^^^^ leave it out
    "#);
}

#[test]
fn what_cannot_be_set_is_said() {
    let files = [("mine.toml", "[axes]\nworkload = \"tiny\"\n")];
    insta::assert_snapshot!(said(&files, &["repetitions"]), @"
    error: `--set` `repetitions` is not a key and its value
    hint: as in `--set repetitions=5`; all keys: `collo schema experiment`
    ");
    insta::assert_snapshot!(said(&files, &["name=other"]), @"
    error: `name` cannot be set at column 1 of `--set`
       | name=other
       | ^^^^ it is the file's own
    ");
    insta::assert_snapshot!(said(&files, &["axes.degree=2", "axes={degree=3}"]), @"
    error: `axes.degree` is set, too, at column 1 of `--set`
       | axes={degree=3}
       | ^^^^ leave one out
    ");
    insta::assert_snapshot!(said(&files, &["axes.degree=[1,"]), @"
    error: not valid TOML: unclosed array, expected `]`, at column 16 of `--set`
       | axes.degree=[1,
       |                ^
    ");
}

#[test]
fn a_machines_file_is_strict() {
    let parse = |text: &str| HostFile::parse(&Source::file("collo.toml", text), Path::new("/project"));
    let host = parse(
        "gpu = \"1\"\npython = \"env/bin/python\"\nforeign = \"allow\"\nprice_per_hour = \"2 * 1.25\"\ncurrency = \"EUR\"\n",
    );
    let host = host.expect("right");
    assert_eq!((host.gpu.as_deref(), host.foreign), (Some("1"), Some(true)));
    assert_eq!(host.python.as_deref(), Some(Path::new("/project/env/bin/python")));
    assert_eq!(host.price.map(|price| (price.per_hour, price.currency)), Some((2.5, "EUR".to_string())));
    insta::assert_snapshot!(parse("gpus = \"1\"\nforeign = \"alow\"\nprice_per_hour = -1\n").expect_err("wrong"), @r#"
    error: unknown key `gpus` at collo.toml:1:1
     1 | gpus = "1"
       | ^^^^ did you mean `gpu`?
    error: unknown foreign `alow` at collo.toml:2:11
     2 | foreign = "alow"
       |           ^^^^^^ did you mean `allow`?
    error: price_per_hour -1 is not between 0 and 1000000000 at collo.toml:3:18
     3 | price_per_hour = -1
       |                  ^^
    "#);
    insta::assert_snapshot!(parse("price_per_hour = 2\n").expect_err("wrong"), @r#"
    error: `price_per_hour` without `currency` at collo.toml:1:1
     1 | price_per_hour = 2
       | ^^^^^^^^^^^^^^ add `currency = "EUR"`
    "#);
}
