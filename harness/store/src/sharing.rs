//! What a sharing mode means for the members of a cell, as fields: no code has to parse its label.

use collo_gpus::notation::Item;
use serde::{Deserialize, Serialize};

/// How the members of a cell share their device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// The first word of the mode's label, the same for all variants: `naive`, `mps`, `mig`, `threads`.
    pub family: String,
    /// Members are clients of an MPS daemon, on the whole device or inside their instances.
    pub mps: bool,
    /// Members have thread or memory limits under MPS.
    pub limited: bool,
    /// The GPU is partitioned into instances.
    pub partitioned: bool,
    /// Members are threads of one process, and share its memory, its allocator and its settings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_process: bool,
    /// Every member has a whole GPU instance to itself: compute instances of one GPU instance, and clients of MPS, share its memory.
    pub isolated: bool,
}

impl Sharing {
    /// Derived from a label, where nothing else is available: records of earlier versions, reports, refusals.
    pub fn of_label(label: &str) -> Sharing {
        let first = label.split([':', '+']).next().unwrap_or(label);
        let family = if first == "solo" { "naive" } else { first };
        let partitioned = family == "mig";
        let inside = label.strip_suffix("+mps").filter(|_| partitioned);
        let cut = inside.unwrap_or(label).split_once(':').map_or("", |(_, cut)| cut);
        let is_divided = Item::of(cut).compute().is_ok_and(|compute| compute.is_some());
        let mps = family == "mps" || inside.is_some();
        Sharing {
            family: family.into(),
            mps,
            limited: mps && !partitioned && !cut.is_empty(),
            partitioned,
            one_process: family == "threads",
            isolated: partitioned && !mps && !is_divided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_what_is_shared() {
        let said = |label: &str| {
            let s = Sharing::of_label(label);
            let words = [
                (s.mps, "mps"),
                (s.limited, "limited"),
                (s.partitioned, "partitioned"),
                (s.one_process, "one process"),
                (s.isolated, "isolated"),
            ];
            format!("{}: {}", s.family, words.iter().filter(|(is, _)| *is).map(|(_, w)| *w).collect::<Vec<_>>().join(", "))
        };
        assert_eq!((said("solo"), said("naive")), ("naive: ".into(), "naive: ".into()));
        assert_eq!(said("mps"), "mps: mps");
        for limited in ["mps:50%", "mps:mem=4GB", "mps:each"] {
            assert_eq!(said(limited), "mps: mps, limited");
        }
        for isolated in ["mig", "mig:3g.20gb", "mig:2×3g.20gb", "mig:1g.5gb+me", "mig:balanced", "mig:3g", "mig:2×3/7"] {
            assert_eq!(said(isolated), "mig: partitioned, isolated", "{isolated}");
        }
        assert_eq!((said("mig:2×1c.3g.20gb"), said("mig:2×3c.7g")), ("mig: partitioned".into(), "mig: partitioned".into()));
        for inside in ["mig+mps", "mig:3g.20gb+mps"] {
            assert_eq!(said(inside), "mig: mps, partitioned");
        }
        for hosted in ["threads", "threads:no-lock"] {
            assert_eq!(said(hosted), "threads: one process");
        }
        assert_eq!(said("exclusive:2"), "exclusive: ", "of a mode that is not known nothing is claimed");
    }
}
