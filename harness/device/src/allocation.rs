//! GPU allocation: the GPUs that a batch system or a container gave to this job.
//!
//! In: `CUDA_VISIBLE_DEVICES`, `SLURM_STEP_GPUS` or `SLURM_JOB_GPUS`, `NVIDIA_VISIBLE_DEVICES`, and the driver's GPUs. Out: the
//! GPUs that are ours, satisfying all variables, or no restriction without any. The driver's own library ignores these variables.
//!
//! Their meaning: CUDA programming guide, "CUDA environment variables"; slurm.schedmd.com/gres.html and cgroup.conf(5); the user
//! guide of NVIDIA's container toolkit.
//!
//! To add the variable of another batch system: its name beside these, its reading in `Allocation`.

use std::collections::BTreeSet;

use collo_text::Diagnostic;

use super::select_gpu::GpuSelector;
use collo_plan::facts::{Driver, Gpu};

const CUDA: &str = "CUDA_VISIBLE_DEVICES";
const ORDER: &str = "CUDA_DEVICE_ORDER";
/// A step's share is a part of the job's.
const SLURM: [&str; 2] = ["SLURM_STEP_GPUS", "SLURM_JOB_GPUS"];
const CONTAINER: &str = "NVIDIA_VISIBLE_DEVICES";

/// A device as named in such a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Index(u32),
    /// A UUID of a GPU, or a prefix of one.
    Card(String),
    /// A UUID of a MIG device; before driver 470 `MIG-GPU-…/1/0`.
    Mig(String),
}

/// The content of one variable.
#[derive(Debug, Clone, PartialEq, Eq)]
enum VariableContent {
    All,
    These(Vec<Name>),
}

/// The GPUs that are ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The source, such as `SLURM_JOB_GPUS=4,5`, several joined.
    pub source: String,
    /// By their index here.
    pub cards: BTreeSet<u32>,
    /// MIG devices named; empty if whole GPUs are.
    pub instances: BTreeSet<String>,
}

fn name(text: &str) -> Option<Name> {
    let text = text.trim();
    let upper = text.to_ascii_uppercase();
    match () {
        _ if upper.starts_with("MIG-") => Some(Name::Mig(text.into())),
        _ if upper.starts_with("GPU-") => Some(Name::Card(text.into())),
        _ => text.parse().ok().map(Name::Index),
    }
}

/// As CUDA reads it: the first word that is not a device ends the list, such as `-1`. Slurm's `NoDevFiles` is such a word.
fn of_cuda(text: &str) -> VariableContent {
    VariableContent::These(text.split(',').map_while(name).collect())
}

/// Indices on the whole machine, possibly with ranges: `0,2-3`.
fn of_slurm(text: &str) -> VariableContent {
    let range = |part: &str| -> Vec<u32> {
        match part.split_once('-').map(|(a, b)| (a.trim().parse(), b.trim().parse())) {
            Some((Ok(first), Ok(last))) if last < first + 1024 => (first..=last).collect(),
            _ => part.trim().parse().into_iter().collect(),
        }
    };
    VariableContent::These(text.split(',').flat_map(range).map(Name::Index).collect())
}

/// As the container toolkit reads it: `void` or empty means no restriction, as if the container gets its GPUs some other way. Its
/// numbers are those of the host: inside, the allocated GPUs are renumbered, so only UUIDs identify them, and all visible ones
/// are ours.
fn of_container(text: &str) -> Option<VariableContent> {
    match text.trim() {
        "" | "void" => None,
        "all" => Some(VariableContent::All),
        "none" => Some(VariableContent::These(Vec::new())),
        list => {
            let names: Option<Vec<Name>> = list.split(',').map(name).collect();
            match names {
                Some(names) if names.iter().all(|n| !matches!(n, Name::Index(_))) => Some(VariableContent::These(names)),
                _ => Some(VariableContent::All),
            }
        }
    }
}

