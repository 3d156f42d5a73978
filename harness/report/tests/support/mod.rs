//! Campaigns with a known truth, written through the store. In: cells with their true epoch times. Out: a campaign folder as
//! `collo run` would have left it. Noise is log-normal: one draw per run that all members share, one per member.

pub mod card;
pub mod exports;
#[path = "../../../store/tests/support/noted.rs"]
pub mod noted;
pub mod predictions;
#[path = "../../../quantity/tests/support/random.rs"]
pub mod random;
pub mod serving;
pub mod study;
pub mod threads;
pub mod traces;
pub mod watching;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use collo_store::{
    AfterMeasured, Attestation, BlockEdge, Campaign, CampaignFolder, CellRecord, Check, DeviceRecord, EpochRecord, Features,
    GpuRecord, Ingredient, Machine, MemberRecord, MemberSpec, Outcome, PROCESS_SCOPE, PlanRecord, PlannedRun, Predicted,
    ProcessRecord, Reference, RefusalRecord, RunRecord, Runs, SCHEMA, Sample, SamplingQuality, Shard, Sharing, Thresholds,
    Timeline, Validity, WantedWidth,
};

use card::{CardTruth, Life};
use random::Random;
use serving::Serves;

const GIB: f64 = 1073741824.0;

/// One cell: who trains, and the truth.
#[derive(Clone)]
pub struct Truth {
    pub record: CellRecord,
    /// True epoch time of each member, seconds.
    pub epoch_s: Vec<f64>,
    /// True footprint of each member, GiB.
    pub memory_gib: Vec<f64>,
    /// How a member serves; none for one that trains.
    pub serves: Vec<Option<Serves>>,
    pub outcome: Outcome,
    /// The cell's own noise per run, in the place of the campaign's.
    pub noise: Option<f64>,
    /// What the card does meanwhile; without it the campaign is on a CPU.
    pub card: Option<CardTruth>,
    /// Who watches, if the cell says so.
    pub watched: Option<watching::Watches>,
    /// Other metrics of the card, as shares at the true pace.
    pub shares: Vec<(&'static str, f64)>,
}

/// A campaign in the making.
#[derive(Clone)]
pub struct Fixture {
    pub id: String,
    pub name: String,
    pub cells: Vec<Truth>,
    pub repetitions: u32,
    pub epochs: u32,
    pub shared_noise: f64,
    pub member_noise: f64,
    pub seed: u64,
    pub device: DeviceRecord,
    /// Its GPUs, as found.
    pub gpus: Vec<GpuRecord>,
    pub synthetic: Option<bool>,
    /// The regime that members tell of in their hello.
    pub regime: serde_json::Value,
    /// The real data came in the middle of the campaign.
    pub real_from_block: Option<u32>,
    pub limit_batches: Option<u64>,
    pub samples_hz: f64,
    /// Further metrics per member, to make a campaign large.
    pub extra_metrics: usize,
    /// Power behind the energy counter; without it there is none.
    pub power_w: Option<f64>,
    /// What the whole machine moves into its GPU; without it that is not read.
    pub pcie_rx_bytes_per_s: Option<f64>,
    /// Runs are measured for a time instead of an amount of work.
    pub measure_for_s: Option<f64>,
    /// Cores that somebody else uses all the time.
    pub others_cores: f64,
    pub refusals: Vec<RefusalRecord>,
    pub thresholds: Thresholds,
    pub references: Vec<Reference>,
    pub until: Option<WantedWidth>,
    pub shard: Option<Shard>,
    /// Multiplies each epoch after the first of a run once more.
    pub growth: f64,
    pub indicative: Vec<String>,
    /// Multiplies every epoch of a closing baseline.
    pub drift: f64,
    /// From the first run to the last everything becomes so much slower, evenly.
    pub ramp: f64,
    /// Cells on instances have blocks of their own, between blocks with baselines.
    pub instances_apart: bool,
    /// Standard deviation of a change of pace between any two runs of a block.
    pub jitter: f64,
    /// A block in which everything takes so many times as long.
    pub slow_block: Option<(u32, f64)>,
    /// A run of a cell, by its repetition, that takes so many times as long.
    pub odd_run: Option<(&'static str, u32, f64)>,
    /// What members that exit hold more once they have trained, as while they write a checkpoint, GiB.
    pub more_when_done_gib: f64,
    /// Stop writing runs after so many.
    pub stop_after: usize,
    pub baselines: bool,
    /// What was predicted of the members before.
    pub predicted: Option<Predicted>,
    /// A trace under several policies, after the cells.
    pub trace: Option<traces::TraceTruth>,
    /// Samples written so far.
    pub written: std::cell::Cell<u64>,
}

pub fn spec(workload: &str, batch: u32) -> MemberSpec {
    let solo = format!("{workload} solo b{batch}");
    MemberSpec { workload: workload.into(), batch_size: Some(batch), settings: BTreeMap::new(), solo }
}

impl Fixture {
    pub fn named(name: &str) -> Self {
        Fixture {
            id: "20261120-1842-7f3a".into(),
            name: name.into(),
            cells: Vec::new(),
            repetitions: 3,
            epochs: 2,
            shared_noise: 0.01,
            member_noise: 0.004,
            seed: 42,
            device: DeviceRecord {
                name: "cpu".into(),
                kind: "cpu".into(),
                simulated: false,
                memory_bytes: Some(24 << 30),
                cores: Some(2),
                quota_cores: None,
                persistence: None,
            },
            gpus: Vec::new(),
            synthetic: Some(true),
            regime: serde_json::Value::Null,
            real_from_block: None,
            limit_batches: None,
            samples_hz: 10.0,
            extra_metrics: 0,
            power_w: None,
            pcie_rx_bytes_per_s: None,
            measure_for_s: None,
            others_cores: 0.02,
            refusals: Vec::new(),
            thresholds: Thresholds::default(),
            references: Vec::new(),
            until: None,
            shard: None,
            growth: 1.0,
            indicative: Vec::new(),
            drift: 1.0,
            ramp: 0.0,
            instances_apart: false,
            jitter: 0.0,
            slow_block: None,
            odd_run: None,
            more_when_done_gib: 0.0,
            stop_after: usize::MAX,
            baselines: true,
            predicted: None,
            trace: None,
            written: std::cell::Cell::new(0),
        }
    }

