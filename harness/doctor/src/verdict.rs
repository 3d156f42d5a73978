//! What a machine with GPUs can measure, in one line.

use collo_plan::facts::{Driver, Gpu};

use crate::gpu::none_responds;
use crate::indices::gpus;

/// `naive, mps on GPUs 0–2 and 4–6; mig on GPU 7 as found. Cannot: any other MIG layout`
pub fn can(driver: &Driver, mps: bool, right: bool) -> String {
    let is_cut = |gpu: &Gpu| gpu.partition.as_ref().is_some_and(|p| p.mig);
    let free: Vec<&Gpu> = driver.gpus.iter().filter(|gpu| gpu.computes() && gpu.company.is_nobody()).collect();
    let indices = |gpus: &mut dyn Iterator<Item = &&Gpu>| gpus.filter_map(|g| Some(g.at.as_ref()?.index)).collect::<Vec<_>>();
    // Without the right to turn MIG off, a card that has it on is never whole.
    let whole = indices(&mut free.iter().filter(|gpu| right || !is_cut(gpu)));
    let cuttable = indices(&mut free.iter().filter(|gpu| gpu.has_known_instances() && right));
    let as_found = indices(&mut free.iter().filter(|gpu| is_cut(gpu) && !right));
    let modes = if mps { "naive, mps" } else { "naive" };
    let mut parts = Vec::new();
    if !whole.is_empty() && whole == cuttable {
        parts.push(format!("{modes}, mig on {}", gpus(&whole)));
    } else {
        if !whole.is_empty() {
            parts.push(format!("{modes} on {}", gpus(&whole)));
        }
        if !cuttable.is_empty() {
            parts.push(format!("mig on {}", gpus(&cuttable)));
        }
    }
    if !as_found.is_empty() {
        parts.push(format!("mig on {} as found", gpus(&as_found)));
    }
    if parts.is_empty() {
        parts.push("workloads on the CPU".into());
    }
    let mut cannot = Vec::new();
    if free.is_empty() {
        let responds = none_responds(driver).is_none();
        cannot.push(if responds { "anything on a GPU: none is free" } else { "anything on a GPU: none responds" });
    }
    if !mps {
        cannot.push("mps");
    }
    if !right && driver.gpus.iter().any(|gpu| gpu.has_mig) {
        cannot.push(if as_found.is_empty() { "mig" } else { "any other MIG layout" });
    }
    let cannot = if cannot.is_empty() { String::new() } else { format!(". Cannot: {}", cannot.join(", ")) };
    format!("{}{cannot}", parts.join("; "))
}
