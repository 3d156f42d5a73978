//! A mistake is named with its place, its reason and the way out, and nothing is touched.

use crate::support::Bench;

/// An experiment with a mistake: both `plan` and `run` say it, with this exit code and these words, and store nothing.
#[track_caller]
fn mistake(toml: &str, code: i32, words: &[&str]) {
    let bench = Bench::new().file("experiments/mine.toml", toml);
    for verb in [&["plan", "mine"][..], &["run", "mine"]] {
        let answer = bench.collo(verb).exits(code);
        // Another test may just have killed its collo: what that left behind is ended by the next one of this user.
        let mut said = answer.stderr.lines().filter(|line| !line.starts_with("warning: ended "));
        assert!(said.next().is_some_and(|line| line.starts_with("error: ")), "{}", answer.stderr);
        assert_eq!(answer.stdout, "");
        words.iter().fold(answer, |answer, word| answer.says(word));
    }
    assert!(!bench.at("runs").exists() && !bench.at("reports").exists() && !bench.at("data").exists(), "nothing was touched");
}

#[test]
fn toml_that_does_not_end_is_shown_where_it_breaks() {
    mistake("device = \"cpu\"\n[axes]\nworkload = \"sleep\"\ndegree = [1, 2\n", 2, &["not valid TOML", "experiments/mine.toml:"]);
}

#[test]
fn no_time_at_all_is_no_time_limit() {
    for key in ["timeout", "set_up_timeout", "stall_timeout"] {
        let toml = format!("device = \"cpu\"\n{key} = \"0s\"\n[axes]\nworkload = \"sleep\"\n");
        mistake(&toml, 2, &[&format!("`{key}` is zero, so every run would end at once, at experiments/mine.toml:2:")]);
    }
}

#[test]
fn what_is_no_number_and_what_no_process_can_be_told_is_refused() {
    for value in ["nan", "inf", "99999999999999999999"] {
        let toml = format!("device = \"cpu\"\n[axes]\nworkload = \"sleep\"\nseconds = [{value}]\n");
        mistake(&toml, 2, &[&format!("`seconds` {value} is not a finite number at experiments/mine.toml:4:12")]);
    }
    let toml = "device = \"cpu\"\n[axes]\nworkload = \"faulty\"\nhow = \"a\\u0000b\"\n";
    mistake(toml, 2, &["`how` contains a NUL character at experiments/mine.toml:4:"]);
}

#[test]
fn an_experiment_is_not_called_as_campaigns_are() {
    for name in ["last", "last-1", "20261120-1842-7f3a", "x.toml"] {
        let toml = format!("name = \"{name}\"\ndevice = \"cpu\"\n[axes]\nworkload = \"sleep\"\n");
        mistake(&toml, 2, &[&format!("invalid experiment name `{name}`"), "named so on the command line"]);
    }
}

#[test]
fn an_unknown_key_has_its_nearest_name() {
    let toml = "device = \"cpu\"\nrepetition = 3\n[axes]\nworkload = \"sleep\"\n";
    mistake(toml, 2, &["unknown key `repetition` at experiments/mine.toml:2:1", "^^^^^^^^^^ did you mean `repetitions`?"]);
}

#[test]
fn a_key_above_its_table_is_answered_with_the_table() {
    for (key, table) in [("workload = \"sleep\"", "axes"), ("degree = 2", "axes"), ("relevant = \"3%\"", "thresholds")] {
        let toml = format!("device = \"cpu\"\n{key}\n[axes]\nworkload = \"sleep\"\n");
        mistake(&toml, 2, &["at experiments/mine.toml:2:1", &format!("it belongs below `[{table}]`")]);
    }
}

#[test]
fn a_wrong_type_is_said_with_what_to_write() {
    let toml = "device = \"cpu\"\nrepetitions = \"3\"\n[axes]\nworkload = \"sleep\"\n";
    let budget = "device = \"cpu\"\nretries = 3\n[axes]\nworkload = \"sleep\"\n";
    mistake(budget, 2, &["`retries` must be a table, not a whole number", "write `{ each = 3 }`"]);
    let group = "device = \"cpu\"\n[[group]]\nmembers = [\"sleep\"]\n";
    mistake(group, 2, &["`members` must be a table, not text", "write `{ workload = \"sleep\" }`"]);
    mistake(toml, 2, &["`repetitions` must be a whole number, not text, at experiments/mine.toml:2:15", "write `3`"]);
}