/// The GPUs that a name stands for; `numbered` are the GPUs in the order of its numbering.
fn cards_of<'a>(name: &Name, numbered: &[Option<&'a Gpu>]) -> Option<&'a Gpu> {
    let mut all = numbered.iter().copied().flatten();
    let starts = |uuid: &str, with: &str| uuid.to_lowercase().starts_with(&with.to_lowercase());
    match name {
        Name::Index(index) => numbered.get(*index as usize).copied().flatten(),
        Name::Card(uuid) => all.find(|g| g.at.as_ref().is_some_and(|at| starts(&at.uuid, uuid))),
        Name::Mig(uuid) => {
            let old = uuid.get(4..).and_then(|rest| rest.split('/').next()).filter(|rest| rest.starts_with("GPU-"));
            all.find(|gpu| match old {
                Some(card) => gpu.at.as_ref().is_some_and(|at| starts(&at.uuid, card)),
                None => gpu.mig_devices.iter().any(|own| starts(own, uuid)),
            })
        }
    }
}

impl Allocation {
    /// The allocation of this process; `None` if there is no restriction.
    pub fn of_environment(driver: &Driver) -> Result<Option<Allocation>, Diagnostic> {
        let value = |name: &str| std::env::var(name).ok();
        Allocation::of(&value, driver)
    }

    /// The same for any variables.
    fn of(value: &dyn Fn(&str) -> Option<String>, driver: &Driver) -> Result<Option<Allocation>, Diagnostic> {
        // A card that does not answer keeps its number: with the others moved up, a number would stand for somebody else's card.
        let mut by_bus: Vec<Option<&Gpu>> = vec![None; driver.gpus.len() + driver.silent.len()];
        for gpu in &driver.gpus {
            if let Some(place) = gpu.at.as_ref().and_then(|at| by_bus.get_mut(at.index as usize)) {
                *place = Some(gpu);
            }
        }
        let mut parts: Vec<Allocation> = Vec::new();
        let slurm = SLURM.iter().find_map(|name| Some((*name, value(name).filter(|v| !v.trim().is_empty())?)));
        let slurm = slurm.map(|(name, text)| slurms(name, &text, &by_bus));
        if let Some(text) = value(CUDA) {
            let by_bus_id = value(ORDER).as_deref() == Some("PCI_BUS_ID");
            let mut numbered = by_bus.clone();
            if !by_bus_id {
                // CUDA counts the fastest first: among equal cards that is the order of the bus, a card for a display comes behind them.
                numbered.sort_by_key(|gpu| gpu.is_some_and(|gpu| !gpu.computes()));
            }
            let said = of_cuda(&text);
            let own = Allocation::by(format!("{CUDA}={text}"), &said, &numbered);
            let only_numbers =
                matches!(&said, VariableContent::These(names) if names.iter().all(|n| matches!(n, Name::Index(_))));
            // Where Slurm confines a job to its devices, CUDA's numbers begin anew inside it: then Slurm's are the ones of this machine.
            let begins_anew =
                slurm.as_ref().is_some_and(|s| only_numbers && !own.cards.is_empty() && own.cards.is_disjoint(&s.cards));
            parts.extend(Some(own).filter(|_| !begins_anew));
        }
        parts.extend(slurm);
        if let Some((text, said)) = value(CONTAINER).and_then(|text| of_container(&text).map(|said| (text, said))) {
            parts.extend((said != VariableContent::All).then(|| Allocation::by(format!("{CONTAINER}={text}"), &said, &by_bus)));
        }
        let Some(all) = parts.into_iter().reduce(Allocation::and) else { return Ok(None) };
        match all.cards.is_empty() {
            true => Err(Diagnostic::new(format!("no GPU of this machine is allocated to this process: `{}`", all.source))
                .hint("request one from the batch system, as in `sbatch --gres=gpu:1`; `unset` the variable if it is stale")
                .of_machine()),
            false => Ok(Some(all)),
        }
    }

