//! What is true of a cell: the simulation knows, and an analysis of what was measured on it has to find.
//!
//! In: a group of workloads, a card, how they share it. Out: [`Truth`], without noise.

use crate::card::Card;
use crate::model::{Process, Slice, moment};
use crate::workload::Workload;

/// How a group shares a card.
#[derive(Debug, Clone, PartialEq)]
pub enum Sharing {
    Naive,
    /// With the percentage of threads that each may use.
    Mps(Option<f64>),
    /// Threads of one process, with Python's lock in force or without.
    Threads {
        lock: bool,
    },
    /// The profile of each member's own GPU instance.
    Mig(Vec<String>),
}

/// What is true while all train.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Seconds per item of each, alone on the whole card and in company.
    pub solo_item_s: Vec<f64>,
    pub item_s: Vec<f64>,
    /// Pace beside the solo pace, and their sum: the throughput gained over one after the other.
    pub paces: Vec<f64>,
    pub gain: f64,
    /// Of the whole card.
    pub sm_active_ratio: f64,
    pub dram_active_ratio: f64,
    pub power_w: f64,
    pub pcie_bytes_per_s: f64,
    /// Energy of the board over all items of all members, per item.
    pub energy_per_item_j: f64,
}

/// The truth of a cell, or why it cannot be.
pub fn truth(card: &Card, group: &[Workload], sharing: &Sharing) -> Result<Truth, String> {
    let fits: Vec<_> = group.iter().map(|w| w.on(card)).collect();
    let mut loads: Vec<_> = fits.iter().map(|f| f.load.clone()).collect();
    match sharing {
        Sharing::Naive => {}
        Sharing::Mps(percent) => loads.iter_mut().for_each(|load| {
            load.server = Some(1);
            load.cap = percent.map(|p| p / 100.0);
        }),
        Sharing::Threads { lock } => {
            loads.iter_mut().for_each(|load| load.process = Some(Process { pid: 1, lock: *lock }));
        }
        Sharing::Mig(profiles) => {
            if profiles.len() != loads.len() {
                return Err(format!("{} members and {} instances", loads.len(), profiles.len()));
            }
            for (i, (load, name)) in loads.iter_mut().zip(profiles).enumerate() {
                let profile = card.profile_named(name).ok_or_else(|| format!("{} has no `{name}`", card.name))?;
                load.slice = Some(Slice {
                    gpu_instance: i as u32,
                    compute_instance: 0,
                    sms: f64::from(profile.sms) / f64::from(card.sms),
                    memory: card.memory_share(profile),
                });
            }
        }
    }
    let now = moment(card, &loads, 1.0);
    let solo_item_s: Vec<f64> = fits.iter().map(|f| f.item_s).collect();
    let item_s: Vec<f64> = solo_item_s.iter().zip(&now.paces).map(|(s, pace)| s / pace).collect();
    let items_per_s: f64 = item_s.iter().map(|s| 1.0 / s).sum();
    Ok(Truth {
        gain: now.paces.iter().sum(),
        sm_active_ratio: now.card.sm,
        dram_active_ratio: now.card.dram,
        power_w: now.power_w,
        pcie_bytes_per_s: now.card.pcie_rx + now.card.pcie_tx,
        energy_per_item_j: now.power_w / items_per_s,
        paces: now.paces,
        solo_item_s,
        item_s,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn small() -> Workload {
        let options = [("model", "resnet26"), ("dataset", "cifar-10")].map(|(a, b)| (a.to_string(), b.to_string()));
        Workload::find("vision", &BTreeMap::from(options)).unwrap()
    }

    #[test]
    fn seven_small_ones_gain_as_published_and_spend_least_under_mig() {
        let card = Card::find("a100-40gb").unwrap();
        let group = vec![small(); 7];
        let of = |sharing: Sharing| truth(&card, &group, &sharing).unwrap();
        let (naive, mps, mig) = (of(Sharing::Naive), of(Sharing::Mps(None)), of(Sharing::Mig(vec!["1g.5gb".into(); 7])));
        for (got, wanted) in [(naive.gain, 1.98), (mps.gain, 5.35), (mig.gain, 2.9)] {
            assert!((got / wanted - 1.0).abs() < 0.03, "{got} {wanted}");
        }
        assert!(mps.power_w > naive.power_w && mig.power_w < mps.power_w);
        assert!(mps.energy_per_item_j < naive.energy_per_item_j);
        assert!(mig.energy_per_item_j < mps.energy_per_item_j);
        assert!(mps.pcie_bytes_per_s > mps.gain * truth(&card, &[small()], &Sharing::Naive).unwrap().pcie_bytes_per_s);
    }
}
