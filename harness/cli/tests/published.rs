//! What is published works: experiments plan, `collo init` gives a whole project, and the pages name only what there is.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use collo_store::Outcome;

use crate::sim;
use crate::support::{Bench, checkout};

#[test]
fn every_published_figure_of_a_policy_has_its_cell_in_the_experiment_with_its_trace() {
    let root = checkout();
    let place = root.to_str().expect("text");
    let text = fs_err::read_to_string(root.join("reports/published/manager.json")).expect("readable");
    let published: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let bench = Bench::new();
    for trace in ["60", "90"] {
        let name = format!("trace-{trace}");
        let answer = bench.collo(&["-C", place, "plan", &name, "--gpu", "a100-40gb", "--no-predict", "--json"]);
        let plan: serde_json::Value = serde_json::from_str(&answer.stdout).expect("a plan");
        let cells: Vec<&str> =
            plan["cells"].as_array().expect("a list").iter().filter_map(|cell| cell["cell"].as_str()).collect();
        let figures = published["figures"].as_array().expect("a list").iter().filter(|figure| figure["trace"] == *trace);
        for figure in figures {
            let word = |key: &str| figure[key].as_str().expect("a word");
            let estimate = if word("estimate") == "none" { String::new() } else { format!(" {}", word("estimate")) };
            let label = format!("philly-{trace}/1 {}{estimate} {} ×4", word("policy"), word("sharing"));
            assert!(cells.contains(&label.as_str()), "{label} is not in {name}");
        }
    }
}

