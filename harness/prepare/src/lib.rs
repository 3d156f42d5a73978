//! What members need before they start.
//!
//! Pinned Python environments are built ([`python`], [`interpreters`]), [`data`] sets are written, and each member gets its command and
//! environment ([`commands`], [`hosting`], [`observer_spec`]) for its [`slot`] of a device. The [`machine`], its [`surroundings`] and all
//! [`ingredients`] of a campaign are recorded. A script can be asked what a step computes ([`describe`]) if the
//! user consents ([`consent`]), from which its needs are predicted
//! ([`prediction`]).
//!
//! In: a plan's members and observers, a project. Out: what to launch, and records of what it depends on. Nothing here measures.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod commands;
pub mod consent;
pub mod data;
pub mod describe;
#[cfg(test)]
#[expect(dead_code, reason = "each package uses its part of it")]
#[path = "../../plan/src/fixture.rs"]
mod fixture;
pub mod git;
pub mod hosting;
pub mod ingredients;
pub mod interpreters;
pub mod machine;
pub mod memnet;
pub mod observer_spec;
pub mod prediction;
pub mod programs;
pub mod python;
#[cfg(test)]
#[path = "../../store/tests/support/skip.rs"]
mod skip;
pub mod slot;
pub mod surroundings;
#[cfg(test)]
#[path = "../../launch/src/test_supervisor.rs"]
mod test_supervisor;