#[test]
fn a_wrong_unit_is_no_duration() {
    let toml = "device = \"cpu\"\ntimeout = \"30 mins\"\n[axes]\nworkload = \"sleep\"\n";
    mistake(toml, 2, &["invalid duration `30 mins` at experiments/mine.toml:2:11", "write `\"30m\"`; units are ms, s, m, h"]);
}

#[test]
fn several_mistakes_are_told_at_once() {
    let toml = "device = \"cpu\"\nrepetition = 3\ntimeout = 5\n[axes]\nworkload = \"slep\"\n";
    mistake(toml, 2, &["`repetition`", "`timeout`", "unknown workload `slep`", "did you mean `sleep`?"]);
}

#[test]
fn an_empty_axis_has_no_cell() {
    let toml = "device = \"cpu\"\n[axes]\nworkload = \"sleep\"\nsharing = []\n";
    mistake(toml, 2, &["axis `sharing` is empty", "mine.toml:4:11"]);
}

#[test]
fn a_degree_that_nobody_can_have_is_refused() {
    for degree in ["0", "[2, 1000000]"] {
        let toml = format!("device = \"cpu\"\n[axes]\nworkload = \"sleep\"\ndegree = {degree}\n");
        mistake(&toml, 2, &["is not between 1 and 256 at experiments/mine.toml:4:"]);
    }
}

#[test]
fn an_unknown_mode_has_its_nearest_name() {
    let toml = "device = \"cpu\"\n[axes]\nworkload = \"sleep\"\nsharing = [\"naive\", \"msp:50%\"]\n";
    mistake(toml, 2, &["unknown sharing mode `msp:50%`", "did you mean `mps:50%`?"]);
}

#[test]
fn too_many_cells_are_counted_and_a_selection_is_asked_for() {
    let many: Vec<String> = (1..=400).map(|n| n.to_string()).collect();
    let list = many.join(", ");
    let toml = format!("device = \"cpu\"\n[axes]\nworkload = \"sleep\"\nitems = [{list}]\nseconds = [{list}]\n");
    mistake(&toml, 2, &["160000 cells", "more than 100000", "--where"]);
}

#[test]
fn a_workload_without_its_file_is_named() {
    let bench =
        Bench::of("[axes]\nworkload = \"mynet\"").file("workloads/mynet/train.py", "").file("workloads/mynet/model.py", "");
    let answer = bench.collo(&["run", "x"]).exits(2).says("workload `mynet` has no `workload.toml`");
    answer.says("`command = [\"python\", \"train.py\"]`");
    assert!(!bench.at("runs").exists());
}

#[test]
fn a_command_without_a_program_and_variables_without_a_name_are_refused() {
    let toml = "command = [\"\", \"train.py\"]\n[variables]\n\"\" = \"1\"\n\"A=B\" = \"1\"\n";
    let bench = Bench::of("[axes]\nworkload = \"mynet\"").file("workloads/mynet/workload.toml", toml);
    let answer = bench.collo(&["run", "x"]).exits(2).says("`command` begins with an empty word, not a program");
    answer.says("invalid variable name ``").says("invalid variable name `A=B`");
    bench.write("workloads/mynet/workload.toml", "command = [\"python\"]\noutputs = [\"../x\"]\n");
    bench.collo(&["run", "x"]).exits(2).says("`../x` is not a name in the workload's folder");
    assert!(!bench.at("runs").exists());
}

