//! `collo --simulate MODEL VERB`: the verb on a simulated GPU.
//!
//! In: a GPU model. Out: the program `sim` in the place of this process, which starts collo again with a simulated driver; or why there is
//! none. The simulator is a program of its own, which collo does not contain.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use collo_text::{Diagnostic, commands, shown, trust};

use crate::{output, shell};

/// The program, and the library beside it by which it is known: other programs are called `sim`, too.
const PROGRAM: &str = "sim";
const LIBRARY: &str = "libsimgpu.so";
/// Where `harness/simgpu/install` puts them, from the folder above that of collo.
const INSTALLED: &str = "lib/collo-simulator";
/// The model that is simulated already: set for the collo that the simulator starts.
const STARTED: &str = "COLLO_SIMULATED";

/// Start this command again on a simulated GPU; returns where that is so, or with the reason why it cannot be.
pub fn simulate(model: &str) -> Result<(), Diagnostic> {
    if std::env::var_os(STARTED).is_some_and(|started| started == model) {
        return Ok(());
    }
    let own =
        std::env::current_exe().map_err(|e| Diagnostic::new("collo does not know where it is").caused_by(e).of_machine())?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = places(&own, std::env::split_paths(&path));
    let Some(simulator) = places.iter().find(|place| is_simulator(place)) else { return Err(absent(model, &own)) };
    let program = simulator.join(PROGRAM);
    trust::program(&program).map_err(|why| {
        let what = format!("{} is not run as root: another user could have written it", shown(&program));
        Diagnostic::new(what).caused_by(why).hint("install the simulator as root, or run collo as another user").of_machine()
    })?;
    let error = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .env(collo_store::SIMULATED_MODEL, model)
        .env("COLLO_PROGRAM", own)
        .env(output::COMMAND, commands::simulating(&output::command(), &shell::quoted(model)))
        .env(STARTED, model)
        // It takes the place of this process: signals reach it, and the exit code is its own.
        .exec();
    Err(Diagnostic::new(format!("{} does not start", shown(&program))).caused_by(error).of_machine())
}

/// Folders in which the simulator may lie: that of collo, which a build has both in; where it is installed; the PATH.
fn places(own: &Path, path: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let beside = own.parent().map(Path::to_path_buf);
    let installed = own.parent().and_then(Path::parent).map(|root| root.join(INSTALLED));
    beside.into_iter().chain(installed).chain(path).collect()
}

fn is_simulator(place: &Path) -> bool {
    let library = [LIBRARY.into(), Path::new("deps").join(LIBRARY)];
    place.join(PROGRAM).is_file() && library.iter().any(|library| place.join(library).is_file())
}

fn absent(model: &str, own: &Path) -> Diagnostic {
    let places = places(own, std::iter::empty());
    let places: Vec<String> = places.iter().map(|place| shown(place).to_string()).collect();
    Diagnostic::new(format!("`{model}` cannot be simulated: the simulator is not installed"))
        .caused_by(format!("no `{PROGRAM}` with its `{LIBRARY}` in {}, or on the PATH", places.join(", ")))
        .hint("in a checkout of collo, `harness/simgpu/install` installs it, and `cargo build --package collo-simgpu` builds it")
        .of_machine()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_simulator_the_places_and_the_way_out_are_named() {
        insta::assert_snapshot!(absent("a100-40gb", Path::new("/opt/bin/collo")), @"
        error: `a100-40gb` cannot be simulated: the simulator is not installed
          caused by: no `sim` with its `libsimgpu.so` in /opt/bin, /opt/lib/collo-simulator, or on the PATH
        hint: in a checkout of collo, `harness/simgpu/install` installs it, and `cargo build --package collo-simgpu` builds it
        ");
    }

    #[test]
    fn the_simulator_is_known_by_its_library_wherever_it_lies() {
        let root = tempfile::tempdir().expect("a folder");
        let own = root.path().join("bin/collo");
        let place = |name: &str, files: &[&str]| {
            let place = root.path().join(name);
            std::fs::create_dir_all(place.join("deps")).expect("a folder");
            files.iter().for_each(|file| std::fs::write(place.join(file), "").expect("written"));
            place
        };
        let other = place("other", &["sim"]);
        let found = || places(&own, [other.clone()].into_iter()).into_iter().find(|place| is_simulator(place));
        assert_eq!(found(), None, "another program of that name");
        place("bin", &["collo", "sim"]);
        assert_eq!(found(), None, "without its library it cannot work");
        let installed = place("lib/collo-simulator", &["sim", "libsimgpu.so"]);
        assert_eq!(found().map(|found| found.canonicalize().expect("there")), installed.canonicalize().ok());
        let built = place("bin", &["deps/libsimgpu.so"]);
        assert_eq!(found(), Some(built), "what was built together runs together");
    }
}
