//! The arguments of `collo advise`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub struct Advise {
    /// A question in JSON: a task, and GPUs as they are seen (`collo help advising`); by default it is read from stdin
    #[arg(value_name = "FILE")]
    pub question: Option<PathBuf>,
}