#[test]
fn every_experiment_for_gpus_plans_on_every_card_and_says_what_it_refuses() {
    let root = checkout();
    let place = root.to_str().expect("text");
    let bench = Bench::new();
    let names = |folder: &str| -> Vec<String> {
        let entries = fs_err::read_dir(root.join(folder)).expect("readable");
        let mut names: Vec<String> = entries
            .map(|e| e.expect("readable").path())
            .filter(|p| p.extension().is_some_and(|e| e == "toml"))
            .map(|p| p.file_stem().expect("named").to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let for_gpus = |name: &String| {
        let text = fs_err::read_to_string(root.join(format!("experiments/{name}.toml"))).expect("readable");
        !text.contains("device = \"cpu\"")
    };
    let cards = names("mig-profiles");
    let mut count = 0;
    for name in names("experiments").into_iter().filter(for_gpus) {
        // A trace of ninety tasks takes seconds to plan: three models stand for all.
        let text = fs_err::read_to_string(root.join(format!("experiments/{name}.toml"))).expect("readable");
        let is_trace = text.contains("\n[trace]");
        let few = ["a100-40gb", "h100-80gb", "rtx-3090"];
        for card in cards.iter().filter(|card| !is_trace || few.contains(&card.as_str())) {
            let answer = bench.collo(&["-C", place, "plan", &name, "--gpu", card, "--no-predict", "--json"]);
            let plan = serde_json::from_str::<serde_json::Value>(&answer.stdout)
                .unwrap_or_else(|e| panic!("{name} on {card}: {e}\n{}", answer.stderr));
            let cells = plan["cells"].as_array().expect("a list").len();
            for refusal in plan["refusals"].as_array().expect("a list") {
                assert!(refusal["reason"].as_str().is_some_and(|r| !r.is_empty()), "{name} on {card}");
            }
            assert_eq!(answer.code, Some(if cells > 0 { 0 } else { 3 }), "{name} on {card}: {}", answer.stderr);
            // On the card of the study nothing is refused but what cannot be.
            if card == "a100-40gb" {
                // Which tools there are is a matter of this machine.
                let of_tools = |r: &&serde_json::Value| r["reason"].as_str().is_some_and(|r| r.starts_with("observer `"));
                let refused = plan["refusals"].as_array().map_or(0, |all| all.iter().filter(|r| !of_tools(r)).count());
                // `frontier` is a search, whose upper bound no cut has room for.
                let expected = match name.as_str() {
                    "study-mixed" => 3,
                    "frontier" => 4,
                    _ => 0,
                };
                assert_eq!(refused, expected, "{name}");
            }
            count += 1;
        }
    }
    assert!(count >= 10 * 10, "only {count} plans");
}

#[test]
fn the_studys_uniform_matrix_has_its_156_groups() {
    let root = checkout();
    let place = root.to_str().expect("text");
    let bench = Bench::new();
    let plan =
        bench.collo(&["-C", place, "plan", "study-uniform", "--gpu", "a100-40gb", "--no-predict", "--json"]).exits(0).json();
    let cells = plan["cells"].as_array().expect("a list");
    // Beside them each member is measured alone on the slices of the groups.
    let asked =
        cells.iter().filter(|c| !["mig:3g.20gb", "mig:2g.10gb", "mig:1g.5gb"].contains(&c["sharing"].as_str().expect("text")));
    assert_eq!((asked.count(), cells.len()), (156, 192));
}

/// The conditions on the study's matrix in a guideline's source: the text in each call that decides what to measure next.
fn conditions(source: &str) -> Vec<String> {
    let calls = source.split("decide(").chain(source.split("decide_by_interval(")).filter(|call| call.starts_with("analysis, "));
    let condition = |call: &str| {
        let text = call.split_once('"').filter(|(before, _)| before.len() < 120)?.1.replace("\\\"", "\u{0}");
        Some(text.split('"').next()?.replace('\u{0}', "\""))
    };
    calls.filter_map(condition).collect()
}

#[test]
fn every_command_that_a_guideline_names_for_missing_evidence_plans() {
    let root = checkout();
    let place = root.to_str().expect("text");
    let bench = Bench::new();
    let mut count = 0;
    let folder = root.join("harness/guidelines/src");
    let files = |folder: PathBuf| fs_err::read_dir(folder).expect("readable").map(|file| file.expect("readable").path());
    for file in files(folder.join("groups")).chain(files(folder.join("policies"))).filter(|path| path.is_file()) {
        let text = fs_err::read_to_string(file).expect("readable");
        for condition in conditions(&text) {
            let plan = bench.collo(&[
                "-C",
                place,
                "plan",
                "study-uniform",
                "--gpu",
                "a100-40gb",
                "--no-predict",
                "--where",
                &condition,
                "--json",
            ]);
            assert!(plan.exits(0).json()["cells"].as_array().is_some_and(|c| c.len() > 6), "{condition}");
            count += 1;
        }
    }
    assert!(count >= 12, "only {count} commands");
}

#[test]
fn every_experiment_of_the_checkout_plans() {
    let root = checkout();
    let place = root.to_str().expect("text");
    let bench = Bench::new();
    let mut count = 0;
    for entry in fs_err::read_dir(root.join("experiments")).expect("readable") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|e| e == "toml") {
            let name = path.file_stem().expect("named").to_str().expect("text");
            let answer = bench.collo(&["-C", place, "plan", name, "--json"]);
            if answer.code == Some(3) && !collo_device::has_gpu() {
                // What needs a GPU says so of every cell, and is planned where there is one.
                let text = fs_err::read_to_string(&path).expect("readable");
                assert!(text.contains("\"gpu\""), "{name} is not tagged as one for GPUs: {}", answer.stderr);
                assert!(
                    answer.stdout.contains("needs an NVIDIA GPU with CUDA") || answer.stderr.contains("needs an NVIDIA GPU"),
                    "{name}: {}",
                    answer.stderr
                );
                continue;
            }
            let plan = answer.exits(0).json();
            assert_eq!(plan["experiment"], name);
            assert!(plan["order"].as_array().is_some_and(|order| !order.is_empty()), "{name} has nothing to run");
            count += 1;
        }
    }
    assert!(count >= 2);
}

