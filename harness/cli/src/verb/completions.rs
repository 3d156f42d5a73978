//! `collo completions`: for bash, zsh, fish, elvish and PowerShell.

use clap::CommandFactory;

use super::Ended;
use crate::args::{self, Arguments};
use crate::exit;

pub fn run(a: &args::Completions) -> Ended {
    clap_complete::generate(a.shell, &mut Arguments::command(), "collo", &mut std::io::stdout());
    Ok(exit::DONE)
}
