//! What the simulated workloads are, from `workloads.toml`.
//!
//! In: the folder of a workload and the options of its script. Out: [`Workload`], and the load that it is on a given card.
//!
//! To add a workload's pace: an entry in `workloads.toml`, with its reason.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::card::Card;
use crate::launch::Launch;
use crate::model::Load;

const DATA: &str = include_str!("../workloads.toml");
/// The card that the data are of.
const REFERENCE_SMS: f64 = 108.0;
const REFERENCE_GBS: f64 = 1555.0;
const KAPPA: f64 = 1.4;
/// What a CUDA context takes.
pub const CONTEXT_MIB: u64 = 400;
/// What table 6.2 has of its cards beside the training: other processes, which are there once and not with each training. The median over
/// the thirty trainings that the authors measured again without them (`reports/published/estimators.json`).
const OTHERS_MIB: u64 = 1192;

/// One entry.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Workload {
    folder: Option<String>,
    model: Option<String>,
    dataset: Option<String>,
    batch_size: Option<u32>,
    tables: Option<String>,
    kind: Option<String>,
    items: Option<u64>,
    /// Worked out from the epoch, where that is given.
    #[serde(default)]
    item_ms: f64,
    epoch_min: Option<f64>,
    epoch_of: Option<String>,
    /// How many cards that epoch ran on.
    cards: Option<u32>,
    gpu: f64,
    smact: f64,
    dram: f64,
    #[serde(default)]
    pub memory_mib: u64,
    card_mib: Option<u64>,
    /// On each further card, if that is less.
    others_mib: Option<u64>,
    pcie_kb: f64,
    pub parameters: u64,
    /// It has work for as many SMs as a card has: on a larger one it is quicker and keeps no less of it busy.
    #[serde(default)]
    fills: bool,
    /// It launches one kernel over and over, an item is a launch, and what the card shows follows from its configuration.
    #[serde(default)]
    by_launch: bool,
    #[serde(skip)]
    launch: Option<Launch>,
    /// It serves: an item is a request, and a batch of them costs as much as so many more, whatever is in it.
    pub batch_items: Option<f64>,
    #[serde(default)]
    batches: Vec<OfBatch>,
}

/// The same workload with another batch size.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct OfBatch {
    batch_size: u32,
    epoch_min: f64,
    gpu: f64,
    smact: f64,
    dram: f64,
    card_mib: u64,
}

#[derive(Deserialize)]
struct Data {
    items: BTreeMap<String, u64>,
    workload: Vec<Workload>,
}

/// A workload on a card, alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    pub item_s: f64,
    pub load: Load,
}

fn data() -> Result<Data, String> {
    toml::from_str(DATA).map_err(|e| format!("`workloads.toml` of the simulation: {e}"))
}

/// Every entry, with each batch size that it lists.
fn entries() -> Result<Vec<Workload>, String> {
    let Data { items, workload } = data()?;
    let of_each = workload.into_iter().flat_map(Workload::with_batches);
    of_each.map(|entry| entry.worked_out(&items)).collect()
}

/// How many items a data set has.
pub fn items_of(dataset: &str) -> Option<u64> {
    data().ok()?.items.get(dataset).copied()
}

impl Workload {
    fn with_batches(mut self) -> Vec<Workload> {
        let others = std::mem::take(&mut self.batches).into_iter().map(|batch| Workload {
            batch_size: Some(batch.batch_size),
            epoch_min: Some(batch.epoch_min),
            gpu: batch.gpu,
            smact: batch.smact,
            dram: batch.dram,
            card_mib: Some(batch.card_mib),
            ..self.clone()
        });
        let others: Vec<Workload> = others.collect();
        [self].into_iter().chain(others).collect()
    }

    /// With the time of an item from that of its epoch, and its own memory from that of its card.
    fn worked_out(mut self, items: &BTreeMap<String, u64>) -> Result<Workload, String> {
        if let Some(epoch_min) = self.epoch_min {
            let of = self.epoch_of.as_ref().or(self.dataset.as_ref());
            let count = of.and_then(|name| items.get(name)).ok_or_else(|| format!("an epoch of no known items: {self:?}"))?;
            self.item_ms = epoch_min * 60_000.0 * f64::from(self.cards.unwrap_or(1)) / *count as f64;
        }
        if let Some(card_mib) = self.card_mib {
            self.memory_mib = card_mib - OTHERS_MIB - CONTEXT_MIB;
        }
        Ok(self)
    }

