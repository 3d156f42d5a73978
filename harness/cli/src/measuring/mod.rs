//! Verbs that measure, or prepare what is measured: a plan, a run, the runs of every night, the jobs of a batch system.
//!
//! In: experiments by name or tag. Out: stored runs and their report, with progress meanwhile; or the plan. What these verbs have in
//! common are [`steps`] from a request to its runs, and the [`ending`] of what is incomplete.

mod ending;
pub mod nightly;
mod notice;
pub mod plan;
pub mod run;
pub mod slurm;
pub mod steps;
pub mod try_scripts;
mod until;
