//! The fast and the slow thread, and the writer that takes what they read to disk.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use collo_store::{Sample, SampleWriter, SamplingQuality};

use super::Sampler;
use super::clockwork::Clockwork;
use super::gpu::Board;
use super::host::{Host, PackageEnergy};
use super::member::{Members, Peaks, Proportional, Trees};
use super::quality::Movement;

/// How often to read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    pub fast_hz: f64,
    pub slow_hz: f64,
    /// Proportional memory is read this far apart, and whenever it is asked for.
    pub pss_every: Duration,
}

/// The latest figures of a scope, for people who watch: of a member the first four, of a card or an instance the others.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Watched {
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

/// The latest figures by scope.
pub type Latest = Arc<Mutex<BTreeMap<Arc<str>, Watched>>>;

/// Sampling while it goes on; stopped by [`Sampling::stop`], or by being dropped.
pub struct Sampling {
    stop: Arc<AtomicBool>,
    pss_now: Arc<AtomicBool>,
    pss_readings: Arc<AtomicU64>,
    readers: Vec<JoinHandle<SamplingQuality>>,
    writer: Option<JoinHandle<collo_store::Result<()>>>,
    latest: Latest,
}

impl Sampling {
    /// Sample the members below these supervisors, and the host, into a writer.
    pub fn start(supervisors: &[u32], rates: Rates, writer: SampleWriter, boards: &[Board]) -> Self {
        let _ = boards;
        let trees = Trees::below(supervisors);
        let stop = Arc::new(AtomicBool::new(false));
        let pss_now = Arc::new(AtomicBool::new(false));
        let pss_readings = Arc::new(AtomicU64::new(0));
        let latest = Latest::default();
        let (batches, received) = mpsc::channel::<Vec<Sample>>();

        let mut fast: Vec<Box<dyn Sampler>> = vec![Box::new(Members::new(trees.clone()))];
        if let Some(energy) = PackageEnergy::find() {
            fast.push(Box::new(energy));
        }
        let slow: Vec<Box<dyn Sampler>> = vec![Box::new(Host::new()), Box::new(Peaks(trees.clone()))];

        let fast = Reader { samplers: fast, stop: stop.clone(), batches: batches.clone(), latest: latest.clone() };
        let slow = Reader { samplers: slow, stop: stop.clone(), batches, latest: latest.clone() };
        let every_ns = rates.pss_every.as_nanos() as u64;
        let rare = Rare { trees, every_ns, now: pss_now.clone(), readings: pss_readings.clone() };
        let readers = vec![
            std::thread::spawn(move || fast.run("proc", rates.fast_hz, None)),
            std::thread::spawn(move || slow.run("host", rates.slow_hz, Some(rare))),
        ];
        let writer = std::thread::spawn(move || write(&received, writer));
        Sampling { stop, pss_now, pss_readings, readers, writer: Some(writer), latest }
    }

