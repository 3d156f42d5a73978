//! `collo workload`: lists the workloads, shows one in full, and checks whether it speaks the protocol.

use std::path::Path;
use std::sync::Arc;

use collo_figures::document::Table;
use collo_launch::advice_for_failure;
use collo_measure::workload_check::{self, Finding, Shown};
use collo_plan::experiment::DeviceRequest;
use collo_plan::project::Project;
use collo_plan::workload::{RECIPE, Requirement, Workload, WorkloadPython, Workloads, plain, with_epochs};
use collo_store::{EpochRecord, RunRecord};
use collo_text::fields::LARGEST;
use collo_text::quoting::line;
use collo_text::{Diagnostic, Diagnostics, ExitClass, Remark, shown, units};
use serde_json::{Value as Json, json};

use crate::answer::{Answer, Answered};
use crate::args::{self, WorkloadVerb};
use crate::context::Context;
use crate::{exit, output};
use collo_measure::trial::Trial;

pub fn run(context: &Context<'_>, a: &args::Workload) -> Answered {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    match &a.what {
        WorkloadVerb::List => Ok(list(&workloads)),
        WorkloadVerb::Show { name } => show(&workloads, name),
        WorkloadVerb::Check(a) => Check { context, project: &project, a }.run(&workloads),
    }
}

/// All of them; presets name their base.
pub fn list(workloads: &Workloads) -> Answer {
    let mut table = Table::new(&["workload", "preset of", "what it trains"], 1).with_prose_last();
    for w in workloads.iter() {
        table.values([Some(w.name.clone()), w.preset_of.clone(), w.description.clone()]);
    }
    let list: Vec<Json> = workloads.iter().map(|w| value(w)).collect();
    let mut answer = Answer::list("workloads", &list, &table, None);
    answer.failed(workloads.broken().values());
    answer
}

fn value(w: &Workload) -> Json {
    let environment = match &w.environment {
        WorkloadPython::Torch => "torch".to_string(),
        WorkloadPython::System => "system".to_string(),
        WorkloadPython::Own(path) => path.display().to_string(),
    };
    let requires = w.requires.map(Requirement::as_str);
    let alone = &w.forecast.cpu;
    let forecast =
        json!({"set_up_s": alone.set_up_s, "epoch_s": alone.epoch_s, "items": alone.items, "memory_bytes": alone.memory_bytes});
    json!({"workload": w.name, "preset_of": w.preset_of, "description": w.description, "folder": w.folder, "command": w.command,
        "environment": environment, "packages": w.packages, "requires": requires, "prepare": w.prepare, "outputs": w.outputs, "settings": w.settings,
        "recipes": w.recipes, "variables": w.variables, "protocol": w.epochs.is_none(), "forecast_cpu": forecast})
}

fn show(workloads: &Workloads, name: &str) -> Answered {
    let w = workloads.find(name)?;
    let base = w.preset_of.as_ref().and_then(|base| workloads.get(base));
    let mut answer = Answer::of(value(w));
    answer.lines(in_full(w, base.map(Arc::as_ref)));
    answer.note(format!("next: collo workload check {name}"));
    Ok(answer)
}

