//! The devices of this machine: their properties, and changes of GPUs that are undone whatever happens.
//!
//! An experiment requests a device ([`requested`]), found by [`select_gpu`] among those of the [`gpu`] driver, within the [`allocation`] of a
//! batch system. A [`lease`] locks a GPU, records how it was found ([`lease::journal`]) before it is changed, and restores it. [`repartition`] changes
//! MIG, [`mps`] controls NVIDIA's daemon, [`services`] stops and restarts what has a GPU open. [`nvml`] is the one place that opens the library.
//!
//! In: requests of a plan. Out: the facts of devices, leases, partitioned GPUs. This package knows nothing of cells and runs.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod allocation;
pub mod apply;
mod blame;
pub mod company;
pub mod cpu;
pub mod driver;
pub mod fixed;
#[cfg(test)]
#[expect(dead_code, reason = "each package uses its part of it")]
#[path = "../../plan/src/fixture.rs"]
mod fixture;
pub mod gpu;
pub mod holders;
pub mod layout;
pub mod lease;
pub mod mps;
pub mod namespace;
pub mod numa;
pub mod nvml;
mod presence;
pub mod repartition;
pub mod requested;
pub mod select_gpu;
pub mod services;
mod settings;
#[cfg(test)]
#[path = "../../store/tests/support/skip.rs"]
mod skip;
pub mod state_folder;
pub mod temperature;
#[cfg(test)]
#[path = "../../launch/src/test_supervisor.rs"]
mod test_supervisor;
pub mod trust;

pub use presence::has_gpu;
