//! From an experiment to a plan: which cells are measured, in which order, where each member sits, and what is refused.
//!
//! An [`experiment`] is read from a file, with the [`workload`]s and [`observer`]s of a [`project`] that it names. It is [`expand`]ed into
//! [`cell`]s, of which a [`select`]ion may be taken. A [`sharing`] mode gives each member of a cell its seat on a device, whose [`facts`]
//! are known, or refuses. What is known of the cells beforehand are [`past`] runs, [`prior`] reports, and predictions ([`predictors`]).
//! All of that becomes a [`plan`]: cells, order, forecast.
//!
//! In: files, the facts of a device, stored runs. Out: the plan as it is stored with a campaign, or diagnostics. This package reads files; it
//! opens no device and starts no process.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod cell;
pub mod earlier;
pub mod expand;
pub mod experiment;
pub mod facts;
// The fixture is compiled into the tests of other packages, too, where this package has this name.
#[cfg(test)]
extern crate self as collo_plan;
#[cfg(test)]
#[expect(dead_code, reason = "each package uses its part of it")]
mod fixture;
pub mod frontier;
pub mod goal;
#[cfg(test)]
mod guide;
pub mod host;
pub mod hosting;
pub mod observer;
pub mod past;
pub mod plan;
pub mod predictors;
pub mod prior;
pub mod project;
pub mod schema;
pub mod select;
pub mod sharing;
pub mod traces;
pub mod workload;