#[test]
fn a_plan_says_where_each_value_comes_from() {
    let bench = Bench::of("repetitions = 2\n[axes]\nworkload = \"sleep\"\n");
    let answer = bench.collo(&["plan", "x", "--explain"]).exits(0);
    let lines: Vec<String> = answer.stdout.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for expected in ["repetitions experiments/x.toml:4 2", "epochs default 2"] {
        assert!(lines.iter().any(|l| l == expected), "no `{expected}` in\n{}", answer.stdout);
    }
    let json = bench.collo(&["plan", "x", "--explain", "--json"]).exits(0).json();
    let origins = json["origins"].as_array().expect("a list");
    assert!(origins.iter().any(|o| o["key"] == "axes.workload" && o["place"] == "experiments/x.toml:6"), "{origins:?}");
    let of_workload =
        |o: &&serde_json::Value| o["place"].as_str().is_some_and(|p| p.starts_with("workloads/sleep/workload.toml:"));
    let settings: Vec<_> = origins.iter().filter(of_workload).filter_map(|o| o["key"].as_str()).collect();
    assert!(settings.contains(&"sleep.seconds") && settings.contains(&"sleep.items"), "{settings:?}");
}

#[test]
fn every_gpu_of_the_checkout_reads_and_every_layout_of_it_can_be_placed() {
    let root = checkout();
    let place = root.to_str().expect("text");
    let bench = Bench::new();
    let mut files: Vec<String> = fs_err::read_dir(root.join("mig-profiles"))
        .expect("readable")
        .map(|entry| entry.expect("readable").path().file_stem().expect("named").to_string_lossy().into_owned())
        .collect();
    files.sort();
    let answer = bench.collo(&["-C", place, "list", "gpus", "--json"]).exits(0);
    assert_eq!(answer.stderr, "");
    let gpus = answer.json()["gpus"].as_array().expect("a list").clone();
    assert_eq!(gpus.iter().map(|gpu| gpu["gpu"].as_str().expect("text")).collect::<Vec<_>>(), files);
    let layouts = bench.collo(&["-C", place, "list", "layouts", "--json"]).exits(0).json();
    let mut count = 0;
    for layout in layouts["layouts"].as_array().expect("a list") {
        // What the reader placed is held against the profiles once more: nothing overlaps, nothing lies where it may not start.
        let gpu = gpus.iter().find(|gpu| gpu["gpu"] == layout["gpu"]).expect("listed");
        let mut end = 0;
        for instance in layout["instances"].as_array().expect("a list") {
            let is_it = |p: &&serde_json::Value| p["profile"] == instance["profile"];
            let profile = gpu["profiles"].as_array().expect("a list").iter().find(is_it).expect("a profile");
            assert!(profile["starts"].as_array().expect("a list").contains(&instance["start"]), "{layout}");
            let start = instance["start"].as_u64().expect("a number");
            assert!(start >= end, "{layout}");
            end = start + profile["units"].as_u64().expect("a number");
        }
        assert!(end <= gpu["memory_units"].as_u64().expect("a number"), "{layout}");
        count += 1;
    }
    assert!(count >= 30, "only {count} layouts");
}

#[test]
fn gpus_and_layouts_are_listed_for_people_and_one_of_them_in_full() {
    let bench = Bench::new();
    bench.collo(&["list", "gpus"]).exits(2).says("no `mig-profiles/` in .").says("hint: `collo init .` writes it");
    bench.collo(&["init", "."]).exits(0);
    bench.collo(&["list", "gpus"]).exits(0).answers("1: 7g.40gb  2: 3g.20gb  3: 2g.10gb  4–7: 1g.5gb");
    bench.collo(&["list", "gpus", "--gpu", "a30-24gb"]).exits(0).answers("1g.6gb+me").says("collo list layouts --gpu a30-24gb");
    let layouts = bench.collo(&["list", "layouts", "--gpu", "a100-40gb"]).exits(0);
    layouts.answers("balanced     2g.10gb@0  1g.5gb@2,3  3g.20gb@4");
    bench.collo(&["list", "layouts", "--gpu", "a100-40"]).exits(2).says("unknown GPU `a100-40`").says("`a100-40gb`");
    bench.collo(&["list", "modes", "--gpu", "a100-40gb"]).exits(2).says("collo list layouts --gpu NAME");
    bench.collo(&["list", "gpus", "--gpu", "l40s"]).exits(0).answers("l40s   48 GB  142").answers("no MIG");
    bench.collo(&["list", "layouts", "--gpu", "l40s"]).exits(0).says("l40s has no MIG, so no layout");
    let bench = bench.file("mig-profiles/mine.toml", "compute_slices = 7\nprofiles = 3\n");
    bench.collo(&["list", "layouts"]).exits(0).answers("halves").says("`profiles` must be a list of tables");
}