    /// The entry that fits best: nothing it names differs, and it names most.
    pub fn find(folder: &str, options: &BTreeMap<String, String>) -> Result<Workload, String> {
        let option = |name: &str| options.get(name).map(String::as_str);
        let score = |w: &Workload| {
            let batch = w.batch_size.map(|b| b.to_string());
            let named = [
                (w.folder.as_deref(), Some(folder)),
                (w.model.as_deref(), option("model")),
                (w.dataset.as_deref(), option("dataset")),
                (batch.as_deref(), option("batch_size")),
                (w.tables.as_deref(), option("tables")),
                (w.kind.as_deref(), option("kind")),
            ];
            let asked = named.iter().filter(|(wanted, _)| wanted.is_some());
            let fits = asked.clone().all(|(wanted, got)| wanted == got);
            fits.then(|| asked.count())
        };
        let mut best: Option<(usize, Workload)> = None;
        for workload in entries()? {
            if let Some(score) = score(&workload)
                && best.as_ref().is_none_or(|(known, _)| score > *known)
            {
                best = Some((score, workload));
            }
        }
        let launched = |w: Workload| Workload { launch: Launch::of(options).filter(|_| w.by_launch), ..w };
        best.map(|(_, w)| launched(w)).ok_or("`workloads.toml` of the simulation has no entry that fits all".into())
    }

    /// Items of a whole epoch.
    pub fn items(&self, options: &BTreeMap<String, String>) -> u64 {
        let number = |name: &str| options.get(name).and_then(|v| v.parse::<u64>().ok()).filter(|n| *n > 0);
        let asked = ["images", "items", "block_rows", "launches", "rounds"].iter().find_map(|n| number(n));
        let of_epoch = || items_of(self.epoch_of.as_deref()?);
        let of_dataset = || {
            let dataset = options.get("dataset")?;
            let packed = options.get("packing").and_then(|packing| items_of(&format!("{dataset} in {packing}")));
            packed.or_else(|| items_of(dataset))
        };
        asked.or(self.items).or_else(of_dataset).or_else(of_epoch).unwrap_or(10_000)
    }

    /// MiB of its allocator on the how-manieth of its cards, from 0.
    pub fn memory_mib_on(&self, nth: usize) -> u64 {
        self.others_mib.filter(|_| nth > 0).unwrap_or(self.memory_mib)
    }

    /// The workload on a card: faster SMs shorten the GPU's share of an item, fewer of them stretch it.
    pub fn on(&self, card: &Card) -> Fit {
        if let Some(launch) = self.launch {
            return self.launched(card, launch);
        }
        let sms = if self.fills { REFERENCE_SMS } else { f64::from(card.sms) };
        let a = self.smact / self.gpu * REFERENCE_SMS / sms;
        let m = self.dram / self.gpu * card.extra.sm_speed * REFERENCE_GBS / card.extra.bandwidth_gbs;
        let stretch = 1.0_f64.max(a.powf(KAPPA)).max(m / 0.95);
        let gpu_ms = self.item_ms * self.gpu / card.extra.sm_speed * stretch;
        let item_ms = self.item_ms * (1.0 - self.gpu) + gpu_ms;
        let load = Load {
            u: gpu_ms / item_ms,
            a: a / stretch,
            m: m / stretch,
            pcie: self.pcie_kb * 1e6 / item_ms,
            occupancy: None,
            cap: None,
            server: None,
            process: None,
            slice: None,
            pace: 1.0,
        };
        Fit { item_s: item_ms / 1e3, load }
    }

    /// The same of launches, of which the entry says only what does not depend on their configuration.
    fn launched(&self, card: &Card, launch: Launch) -> Fit {
        let shown = launch.on(card);
        let load = Load {
            u: shown.graphics,
            a: shown.sm / shown.graphics,
            m: self.dram / self.gpu,
            pcie: self.pcie_kb * 1e3 / shown.launch_s,
            occupancy: Some(shown.occupancy / shown.sm),
            cap: None,
            server: None,
            process: None,
            slice: None,
            pace: 1.0,
        };
        Fit { item_s: shown.launch_s, load }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
    }

    #[test]
    fn the_entry_that_names_most_is_taken() {
        let small = options(&[("model", "resnet26"), ("dataset", "cifar-10"), ("batch_size", "32")]);
        let b32 = Workload::find("vision", &small).unwrap();
        assert_eq!((b32.batch_size, b32.memory_mib), (None, 900));
        let more = options(&[("model", "resnet26"), ("dataset", "cifar-10"), ("batch_size", "128")]);
        assert_eq!(Workload::find("vision", &more).unwrap().batch_size, Some(128));
        let other = Workload::find("vision", &options(&[("model", "convnext")])).unwrap();
        assert_eq!(other.model, None);
        assert_eq!(Workload::find("mine", &options(&[])).unwrap().folder, None);
    }

