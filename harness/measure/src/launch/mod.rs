//! Starting the members of a group, each under a small supervisor, with a channel to talk to it.
//!
//! In: what to start, where, with which environment. Out: a [`Group`] and a stream of [`Signal`]s. This module does not know
//! what a cell is, nor what the signals mean: `observe` does.
//!
//! ```text
//! collo ──control (lifeline, commands, reports)── supervisor ── member ── its children …
//!   └────────────── channel (protocol.rs), a socketpair that the member inherits ─┘
//! ```

pub mod adapter;
mod ask;
pub mod cgroup;
mod channel;
pub mod children;
mod errand;
mod flood;
mod foreign;
mod group;
mod hosted;
#[cfg(test)]
mod hosted_tests;
pub mod mark;
pub mod memory_policy;
mod process;
pub mod protocol;
mod service;
mod supervised;
pub mod supervisor;
pub mod tree;

pub use adapter::Adapter;
pub use ask::CommandOutput;
pub use errand::{Errand, ErrandOutput, Unanswered};
pub use group::{Ended, Group, LaunchError, Live, MemberLaunch, Signal};
pub use hosted::{HostLaunch, channel_of};
pub use process::all as all_processes;
pub use service::{Service, ServiceEnd, ServiceOrders};