#[test]
fn init_writes_a_project_whose_quickstart_plans() {
    let bench = Bench::new();
    bench.collo(&["init", "new"]).exits(0).says("next: cd new && collo run quickstart");
    let here = bench.collo(&["-C", "new", "plan", "quickstart", "--json"]).exits(0).json();
    let root = checkout();
    let there = bench.collo(&["-C", root.to_str().expect("text"), "plan", "quickstart", "--json"]).exits(0).json();
    // The checkout may have stored runs, which its forecast is then from.
    let cells = |planned: &serde_json::Value| {
        let mut cells = planned["cells"].as_array().expect("cells").clone();
        cells.iter_mut().for_each(|cell| drop(cell.as_object_mut().expect("a cell").remove("forecast")));
        cells
    };
    assert_eq!(cells(&here), cells(&there));
    // Again, it changes nothing.
    fs_err::write(bench.at("new/experiments/quickstart.toml"), "mine").expect("written");
    fs_err::write(bench.at("new/justfile"), "# mine").expect("written");
    bench.collo(&["init", "new"]).exits(0).answers("0 files written");
    assert_eq!(fs_err::read_to_string(bench.at("new/justfile")).expect("there"), "# mine");
    fs_err::remove_file(bench.at("new/justfile")).expect("there");
    fs_err::write(bench.at("new/.justfile"), "# mine").expect("written");
    bench.collo(&["init", "new"]).exits(0).answers("0 files written");
    assert!(!bench.at("new/justfile").exists(), "`just` refuses two");
    assert_eq!(fs_err::read_to_string(bench.at("new/experiments/quickstart.toml")).expect("there"), "mine");
}

#[test]
fn the_changelog_knows_this_version() {
    let text = fs_err::read_to_string(checkout().join("CHANGELOG.md")).expect("there");
    let version = env!("CARGO_PKG_VERSION");
    assert!(text.lines().any(|l| l.starts_with("## ") && l.contains(version)), "no heading has {version}");
}

/// A command that a page names, and whether it stands in a block to be pasted.
struct Named {
    place: String,
    words: Vec<String>,
    in_block: bool,
}

/// Commands of the pages for users, in blocks and between backticks.
fn named() -> Vec<Named> {
    let root = checkout();
    let mut pages = vec![root.join("README.md")];
    let guide = fs_err::read_dir(root.join("docs/guide")).expect("there").map(|e| e.expect("readable").path());
    pages.extend(guide.filter(|p: &PathBuf| p.extension().is_some_and(|e| e == "md")));
    let mut found = Vec::new();
    for page in pages {
        let text = fs_err::read_to_string(&page).expect("readable");
        let name = page.strip_prefix(&root).expect("in the checkout").display().to_string();
        let mut block: Option<bool> = None;
        for (number, line) in text.lines().enumerate() {
            let place = format!("{name}:{}", number + 1);
            let mut add = |text: &str, in_block| {
                if ["collo ", "just ", "cargo "].iter().any(|word| text.starts_with(word)) {
                    found.push(Named { place: place.clone(), words: words(text), in_block });
                }
            };
            match (line.trim().strip_prefix("```"), block) {
                (Some(language), None) => block = Some(language == "sh"),
                (Some(_), Some(_)) => block = None,
                (None, Some(true)) => add(line.trim(), true),
                (None, Some(false)) => {}
                (None, None) => line.split('`').skip(1).step_by(2).for_each(|code| add(code, false)),
            }
        }
    }
    found
}

