//! What a machine can measure: its state in checks, under load if wanted, and its answers collected for developers.
//!
//! [`examine`] goes through all checks of a machine and of its driver: [`machine`], [`gpu`], MPS with a [`daemon`] of its own, where SM
//! activity comes from ([`smact`], by the [`matrix`] of sources), and the [`verdict`] of what can be measured. [`deep`] loads each GPU with
//! a tiny experiment of known results, and watches the driver's [`lists`] meanwhile. [`collect`] fills a bundle with the replies of the
//! driver, of DCGM and of MPS, in which nothing identifies the machine or its users.
//!
//! In: the folder's project and stored runs, a driver. Out: a [`check::Check`] for each subject, with what was found, how good that is and
//! what helps; the bundle. Queries that may hang have a limit ([`timeout`]). What a person should know meanwhile is a remark to the
//! caller; nothing is printed here. Only `collect` changes a machine, if asked to partition a GPU, and restores it.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod check;
pub mod collect;
pub mod daemon;
pub mod deep;
pub mod examine;
pub mod gpu;
mod indices;
pub mod lists;
pub mod machine;
pub mod matrix;
pub mod smact;
#[cfg(test)]
mod tests;
pub mod timeout;
pub mod verdict;
