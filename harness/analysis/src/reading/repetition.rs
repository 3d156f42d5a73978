//! One run on its own: the numbers of each member's epochs and samples. In: a stored run. Out: plain numbers, each absent if
//! unknown. It compares with nothing and knows no interval.

use std::collections::BTreeMap;
use std::path::Path;

use collo_store::{
    AfterMeasured, EpochRecord, Outcome, PROCESS_SCOPE, RunRecord, StoredRun, Thresholds, Validity, Verdict, is_scope_of_a_part,
    member_of_scope, member_scope,
};

use super::latency::{Latency, Requests};
use super::samples::{self, Summaries, Window};
use super::trust::Trust;
use super::usage::Usage;

/// A block, and the sitting in which a run of it was measured: a block may be finished, or a run of it measured again, days later.
pub type MeasuredBlock = (u32, u32);

/// One execution of one cell, as the analysis sees it.
#[derive(Debug, Clone)]
pub struct Repetition {
    pub run: StoredRun,
    /// The stored validity, lowered by the report's checks.
    pub validity: Validity,
    /// True if its files differ from what was recorded.
    pub damaged: bool,
    /// Index of the merged campaign that it comes from; 0 for one that was measured as such.
    pub device: usize,
    /// How often its campaign had been started when it was recorded.
    pub sitting: u32,
    /// All epochs, in the order stored.
    pub epochs: Vec<EpochRecord>,
    pub members: Vec<MemberNumbers>,
    /// What the one process used that all members were threads of; `None` where each had processes of its own.
    pub process: Option<Usage>,
    /// Mean overlap of the measured epochs, and the smallest.
    pub overlap_ratio: Option<f64>,
    pub least_overlap_ratio: Option<f64>,
    /// Spread of the members' starts; `None` for a single member.
    pub start_skew_s: Option<f64>,
    /// From go until the last measured epoch ended; `None` if a member serves, whose duration is set.
    pub makespan_s: Option<f64>,
    /// From the last member's first measured epoch until the last measured epoch ended or any member stopped training: all train,
    /// none warms up.
    pub measured: Option<Window>,
    /// The requests to its serving members, all together; `None` if none serves, or different workloads do.
    pub latency: Option<Latency>,
    /// The growth of the device's energy counter.
    pub energy: Option<Energy>,
    /// Why that is absent, once samples were read.
    pub no_energy: Option<&'static str>,
    /// Board power before training started; once all runs are read, the campaign's, by the state of the GPU.
    pub idle_w: Option<f64>,
    /// Share of the readings in which the GPU's clocks were throttled.
    pub throttled_ratio: Option<f64>,
    /// Largest reading of the memory in use on the whole GPU while members trained, whatever uses it, bytes.
    pub card_memory_bytes: Option<f64>,
    /// Samples left out of all numbers.
    pub trust: Trust,
    /// Means over the measured window of metrics that are not a member's: `cpu_frequency_mhz`, `sm_active_ratio`, `power_w` …; of
    /// shares their 95th percentile too, and the change of temperature and clock from the first half of the window to the second.
    pub metrics: BTreeMap<String, f64>,
}

/// One member of one run.
#[derive(Debug, Clone, Default)]
pub struct MemberNumbers {
    /// Mean of its measured epochs; under `exit` of those with company only. None for a member that serves, whose epochs are as
    /// long as they are set.
    pub epoch_s: Option<f64>,
    pub items_per_s: Option<f64>,
    /// For a serving member: the requests due in these epochs.
    pub latency: Option<Latency>,
    /// Loss of its last measured epoch.
    pub loss: Option<f64>,
    /// What its processes used; nothing of a thread of a process that others share.
    pub usage: Usage,
    /// SM activity of the instance that it has to itself, of all SMs of that instance.
    pub instance_sm_active_ratio: Option<f64>,
}

/// Energy by a counter, over the measured window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Energy {
    /// Joules per second.
    pub power_w: f64,
    /// Number of rises of the counter seen, and number of readings.
    pub steps: u32,
    pub readings: u32,
}

impl Energy {
    /// Relative standard deviation due to the counter's steps: each end of the window is anywhere within one. If a counter rose
    /// with every reading its steps are too short to be seen, and are part of the spread of the repetitions.
    pub fn quantisation(&self) -> f64 {
        let seen = f64::from(self.steps) < 0.9 * (f64::from(self.readings) - 1.0);
        if seen { (2.0f64 / 12.0).sqrt() / f64::from(self.steps.max(1)) } else { 0.0 }
    }
}

