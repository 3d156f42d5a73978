//! Verbs about what a project consists of: its files, workloads, traces and data, the schema of its files, the job that measures it nightly.
//!
//! In: a folder, names of its parts. Out: files, lines or JSON.

pub mod ci;
pub mod data;
pub mod init;
pub mod schema;
pub mod trace;
pub mod workload;
