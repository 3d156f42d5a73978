//! Verbs about what a project consists of: its files, workloads, traces and data, the schema of its files.
//!
//! In: a folder, names of its parts. Out: files, lines or JSON.

pub mod data;
pub mod init;
pub mod schema;
pub mod trace;
pub mod workload;
