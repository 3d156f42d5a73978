//! The command `collo`: arguments in, verbs out. The only code of the workspace that prints, and of it only `say`.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod exit;
mod plan_text;
mod progress;
mod say;
mod unexpected;
mod verb;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Verb};
use crate::exit::Failure;

fn main() -> ExitCode {
    unexpected::files_end_in_errors();
    // A member's supervisor is this same binary; it must not even parse arguments.
    if let Some(code) = collo_measure::launch::supervisor::entry() {
        return code;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(e) => {
            say::of_clap(&e);
            if let Some(failure) = say::unwritten() {
                say::failure(&failure);
                return exit::code(failure.exit);
            }
            return exit::code(if e.use_stderr() { exit::USAGE } else { exit::DONE });
        }
    };
    say::set_up(&arguments);
    let context = verb::Context { arguments: &arguments };
    let verb = || match &arguments.verb {
        Verb::Plan(a) => verb::plan::run(&context, a),
        Verb::Run(a) => verb::run::run(&context, a),
        Verb::Status(a) => verb::status::run(&context, a),
        Verb::Restore(a) => verb::restore::run(&context, a),
        Verb::Report(a) => verb::report::run(&context, a),
        Verb::Compare(a) => verb::compare::run(&context, a),
        Verb::Nightly(a) => verb::nightly::run(&context, a),
        Verb::List(a) => verb::list::run(&context, a),
        Verb::Show(a) => verb::show::run(&context, a),
        Verb::Verify(a) => verb::verify::run(&context, a),
        Verb::Prune(a) => verb::prune::run(&context, a),
        Verb::Doctor(a) => verb::doctor::run(&context, a),
        Verb::Mig(a) => verb::mig::run(&context, a),
        Verb::Data(a) => verb::data::run(&context, a),
        Verb::Workload(a) => verb::workload::run(&context, a),
        Verb::Init(a) => verb::init::run(&context, a),
        Verb::Schema(a) => verb::schema::run(a),
        Verb::Completions(a) => verb::completions::run(a),
    };
    let code = unexpected::caught(verb).unwrap_or_else(|failure| {
        say::failure(&failure);
        failure.exit
    });
    collo_measure::launch::cgroup::leave();
    match say::unwritten() {
        Some(failure) if code == exit::DONE => {
            // What was measured is stored: only the answer is missing.
            let measures = matches!(arguments.verb, Verb::Run(_) | Verb::Nightly(_));
            let failure = match measures {
                true => Failure { exit: exit::INCOMPLETE, ..failure }.hint("what was measured is stored: `collo report`"),
                false => failure,
            };
            say::failure(&failure);
            exit::code(failure.exit)
        }
        _ => exit::code(code),
    }
}
