//! Shared by `run` and `nightly`: builds a request from their arguments, checks its plan before anything is measured, and
//! displays progress.
//!
//! To add a verb that measures: it builds a [`Request`], then calls this file and `ending`, or a [`Session`] itself.

use collo_measure::campaign::{CampaignOptions, FailureLimit, Finished};
use collo_measure::session::{NotPredicted, PythonToPredict, Request, Session};
use collo_measure::stage::Consent;
use collo_plan::experiment::{DeviceRequest, Experiment};
use collo_plan::project::Project;
use collo_plan::select::Selection;
use collo_prepare::consent::DescribeConsent;

use collo_text::{Diagnostic, Diagnostics, ExitClass};

use super::ending;
use crate::args::{self, Foreign};
use crate::context::Context;
use crate::plan_text::RefusedCells;
use crate::{measured, output, progress};

/// The request that the arguments make of an experiment.
pub fn request(experiment: Experiment, selection: Option<Selection>, a: &args::Measure) -> Request {
    let host = experiment.layers.host();
    let device = DeviceRequest { gpu: a.gpu.clone(), planning: false, as_found: a.as_found };
    let python = a.python.clone().or_else(|| host.python.clone());
    let choice = CampaignOptions {
        time_limit: a.time_limit,
        failures: if a.keep_going { FailureLimit::Unlimited } else { FailureLimit::default() },
        consent: Consent {
            exclusive: a.exclusive,
            foreign: a.foreign.map_or(host.foreign.unwrap_or(false), |foreign| foreign == Foreign::Allow),
            services: a.services.into(),
        },
        ..CampaignOptions::default()
    };
    let describe = Some(DescribeConsent::by_running());
    let wait = a.wait;
    Request { selection, device, python, wait, predict: !a.no_predict, describe, choice, ..Request::of(experiment) }
}

/// Plan a request for measuring, or only for preparing, and warn of anything unusual. An empty plan is an error.
pub fn planned(project: &Project, request: Request, prepare: bool) -> Result<Session, Diagnostics> {
    request.experiment.warnings.iter().for_each(output::warning);
    let session = match prepare {
        true => Session::plan(project, request)?,
        false => Session::plan_to_measure(project, request, &mut |event| progress::tell(&event))?,
    };
    session.notes().iter().for_each(output::note);
    check(&session, &[])?;
    warn_of_scale(&session);
    report_withheld();
    Ok(session)
}

/// Plan with what was measured here, and with what is predicted: as far as Python is set up, or with what is set up for it. What is
/// wrong with a predictor's file is told.
pub fn predicted(
    context: &Context<'_>,
    session: &mut Session,
    python: PythonToPredict,
) -> Result<Option<NotPredicted>, Diagnostics> {
    session.with_measured(measured::on(&context.project()?, &session.facts().record()))?;
    let mut display = progress::display(context.arguments.quiet);
    let predicted = session.predict(python, &mut |event| display.show(event));
    display.end();
    let (why_not, unreadable) = predicted?;
    unreadable.into_iter().for_each(|wrong| output::failure(&wrong.into()));
    Ok(why_not)
}

/// Predict it, and measure what can fit.
pub fn measured(context: &Context<'_>, mut session: Session, resume: &str) -> Result<Finished, Diagnostics> {
    let known: Vec<String> = session.planned().refusals.iter().map(|r| r.record.cell.clone()).collect();
    let mut display = progress::display(context.arguments.quiet);
    let prepared = session.prepare(&mut |event| display.show(event));
    display.end();
    prepared.map_err(|error| ending::failure(error.into(), resume))?;
    predicted(context, &mut session, PythonToPredict::Provided)?;
    if session.planned().refusals.len() > known.len() {
        check(&session, &known)?;
    }
    let mut display = progress::display(context.arguments.quiet);
    let finished = session.measure(&mut |event| display.show(event));
    display.end();
    Ok(finished.map_err(|unfinished| ending::failure(unfinished, resume))?)
}

/// Why scripts of a project are not described, without a consent to start them, and the way out.
pub fn undescribed(what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(format!("{what} is not predicted: that starts scripts of this project, in which you ran nothing yet"))
        .hint("`--describe` starts them, as `collo run` does")
}

/// Print the cells that are refused, without those that are `known`; an error if no cell is left to run.
fn check(session: &Session, known: &[String]) -> Result<(), Diagnostics> {
    let plan = session.planned();
    let new = plan.refusals.iter().map(|r| &r.record).filter(|r| !known.contains(&r.cell));
    for refused in RefusedCells::by_reason(new) {
        output::note(format!("– {}", refused.sentence()));
        refused.record.hint.iter().for_each(output::hint);
    }
    if plan.order.is_empty() {
        let name = &session.experiment().name;
        if let Some(shard) = session.shard().filter(|_| plan.refusals.is_empty()) {
            let what = format!("shard {shard} of `{name}` has no cell: there are fewer cells than shards");
            return Err(Diagnostic::new(what).hint(format!("`collo plan {name}` shows them")).into());
        }
        let (class, what, hint) = match (plan.refusals.len(), session.selection()) {
            (0, Some(s)) => (ExitClass::Usage, format!("`{}` selects no cell of `{name}`", s.text()), "shows all of them"),
            (0, None) => (ExitClass::Usage, format!("`{name}` has no cell to run"), "shows what is left out"),
            (n, _) => (ExitClass::Machine, format!("every cell of `{name}` is refused here, {n} of {n}"), "shows why"),
        };
        return Err(Diagnostic::new(what).of(class).hint(format!("`collo plan {name}` {hint}")).into());
    }
    Ok(())
}

/// On a small scale, a dev build samples and reports as well as a release build.
fn warn_of_scale(session: &Session) {
    const MEMBERS_HZ: f64 = 2_000.0;
    const SAMPLES: f64 = 2e6;
    // The plan of a search is its bounds, not what will be measured.
    if !cfg!(debug_assertions) || session.experiment().search {
        return;
    }
    let plan = session.planned();
    let degree = plan.cells.iter().map(|c| c.record.degree).max().unwrap_or(0);
    let load = f64::from(degree) * session.experiment().sampling.rate_hz;
    let samples = plan.forecast.runs_s.unwrap_or(0.0) * load * 7.0;
    if load > MEMBERS_HZ || samples > SAMPLES {
        output::warning("this is a dev build, and this campaign samples so much that it needs a release build");
        output::hint("in the checkout of collo, `cargo install --locked --path harness/cli` installs one");
    }
}

/// Variables of the user's own environment that are withheld from members.
fn report_withheld() {
    let names = collo_launch::environment::withheld();
    if !names.is_empty() {
        let them = if names.len() == 1 { "is" } else { "are" };
        output::note(format!(
            "{} {them} set here but not passed on to members; `[variables]` of a workload.toml sets theirs",
            names.join(", ")
        ));
    }
}
