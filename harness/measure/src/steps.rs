//! Everything that a plan will execute, in order: the data, partitions, MPS daemons, members.
//!
//! In: a plan and what `run` would start it with. Out: steps. They are made by the code that a run starts them with; what is only
//! known then, such as the UUID of a MIG device, is a placeholder in `<>`.
//!
//! To add a step: a variant of [`Step`], its words in `cli/src/commands_text.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_text::Diagnostic;
use serde::Serialize;

use crate::stage::{Placing, foreseen};
use collo_gpus::partition::Partition;
use collo_launch::MemberLaunch;
use collo_plan::facts::{CardShare, Cores, DeviceFacts};
use collo_plan::observer::Place;
use collo_plan::plan::Plan;
use collo_prepare::commands::{Environment, MemberCommands, preparing};

/// The part of a run's path that is not known before.
const CAMPAIGN: &str = "<campaign>";

/// One step of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// A workload's own check of its data.
    Prepare { workload: String, start: ProcessStart },
    /// The GPU is partitioned.
    Partition { gpu: String, partition: String },
    /// The pause between two runs.
    Pause { seconds: f64 },
    /// The wait before a run until the GPU has cooled down.
    CoolDown,
    /// An MPS daemon for one run.
    StartDaemon { start: ProcessStart },
    /// A member of a run. All members of a run are started together.
    Member {
        cell: String,
        repetition: u32,
        block: u32,
        member: usize,
        /// Of a campaign on several.
        #[serde(skip_serializing_if = "Option::is_none")]
        gpu: Option<String>,
        start: ProcessStart,
    },
    /// The process that hosts all members of a run: a thread of it for each.
    Host {
        cell: String,
        repetition: u32,
        block: u32,
        members: usize,
        /// Of a campaign on several.
        #[serde(skip_serializing_if = "Option::is_none")]
        gpu: Option<String>,
        start: ProcessStart,
    },
    /// Who watches beside the members of a run, once they are ready; ended after the last measured epoch.
    StartObserver { start: ProcessStart },
    /// A task of a trace: it arrives, and is started as often and where its policy says.
    Task {
        cell: String,
        repetition: u32,
        block: u32,
        /// Counted from 0 in the order of arrival.
        task: usize,
        /// After the first moment of the trace.
        arrives_s: f64,
        epochs: u32,
        cards: u32,
        start: ProcessStart,
    },
    /// The daemons of a run end with it: `quit` on the control of each.
    StopDaemon { pipe: String },
    /// The GPU is as it was found.
    Restore { gpu: String, partition: Option<String> },
}

/// How a process is started, under a supervisor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessStart {
    pub command: Vec<String>,
    /// Its working folder.
    pub folder: PathBuf,
    /// On top of collo's own environment; `None` removes a variable.
    pub environment: Environment,
    /// Its logical processors; `None` for all that collo may use.
    pub cores: Option<Vec<u32>>,
    /// NUMA nodes that its memory is bound to; absent if the system decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_nodes: Option<Vec<u32>>,
    /// Its output; absent if collo reads it.
    pub log: Option<PathBuf>,
}

