//! A thread that reads its samplers at a fixed rate, and passes on the samples.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Sampler;

use super::latest::Outlet;
use super::member::{Proportional, Trees};
use super::quality::Movement;
use super::ticker::Ticker;
use crate::account::{Account, SourceResult};

/// The samplers of a thread, and its outlet.
pub struct SamplerThread {
    samplers: Vec<Box<dyn Sampler>>,
    stop: Arc<AtomicBool>,
    outlet: Outlet,
}

/// After a reading of proportional memory no growth of memory asks for another for so many times as long as it took: a process waits
/// for the kernel meanwhile.
const PSS_RESTS: u64 = 50;

/// The duties of the slow thread beside its samplers.
pub struct Rare {
    pub trees: Trees,
    pub every_ns: u64,
    pub now: Arc<AtomicBool>,
    /// How often proportional memory was read.
    pub readings: Arc<AtomicU64>,
}

impl SamplerThread {
    pub fn of(samplers: Vec<Box<dyn Sampler>>, stop: &Arc<AtomicBool>, outlet: &Outlet) -> SamplerThread {
        SamplerThread { samplers, stop: stop.clone(), outlet: outlet.clone() }
    }

    /// Read until stopped, first after `first_after`.
    pub fn run(mut self, source: &str, rate_hz: f64, first_after: Duration, rare: Option<Rare>) -> SourceResult {
        let mut ticker = Ticker::begin(rate_hz, first_after);
        let mut movement = Movement::default();
        let mut pss_due_ns = None;
        let mut pss_rests_until_ns = 0;
        let mut samples = Vec::new();
        let mut handed_ns = 0;
        while !self.stop.load(Ordering::Relaxed) {
            self.nap(&ticker, rare.as_ref());
            let asked = rare.as_ref().is_some_and(|r| r.now.swap(false, Ordering::Relaxed));
            if self.stop.load(Ordering::Relaxed) && !asked {
                break;
            }
            let at_ns = if asked { collo_store::monotonic_ns() } else { ticker.wait() };
            let seen = samples.len();
            if let Some(rare) = &rare {
                rare.trees.refresh();
                let due = *pss_due_ns.get_or_insert(at_ns + rare.every_ns);
                let has_grown = at_ns >= pss_rests_until_ns && rare.trees.have_grown();
                if asked || at_ns >= due || has_grown {
                    Proportional(rare.trees.clone()).sample(at_ns, &mut samples);
                    let end_ns = collo_store::monotonic_ns();
                    pss_rests_until_ns = end_ns + PSS_RESTS * end_ns.saturating_sub(at_ns);
                    rare.readings.fetch_add(1, Ordering::Relaxed);
                    pss_due_ns = Some(at_ns + rare.every_ns);
                }
            }
            for sampler in &mut self.samplers {
                sampler.sample(at_ns, &mut samples);
            }
            movement.see(&samples[seen..]);
            // To wake the writer, and to sort readings for people, costs as much as to read: not at every tick of a fast rate.
            if at_ns.saturating_sub(handed_ns) >= self.outlet.every_ns() {
                handed_ns = at_ns;
                // The next batch will be about as long.
                let next = Vec::with_capacity(samples.len());
                if !self.outlet.send(std::mem::replace(&mut samples, next)) {
                    break;
                }
            }
        }
        // The writer that is gone has said why.
        let _ = self.outlet.send(samples);
        let mut quality = ticker.quality(source, &movement);
        let mut account = Account::default();
        self.samplers.iter().filter_map(|s| s.account()).for_each(|a| account.join(a));
        quality.absent = account.reported();
        SourceResult { quality, account }
    }

    /// Park until shortly before the next tick; a request to stop, or for proportional memory, unparks the thread.
    fn nap(&self, ticker: &Ticker, rare: Option<&Rare>) {
        const SHORTLY: Duration = Duration::from_millis(1);
        // A tick that comes so soon is worth no wake-up before it.
        const SOON: Duration = Duration::from_millis(20);
        if ticker.period() <= SOON {
            return;
        }
        loop {
            let left = Duration::from_nanos(ticker.due_ns().saturating_sub(collo_store::monotonic_ns()));
            let asked = rare.is_some_and(|r| r.now.load(Ordering::Relaxed));
            if self.stop.load(Ordering::Relaxed) || asked || left <= SHORTLY {
                return;
            }
            std::thread::park_timeout(left - SHORTLY);
        }
    }
}

/// Start a thread; the error is why there is none: a machine may limit their number (`ulimit -u`, `pids.max`).
pub fn thread<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> std::io::Result<JoinHandle<T>> {
    let begun = std::thread::Builder::new().name(name.into()).spawn(work);
    begun.map_err(|e| std::io::Error::new(e.kind(), format!("no sampling thread can be started: {e}")))
}
