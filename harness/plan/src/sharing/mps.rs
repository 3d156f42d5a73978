//! `mps`: the kernels of all members run concurrently through NVIDIA's daemon, optionally with limits for each.

use std::sync::Arc;

use collo_store::MemberSpec;

use super::{Each, Family, Limits, Refusal, Seating, SharingMode, needs_a_gpu};
use crate::facts::{DeviceFacts, DeviceKind};

pub static MPS: Family = Family {
    name: "mps",
    examples: &["mps", "mps:50%", "mps:50%,mem=4GB", "mps:mem=4GB", "mps:each"],
    about: "kernels of all members side by side through NVIDIA's Multi-Process Service, optionally with limits per member",
    parse: |label| {
        let rest = label.strip_prefix("mps")?;
        let mode = match rest {
            "" => Ok(Mps::Alike(Limits::default())),
            ":each" => Ok(Mps::Each),
            _ => Limits::parse(rest.strip_prefix(':')?).map(Mps::Alike),
        };
        Some(mode.map(|mps| Arc::new(mps) as Arc<dyn SharingMode>))
    },
};

/// The control program, searched on the PATH.
pub const MPS_PROGRAM: &str = "nvidia-cuda-mps-control";

/// Maximum number of clients of one server, on Volta and later; 60 with the newest drivers (NVIDIA's MPS guide).
pub(super) const MOST_CLIENTS: usize = 48;

/// How limits are assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mps {
    /// All members the same.
    Alike(Limits),
    /// In a mixed group every workload has limits of its own, from the experiment's `limits`.
    Each,
}

impl SharingMode for Mps {
    fn label(&self) -> String {
        match self {
            Mps::Alike(limits) if *limits == Limits::default() => "mps".into(),
            Mps::Alike(limits) => format!("mps:{limits}"),
            Mps::Each => "mps:each".into(),
        }
    }

    fn family(&self) -> &'static str {
        MPS.name
    }

    fn seat(&self, facts: &DeviceFacts, members: &[MemberSpec], each: &Each) -> Result<Seating, Refusal> {
        if facts.kind == DeviceKind::Cpu {
            return Err(needs_a_gpu(self.family(), facts));
        }
        if members.len() > MOST_CLIENTS {
            return Err(Refusal {
                reason: format!("{} members are more than the {MOST_CLIENTS} clients of one MPS server", members.len()),
                hint: Some(format!("`degree` up to {MOST_CLIENTS} fits")),
            });
        }
        let seating = Seating { daemons: true, ..Seating::whole_device(members.len(), facts) };
        Ok(match self {
            Mps::Alike(limits) => Seating { limits: vec![*limits; members.len()], ..seating },
            Mps::Each => {
                let all: Vec<String> = each.limits.iter().map(|(name, limits)| format!("{name} {limits}")).collect();
                Seating { limits: own(members, each)?, remark: Some(all.join(", ")), ..seating }
            }
        })
    }
}

/// The limits of each member of a mixed group.
fn own(members: &[MemberSpec], each: &Each) -> Result<Vec<Limits>, Refusal> {
    let mixed = members.windows(2).any(|w| w[0] != w[1]);
    let limits = |m: &MemberSpec| {
        let name = &m.workload;
        each.limits.get(name).copied().filter(|_| mixed).ok_or_else(|| Refusal {
            reason: format!("`mps:each` gives each workload of a mixed group its limits, and `limits` has none for `{name}`"),
            hint: Some(format!("as in `limits = {{ {name} = \"50%\" }}`; if all are alike: `mps:50%`")),
        })
    };
    members.iter().map(limits).collect()
}
