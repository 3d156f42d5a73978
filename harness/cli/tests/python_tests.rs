//! The Python half is tested in the environment that it runs in: provided if need be, with pytest and the libraries of others laid over it.

mod support;

use std::process::Command;

use collo_measure::python::{self, Environment, PinSet};

/// pytest with these words on top of the usual ones, in the environment of this machine.
fn pytest(words: &[&str]) -> Command {
    let root = support::checkout();
    let workloads = root.join("workloads");
    let environment =
        Environment::of(&workloads, &python::cache_folder(), PinSet::for_this_machine()).expect("the pins are there");
    let tell = &mut |progress| eprintln!("{progress:?}");
    let python = environment.provide(tell).unwrap_or_else(|e| panic!("{e}\nhint: {}", e.hint().unwrap_or_default()));
    let mut path = vec![workloads.clone()];
    for pins in ["requirements-test.txt", "language/requirements.txt"] {
        path.push(environment.overlay(&workloads.join(pins), tell).unwrap_or_else(|e| panic!("{e}")));
    }
    let path = std::env::join_paths(path).expect("no path has a colon");
    let mut pytest = Command::new(&python.interpreter);
    pytest.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(words).current_dir(&root);
    pytest.env("PYTHONPATH", path).env("PYTHONNOUSERSITE", "1");
    for name in ["COLLO_FD", "COLLO_SOCKET", "COLLO_DATA", "COLLO_MEMBER", "COLLO_MEMBERS", "COLLO_THREADS"] {
        pytest.env_remove(name);
    }
    pytest
}

#[test]
fn the_python_tests_pass_in_the_provided_environment() {
    let mut pytest = pytest(&["-m", "not gpu", "workloads/tests"]);
    let output = pytest.env("CUDA_VISIBLE_DEVICES", "").output().expect("the interpreter starts");
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "pytest {}\n{said}\n{wrong}", output.status);
    assert!(said.contains(" passed"), "{said}");
    // A library that is not there would skip the tests of a whole file.
    assert!(!said.contains("skipped"), "{said}");
}

/// `just gpu-tests`. What pytest prints is shown as it comes: it takes half an hour, and without a card all are skipped, with the reason.
#[test]
#[ignore = "trains for half an hour on a GPU that nobody else uses"]
fn the_python_tests_of_a_gpu_pass_on_this_machine() {
    let status = pytest(&["-m", "gpu", "-rs", "-v", "workloads/tests"]).status().expect("the interpreter starts");
    assert!(status.success(), "pytest {status}");
}
