//! `mig`: the GPU is cut into instances of their own memory and compute, one member in each, perhaps an MPS daemon in each.
//!
//! This file has the words; what each member gets is solved in `mig_seats`.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_store::MemberSpec;

use super::mig_seats::Seats;
use super::mps::Mps;
use super::{Each, Family, Ground, NotStaged, Refusal, Seating, SharingMode, Staged, needs_a_gpu, stage};
use crate::device::{DeviceFacts, DeviceKind};

pub static MIG: Family = Family {
    name: "mig",
    examples: &["mig", "mig:3g.20gb", "mig:2×3g.20gb", "mig:2×1c.3g.20gb", "mig:balanced", "mig:3g.20gb+mps"],
    about: "the GPU cut into instances with memory and compute of their own",
    parse: |label| {
        let rest = label.strip_prefix("mig")?;
        let (rest, mps) = rest.strip_suffix("+mps").map_or((rest, false), |rest| (rest, true));
        let cut = if rest.is_empty() { Ok(Cut::Equal) } else { Cut::parse(rest.strip_prefix(':')?) };
        Some(cut.map(|cut| Arc::new(Mig { cut, mps, slices: BTreeMap::new() }) as Arc<dyn SharingMode>))
    },
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mig {
    pub cut: Cut,
    /// An MPS daemon in each instance.
    pub mps: bool,
    /// In mixed groups: the profile of each workload.
    pub slices: BTreeMap<String, String>,
}

/// What the GPU is cut into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// The largest equal slices.
    Equal,
    /// Instances of one profile; without a count, as many as there are members. With `1c.` in front, that many compute instances
    /// inside one GPU instance.
    Profile { count: Option<u32>, profile: String },
    /// A named layout.
    Layout(String),
}

const CUT_HELP: &str = "a cut is a profile such as `3g.20gb` or `2×3g.20gb`, or the name of a layout";

impl Cut {
    fn parse(text: &str) -> Result<Cut, String> {
        // Typed input may say `x` for `×`; no profile begins with digits and an `x`.
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, rest) = text.split_at(digits);
        let counted = rest.strip_prefix('×').or_else(|| rest.strip_prefix('x')).filter(|_| !number.is_empty());
        if let Some(profile) = counted {
            let count = number.parse().ok().filter(|n| (1..=64).contains(n)).ok_or("at most 64 instances")?;
            return if is_profile(profile) {
                Ok(Cut::Profile { count: Some(count), profile: profile.into() })
            } else {
                Err(CUT_HELP.into())
            };
        }
        if is_profile(text) {
            Ok(Cut::Profile { count: None, profile: text.into() })
        } else if is_layout(text) {
            Ok(Cut::Layout(text.into()))
        } else {
            Err(CUT_HELP.into())
        }
    }
}

/// `3g.20gb`, `1c.3g.20gb`, `1g.10gb+me`, `1g.24gb-me`, `1g.24gb+me.all`.
pub fn is_profile(text: &str) -> bool {
    let number =
        |part: &str, unit: &str| part.strip_suffix(unit).is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
    let (sizes, variant) = match text.find(['+', '-']) {
        Some(at) => (&text[..at], Some(&text[at..])),
        None => (text, None),
    };
    let parts: Vec<&str> = sizes.split('.').collect();
    let sized = match parts[..] {
        [slices, memory] => number(slices, "g") && number(memory, "gb"),
        [compute, slices, memory] => number(compute, "c") && number(slices, "g") && number(memory, "gb"),
        _ => false,
    };
    sized && variant.is_none_or(|v| matches!(v, "+me" | "+gfx" | "+me.all" | "-me"))
}

fn is_layout(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= 40
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
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

    fn for_workloads(&self, each: &Each) -> Option<Arc<dyn SharingMode>> {
        Some(Arc::new(Mig { slices: each.slices.clone(), ..self.clone() }))
    }

    fn seat(&self, facts: &DeviceFacts, members: &[MemberSpec]) -> Result<Seating, Refusal> {
        if facts.kind == DeviceKind::Cpu {
            return Err(needs_a_gpu(self.family(), facts));
        }
        let Some(card) = facts.gpu().and_then(|gpu| gpu.card.as_ref()) else {
            let name = facts.gpu().map(|g| g.name.as_str()).unwrap_or_default();
            return Err(match facts.gpu().filter(|gpu| gpu.has_mig) {
                None => Refusal {
                    reason: format!("{name} cannot be cut: it has no MIG"),
                    hint: Some("`naive` and `mps` share it".into()),
                },
                Some(gpu) => Refusal {
                    reason: format!("{name} has MIG, and what it can be cut into is not known: {}", gpu.why_no_profiles()),
                    hint: gpu.at.as_ref().map(|at| format!("`sudo collo mig apply on --gpu {}`, then plan again", at.index)),
                },
            });
        };
        Seats { card, members, mps: self.mps, slices: &self.slices }.of(&self.cut)
    }

    fn stage(&self, ground: &mut Ground<'_>, seating: &Seating) -> Result<Staged, NotStaged> {
        stage::on_gpu(ground, seating, self.mps.then(Mps::default).as_ref(), &[])
    }
}
