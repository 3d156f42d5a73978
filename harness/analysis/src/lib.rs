//! From a campaign's stored runs to numbers with intervals.
//!
//! In: a campaign folder, and perhaps another one on the same GPU that lends it baselines. Out: a [`campaign::Analysis`]. It words and
//! draws nothing, concludes nothing from its numbers, and treats modes, workloads and metrics as text: a new one appears without a change
//! here. Nothing touches a GPU or a process.
//!
//! - [`words`] has the words that all presentations share, of outcomes and validities.
//! - [`reading`] reads one stored run, its samples through polars.
//! - [`cell`] makes the quantities of a cell of its repetitions, relative to baselines of the same block, with intervals, and the reason
//!   for each that is absent.
//! - [`trace`], [`watching`] and [`timeline`] read what is no group: runs of traces, cells that say who watches, the course of a run.
//! - [`campaign`] puts them together ([`campaign::analyse`]), with the devices, the sweep, the references, the predictions and the
//!   limitations of the whole.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod campaign;
pub mod cell;
pub mod reading;
pub mod timeline;
pub mod trace;
pub mod watching;
pub mod words;
