//! `mig`: the GPU is partitioned into instances with their own memory and compute, one member in each, optionally with an MPS
//! daemon in each.
//!
//! This file parses the labels; the seats of the members are solved in `mig_seats`.

use std::sync::Arc;

use collo_gpus::notation::{self, Item, Share};
use collo_store::MemberSpec;

use super::mig_seats::Seats;
use super::{Each, Family, Refusal, Seating, SharingMode, needs_a_gpu};
use crate::facts::{DeviceFacts, DeviceKind};
use collo_gpus::mig::GpuModel;

pub static MIG: Family = Family {
    name: "mig",
    examples: &[
        "mig",
        "mig:3g",
        "mig:1/7",
        "mig:3g.20gb",
        "mig:2×3g.20gb",
        "mig:2×1c.3g.20gb",
        "mig:balanced",
        "mig:3g.20gb+mps",
    ],
    about: "the GPU partitioned into instances with memory and compute of their own",
    parse: |label| {
        let rest = label.strip_prefix("mig")?;
        let (rest, mps) = rest.strip_suffix("+mps").map_or((rest, false), |rest| (rest, true));
        let cut = if rest.is_empty() { Ok(Cut::Equal) } else { Cut::parse(rest.strip_prefix(':')?) };
        Some(cut.map(|cut| Arc::new(Mig { cut, mps }) as Arc<dyn SharingMode>))
    },
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mig {
    pub cut: Cut,
    /// An MPS daemon in each instance.
    pub mps: bool,
}

/// How the GPU is partitioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// The largest equal slices.
    Equal,
    /// Instances of one profile, named by itself or by its share of the GPU; without a count, as many as there are members. With the
    /// prefix `1c.`, that many compute instances inside one GPU instance.
    Profile { count: Option<u32>, profile: String },
    /// A named layout.
    Layout(String),
}

const CUT_HELP: &str = "a share such as `3g`, `3/7` or `2×3g`, a profile such as `3g.20gb`, or the name of a layout";

impl Cut {
    fn parse(text: &str) -> Result<Cut, String> {
        let (count, size) = notation::counted(text);
        let count = match count.transpose() {
            Err("") => return Err(CUT_HELP.into()),
            counted => counted.map_err(|_| format!("at most {} instances", notation::MOST))?,
        };
        if notation::is_size(size) || notation::is_share(size) {
            Ok(Cut::Profile { count, profile: size.into() })
        } else if count.is_none() && notation::is_layout(text) {
            Ok(Cut::Layout(text.into()))
        } else {
            Err(CUT_HELP.into())
        }
    }
}

/// The mode in which one member is alone on an instance of this size.
pub fn on_slice(size: &str) -> Arc<dyn SharingMode> {
    Arc::new(Mig { cut: Cut::Profile { count: None, profile: size.into() }, mps: false })
}

impl SharingMode for Mig {
    fn label(&self) -> String {
        let cut = match &self.cut {
            Cut::Equal => String::new(),
            Cut::Profile { count: Some(count), profile } => format!(":{count}×{profile}"),
            Cut::Profile { count: None, profile } => format!(":{profile}"),
            Cut::Layout(name) => format!(":{name}"),
        };
        format!("mig{cut}{}", if self.mps { "+mps" } else { "" })
    }

    fn family(&self) -> &'static str {
        MIG.name
    }

    fn on(&self, gpu: &GpuModel) -> Option<Arc<dyn SharingMode>> {
        let Cut::Profile { count, profile: size } = &self.cut else { return None };
        let share = Item::of(size).profile;
        Share::parse(share)?;
        let profile = format!("{}{}", size.strip_suffix(share)?, gpu.sized(share).ok()?.name);
        Some(Arc::new(Mig { cut: Cut::Profile { count: *count, profile }, mps: self.mps }))
    }

    fn seat(&self, facts: &DeviceFacts, members: &[MemberSpec], each: &Each) -> Result<Seating, Refusal> {
        if facts.kind == DeviceKind::Cpu {
            return Err(needs_a_gpu(self.family(), facts));
        }
        let Some(card) = facts.gpu().and_then(|gpu| gpu.card.as_ref()) else {
            let name = facts.gpu().map(|g| g.name.as_str()).unwrap_or_default();
            return Err(match facts.gpu().filter(|gpu| gpu.has_mig) {
                None => Refusal {
                    reason: format!("{name} cannot be partitioned: it has no MIG"),
                    hint: Some("`naive` and `mps` share it".into()),
                },
                Some(gpu) => Refusal {
                    reason: format!("{name} has MIG, but its possible partitions are unknown: {}", gpu.why_no_profiles()),
                    hint: gpu.at.as_ref().map(|at| format!("`sudo collo mig apply on --gpu {}`, then plan again", at.index)),
                },
            });
        };
        Seats { card, members, mps: self.mps, slices: &each.slices }.of(&self.cut)
    }
}
