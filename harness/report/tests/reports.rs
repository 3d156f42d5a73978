//! What is tested on whole campaigns, in one program: the tests of one program run at the same time, and it is linked once.
//!
//! To add a test: a file here and its line below; `cargo test -p collo-report --test reports NAME::` runs it alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod anonymous;
mod answers;
mod bad_input;
mod browser;
mod compare;
mod damage;
mod export;
mod gpu_truth;
mod guidelines;
mod index;
mod latency;
mod launches;
mod merged;
mod page;
mod prediction;
mod recompute;
mod remarks;
mod reported;
mod sentences;
#[path = "../../store/tests/support/skip.rs"]
mod skip;
mod stores;
mod support;
mod text;
mod threads;
mod traces;
mod truth;
#[path = "../../store/tests/support/vendor.rs"]
mod vendor;
mod verdicts;
mod watching;

#[test]
fn every_file_of_tests_is_in_this_program() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let own = fs_err::read_to_string(folder.join("reports.rs")).unwrap();
    for entry in fs_err::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs").filter(|n| *n != "reports") else { continue };
        assert!(own.contains(&format!("\nmod {name};")), "tests/{name}.rs: add `mod {name};` to tests/reports.rs");
    }
}
