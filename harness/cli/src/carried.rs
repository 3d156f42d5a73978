//! The files of a project that are embedded in this binary: experiments, observers, traces, workloads and MIG profiles.

// `CARRIED`: path inside a project, and content; made by build.rs.
include!(concat!(env!("OUT_DIR"), "/carried.rs"));
