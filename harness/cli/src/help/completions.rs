//! `collo completions`: for bash, zsh, fish, elvish and PowerShell. The script asks collo itself, so that experiments, campaigns and
//! cells complete too (`complete.rs`).

use clap_complete::env::Shells;
use collo_text::Diagnostic;

use crate::answer::{Answer, Answered};
use crate::args;

/// The variable by which the shell asks. Not clap's own, `COMPLETE`, which may mean something else to somebody.
pub const ASKS: &str = "COLLO_COMPLETE";

pub fn run(a: &args::Completions) -> Answered {
    let shells = Shells::builtins();
    let shell = a.shell.to_string();
    let Some(completer) = shells.completer(&shell) else {
        return Err(Diagnostic::new(format!("no completions for `{shell}`")).into());
    };
    let mut script = Vec::new();
    completer.write_registration(ASKS, "collo", "collo", "collo", &mut script)?;
    let mut answer = Answer::default();
    answer.bytes(script);
    Ok(answer)
}