    /// The campaign of the first contact: one workload alone, twice and three times on two cores.
    pub fn quickstart() -> Self {
        Fixture::named("quickstart")
            .solo("tiny", 32, 1.57)
            .group("tiny", 32, 2, "naive", 1.60)
            .group("tiny", 32, 3, "naive", 2.45)
    }

    pub fn solo(mut self, workload: &str, batch: u32, epoch_s: f64) -> Self {
        let spec = spec(workload, batch);
        let label = spec.solo.clone();
        self.cells.push(truth(label, "solo", vec![spec], vec![epoch_s], vec![0.75]));
        self
    }

    pub fn group(mut self, workload: &str, batch: u32, degree: u32, sharing: &str, epoch_s: f64) -> Self {
        let members = vec![spec(workload, batch); degree as usize];
        let label = format!("{workload}×{degree} {sharing} b{batch}");
        let n = degree as usize;
        self.cells.push(truth(label, sharing, members, vec![epoch_s; n], vec![0.6; n]));
        self
    }

    /// Two different members that leave when they are done.
    pub fn mixed(mut self, a: (&str, f64), b: (&str, f64), sharing: &str, after: &str) -> Self {
        let members = vec![spec(a.0, 32), spec(b.0, 32)];
        let mut cell = truth(format!("{}+{} {sharing} b32", a.0, b.0), sharing, members, vec![a.1, b.1], vec![0.7, 0.9]);
        cell.record.after_measured = AfterMeasured::parse(after).expect("a word");
        self.cells.push(cell);
        self
    }

    /// A group on a card: each member's workload and true epoch time, what the card does meanwhile, and the noise of a run.
    pub fn on_card(mut self, sharing: &str, members: &[(&str, f64)], card: CardTruth, noise: f64) -> Self {
        let alike = members.iter().all(|m| m.0 == members[0].0);
        let names: Vec<&str> = members.iter().map(|m| m.0).collect();
        let who = if alike { format!("{}×{}", names[0], names.len()) } else { names.join("+") };
        let label = if sharing == "solo" { format!("{who} solo b32").replace("×1", "") } else { format!("{who} {sharing} b32") };
        let specs = members.iter().map(|m| spec(m.0, 32)).collect();
        let mut cell = truth(label, sharing, specs, members.iter().map(|m| m.1).collect(), vec![1.0; members.len()]);
        (cell.card, cell.noise) = (Some(card), Some(noise));
        self.cells.push(cell);
        self
    }

