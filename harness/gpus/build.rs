//! Embeds every file of `mig-profiles/`: a new GPU is a new file there.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

fn main() {
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../mig-profiles");
    let folder = folder.canonicalize().expect("the models are there");
    // Cargo looks into the folder: a file that comes or goes counts.
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).expect("readable");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort_by_key(|file| file.file_stem().map(ToOwned::to_owned));
    let mut table = String::from("static FILES: &[(&str, &str)] = &[\n");
    for file in &files {
        let name = file.file_stem().expect("a file has a name").to_string_lossy();
        writeln!(table, "    ({name:?}, include_str!({:?})),", file.display().to_string()).expect("a string takes any text");
    }
    table.push_str("];\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("files.rs"), table).expect("the output folder is writable");
}
