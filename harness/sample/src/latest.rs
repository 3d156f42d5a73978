//! Where readings go: to the writer of the run, and as the latest values to displays.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use collo_store::Sample;

/// The latest values of a scope, for displays: of a member the first four, of a GPU or an instance the others.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LatestValues {
    pub cpu_ratio: Option<f64>,
    pub rss_bytes: Option<f64>,
    pub peak_rss_bytes: Option<f64>,
    pub gpu_memory_bytes: Option<f64>,
    pub sm_active_ratio: Option<f64>,
    pub memory_used_bytes: Option<f64>,
    pub power_w: Option<f64>,
    pub temperature_c: Option<f64>,
    pub sm_clock_mhz: Option<f64>,
}

/// The latest values by scope.
pub type Latest = Arc<Mutex<BTreeMap<Arc<str>, LatestValues>>>;

/// Receives readings as they are taken.
pub type Tap = tokio::sync::mpsc::UnboundedSender<Vec<Sample>>;

/// Takes the readings of a thread.
#[derive(Clone)]
pub struct Outlet {
    pub batches: mpsc::Sender<Vec<Sample>>,
    pub latest: Latest,
    /// Who decides by readings while they are taken gets them, too.
    pub tap: Option<Tap>,
}

impl Outlet {
    /// How often readings go to the writer and to displays; the rest is lost if collo is killed.
    const EVERY_NS: u64 = 240_000_000;
    /// The same where somebody decides by readings.
    const TAPPED_EVERY_NS: u64 = 20_000_000;

    /// How often readings are to be handed over.
    pub fn every_ns(&self) -> u64 {
        if self.tap.is_some() { Self::TAPPED_EVERY_NS } else { Self::EVERY_NS }
    }

    /// Publish and pass on; false if there is no receiver any more.
    pub fn send(&self, samples: Vec<Sample>) -> bool {
        self.show(&samples);
        if let Some(tap) = &self.tap {
            // Who tapped may have gone.
            let _ = tap.send(samples.clone());
        }
        samples.is_empty() || self.batches.send(samples).is_ok()
    }

    fn show(&self, samples: &[Sample]) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        for s in samples.iter().filter(|s| s.value.is_some()) {
            let field: fn(&mut LatestValues) -> &mut Option<f64> = match s.metric {
                "cpu_ratio" => |w| &mut w.cpu_ratio,
                "rss_bytes" => |w| &mut w.rss_bytes,
                "peak_rss_bytes" => |w| &mut w.peak_rss_bytes,
                "gpu_memory_bytes" => |w| &mut w.gpu_memory_bytes,
                "sm_active_ratio" => |w| &mut w.sm_active_ratio,
                "memory_used_bytes" => |w| &mut w.memory_used_bytes,
                "power_w" => |w| &mut w.power_w,
                "temperature_c" => |w| &mut w.temperature_c,
                "sm_clock_mhz" => |w| &mut w.sm_clock_mhz,
                _ => continue,
            };
            *field(latest.entry(s.scope.clone()).or_default()) = s.value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_leaves_the_figure_before_and_never_shows_zero() {
        let (batches, received) = mpsc::channel();
        let outlet = Outlet { batches, latest: Latest::default(), tap: None };
        let sample = |value| Sample { at_ns: 0, window_ns: 0, source: "nvml", scope: "gpu:A".into(), metric: "power_w", value };
        assert!(outlet.send(vec![sample(None)]));
        assert!(outlet.latest.lock().unwrap().is_empty());
        assert!(outlet.send(vec![sample(Some(70.0)), sample(None)]));
        assert_eq!(outlet.latest.lock().unwrap()["gpu:A"].power_w, Some(70.0));
        assert_eq!(received.iter().take(2).map(|batch| batch.len()).sum::<usize>(), 3);
        drop(received);
        assert!(!outlet.send(vec![sample(None)]));
    }
}
