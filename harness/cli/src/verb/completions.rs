//! `collo completions`: for bash, zsh, fish, elvish and PowerShell.

use clap::CommandFactory;

use super::Ended;
use crate::args::{self, Arguments};
use crate::{exit, output};

pub fn run(a: &args::Completions) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(a.shell, &mut Arguments::command(), "collo", &mut script);
    output::bytes(&script);
    Ok(exit::DONE)
}
