//! `collo doctor`: what this machine can measure, what is missing, and how to fix it. Reads only, and leaves nothing behind.
//!
//! To add a check: a file here; what it collects, in `collect`.

mod collect;
mod daemon;
mod deep;
mod gpu;
mod lists;
mod machine;
mod matrix;
mod smact;
#[cfg(test)]
mod tests;
mod timeout;
mod verdict;

use collo_device::has_gpu;
use collo_device::nvml::{self, NoDriver};
use collo_plan::facts::Driver;
use serde_json::json;

use collo_text::Diagnostic;

use super::{Context, Ended};
use crate::args::{self, Need};
use crate::exit;
use crate::output;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// As it should be.
    Good,
    /// Affects results.
    Changes,
    /// Can be fixed.
    Fixable,
    /// Unavailable here.
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Check {
    mark: Mark,
    subject: &'static str,
    text: String,
    hint: Option<String>,
}

impl Check {
    fn new(mark: Mark, subject: &'static str, text: impl Into<String>) -> Self {
        Check { mark, subject, text: text.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn is_good(&self) -> bool {
        self.mark == Mark::Good
    }
}

pub fn run(context: &Context<'_>, a: &args::Doctor) -> Ended {
    if a.collect {
        return collect::run(context, a);
    }
    let facts = collo_device::cpu::facts();
    let (mut checks, can, rows) = match ask(context) {
        Ok(driver) => on_gpus(context, &driver),
        Err(reason) => {
            let can = "workloads on the CPU, `solo` and `naive`. Cannot: anything on a GPU".to_string();
            (vec![none(&reason)], can, Vec::new())
        }
    };
    let simulated = checks.iter().position(|c| c.subject == "simulated").map(|at| checks.remove(at));
    let mut all: Vec<Check> = simulated.into_iter().collect();
    all.extend([machine::cpu(&facts), machine::load(&facts), machine::memory(), machine::python(context)]);
    all.extend(checks);
    let deep = if a.deep { deep::checks(context, a)? } else { Vec::new() };
    let believed = deep.iter().all(|check| check.mark != Mark::Fixable);
    all.extend(deep);
    all.extend([machine::energy(), machine::pressure(), machine::shared_memory(), machine::build(), machine::store(context)]);
    if context.arguments.json {
        let list: Vec<_> =
            all.iter().map(|c| json!({"check": c.subject, "mark": word(c.mark), "text": c.text, "hint": c.hint})).collect();
        let matrix: Vec<_> = rows.iter().map(matrix::value).collect();
        output::json(&json!({"schema": 1, "checks": list, "device": facts.record(), "matrix": matrix, "can_measure": can}));
    } else {
        lines(&all, &rows).iter().for_each(output::result);
        output::result(format!("can measure: {can}"));
    }
    let missing = missing(&a.require, &all);
    if missing.is_empty() {
        return Ok(if believed { exit::DONE } else { exit::FAILED });
    }
    Err(Diagnostic::new(format!("missing requirements: {}", missing.join(", "))).of_machine().hint("see the hint of each").into())
}

/// The driver, if it responds in time.
fn ask(context: &Context<'_>) -> Result<Driver, NoDriver> {
    let cards = context.project().map(|project| project.cards()).unwrap_or_default();
    let slow = || Err(NoDriver::Silent { text: format!("no reply within {} s", timeout::TIMEOUT.as_secs()), hint: None });
    let waiting =
        || output::note("waiting for the NVIDIA driver: without persistence mode it starts each GPU anew, which takes seconds");
    let question = move || {
        // Kept open while this process looks, so that the cards start once.
        let open = nvml::open()?;
        collo_device::gpu::ask(&cards).inspect(|_| std::mem::forget(open))
    };
    timeout::within(waiting, question).unwrap_or_else(slow)
}

/// No GPU, or one whose driver does not respond.
fn none(reason: &NoDriver) -> Check {
    match reason {
        NoDriver::Unsafe(_) => Check::new(Mark::Fixable, "driver", reason.to_string()).hint(reason.hint().unwrap_or_default()),
        NoDriver::Silent { .. } if has_gpu() => {
            let general = "`nvidia-smi` shows the same; the kernel log (`sudo dmesg`, lines with NVRM) shows more";
            Check::new(Mark::Fixable, "gpu", reason.to_string()).hint(reason.hint().unwrap_or(general))
        }
        _ => {
            let general = "plan for one with `--gpu a100-40gb`, try one with `just sim small-7way-mps`";
            Check::new(Mark::Absent, "gpu", format!("no NVIDIA GPU: {reason}")).hint(reason.hint().unwrap_or(general))
        }
    }
}

/// The checks of a machine with a driver, what it can measure, and the sources of its numbers.
fn on_gpus(context: &Context<'_>, driver: &Driver) -> (Vec<Check>, String, Vec<matrix::Row>) {
    let cards = context.project().map(|project| project.cards()).unwrap_or_default();
    let rows = matrix::matrix(driver);
    let (mps, mig, smact) = (daemon::mps(driver), gpu::mig(driver, gpu::right(driver)), smact::check(driver, &rows));
    let can = verdict::can(driver, mps.is_good(), gpu::right(driver));
    let mut checks: Vec<Check> = gpu::simulated(driver).into_iter().collect();
    checks.extend([gpu::driver(driver), gpu::gpus(driver)]);
    checks.extend(gpu::allocation(driver));
    checks.extend(gpu::in_use(driver));
    checks.extend([mps, daemon::descriptors(), mig, smact, gpu::persistence(driver)]);
    checks.extend(gpu::profiles(driver, &cards));
    checks.extend([gpu::near(driver)]);
    checks.extend(gpu::pids(driver));
    checks.extend(gpu::pending_restores());
    (checks, can, rows)
}

/// Missing requirements, as they were requested.
fn missing(required: &[Need], checks: &[Check]) -> Vec<&'static str> {
    let good = |subject: &str| checks.iter().any(|c| c.subject == subject && c.is_good());
    let has_driver = good("driver");
    let there = |need: &Need| match need {
        Need::Gpu => has_driver && good("gpus"),
        Need::Mps => good("mps"),
        Need::Mig => good("mig"),
        Need::Smact => good("smact"),
        // Of the GPU where there is one, else of the processor.
        Need::Energy => {
            if has_driver {
                good("persistence")
            } else {
                good("energy")
            }
        }
    };
    let word = |need: &Need| match need {
        Need::Gpu => "gpu",
        Need::Mps => "mps",
        Need::Mig => "mig",
        Need::Smact => "smact",
        Need::Energy => "energy",
    };
    required.iter().filter(|need| !there(need)).map(word).collect()
}

/// A line for each check, its hint below, and the matrix.
fn lines(checks: &[Check], rows: &[matrix::Row]) -> Vec<String> {
    // What is simulated is no subject among others: it is said of all that follows.
    let subjects = checks.iter().filter(|c| c.subject != "simulated").map(|c| c.subject.chars().count());
    let width = subjects.max().unwrap_or(0).max(8);
    let mut all = Vec::new();
    for c in checks {
        all.push(match c.subject {
            "simulated" => format!("{} simulated: {}", sign(c.mark), c.text),
            subject => format!("{} {subject:<width$} {}", sign(c.mark), c.text),
        });
        all.extend(c.hint.as_ref().map(|hint| format!("{}hint: {hint}", " ".repeat(width + 3))));
    }
    if !rows.is_empty() {
        all.extend(matrix::render(rows, output::width()).lines().map(str::to_string));
    }
    all
}

fn sign(mark: Mark) -> char {
    match mark {
        Mark::Good => '✓',
        Mark::Changes => '!',
        Mark::Fixable => '✗',
        Mark::Absent => '–',
    }
}

fn word(mark: Mark) -> &'static str {
    match mark {
        Mark::Good => "good",
        Mark::Changes => "affects results",
        Mark::Fixable => "fixable",
        Mark::Absent => "absent",
    }
}