    #[test]
    fn on_its_own_card_a_workload_is_what_the_data_say() {
        let card = Card::find("a100-40gb").unwrap();
        let large = Workload::find("vision", &options(&[("model", "resnet152"), ("dataset", "imagenet")])).unwrap();
        let Fit { item_s, load } = large.on(&card);
        assert!((item_s - 2.95e-3).abs() < 1e-9);
        assert!((load.u - 0.985).abs() < 1e-9 && (load.a - 0.83).abs() < 1e-3 && (load.m - 0.45).abs() < 1e-3);
    }

    /// Thesis table 6.2 and the times of its scripts on MNIST: the workload, its options and cards, minutes of an epoch, MiB of the card.
    const TABLE: [(&str, &str, &str, u32, f64, u64); 12] = [
        ("language", "xlnet-base", "8", 2, 8.949518, 9718),
        ("language", "bert-base", "32", 1, 14.868351, 20774),
        ("language", "xlnet-large", "4", 2, 25.313793, 14546),
        ("language", "bert-large", "8", 1, 44.932988, 13568),
        ("language", "gpt2-large", "4", 2, 64.962650, 27902),
        ("vision", "mobilenetv2_100", "64", 1, 35.428402, 7224),
        ("vision", "resnet50", "128", 1, 35.007046, 15120),
        ("vision", "efficientnet_b0", "32", 1, 36.210931, 4958),
        ("vision", "vgg16", "128", 1, 42.418796, 24408),
        ("vision", "legacy_xception", "128", 1, 44.440120, 22978),
        ("vision", "inception_v3", "32", 1, 50.103753, 6346),
        ("mnist", "", "32", 1, 140.0 / 60.0 / 14.0, 1776),
    ];

    #[test]
    fn a_whole_epoch_takes_the_minutes_and_holds_the_memory_that_were_published() {
        let card = Card::find("a100-40gb").unwrap();
        for (folder, model, batch, cards, minutes, card_mib) in TABLE {
            let data = match folder {
                "vision" => "imagenet",
                "language" => "wikitext-2",
                _ => "mnist",
            };
            let asked = options(&[("model", model), ("batch_size", batch), ("dataset", data), ("packing", "lines")]);
            let workload = Workload::find(folder, &asked).unwrap();
            let items = workload.items(&asked) as f64;
            let took = items * workload.on(&card).item_s / f64::from(cards) / 60.0;
            assert!((took / minutes - 1.0).abs() < 1e-4, "{model}: {took} of {minutes} min");
            assert_eq!(workload.memory_mib_on(0) + CONTEXT_MIB + OTHERS_MIB, card_mib, "{model}");
        }
    }

    #[test]
    fn what_a_card_shows_of_launches_follows_from_their_configuration() {
        let card = Card::find("a100-40gb").unwrap();
        let shown = |blocks: &str, threads: &str| {
            let asked = options(&[("blocks", blocks), ("threads", threads), ("launches", "1000000")]);
            let square = Workload::find("square", &asked).unwrap();
            assert_eq!(square.items(&asked), 1_000_000);
            square.on(&card).load
        };
        let (one, all) = (shown("1", "1"), shown("131072", "1024"));
        assert!(one.u > 0.9 && one.u * one.a < 0.01 && all.u * all.a > 0.95, "{one:?} {all:?}");
        assert!(one.occupancy.unwrap() < 0.1 && all.occupancy.unwrap() > 0.7);
        let named = Workload::find("square", &options(&[])).unwrap();
        assert!((named.on(&card).load.u - 0.95).abs() < 1e-9, "without a configuration it is the entry");
        let other = Workload::find("vision", &options(&[("blocks", "1"), ("threads", "1")])).unwrap();
        assert_eq!(other.launch, None);
    }

    #[test]
    fn a_newer_card_is_faster_and_a_smaller_one_slower() {
        let large = Workload::find("vision", &options(&[("model", "resnet152"), ("dataset", "imagenet")])).unwrap();
        let on = |key: &str| large.on(&Card::find(key).unwrap());
        assert!(on("h100-80gb").item_s < on("a100-40gb").item_s && on("a30-24gb").item_s > on("a100-40gb").item_s);
        for key in ["h100-80gb", "a30-24gb", "rtx-pro-6000", "b200"] {
            let Load { u, a, m, .. } = on(key).load;
            assert!(u < 1.0 && a <= 1.0 && m <= 1.0, "{key}: {u} {a} {m}");
        }
    }

    #[test]
    fn every_entry_is_a_share_and_says_why() {
        assert!(DATA.matches("reason = ").count() == data().unwrap().workload.len());
        for w in entries().unwrap() {
            assert!(w.smact < w.gpu && w.dram < w.gpu && w.gpu < 1.0 && w.item_ms > 0.0 && w.memory_mib > 0, "{w:?}");
        }
    }
}
