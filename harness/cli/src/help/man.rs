//! `collo man`: a manual page for collo, and one for each verb.

use clap::CommandFactory;
use collo_text::{Diagnostic, shown};
use fs_err as fs;
use serde_json::json;

use crate::answer::{Answer, Answered};
use crate::args::{self, Arguments};
use crate::context::Context;

pub fn run(context: &Context<'_>, a: &args::Man) -> Answered {
    let folder = context.folder()?.join(&a.place);
    let failed = |e: std::io::Error| {
        let what = format!("the manual pages cannot be written to {}", shown(&folder));
        Diagnostic::new(what).of_machine().caused_by(&e).way_out_of(&e)
    };
    fs::create_dir_all(&folder).map_err(failed)?;
    clap_mangen::generate_to(Arguments::command(), &folder).map_err(failed)?;
    let mut answer = Answer::of(json!({"folder": folder}));
    answer.line(format!("manual pages written to {}", shown(&folder)));
    answer.note(format!("next: man -l {}", shown(&folder.join("collo.1"))));
    Ok(answer)
}
