//! Sources of samples, and the threads that read them on absolute deadlines of `CLOCK_MONOTONIC`.
//!
//! Fast: `/proc` gauges of every member and the energy counters. Slow: whatever walks page tables, lists processes or changes
//! rarely. Never one sampler per process. A driver may answer slowly, so GPUs have threads of their own (`gpu`). In: the members'
//! supervisors and the GPUs. Out: samples (to a writer), the quality of the sampling, and the latest values for displays. This
//! package does not know what a run is.
//!
//! To add a sampler: a file that implements [`Sampler`]; its line in `Sampling::begin_host` (`threads.rs`), among the fast or the slow
//! ones, or for a GPU in `GpuSession::begin_gauges` (`gpu/session.rs`). A new metric is one more sample, named with its unit. A report shows
//! one of the host or of a GPU under that name, in words once it has a row in `quantity/src/table.rs`; one of a member needs a field of
//! `Usage` in `analysis/src/reading/usage.rs`.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod account;
mod core_sets;
pub mod gpu;
mod host;
mod latest;
mod member;
mod process;
mod quality;
mod reader;
#[cfg(test)]
#[path = "../../launch/src/test_supervisor.rs"]
mod test_supervisor;
mod threads;
mod ticker;

use collo_store::Sample;

pub use core_sets::core_scope;
pub use gpu::{Board, BoardInstance};
pub use host::{NoEnergy, RaplDomain, RaplEnergy};
pub use latest::{Latest, LatestValues};
pub use process::{field, peak_rss_bytes};
pub use threads::{Rates, Sampling, Sites};

/// A source of samples. A value is `None` if the device does not report it: never 0, never -1.
pub trait Sampler: Send {
    /// Read everything once; `at_ns` is the time of the tick.
    fn sample(&mut self, at_ns: u64, samples: &mut Vec<Sample>);

    /// What it gave, and why the rest is absent, if it records that.
    fn account(&self) -> Option<&account::Account> {
        None
    }
}