impl Repetition {
    /// Read a run of a machine with so many usable cores. It is discarded if it cannot be read, with the reason; it never fails the
    /// report.
    pub fn read(run: StoredRun, thresholds: &Thresholds, cores: u32) -> Self {
        let mut found = Repetition::unread(run);
        match found.run.table("epochs.parquet") {
            _ if found.damaged => {}
            Some(path) => match collo_store::read_epochs(&path) {
                Ok(read) => found.epochs = read,
                Err(e) => found.validity.lower(Verdict::Discarded, format!("its epochs cannot be read: {e}")),
            },
            None if found.completed() => found.validity.lower(Verdict::Discarded, "it has no epochs.parquet"),
            None => {}
        }
        if found.completed() && !found.damaged {
            found.take_times(thresholds);
            found.take_samples(Some(f64::from(cores)).filter(|cores| *cores > 0.0));
        }
        found
    }

    /// A run without its numbers: how it ended, and whether its files are the recorded ones.
    pub fn unread(run: StoredRun) -> Self {
        let mut validity = run.record.validity.clone();
        // Tables that are not the recorded ones say nothing, and their parts nothing either.
        let damage = run.damage();
        damage.iter().for_each(|what| validity.lower(Verdict::Discarded, format!("its {what}")));
        Repetition {
            members: vec![MemberNumbers::default(); run.record.members.len()],
            validity,
            process: None,
            epochs: Vec::new(),
            overlap_ratio: None,
            least_overlap_ratio: None,
            start_skew_s: None,
            makespan_s: None,
            measured: None,
            latency: None,
            energy: None,
            no_energy: None,
            idle_w: None,
            throttled_ratio: None,
            card_memory_bytes: None,
            trust: Trust::default(),
            metrics: BTreeMap::new(),
            damaged: !damage.is_empty(),
            device: 0,
            sitting: 0,
            run,
        }
    }

    /// The runs with which it shares the conditions of one time.
    pub fn block(&self) -> MeasuredBlock {
        (self.record().block, self.sitting)
    }

    fn completed(&self) -> bool {
        self.run.record.outcome == Outcome::Completed
    }

    /// The stored record.
    pub fn record(&self) -> &RunRecord {
        &self.run.record
    }

    /// True when its numbers may be shown.
    pub fn counts(&self) -> bool {
        self.completed() && self.validity.verdict != Verdict::Discarded
    }

    /// While every member trained.
    fn common_training(&self) -> Option<Window> {
        let members = &self.run.record.members;
        let start = members.iter().map(|m| m.training_start_ns).collect::<Option<Vec<_>>>()?.into_iter().max()?;
        let end = members.iter().map(|m| m.training_end_ns).collect::<Option<Vec<_>>>()?.into_iter().min()?;
        Window::new(start, end)
    }

    /// While any member trained.
    pub fn any_training(&self) -> Option<Window> {
        let members = &self.run.record.members;
        let start = members.iter().filter_map(|m| m.training_start_ns).min()?;
        Window::new(start, members.iter().filter_map(|m| m.training_end_ns).max()?)
    }

    /// From when `any` trained until the member of a scope no longer did; of what is no member's, until none did. It does not begin with
    /// the member's own start: PSS may be read as soon as all are released, and a member that starts a moment later would have none.
    fn training_of(&self, scope: &str, any: Window) -> Window {
        let member = member_of_scope(scope).and_then(|index| self.run.record.members.get(index));
        member.and_then(|m| Window::new(any.start_ns, m.training_end_ns?)).unwrap_or(any)
    }

