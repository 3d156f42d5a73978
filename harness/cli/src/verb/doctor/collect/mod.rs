//! `collo doctor --collect`: how a real GPU, its driver and its tools behave, in one file to send to collo's developers.
//!
//! Its list of contents is printed first. Every step has its own time limit, and a failed one is only recorded. Without `--mig`
//! nothing on the GPU is changed; with it, the selected GPU is leased, partitioned and restored as for a campaign.
//!
//! To add the answers of a real machine to the tests: its unpacked file as a folder of `simgpu/fixtures`, all of which a test
//! reads.

mod bundle;
mod busy;
mod contents;
mod here;
mod mask;
mod mig_trial;
mod mps;

use std::path::PathBuf;
use std::time::Duration;

use collo_device::driver::DriverTarget;
use collo_device::nvml::{self, probe};
use collo_device::select_gpu::GpuSelector;
use collo_plan::facts::{Driver, Gpu};
use serde_json::json;

use collo_text::{Diagnostic, Diagnostics, ExitClass};

use super::super::{Context, Ended, driver};
use crate::args;
use crate::exit;
use crate::output;
use bundle::Bundle;
use busy::Busy;
use collo_text::shown;

/// Observation time of the energy counter.
const ENERGY: Duration = Duration::from_secs(3);

/// The selected GPU.
struct SelectedGpu {
    gpu: Gpu,
    uuid: String,
    index: String,
}

pub fn run(context: &Context<'_>, a: &args::Doctor) -> Ended {
    let driver = driver(context, "doctor --collect")?;
    let card = card(&driver, a)?;
    let to = to(context, a)?;
    if to.exists() {
        return Err(Diagnostic::new(format!("{} already exists", shown(&to))).hint("`--to FILE` selects another").into());
    }
    output::note(format!("{} will contain, for {}:", shown(&to), card.gpu.label()));
    contents::listed(a.mig).iter().for_each(output::note);
    output::note(contents::MASKED);
    let mut bundle = Bundle::new()?;
    bundle.note("card", json!({"name": card.gpu.name, "simulated": card.gpu.simulated}));
    let target = driver.cuda.map(|cuda| DriverTarget { cuda, capability: card.gpu.capability });
    let busy = Busy::new(context, a, target);
    if let Err(reason) = &busy {
        output::warning(format!("nothing can run on the GPU, so the parts under load are left out: {reason}"));
        bundle.note("load", json!({"without": reason}));
    }
    let busy = busy.ok();
    // What is changed by hand must be put back: with `--mig` a signal is heard between two steps.
    let quiet = a.mig.then(mig_trial::Quiet::begin);
    let interrupted = || quiet.as_ref().is_some_and(mig_trial::Quiet::heard);
    step("this machine");
    here::collect(&mut bundle, &card);
    step("DCGM, and the GPU under load");
    dcgm(&mut bundle, &card);
    under_load(&mut bundle, &card, busy.as_ref());
    if !interrupted() {
        step("MPS");
        mps::collect(&mut bundle, &card, busy.as_ref());
    }
    let mut whole = true;
    if a.mig && !interrupted() {
        step("MIG");
        whole = mig_trial::collect(&mut bundle, &card, busy.as_ref(), &interrupted);
    }
    let (steps, troubles) = bundle.troubles();
    troubles.iter().for_each(|line| output::note(format!("  – {line}")));
    bundle.pack(&to)?;
    output::result(format!(
        "{}: {steps} steps, {} of them without a reply or with an unexpected one",
        shown(&to),
        troubles.len()
    ));
    if !whole {
        return Err(Diagnostic::new(format!("{} is not as it was found", card.gpu.label()))
            .of(ExitClass::Failed)
            .hint("`collo restore`")
            .into());
    }
    Ok(if interrupted() { exit::INTERRUPTED } else { exit::DONE })
}

fn step(what: &str) {
    output::note(format!("collecting: {what}"));
}

