//! The devices of this machine: their properties, and changes of GPUs that are undone whatever happens.
//!
//! An experiment requests a device ([`requested`]), found by [`select_gpu`] among those of the [`gpu`] driver, within the [`allocation`] of a
//! batch system. A [`lease`] locks a GPU, records how it was found ([`lease::journal`]) before it is changed, and restores it. [`repartition`] changes
//! MIG, [`mps`] controls NVIDIA's daemon, [`services`] stops and restarts what has a GPU open. [`nvml`] is the one place that opens the library.
//!
//! In: requests of a plan. Out: the facts of devices, leases, partitioned GPUs. This package knows nothing of cells and runs.
//!
//! ```text
//! lease ─ lock, journal of what was found ──┐         the lock is the machine's, the journal the user's
//!   │ apply(partition)                      │ before the first change, flushed
//!   ▼                                       ▼
//! block of cells with this partition: naive and MPS (MIG off) · each layout of MIG
//!   │ per run: daemon(s) up ▸ members ▸ evidence ▸ daemon(s) down
//!   ▼
//! restore ── the GPU is as found, the journal is removed
//! ```
//! A partition lasts for a block, a daemon for one run (decision 0009). Where MIG mode is changed, services that have the GPU open are
//! stopped around it if permitted, and what a reset loses is set again (`settings`, decision 0014). The state found is saved where
//! `collo restore` and the next run find it (decision 0010); its possible writers are checked before it is trusted (decision 0017).

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod allocation;
pub mod apply;
mod blame;
pub mod company;
pub mod control_groups;
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

pub use presence::has_gpu;
