//! The command `collo`: parses arguments and runs verbs. The only crate of the product that prints, all of it in `say`.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod archive;
mod args;
mod commands_text;
mod complete;
mod exit;
mod forecast_text;
mod measured;
mod output;
mod plan_text;
mod progress;
mod shell;
mod unexpected;
mod verb;

use std::process::ExitCode;

use collo_text::{Diagnostics, ExitClass};

use crate::args::{Arguments, Verb};

fn main() -> ExitCode {
    unexpected::files_end_in_errors();
    // A member's supervisor is this same binary; it must not even parse arguments.
    if let Some(code) = collo_measure::supervisor_entry() {
        return code;
    }
    // A shell that asks what can come next; answers and exits.
    clap_complete::CompleteEnv::with_factory(<Arguments as clap::CommandFactory>::command)
        .var(verb::completions::ASKS)
        .complete();
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(e) => {
            output::of_clap(&e);
            args::way_out(&e).iter().for_each(output::hint);
            if let Some(unwritten) = output::unwritten() {
                return ended(&unwritten.into());
            }
            return exit::code(if e.use_stderr() { exit::USAGE } else { exit::DONE });
        }
    };
    output::set_up(&arguments);
    let context = verb::Context::of(&arguments);
    let verb = || match &arguments.verb {
        Verb::Plan(a) => verb::plan::run(&context, a),
        Verb::Run(a) => verb::run::run(&context, a),
        Verb::Status(a) => verb::status::run(&context, a),
        Verb::Restore(a) => verb::restore::run(&context, a),
        Verb::Slurm(a) => verb::slurm::run(&context, a),
        Verb::Predict(a) => verb::predict::run(&context, a),
        Verb::Predictor(a) => verb::predictor::run(&context, a),
        Verb::Whatif(a) => verb::whatif::run(&context, a),
        Verb::Merge(a) => verb::merge::run(&context, a),
        Verb::Report(a) => verb::report::run(&context, a),
        Verb::Compare(a) => verb::compare::run(&context, a),
        Verb::Nightly(a) => verb::nightly::run(&context, a),
        Verb::Ci(a) => verb::ci::run(&context, a),
        Verb::List(a) => verb::list::run(&context, a),
        Verb::Show(a) => verb::show::run(&context, a),
        Verb::Comment(a) => verb::comment::run(&context, a),
        Verb::Bundle(a) => verb::bundle::run(&context, a),
        Verb::Import(a) => verb::import::run(&context, a),
        Verb::Verify(a) => verb::verify::run(&context, a),
        Verb::Prune(a) => verb::prune::run(&context, a),
        Verb::Doctor(a) => verb::doctor::run(&context, a),
        Verb::Mig(a) => verb::mig::run(&context, a),
        Verb::Data(a) => verb::data::run(&context, a),
        Verb::Workload(a) => verb::workload::run(&context, a),
        Verb::Trace(a) => verb::trace::run(&context, a),
        Verb::Init(a) => verb::init::run(&context, a),
        Verb::Schema(a) => verb::schema::run(a),
        Verb::Completions(a) => verb::completions::run(a),
        Verb::Man(a) => verb::man::run(&context, a),
    };
    let code = unexpected::caught(verb).unwrap_or_else(|wrong| {
        output::failure(&wrong);
        wrong.class().code()
    });
    collo_launch::cgroup::leave();
    match output::unwritten() {
        Some(unwritten) if code == exit::DONE => {
            // What was measured is stored: only the answer is missing.
            let measures = matches!(arguments.verb, Verb::Run(_) | Verb::Nightly(_));
            let unwritten = match measures {
                true => unwritten.of(ExitClass::Incomplete).hint("what was measured is stored: `collo report`"),
                false => unwritten,
            };
            ended(&unwritten.into())
        }
        _ => exit::code(code),
    }
}

/// Print the error that ends collo, and return its code.
fn ended(wrong: &Diagnostics) -> ExitCode {
    output::failure(wrong);
    exit::code(wrong.class().code())
}