    fn take_times(&mut self, thresholds: &Thresholds) {
        let record = &self.run.record;
        let starts: Vec<u64> = record.members.iter().filter_map(|m| m.training_start_ns).collect();
        // When a script without a barrier began to train is not known.
        let all_wait = record.members.iter().all(|m| m.barrier);
        if all_wait && starts.len() == record.members.len() && starts.len() > 1 {
            self.start_skew_s = starts.iter().max().zip(starts.iter().min()).map(|(a, b)| (a - b) as f64 * 1e-9);
        }
        let measured: Vec<EpochRecord> = self.epochs.iter().filter(|e| e.measured && e.end_ns > e.start_ns).cloned().collect();
        let last_end = measured.iter().map(|e| e.end_ns).max();
        // A foreign script is not held at the barrier: its clock starts with its first epoch.
        let go = record.timeline.go_ns.or_else(|| starts.iter().min().copied());
        if !self.serves() {
            self.makespan_s = go.zip(last_end).filter(|(a, b)| b > a).map(|(a, b)| (b - a) as f64 * 1e-9);
        }

        let common = self.common_training();
        let overlap = |e: &EpochRecord| {
            let Some(w) = common else { return 0.0 };
            let shared = e.end_ns.min(w.end_ns).saturating_sub(e.start_ns.max(w.start_ns));
            shared as f64 / (e.end_ns - e.start_ns) as f64
        };
        let known = record.members.iter().all(|m| m.training_start_ns.is_some() && m.training_end_ns.is_some());
        if known && !measured.is_empty() {
            let ratios: Vec<f64> = measured.iter().map(overlap).collect();
            self.overlap_ratio = Some(ratios.iter().sum::<f64>() / ratios.len() as f64);
            self.least_overlap_ratio = ratios.iter().copied().reduce(f64::min);
        }
        let release = record.cell.after_measured == AfterMeasured::Exit;
        let mut latest_start = 0;
        let mut spans = vec![Vec::new(); self.members.len()];
        for (index, member) in self.members.iter_mut().enumerate() {
            let own: Vec<&EpochRecord> = measured.iter().filter(|e| e.member as usize == index).collect();
            let (Some(first), Some(last)) = (own.first(), own.last()) else {
                latest_start = u64::MAX;
                continue;
            };
            latest_start = latest_start.max(first.start_ns);
            let counted: Vec<&&EpochRecord> =
                own.iter().filter(|e| !release || !known || overlap(e) >= thresholds.overlap_ratio).collect();
            if record.members[index].serving.is_some() {
                spans[index] = counted.iter().filter_map(|e| Window::new(e.start_ns, e.end_ns)).collect();
                continue;
            }
            member.loss = last.loss.filter(|l| l.is_finite());
            if counted.is_empty() {
                continue;
            }
            let seconds: f64 = counted.iter().map(|e| (e.end_ns - e.start_ns) as f64 * 1e-9).sum();
            member.epoch_s = Some(seconds / counted.len() as f64);
            let items: Option<Vec<u64>> = counted.iter().map(|e| e.items).collect();
            member.items_per_s = items.map(|i| i.iter().map(|n| *n as f64).sum::<f64>() / seconds);
        }
        let somebody_stops = self.run.record.members.iter().filter_map(|m| m.training_end_ns).min();
        self.measured = last_end.and_then(|end| Window::new(latest_start, end.min(somebody_stops.unwrap_or(end))));
        if self.serves() {
            self.take_requests(&spans);
        }
    }

    /// True where one of its members serves.
    pub fn serves(&self) -> bool {
        self.run.record.members.iter().any(|m| m.serving.is_some())
    }

    /// The requests of each serving member, by its measured spans, and those of all if they serve the same.
    fn take_requests(&mut self, spans: &[Vec<Window>]) {
        let Some(path) = self.run.table("requests.parquet") else {
            return self.validity.lower(Verdict::Indicative, "it has no requests.parquet");
        };
        let requests = match collo_store::read_requests(&path) {
            Ok(requests) => requests,
            Err(e) => return self.validity.lower(Verdict::Indicative, format!("its requests cannot be read: {e}")),
        };
        let mut of_all = Vec::new();
        let mut impossible = 0;
        for (index, (member, record)) in self.members.iter_mut().zip(&self.run.record.members).enumerate() {
            let Some(serving) = &record.serving else { continue };
            let own = Requests::of(requests.iter().filter(|r| r.member as usize == index), &spans[index], serving);
            impossible += own.impossible;
            member.latency = Some(own.summary());
            of_all.push((&record.spec, own));
        }
        if impossible > 0 {
            let n = collo_quantity::number::count(impossible, "request");
            self.validity.lower(Verdict::Indicative, format!("{n} answered before they were due, left out"));
        }
        if of_all.windows(2).all(|w| w[0].0 == w[1].0) {
            let alike: Vec<Requests> = of_all.into_iter().map(|(_, own)| own).collect();
            self.latency = Requests::pooled(&alike).map(|all| all.summary());
        }
    }

