//! `features.toml`: each feature of collo, with the tests that prove it from end to end. In: its text, and the texts of the
//! packages' tests. Out: the features, what is wrong with a row, the commands that try all of them.
//!
//! A test is named `package: module::function`; its file is `harness/package/tests/module.rs`. It is run as a part of the program
//! that has the module, or as a program of its own. The file is read by hand: this package has no dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// How many features there are, numbered from 1.
pub const COUNT: usize = 108;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Feature {
    pub id: usize,
    pub group: String,
    /// In words.
    pub feature: String,
    /// As written: `package: module::function`.
    pub tests: Vec<String>,
    /// What no test has: hardware.
    pub needs: Option<String>,
}

/// Files of tests by their path from the package's `tests`, by package.
pub type TestFiles = BTreeMap<String, BTreeMap<String, String>>;

/// The features, in the order of the file.
pub fn read(text: &str) -> Result<Vec<Feature>, String> {
    let mut features: Vec<Feature> = Vec::new();
    let mut in_list = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let refuse = |why: &str| format!("features.toml:{}: {why}: `{line}`", at + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == "[[feature]]" {
            features.push(Feature::default());
            continue;
        }
        let feature = features.last_mut().ok_or_else(|| refuse("a key before the first [[feature]]"))?;
        if in_list {
            in_list = line != "]";
            if in_list {
                feature.tests.push(quoted(line.trim_end_matches(',')).ok_or_else(|| refuse("not a test in quotes"))?);
            }
            continue;
        }
        let (key, value) = line.split_once(" = ").ok_or_else(|| refuse("not `key = value`"))?;
        let text = || quoted(value).ok_or_else(|| refuse("not a text in quotes"));
        match key {
            "id" => feature.id = value.parse().map_err(|_| refuse("not a number"))?,
            "group" => feature.group = text()?,
            "feature" => feature.feature = text()?,
            "needs" => feature.needs = Some(text()?),
            "tests" if value == "[" => in_list = true,
            "tests" => return Err(refuse("not `tests = [`, with a line for each test")),
            _ => return Err(refuse("unknown key")),
        }
    }
    Ok(features)
}

fn quoted(text: &str) -> Option<String> {
    text.strip_prefix('"')?.strip_suffix('"').filter(|inner| !inner.trim().is_empty()).map(str::to_string)
}

/// What is wrong with the rows.
pub fn problems(features: &[Feature], files: &TestFiles) -> Vec<String> {
    let mut problems = Vec::new();
    for id in 1..=COUNT {
        match features.iter().filter(|feature| feature.id == id).count() {
            1 => {}
            0 => problems.push(format!("features.toml: there is no feature {id}: add its row")),
            rows => problems.push(format!("features.toml: feature {id} has {rows} rows: leave one")),
        }
    }
    for feature in features {
        let wrong = |why: String| format!("features.toml: feature {} ({}): {why}", feature.id, feature.feature);
        if !(1..=COUNT).contains(&feature.id) {
            problems.push(wrong(format!("ids are 1 to {COUNT}: correct it, or `COUNT` in house/src/features.rs")));
        }
        if feature.group.is_empty() || feature.feature.is_empty() {
            problems.push(wrong("`group` or `feature` is missing: add it".to_string()));
        }
        if feature.tests.is_empty() && feature.needs.is_none() {
            problems.push(wrong("it has no test: name one, or say in `needs` which hardware it takes".to_string()));
        }
        problems.extend(feature.tests.iter().filter_map(|test| Some(wrong(missing(test, files)?))));
    }
    problems
}

/// Why a test does not run, and what to do.
fn missing(test: &str, files: &TestFiles) -> Option<String> {
    let Some((package, module, function)) = parts(test) else {
        return Some(format!("`{test}` is no test: write `package: module::function`"));
    };
    let file = format!("{}.rs", module.replace("::", "/"));
    let place = format!("harness/{package}/tests/{file}");
    let Some(text) = files.get(package).and_then(|files| files.get(&file)) else {
        return Some(format!("there is no {place}, which `{test}` is in: name the test where it is now"));
    };
    let way_out = "name the test that proves the feature, or write it";
    (!has_test(text, function)).then(|| format!("{place} has no `fn {function}` under `#[test]` that runs by default: {way_out}"))
}

/// Package, module, function.
fn parts(test: &str) -> Option<(&str, &str, &str)> {
    let (package, path) = test.split_once(": ")?;
    let (module, function) = path.rsplit_once("::")?;
    Some((package, module, function))
}

/// Whether a text has this function as a test, and not as one that is ignored.
fn has_test(text: &str, function: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let head = format!("fn {function}(");
    lines.iter().position(|line| line.starts_with(&head)).is_some_and(|at| {
        let above = || lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        above().any(|line| *line == "#[test]") && !above().any(|line| line.starts_with("#[ignore"))
    })
}

/// The program that a test is in, and its name there.
fn program<'a>(test: &'a str, files: &'a TestFiles) -> Option<(&'a str, String)> {
    let (package, module, function) = parts(test)?;
    let first = module.split("::").next()?;
    let declared = format!("mod {first};");
    let mut own = files.get(package)?.iter().filter(|(path, _)| !path.contains('/'));
    let together = own.find(|(_, text)| text.lines().any(|line| line == declared));
    Some(match together {
        Some((path, _)) => (path.trim_end_matches(".rs"), format!("{module}::{function}")),
        None => (first, format!("{module}::{function}").split_off(first.len() + 2)),
    })
}

