//! libFuzzer's program: the reader that COLLO_READER names.

#![no_main]

use std::sync::LazyLock;

use collo_fuzz::{Accepted, VARIABLE, reader};
use libfuzzer_sys::fuzz_target;

static READ: LazyLock<fn(&[u8]) -> Accepted> = LazyLock::new(|| {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    reader(&name).unwrap_or_else(|unknown| {
        eprintln!("{unknown}");
        std::process::exit(2)
    })
});

// The hook of libfuzzer-sys ends the process at a panic that collo catches, of a library that reads Parquet; one that nothing catches ends
// it without the hook too.
fuzz_target!(
    init: {
        drop(std::panic::take_hook());
        LazyLock::force(&READ);
    },
    |bytes: &[u8]| {
        READ(bytes);
    }
);
