//! `naive`: several independent processes on one device; the driver or the kernel slices the time.

use std::sync::Arc;

use collo_store::MemberSpec;

use super::{Each, Family, Refusal, Seating, SharingMode};
use crate::facts::DeviceFacts;

pub static NAIVE: Family = Family {
    name: "naive",
    examples: &["naive"],
    about: "a process for each member, time-sliced by the device; on its own, a member is `solo`. The study calls it `streams`, which \
            is accepted; a stream for each member of one process is `threads`",
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

    fn seat(&self, facts: &DeviceFacts, members: &[MemberSpec], _: &Each) -> Result<Seating, Refusal> {
        let mode = facts.gpu().and_then(|gpu| gpu.compute_mode.as_deref());
        if let Some(mode) = mode.filter(|mode| members.len() > 1 && *mode != "Default") {
            return Err(Refusal {
                reason: format!("the GPU is in compute mode {mode}, which does not let {} processes share it", members.len()),
                hint: Some("`sudo nvidia-smi -c DEFAULT`; `mps` shares it as it is".into()),
            });
        }
        Ok(Seating::whole_device(members.len(), facts))
    }
}
