//! Text that people and files exchange with collo.
//!
//! A file is read within limits ([`read_small_text`]), its keys are taken by a table of keys ([`fields`]), its values have units
//! ([`units`]). What is wrong becomes a [`Diagnostic`] that names the thing, the reason and the way out, with the place in its
//! [`Source`] and the nearest known word; what should be known before a result is a [`Remark`]. Text of others is escaped before it is printed ([`quoting`]),
//! and files are judged by who could have written them ([`trust`]).
//!
//! In: bytes and words of others. Out: typed values, or diagnostics. This package knows nothing of stored runs, GPUs or processes.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod commands;
pub mod diagnostic;
pub mod fields;
mod nearest;
mod paths;
pub mod quoting;
mod regular;
mod remark;
#[cfg(test)]
#[path = "../../store/tests/support/skip.rs"]
mod skip;
pub mod trust;
pub mod units;
mod wrap;

pub use diagnostic::{Diagnostic, Diagnostics, ExitClass, PROCESS_LIMIT, Source, is_process_limit};
pub use nearest::nearest;
pub use paths::{is_program, on_path, shown, written};
pub use quoting::quoted;
pub use regular::{entries, open_folder, open_regular, read_begin, read_end, read_small, read_small_text};
pub use remark::Remark;
pub use wrap::wrapped;