/// Every feature with its tests, by group; then the commands that run these tests and no others, each a line from `cargo` on.
pub fn table(features: &[Feature], files: &TestFiles) -> String {
    let mut text = String::new();
    let mut group = "";
    let mut programs: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for feature in features {
        if feature.group != group {
            group = &feature.group;
            let _ = writeln!(text, "{group}:\n");
        }
        let _ = writeln!(text, "{:>4}  {}", feature.id, feature.feature);
        for test in &feature.tests {
            let _ = writeln!(text, "        {test}");
            if let Some((program, name)) = program(test, files) {
                programs.entry(program).or_default().insert(name);
            }
        }
        if let Some(needs) = &feature.needs {
            let _ = writeln!(text, "        needs {needs}");
        }
    }
    let count: usize = programs.values().map(BTreeSet::len).sum();
    let _ = writeln!(text, "\n{} features, {count} tests, which these commands run:\n", features.len());
    for (program, names) in programs {
        let names: Vec<String> = names.into_iter().collect();
        let _ = writeln!(text, "cargo test --workspace --test {program} -- --exact {}", names.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
# Head.
[[feature]]
id = 1
group = "plans"
feature = "a plan"
tests = [
  "cli: plan::it_plans",
  "store: text::it_reads",
]

[[feature]]
id = 2
group = "plans"
feature = "a GPU"
needs = "a GPU"
"#;

    fn texts(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect()
    }

    fn files() -> TestFiles {
        let ignored = "#[test]\n#[ignore = \"slow\"]\nfn it_waits() {}\n";
        let plan = format!("mod deep;\n#[test]\nfn it_plans() {{}}\nfn helps() {{}}\n{ignored}");
        let cli = texts(&[
            ("command.rs", "mod plan;\n"),
            ("plan.rs", plan.as_str()),
            ("plan/deep.rs", "/// It goes deep.\n#[test]\n// Why.\nfn it_dives() {}\n"),
        ]);
        let store = texts(&[("text.rs", "#[test]\nfn it_reads() {}\n")]);
        TestFiles::from([("cli".to_string(), cli), ("store".to_string(), store)])
    }

    /// What is wrong with the first feature, with these tests.
    fn wrong(tests: &[&str]) -> Vec<String> {
        let mut features = read(TEXT).expect("is valid");
        features[0].tests = tests.iter().map(ToString::to_string).collect();
        let about_1 = |problem: &String| problem.starts_with("features.toml: feature 1 ");
        problems(&features, &files()).into_iter().filter(about_1).map(|p| p.replace("features.toml: feature 1 ", "")).collect()
    }

    #[test]
    fn rows_are_read_and_what_is_no_row_is_refused_with_its_line() {
        let features = read(TEXT).expect("is valid");
        assert_eq!((features.len(), features[0].tests.len(), features[1].needs.as_deref()), (2, 2, Some("a GPU")));
        let refused = |text: &str| read(text).expect_err("is invalid");
        assert_eq!(refused("id = 1"), "features.toml:1: a key before the first [[feature]]: `id = 1`");
        assert_eq!(refused("[[feature]]\nid = one"), "features.toml:2: not a number: `id = one`");
        assert_eq!(refused("[[feature]]\ntest = \"x\""), "features.toml:2: unknown key: `test = \"x\"`");
        assert_eq!(refused("[[feature]]\ntests = [\nx,"), "features.toml:3: not a test in quotes: `x,`");
    }

    #[test]
    fn each_feature_has_one_row_and_tests_that_run() {
        let all = problems(&read(TEXT).expect("is valid"), &files());
        assert_eq!((all.len(), all[0].as_str()), (COUNT - 2, "features.toml: there is no feature 3: add its row"));
        let twice = problems(&read(&TEXT.replace("id = 2", "id = 1")).expect("is valid"), &files());
        assert_eq!(twice[0], "features.toml: feature 1 has 2 rows: leave one");
        assert_eq!(wrong(&["cli: plan::it_plans", "cli: plan::deep::it_dives"]), Vec::<String>::new());
        assert_eq!(wrong(&[]), ["(a plan): it has no test: name one, or say in `needs` which hardware it takes"]);
        assert_eq!(wrong(&["cli: plan"]), ["(a plan): `cli: plan` is no test: write `package: module::function`"]);
        assert!(wrong(&["cli: gone::it_plans"])[0].contains("there is no harness/cli/tests/gone.rs"));
        for name in ["it_planned", "it_waits", "helps", "it_plan"] {
            let expected = format!("(a plan): harness/cli/tests/plan.rs has no `fn {name}` under `#[test]`");
            assert!(wrong(&[format!("cli: plan::{name}").as_str()])[0].starts_with(&expected), "{name}");
        }
    }

    #[test]
    fn the_table_ends_with_a_command_for_each_program() {
        let text = TEXT.replace("store: text", "cli: plan::deep::it_dives\",\n\"store: text");
        let table = table(&read(&text).expect("is valid"), &files());
        assert!(table.contains("plans:\n\n   1  a plan\n        cli: plan::it_plans\n"), "{table}");
        assert!(table.contains("   2  a GPU\n        needs a GPU\n"), "{table}");
        let commands: Vec<&str> = table.lines().filter(|line| line.starts_with("cargo ")).collect();
        assert_eq!(
            commands,
            [
                "cargo test --workspace --test command -- --exact plan::deep::it_dives plan::it_plans",
                "cargo test --workspace --test text -- --exact it_reads"
            ]
        );
    }
}
