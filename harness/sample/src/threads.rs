//! The threads that sample a run, and the writer that stores the samples.

use crate::reader::thread;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use collo_store::{Sample, SampleWriter, SamplingQuality};

use super::Sampler;
use super::core_sets::CoreSets;
use super::gpu::{Board, GpuLoss, GpuSamplingSpec, GpuSession, Strangers};
use super::host::{Host, RaplDomain, RaplEnergy};
use super::latest::{Latest, LatestValues, Outlet, Tap};
use super::member::{Members, ResidentPeaks, Trees};
use super::reader::{Rare, SamplerThread};
use crate::account::SourceResult;

/// How often to read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    pub fast_hz: f64,
    pub slow_hz: f64,
    /// Proportional memory is read at this interval, and on request.
    pub pss_every: Duration,
}

/// Drivers update their gauges every 20 ms or more slowly: a faster rate is for processes alone.
const NVML_MOST_HZ: f64 = 50.0;

/// Sampling in progress; stopped by [`Sampling::stop`], or on drop.
pub struct Sampling {
    stop: Arc<AtomicBool>,
    /// False if nothing reads it.
    reads_pss: bool,
    pss_now: Arc<AtomicBool>,
    pss_readings: Arc<AtomicU64>,
    readers: Vec<JoinHandle<Vec<SourceResult>>>,
    /// Sources that could not be started.
    unread: Vec<SourceResult>,
    writer: Option<JoinHandle<collo_store::Result<()>>>,
    /// Tells the writer not to wait for a reader that does not end.
    give_up: Arc<AtomicBool>,
    latest: Latest,
    lost: GpuLoss,
    strangers: Strangers,
    trees: Trees,
}

/// What is read besides members and the host.
#[derive(Default)]
pub struct Sites<'a> {
    /// GPUs, open until sampling stops.
    pub boards: &'a [Board],
    /// All members are threads of one process, and cannot be told apart.
    pub one_process: bool,
    /// Sets of CPU cores.
    pub core_sets: &'a [Vec<u32>],
    /// Receives the readings of both as they are taken, at intervals of some milliseconds.
    pub tap: Option<Tap>,
}

/// Time limit for a reader to end: a call to the driver of a lost GPU may never return.
const END: Duration = Duration::from_secs(10);

/// The slow thread starts this much later: between two ticks of the fast one, at 10 Hz and at 100 Hz, so that its long tick does
/// not occupy the processor when a fast tick is due.
const OFF_BEAT: Duration = Duration::from_millis(55);

