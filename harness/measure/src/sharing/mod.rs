//! The ways of sharing one device between the members of a group, one file each.
//!
//! In: a label such as `mps:50%`. Out: a mode that prints the same label and refuses what cannot run on a device. A mode owns its
//! words and its deeds: it stages, and attests. To add one, add its file and its line in [`MODES`].

mod evidence;
mod mig;
mod mps;
mod naive;
mod slot;

pub use evidence::{CPU_TIME, InForce, core_text};
pub use naive::Naive;
pub use slot::{NotStaged, Slot, Staged};

use std::fmt;
use std::sync::Arc;

use collo_store::{Attestation, MemberSpec};

use crate::device::DeviceFacts;
use crate::experiment::Cores;
use crate::mistake::{Mistake, quoted};
use crate::nearest::nearest;

/// A way of sharing one device between the members of a group.
pub trait SharingMode: fmt::Debug + Send + Sync {
    /// The text written in experiments, stored with runs and printed in reports, e.g. `mps:50%`, `mig:3g.20gb`.
    fn label(&self) -> String;
    /// The first word of the label, alike for all variants.
    fn family(&self) -> &'static str;
    /// Why these members cannot run in this mode on this device; `None` if they can.
    fn refuse(&self, facts: &DeviceFacts, members: &[MemberSpec]) -> Option<Refusal>;

    /// Take the device from its current state to this mode, and give each member its slot. A mode that a plan refuses on every
    /// device that this collo knows need not say how.
    fn stage(&self, facts: &DeviceFacts, _members: usize, _cores: &Cores) -> Result<Staged, NotStaged> {
        Err(NotStaged(needs_a_gpu(self.family(), facts).reason))
    }

    /// The evidence, gathered inside the measured window, that this mode was in force for these members.
    fn attest(&self, _staged: &Staged, _members: &[InForce]) -> Attestation {
        Attestation::absent(format!("`{}` was never staged", self.label()))
    }
}

/// Why something cannot run here, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    pub hint: Option<String>,
}

type Parse = fn(&str) -> Option<Result<Arc<dyn SharingMode>, String>>;

/// A family of modes: its words.
pub struct Family {
    pub name: &'static str,
    /// Labels as one would write them.
    pub examples: &'static [&'static str],
    pub about: &'static str,
    /// The mode of a label, if the label belongs to this family; the error says what is wrong behind the family's name.
    parse: Parse,
}

/// All modes; the order is that of lists.
pub static MODES: [&Family; 3] = [&naive::NAIVE, &mps::MPS, &mig::MIG];

/// The mode of a label, as an experiment or a cell's name writes it.
pub fn parse(label: &str) -> Result<Arc<dyn SharingMode>, Mistake> {
    let unknown = || Mistake::new(format!("unknown sharing mode {}", quoted(label)));
    if let Some(read) = MODES.iter().find_map(|family| (family.parse)(label)) {
        return read.map_err(|note| unknown().note(note));
    }
    // A slip in the first word keeps the limits behind it: `msp:50%` was meant as `mps:50%`.
    let (word, limits) = label.find([':', '+']).map_or((label, ""), |i| label.split_at(i));
    let near = nearest(word, MODES.iter().map(|family| family.name)).map(|near| format!("{near}{limits}"));
    Err(match near.filter(|near| near != label && parse(near).is_ok()) {
        Some(near) => unknown().note(format!("did you mean `{near}`? All: `collo list modes`")),
        None => unknown().note("all: `collo list modes`"),
    })
}

/// Reason and way out for a mode of NVIDIA GPUs on something else.
fn needs_a_gpu(family: &str, facts: &DeviceFacts) -> Refusal {
    Refusal {
        reason: format!("`{family}` needs an NVIDIA GPU, this is a {}", facts.kind),
        hint: Some("on a CPU: `naive`".into()),
    }
}

#[cfg(test)]
mod tests;