/// The GPU that was named, or the first that is suitable for compute.
fn card(driver: &Driver, a: &args::Doctor) -> Result<SelectedGpu, Diagnostics> {
    let gpu = match &a.gpu {
        Some(text) => match &GpuSelector::parse(text).of(driver)?[..] {
            [one] => one.clone(),
            many => {
                let what = format!("`--collect` takes one GPU, but {} are named", many.len());
                return Err(Diagnostic::new(what).hint("`--gpu 0`").into());
            }
        },
        None if a.mig => {
            return Err(Diagnostic::new("`--mig` repartitions a GPU, so it must be named")
                .hint("`--gpu N`, one that is free for ten minutes")
                .into());
        }
        None => driver.gpus.iter().find(|gpu| gpu.computes()).cloned().ok_or_else(|| {
            Diagnostic::new("`collo doctor --collect` needs an NVIDIA GPU that is suitable for compute").of_machine()
        })?,
    };
    let at = gpu.at.clone().ok_or_else(|| Diagnostic::new(format!("{} is not a GPU of this machine", gpu.name)).of_machine())?;
    Ok(SelectedGpu { uuid: at.uuid, index: at.index.to_string(), gpu })
}

fn to(context: &Context<'_>, a: &args::Doctor) -> Result<PathBuf, Diagnostics> {
    match &a.to {
        Some(path) => Ok(context.folder()?.join(path)),
        None => Ok(context.folder()?.join(format!("collo-card-{}.tgz", collo_store::utc_now().replace(':', "")))),
    }
}

/// DCGM's output about itself and the idle GPU.
fn dcgm(bundle: &mut Bundle, card: &SelectedGpu) {
    bundle.command("dcgm/version.txt", "dcgmi", &["--version"]);
    bundle.command("dcgm/modules-l.txt", "dcgmi", &["modules", "-l"]);
    bundle.command("dcgm/discovery-l.txt", "dcgmi", &["discovery", "-l"]);
    bundle.command("dcgm/discovery-c.txt", "dcgmi", &["discovery", "-c"]);
    bundle.command("dcgm/profile-l.txt", "dcgmi", &["profile", "-l", "-i", &card.index]);
}

/// `dcgmi dmon` of these entities and fields, for `rows` rows each.
fn dmon(bundle: &mut Bundle, file: &str, entities: &str, fields: &str, rows: u32) {
    let rows = rows.to_string();
    bundle.command(file, "dcgmi", &["dmon", "-i", entities, "-e", fields, "-d", "100", "-c", &rows]);
}

/// Raw NVML, dmon and the energy counter under load; idle if no load can be started.
fn under_load(bundle: &mut Bundle, card: &SelectedGpu, busy: Option<&Busy>) {
    nvml_of(bundle, card, "nvml/idle.json");
    let load = busy.and_then(|busy| busy.start(bundle, card, "load/alone.txt", &card.uuid, &[]));
    let rows = busy.map_or(10, Busy::rows);
    let entity = format!("gpu:{}", card.index);
    // One field, those of SM activity, those that fit one pass before Hopper, and all that collo asks for.
    const FIELDS: [(&str, &str); 4] = [
        ("1002", "1002"),
        ("1001-1003", "1001,1002,1003"),
        ("1001-1005", "1001,1002,1003,1004,1005"),
        ("1001-1010", "1001,1002,1003,1004,1005,1006,1007,1008,1009,1010"),
    ];
    for (name, fields) in FIELDS {
        dmon(bundle, &format!("dcgm/dmon-{name}.txt"), &entity, fields, rows);
    }
    nvml_of(bundle, card, "nvml/load.json");
    match nvml::open() {
        Ok(nvml) => bundle.json("nvml/energy.json", &probe::energy_steps(&nvml, &card.uuid, ENERGY.as_nanos() as u64)),
        Err(e) => bundle.note("nvml/energy.json", json!({"absent": e.to_string()})),
    }
    if let Some(load) = load {
        load.stop(bundle);
    }
}

/// Raw NVML, as it is now.
fn nvml_of(bundle: &mut Bundle, card: &SelectedGpu, file: &str) {
    match nvml::open() {
        Ok(nvml) => bundle.json(file, &probe::probe(&nvml, &card.uuid)),
        Err(e) => bundle.note(file, json!({"absent": e.to_string()})),
    }
}
