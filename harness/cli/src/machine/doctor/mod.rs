//! `collo doctor`: what this machine can measure, what is missing, and how to fix it. Reads only, and leaves nothing behind.

mod collect;

use collo_doctor::check::{Check, lines};
use collo_doctor::deep::{self, DeepLoad};
use collo_doctor::examine::{Place, examine};
use collo_doctor::matrix;
use collo_text::{Diagnostic, Diagnostics};
use serde_json::json;

use crate::answer::{Answer, Answered};
use crate::args::{self, Need};
use crate::context::Context;
use crate::context::gpus::driver;
use crate::{exit, output, trial};

pub fn run(context: &Context<'_>, a: &args::Doctor) -> Answered {
    if a.collect {
        return collect::run(context, a);
    }
    let place = Place { project: context.project().ok(), runs: context.runs().ok(), python: a.python.clone() };
    let deep = || if a.deep { deep(context, a) } else { Ok(Vec::new()) };
    let found = examine(&place, deep, &|remark| output::remark(&remark))?;
    let mut answer = Answer::of(
        json!({"checks": found.checks, "device": found.facts.record(), "matrix": found.rows, "can_measure": found.can}),
    );
    lines(&found.checks).into_iter().for_each(|line| answer.lines(line));
    if !found.rows.is_empty() {
        answer.table(&matrix::table(&found.rows));
    }
    answer.lines(format!("can measure: {}", found.can));
    let missing = missing(&a.require, &found.checks);
    answer.code = if found.believed { exit::DONE } else { exit::FAILED };
    if !missing.is_empty() {
        let wrong = Diagnostic::new(format!("missing requirements: {}", missing.join(", "))).of_machine();
        answer.fails(wrong.hint("see the hint of each").into());
    }
    Ok(answer)
}

/// Checks under load.
fn deep(context: &Context<'_>, a: &args::Doctor) -> Result<Vec<Check>, Diagnostics> {
    let driver = driver(context, "doctor --deep")?;
    let mut load = DeepLoad {
        gpu: a.gpu.as_deref(),
        python: a.python.as_deref(),
        project: &|| context.project(),
        run: &mut |trial, project| trial::run(context, trial, project),
    };
    deep::checks(&driver, &mut load)
}

/// Missing requirements, as they were requested.
fn missing(required: &[Need], checks: &[Check]) -> Vec<&'static str> {
    let good = |subject: &str| checks.iter().any(|c| c.subject == subject && c.is_good());
    let has_driver = good("driver");
    let there = |need: &Need| match need {
        Need::Gpu => has_driver && good("gpus"),
        Need::Mps => good("mps"),
        Need::Mig => good("mig"),
        Need::Smact => good("smact"),
        // Of the GPU where there is one, else of the processor.
        Need::Energy => {
            if has_driver {
                good("persistence")
            } else {
                good("energy")
            }
        }
    };
    let word = |need: &Need| match need {
        Need::Gpu => "gpu",
        Need::Mps => "mps",
        Need::Mig => "mig",
        Need::Smact => "smact",
        Need::Energy => "energy",
    };
    required.iter().filter(|need| !there(need)).map(word).collect()
}

#[cfg(test)]
mod tests {
    use collo_doctor::check::Mark;

    use super::*;

    #[test]
    fn what_is_required_is_held_against_the_checks() {
        let good = |subject| Check::new(Mark::Good, subject, "");
        let all = [Need::Gpu, Need::Mps, Need::Mig, Need::Smact, Need::Energy];
        let checks = [good("driver"), good("gpus"), good("mps"), Check::new(Mark::Fixable, "mig", ""), good("energy")];
        // With a GPU, the processor's energy is not the one that is meant.
        assert_eq!(missing(&all, &checks), ["mig", "smact", "energy"]);
        assert_eq!(missing(&[Need::Energy, Need::Gpu], &[good("energy")]), ["gpu"]);
    }
}
