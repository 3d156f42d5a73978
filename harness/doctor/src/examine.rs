//! All checks, in their order. In: the folder's project and stored runs. Out: the checks, and what can be measured here.

use std::path::PathBuf;

use collo_device::has_gpu;
use collo_device::nvml::{self, NoDriver};
use collo_gpus::mig::Cards;
use collo_plan::facts::{DeviceFacts, Driver};
use collo_plan::project::Project;
use collo_store::Runs;
use collo_text::{Diagnostics, Remark};

use crate::check::{Check, Mark};
use crate::matrix::Row;
use crate::{daemon, gpu, machine, matrix, smact, timeout, verdict};

/// Where the machine is examined from.
#[derive(Debug, Default)]
pub struct Place {
    /// That of the folder, if it is in one.
    pub project: Option<Project>,
    /// `None` if the folder cannot be read.
    pub runs: Option<Runs>,
    /// The user's own Python, if one is named.
    pub python: Option<PathBuf>,
}

impl Place {
    fn cards(&self) -> Cards {
        self.project.as_ref().map(Project::cards).unwrap_or_default()
    }
}

/// What was found.
#[derive(Debug)]
pub struct Examination {
    pub checks: Vec<Check>,
    /// Of the CPU.
    pub facts: DeviceFacts,
    /// The sources of numbers of GPUs.
    pub rows: Vec<Row>,
    /// What can be measured here.
    pub can: String,
    /// Whether numbers of this machine can be trusted, as far as `deep` has found out.
    pub believed: bool,
}

/// Examine this machine. `deep` are further checks, under load; a long wait is remarked upon.
pub fn examine(
    place: &Place,
    deep: impl FnOnce() -> Result<Vec<Check>, Diagnostics>,
    remark: &dyn Fn(Remark),
) -> Result<Examination, Diagnostics> {
    let facts = collo_device::cpu::facts();
    let (mut checks, can, rows) = match ask(place, remark) {
        Ok(driver) => on_gpus(&place.cards(), &driver),
        Err(reason) => {
            let can = "workloads on the CPU, `solo` and `naive`. Cannot: anything on a GPU".to_string();
            (vec![none(&reason, place.project.is_some())], can, Vec::new())
        }
    };
    let simulated = checks.iter().position(|c| c.subject == "simulated").map(|at| checks.remove(at));
    let mut all: Vec<Check> = simulated.into_iter().collect();
    let python = machine::python(place.project.as_ref(), place.python.as_deref());
    all.extend([machine::cpu(&facts), machine::load(&facts), machine::memory(), python]);
    all.extend(checks);
    let deep = deep()?;
    let believed = deep.iter().all(|check| check.mark != Mark::Fixable);
    all.extend(deep);
    let store = machine::store(place.runs.as_ref());
    all.extend([machine::energy(), machine::pressure(), machine::shared_memory(), machine::build(), store]);
    Ok(Examination { checks: all, facts, rows, can, believed })
}

/// The driver, if it responds in time.
fn ask(place: &Place, remark: &dyn Fn(Remark)) -> Result<Driver, NoDriver> {
    let cards = place.cards();
    let slow = || Err(NoDriver::Silent { text: format!("no reply within {} s", timeout::TIMEOUT.as_secs()), hint: None });
    const WAITS: &str = "waiting for the NVIDIA driver: without persistence mode it starts each GPU anew, which takes seconds";
    let waiting = || remark(Remark::Note(WAITS.into()));
    let question = move || {
        // Kept open while this process looks, so that the cards start once.
        let open = nvml::open()?;
        collo_device::gpu::ask(&cards).inspect(|_| std::mem::forget(open))
    };
    timeout::within(waiting, question).unwrap_or_else(slow)
}

/// No GPU, or one whose driver does not respond.
fn none(reason: &NoDriver, is_in_project: bool) -> Check {
    match reason {
        NoDriver::Unsafe(_) => Check::new(Mark::Fixable, "driver", reason.to_string()).hint(reason.hint().unwrap_or_default()),
        NoDriver::Silent { .. } if has_gpu() => {
            let general = "`nvidia-smi` shows the same; the kernel log (`sudo dmesg`, lines with NVRM) shows more";
            Check::new(Mark::Fixable, "gpu", reason.to_string()).hint(reason.hint().unwrap_or(general))
        }
        _ => {
            let project = if is_in_project { "" } else { "in a project, which `collo init DIR` writes, " };
            let general = format!(
                "{project}plan for one with `collo plan small-7way-mps --gpu a100-40gb`, simulate one with `collo --simulate a100-40gb run small-7way-mps`"
            );
            Check::new(Mark::Absent, "gpu", format!("no NVIDIA GPU: {reason}")).hint(reason.hint().unwrap_or(&general))
        }
    }
}

/// The checks of a machine with a driver, what it can measure, and the sources of its numbers.
fn on_gpus(cards: &Cards, driver: &Driver) -> (Vec<Check>, String, Vec<Row>) {
    let rows = matrix::matrix(driver);
    let (mps, mig, smact) = (daemon::mps(driver), gpu::mig(driver, gpu::right(driver)), smact::check(driver, &rows));
    let can = verdict::can(driver, mps.is_good(), gpu::right(driver));
    let mut checks: Vec<Check> = gpu::simulated(driver).into_iter().collect();
    checks.extend([gpu::driver(driver), gpu::gpus(driver)]);
    checks.extend(gpu::allocation(driver));
    checks.extend(gpu::in_use(driver));
    checks.extend([mps, daemon::descriptors(), mig, smact, gpu::persistence(driver)]);
    checks.extend(gpu::profiles(driver, cards));
    checks.extend([gpu::near(driver)]);
    checks.extend(gpu::pids(driver));
    checks.extend(gpu::pending_restores());
    (checks, can, rows)
}
