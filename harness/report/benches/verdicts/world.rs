//! Campaigns from what is true of them: each group by its gain over running in turn, its energy ÷ in turn, and what else a scenario is
//! about. In: truths. Out: a `Fixture`, which writes a campaign with noise around them.

use std::cell::Cell;

use crate::support::Fixture;
use crate::support::card::CardTruth;

/// Seconds of an epoch alone: long enough for more than 20 steps of the energy counter between its readings.
pub const ALONE_S: f64 = 6.0;
const ALONE_W: f64 = 150.0;
/// Standard deviation of a run's pace.
pub const NOISE: f64 = 0.01;

/// A campaign in the making on an A100 that exists.
pub struct World {
    pub fixture: Fixture,
    /// SM activity of each member alone.
    pub sm_active_ratio: f64,
    pub pcie_rx_bytes_per_s: Cell<Option<f64>>,
}

impl World {
    pub fn named(name: &str, seed: u64) -> World {
        let mut fixture = Fixture::named(name).seed(seed);
        fixture.device.name = "NVIDIA A100-SXM4-40GB".into();
        fixture.device.kind = "gpu".into();
        fixture.device.memory_bytes = Some(40 << 30);
        fixture.device.cores = None;
        fixture.device.persistence = Some(true);
        fixture.samples_hz = 5.0;
        World { fixture, sm_active_ratio: 0.3, pcie_rx_bytes_per_s: Cell::new(None) }
    }

    pub fn alone(self, workload: &str) -> World {
        let sm_active_ratio = self.sm_active_ratio;
        let card = CardTruth { sm_active_ratio, power_w: ALONE_W, ..self.card() };
        World { fixture: self.fixture.on_card("solo", &[(workload, ALONE_S)], card, NOISE), ..self }
    }

    /// Members that are slowed down alike: the gain and the energy ÷ in turn of all of them.
    pub fn group(self, sharing: &str, members: &[&str], gain: f64, energy_of_solo: f64) -> World {
        let slowdown = members.len() as f64 / gain;
        let slowed: Vec<(&str, f64)> = members.iter().map(|m| (*m, slowdown)).collect();
        self.slowed(sharing, &slowed, energy_of_solo)
    }

    /// Each member with its slowdown.
    pub fn slowed(self, sharing: &str, members: &[(&str, f64)], energy_of_solo: f64) -> World {
        let work: f64 = members.iter().map(|m| 1.0 / m.1).sum();
        let epochs: Vec<(&str, f64)> = members.iter().map(|m| (m.0, ALONE_S * m.1)).collect();
        let (sm_active_ratio, power_w) = ((self.sm_active_ratio * work).min(0.95), ALONE_W * work * energy_of_solo);
        let card = CardTruth { sm_active_ratio, power_w, ..self.card() };
        World { fixture: self.fixture.on_card(sharing, &epochs, card, NOISE), ..self }
    }

    /// The noise of the last cell's runs.
    pub fn noisy(mut self, noise: f64) -> World {
        self.last().noise = Some(noise);
        self
    }

    /// The footprint of each member of the last cell.
    pub fn holding(self, gib: f64) -> World {
        World { fixture: self.fixture.holding(gib), ..self }
    }

    /// Bytes per second into the GPU from here on.
    pub fn moving(self, bytes_per_s: f64) -> World {
        self.pcie_rx_bytes_per_s.set(Some(bytes_per_s));
        self
    }

    pub fn last(&mut self) -> &mut crate::support::Truth {
        self.fixture.cells.last_mut().expect("a cell before what is true of it")
    }

    fn card(&self) -> CardTruth {
        CardTruth {
            sm_active_ratio: self.sm_active_ratio,
            idle_w: 50.0,
            power_w: ALONE_W,
            instances: Vec::new(),
            sources: vec![("dcgm", 1.0)],
            pcie_rx_bytes_per_s: self.pcie_rx_bytes_per_s.get(),
            counter_resets: false,
            counters_of_instances: false,
        }
    }
}
