//! What is known of cards and the slices that they are cut into. In: a card's name and the name of a slice. Out: the slice's share
//! of the card, by which slices of different cards are matched, and its SMs. The files are those of `mig-profiles/`.

use std::sync::OnceLock;

use toml::{Table, Value};

const FILES: [&str; 12] = [
    include_str!("../../../../mig-profiles/a100-40gb.toml"),
    include_str!("../../../../mig-profiles/a100-80gb.toml"),
    include_str!("../../../../mig-profiles/a30-24gb.toml"),
    include_str!("../../../../mig-profiles/b200.toml"),
    include_str!("../../../../mig-profiles/gb200.toml"),
    include_str!("../../../../mig-profiles/gh200.toml"),
    include_str!("../../../../mig-profiles/gh200-96gb.toml"),
    include_str!("../../../../mig-profiles/h100-80gb.toml"),
    include_str!("../../../../mig-profiles/h100-nvl-94gb.toml"),
    include_str!("../../../../mig-profiles/h100-pcie-80gb.toml"),
    include_str!("../../../../mig-profiles/h200-141gb.toml"),
    include_str!("../../../../mig-profiles/rtx-pro-6000.toml"),
];

/// A card as its file has it, or as its memory lets one guess where no file has its name.
#[derive(Debug, Clone)]
pub struct Card {
    /// What the driver calls it.
    names: Vec<String>,
    memory_gb: f64,
    sms: Option<i64>,
    compute_slices: i64,
    memory_units: i64,
    slices: Vec<Slice>,
}

#[derive(Debug, Clone)]
struct Slice {
    name: String,
    sms: Option<i64>,
    units: i64,
}

/// The card of this product name. One that no file knows, with this much memory, is taken to be cut like most, into seven slices of
/// compute and eight of memory, and nothing is said of its SMs.
pub fn card(name: &str, memory_bytes: Option<u64>) -> Option<Card> {
    static CARDS: OnceLock<Vec<Card>> = OnceLock::new();
    let cards = CARDS.get_or_init(|| FILES.iter().filter_map(|text| read(text)).collect());
    let bare = |name: &str| name.trim().trim_start_matches("NVIDIA ").to_string();
    if let Some(card) = cards.iter().find(|card| card.names.iter().any(|n| bare(n) == bare(name))) {
        return Some(card.clone());
    }
    let gb = memory_bytes? as f64 / f64::from(1 << 30);
    Some(Card { names: Vec::new(), memory_gb: gb, sms: None, compute_slices: 7, memory_units: 8, slices: Vec::new() })
}

fn read(text: &str) -> Option<Card> {
    let table: Table = text.parse().ok()?;
    let number = |table: &Table, name: &str| table.get(name).and_then(Value::as_integer);
    let slices = table.get("profiles").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table);
    let names = table.get("product_names").and_then(Value::as_array).into_iter().flatten();
    Some(Card {
        names: names.filter_map(|n| Some(n.as_str()?.to_string())).collect(),
        memory_gb: number(&table, "memory_gb").map(|gb| gb as f64)?,
        sms: number(&table, "sms"),
        compute_slices: number(&table, "compute_slices")?,
        memory_units: number(&table, "memory_units").unwrap_or(8),
        slices: slices
            .filter_map(|s| {
                Some(Slice { name: s.get("name")?.as_str()?.into(), sms: number(s, "sms"), units: number(s, "units")? })
            })
            .collect(),
    })
}

impl Card {
    fn slice(&self, name: &str) -> Option<&Slice> {
        self.slices.iter().find(|s| s.name == name)
    }

    /// A text about a mode, with its slice named by its share of the card: `mig:1g.5gb` is `mig:1/7+1/8`, a seventh of the compute
    /// with an eighth of the memory. Two cards' texts are alike where their slices have the same share.
    pub fn by_share(&self, text: &str) -> String {
        each_slice(text, &|name| {
            let compute: i64 = name.split('g').next()?.parse().ok()?;
            let gb: f64 = name.split_once("g.")?.1.split("gb").next()?.parse().ok()?;
            let extras = name.split_once("gb").map_or("", |(_, extra)| extra);
            let guess = || (gb / self.memory_gb * self.memory_units as f64).round() as i64;
            let units = self.slice(name).map_or_else(guess, |s| s.units);
            Some(format!("{}+{}{extras}", part(compute, self.compute_slices), part(units, self.memory_units)))
        })
    }

