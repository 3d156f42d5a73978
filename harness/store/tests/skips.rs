//! Tests that this machine cannot make are seen, and fail where they are required.

#[path = "support/skip.rs"]
mod skip;

use std::process::{Command, Output};

/// This program again, with one test of it that skips itself.
fn skipping(required: &str) -> Output {
    let mut program = Command::new(std::env::current_exe().expect("a program"));
    program.args(["--ignored", "--exact", "a_test_that_is_left_out"]).env("COLLO_NO_SKIPS", required);
    program.output().expect("it starts")
}

#[test]
fn a_test_that_is_left_out_is_seen_though_it_passes() {
    for required in ["", "script,bash"] {
        let output = skipping(required);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{output:?}");
        assert!(said.contains("skipped, number 1 here: a_test_that_is_left_out: there is no chromium"), "{said}");
    }
}

#[test]
fn a_test_that_is_left_out_fails_where_it_is_required() {
    for required in ["1", "script,chromium"] {
        let output = skipping(required);
        assert!(!output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("left out for want of chromium"), "{output:?}");
    }
}

#[test]
#[ignore = "the two above run it"]
fn a_test_that_is_left_out() {
    skip::skip("chromium", "there is no chromium");
}
