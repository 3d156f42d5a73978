//! The simulated GPU behind the real command: its library in the driver's place, its programs on the PATH.

use std::path::{Path, PathBuf};

use super::{Bench, checkout};

/// The file of the library.
const LIBRARY: &str = "libsimgpu.so";

/// The folder that holds it: beside the test program or above it, or where `SIMGPU_DIR` says.
fn folder_with(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("it has a path");
    let named = std::env::var_os("SIMGPU_DIR").map(PathBuf::from);
    let places = own.ancestors().skip(1).take(2).map(Path::to_path_buf).chain(named);
    let tried: Vec<PathBuf> = places.collect();
    tried.iter().find(|folder| folder.join(name).is_file()).cloned().unwrap_or_else(|| panic!("no {name} in {tried:?}"))
}

/// One of its programs.
pub fn program(name: &str) -> PathBuf {
    folder_with(name).join(name)
}

/// A project with cards that are simulated by this scenario, and a state folder of its own.
pub fn bench(scenario: &str) -> Bench {
    put_on(Bench::new(), scenario)
}

/// The same for a project that is there.
pub fn put_on(bench: Bench, scenario: &str) -> Bench {
    let profiles = checkout().join("mig-profiles");
    for entry in fs_err::read_dir(&profiles).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("named").to_string_lossy().into_owned();
        bench.write(&format!("mig-profiles/{name}"), &fs_err::read_to_string(&path).expect("readable"));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", folder_with("nvidia-cuda-mps-control").display());
    let at = |name: &str| bench.at(name).display().to_string();
    let (folder, state, serial) = (at(".sim"), at(".state"), at(""));
    bench
        .env("COLLO_NVML", &folder_with(LIBRARY).join(LIBRARY).display().to_string())
        .env("COLLO_SIM", scenario)
        .env("COLLO_SIM_DIR", &folder)
        .env("COLLO_SIM_CARDS", &profiles.display().to_string())
        .env("COLLO_SIM_SERIAL", &serial)
        .env("COLLO_STATE", &state)
        .env("PATH", &path)
}
