//! The Python half is tested in the environment that it runs in: provided if need be, with pytest and the libraries of others laid over it.

mod support;

use std::process::Command;

use collo_measure::python::{self, Environment, PinSet};

#[test]
fn the_python_tests_pass_in_the_provided_environment() {
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
    pytest.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "workloads/tests"]).current_dir(&root);
    pytest.env("PYTHONPATH", path).env("PYTHONNOUSERSITE", "1").env("CUDA_VISIBLE_DEVICES", "");
    for name in ["COLLO_FD", "COLLO_SOCKET", "COLLO_DATA", "COLLO_MEMBER", "COLLO_THREADS"] {
        pytest.env_remove(name);
    }
    let output = pytest.output().expect("the interpreter starts");
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "pytest {}\n{said}\n{wrong}", output.status);
    assert!(said.contains(" passed"), "{said}");
    // A library that is not there would skip the tests of a whole file.
    assert!(!said.contains("skipped"), "{said}");
}
