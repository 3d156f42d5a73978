//! Each target is this file: the reader of its own name.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static READ: LazyLock<fn(&[u8])> = LazyLock::new(|| collo_fuzz::reader(env!("CARGO_BIN_NAME")).expect("a reader of this name"));

// The hook of libfuzzer-sys ends the process at a panic that collo catches, of a library that reads Parquet; one that nothing catches ends
// it without the hook too.
fuzz_target!(
    init: {
        drop(std::panic::take_hook());
    },
    |bytes: &[u8]| READ(bytes)
);
