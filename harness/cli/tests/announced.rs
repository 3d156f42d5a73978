//! What the tests of the Python half will provide is said before any test takes long: this program is the first of all that `cargo test`
//! runs, and `collo-workloads`, which needs it, the last.

#[expect(dead_code, reason = "each test program uses its part of it")]
mod support;

use std::io::Write;

use collo_prepare::python::{self, PinSet, PythonEnvironment};

/// Loading at 100 Mbit/s, and unpacking, which took two minutes on two cores.
fn minutes(load_bytes: u64) -> f64 {
    load_bytes as f64 * 8.0 / 100e6 / 60.0 + 2.0
}

fn announcement(environment: &PythonEnvironment) -> String {
    let (load, disk) = environment.size();
    format!(
        "The last of these tests need Python with PyTorch, which is provided before they begin, once for all clones: {:.1} GB to load \
         and {:.1} GB in {}, about {:.0} minutes at 100 Mbit/s. What needs none comes first.",
        load as f64 / 1e9,
        disk as f64 / 1e9,
        environment.folder().display(),
        minutes(load)
    )
}

#[test]
fn what_the_last_tests_will_provide_is_said_before_the_first() {
    collo_launch::supervisor::is_at(support::collo());
    let workloads = support::checkout().join("workloads");
    let environment = PythonEnvironment::of(&workloads, &python::cache_folder().expect("trusted"), PinSet::for_this_machine())
        .expect("the pins are there");
    let said = announcement(&environment);
    assert!(
        said.contains(" GB to load and ") && said.contains(&*python::cache_folder().expect("trusted").to_string_lossy()),
        "{said}"
    );
    if !environment.folder().join("bin/python").exists() {
        // Not through the macro: what that prints is only shown of a test that fails.
        writeln!(std::io::stderr(), "{said}").expect("stderr is open");
    }
}

#[test]
fn the_tests_that_need_python_come_last() {
    let workspace = fs_err::read_to_string(support::checkout().join("Cargo.toml")).expect("there");
    let (_, members) = workspace.split_once("members = [").expect("a list");
    let folders = members.split_once(']').expect("its end").0.split(", ").map(|quoted| quoted.trim_matches('"'));
    let name = |folder: &str| {
        let text = fs_err::read_to_string(support::checkout().join(folder).join("Cargo.toml")).expect("there");
        let line = text.lines().find(|line| line.starts_with("name = ")).expect("named").to_string();
        line.split('"').nth(1).expect("quoted").to_string()
    };
    // Cargo goes through packages by name.
    assert_eq!(folders.map(name).max().as_deref(), Some("collo-workloads"));
}