#[test]
fn the_jobs_of_the_page_on_the_nightly_measure_at_night_and_keep_the_report() {
    let page = fs_err::read_to_string(checkout().join("docs/guide/nightly.md")).expect("there");
    let jobs: Vec<serde_json::Value> = page
        .split("```yaml\n")
        .skip(1)
        .map(|rest| serde_saphyr::from_str(rest.split("```").next().expect("its end")).expect("YAML"))
        .collect();
    let [github, gitlab] = &jobs[..] else { panic!("a job for each: {jobs:?}") };
    assert_eq!(github["on"]["schedule"][0]["cron"], "0 2 * * *");
    let steps = github["jobs"]["nightly"]["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 5);
    assert!(steps[3]["run"].as_str().expect("a script").contains("--format junit"));
    let job = &gitlab["collo-nightly"];
    assert_eq!(job["rules"][0]["if"], "$CI_PIPELINE_SOURCE == \"schedule\"");
    assert_eq!(job["artifacts"]["reports"]["junit"], "collo-report/junit.xml");
}

/// Split as a shell would, as far as these pages need it.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            (' ', None) => words.push(std::mem::take(&mut word)),
            ('>' | '|' | '#', None) if word.is_empty() => break,
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    words.retain(|w| !w.is_empty());
    words
}

#[test]
fn the_pages_name_only_verbs_options_and_recipes_that_there_are() {
    let bench = Bench::new();
    let general = bench.collo(&["--help"]).exits(0).stdout;
    let mut help = BTreeMap::<String, Option<String>>::new();
    let justfile = fs_err::read_to_string(checkout().join("justfile")).expect("there");
    let mut count = 0;
    for Named { place, words, .. } in named() {
        count += 1;
        let text = words.join(" ");
        let rest = match (&*words[0], words.get(1).map(String::as_str)) {
            ("just", Some(recipe)) => {
                let is_it = |l: &str| l.strip_prefix(recipe).is_some_and(|rest| rest.starts_with([' ', ':']));
                assert!(recipe.starts_with('-') || justfile.lines().any(is_it), "{place}: `{text}`: no such recipe");
                continue;
            }
            ("cargo", Some("run")) => words.split(|w| w == "--").nth(1).unwrap_or_default(),
            ("cargo", verb) => {
                assert!(matches!(verb, Some("test" | "bench" | "install" | "build" | "fmt" | "clippy")), "{place}: `{text}`");
                continue;
            }
            _ => &words[1..],
        };
        // The value of an option that stands before the verb.
        let rest = match rest.first().map(String::as_str) {
            Some("--simulate") => &rest[2..],
            _ => rest,
        };
        let Some(verb) = rest.iter().find(|w| !w.starts_with('-')) else { continue };
        if let ("help", [topic]) = (verb.as_str(), &rest[1..]) {
            let explained = topic.chars().all(char::is_uppercase) || bench.collo(&["help", topic]).code == Some(0);
            assert!(explained, "{place}: `{text}`: no such topic");
            continue;
        }
        // `collo VERB` stands for any of them.
        if verb.chars().all(char::is_uppercase) {
            continue;
        }
        // Some verbs have verbs of their own, each with its options.
        let own =
            rest.iter().skip_while(|w| *w != verb).nth(1).filter(|_| ["data", "predict", "trace", "workload"].contains(&&**verb));
        let own = own.filter(|w| w.chars().all(|c| c.is_ascii_lowercase())).map(String::as_str);
        let verbs: Vec<&str> = [verb.as_str()].into_iter().chain(own).collect();
        let verb = verbs.join(" ");
        let page = help.entry(verb.clone()).or_insert_with(|| {
            let answer = bench.collo(&[&verbs[..], &["--help"]].concat());
            (answer.code == Some(0)).then_some(answer.stdout)
        });
        let page = page.as_ref().unwrap_or_else(|| panic!("{place}: `{text}`: no verb `{verb}`"));
        for option in rest.iter().filter(|w| w.starts_with('-')) {
            let option = option.split('=').next().unwrap_or_default();
            let is_there =
                [page, &general].iter().any(|h| h.split(|c: char| !c.is_alphanumeric() && c != '-').any(|w| w == option));
            assert!(is_there, "{place}: `{text}`: `{verb}` has no `{option}`");
        }
    }
    assert!(count >= 20, "only {count} commands were found");
}