impl Sampling {
    /// Sample the members below these supervisors, the host, and these sites, into a writer.
    /// Without rates there are no time series; errors of GPUs are listened for all the same, which reads nothing.
    pub fn start(
        supervisors: &[u32],
        rates: Option<Rates>,
        writer: SampleWriter,
        Sites { boards, one_process, core_sets, tap }: Sites<'_>,
    ) -> collo_store::Result<Self> {
        let trees = match (one_process, supervisors.first()) {
            (true, Some(supervisor)) => Trees::of_one_process(*supervisor),
            _ => Trees::below(supervisors),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let pss_now = Arc::new(AtomicBool::new(false));
        let pss_readings = Arc::new(AtomicU64::new(0));
        let latest = Latest::default();
        let (batches, received) = mpsc::channel::<Vec<Sample>>();
        let outlet = Outlet { batches, latest: latest.clone(), tap };

        let give_up = Arc::new(AtomicBool::new(false));
        let given_up = give_up.clone();
        let (readers, unread, lost) = (Vec::new(), Vec::new(), GpuLoss::default());
        let reads_pss = rates.is_some();
        // Dropped by an error on the way, it ends what has begun.
        let mut sampling = Sampling {
            stop: stop.clone(),
            reads_pss,
            pss_now,
            pss_readings,
            readers,
            unread,
            writer: None,
            give_up,
            latest,
            lost,
            strangers: Strangers::default(),
            trees: trees.clone(),
        };
        sampling.writer = Some(thread("writer", move || write(&received, writer, &given_up))?);
        let mut of_cards = match rates {
            None => {
                sampling.unread.push(SourceResult::off());
                GpuSession::listen(boards, &stop)
            }
            Some(rates) => {
                sampling.begin_host(rates, core_sets, &outlet)?;
                let nvml_hz = rates.fast_hz.min(NVML_MOST_HZ);
                let setting = GpuSamplingSpec { nvml_hz, slow_hz: rates.slow_hz, trees, outlet, stop, everything: false };
                GpuSession::start(boards, &setting)
            }
        };
        sampling.readers.append(&mut of_cards.readers);
        sampling.unread.append(&mut of_cards.unread);
        (sampling.lost, sampling.strangers) = (of_cards.lost, of_cards.strangers);
        of_cards.not_begun.map_or(Ok(sampling), |e| Err(e.into()))
    }

    /// The two threads that read members and the host.
    fn begin_host(&mut self, rates: Rates, core_sets: &[Vec<u32>], outlet: &Outlet) -> collo_store::Result<()> {
        let trees = &self.trees;
        let mut fast: Vec<Box<dyn Sampler>> = vec![Box::new(Members::new(trees.clone()))];
        for energy in [RaplDomain::Packages, RaplDomain::Dram].into_iter().filter_map(RaplEnergy::find) {
            fast.push(Box::new(energy));
        }
        if !core_sets.is_empty() {
            fast.push(Box::new(CoreSets::of(core_sets)));
        }
        let slow: Vec<Box<dyn Sampler>> = vec![Box::new(Host::new()), Box::new(ResidentPeaks(trees.clone()))];
        let (fast, slow) = (SamplerThread::of(fast, &self.stop, outlet), SamplerThread::of(slow, &self.stop, outlet));
        let every_ns = rates.pss_every.as_nanos() as u64;
        let rare = Rare { trees: trees.clone(), every_ns, now: self.pss_now.clone(), readings: self.pss_readings.clone() };
        self.readers.push(thread("proc", move || vec![fast.run("proc", rates.fast_hz, Duration::ZERO, None)])?);
        self.readers.push(thread("host", move || vec![slow.run("host", rates.slow_hz, OFF_BEAT, Some(rare))])?);
        Ok(())
    }

    /// Read a further member, the tree below this supervisor.
    pub fn add(&self, index: usize, supervisor: u32) {
        self.trees.add(index, supervisor);
    }

    /// Read a member no more.
    pub fn remove(&self, index: usize) {
        self.trees.remove(index);
    }

    /// Read proportional memory soon.
    pub fn ask_for_pss(&self) {
        self.pss_now.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Read proportional memory now, and wait for it, but not longer than `patience`.
    pub fn read_pss(&self, patience: Duration) {
        if !self.reads_pss {
            return;
        }
        let before = self.pss_readings.load(Ordering::Relaxed);
        self.ask_for_pss();
        let deadline = Instant::now() + patience;
        while self.pss_readings.load(Ordering::Relaxed) == before && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// The latest values by scope.
    pub fn latest(&self) -> BTreeMap<Arc<str>, LatestValues> {
        self.latest.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// The error of a lost GPU, as soon as its driver reports it.
    pub fn lost(&self) -> Option<String> {
        self.lost.why()
    }

    /// The UUIDs of the GPUs that are lost, each with its driver's error.
    pub fn lost_boards(&self) -> Vec<(String, String)> {
        self.lost.all()
    }

    /// Processes that were on the GPUs at some moment of this span and are none of collo's; those whose memory is sampled.
    pub fn strangers(&self, from_ns: u64, until_ns: u64) -> Vec<String> {
        self.strangers.between(from_ns, until_ns)
    }

    /// End the threads, close the GPUs and the table.
    pub fn stop(mut self) -> collo_store::Result<Vec<SamplingQuality>> {
        let finished = self.end();
        let quality = finished.into_iter().map(|f| f.quality).collect();
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(written)) => written.map(|()| quality),
            _ => Err(collo_store::Error::Io(std::io::Error::other("the thread that writes samples exited early"))),
        }
    }

    /// End the reading threads; no GPU is open afterwards.
    fn end(&mut self) -> Vec<SourceResult> {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
        let deadline = Instant::now() + END;
        let mut finished = Vec::new();
        for reader in self.readers.drain(..) {
            while !reader.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            if reader.is_finished() {
                let name = reader.thread().name().unwrap_or_default().to_string();
                finished.extend(reader.join().unwrap_or_else(|_| vec![SourceResult::panicked(&name)]));
            } else {
                self.give_up.store(true, Ordering::Relaxed);
                finished.push(SourceResult::stuck(END));
            }
        }
        finished.append(&mut self.unread);
        finished
    }

    fn wake(&self) {
        self.readers.iter().for_each(|r| r.thread().unpark());
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.end();
    }
}

fn write(received: &mpsc::Receiver<Vec<Sample>>, mut writer: SampleWriter, give_up: &AtomicBool) -> collo_store::Result<()> {
    loop {
        match received.recv_timeout(Duration::from_millis(500)) {
            Ok(batch) => writer.write(&batch)?,
            Err(mpsc::RecvTimeoutError::Timeout) if !give_up.load(Ordering::Relaxed) => {}
            Err(_) => return writer.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_is_a_source_without_readings_and_the_others_keep_theirs() {
        let reader = |name: &str, work: fn() -> Vec<SourceResult>| thread(name, work).unwrap();
        let mut sampling = Sampling {
            stop: Arc::default(),
            reads_pss: false,
            pss_now: Arc::default(),
            pss_readings: Arc::default(),
            readers: vec![
                reader("nvml", || panic!("as a driver's binding might")),
                reader("proc", || vec![SourceResult::without_reading("proc", 10.0, Default::default())]),
            ],
            unread: Vec::new(),
            writer: None,
            give_up: Arc::default(),
            latest: Latest::default(),
            lost: GpuLoss::default(),
            strangers: Strangers::default(),
            trees: Trees::below(&[]),
        };
        let finished = sampling.end();
        let sources: Vec<_> =
            finished.iter().map(|f| (f.quality.source.as_str(), f.quality.absent.contains_key("all"))).collect();
        assert_eq!(sources, [("nvml", true), ("proc", false)]);
        assert!(!sampling.give_up.load(Ordering::Relaxed), "the writer gets all that was read");
    }
}