#[test]
fn what_lies_about_in_a_project_holds_nobody_up() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.1\nitems = 2");
    fs_err::create_dir_all(bench.at("mig-profiles")).expect("a folder");
    fs_err::create_dir_all(bench.at("workloads/large")).expect("a folder");
    for folder in ["experiments", "mig-profiles"] {
        let at = |name: &str| bench.at(folder).join(name);
        nix::unistd::mkfifo(&at("pipe.toml"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for (name, target) in [("zero.toml", "/dev/zero"), ("self.toml", "self.toml"), ("nowhere.toml", "/no/such/file")] {
            std::os::unix::fs::symlink(target, at(name)).expect("a link");
        }
        fs_err::create_dir(at("folder.toml")).expect("a folder");
        fs_err::File::create(at("large.toml")).and_then(|f| f.set_len(1 << 40)).expect("a file with a hole");
    }
    let large = fs_err::File::create(bench.at("workloads/large/workload.toml")).expect("a file");
    large.set_len(1 << 40).expect("a hole");
    bench.collo(&["plan", "x"]).exits(0);
    bench.collo(&["plan", "zero"]).exits(2).says("unknown experiment `zero`");
    bench.collo(&["plan", "large"]).exits(2).says("is larger than 1000000 bytes");
    let listed = bench.collo(&["list", "experiments"]).exits(0).says("is a named pipe, not a readable file");
    listed.says("is a device, not a readable file");
    bench.collo(&["list", "workloads"]).exits(0).says("workload `large` cannot be read");
    bench.collo(&["list", "gpus"]).exits(0);
    bench.run(&[]).exits(0);
}

#[test]
fn a_project_whose_path_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::of("[axes]\nworkload = \"sleep\"");
    let place = bench.at("").join(std::ffi::OsStr::from_bytes(b"a\xff"));
    for folder in ["experiments", "workloads"] {
        fs_err::create_dir_all(place.join(folder)).expect("a folder");
    }
    let output = bench.command(&["run", "x"]).current_dir(&place).output().expect("collo starts");
    let answer = crate::support::Answer::from(output).exits(3).says("is not UTF-8");
    answer.says("hint: move the project, or rename its folder");
}

#[test]
fn verbs_that_write_files_or_explain_answer_in_json_as_well() {
    let bench = Bench::new();
    for (words, key) in [(&["init", "new"][..], "written"), (&["man", "pages"], "folder"), (&["help", "all"], "text")] {
        let json = bench.collo(&[words, &["--json"]].concat()).exits(0).json();
        assert!(json["schema"] == 1 && !json[key].is_null(), "{words:?}: {json}");
    }
}

#[test]
fn a_folder_that_is_gone_is_named() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"");
    let gone = bench.at("gone");
    fs_err::create_dir(&gone).expect("a folder");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "rmdir ../gone && exec \"$0\" list", env!("CARGO_BIN_EXE_collo")]).current_dir(&gone);
    let answer = crate::support::Answer::from(shell.output().expect("sh starts"));
    answer.exits(3).says("the folder in which collo was started no longer exists").says("hint: `cd` to an existing one");
}

#[test]
fn where_a_report_cannot_be_written_the_runs_are_safe_and_that_is_said() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.1\nitems = 2").file("reports", "somebody's");
    let answer = bench.collo(&["run", "x"]).exits(4).says("but their report cannot be written");
    let answer = answer.says("error: all 2 runs are stored").says("hint: `collo report ");
    assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
    assert_eq!(bench.runs().len(), 2);
}

#[test]
fn two_experiments_of_one_name_are_a_mistake() {
    let bench = Bench::of("name = \"twin\"\n[axes]\nworkload = \"sleep\"")
        .experiment("y", "name = \"twin\"\n[axes]\nworkload = \"sleep\"");
    bench.collo(&["run", "twin"]).exits(2).says("two experiments are called `twin`").says("experiments/y.toml");
    assert!(!bench.at("runs").exists());
}

#[test]
fn a_machine_without_a_gpu_says_so_with_the_ways_out() {
    if collo_device::has_gpu() {
        return crate::support::skip::skip("a machine without a GPU", "this machine has a GPU");
    }
    mistake(
        "device = \"gpu\"\n[axes]\nworkload = \"sleep\"\n",
        3,
        &["collo --simulate a100-40gb run mine", "collo run quickstart"],
    );
}