    fn take_samples(&mut self, cores: Option<f64>) {
        let path = self.run.table("samples.parquet");
        let summaries = match (self.any_training(), &path) {
            (Some(training), Some(path)) => {
                // Where no window is common to all, peaks still count; means over an empty window are absent.
                let measured = self.measured.unwrap_or(Window { start_ns: training.end_ns, end_ns: training.end_ns });
                // What cannot be read to be judged cannot be summed up either, which says so.
                self.trust = Trust::of(&self.run.record, path, training).unwrap_or_default();
                let training_of = |scope: &str| self.training_of(scope, training);
                samples::summarise(path, measured, training_of, &self.trust, cores).unwrap_or_else(|e| {
                    self.validity.lower(Verdict::Indicative, format!("its samples cannot be read: {e}"));
                    Summaries::new()
                })
            }
            _ => Summaries::new(),
        };
        for (index, member) in self.members.iter_mut().enumerate() {
            member.instance_sm_active_ratio = own_instance(&self.run.record, index)
                .and_then(|uuid| summaries.get(&(format!("mig:{uuid}"), "sm_active_ratio".to_string()))?.mean);
        }
        let on_a_card = self.run.record.device.kind == "gpu";
        // Samples that cannot be read have been reported.
        let peaks = self.any_training().zip(path.as_deref()).filter(|_| !on_a_card);
        let of = |(any, path)| samples::proportional_peaks(path, |scope| self.training_of(scope, any)).ok();
        let peaks = peaks.and_then(of).unwrap_or_default();
        self.take_usage(&summaries, &peaks);
        let whole_card = |((scope, metric), summary): (&(String, String), &samples::Summary)| {
            summary.peak.filter(|_| scope.starts_with("gpu:") && metric == "memory_used_bytes")
        };
        self.card_memory_bytes = summaries.iter().filter_map(whole_card).reduce(f64::max);
        match self.counted_energy(&summaries) {
            Ok(energy) => self.energy = Some(energy),
            Err(why) => self.no_energy = Some(why),
        }
        self.idle_w = path.and_then(|path| self.power_before(&path));
        let mut sums = BTreeMap::<String, (f64, u32)>::new();
        let mut add = |metric: String, value: Option<f64>| {
            if let Some(value) = value {
                let entry = sums.entry(metric).or_default();
                *entry = (entry.0 + value, entry.1 + 1);
            }
        };
        let of_the_card = summaries.iter().filter(|((scope, _), _)| !is_scope_of_a_part(scope));
        for ((_, metric), summary) in of_the_card.clone() {
            add(metric.clone(), summary.mean);
            if let Some(stem @ ("sm_active" | "sm_occupancy" | "dram_active")) = metric.strip_suffix("_ratio") {
                add(format!("{stem}_p95_ratio"), summary.p95);
            }
            match (metric.as_str(), summary.halves) {
                ("temperature_c", Some((early, late))) => add("temperature_drift_c".into(), Some(late - early)),
                ("sm_clock_mhz", Some((early, late))) if early > 0.0 => add("sm_clock_drift_ratio".into(), Some(late / early)),
                _ => {}
            }
        }
        let dram_w = summaries.get(&("host".into(), "dram_energy_j".into())).and_then(|s| s.per_second);
        add("dram_power_w".into(), dram_w);
        // The mean of a mask says nothing, nor does that of what was counted since the driver was loaded.
        sums.retain(|metric, _| metric != "throttle_reasons" && !metric.ends_with("energy_j"));
        self.metrics = sums.into_iter().map(|(metric, (sum, n))| (metric, sum / f64::from(n))).collect();
        self.throttled_ratio = of_the_card.filter_map(|(_, summary)| summary.throttled_ratio).reduce(f64::max);
    }

    /// The GPU's power before any member used it. Under MPS the server has its context on the GPU by then, so that the GPU is not idle.
    fn power_before(&mut self, path: &Path) -> Option<f64> {
        if self.run.record.device.kind != "gpu" || self.run.record.cell.mode.mps {
            return None;
        }
        // Samples that cannot be read have been said to be so.
        samples::idle_w(path, self.run.record.timeline.launched_ns, self.any_training()?.start_ns).ok().flatten()
    }