    pub fn ends(mut self, outcome: Outcome) -> Self {
        self.cells.last_mut().expect("a cell before its outcome").outcome = outcome;
        self
    }

    /// The footprint of each member of the last cell.
    pub fn holding(mut self, memory_gib: f64) -> Self {
        self.cells.last_mut().expect("a cell before its memory").memory_gib.fill(memory_gib);
        self
    }

    pub fn repetitions(mut self, n: u32) -> Self {
        self.repetitions = n;
        self
    }

    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    fn plan(&self) -> PlanRecord {
        let solo = |c: &Truth| c.record.baseline;
        let kept: Vec<Truth> = self.cells.iter().filter(|c| self.baselines || !solo(c)).cloned().collect();
        let mut order = Vec::new();
        let mut counts = vec![0; kept.len()];
        let before = self.repetitions.div_ceil(2) as usize;
        let mut states = vec![None; self.repetitions as usize];
        if self.instances_apart {
            states.fill(Some(false));
            states.splice(before..before, vec![Some(true); self.repetitions as usize]);
        }
        for (block, state) in (1..).zip(states) {
            let mut push = |cell: usize, edge| {
                counts[cell] += 1;
                order.push(PlannedRun { block, cell, repetition: counts[cell], edge, card: None });
            };
            let is_here = |i: &usize| state.is_none_or(|on| on == kept[*i].record.mode.partitioned);
            let (solos, groups): (Vec<usize>, Vec<usize>) = (0..kept.len()).filter(is_here).partition(|&i| solo(&kept[i]));
            solos.iter().for_each(|&i| push(i, Some(BlockEdge::Opens)));
            groups.into_iter().for_each(|i| push(i, None));
            solos.iter().for_each(|&i| push(i, Some(BlockEdge::Closes)));
        }
        let of_groups = kept.iter().zip(&counts).map(|(c, n)| CellRecord { repetitions: *n, ..c.record.clone() });
        let of_trace = self.trace.iter().flat_map(|trace| trace.cells());
        let cells: Vec<CellRecord> = of_groups.chain(of_trace).collect();
        for (cell, of) in cells.iter().enumerate().skip(kept.len()) {
            let runs = (1..=of.repetitions).map(|repetition| PlannedRun { block: 1, cell, repetition, edge: None, card: None });
            order.extend(runs);
        }
        let (measure_for_s, refusals) = (self.measure_for_s, self.refusals.clone());
        PlanRecord { seed: self.seed, epochs: self.epochs, measure_for_s, cells, order, refusals }
    }

    /// Write the campaign under `root`.
    pub fn write(&self, root: &Path) -> CampaignFolder {
        let plan = self.plan();
        let manifest = Campaign {
            schema: SCHEMA,
            id: self.id.clone(),
            experiment: self.name.clone(),
            description: Some("One small network, alone, twice and three times on the same cores".into()),
            tags: vec![],
            created_utc: "2026-11-20T18:42:09Z".into(),
            source_toml: format!("schema = 1\nname = \"{}\"\n", self.name),
            thresholds: self.thresholds.clone(),
            references: self.references.clone(),
            until: self.until.clone(),
            plan: plan.clone(),
            predicted: self.predicted.clone(),
            device: self.device.clone(),
            machine: Machine { gpus: self.gpus.clone(), ..machine() },
            ingredients: BTreeMap::from([(
                "workloads/tiny".into(),
                Ingredient { sha256: "ab".repeat(32), version: Some("git 4e1a9c2".into()) },
            )]),
            indicative: self.indicative.clone(),
            shard: self.shard,
            origins: Vec::new(),
            surroundings: None,
            filing: Default::default(),
        };
        let campaign = Runs::at(root).create(manifest).expect("a fresh folder");
        let mut journal = campaign.journal().expect("a journal");
        journal.opened(plan.order.len() as u32).expect("a journal line");
        let mut random = Random::seeded(self.seed);
        let mut clock_ns = 1_000_000_000_000;
        for planned in plan.order.iter().take(self.stop_after) {
            let cell = &plan.cells[planned.cell];
            if let Some(trace) = self.trace.as_ref().filter(|_| cell.trace.is_some()) {
                let folder = plan.folder(planned);
                clock_ns = trace.write_run(&campaign, &folder, (planned, cell), &self.device, clock_ns) + 200_000_000;
                continue;
            }
            let truth = self.cells.iter().find(|t| t.record.cell == cell.cell).expect("a planned cell has a truth");
            clock_ns = self.write_run(&campaign, &plan, planned, truth, &mut random, clock_ns) + 200_000_000;
        }
        campaign
    }

