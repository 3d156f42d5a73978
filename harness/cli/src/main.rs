//! The command `collo`: parses arguments and runs verbs. The only crate of the product that prints, all of it in `output`.
//!
//! `args` is the command line with its help, `context` what every verb is given, `answer` what it returns. The verbs are sorted by what
//! they do for a user: `measuring` plans and runs, `stored` lists, shows and compares what was measured, `machine` checks and partitions
//! this machine, `models` predicts, `project` is about the files of a project, `help` about the command itself. A verb turns its
//! arguments into a call of the package that does the work, and what that returns into an answer, as text and as JSON: `plan_text`,
//! `forecast_text` and `commands_text` are the words for plans, `progress` displays what goes on. Verbs use the rooms below them:
//! `models` uses `measuring`, that uses `stored`, and that `machine` and `project`.
//!
//! In: arguments. Out: results on stdout, everything else on stderr, and an exit code.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod answer;
mod args;
mod bundled;
mod carried;
mod commands_text;
mod complete;
mod context;
mod exit;
mod forecast_text;
mod guide;
mod help;
mod machine;
mod measured;
mod measuring;
mod models;
mod output;
mod plan_text;
mod progress;
mod project;
mod shell;
mod stored;
mod trial;
mod unexpected;

use std::process::ExitCode;

use collo_text::{Diagnostics, ExitClass};
use nix::sys::stat::{Mode, umask};

use crate::answer::Answer;
use crate::args::{Arguments, Verb};

fn main() -> ExitCode {
    unexpected::files_end_in_errors();
    // A member's supervisor is this same binary; it must not even parse arguments.
    if let Some(code) = collo_measure::supervisor_entry() {
        return code;
    }
    collo_launch::interrupted::install_handlers();
    keep_others_out();
    // A shell that asks what can come next; answers and exits.
    clap_complete::CompleteEnv::with_factory(<Arguments as clap::CommandFactory>::command)
        .var(help::completions::ASKS)
        .complete();
    let arguments = match Arguments::read(output::width()) {
        Ok(arguments) => arguments,
        Err(mut e) => {
            let way_out = args::add_way_out(&mut e);
            output::of_clap(&e);
            way_out.iter().for_each(output::hint);
            if let Some(unwritten) = output::unwritten() {
                return ended(&unwritten.into());
            }
            return exit::code(if e.use_stderr() { exit::USAGE } else { exit::DONE });
        }
    };
    if let Some(model) = &arguments.simulate
        && let Err(wrong) = machine::simulate::simulate(model)
    {
        output::set_up(&arguments);
        return ended(&wrong.into());
    }
    output::set_up(&arguments);
    let context = context::Context::of(&arguments);
    let answer = || match &arguments.verb {
        Verb::Try(a) => measuring::try_scripts::run(&context, a).map(Answer::from),
        Verb::Plan(a) => measuring::plan::run(&context, a).map(Answer::from),
        Verb::Run(a) => measuring::run::run(&context, a).map(Answer::from),
        Verb::Status(a) => stored::status::run(&context, a),
        Verb::Restore(a) => machine::restore::run(&context, a),
        Verb::Slurm(a) => measuring::slurm::run(&context, a),
        Verb::Predict(a) => models::predict::run(&context, a),
        Verb::Advise(a) => models::advise::run(&context, a),
        Verb::Merge(a) => stored::merge::run(&context, a),
        Verb::Report(a) => stored::report::run(&context, a),
        Verb::Compare(a) => stored::compare::run(&context, a),
        Verb::Nightly(a) => measuring::nightly::run(&context, a),
        Verb::List(a) => stored::list::run(&context, a),
        Verb::Show(a) => stored::show::run(&context, a),
        Verb::Bundle(a) => stored::bundle::run(&context, a),
        Verb::Import(a) => stored::import::run(&context, a),
        Verb::Verify(a) => stored::verify::run(&context, a),
        Verb::Prune(a) => stored::prune::run(&context, a),
        Verb::Doctor(a) => machine::doctor::run(&context, a),
        Verb::Mig(a) => machine::mig::run(&context, a),
        Verb::Data(a) => project::data::run(&context, a).map(Answer::from),
        Verb::Workload(a) => project::workload::run(&context, a),
        Verb::Trace(a) => project::trace::run(&context, a),
        Verb::Init(a) => project::init::run(&context, a),
        Verb::Schema(a) => project::schema::run(a),
        Verb::Completions(a) => help::completions::run(a),
        Verb::Man(a) => help::man::run(&context, a),
        Verb::Help(a) => help::guide::run(a),
    };
    let code = unexpected::caught(|| Ok(answer()?.print(&context))).unwrap_or_else(|wrong| {
        output::failure(&wrong);
        wrong.class().code()
    });
    collo_launch::mark::cgroup::leave();
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

/// What root and its members write beside scripts, such as Python's byte code, root executes later: whatever the umask, other users do
/// not write it.
fn keep_others_out() {
    if nix::unistd::geteuid().is_root() {
        let before = umask(Mode::S_IRWXO);
        umask(before | Mode::S_IWOTH);
    }
}

/// Print the error that ends collo, and return its code.
fn ended(wrong: &Diagnostics) -> ExitCode {
    output::failure(wrong);
    exit::code(wrong.class().code())
}
