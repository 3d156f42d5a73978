//! A program of unit tests must be able to run as a supervisor, too. It has no `main` of ours, so this happens before it gets there.
//!
//! Each package whose unit tests start processes compiles this file into them.

use collo_launch::supervisor::{Farewells, entry};

extern "C" fn supervise() {
    // No unit test starts an MPS daemon.
    if entry(Farewells { service: |_, _| (), clients: |_, _, _| () }).is_some() {
        std::process::exit(0);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static SUPERVISE: extern "C" fn() = supervise;
