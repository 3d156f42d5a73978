//! What the members of a cell are started with: command line, folder, environment, cores.
//!
//! In: a cell and the slot of each member. Out: what to launch. A run starts exactly this, and `collo plan --commands` prints it.
//!
//! To add a variable of members: here, or in `measure/src/stage/orders.rs` if it depends on the mode.

use collo_device::{cpu, numa};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use collo_store::{AfterMeasured, MemberSpec};
use collo_text::Diagnostic;

use crate::interpreters::Interpreters;
use crate::observer_spec::{OBSERVER_FOLDER, ObserverSpec};
pub use crate::programs::Environment;
use crate::slot::Slot;
use crate::{hosting, programs};
use collo_launch::environment::scrubbed;
use collo_launch::{Adapter, HostLaunch, MemberLaunch};
use collo_plan::cell::{Cell, CellTask, CellTrace, Member};
use collo_plan::experiment::Experiment;
use collo_plan::goal::EpochGoal;
use collo_plan::project::Project;
use collo_plan::sharing::Seating;
use collo_plan::workload::Workload;

/// Which one of its run a member is.
#[derive(Debug, Clone, Copy)]
pub struct MemberPlace {
    pub index: usize,
    pub members: usize,
    /// Which of the members with the same settings, from 0.
    pub copy: usize,
    pub repetition: u32,
}

/// What the commands of all members have in common.
#[derive(Clone, Copy)]
pub struct MemberCommands<'a> {
    pub project: &'a Project,
    pub experiment: &'a Experiment,
    pub interpreters: &'a Interpreters,
}

impl MemberCommands<'_> {
    /// Who watches this cell in a run whose folder this is; `None` where the experiment does not say.
    pub fn observing(&self, cell: &Cell, folder: &Path) -> Option<ObserverSpec> {
        let observe = cell.observe()?;
        let pins = observe.tool().and_then(|tool| tool.packages.as_deref());
        let packages = pins.and_then(|pins| self.interpreters.packages(pins)).map(Path::to_path_buf);
        let python = self.interpreters.torch_python().map(Path::to_path_buf);
        Some(ObserverSpec { observe: observe.clone(), folder: folder.join(OBSERVER_FOLDER), packages, python })
    }

    /// The members of one repetition of a cell, whose logs go to this folder, and the process of them all if its seating asks for one.
    pub fn group(
        &self,
        cell: &Cell,
        seating: &Seating,
        repetition: u32,
        slots: &[Slot],
        folder: &Path,
    ) -> Result<(Vec<MemberLaunch>, Option<HostLaunch>), Diagnostic> {
        let copies = copies(cell);
        let launch = |(index, (member, slot)): (usize, (&Arc<Member>, &Slot))| {
            let place = MemberPlace { index, members: slots.len(), copy: copies[index], repetition };
            self.launch(member, place, slot, self.experiment.goal(), folder)
        };
        let mut members: Vec<MemberLaunch> = cell.members().zip(slots).enumerate().map(launch).collect::<Result<_, _>>()?;
        let measures_on = cell.after_measured() == AfterMeasured::KeepRunning;
        members.iter_mut().filter_map(|launch| launch.adapter.as_mut()).for_each(|adapter| adapter.measures_on = measures_on);
        if let Some(spec) = self.observing(cell, folder) {
            spec.put_on(&mut members);
        }
        let host = seating.hosting.map(|how| hosting::host(self.project, how, &members, folder)).transpose()?;
        if let Some(host) = &host {
            hosting::as_hosted(&mut members, host);
        }
        Ok((members, host))
    }

    /// An attempt at a task of a trace, numbered among all attempts, in its slot.
    pub fn launch_task(
        &self,
        trace: &CellTrace,
        attempt: usize,
        task: usize,
        repetition: u32,
        slot: &Slot,
        folder: &Path,
    ) -> Result<MemberLaunch, Diagnostic> {
        let place = MemberPlace { index: attempt, members: trace.tasks.len(), copy: task, repetition };
        let CellTask { member, epochs, .. } = &trace.tasks[task];
        self.launch(member, place, slot, EpochGoal { epochs: *epochs, measure_for_ns: 0 }, folder)
    }

    /// One member in its slot.
    pub fn launch(
        &self,
        member: &Member,
        place: MemberPlace,
        slot: &Slot,
        goal: EpochGoal,
        folder: &Path,
    ) -> Result<MemberLaunch, Diagnostic> {
        let workload = member.workload();
        let mut command = workload.command_for(&member.spec())?;
        self.interpreters.put_into(&mut command, workload);
        let mut env = process_environment(self.project, workload, &member.spec(), self.interpreters)?;
        env.extend(self.environment(place.index, place.members));
        env.insert("COLLO_COPY".into(), Some(place.copy.to_string()));
        env.insert("COLLO_REPETITION".into(), Some(place.repetition.to_string()));
        env.extend(slot.env.clone());
        let adapter = workload.epochs.as_ref().map(|a| Adapter {
            pattern: a.pattern.as_str().to_string(),
            preset: a.preset.map(|preset| preset.name.to_string()),
            items: a.items,
            goal,
            measures_on: false,
        });
        let all_cores = cpu::facts().cores;
        Ok(MemberLaunch {
            command,
            folder: workload.folder.clone(),
            env,
            log: folder.join(format!("member-{}.log", place.index)),
            cores: slot.cores.clone(),
            memory_nodes: numa::nodes_of(self.experiment.numa_memory, slot.cores.as_deref().unwrap_or(&all_cores)),
            adapter,
            client_of: slot.client_of.clone(),
        })
    }

    fn environment(&self, member: usize, members: usize) -> Environment {
        let mut env = BTreeMap::new();
        let threads = self.experiment.threads.to_string();
        for name in ["COLLO_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"] {
            env.insert(name.into(), Some(threads.clone()));
        }
        env.insert("COLLO_MEMBER".into(), Some(member.to_string()));
        env.insert("COLLO_MEMBERS".into(), Some(members.to_string()));
        env
    }
}