    fn write_run(
        &self,
        campaign: &CampaignFolder,
        plan: &PlanRecord,
        planned: &PlannedRun,
        truth: &Truth,
        random: &mut Random,
        launched_ns: u64,
    ) -> u64 {
        let ns = |s: f64| (s * 1e9) as u64;
        let cell = &plan.cells[planned.cell];
        let completed = truth.outcome == Outcome::Completed;
        let drift = if planned.edge == Some(BlockEdge::Closes) { self.drift } else { 1.0 };
        let drift = drift * self.slow_block.filter(|(block, _)| *block == planned.block).map_or(1.0, |(_, times)| times);
        let place = plan.order.iter().position(|run| run == planned).unwrap_or(0);
        let drift = drift * (1.0 + self.ramp * place as f64 / plan.order.len() as f64);
        let is_odd = |odd: &(&str, u32, f64)| odd.0 == cell.cell && odd.1 == planned.repetition;
        let drift = drift * self.odd_run.filter(is_odd).map_or(1.0, |(.., times)| times);
        let drift = if self.jitter > 0.0 { drift * random.log_normal(self.jitter) } else { drift };
        let shared = random.log_normal(truth.noise.unwrap_or(self.shared_noise)) * drift;
        let go = launched_ns + ns(3.0);
        let mut epochs = Vec::new();
        let (mut starts, mut dones) = (Vec::new(), Vec::new());
        for (member, epoch_s) in truth.epoch_s.iter().enumerate() {
            let start = go + ns(0.0001 + 0.0003 * random.uniform());
            let mut at = start;
            for index in 0..self.epochs {
                let warm_up = if index == 0 { 1.1 } else { 1.0 };
                let noise = shared * warm_up * self.growth.powi(index as i32) * random.log_normal(self.member_noise);
                // The epochs of a member that serves are as long as they are set.
                let end = at + ns(epoch_s * if truth.serves[member].is_some() { 1.0 } else { noise });
                let measured = index > 0 || self.epochs == 1;
                let loss = Some(2.3 - 0.2 * f64::from(index)).filter(|_| truth.serves[member].is_none());
                let items = Some(1024);
                epochs.push(EpochRecord { member: member as u32, index, measured, items, start_ns: at, end_ns: end, loss });
                at = end;
            }
            starts.push(start);
            dones.push(at);
        }
        let done = *dones.iter().max().expect("a member");
        let ended = done + ns(0.3);
        let hold = cell.after_measured == AfterMeasured::KeepRunning;
        let trained_until = |i: usize| if hold { done + ns(0.01) } else { dones[i] };
        let draft = campaign.begin(&plan.folder(planned)).expect("a draft");
        let mut samples = draft.samples().expect("a sample writer");
        if completed {
            let ends: Vec<u64> = (0..starts.len()).map(trained_until).collect();
            let rows = match &truth.card {
                Some(card) => {
                    let first = |e: &&EpochRecord| e.measured && e.index <= 1;
                    let measured = epochs.iter().filter(first).map(|e| e.start_ns).max().expect("a measured epoch");
                    let life = Life {
                        launched_ns,
                        starts: &starts,
                        measured_ns: measured,
                        ends: &ends,
                        ended_ns: ended,
                        pace: 1.0 / shared,
                        memory_gib: &truth.memory_gib,
                    };
                    let mut rows = card.samples(&life, self.samples_hz, random);
                    // Read with the SM activity, and at the same pace.
                    let active = |s: &&Sample| s.metric == "sm_active_ratio" && s.scope.starts_with("gpu:");
                    let other = |s: &Sample, (metric, share): &(&'static str, f64)| Sample {
                        metric,
                        value: s.value.map(|read| (read / card.sm_active_ratio * share).min(1.0)),
                        ..s.clone()
                    };
                    let others: Vec<Sample> =
                        rows.iter().filter(active).flat_map(|s| truth.shares.iter().map(move |of| other(s, of))).collect();
                    rows.extend(others);
                    rows
                }
                None => self.samples(truth, &starts, &ends),
            };
            let rows = if cell.mode.one_process { of_one_process(rows) } else { rows };
            self.written.set(self.written.get() + rows.len() as u64);
            samples.write(&rows).expect("samples");
        }
        samples.finish().expect("samples");
        let synthetic = if self.real_from_block.is_some_and(|from| planned.block >= from) { Some(false) } else { self.synthetic };
        let hello = serde_json::json!({"event":"hello","protocol":1,"pid":123,"device":"cpu","threads":1,
            "versions":{"python":"3.11.7","torch":"2.14.1"},"model":{"name":"resnet8","parameters":180000},
            "dataset":{"name":"CIFAR-10","synthetic":synthetic,"items":1024},"regime":self.regime});
        let members = truth.record.members.iter().enumerate().map(|(i, spec)| MemberRecord {
            spec: spec.clone(),
            command: Vec::new(),
            pid: Some(if cell.mode.one_process { 4000 } else { 4000 + i as u32 }),
            slice: cell.sharing.strip_prefix("mig:").map(str::to_string),
            barrier: true,
            hello: Some(hello.clone()),
            synthetic,
            limit_batches: self.limit_batches,
            serving: truth.serves[i].as_ref().filter(|_| completed).map(|s| s.record(shared)),
            features: Some(Features {
                batch_size: Some(32),
                parameters: Some(175_258),
                model_mb: Some(0.703),
                flops_per_item: Some(25.6e6),
                activations_per_item: Some(0.4e6),
                layers: [("Conv2d".to_string(), 15), ("Linear".to_string(), 1)].into(),
                sequence: None,
            }),
            ready_ns: Some(go - 1000),
            training_start_ns: completed.then(|| starts[i]),
            training_end_ns: completed.then(|| trained_until(i)),
            exit: Some("exited with 0".into()),
            cpu_time_s: Some(3.0 * truth.watched.as_ref().map_or(1.0, |w| w.members_cpu)).filter(|_| !cell.mode.one_process),
            peak_rss_bytes: Some((truth.memory_gib[i] * 1.4 * GIB) as u64).filter(|_| !cell.mode.one_process),
            allocated_bytes: None,
            reserved_bytes: None,
            warm_up_allocated_bytes: None,
            warm_up_reserved_bytes: None,
            orphans: vec![],
            log_tail: vec![],
            proposed_epochs: None,
        });
        let found = Some("1.5 s".into());
        let checks =
            vec![Check { what: "cpu time in the window".into(), member: Some(0), asked: "some".into(), found, holds: true }];
        let record = RunRecord {
            schema: SCHEMA,
            experiment: self.name.clone(),
            campaign: self.id.clone(),
            cell: cell.clone(),
            repetition: planned.repetition,
            block: planned.block,
            device: self.device.clone(),
            started_utc: "2026-11-20T18:42:10Z".into(),
            timeline: if matches!(truth.outcome, Outcome::NotStaged { .. }) {
                Timeline::default()
            } else {
                Timeline {
                    launched_ns,
                    ready_ns: Some(go - 1000),
                    go_ns: Some(go),
                    done_ns: completed.then_some(done),
                    ended_ns: ended,
                }
            },
            outcome: truth.outcome.clone(),
            validity: Validity::valid(),
            attestation: Attestation::from_checks(checks),
            members: members.collect(),
            // Where nobody watches, not even collo samples.
            sampling: vec![SamplingQuality {
                source: "proc".into(),
                asked_hz: self.samples_hz,
                achieved_hz: Some(self.samples_hz * 0.999),
                ticks: 60,
                missed: 0,
                longest_gap_s: Some(0.11),
                lateness_p50_s: Some(0.00005),
                lateness_p99_s: Some(0.0004),
                lateness_max_s: Some(0.003),
                cpu_ratio: Some(0.002),
                absent: BTreeMap::new(),
                unread_lines: 0,
                xids: Vec::new(),
                remarks: Vec::new(),
                instrument: None,
                moved_ratio: BTreeMap::from([("cpu_ratio".into(), 0.97)]),
            }]
            .into_iter()
            .filter(|_| cell.observe.as_deref() != Some(collo_store::NOBODY_WATCHES))
            .collect(),
            ingredients: BTreeMap::new(),
            failed_attempts: Vec::new(),
            process: cell.mode.one_process.then(|| ProcessRecord {
                command: vec!["python".into(), "collo_host.py".into()],
                pid: Some(4000),
                exit: Some("exited with 0".into()),
                cpu_time_s: Some(3.0 * truth.epoch_s.len() as f64),
                peak_rss_bytes: Some((truth.memory_gib.iter().sum::<f64>() * 1.4 * GIB) as u64),
                orphans: Vec::new(),
            }),
            cooling: None,
            throttling: None,
            trace: None,
            observer: truth.watched.as_ref().map(|watches| {
                let measured = || epochs.iter().filter(|epoch| epoch.measured);
                let from = measured().map(|epoch| epoch.start_ns).min().unwrap_or(go);
                let to = measured().map(|epoch| epoch.end_ns).max().unwrap_or(done);
                watches.record(watching::Moments { whole: (launched_ns, ended), watched: (go, done), measured: (from, to) })
            }),
            files: BTreeMap::new(),
        };
        let epochs = if completed { epochs } else { Vec::new() };
        let mut requests = Vec::new();
        for (i, serves) in truth.serves.iter().enumerate().filter(|_| completed) {
            if let Some(serves) = serves {
                requests.extend(serves.requests(i as u32, (starts[i], trained_until(i)), shared, random));
            }
        }
        draft.commit(record, &epochs, &requests).expect("a run in place");
        ended
    }

