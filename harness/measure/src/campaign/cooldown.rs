//! The pause before a run: a fixed time, and if the experiment has a thermal gate, until the GPU is nearly as cool as before the
//! campaign.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use collo_store::{Cooling, StoredRun};
use tokio::sync::watch;

use crate::device::temperature;
use crate::events::{Event, Watcher};
use crate::experiment::ThermalGate;
use crate::interrupt::Stop;

/// Between two looks at the temperature.
const LOOK: Duration = Duration::from_millis(500);

/// Wait between runs; false if a stop was requested.
pub(super) async fn pause(cooldown: Duration, mut stop: watch::Receiver<Stop>) -> bool {
    tokio::select! {
        () = tokio::time::sleep(cooldown) => true,
        _ = stop.wait_for(|s| *s != Stop::No) => false,
    }
}

/// The gate of a campaign on its GPU.
pub(super) struct Cooler<'a> {
    gate: ThermalGate,
    uuid: &'a str,
    idle_c: Option<f64>,
}

impl<'a> Cooler<'a> {
    /// Read the idle temperature. A campaign that is resumed on a warm GPU keeps the one from its beginning.
    pub(super) fn before_campaign(gate: ThermalGate, uuid: &'a str, stored: &BTreeMap<String, StoredRun>) -> Cooler<'a> {
        let earlier = stored.values().filter_map(|run| run.record.cooling.as_ref()?.idle_c);
        let idle_c = earlier.chain(temperature::read_c(uuid)).reduce(f64::min);
        Cooler { gate, uuid, idle_c }
    }

    /// Wait until it is cool, or for as long as the gate allows; `None` if a stop was requested.
    pub(super) async fn wait(&self, stop: watch::Receiver<Stop>, watcher: Watcher<'_>) -> Option<Cooling> {
        let begun = Instant::now();
        let limit_c = self.idle_c.map(|idle_c| idle_c + self.gate.above_idle_c);
        let from_c = temperature::read_c(self.uuid);
        let mut cooling = Cooling { idle_c: self.idle_c, limit_c, from_c, to_c: from_c, waited_s: 0.0 };
        if let (Some(from_c), Some(limit_c)) = (from_c, limit_c)
            && from_c > limit_c
        {
            watcher(Event::Cools { from_c, limit_c, at_most: self.gate.at_most });
        }
        // Without a temperature there is nothing to wait for: the run is marked.
        while cooling.to_c.is_some() && limit_c.is_some() && !cooling.is_reached() && begun.elapsed() < self.gate.at_most {
            if !pause(LOOK.min(self.gate.at_most.saturating_sub(begun.elapsed())), stop.clone()).await {
                return None;
            }
            cooling.to_c = temperature::read_c(self.uuid);
            cooling.waited_s = begun.elapsed().as_secs_f64();
        }
        Some(cooling)
    }
}
