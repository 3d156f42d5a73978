//! The sharing modes: ways to share one device between the members of a group, one file each.
//!
//! In: a label such as `mps:50%`. Out: a mode that prints the same label and returns each member's share of a device, or why it
//! cannot run there. A mode is pure: `measure/src/stage` applies any of them to a device, and gathers the evidence.
//!
//! To add a mode: its file and its line in [`MODES`]. Then, as far as it differs from the others:
//! - what reports may ask of it: a field of `store/src/sharing.rs`
//! - a state of the device: `measure/src/stage/site.rs`; variables of its members: `orders.rs` there; evidence: `evidence.rs` and the
//!   files beside it
//! - figures: its name and place in `figures/src/modes.rs`, hue and mark in `figures/src/draw/look.rs`
//! - predictions of slowdown: `CompanyMode` in `predict/src/company/mod.rs`
//! - `collo doctor --deep`, which tries it: `doctor/src/deep.rs`

mod limits;
mod mig;
mod mig_seats;
mod mps;
mod naive;
mod seat;
mod threads;

pub use limits::Limits;
pub use mig::on_slice;
pub use mps::MPS_PROGRAM;
pub use naive::Naive;
pub use seat::{Seat, Seating};
pub use threads::Hosting;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use collo_store::MemberSpec;
use collo_text::{Diagnostic, nearest, quoted};

use crate::facts::DeviceFacts;
use collo_gpus::mig::GpuModel;

/// A way of sharing one device between the members of a group.
pub trait SharingMode: fmt::Debug + Send + Sync {
    /// The text written in experiments, stored with runs and printed in reports, e.g. `mps:50%`, `mig:3g.20gb`.
    fn label(&self) -> String;
    /// The first word of the label, the same for all variants.
    fn family(&self) -> &'static str;
    /// The same mode with the profile of this GPU model for a share of it, `mig:3g.20gb` for `mig:3/7`; `None` if it names no share, or
    /// one that the model does not have.
    fn on(&self, _gpu: &GpuModel) -> Option<Arc<dyn SharingMode>> {
        None
    }
    /// The seats of these members on this device, and its required state; or why they cannot run in this mode. Pure.
    fn seat(&self, facts: &DeviceFacts, members: &[MemberSpec], each: &Each) -> Result<Seating, Refusal>;
}

/// An experiment's settings for individual workloads in mixed groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Each {
    /// MIG profiles, or shares.
    pub slices: BTreeMap<String, String>,
    /// Limits under `mps:each`.
    pub limits: BTreeMap<String, Limits>,
}

/// Why something cannot run here, and the hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    pub hint: Option<String>,
}

type Parse = fn(&str) -> Option<Result<Arc<dyn SharingMode>, String>>;

/// A family of modes: its labels.
pub struct Family {
    pub name: &'static str,
    /// Labels as one would write them.
    pub examples: &'static [&'static str],
    pub about: &'static str,
    /// The mode of a label, if the label belongs to this family; the error says what is wrong after the family's name.
    parse: Parse,
}

/// All modes, in the order of lists.
pub static MODES: &[&Family] = &[&naive::NAIVE, &threads::THREADS, &mps::MPS, &mig::MIG];

/// The mode of a label, as written in an experiment or a cell's name.
pub fn parse(label: &str) -> Result<Arc<dyn SharingMode>, Diagnostic> {
    if let Some(read) = MODES.iter().find_map(|family| (family.parse)(label)) {
        return read.map_err(|note| unknown(label).note(note));
    }
    // A slip in the first word keeps the limits behind it: `msp:50%` was meant as `mps:50%`.
    let (word, limits) = label.find([':', '+']).map_or((label, ""), |i| label.split_at(i));
    let near = nearest(word, MODES.iter().map(|family| family.name)).map(|near| format!("{near}{limits}"));
    Err(match near.filter(|near| near != label && parse(near).is_ok()) {
        Some(near) => unknown(label).note(format!("did you mean `{near}`? All: `collo list modes`")),
        None => unknown(label).note("all: `collo list modes`"),
    })
}

/// A mode's label, or that of a cell, with the profiles of this GPU model for shares.
pub fn resolve_shares(label: &str, gpu: &GpuModel) -> String {
    let resolved = |word: &str| parse(word).ok()?.on(gpu).map(|mode| mode.label());
    let words = label.split(' ').map(|word| match word.starts_with(mig::MIG.name) {
        true => resolved(word).unwrap_or_else(|| word.into()),
        false => word.into(),
    });
    words.collect::<Vec<String>>().join(" ")
}

fn unknown(label: &str) -> Diagnostic {
    Diagnostic::new(format!("unknown sharing mode {}", quoted(label)))
}

/// The limits of one workload under `mps:each`, as after `mps:`.
pub fn limits(text: &str) -> Result<Limits, Diagnostic> {
    Limits::parse(text).map_err(|note| unknown(&format!("mps:{text}")).note(note))
}

/// Reason and hint for a mode of NVIDIA GPUs on another device.
fn needs_a_gpu(family: &str, facts: &DeviceFacts) -> Refusal {
    Refusal {
        reason: format!("`{family}` needs an NVIDIA GPU, this is a {}", facts.kind),
        hint: Some("on a CPU: `naive`, `threads`".into()),
    }
}

#[cfg(test)]
mod tests;
