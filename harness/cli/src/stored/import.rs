//! `collo import`: experiments and results of other programs. It measures nothing, and overwrites nothing.

use std::path::{Path, PathBuf};

use collo_plan::experiment::Experiment;
use collo_plan::workload::Workloads;
use collo_quantity::number;
use collo_radt::schedule::Schedule;
use collo_radt::{Leftover, experiment, metrics, report, tracking};
use collo_text::{Diagnostic, Diagnostics, shown};
use fs_err as fs;
use serde_json::json;

use crate::answer::{Answer, Answered};
use crate::args::{self, ImportFrom};
use crate::context::Context;
use crate::output;

pub fn run(context: &Context<'_>, a: &args::Import) -> Answered {
    let ImportFrom::Radt { from, to, gpu, experiment } = &a.from;
    let from = context.folder()?.join(from);
    if from.is_dir() || tracking::is_database(&from) {
        return tracked(context, &from, to.as_deref(), gpu.as_deref(), experiment.as_deref());
    }
    match (gpu, experiment) {
        (Some(_), _) => Err(Diagnostic::new("`--gpu` names the GPU of tracked runs, and a schedule has none")
            .hint("leave it out; `collo plan NAME --gpu GPU` plans for one")
            .into()),
        (_, Some(_)) => Err(Diagnostic::new("`--experiment` names one of a store of runs, and a schedule has none")
            .hint("leave it out; `--to NAME` names the new experiment")
            .into()),
        (None, None) => schedule(context, &from, to.as_deref()),
    }
}

/// An experiment with its workloads.
fn schedule(context: &Context<'_>, csv: &Path, to: Option<&str>) -> Answered {
    let project = context.project()?;
    let schedule = Schedule::read(csv)?;
    if schedule.groups.is_empty() {
        let nothing = Diagnostic::new(format!("nothing of {} can be imported", shown(csv)));
        let why = if schedule.refused.is_empty() { "it has no row".into() } else { collo_radt::all_of(&schedule.refused) };
        return Err(nothing.caused_by(why).into());
    }
    let name = match to {
        Some(name) => name.to_string(),
        None => csv.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    if let Some(wrong) = collo_plan::experiment::wrong_name(&name) {
        return Err(wrong.hint("a name: `--to NAME`").into());
    }
    let made = experiment::files(&project, &schedule, csv, &name)?;
    for (path, content) in &made.files {
        new_file(path, content)?;
    }
    // What was just written is read as `collo plan` reads it.
    let workloads = Workloads::load(&project.workloads())?;
    Experiment::resolve(&project, &shown(&made.experiment), &workloads)?;
    let left = |all: &[Leftover]| all.iter().for_each(|l| output::warning(format!("not carried: {}", l.text())));
    left(&schedule.refused);
    left(&schedule.not_carried);
    made.notes.iter().for_each(|note| output::warning(note.text()));
    if let [first, second, ..] = &schedule.devices()[..] {
        output::note(format!(
            "the schedule has groups on GPU {first} and on GPU {second}: collo measures all on one, `--gpu` selects it"
        ));
    }
    let names: Vec<&str> = made.workloads.iter().map(|w| w.name.as_str()).collect();
    let groups = schedule.groups.len();
    let mut answer = Answer::of(json!({"experiment": made.experiment, "workloads": names, "groups": groups,
        "refused": schedule.refused, "not_carried": schedule.not_carried, "notes": made.notes}));
    let all = number::count(groups + schedule.refused.len(), "group");
    answer.line(format!("{}: {groups} of {all} of {}", shown(&made.experiment), shown(csv)));
    for workload in &made.workloads {
        let there = if workload.exists { ", already there" } else { "" };
        answer.line(format!("{}: runs {}{there}", shown(&project.workloads().join(&workload.name)), workload.file));
    }
    for workload in made.workloads.iter().filter(|w| !w.speaks) {
        let place = shown(&project.workloads().join(&workload.name).join("workload.toml"));
        let check = format!("`collo workload check {}`", workload.name);
        answer.hint(format!("before a run, describe in {place} how the script prints its epochs: {check}"));
    }
    answer.note(format!("next: collo plan {name}"));
    Ok(answer)
}

/// A report.
fn tracked(context: &Context<'_>, store: &Path, to: Option<&str>, gpu: Option<&str>, wanted: Option<&str>) -> Answered {
    let tracked = tracking::read(store, wanted, metrics::names())?;
    // Outside a project, labels are made of the runs alone.
    let workloads = context.project().ok().map(|project| Workloads::load(&project.workloads())).transpose()?;
    let (made, leftovers) = report::of(&tracked, workloads.as_ref(), gpu)?;
    let to = match to {
        Some(to) => PathBuf::from(to),
        None => PathBuf::from(format!("radt-{}.json", collo_radt::file_name(&tracked.name))),
    };
    let place = context.folder()?.join(&to);
    if place.extension().is_none_or(|e| e != "json") {
        return Err(Diagnostic::new(format!("`{}` does not end in .json", to.display())).hint("as in `--to radt.json`").into());
    }
    new_file(&place, &report::bytes(&made)?)?;
    leftovers.iter().for_each(|l| output::warning(format!("not imported: {}", l.text())));
    let absent = collo_radt::report::unread(&made);
    absent.iter().for_each(|l| output::warning(format!("absent: {}", l.text())));
    let mut answer = Answer::of(json!({"report": place, "cells": made.cells.len(), "groups": made.planned,
        "not_imported": leftovers, "absent": absent}));
    let cells = number::count(made.cells.len(), "cell");
    let groups = number::count(made.planned, "group");
    answer.line(format!("{}: {cells} of {groups}, {}", shown(&place), report::IMPORTED));
    if gpu.is_none() {
        answer.hint("radT does not name the GPU: `--gpu NAME`, so that power and energy can be compared with a campaign's");
    }
    answer.note(format!("next: collo compare {} CAMPAIGN --quantity power_w", shown(&place)));
    Ok(answer)
}

/// Write a file that does not exist yet.
fn new_file(path: &Path, content: &[u8]) -> Result<(), Diagnostics> {
    if path.symlink_metadata().is_ok() {
        return Err(Diagnostic::new(format!("{} exists already", shown(path))).hint("name another: `--to`").into());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(collo_store::place_file(path, content)?)
}