#[test]
fn what_a_cpu_cannot_share_is_refused_cell_by_cell() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.1\nsharing = [\"mps\", \"mig\"]\ndegree = 2");
    let plan = bench.collo(&["plan", "x", "--json"]).json();
    let refusals = plan["refusals"].as_array().expect("a list");
    assert_eq!(refusals.len(), 2, "{plan}");
    assert!(refusals.iter().all(|r| r["reason"].is_string() && r["hint"].is_string()), "{plan}");
    // What is left of it is nothing.
    bench.collo(&["run", "x"]).exits(3).says("every cell of `x` is refused here");
    assert!(!bench.at("runs").exists());
}

#[test]
fn a_selection_that_cannot_be_read_is_shown_where_it_breaks() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"");
    bench.collo(&["plan", "x", "--where", "degree <="]).exits(2).says("--where");
    bench.collo(&["plan", "x", "--where", "degre == 1"]).exits(2).says("did you mean `degree`?");
    bench.collo(&["run", "x", "--where", "degree == 7"]).exits(2).says("selects no cell of `x`");
    bench.collo(&["plan", "x", "--where", "degree == 7"]).exits(2).says("`--where 'degree == 7'` selects no cell");
    Bench::of("[axes]\nworkload = \"sleep\"\n[[exclude]]\nwhere = \"degree >= 1\"\n")
        .collo(&["plan", "x"])
        .says("`[[exclude]]` leaves out every cell");
    assert!(!bench.at("runs").exists());
}

#[test]
fn the_command_line_is_checked_before_anything_else() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"");
    for arguments in [&["rnu", "x"][..], &["run"], &["run", "x", "--onyl", "failed"], &["run", "x", "--for", "8 hours"], &[]] {
        bench.collo(arguments).exits(2);
    }
    bench.collo(&["run", "quikstart"]).exits(2).says("quikstart");
    bench.collo(&["run", "experiments/none.toml"]).exits(2).says("experiments/none.toml");
    bench.collo(&["plan", "--tag", "none"]).exits(2).says("no experiment has the tag `none`");
    let unfinished = bench.collo(&["plan", "--tag", "gpu &&"]).exits(2);
    unfinished.says("error: expected a tag, as in `gpu && !slow`, at column 7 of `--tag`");
    bench.collo(&["show", "beef"]).exits(2).says("no campaign `beef`");
    bench.collo(&["run", "last-1"]).exits(2).says("no campaign `last-1`: none is stored");
    bench.collo(&["run", "away.tar.gz"]).exits(2).says("no bundle at `away.tar.gz`").says("hint: `collo bundle CAMPAIGN`");
    bench.collo(&["--help"]).exits(0).answers("Start with: collo run quickstart");
    assert!(!bench.at("runs").exists());
}

#[test]
fn outside_a_project_the_way_in_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().to_str().expect("text");
    let bench = Bench::new();
    bench.collo(&["-C", place, "run", "x"]).exits(2).says(&format!("hint: `collo -C {place} init DIR` writes them"));
    for verb in ["show", "report", "verify"] {
        let answer = bench.collo(&["-C", place, verb]).exits(2).says(&format!("no project is here: `collo -C {place} init DIR`"));
        assert!(!answer.stderr.contains("run quickstart"), "{}", answer.stderr);
    }
    bench.collo(&["-C", place, "list"]).exits(0).says(&format!("next: collo -C {place} init DIR"));
}

#[test]
fn a_python_that_cannot_be_used_is_said_before_anything_is_stored() {
    let bench = Bench::of("[axes]\nworkload = \"tiny\"");
    for python in ["/bin/false", "/no/such/python"] {
        bench.collo(&["run", "x", "--python", python]).exits(3).says(python).says("hint: leave out `--python`");
    }
    assert!(!bench.at("runs").exists());
    let of_variable = Bench::of("[axes]\nworkload = \"tiny\"").env("COLLO_PYTHON", "/no/such/python");
    of_variable.collo(&["run", "x"]).exits(3).says("/no/such/python").says("hint: `unset COLLO_PYTHON` takes the pinned set");
    of_variable.collo(&["doctor"]).exits(0).answers("✗ python").answers("`/no/such/python` is not a usable Python");
    let bench = bench.env("COLLO_CACHE", "/proc/no-cache");
    bench.collo(&["run", "x"]).exits(3).says("/proc/no-cache");
    assert!(!bench.at("runs").exists());
}