/// The command that prepares the data of a member, and its environment; `None` if its workload has none.
pub fn preparing(
    project: &Project,
    member: &Member,
    interpreters: &Interpreters,
) -> Result<Option<(Vec<String>, Environment)>, Diagnostic> {
    let workload = member.workload();
    let Some(mut words) = workload.prepare_for(&member.spec())? else { return Ok(None) };
    interpreters.put_into(&mut words, workload);
    let mut env = process_environment(project, workload, &member.spec(), interpreters)?;
    env.entry("CUDA_VISIBLE_DEVICES".into()).or_insert(Some(String::new()));
    Ok(Some((words, env)))
}

/// For each member, the number of identical ones (workload and settings) before it: the first is 0 wherever it is in the group,
/// as when it is alone.
fn copies(cell: &Cell) -> Vec<usize> {
    let specs: Vec<_> = cell.members().map(|member| member.spec()).collect();
    specs.iter().enumerate().map(|(at, spec)| specs[..at].iter().filter(|before| *before == spec).count()).collect()
}

/// The environment of every process of a workload, for members and preparation alike: collo's own without what describes collo's
/// process, with the Python of the workload activated.
pub fn process_environment(
    project: &Project,
    workload: &Workload,
    member: &MemberSpec,
    interpreters: &Interpreters,
) -> Result<Environment, Diagnostic> {
    let mut env = scrubbed();
    env.extend(workload.variables_for(member)?.into_iter().map(|(name, value)| (name, Some(value))));
    programs::activate(&mut env, workload, interpreters);
    env.extend([
        ("COLLO_DATA".into(), Some(project.data().display().to_string())),
        ("PYTHONPATH".into(), Some(interpreters.search_path(project, workload))),
        // What is not in the environment's pins does not belong to the measurement.
        ("PYTHONNOUSERSITE".into(), Some("1".into())),
        ("COLLO_SOCKET".into(), None),
    ]);
    Ok(env)
}
