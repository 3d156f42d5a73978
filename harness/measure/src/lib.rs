//! From an experiment to stored runs: read, expand, plan, stage, launch, start, observe, record.
//!
//! In: experiment files and workloads. Out: runs in the store, and progress events. This crate prints nothing and knows nothing
//! of reports. `docs/architecture.md` follows one cell through it.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod campaign;
mod cell;
mod commands;
mod describe;
mod device;
mod events;
mod expand;
pub mod experiment;
#[cfg(test)]
mod fixture;
mod frontier;
pub mod host;
mod hosting;
pub mod ingredients;
mod interpreters;
mod interrupt;
mod interrupted;
pub mod launch;
pub mod load;
pub mod machine;
mod manage;
mod measured;
mod memnet;
pub mod observe;
pub mod observer;
mod past;
mod plan;
mod prediction;
pub mod predictors;
mod prepare;
mod prior;
mod project;
pub mod python;
mod run;
pub mod sampler;
pub mod schema;
mod select;
mod session;
pub mod sharing;
mod shown;
#[cfg(test)]
#[path = "../../store/tests/support/skip.rs"]
mod skip;
mod steps;
mod surroundings;
pub mod traces;
pub mod workload;
pub mod workload_check;

pub use campaign::is_want_of_threads;

pub use cell::{AfterMeasured, Cell, CellTask, Member, Term};
pub use describe::{Describable, Describer, NamedModel, basis_of};
pub use device::{
    Address as GpuAddress, Cores, DeviceFacts, DeviceKind, Driver, Gpu, GpuSelector as GpuChoice, Partition, SilentGpu,
    allocation, apply, company, fixed, has_gpu, holders, layout, lease, mig, mps, namespace, nvml, partition, repartition,
    services, trust,
};
pub use events::{Event, Watcher};
pub use expand::{Expanded, expand};
pub use experiment::Experiment;
pub use interpreters::Interpreters;
pub use interrupted::{Noted, Stopped};
pub use measured::{Measured, MeasuredAlone, MeasuredCell, MeasuredMember};
pub use memnet::{MemnetAnswer, MemnetBin, MemnetOptions, MemnetResult, MemnetRow, MemnetSplit, memnet};
pub use past::AloneTime;
pub use plan::{
    CellForecast, ForecastBasis, ForecastSource, GainForecast, LeastTime, MemoryForecast, OutOfMemoryRisk, Plan, PlannedCell,
    plan,
};
pub use prediction::published_estimate;
pub use prepare::{Prepared, prepare};
pub use prior::Prior;
pub use project::Project;
pub use run::RunError;
pub use select::{Expression, Selection};
pub use session::{NotPredicted, PythonToPredict, Request, Session, Unfinished};
pub use sharing::{Refusal, SharingMode};
pub use shown::shown;
pub use steps::{ProcessStart, Step};
pub use workload::{Workload, Workloads};

/// If this process was started as a supervisor, run as one; must be called first thing in `main`. Services that are asked to end
/// before they are killed are MPS daemons, and what else needs more than a signal are their clients.
pub fn supervisor_entry() -> Option<std::process::ExitCode> {
    launch::supervisor::entry(launch::supervisor::Farewells {
        service: |pipe, patience| drop(mps::Control::at(pipe).end(patience)),
        clients: |pipe, processes, patience| mps::Control::at(pipe).terminate(processes, patience),
    })
}