/// A workload in lines; a preset shows its differences from its base.
fn in_full(w: &Workload, base: Option<&Workload>) -> String {
    let of = w.preset_of.as_ref().map(|base| format!(", a preset of {base}")).unwrap_or_default();
    let first = format!("{}{of}: {}", w.name, w.description.as_deref().unwrap_or("no description"));
    let mut lines = vec![line(&first).into_owned()];
    let mut add = |what: &str, said: String| lines.push(line(&format!("  {what:<12} {said}")).into_owned());
    add("folder", shown(&w.folder));
    add("command", w.command.join(" "));
    add(
        "python",
        match &w.environment {
            WorkloadPython::Torch => "provided by collo, with torch".to_string(),
            WorkloadPython::System => "the system's".to_string(),
            WorkloadPython::Own(path) => shown(path),
        } + &w.packages.as_ref().map(|pins| format!(", and what {} pins", shown(pins))).unwrap_or_default(),
    );
    if w.requires.is_some() {
        add("needs", "an NVIDIA GPU with CUDA".to_string());
    }
    if let Some(prepare) = &w.prepare {
        add("data", prepare.join(" "));
    }
    if !w.outputs.is_empty() {
        add("writes", w.outputs.join(", "));
    }
    for (name, value) in &w.variables {
        add("variable", format!("{name}={value}"));
    }
    add(
        "epochs",
        match &w.epochs {
            None => "reported by the script itself".to_string(),
            Some(adapter) => format!("read from its output by {}", adapter.pattern.as_str()),
        },
    );
    let f = &w.forecast.cpu;
    let mut about = Vec::new();
    about.extend(f.set_up_s.map(|s| format!("{s} s to get ready")));
    about.extend(f.epoch_s.map(|s| format!("{s} s per epoch")));
    about.extend(f.memory_bytes.map(units::gib));
    if !about.is_empty() {
        add("forecast", format!("alone on one core about {}", about.join(", ")));
    }
    let width = w.settings.keys().map(String::len).max().unwrap_or(0);
    for (index, (name, value)) in w.settings.iter().enumerate() {
        let title = if index == 0 { "settings" } else { "" };
        let before = base.and_then(|b| b.settings.get(name)).filter(|before| *before != value);
        let before = before.map(|b| format!("   ({} in {})", plain(b), base.map_or("", |b| &b.name))).unwrap_or_default();
        add(title, format!("{name:<width$}  {}{before}", plain(value)));
    }
    for (recipe, under) in w.recipes.iter().filter(|(recipe, _)| w.settings.get(RECIPE) != Some(&Json::from(recipe.as_str()))) {
        let others = under.iter().filter(|(name, value)| *name != RECIPE && w.settings.get(*name) != Some(*value));
        let others: Vec<String> = others.map(|(name, value)| format!("{name}={}", plain(value))).collect();
        add("recipe", format!("{recipe}: {}", others.join(" ")));
    }
    lines.join("\n")
}

/// A check of one workload.
struct Check<'a> {
    context: &'a Context<'a>,
    project: &'a Project,
    a: &'a args::WorkloadCheck,
}

impl Check<'_> {
    fn run(&self, workloads: &Workloads) -> Answered {
        let name = &self.a.name;
        let workload = workloads.find(name)?;
        if let Some(reason) = workload_check::lacking(workload) {
            return Err(Diagnostic::new(reason).of_machine().into());
        }
        let given = self.a.settings.iter().map(|text| setting(workload, text)).collect::<Result<Vec<_>, _>>()?;
        output::note(format!("trying {name} on the CPU: two tiny epochs, nothing is kept"));
        let (run, epochs) = self.measure(workloads, workload_check::experiment(workload, &given), false)?;
        let proposal = self.proposal(workloads, workload, &given, &run, &epochs)?;
        let file = workload.folder.join("workload.toml");
        match &proposal {
            Some(line) if self.a.write => {
                write_epochs(&file, line)?;
                output::note(format!("`{line}` is in `[epochs]` of {} now; trying {name} again", shown(&file)));
                let workloads = Workloads::load(&self.project.workloads())?;
                let workload = workloads.find(name)?;
                let (run, epochs) = self.measure(&workloads, workload_check::experiment(workload, &given), false)?;
                Ok(answer(workload, &run, &epochs, proposal.as_deref()))
            }
            Some(line) => {
                let mut answer = answer(workload, &run, &epochs, proposal.as_deref());
                let command = format!("collo workload check {name} --write");
                answer.hint(format!("`{command}` puts `{line}` into `[epochs]` of {}, and tries it again", shown(&file)));
                Ok(answer)
            }
            None => {
                let mut answer = answer(workload, &run, &epochs, None);
                if self.a.write {
                    answer.note(format!("nothing was written to {}", shown(&file)));
                }
                Ok(answer)
            }
        }
    }

    /// A line for `[epochs]`, if its output shows progress that is not read yet.
    fn proposal(
        &self,
        workloads: &Workloads,
        workload: &Workload,
        given: &[(String, Json)],
        run: &RunRecord,
        epochs: &[EpochRecord],
    ) -> Result<Option<String>, Diagnostics> {
        let of = |run: &RunRecord| run.members.first().and_then(|member| member.proposed_epochs.clone());
        if !workload_check::only_prints(workload, run, epochs) {
            return Ok(of(run));
        }
        output::note(format!("{} does not speak the protocol: looking for progress in its output", workload.name));
        let searched = workload_check::searched(workload);
        let text = workload_check::search(&searched, given);
        Ok(of(&self.measure(&workloads.with(searched), text, true)?.0))
    }

    /// Run a trial.
    fn measure(&self, workloads: &Workloads, text: String, searches: bool) -> Result<(RunRecord, Vec<EpochRecord>), Diagnostics> {
        // One run will do: a baseline would be run twice.
        let python = self.a.python.as_deref();
        let trial = Trial { workloads, text, asked: DeviceRequest::default(), python, at_most: 1, searches };
        let tried = crate::trial::run(self.context, trial, self.project)?;
        if let Some(refused) = tried.refusals.first() {
            let what = Diagnostic::new(format!("`{}` cannot be tried", self.a.name)).of_machine().caused_by(&refused.reason);
            return Err(refused.hint.iter().fold(what, |what, hint| what.hint(hint)).into());
        }
        let run = tried.runs.first().ok_or_else(|| Diagnostic::new("the trial ended before it ran").of(ExitClass::Incomplete))?;
        Ok((run.record.clone(), collo_store::read_epochs(&run.path.join("epochs.parquet"))?))
    }
}

