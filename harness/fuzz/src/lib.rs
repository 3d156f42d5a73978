//! Every reader of files and texts that others may have written, each as a function of bytes.
//!
//! In: bytes. Out: nothing; a reader may refuse them, and must neither panic, nor take long, nor much memory. What it reads it also uses as
//! its verb would, and what it refuses is written out as a person would see it. `tests/readers.rs` feeds the seeds in `corpus/NAME/` and
//! changes of them to all of [`READERS`]; `just fuzz` lets libFuzzer search for further inputs, with the targets in `fuzz/`.
//!
//! To add a reader: its function in the room of what it reads, its line in [`READERS`], a seed or more in `corpus/NAME/`, and a `[[bin]]` of
//! that name in `fuzz/Cargo.toml`.

#![warn(clippy::print_stdout, clippy::print_stderr)]
#![expect(clippy::expect_used, reason = "a place where nothing can be written is no finding")]

pub mod bytes;
#[cfg(feature = "reports")]
mod elsewhere;
mod given;
mod members;
mod models;
mod project;
mod stored;
mod traces;

/// A reader by its name, which is also that of its corpus and of its target.
pub type Reader = (&'static str, fn(&[u8]));

pub const READERS: &[Reader] = &[
    ("experiment", project::experiment),
    ("included", project::included),
    ("workload", project::workload),
    ("observer", project::observer),
    ("host", project::host),
    ("gpu-model", project::gpu_model),
    ("layout", project::layout),
    ("mig-parted", project::mig_parted),
    ("label", project::label),
    ("trace", traces::trace),
    ("trace-table", traces::table),
    ("rad", traces::rad),
    ("script", traces::script),
    ("philly", traces::philly),
    ("helios", traces::helios),
    ("happened", traces::happened),
    ("predictor", models::predictor),
    ("description", models::description),
    ("message", members::message),
    ("output", members::output),
    ("dcgm", members::dcgm),
    ("mps", members::mps),
    ("bundle", stored::bundle),
    ("campaign", stored::campaign),
    ("run", stored::run),
    ("journal", stored::journal),
    ("epochs", stored::epochs),
    ("requests", stored::requests),
    ("samples", stored::samples),
    ("tasks", stored::tasks),
    ("attempts", stored::attempts),
    ("decisions", stored::decisions),
    #[cfg(feature = "reports")]
    ("report", elsewhere::report),
    #[cfg(feature = "reports")]
    ("table", elsewhere::table),
    #[cfg(feature = "reports")]
    ("pairs", elsewhere::pairs),
    #[cfg(feature = "reports")]
    ("radt-schedule", elsewhere::schedule),
    #[cfg(feature = "reports")]
    ("radt-tracked", elsewhere::tracked),
];

/// The reader of this name.
pub fn reader(name: &str) -> Option<fn(&[u8])> {
    READERS.iter().find(|(own, _)| *own == name).map(|(_, read)| *read)
}
