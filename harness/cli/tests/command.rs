//! What is tested through the command, in one program: most tests wait for members, and the tests of one program wait at the same time.
//!
//! To add a test: a file here and its line below; `cargo test -p collo --test command NAME::` runs it alone.

mod advising;
mod asked_to_end;
mod bad_input;
mod cards;
mod carrying;
mod claims;
mod commands;
mod company;
mod company_claims;
mod compare;
mod execution;
mod forecasts;
mod foreign_lines;
mod gpu_faults;
mod gpu_kill;
mod gpu_verbs;
mod hostile;
mod hosting;
mod importing;
mod lending;
mod live_page;
mod memory_peaks;
mod names;
mod nightly;
mod observing;
mod outcomes;
mod planning;
mod predicting;
mod prune;
mod published;
mod readings;
mod references;
mod report_format;
mod resume;
mod serving;
mod shards;
mod signal_mask;
#[path = "support/sim.rs"]
mod sim;
mod slurm;
mod start;
mod staying;
mod store_abuse;
mod streams;
mod support;
mod terminal;
mod torture;
mod traces;
mod trusting;
mod try_scripts;
mod utilising;
#[path = "../../store/tests/support/vendor.rs"]
mod vendor;
mod workloads;

#[test]
fn every_file_of_tests_is_in_a_program() {
    let folder = support::checkout().join("harness/cli");
    let [manifest, own] = ["Cargo.toml", "tests/command.rs"].map(|f| fs_err::read_to_string(folder.join(f)).expect("there"));
    for entry in fs_err::read_dir(folder.join("tests")).expect("readable") {
        let path = entry.expect("readable").path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".rs")) else { continue };
        let built = own.contains(&format!("\nmod {name};")) || manifest.contains(&format!("name = \"{name}\""));
        assert!(built, "tests/{name}.rs: add `mod {name};` to tests/command.rs");
    }
}
