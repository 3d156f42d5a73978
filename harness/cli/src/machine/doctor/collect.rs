//! `collo doctor --collect`: the answers of a GPU and its driver in one file. What it will contain is printed first.

use std::path::PathBuf;

use collo_doctor::collect::{CollectPlan, MASKED, SelectedGpu, collect, listed};
use collo_text::{Diagnostic, Diagnostics, ExitClass, shown};

use crate::answer::{Answer, Answered};
use crate::context::Context;
use crate::context::gpus::driver;
use crate::{args, exit, output};

pub fn run(context: &Context<'_>, a: &args::Doctor) -> Answered {
    let driver = driver(context, "doctor --collect")?;
    let card = SelectedGpu::of(&driver, a.gpu.as_deref(), a.mig)?;
    let to = to(context, a)?;
    if to.exists() {
        return Err(Diagnostic::new(format!("{} already exists", shown(&to))).hint("`--to FILE` selects another").into());
    }
    output::note(format!("{} will contain, for {}:", shown(&to), card.label()));
    listed(a.mig).iter().for_each(output::note);
    output::note(MASKED);
    let plan = CollectPlan { project: context.project(), python: a.python.as_deref(), seconds: a.seconds, mig: a.mig };
    let mut collected = collect(&driver, &card, plan, &|remark| output::remark(&remark))?;
    let (steps, troubles) = collected.bundle.troubles();
    troubles.iter().for_each(|line| output::note(format!("  – {line}")));
    collected.bundle.pack(&to)?;
    let mut answer = Answer::from(if collected.interrupted() { exit::INTERRUPTED } else { exit::DONE });
    let unexpected = troubles.len();
    answer.lines(format!("{}: {steps} steps, {unexpected} of them without a reply or with an unexpected one", shown(&to)));
    if !collected.whole {
        let wrong = Diagnostic::new(format!("{} is not as it was found", card.label())).of(ExitClass::Failed);
        answer.fails(wrong.hint("`collo restore`").into());
    }
    Ok(answer)
}

fn to(context: &Context<'_>, a: &args::Doctor) -> Result<PathBuf, Diagnostics> {
    match &a.to {
        Some(path) => Ok(context.folder()?.join(path)),
        None => Ok(context.folder()?.join(format!("collo-card-{}.tgz", collo_store::utc_now().replace(':', "")))),
    }
}