/// The steps of a plan; `runs` is the folder of the campaigns of its experiment.
pub fn steps(plan: &Plan, facts: &DeviceFacts, commands: &MemberCommands<'_>, runs: &Path) -> Result<Vec<Step>, Diagnostic> {
    let mut steps = preparations(plan, commands)?;
    let shares = facts.shares(&commands.experiment.cores);
    let whole = CardShare { facts: facts.clone(), cores: Cores::Shared };
    let several = shares.len() > 1;
    let label = |card: usize| shares[card].facts.gpu().map(|gpu| gpu.label()).unwrap_or_default();
    let found = |card: usize| shares[card].facts.gpu().and_then(|gpu| gpu.partition.as_ref());
    // By card.
    let mut now: Vec<Option<&Partition>> = (0..shares.len()).map(found).collect();
    let mut changed = vec![false; shares.len()];
    let mut seen = BTreeSet::new();
    let cooldown_s = commands.experiment.cooldown.as_secs_f64();
    for planned in &plan.order {
        let cell = &plan.cells[planned.cell];
        let card = planned.card.map_or(0, |card| card as usize);
        if !seen.insert(card) && cooldown_s > 0.0 {
            steps.push(Step::Pause { seconds: cooldown_s });
        }
        if commands.experiment.thermal_gate.is_some() {
            steps.push(Step::CoolDown);
        }
        if let Some(wanted) = cell.seating.partition.as_ref().filter(|_| !facts.as_found)
            && !now[card].is_some_and(|now| now.is_as(wanted))
        {
            steps.push(Step::Partition { gpu: label(card), partition: wanted.to_string() });
            (now[card], changed[card]) = (Some(wanted), true);
        }
        // Written aside, and renamed when it is complete.
        let run = runs.join(CAMPAIGN).join(format!(".partial-{}-{}", cell.record.slug, planned.repetition));
        let share = if cell.cell.trace().is_some() { &whole } else { &shares[card] };
        let stage = foreseen(share, &cell.seating, Placing::of(&cell.cell), &run);
        let pipes: Vec<String> =
            stage.daemons.iter().filter_map(|d| Some(d.asked_to_end.as_ref()?.display().to_string())).collect();
        steps.extend(stage.daemons.into_iter().map(|daemon| Step::StartDaemon {
            start: ProcessStart { log: Some(daemon.log), ..start(daemon.command, daemon.folder, daemon.env) },
        }));
        match (cell.cell.trace(), stage.slots.first()) {
            (Some(trace), Some(slot)) => {
                for (number, task) in trace.tasks.iter().enumerate() {
                    let launch = commands.launch_task(trace, number, number, planned.repetition, slot, &run)?;
                    steps.push(Step::Task {
                        cell: cell.record.cell.clone(),
                        repetition: planned.repetition,
                        block: planned.block,
                        task: number,
                        arrives_s: task.arrives_ns as f64 / 1e9,
                        epochs: task.epochs,
                        cards: task.cards,
                        // On which cores, on which nodes is decided when it is placed.
                        start: ProcessStart { cores: None, memory_nodes: None, ..of(launch) },
                    });
                }
            }
            _ => {
                let (launches, host) = commands.group(&cell.cell, &cell.seating, planned.repetition, &stage.slots, &run)?;
                steps.extend(match host {
                    Some(host) => vec![Step::Host {
                        cell: cell.record.cell.clone(),
                        repetition: planned.repetition,
                        block: planned.block,
                        members: host.members,
                        gpu: several.then(|| label(card)),
                        start: of(host.process),
                    }],
                    None => {
                        let member = |(member, launch)| Step::Member {
                            cell: cell.record.cell.clone(),
                            repetition: planned.repetition,
                            block: planned.block,
                            member,
                            gpu: several.then(|| label(card)),
                            start: of(launch),
                        };
                        launches.into_iter().enumerate().map(member).collect()
                    }
                });
                if let Some(spec) = commands.observing(&cell.cell, &run)
                    && let Some(tool) = spec.tool_at(Place::Beside)
                {
                    // The processes of the members are not known yet: `<pids>`.
                    let room = spec.room(&[], None);
                    let start = start(spec.command(tool, &room), spec.folder.clone(), tool.variables_in(&room));
                    steps.push(Step::StartObserver { start });
                }
            }
        }
        steps.extend(pipes.into_iter().map(|pipe| Step::StopDaemon { pipe }));
    }
    for card in (0..shares.len()).filter(|card| changed[*card]) {
        steps.push(Step::Restore { gpu: label(card), partition: found(card).map(Partition::to_string) });
    }
    Ok(steps)
}

/// On any cores, with an output that collo reads.
fn start(command: Vec<String>, folder: PathBuf, environment: Environment) -> ProcessStart {
    ProcessStart { command, folder, environment, cores: None, memory_nodes: None, log: None }
}

fn of(launch: MemberLaunch) -> ProcessStart {
    let MemberLaunch { cores, memory_nodes, log, .. } = launch;
    ProcessStart { cores, memory_nodes, log: Some(log), ..start(launch.command, launch.folder, launch.env) }
}

/// Each set of data is prepared once.
fn preparations(plan: &Plan, commands: &MemberCommands<'_>) -> Result<Vec<Step>, Diagnostic> {
    let mut seen = BTreeSet::new();
    let mut steps = Vec::new();
    for member in plan.members() {
        let workload: &Arc<_> = member.workload();
        let words = workload.prepare_for(&member.spec())?;
        if !seen.insert((workload.folder.clone(), words)) {
            continue;
        }
        if let Some((command, environment)) = preparing(commands.project, member, commands.interpreters)? {
            let start = start(command, workload.folder.clone(), environment);
            steps.push(Step::Prepare { workload: workload.name.clone(), start });
        }
    }
    Ok(steps)
}