    fn by(source: String, said: &VariableContent, numbered: &[Option<&Gpu>]) -> Allocation {
        let mut all = Allocation { source, cards: BTreeSet::new(), instances: BTreeSet::new() };
        let VariableContent::These(names) = said else { return all };
        for name in names {
            // A name of nothing ends the list, as for CUDA.
            let Some(at) = cards_of(name, numbered).and_then(|gpu| gpu.at.as_ref()) else { break };
            all.cards.insert(at.index);
            if let Name::Mig(uuid) = name {
                all.instances.insert(uuid.clone());
            }
        }
        all
    }

    /// The intersection of both.
    fn and(self, other: Allocation) -> Allocation {
        let instances = match (self.instances.is_empty(), other.instances.is_empty()) {
            (false, false) => self.instances.intersection(&other.instances).cloned().collect(),
            (true, _) => other.instances,
            (_, true) => self.instances,
        };
        Allocation {
            source: format!("{}, {}", self.source, other.source),
            cards: self.cards.intersection(&other.cards).copied().collect(),
            instances,
        }
    }

    fn has(&self, gpu: &Gpu) -> bool {
        gpu.at.as_ref().is_some_and(|at| self.cards.contains(&at.index))
    }

    /// Whether MIG devices of this GPU were allocated, and not the GPU: then its partition stays as it is.
    pub fn is_of_instances(&self, gpu: &Gpu) -> bool {
        self.has(gpu) && !self.instances.is_empty()
    }

    /// The selected GPUs, among those that are ours.
    pub fn choose(&self, choice: &GpuSelector, driver: &Driver) -> Result<Vec<Gpu>, Diagnostic> {
        let chosen = match choice {
            GpuSelector::Auto | GpuSelector::Several(_) => {
                let ours = driver.gpus.iter().filter(|gpu| self.has(gpu)).cloned().collect();
                choice.of(&Driver { gpus: ours, silent: Vec::new(), ..driver.clone() })?
            }
            GpuSelector::Named(_) => choice.of(driver)?,
        };
        if let Some(other) = chosen.iter().find(|gpu| !self.has(gpu)) {
            let ours: Vec<String> = self.cards.iter().map(u32::to_string).collect();
            let what = format!("{} is not allocated to this process: `{}`", other.label(), self.source);
            return Err(Diagnostic::new(what)
                .hint(format!("leave out `--gpu`, or name one of {}", ours.join(", ")))
                .of_machine());
        }
        for gpu in chosen.iter().filter(|gpu| self.is_of_instances(gpu)) {
            let named = |uuid: &String| self.instances.iter().any(|i| uuid.to_lowercase().starts_with(&i.to_lowercase()));
            if !gpu.mig_devices.iter().all(named) {
                let (own, all) = (self.instances.len(), gpu.mig_devices.len());
                let what =
                    format!("{own} of the {all} MIG devices of {} are allocated to this process: `{}`", gpu.label(), self.source);
                return Err(Diagnostic::new(what)
                    .hint("a campaign uses all instances of a GPU; request the whole GPU, or all its instances")
                    .of_machine());
            }
        }
        Ok(chosen)
    }
}

/// Slurm counts the GPUs of the whole machine. If it confines the job to its devices the driver shows those alone, renumbered: if
/// no more are visible than allocated, they are the ones.
fn slurms(variable: &str, text: &str, by_bus: &[Option<&Gpu>]) -> Allocation {
    let (source, said) = (format!("{variable}={text}"), of_slurm(text));
    let VariableContent::These(names) = &said else { return Allocation::by(source, &said, by_bus) };
    if by_bus.len() > names.len() {
        return Allocation::by(source, &said, by_bus);
    }
    let cards = by_bus.iter().flatten().filter_map(|gpu| Some(gpu.at.as_ref()?.index)).collect();
    Allocation { source, cards, instances: BTreeSet::new() }
}

#[cfg(test)]
#[path = "allocation_tests.rs"]
mod tests;
