//! Which device a CUDA process gets: `CUDA_VISIBLE_DEVICES` as CUDA reads it.
//!
//! In: the machine and the variable. Out: [`Place`]s, in CUDA's order. What is not a device ends the list, as in CUDA.

use crate::sim::Sim;

/// A device as CUDA has it: a card, or one MIG device.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub card: usize,
    /// GPU instance and compute instance.
    pub mig: Option<(u32, u32)>,
    /// `GPU-…` or `MIG-…`
    pub uuid: String,
    pub sms: u32,
    pub memory_bytes: u64,
    /// Shares of the card.
    pub sm_share: f64,
    pub memory_share: f64,
}

const MIB: u64 = 1 << 20;

/// The devices that a process with this value of the variable sees.
pub fn places(sim: &Sim, variable: Option<&str>) -> Vec<Place> {
    let order = cuda_order(sim);
    let Some(text) = variable else {
        // With MIG a process sees one device only: the first.
        let mut all: Vec<Place> = order.iter().filter_map(|&card| of_card(sim, card)).collect();
        if let Some(first) = all.iter().position(|p| p.mig.is_some()) {
            all = vec![all.swap_remove(first)];
        }
        return all;
    };
    let mut all = Vec::new();
    for word in text.split(',').map(str::trim) {
        let Some(place) = named(sim, &order, word) else { break };
        all.push(place);
    }
    if let Some(first) = all.iter().position(|p: &Place| p.mig.is_some()) {
        all = vec![all.swap_remove(first)];
    }
    all
}

/// CUDA counts the fastest first, unless told to count as NVML does.
fn cuda_order(sim: &Sim) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sim.cards.len()).collect();
    if std::env::var("CUDA_DEVICE_ORDER").as_deref() != Ok("PCI_BUS_ID") {
        order.sort_by_key(|&i| sim.cards[i].key == "display");
    }
    order
}

fn named(sim: &Sim, order: &[usize], word: &str) -> Option<Place> {
    if let Ok(index) = word.parse::<usize>() {
        return of_card(sim, *order.get(index)?);
    }
    if let Some(old) = word.strip_prefix("MIG-GPU-") {
        let mut parts = old.split('/');
        let uuid = format!("GPU-{}", parts.next()?);
        let card = sim.state().cards.iter().position(|c| c.uuid == uuid)?;
        return of_instance(sim, card, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    }
    if word.len() <= "GPU-".len() {
        return None;
    }
    if word.starts_with("MIG-") {
        let here = |card: usize| sim.state().cards[card].compute().map(move |(g, c)| (card, g.id, c.id, c.uuid.clone()));
        let (card, gi, ci, _) = (0..sim.cards.len()).flat_map(here).find(|(.., uuid)| uuid.starts_with(word))?;
        return of_instance(sim, card, gi, ci);
    }
    let card = sim.state().cards.iter().position(|c| word.starts_with("GPU-") && c.uuid.starts_with(word))?;
    of_card(sim, card)
}

fn of_card(sim: &Sim, card: usize) -> Option<Place> {
    let state = &sim.state().cards[card];
    if state.mig {
        let (gi, ci) = state.compute().map(|(g, c)| (c.index, g.id, c.id)).min().map(|(_, g, c)| (g, c))?;
        return of_instance(sim, card, gi, ci);
    }
    let kind = &sim.cards[card];
    let memory_bytes = (kind.total_mib - crate::nvml::RESERVED_MIB.min(kind.total_mib / 8)) * MIB;
    let (sms, uuid) = (kind.sms, state.uuid.clone());
    Some(Place { card, mig: None, uuid, sms, memory_bytes, sm_share: 1.0, memory_share: 1.0 })
}

fn of_instance(sim: &Sim, card: usize, gi: u32, ci: u32) -> Option<Place> {
    let gpu = sim.state().cards[card].instance(gi)?;
    let compute = gpu.compute.iter().find(|c| c.id == ci)?;
    let kind = &sim.cards[card];
    let profile = kind.profile(gpu.profile)?;
    Some(Place {
        card,
        mig: Some((gi, ci)),
        uuid: compute.uuid.clone(),
        sms: compute.sms,
        memory_bytes: profile.memory_mib * MIB,
        sm_share: f64::from(compute.sms) / f64::from(kind.sms),
        memory_share: kind.memory_share(profile),
    })
}