/// What a trial found, and the line for `[epochs]` that would read its output or does since.
fn answer(workload: &Workload, run: &RunRecord, epochs: &[EpochRecord], proposal: Option<&str>) -> Answer {
    let name = &workload.name;
    let findings = workload_check::findings(workload, run, epochs);
    let passes = workload_check::passes(&findings);
    let mut answer = Answer::of(json!({"workload": name, "passes": passes, "findings": findings, "proposed_epochs": proposal}));
    answer.lines(table(&findings));
    answer.lines(match passes {
        true if workload.epochs.is_some() => format!("`{name}` can be measured by its output lines"),
        true => format!("`{name}` speaks the protocol"),
        false => format!("`{name}` cannot be measured as it is"),
    });
    let last_lines = || run.members.iter().flat_map(|m| &m.log_tail);
    answer.after(last_lines().map(|line| Remark::Note(format!("  │ {line}"))));
    let advice = advice_for_failure(last_lines().map(String::as_str)).filter(|_| !passes);
    answer.after(advice.map(|advice| Remark::Note(format!("hint: {advice}"))));
    answer.code = if passes { exit::DONE } else { exit::FAILED };
    answer
}

/// Put a line into `[epochs]` of a `workload.toml`.
fn write_epochs(file: &Path, line: &str) -> Result<(), Diagnostics> {
    let cannot = || Diagnostic::new(format!("`{line}` cannot be put into {}", shown(file)));
    let unwritten = |e: String| cannot().caused_by(e).hint("write it there by hand");
    let text = collo_text::read_small_text(file, LARGEST).map_err(|e| unwritten(e.to_string()))?;
    let edited = with_epochs(&text, line)
        .ok_or_else(|| cannot().hint("its `[epochs]` has neither a `pattern` nor a `preset`: write it there by hand"))?;
    let file = fs_err::canonicalize(file)?;
    collo_store::replace_file(&file, edited.as_bytes()).map_err(|e| unwritten(e.to_string()))?;
    Ok(())
}

/// Split `learning_rate=0.1` into the name and a value of the type that the workload expects.
fn setting(workload: &Workload, text: &str) -> Result<(String, Json), Diagnostics> {
    let usage = |what: String| Diagnostic::new(what);
    let (name, value) =
        text.split_once('=').ok_or_else(|| usage(format!("invalid setting `{text}`")).hint("as in `--set batch_size=8`"))?;
    let default = workload.settings.get(name).ok_or_else(|| Diagnostics::from(workload.unknown_setting(name)))?;
    let value =
        if default.is_string() { Json::from(value) } else { serde_json::from_str(value).unwrap_or_else(|_| value.into()) };
    match workload.wrong_value(name, &value) {
        Some(wrong) => Err(wrong.into()),
        None => Ok((name.to_string(), value)),
    }
}

fn table(findings: &[Finding]) -> String {
    let mark = |verdict| match verdict {
        Shown::Yes => "✓",
        Shown::No => "✗",
        Shown::Absent => "–",
    };
    let shown = |f: &Finding| line(&format!("{} {:<8} {}", mark(f.verdict), f.what, f.said)).into_owned();
    findings.iter().map(shown).collect::<Vec<_>>().join("\n")
}
