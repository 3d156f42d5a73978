//! The data of a campaign, before its first run: each workload may check its data, or write a stand-in, once.

use std::collections::BTreeSet;
use std::sync::Arc;

use collo_store::Ingredient;
use collo_text::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::commands::preparing;
use crate::ingredients;
use crate::interpreters::Interpreters;
use collo_launch::{Errand, Unanswered};
use collo_plan::cell::Member;
use collo_plan::project::Project;

/// The output of a workload's `prepare` command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The data set's name.
    pub dataset: String,
    pub synthetic: bool,
    /// True if a stand-in was written just now.
    #[serde(default)]
    pub written: bool,
    pub items: Option<u64>,
    #[serde(rename = "where")]
    pub place: Option<String>,
}

/// Run the `prepare` command of a member's workload, if it has one, with the member's settings.
pub fn prepare(project: &Project, member: &Member, interpreters: &Interpreters) -> Result<Option<Prepared>, Diagnostic> {
    let workload = member.workload();
    let Some((words, env)) = preparing(project, member, interpreters)? else { return Ok(None) };
    let Some((program, arguments)) = words.split_first() else { return Ok(None) };
    let mut errand = Errand::to(program, workload.prepare_timeout).args(arguments).folder(&workload.folder);
    for (name, value) in env {
        errand = errand.env(name, value);
    }
    let what = || Diagnostic::new(format!("the data of `{}` cannot be prepared", workload.name)).of_machine();
    let answer = errand.run().map_err(|why| match why {
        Unanswered::Stopped(stopped) => Diagnostic::new(format!("stopped while preparing the data of `{}`", workload.name))
            .caused_by(format!("{stopped}; nothing was measured, no process is left"))
            .hint("the same command resumes")
            .of(stopped.class()),
        Unanswered::TimedOut(_) => {
            let file = collo_text::shown(&workload.folder.join("workload.toml"));
            what().caused_by(format!("{why}")).hint(format!("`prepare_timeout = \"12h\"` in {file} allows longer"))
        }
        other => what().caused_by(other.to_string()),
    })?;
    if !answer.success() {
        return Err(with_words_of(&answer.err(), what()));
    }
    let text = answer.out();
    let line = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default();
    let prepared = serde_json::from_str(line)
        .map_err(|e| what().caused_by(format!("its `prepare` command does not end with a line of JSON: {e}")))?;
    Ok(Some(prepared))
}

/// The data of many members; each set is checked once.
pub fn prepare_all<'a>(
    project: &Project,
    members: impl Iterator<Item = &'a Arc<Member>>,
    interpreters: &Interpreters,
    show: &mut dyn FnMut(&Prepared),
) -> Result<Vec<Prepared>, Diagnostic> {
    let mut seen = BTreeSet::new();
    let mut all: Vec<Prepared> = Vec::new();
    for member in members {
        let words = member.workload().prepare_for(&member.spec())?;
        if !seen.insert((member.workload().folder.clone(), words)) {
            continue;
        }
        if let Some(prepared) = prepare(project, member, interpreters)? {
            // Several workloads may train on one set.
            if !all.iter().any(|before| before.dataset == prepared.dataset) {
                show(&prepared);
            }
            all.push(prepared);
        }
    }
    Ok(all)
}

impl Prepared {
    /// The part of it that numbers depend on: which data, real or not, and how much of it.
    pub fn ingredient(&self) -> (String, Ingredient) {
        let kind = if self.synthetic { "synthetic" } else { "real" };
        let items = self.items.map(|n| format!(", {n} items")).unwrap_or_default();
        let version = format!("{kind}{items}");
        (format!("data {}", self.dataset), ingredients::text(&version, Some(version.clone())))
    }
}

/// A workload prints `error: …` and `hint: …` itself; anything else is a traceback, whose last line is the most informative.
pub(crate) fn with_words_of(stderr: &str, mistake: Diagnostic) -> Diagnostic {
    let lines: Vec<&str> = stderr.lines().filter(|l| !l.trim().is_empty()).collect();
    let after = |word: &str| lines.iter().rev().find_map(|l| l.strip_prefix(word)).map(str::trim);
    let cause = after("error:").or(lines.last().copied()).unwrap_or("it failed without a message");
    let mistake = mistake.caused_by(cause);
    match after("hint:") {
        Some(hint) => mistake.hint(hint),
        None => mistake,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workloads_own_error_is_passed_on_with_its_hint() {
        let stderr = "error: data/cifar-10/data_batch_3 is cut off\nhint: fetch it again\n";
        let shown = with_words_of(stderr, Diagnostic::new("the data of `tiny` cannot be prepared")).to_string();
        assert!(shown.contains("caused by: data/cifar-10/data_batch_3 is cut off"), "{shown}");
        assert!(shown.ends_with("hint: fetch it again"), "{shown}");
        let trace = with_words_of("Traceback\n  File x\nValueError: no\n", Diagnostic::new("x")).to_string();
        assert!(trace.contains("caused by: ValueError: no"), "{trace}");
    }
}
