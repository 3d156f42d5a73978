//! A test, or a part of one, that cannot be made on this machine: it says so, is counted, and fails where it must not be left out.
//!
//! To add a test that not every machine can run: [`skip`] with what is lacking and why.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

/// Leave out the test that calls, or a part of it, because this machine lacks something. `COLLO_NO_SKIPS` names what must not be lacking,
/// `chromium,script`, or is 1 for all of it.
#[track_caller]
pub fn skip(lacks: &str, why: &str) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let required = std::env::var("COLLO_NO_SKIPS").unwrap_or_default();
    assert!(!is_required(&required, lacks), "left out for want of {lacks}, and COLLO_NO_SKIPS={required}: {why}");
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    let thread = std::thread::current();
    // Not through the macro: what that prints is only shown of a test that fails.
    let _ = writeln!(std::io::stderr(), "skipped, number {count} here: {}: {why}", thread.name().unwrap_or("a test"));
}

fn is_required(required: &str, lacks: &str) -> bool {
    required == "1" || required.split(',').any(|name| name == lacks)
}