    /// Read proportional memory soon.
    pub fn ask_for_pss(&self) {
        self.pss_now.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Read proportional memory now, and wait until it is read, but not longer than `patience`.
    pub fn read_pss(&self, patience: Duration) {
        let before = self.pss_readings.load(Ordering::Relaxed);
        self.ask_for_pss();
        let deadline = Instant::now() + patience;
        while self.pss_readings.load(Ordering::Relaxed) == before && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// The latest figures by scope.
    pub fn latest(&self) -> BTreeMap<Arc<str>, Watched> {
        self.latest.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// End the threads and close the table.
    pub fn stop(mut self) -> collo_store::Result<Vec<SamplingQuality>> {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
        let mut quality = Vec::new();
        for reader in self.readers.drain(..) {
            // A reader that panicked has no quality to tell; what it read is in the table.
            quality.extend(reader.join());
        }
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(written)) => written.map(|()| quality),
            _ => Err(collo_store::Error::Io(std::io::Error::other("the thread that writes samples ended early"))),
        }
    }
}

impl Sampling {
    fn wake(&self) {
        self.readers.iter().for_each(|r| r.thread().unpark());
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
    }
}

fn write(received: &mpsc::Receiver<Vec<Sample>>, mut writer: SampleWriter) -> collo_store::Result<()> {
    while let Ok(batch) = received.recv() {
        writer.write(&batch)?;
    }
    writer.finish()
}

struct Reader {
    samplers: Vec<Box<dyn Sampler>>,
    stop: Arc<AtomicBool>,
    batches: mpsc::Sender<Vec<Sample>>,
    latest: Latest,
}

/// The duties of the slow thread beside its samplers.
struct Rare {
    trees: Trees,
    every_ns: u64,
    now: Arc<AtomicBool>,
    /// How often proportional memory was read.
    readings: Arc<AtomicU64>,
}

/// The slow thread begins so much later: between two ticks of the fast one, at 10 Hz and at 100 Hz, so that its long tick does not
/// sit on the processor when a fast tick is due.
const OFF_BEAT: Duration = Duration::from_millis(55);

/// How often readings go to the writer and to whoever watches; what is not handed over yet is lost if collo is killed.
const HAND_OVER_NS: u64 = 240_000_000;

impl Reader {
    fn run(mut self, source: &str, rate_hz: f64, rare: Option<Rare>) -> SamplingQuality {
        let first_after = if rare.is_some() { OFF_BEAT } else { Duration::ZERO };
        let mut clockwork = Clockwork::begin(rate_hz, first_after);
        let mut movement = Movement::default();
        let mut pss_due_ns = None;
        let mut samples = Vec::new();
        let mut handed_ns = 0;
        while !self.stop.load(Ordering::Relaxed) {
            self.nap(&clockwork, rare.as_ref());
            let asked = rare.as_ref().is_some_and(|r| r.now.swap(false, Ordering::Relaxed));
            if self.stop.load(Ordering::Relaxed) && !asked {
                break;
            }
            let at_ns = if asked { collo_store::monotonic_ns() } else { clockwork.wait() };
            let seen = samples.len();
            if let Some(rare) = &rare {
                rare.trees.refresh();
                let due = *pss_due_ns.get_or_insert(at_ns + rare.every_ns);
                if asked || at_ns >= due {
                    Proportional(rare.trees.clone()).sample(at_ns, &mut samples);
                    rare.readings.fetch_add(1, Ordering::Relaxed);
                    pss_due_ns = Some(at_ns + rare.every_ns);
                }
            }
            for sampler in &mut self.samplers {
                sampler.sample(at_ns, &mut samples);
            }
            movement.see(&samples[seen..]);
            // To wake the writer, and to sort readings for people, costs as much as to read: not at every tick of a fast rate.
            if at_ns.saturating_sub(handed_ns) >= HAND_OVER_NS {
                handed_ns = at_ns;
                self.show(&samples);
                // The next batch will be about as long.
                let next = Vec::with_capacity(samples.len());
                if self.batches.send(std::mem::replace(&mut samples, next)).is_err() {
                    break;
                }
            }
        }
        // The writer that is gone has said why.
        let _ = self.batches.send(samples);
        clockwork.quality(source, &movement)
    }

    /// Be parked until shortly before the next tick; whoever wants a stop, or proportional memory, unparks the thread.
    fn nap(&self, clockwork: &Clockwork, rare: Option<&Rare>) {
        const SHORTLY: Duration = Duration::from_millis(1);
        // A tick that comes so soon is worth no wake-up before it.
        const SOON: Duration = Duration::from_millis(20);
        if clockwork.period() <= SOON {
            return;
        }
        loop {
            let left = Duration::from_nanos(clockwork.due_ns().saturating_sub(collo_store::monotonic_ns()));
            let asked = rare.is_some_and(|r| r.now.load(Ordering::Relaxed));
            if self.stop.load(Ordering::Relaxed) || asked || left <= SHORTLY {
                return;
            }
            std::thread::park_timeout(left - SHORTLY);
        }
    }

    fn show(&self, samples: &[Sample]) {
        let mut latest = self.latest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for s in samples.iter().filter(|s| s.value.is_some()) {
            match s.metric {
                "cpu_ratio" => latest.entry(s.scope.clone()).or_default().cpu_ratio = s.value,
                "rss_bytes" => latest.entry(s.scope.clone()).or_default().rss_bytes = s.value,
                "peak_rss_bytes" => latest.entry(s.scope.clone()).or_default().peak_rss_bytes = s.value,
                _ => {}
            }
        }
    }
}
