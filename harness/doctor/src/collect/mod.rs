//! `collo doctor --collect`: how a real GPU, its driver and its tools behave, in one file to send to collo's developers.
//!
//! Its list of contents ([`listed`]) is known before. Every step has its own time limit, and a failed one is only recorded. Without `--mig`
//! nothing on the GPU is changed; with it, the selected GPU is leased, partitioned and restored as for a campaign.
//!
//! To add the answers of a real machine to the tests: its unpacked file as a folder of `simgpu/fixtures`, all of which a test
//! reads.

mod bundle;
mod busy;
mod contents;
mod files;
mod mask;
mod mig_trial;
mod mps;

use std::path::Path;

use collo_device::driver::DriverTarget;
use collo_device::select_gpu::GpuSelector;
use collo_plan::facts::{Driver, Gpu};
use collo_plan::project::Project;
use collo_sample::gpu::dcgm_texts;
use collo_text::{Diagnostic, Diagnostics, Remark};
use serde_json::json;

pub use bundle::Bundle;
use busy::Busy;
pub use contents::{MASKED, listed};
use files::When;
use mig_trial::Quiet;

/// The selected GPU.
pub struct SelectedGpu {
    gpu: Gpu,
    uuid: String,
    index: String,
}

impl SelectedGpu {
    /// The GPU that was named, or the first that is suitable for compute; one that is repartitioned (`mig`) must be named.
    pub fn of(driver: &Driver, named: Option<&str>, mig: bool) -> Result<SelectedGpu, Diagnostics> {
        let gpu = match named {
            Some(text) => match &GpuSelector::parse(text).of(driver)?[..] {
                [one] => one.clone(),
                many => {
                    let what = format!("`--collect` takes one GPU, but {} are named", many.len());
                    return Err(Diagnostic::new(what).hint("`--gpu 0`").into());
                }
            },
            None if mig => {
                return Err(Diagnostic::new("`--mig` repartitions a GPU, so it must be named")
                    .hint("`--gpu N`, one that is free for ten minutes")
                    .into());
            }
            None => driver.gpus.iter().find(|gpu| gpu.computes()).cloned().ok_or_else(|| {
                Diagnostic::new("`collo doctor --collect` needs an NVIDIA GPU that is suitable for compute").of_machine()
            })?,
        };
        let at =
            gpu.at.clone().ok_or_else(|| Diagnostic::new(format!("{} is not a GPU of this machine", gpu.name)).of_machine())?;
        Ok(SelectedGpu { uuid: at.uuid, index: at.index.to_string(), gpu })
    }

    pub fn label(&self) -> String {
        self.gpu.label()
    }
}

/// How the GPU is loaded, and whether it is partitioned.
pub struct CollectPlan<'a> {
    pub project: Result<Project, Diagnostic>,
    /// In place of the provided one.
    pub python: Option<&'a Path>,
    /// How long the GPU is observed under each load.
    pub seconds: u32,
    /// Whether it is also partitioned, and restored.
    pub mig: bool,
}

/// What was collected, until it is packed.
pub struct Collection {
    pub bundle: Bundle,
    quiet: Option<Quiet>,
    /// Whether the GPU is as it was found.
    pub whole: bool,
}

impl Collection {
    /// Whether it was cut short by a signal.
    pub fn interrupted(&self) -> bool {
        self.quiet.as_ref().is_some_and(Quiet::heard)
    }
}

/// Everything about a GPU of this driver.
pub fn collect(
    driver: &Driver,
    card: &SelectedGpu,
    plan: CollectPlan<'_>,
    remark: &dyn Fn(Remark),
) -> Result<Collection, Diagnostics> {
    let step = |what: &str| remark(Remark::Note(format!("collecting: {what}")));
    let mut bundle = Bundle::new(&card.uuid, &card.index)?;
    bundle.note("card", json!({"name": card.gpu.name, "simulated": card.gpu.simulated}));
    // DCGM numbers GPUs itself. Where it does not list this one, its answers under any number say why.
    let listed = crate::timeout::ask("dcgmi", &["discovery", "-l"]).map(|(_, said)| said).unwrap_or_default();
    bundle.word("entity", dcgm_texts::entity(&listed, &card.uuid).map_or(card.index.clone(), |number| number.to_string()));
    let target = driver.cuda.map(|cuda| DriverTarget { cuda, capability: card.gpu.capability });
    let busy = Busy::new(plan.project, plan.python, target, plan.seconds);
    if let Err(reason) = &busy {
        remark(Remark::Warning(format!("nothing can run on the GPU, so the parts under load are left out: {reason}")));
        bundle.note("load", json!({"without": reason}));
    }
    let busy = busy.ok();
    // What is changed by hand must be put back: with `--mig` a signal is heard between two steps.
    let quiet = plan.mig.then(Quiet::begin);
    let interrupted = || quiet.as_ref().is_some_and(Quiet::heard);
    bundle.word("rows", busy.as_ref().map_or(10, Busy::rows));
    step("this machine");
    bundle.fill(When::Machine);
    step("DCGM, and the GPU under load");
    bundle.fill(When::Idle);
    // If no load can be started, the GPU is idle still.
    let load = busy.as_ref().and_then(|busy| busy.start(&mut bundle, card, "load/alone.txt", &card.uuid, &[]));
    bundle.fill(When::Load);
    load.into_iter().for_each(|load| load.stop(&mut bundle));
    if !interrupted() {
        step("MPS");
        mps::collect(&mut bundle, card, busy.as_ref());
    }
    let mut whole = true;
    if plan.mig && !interrupted() {
        step("MIG");
        whole = mig_trial::collect(&mut bundle, card, busy.as_ref(), &interrupted, remark);
    }
    Ok(Collection { bundle, quiet, whole })
}
