//! From a plan to stored runs: stage, launch, start, observe, record.
//!
//! A [`session`] is one request of a user: it plans, asks for what is missing, and measures. A [`campaign`] takes the runs of a plan in order;
//! a [`run`] stages the device ([`stage`]), starts the members, [`observe`]s a group or [`manage`]s a trace, and closes the record.
//! [`events`] is the one interface to displays. A [`trial`] is an experiment of which nothing is kept.
//!
//! In: an experiment and a device. Out: runs in the store, and progress events. This package prints nothing and knows nothing of reports.
//! `docs/architecture.md` follows one cell through it.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod campaign;
pub mod error;
pub mod events;
#[cfg(test)]
#[expect(dead_code, reason = "each package uses its part of it")]
#[path = "../../plan/src/fixture.rs"]
mod fixture;
pub mod manage;
pub mod observe;
pub mod run;
pub mod session;
pub mod stage;
pub mod steps;
#[cfg(test)]
#[path = "../../launch/src/test_supervisor.rs"]
mod test_supervisor;
pub mod trial;
pub mod workload_check;

/// If this process was started as a supervisor, run as one; must be called first thing in `main`. Services that are asked to end
/// before they are killed are MPS daemons, and what else needs more than a signal are their clients.
pub fn supervisor_entry() -> Option<std::process::ExitCode> {
    collo_launch::supervisor::entry(collo_launch::supervisor::Farewells {
        service: |pipe, patience| drop(collo_device::mps::Control::at(pipe).end(patience)),
        clients: |pipe, processes, patience| collo_device::mps::Control::at(pipe).terminate(processes, patience),
    })
}
