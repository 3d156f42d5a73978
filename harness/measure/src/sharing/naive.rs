//! `naive`: several processes on one device, each by itself; the driver or the kernel slices the time.

use std::sync::Arc;

use collo_store::{Attestation, MemberSpec};

use super::{Family, InForce, NotStaged, Refusal, SharingMode, Slot, Staged, evidence};
use crate::device::{DeviceFacts, DeviceKind};
use crate::experiment::Cores;

pub static NAIVE: Family = Family {
    name: "naive",
    examples: &["naive"],
    about: "each member by itself, the device slices the time; on its own, a member is `solo`",
    // `streams` is the study's word for it; one member of it is `solo`.
    parse: |label| matches!(label, "naive" | "streams" | "solo").then(|| Ok(Arc::new(Naive) as Arc<dyn SharingMode>)),
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naive;

impl SharingMode for Naive {
    fn label(&self) -> String {
        "naive".into()
    }

    fn family(&self) -> &'static str {
        NAIVE.name
    }

    fn refuse(&self, _facts: &DeviceFacts, _members: &[MemberSpec]) -> Option<Refusal> {
        None
    }

    fn stage(&self, facts: &DeviceFacts, members: usize, cores: &Cores) -> Result<Staged, NotStaged> {
        match facts.kind {
            DeviceKind::Cpu => {
                Ok(Staged { slots: (0..members).map(|m| Slot::on_cpu(m, members, cores, &facts.cores)).collect() })
            }
        }
    }

    fn attest(&self, _staged: &Staged, members: &[InForce]) -> Attestation {
        evidence::on_cpu(members)
    }
}
