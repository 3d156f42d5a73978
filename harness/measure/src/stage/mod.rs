//! Applies a seating to a device, and gathers the evidence that it is in force.
//!
//! In: a seating of `collo-plan`, and the lease of a GPU. Out: a slot for each member, and after the start what the driver, the MPS daemons
//! and the members themselves report about the mode.

mod daemon;
mod evidence;
mod gpu_evidence;
mod orders;
mod site;
mod staging;
mod thread_evidence;

pub use daemon::{DaemonProcess, MpsDaemon};
pub use evidence::{CPU_TIME, InForce, attest, found_cpu, misplaced, words};
pub use gpu_evidence::{MEMORY_LIMIT, NOBODY, OTHERS, THREAD_LIMIT, add_strangers};
pub use orders::{ForeseenStage, foreseen};
pub use site::{Placing, SiteOrder, StagedSite, attest_beside};
pub use staging::{Consent, StageError, StagedCard};
