//! The ways of sharing one device between the members of a group, one file each.
//!
//! In: a label such as `mps:50%`. Out: a mode that prints the same label and refuses what cannot run on a device. A mode owns its
//! words and its deeds: it stages, and attests. To add one, add its file and its line in [`MODES`].

mod evidence;
mod gpu_evidence;
mod mig;
mod mig_seats;
mod mps;
mod naive;
mod seat;
mod slot;
mod stage;

pub use evidence::{CPU_TIME, InForce, core_text, misplaced, words};
pub use gpu_evidence::{MEMORY_LIMIT, OTHERS};
pub use mig::is_profile;
pub use naive::Naive;
pub use seat::{Seat, Seating};
pub use slot::{NotStaged, Slot, Staged};
pub use stage::{Ground, StagedCard, scrubbed, withheld};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use collo_store::{Attestation, MemberSpec};

use crate::device::DeviceFacts;
use crate::mistake::{Mistake, quoted};
use crate::nearest::nearest;

/// A way of sharing one device between the members of a group.
pub trait SharingMode: fmt::Debug + Send + Sync {
    /// The text written in experiments, stored with runs and printed in reports, e.g. `mps:50%`, `mig:3g.20gb`.
    fn label(&self) -> String;
    /// The first word of the label, alike for all variants.
    fn family(&self) -> &'static str;
    /// What these members get of this device, and the state that it must be in; or why they cannot run in this mode. Pure.
    fn seat(&self, facts: &DeviceFacts, members: &[MemberSpec]) -> Result<Seating, Refusal>;

    /// The same mode with what each workload of a mixed group gets; none where a mode has no use for it.
    fn for_workloads(&self, _each: &Each) -> Option<Arc<dyn SharingMode>> {
        None
    }

    /// What its label does not say of what the members get.
    fn remark(&self) -> Option<String> {
        None
    }

    /// The same mode, knowing who the members of the group are; none where that does not matter.
    fn for_members(&self, _members: &[MemberSpec]) -> Option<Arc<dyn SharingMode>> {
        None
    }

    /// Take the device from its current state to the one that the seating asks for, and give each member its slot.
    fn stage(&self, ground: &mut Ground<'_>, seating: &Seating) -> Result<Staged, NotStaged>;

    /// The evidence, gathered inside the measured window, that this mode was in force for these members; without a card they are on a CPU.
    fn attest(&self, card: Option<&StagedCard>, members: &[InForce]) -> Attestation {
        match card {
            None => evidence::on_cpu(members),
            Some(card) => evidence::on_gpu(card, members),
        }
    }
}

/// What an experiment says of single workloads in mixed groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Each {
    /// MIG profiles.
    pub slices: BTreeMap<String, String>,
    /// Limits under MPS, as behind `mps:`.
    pub limits: BTreeMap<String, String>,
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