    /// SMs of the slice that a text names, beside the card's: `14 of 108 SMs`.
    pub fn sms_of(&self, text: &str) -> Option<String> {
        let found = std::cell::Cell::new(None);
        each_slice(text, &|name| {
            found.set(self.slice(name).and_then(|s| s.sms));
            None
        });
        Some(format!("{} of {} SMs", found.get()?, self.sms?))
    }
}

/// A share in lowest terms.
fn part(of: i64, all: i64) -> String {
    let (mut a, mut b) = (of.max(1), all.max(1));
    while b != 0 {
        (a, b) = (b, a % b);
    }
    format!("{}/{}", of / a, all / a)
}

/// Replace every word that looks like a slice, `3g.20gb`, by what `say` makes of it.
fn each_slice(text: &str, say: &dyn Fn(&str) -> Option<String>) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '+';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_part) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
        let word = &from[..end];
        let slice = word.split_once("g.").filter(|(g, gb)| g.parse::<u32>().is_ok() && gb.contains("gb"));
        out.push_str(before);
        out.push_str(&slice.and_then(|_| say(word)).unwrap_or_else(|| word.to_string()));
        rest = &from[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn every_file_reads_and_is_found_by_its_product_name() {
        assert_eq!(FILES.iter().filter_map(|f| read(f)).count(), FILES.len());
        let found = |name: &str, gib: u64| card(name, Some(gib * GIB)).map(|c| (c.sms, c.memory_gb));
        assert_eq!(found("NVIDIA A100-SXM4-80GB", 80), Some((Some(108), 80.0)));
        assert_eq!(found("NVIDIA A30", 24), Some((None, 24.0)));
        assert_eq!(found("NVIDIA H200", 140), Some((None, 141.0)));
        assert_eq!(found("NVIDIA RTX PRO 6000 Blackwell Server Edition", 95).map(|c| c.1), Some(96.0));
        assert_eq!(found("NVIDIA H100 PCIe", 80), Some((Some(114), 80.0)), "its SMs are not those of the SXM card");
        assert_eq!(found("NVIDIA H800 PCIe", 80), Some((None, 80.0)), "no file has its name");
        assert!(card("cpu", None).is_none());
    }

    #[test]
    fn slices_of_different_cards_meet_by_their_share() {
        let a100 = card("NVIDIA A100-SXM4-40GB", None).unwrap();
        let h100 = card("NVIDIA H100 80GB HBM3", None).unwrap();
        let h200 = card("NVIDIA H200", Some(141 * GIB)).unwrap();
        let unknown = card("NVIDIA H800 PCIe", Some(80 * GIB)).unwrap();
        assert_eq!(a100.by_share("small×7 mig:1g.5gb b32"), "small×7 mig:1/7+1/8 b32");
        assert_eq!(h100.by_share("mig:1g.10gb"), a100.by_share("mig:1g.5gb"));
        assert_eq!(unknown.by_share("mig:1g.10gb"), a100.by_share("mig:1g.5gb"));
        assert_eq!(h200.by_share("7×1g.18gb"), a100.by_share("7×1g.5gb"));
        assert_ne!(h100.by_share("mig:1g.20gb"), h100.by_share("mig:1g.10gb"), "twice the memory is another share");
        let a30 = card("NVIDIA A30", Some(24 * GIB)).unwrap();
        assert_eq!(a30.by_share("2g.12gb+me"), "1/2+1/2+me", "an A30 has four slices");
        assert_eq!(a100.sms_of("7×1g.5gb").as_deref(), Some("14 of 108 SMs"));
        assert_eq!(h100.sms_of("3×2g.20gb").as_deref(), Some("32 of 132 SMs"));
        assert_eq!((a100.sms_of("whole GPU, shared"), unknown.sms_of("1g.10gb")), (None, None));
    }
}
