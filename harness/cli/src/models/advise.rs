//! `collo advise`: a question of a scheduler in JSON, from a file or stdin, and the answer in JSON.

use std::io::Read;
use std::sync::Arc;

use collo_advise::{Question, Sources, advise};
use collo_plan::predictors;
use collo_plan::workload::Workloads;
use collo_store::DeviceRecord;
use collo_text::{Diagnostic, Source, quoted, shown};

use crate::answer::{Answer, Answered};
use crate::context::Context;
use crate::{args, measured, output};

/// A question has at most some thousand GPUs.
const LARGEST_BYTES: u64 = 16 << 20;

pub fn run(context: &Context<'_>, a: &args::Advise) -> Answered {
    let question = Question::read(&source(context, a)?)?;
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    let (predictors, broken) = predictors::readable(&project)?;
    broken.iter().for_each(output::warning);
    let measured = |device: &DeviceRecord| measured::on(&project, device);
    let sources = Sources { project: &project, workloads: &workloads, predictors: &predictors, measured: &measured };
    Ok(Answer::json(advise(&question, &sources)?))
}

fn source(context: &Context<'_>, a: &args::Advise) -> Result<Arc<Source>, Diagnostic> {
    let Some(path) = a.question.as_deref().filter(|path| path.as_os_str() != "-") else {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(LARGEST_BYTES).read_to_string(&mut text);
        read.map_err(|e| Diagnostic::new("the question on stdin cannot be read").caused_by(e))?;
        return Ok(Source::file("stdin", text));
    };
    let path = context.folder()?.join(path);
    let text = collo_text::read_small_text(&path, LARGEST_BYTES)
        .map_err(|e| Diagnostic::new(format!("{} cannot be read", quoted(&shown(&path)))).caused_by(e))?;
    Ok(Source::file(shown(&path), text))
}
