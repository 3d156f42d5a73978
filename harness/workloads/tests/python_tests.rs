//! The Python half is tested in the environment that it runs in: provided if need be, with pytest and the libraries of others laid over it.

#[expect(dead_code, reason = "each test program uses its part of it")]
#[path = "../../cli/tests/support/mod.rs"]
mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use collo_prepare::python::{self, PinSet, Progress, PythonEnvironment};

/// pytest with these words on top of the usual ones, in the environment of this machine.
fn pytest(words: &[&str]) -> Command {
    collo_launch::supervisor::is_at(support::collo());
    let root = support::checkout();
    let workloads = root.join("workloads");
    let environment = PythonEnvironment::of(&workloads, &python::cache_folder().expect("trusted"), PinSet::for_this_machine())
        .expect("the pins are there");
    let tell = &mut |progress: Progress| match progress {
        // Bytes as they come are shown of a test that fails; how it stands, at once.
        Progress::OnDisk { .. } => eprintln!("{progress:?}"),
        _ => writeln!(std::io::stderr(), "python: {progress:?}").expect("stderr is open"),
    };
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

/// The files of tests below a folder.
fn test_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(folder).expect("there").map(|e| e.expect("readable").path());
    let is_one =
        |path: &Path| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("test_") && n.ends_with(".py"));
    entries
        .flat_map(|path| if path.is_dir() { test_files(&path) } else { Vec::from_iter(is_one(&path).then_some(path)) })
        .collect()
}

/// Files whose tests trace training steps in the testing process itself: autograd then has threads there, without which the forks of
/// other tests cannot train, and torch has locks that forks of its own would wait for.
const BY_THEMSELVES: [&str; 2] = ["test_describe.py", "test_flops.py"];

/// All files of tests, dealt out in shares of about equal length: most tests wait for one process, so a core each has its own share.
fn shares() -> Vec<Vec<String>> {
    // What needs a GPU is left out here, all but a few.
    let on_a_gpu = |path: &Path| path.parent().is_some_and(|folder| folder.ends_with("gpu"));
    let bytes = |path: &PathBuf| fs_err::metadata(path).map_or(0, |m| m.len()) / if on_a_gpu(path) { 4 } else { 1 };
    let files = test_files(&support::checkout().join("workloads/tests"));
    let (alone, mut files): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|path| BY_THEMSELVES.iter().any(|alone| path.ends_with(alone)));
    files.sort_by_key(|path| std::cmp::Reverse(bytes(path)));
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get()).min(4);
    let mut shares = vec![(0, Vec::new()); cores];
    for file in files {
        let least = shares.iter_mut().min_by_key(|share| share.0).expect("one at least");
        least.0 += bytes(&file);
        least.1.push(file.display().to_string());
    }
    let alone = alone.iter().map(|path| vec![path.display().to_string()]);
    shares.into_iter().map(|share| share.1).chain(alone).collect()
}

#[test]
fn the_python_tests_pass_in_the_provided_environment() {
    let begin = |share: Vec<String>| {
        let mut pytest = pytest(&["-m", "not gpu"]);
        pytest.args(share).env("CUDA_VISIBLE_DEVICES", "").stdout(Stdio::piped()).stderr(Stdio::piped());
        pytest.spawn().expect("the interpreter starts")
    };
    let running: Vec<_> = shares().into_iter().map(begin).collect();
    let waiting: Vec<_> = running.into_iter().map(|child| std::thread::spawn(|| child.wait_with_output())).collect();
    // All are waited for before one is judged: nothing goes on behind a test that has failed.
    let outputs: Vec<_> = waiting.into_iter().map(|one| one.join().expect("no panic").expect("it was waited for")).collect();
    for output in outputs {
        let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "pytest {}\n{said}\n{wrong}", output.status);
        assert!(said.contains(" passed"), "{said}");
        // A library that is not there would skip the tests of a whole file.
        assert!(!said.contains("skipped"), "{said}");
    }
}

/// `just gpu-tests`. What pytest prints is shown as it comes: it takes an hour, and without a card all are skipped, with the reason.
#[test]
#[ignore = "trains for an hour on a GPU that nobody else uses"]
fn the_python_tests_of_a_gpu_pass_on_this_machine() {
    let status = pytest(&["-m", "gpu", "-rs", "-v", "workloads/tests"]).status().expect("the interpreter starts");
    assert!(status.success(), "pytest {status}");
}
