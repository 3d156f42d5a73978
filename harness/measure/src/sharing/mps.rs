//! `mps`: the kernels of all members run side by side through NVIDIA's daemon, perhaps with limits for each.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_store::MemberSpec;

use super::{Each, Family, Ground, NotStaged, Refusal, Seating, SharingMode, Staged, naive, needs_a_gpu, stage};
use crate::device::{DeviceFacts, DeviceKind};
use crate::units;

pub static MPS: Family = Family {
    name: "mps",
    examples: &["mps", "mps:50%", "mps:50%,mem=4GB", "mps:mem=4GB", "mps:each"],
    about: "kernels of all members side by side through NVIDIA's Multi-Process Service, perhaps with limits per member",
    parse: |label| {
        let rest = label.strip_prefix("mps")?;
        if rest == ":each" {
            return Some(Ok(Arc::new(MpsEach::default())));
        }
        let limits = if rest.is_empty() { Ok(Mps::default()) } else { Mps::limits(rest.strip_prefix(':')?) };
        Some(limits.map(|mps| Arc::new(mps) as Arc<dyn SharingMode>))
    },
};

/// The most clients of one server, on Volta and later; 60 with the newest drivers (NVIDIA's MPS guide).
const MOST_CLIENTS: usize = 48;

/// The limits of each member; absent is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mps {
    pub active_thread_percent: Option<u8>,
    pub memory_bytes: Option<u64>,
}

impl Mps {
    fn limits(text: &str) -> Result<Mps, String> {
        let mut mps = Mps::default();
        let (percent, memory) = match text.split_once(',') {
            Some((percent, memory)) => (Some(percent), Some(memory)),
            None if text.starts_with("mem=") => (None, Some(text)),
            None => (Some(text), None),
        };
        if let Some(percent) = percent {
            let digits = percent.strip_suffix('%').filter(|d| d.chars().all(|c| c.is_ascii_digit()));
            let number = digits.and_then(|d| d.parse().ok()).filter(|p| (1..=100).contains(p));
            mps.active_thread_percent = Some(number.ok_or("the share of threads is between `1%` and `100%`, as in `mps:50%`")?);
        }
        if let Some(memory) = memory {
            let size = memory.strip_prefix("mem=").and_then(units::size_bytes).filter(|b| *b > 0);
            mps.memory_bytes = Some(size.ok_or(format!("memory is as in `mps:50%,mem=4GB`; {}", units::SIZE_HELP))?);
        }
        Ok(mps)
    }

    /// What the daemon and its clients are told, in the MPS guide's own variables.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let percent = self.active_thread_percent.map(|p| ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", p.to_string()));
        let memory = self.memory_bytes.map(|b| ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", format!("0={}M", b >> 20)));
        percent.into_iter().chain(memory).collect()
    }
}

impl SharingMode for Mps {
    fn label(&self) -> String {
        let percent = self.active_thread_percent.map(|p| format!("{p}%"));
        let memory = self.memory_bytes.map(|b| format!("mem={}", units::size_text(b)));
        let limits: Vec<String> = percent.into_iter().chain(memory).collect();
        if limits.is_empty() { "mps".into() } else { format!("mps:{}", limits.join(",")) }
    }

    fn family(&self) -> &'static str {
        MPS.name
    }

    fn seat(&self, facts: &DeviceFacts, members: &[MemberSpec]) -> Result<Seating, Refusal> {
        if facts.kind == DeviceKind::Cpu {
            return Err(needs_a_gpu(self.family(), facts));
        }
        if members.len() > MOST_CLIENTS {
            return Err(Refusal {
                reason: format!("{} members are more than the {MOST_CLIENTS} clients of one MPS server", members.len()),
                hint: Some(format!("`degree` up to {MOST_CLIENTS} fits")),
            });
        }
        Ok(Seating { daemons: true, ..Seating::whole(members.len(), naive::uncut(facts)) })
    }

    fn stage(&self, ground: &mut Ground<'_>, seating: &Seating) -> Result<Staged, NotStaged> {
        stage::on_gpu(ground, seating, Some(self), &[])
    }
}

/// `mps:each`: in a mixed group every workload has limits of its own, which the experiment's `limits` say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MpsEach {
    limits: BTreeMap<String, Mps>,
    /// By member, once it is known who they are.
    members: Vec<Mps>,
}

impl SharingMode for MpsEach {
    fn label(&self) -> String {
        "mps:each".into()
    }

    fn family(&self) -> &'static str {
        MPS.name
    }

    fn for_workloads(&self, each: &Each) -> Option<Arc<dyn SharingMode>> {
        // What could not be read was said when the experiment was.
        let read = |(workload, text): (&String, &String)| Some((workload.clone(), Mps::limits(text).ok()?));
        Some(Arc::new(MpsEach { limits: each.limits.iter().filter_map(read).collect(), members: Vec::new() }))
    }

    fn remark(&self) -> Option<String> {
        let text = |(name, mps): (&String, &Mps)| format!("{name} {}", mps.label().trim_start_matches("mps:"));
        Some(self.limits.iter().map(text).collect::<Vec<_>>().join(", "))
    }

    fn for_members(&self, members: &[MemberSpec]) -> Option<Arc<dyn SharingMode>> {
        let own = |m: &MemberSpec| self.limits.get(&m.workload).copied().unwrap_or_default();
        Some(Arc::new(MpsEach { limits: self.limits.clone(), members: members.iter().map(own).collect() }))
    }

    fn seat(&self, facts: &DeviceFacts, members: &[MemberSpec]) -> Result<Seating, Refusal> {
        let seating = Mps::default().seat(facts, members)?;
        if let Some(member) = members.iter().find(|m| !self.limits.contains_key(&m.workload)) {
            let name = &member.workload;
            return Err(Refusal {
                reason: format!(
                    "`mps:each` gives each workload of a mixed group its limits, and `limits` says none for `{name}`"
                ),
                hint: Some(format!("as in `limits = {{ {name} = \"50%\" }}`; where all are alike: `mps:50%`")),
            });
        }
        Ok(seating)
    }

    fn stage(&self, ground: &mut Ground<'_>, seating: &Seating) -> Result<Staged, NotStaged> {
        stage::on_gpu(ground, seating, Some(&Mps::default()), &self.members)
    }
}