    /// What each member used, or the process that they share.
    fn take_usage(&mut self, summaries: &Summaries, peaks: &BTreeMap<String, f64>) {
        let record = &self.run.record;
        let on_a_card = record.device.kind == "gpu";
        if record.cell.mode.one_process {
            let kernel_bytes = record.process.as_ref().and_then(|process| process.peak_rss_bytes);
            let pss = peaks.get(PROCESS_SCOPE).copied();
            self.process = Some(Usage::of(summaries, PROCESS_SCOPE, pss, kernel_bytes, on_a_card));
            return;
        }
        for (index, (member, of)) in self.members.iter_mut().zip(&record.members).enumerate() {
            let scope = member_scope(index);
            let pss = peaks.get(&*scope).copied();
            member.usage = Usage::of(summaries, &scope, pss, of.peak_rss_bytes, on_a_card);
        }
        Usage::level(self.members.iter_mut().map(|member| &mut member.usage));
    }

    /// What the whole group used: its one process, or the sum over members; `None` if that was not read of all of them.
    pub fn used(&self, of: fn(&Usage) -> Option<f64>) -> Option<f64> {
        match &self.process {
            Some(process) => of(process),
            None => self.members.iter().map(|member| of(&member.usage)).sum(),
        }
    }

    /// Where its numbers of CPU and memory are from: the process, or each member.
    pub fn usages(&self) -> impl Iterator<Item = &Usage> {
        let members = self.members.iter().filter(|_| self.process.is_none()).map(|member| &member.usage);
        self.process.iter().chain(members)
    }

    pub fn usages_mut(&mut self) -> impl Iterator<Item = &mut Usage> {
        let alone = self.process.is_none();
        let members = self.members.iter_mut().filter(move |_| alone).map(|member| &mut member.usage);
        self.process.iter_mut().chain(members)
    }

    /// The energy of the measured window, or why it is not known.
    fn counted_energy(&self, summaries: &Summaries) -> Result<Energy, &'static str> {
        let device = &self.run.record.device;
        let metric = if device.kind == "gpu" { "energy_j" } else { "cpu_energy_j" };
        if device.persistence == Some(false) {
            // The driver may have left and come back between two readings, and the counter with it.
            return Err("without persistence mode the energy counter may restart between readings");
        }
        if self.measured.is_none() {
            return Err(NO_COMMON_TIME);
        }
        let counters = summaries.iter().filter(|((scope, m), _)| m == metric && !is_scope_of_a_part(scope));
        let most_readings = counters.clone().map(|(_, s)| s.readings).max();
        let read: Vec<(f64, u32, u32)> = counters.filter_map(|(_, s)| Some((s.per_second?, s.steps, s.readings))).collect();
        let Some(coarsest) = read.iter().min_by_key(|r| r.1) else {
            return Err(match most_readings {
                None => "no readable counter",
                Some(0 | 1) => "the measured window is too short for two readings of the energy counter",
                Some(_) => "the energy counter decreased in the measured window",
            });
        };
        Ok(Energy { power_w: read.iter().map(|r| r.0).sum(), steps: coarsest.1, readings: coarsest.2 })
    }

    /// The epoch times of its training members, summed; `None` if none trains, or one of them has none.
    pub fn training_s(&self) -> Option<f64> {
        let trains = self.members.iter().zip(&self.run.record.members).filter(|(_, record)| record.serving.is_none());
        trains.map(|(member, _)| member.epoch_s).sum::<Option<f64>>().filter(|s| *s > 0.0)
    }

    /// Epochs that all members together finish per second.
    pub fn epochs_per_s(&self) -> Option<f64> {
        self.members.iter().map(|m| m.epoch_s.map(|e| 1.0 / e)).sum::<Option<f64>>().filter(|e| *e > 0.0)
    }
}

/// Said of quantities of the measured window where there is none.
pub const NO_COMMON_TIME: &str = "at no time were all members training past their warm-up";

/// The instance that a member was given and has to itself.
fn own_instance(record: &RunRecord, member: usize) -> Option<&str> {
    record.device_of(member).filter(|device| record.cell.mode.isolated && device.starts_with("MIG-"))
}
