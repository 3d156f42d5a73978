//! Makes the table of files that `collo init` writes: experiments, observers, traces, workloads and MIG profiles, without tests and without what Python leaves behind.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let mut files = Vec::new();
    for top in ["experiments", "observers", "traces", "workloads", "mig-profiles"] {
        collect(&root.join(top), &mut files);
    }
    // Cargo looks into these for files that come and go; Python writes beside the workloads.
    for top in ["experiments", "observers", "traces", "mig-profiles"] {
        println!("cargo:rerun-if-changed={}", root.join(top).display());
    }
    files.sort();
    let mut table = String::from("pub static CARRIED: &[(&str, &[u8])] = &[\n");
    for file in &files {
        let name = file.strip_prefix(&root).expect("collected below the root").display();
        writeln!(table, "    ({:?}, include_bytes!({:?})),", name.to_string(), file.canonicalize().expect("it exists"))
            .expect("a string takes any text");
        println!("cargo:rerun-if-changed={}", file.display());
    }
    table.push_str("];\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("carried.rs"), table).expect("the output folder is writable");
    println!("cargo:rerun-if-changed=build.rs");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    // Only these two levels are watched for files that come and go; Python's caches lie deeper or are skipped.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let skipped =
            name.starts_with('.') || name == "__pycache__" || name == "tests" || name.ends_with(".pyc") || name.ends_with('~');
        match (skipped, path.is_dir()) {
            (true, _) => {}
            (false, true) => collect(&path, files),
            (false, false) => files.push(path),
        }
    }
}
