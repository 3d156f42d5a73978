//! Where the runs of a campaign were measured: on one device, on several cards of a machine, or, merged, on those of several campaigns.
//!
//! Each block lies on one device, so that a run is compared with a baseline of its own card. In: a campaign. Out: its devices, and the
//! one of each block.

use std::collections::BTreeMap;

use crate::{Campaign, GpuRecord};

/// One device that runs of a campaign were measured on.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredAt {
    /// Index of the merged campaign that the runs come from; absent in a campaign that was measured as such.
    pub origin: Option<usize>,
    /// The card of a campaign on several; absent on one device.
    pub gpu: Option<GpuRecord>,
    /// The UUID of its GPU; absent on a CPU, and where it is not known.
    pub uuid: Option<String>,
    /// `GPU 1`, for a merged campaign with where that is; empty on one device.
    pub label: String,
}

/// The devices of a campaign, and the one of each block.
#[derive(Debug, Clone, Default)]
pub struct Devices {
    all: Vec<MeasuredAt>,
    of_block: BTreeMap<u32, usize>,
}

impl Campaign {
    /// The GPU that a block was measured on in a campaign on several; `None` on one device.
    pub fn card_of(&self, block: u32) -> Option<&GpuRecord> {
        let card = self.plan.order.iter().find(|run| run.block == block)?.card?;
        self.machine_of(block).gpus.get(card as usize)
    }

    /// Its device among all of its kind: the UUID of its GPU, where that is not known its name. What the driver reports of a
    /// GPU depends on its partition and on the user, its memory among it.
    pub fn device_identity(&self) -> String {
        let uuid = || Some(self.machine.gpu_of(&self.device)?.uuid.clone()).filter(|uuid| !uuid.is_empty());
        match self.device.kind == "gpu" {
            true => uuid().unwrap_or_else(|| self.device.name_said()),
            false => self.device.text(),
        }
    }

    /// The devices that its blocks were measured on, in the order of its origins and cards.
    pub fn devices(&self) -> Devices {
        let mut of_block: BTreeMap<u32, (usize, Option<u32>)> = BTreeMap::new();
        for run in &self.plan.order {
            of_block.entry(run.block).or_insert_with(|| (self.origin_of(run.block), run.card));
        }
        let mut keys: Vec<(usize, Option<u32>)> = of_block.values().copied().collect();
        // An origin without a planned run is still one of its devices.
        keys.extend((0..self.origins.len()).filter(|at| of_block.values().all(|(origin, _)| origin != at)).map(|at| (at, None)));
        keys.sort_unstable();
        keys.dedup();
        let all = keys.iter().map(|(origin, card)| self.measured_at(*origin, *card)).collect();
        let place = |key: &(usize, Option<u32>)| keys.binary_search(key).unwrap_or(0);
        Devices { all, of_block: of_block.iter().map(|(block, key)| (*block, place(key))).collect() }
    }

    fn measured_at(&self, origin: usize, card: Option<u32>) -> MeasuredAt {
        let from = self.origins.get(origin);
        let machine = from.map_or(&self.machine, |o| &o.machine);
        let gpu = card.and_then(|card| machine.gpus.get(card as usize)).cloned();
        let device = from.map_or(&self.device, |o| &o.device);
        let uuid = gpu.as_ref().or_else(|| machine.gpu_of(device)).map(|gpu| gpu.uuid.clone());
        let words = [gpu.as_ref().map(|gpu| format!("GPU {}", gpu.index)), from.map(|o| o.text())];
        let label = words.into_iter().flatten().collect::<Vec<_>>().join(" of ");
        MeasuredAt { origin: from.map(|_| origin), gpu, uuid, label }
    }
}

impl Devices {
    /// Devices of which no more than their labels is known; none for a campaign on one.
    pub fn labelled(labels: &[String]) -> Devices {
        let at = |label: &String| MeasuredAt { origin: None, gpu: None, uuid: None, label: label.clone() };
        Devices { all: labels.iter().map(at).collect(), of_block: BTreeMap::new() }
    }

    /// Index of the device of a block; 0 for a block of which nothing is planned.
    pub fn of(&self, block: u32) -> usize {
        self.of_block.get(&block).copied().unwrap_or(0)
    }

    pub fn all(&self) -> &[MeasuredAt] {
        &self.all
    }

    /// Several devices: absolute quantities differ between them, and baselines are compared within one.
    pub fn are_several(&self) -> bool {
        self.all.len() > 1
    }
}