    fn samples(&self, truth: &Truth, starts: &[u64], ends: &[u64]) -> Vec<Sample> {
        const EXTRA: [&str; 8] =
            ["peak_rss_bytes", "threads", "processes", "extra_a", "extra_b", "extra_c", "extra_d", "extra_e"];
        let period = (1e9 / self.samples_hz) as u64;
        let (first, last) = (starts.iter().min().expect("a member"), ends.iter().max().expect("a member"));
        let n = starts.len() as f64;
        // What others compute all the time is not there for members.
        let all_cores = f64::from(self.device.cores.unwrap_or(2));
        let cores = if self.others_cores > 0.1 { all_cores - self.others_cores } else { all_cores };
        let mut out = Vec::new();
        let host: Arc<str> = "host".into();
        let scopes: Vec<Arc<str>> = (0..starts.len()).map(|i| format!("member:{i}").into()).collect();
        let mut at = *first;
        while at <= *last {
            let t = (at - first) as f64 * 1e-9;
            // It has grown before its proportional memory is read.
            let grown_s = t.min(0.4 * (last - first) as f64 * 1e-9);
            let ramp = 1.0 - 0.3 * (-2.0 * grown_s).exp();
            for (i, scope) in scopes.iter().enumerate() {
                let mut put = |window_ns, metric, value| {
                    out.push(Sample { at_ns: at, window_ns, source: "proc", scope: scope.clone(), metric, value });
                };
                if at < starts[i] || at > ends[i] {
                    let is_held = at > ends[i] && self.more_when_done_gib > 0.0;
                    let held = |factor: f64| Some((truth.memory_gib[i] * factor + self.more_when_done_gib) * GIB);
                    for (metric, factor) in
                        [("rss_bytes", 1.3), ("rss_at_pss_bytes", 1.3), ("pss_bytes", 1.0)].into_iter().filter(|_| is_held)
                    {
                        put(0, metric, held(factor));
                    }
                    continue;
                }
                let share = (cores / n).min(0.99) * (1.0 + 0.02 * (9.0 * t + i as f64).sin());
                put(period, "cpu_ratio", Some(share));
                put(0, "rss_bytes", Some(truth.memory_gib[i] * 1.3 * ramp * GIB));
                put(0, "read_bytes", Some(1e6 * t));
                put(0, "involuntary_context_switches", Some(40.0 * t * n));
                for metric in EXTRA.iter().take(self.extra_metrics) {
                    put(0, metric, Some(t));
                }
            }
            let mut put = |metric, value| {
                out.push(Sample { at_ns: at, window_ns: period, source: "proc", scope: host.clone(), metric, value });
            };
            let own: f64 = (cores / n).min(0.99) * n;
            put("cpu_ratio", Some(own + self.others_cores));
            put("cpu_pressure_some_ratio", Some((n / all_cores - 0.9).max(0.02) / 2.0));
            put("cpu_frequency_mhz", None);
            if let Some(rate) = self.pcie_rx_bytes_per_s {
                put("pcie_rx_bytes_per_s", Some(rate));
            }
            if let Some(watts) = self.power_w {
                put("cpu_energy_j", Some(1e4 + watts * t));
            }
            at += period;
        }
        for (i, scope) in scopes.iter().enumerate() {
            let middle = (starts[i] + ends[i]) / 2;
            for (metric, factor) in [("rss_at_pss_bytes", 1.3), ("pss_bytes", 1.0)] {
                let value = Some(truth.memory_gib[i] * factor * GIB);
                out.push(Sample { at_ns: middle, window_ns: 0, source: "proc", scope: scope.clone(), metric, value });
            }
        }
        out
    }
}

/// The samples of members added up at each moment: what is read of the one process that they are threads of.
pub fn of_one_process(samples: Vec<Sample>) -> Vec<Sample> {
    let (of_members, mut others): (Vec<Sample>, Vec<Sample>) = samples.into_iter().partition(|s| s.scope.starts_with("member:"));
    let mut sums = BTreeMap::<(u64, &'static str, &'static str), Sample>::new();
    for sample in of_members {
        // Read once of each member, in the middle of its life.
        let is_slow = ["rss_at_pss_bytes", "pss_bytes", "gpu_memory_bytes"].contains(&sample.metric);
        let moment = if is_slow { 0 } else { sample.at_ns };
        let sum = sums.entry((moment, sample.source, sample.metric)).or_insert_with(|| Sample {
            scope: PROCESS_SCOPE.into(),
            value: None,
            ..sample.clone()
        });
        sum.value = sum.value.into_iter().chain(sample.value).reduce(|a, b| a + b);
    }
    others.extend(sums.into_values());
    others.sort_by_key(|s| s.at_ns);
    others
}

pub fn truth(label: String, sharing: &str, members: Vec<MemberSpec>, epoch_s: Vec<f64>, memory_gib: Vec<f64>) -> Truth {
    let solo = sharing == "solo";
    let mut against: Vec<String> = members.iter().map(|m| m.solo.clone()).collect();
    against.dedup();
    let slug = label.to_lowercase().replace(' ', "_").replace('×', "x").replace([':', ',', '<', '>', '/'], ".");
    let record = CellRecord {
        slug: format!("{slug}~0000"),
        cell: label,
        sharing: sharing.into(),
        mode: Sharing::of_label(sharing),
        degree: members.len() as u32,
        members,
        baseline: solo,
        against: if solo { vec![] } else { against },
        repetitions: 0,
        after_measured: AfterMeasured::KeepRunning,
        slots: None,
        alone_on_slice: Vec::new(),
        expect: None,
        trace: None,
        observe: None,
    };
    let serves = vec![None; epoch_s.len()];
    Truth {
        record,
        epoch_s,
        memory_gib,
        serves,
        outcome: Outcome::Completed,
        noise: None,
        card: None,
        watched: None,
        shares: Vec::new(),
    }
}

fn machine() -> Machine {
    Machine {
        hostname: Some("bench".into()),
        kernel: Some("6.1.0".into()),
        os: Some("Debian GNU/Linux 12".into()),
        cpu_model: Some("Some CPU".into()),
        cpu_cores: 2,
        cpu_threads_per_core: Some(1),
        numa_nodes: Some(1),
        memory_bytes: 24 << 30,
        governor: None,
        virtualization: Some("kvm".into()),
        load_1min: Some(0.1),
        git: Some("4e1a9c2".into()),
        collo: "0.1.0".into(),
        build: "dev".into(),
        driver: None,
        cuda: None,
        gpus: Vec::new(),
        python: BTreeMap::from([("torch".into(), "2.14.1".into())]),
        withheld: Vec::new(),
    }
}

/// As if a run had been measured again in a later sitting, a week after the others.
pub fn measure_again(campaign: &CampaignFolder, folder: &str) {
    let record = campaign.path().join(folder).join("run.json");
    let mut run: serde_json::Value = serde_json::from_slice(&std::fs::read(&record).expect("there")).expect("JSON");
    run["started_utc"] = "2026-11-27T18:42:10Z".into();
    std::fs::write(&record, run.to_string()).expect("written");
    let journal = campaign.path().join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).expect("there");
    let is_moved = |line: &&str| line.contains("\"recorded\"") && line.contains(&format!("\"{folder}\""));
    let (moved, mut kept): (Vec<&str>, Vec<&str>) = text.lines().partition(is_moved);
    let opened = *kept.iter().find(|line| line.contains("\"opened\"")).expect("it was started");
    kept.push(opened);
    kept.extend(moved);
    std::fs::write(&journal, kept.join("\n") + "\n").expect("written");
    noted::noted(campaign.path());
}
