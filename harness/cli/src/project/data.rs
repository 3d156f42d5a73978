//! `collo data`: the data sets, through the same Python code that the workloads read them with.

use std::process::Command;

use collo_launch::children;
use collo_measure::events::Event;
use collo_prepare::interpreters::Interpreters;
use collo_text::Diagnostic;
use nix::sys::signal::Signal;

use crate::args::{self, DataVerb};
use crate::context::{Context, Ended};
use crate::{exit, progress};

pub fn run(context: &Context<'_>, a: &args::Data) -> Ended {
    let project = context.project()?;
    let mut display = progress::display(context.arguments.quiet);
    let python = Interpreters::torch(&project, a.python.as_deref(), &mut |progress| display.show(Event::Python(progress)));
    display.end();
    let mut command = Command::new(python?.interpreter);
    command.args(["-m", "collo_data"]).args(words(&a.what));
    if context.arguments.json {
        command.arg("--json");
    }
    command.current_dir(context.folder()?).env("PYTHONPATH", project.workloads()).env("COLLO_DATA", project.data());
    command.env("PYTHONNOUSERSITE", "1");
    // Whatever ends collo ends the writer, which then takes away what it has written so far.
    children::begin(&mut command, Signal::SIGTERM);
    let status = command.status().map_err(|e| Diagnostic::new("Python does not start").of_machine().caused_by(e))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED))
}

/// The arguments of `python -m collo_data`, which are those of this verb.
fn words(what: &DataVerb) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |word: &dyn std::fmt::Display| words.push(word.to_string());
    match what {
        DataVerb::List => add(&"list"),
        DataVerb::Check { name, place } => {
            add(&"check");
            add(name);
            place.iter().for_each(|place| add(&place.display()));
        }
        DataVerb::Synthesize { name, scale, to, seed, format } => {
            add(&"synthesize");
            add(name);
            add(&format!("--scale={scale}"));
            to.iter().for_each(|to| add(&format!("--to={}", to.display())));
            seed.iter().for_each(|seed| add(&format!("--seed={seed}")));
            format.iter().for_each(|format| add(&format!("--format={format}")));
        }
    }
    words
}
