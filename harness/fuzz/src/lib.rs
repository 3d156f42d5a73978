//! Every reader of files and texts that others may have written, each as a function of bytes.
//!
//! In: bytes. Out: whether they were accepted; a reader may refuse them, and must neither panic, nor take long, nor much memory. What it
//! reads it also uses as its verb would, and what it refuses is written out as a person would see it. `tests/readers.rs` feeds the seeds in
//! `corpus/NAME/` and changes of them to all of [`READERS`]; `just fuzz` lets libFuzzer search for further inputs, with the program in
//! `fuzz/`, which is the reader that [`VARIABLE`] names.
//!
//! To add a reader: its function in the room of what it reads, its line in [`READERS`], and a seed or more in `corpus/NAME/`. A seed whose
//! name does not begin with `refused-` is accepted.

#![warn(clippy::print_stdout, clippy::print_stderr)]
#![expect(clippy::expect_used, reason = "a place where nothing can be written is no finding")]

#[cfg(feature = "reports")]
mod elsewhere;
mod given;
mod members;
mod models;
mod project;
mod stored;
mod traces;

/// The variable of the environment that names the reader of libFuzzer's program.
pub const VARIABLE: &str = "COLLO_READER";

/// `None` where an input was refused, or nothing of what it is meant to be was found in it.
pub type Accepted = Option<()>;

/// A reader by its name, which is also that of its corpus.
pub type Reader = (&'static str, fn(&[u8]) -> Accepted);

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
    ("lines", members::lines),
    ("progress", members::progress),
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
    #[cfg(feature = "reports")]
    ("radt-database", elsewhere::database),
];

/// The reader of this name, or an error with the names of all.
pub fn reader(name: &str) -> Result<fn(&[u8]) -> Accepted, String> {
    let found = READERS.iter().find(|(own, _)| *own == name).map(|(_, read)| *read);
    let names = || READERS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("no reader is named `{name}`: set {VARIABLE} to one of {}", names()))
}