#[test]
fn the_quick_commands_of_the_pages_work_when_pasted() {
    let bench = Bench::new();
    bench.collo(&["init", "new"]).exits(0);
    let mut count = 0;
    // What is asked of a card is tried on a simulated one: gpu_faults/dcgm.rs and real.rs.
    let of_card = |words: &[String]| words.iter().any(|w| ["--require", "--deep", "--collect"].contains(&w.as_str()));
    let pasted = |n: &Named| n.in_block && n.words[0] == "collo" && !of_card(&n.words);
    for Named { place, words, .. } in named().into_iter().filter(pasted) {
        let of_logs = words[1] == "trace" && ["make", "import"].contains(&&*words[2]);
        if ["plan", "list", "doctor", "schema", "completions", "workload", "data", "trace"].contains(&&*words[1]) && !of_logs {
            let arguments: Vec<&str> = ["-C", "new"].into_iter().chain(words[1..].iter().map(String::as_str)).collect();
            let answer = bench.collo(&arguments);
            assert_eq!(answer.code, Some(0), "{place}: `{}`\n{}", words.join(" "), answer.stderr);
            count += 1;
        }
    }
    assert!(count >= 3, "only {count} commands were tried");
    for shell in ["bash", "zsh", "fish"] {
        bench.collo(&["completions", shell]).exits(0).answers("collo");
    }
    for kind in ["experiment", "workload", "trace", "gpu", "report"] {
        let schema = bench.collo(&["schema", kind]).exits(0).stdout;
        serde_json::from_str::<serde_json::Value>(&schema).expect("JSON");
    }
    bench.collo(&["doctor"]).exits(0).answers("✓ cpu");
}

#[test]
fn any_verb_runs_on_a_simulated_gpu_and_its_hints_say_so() {
    let experiment = sim::short("epochs = 1\n[axes]\nworkload = \"tiny\"\ndegree = 1\n");
    let bench = Bench::new().file("experiments/x.toml", &experiment);
    bench.collo(&["init", "."]).exits(0);
    sim::program("sim");
    let folder = bench.at("simulated").display().to_string();
    let bench = bench.env("COLLO_SIM_DIR", &folder).env("COLLO_SIM_EPOCH_S", "0.2").env("COLLO_STATE", "");
    bench.collo(&["run", "x"]).exits(3).says("simulate it with `collo --simulate a100-40gb run x`");
    let typed = "collo --simulate h100-80gb";
    bench
        .collo(&["--simulate", "h100-80gb", "run", "x"])
        .exits(0)
        .says(&format!("next:   {typed} show last     {typed} verify last"));
    bench.collo(&["show", "last", "--simulate=h100-80gb"]).exits(0).answers("simulated NVIDIA H100");
    bench.collo(&["--simulate", "h100", "run", "x"]).exits(2).says("no GPU model `h100`").says("h100-80gb, h100-nvl-94gb");
    bench.collo(&["--simulate", "h100-80gb,broken", "plan", "x"]).exits(2).says("`broken` in `COLLO_SIM` is no fault");
    let runs = bench.runs();
    assert!(!runs.is_empty() && runs.values().all(|run| run.record.device.simulated));
}

#[test]
fn the_simulated_card_of_the_pages_measures_where_it_never_was_before() {
    let bench =
        sim::bench("a100-40gb").file("experiments/x.toml", &sim::short("epochs = 1\n[axes]\nworkload = \"tiny\"\ndegree = 1\n"));
    // A folder that is not there yet, of which nothing but its place is said: as `target/simulated` of a fresh clone.
    let place = bench.at("new/simulated");
    for verb in ["plan", "run"] {
        let mut command = Command::new(sim::program("sim"));
        command.args([verb, "x"]).current_dir(bench.at("")).env_remove("COLLO_STATE").stdin(Stdio::null());
        let answer = command.env("COLLO_SIM_DIR", &place).env("COLLO_SIM_EPOCH_S", "0.2").output().expect("it starts");
        assert!(answer.status.success(), "`sim {verb}`: {}", String::from_utf8_lossy(&answer.stderr));
    }
    assert!(place.join("state").is_dir(), "what collo remembers of the card is with the card");
    let runs = bench.runs();
    assert!(runs.values().all(|run| run.record.device.simulated && run.record.outcome == Outcome::Completed) && !runs.is_empty());
}
