//! Processes that cannot outlive collo.
//!
//! A [`Group`] is the members of a run: each is started under a small [`supervisor`], with a channel to talk to it ([`protocol`]). A
//! [`Service`] is a daemon that ends with its run, an [`Errand`] a command that is awaited. [`mark`] finds processes that an earlier collo
//! left; [`interrupt`] is how collo itself is stopped.
//!
//! In: what to start, where, with which environment. Out: processes, and a stream of [`Signal`]s. This package does not know what a cell
//! is, nor what the signals mean.
//!
//! ```text
//! collo ──control (lifeline, commands, reports)── supervisor ── member ── its children …
//!   └────────────── channel (protocol.rs), a socketpair that the member inherits ─┘
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

// A file of the unit tests is compiled into those of other packages, too, where this package has this name.
#[cfg(test)]
extern crate self as collo_launch;

pub mod adapter;
#[cfg(test)]
mod adapter_presets_tests;
mod advice;
mod ask;
mod channel;
pub mod children;
pub mod environment;
mod errand;
mod find_progress;
mod flood;
mod foreign;
mod group;
pub mod interrupt;
pub mod interrupted;
pub mod mark;
pub mod memory_policy;
mod output;
mod process;
pub mod protocol;
mod service;
mod supervised;
pub mod supervisor;
#[cfg(test)]
mod test_supervisor;
pub mod tree;

pub use adapter::Adapter;
pub use advice::{advice_for_failure, bar_without_terminal};
pub use ask::CommandOutput;
pub use errand::{Errand, ErrandOutput, Unanswered};
pub use find_progress::{FoundProgress, LATE_S, OutputLine, find_progress};
pub use group::{Ended, Group, LaunchError, Live, MemberLaunch, NOT_STARTED, Signal};
pub use group::{HostLaunch, channel_of};
pub use output::OutputLines;
pub use process::all as all_processes;
pub use service::{Service, ServiceEnd, ServiceOrders};
