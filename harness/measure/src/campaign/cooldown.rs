//! The pause before a run: a fixed time, and if the experiment has a thermal gate, until the GPU is nearly as cool as before the
//! campaign.

use std::time::{Duration, Instant};

use collo_store::Cooling;
use tokio::sync::watch;

use crate::events::{Event, Watcher};
use collo_device::temperature;
use collo_launch::interrupt::Stop;
use collo_plan::experiment::ThermalGate;

/// Between two looks at the temperature.
const LOOK: Duration = Duration::from_millis(500);
/// A GPU is idle if its temperature, which drivers report in whole degrees, has not fallen for so many looks.
const LOOKS_WITHOUT_FALL: u32 = 30;

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
    /// To name the GPU, where there are several.
    label: Option<String>,
    idle_c: Option<f64>,
}

/// The lowest temperature so far, and for how many looks there was none lower.
struct Lowest {
    lowest_c: f64,
    looks: u32,
}

impl Lowest {
    fn see(&mut self, now_c: f64) {
        self.looks = if now_c < self.lowest_c { 0 } else { self.looks + 1 };
        self.lowest_c = self.lowest_c.min(now_c);
    }

    fn is_idle(&self) -> bool {
        self.looks >= LOOKS_WITHOUT_FALL
    }
}

impl<'a> Cooler<'a> {
    /// Find the idle temperature: of a GPU that was busy until a moment ago, that to which it falls. A campaign that is resumed on a
    /// warm GPU keeps the earlier one, from its beginning. `None` if a stop was requested.
    pub(super) async fn before_campaign(
        gate: ThermalGate,
        uuid: &'a str,
        label: Option<String>,
        earlier: Option<f64>,
        stop: watch::Receiver<Stop>,
        watcher: Watcher<'_>,
    ) -> Option<Cooler<'a>> {
        let now_c = temperature::read_c(uuid);
        if earlier.is_some() {
            return Some(Cooler { gate, uuid, label, idle_c: earlier.into_iter().chain(now_c).reduce(f64::min) });
        }
        let Some(now_c) = now_c else { return Some(Cooler { gate, uuid, label, idle_c: None }) };
        watcher(Event::FindsIdle { card: label.as_deref(), now_c, at_most: gate.at_most });
        let (begun, mut seen) = (Instant::now(), Lowest { lowest_c: now_c, looks: 0 });
        while !seen.is_idle() && begun.elapsed() < gate.at_most {
            if !pause(LOOK, stop.clone()).await {
                return None;
            }
            temperature::read_c(uuid).into_iter().for_each(|now_c| seen.see(now_c));
        }
        Some(Cooler { gate, uuid, label, idle_c: Some(seen.lowest_c) })
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
            watcher(Event::Cools { card: self.label.as_deref(), from_c, limit_c, at_most: self.gate.at_most });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_still_cools_down_is_not_idle_and_one_that_warms_up_a_little_is() {
        let mut seen = Lowest { lowest_c: 70.0, looks: 0 };
        let steady = |seen: &mut Lowest, c: f64| (0..LOOKS_WITHOUT_FALL - 1).for_each(|_| seen.see(c));
        for falling_c in [60.0, 50.0, 41.0] {
            seen.see(falling_c);
            steady(&mut seen, falling_c);
            assert!(!seen.is_idle(), "{falling_c} °C may be a pause in its fall");
        }
        seen.see(42.0);
        assert!(seen.is_idle());
        assert_eq!(seen.lowest_c, 41.0);
    }
}
