//! A temporary experiment, with the display of what it needs first.

use collo_measure::trial::{Trial, Tried};
use collo_plan::project::Project;
use collo_text::Diagnostics;

use crate::context::Context;
use crate::progress;

/// Run it to completion.
pub fn run(context: &Context<'_>, trial: Trial<'_>, project: &Project) -> Result<Tried, Diagnostics> {
    let mut display = progress::display(context.arguments.quiet);
    let tried = trial.run(project, &mut |event| display.show(event));
    display.end();
    tried
}
