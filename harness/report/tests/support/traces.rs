//! Traces with a known truth. In: tasks, policies and how they behave. Out: cells and runs as `collo run` stores them. A policy is a
//! number of slots per card and a pace: with one slot and a burst of arrivals its total is that of `exclusive` times the pace.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_store::{
    AfterMeasured, AttemptRecord, Attestation, AttestationVerdict, CampaignFolder, CellRecord, Check, DecisionRecord,
    DeviceRecord, EpochRecord, MemberRecord, MemberSpec, Outcome, PlannedRun, RunRecord, SCHEMA, Sample, SeenCard, Sharing,
    TaskEnd, TaskRecord, Timeline, TraceCard, TraceCell, TraceRecord, Validity, write_trace,
};

use super::random::Random;
use super::spec;

const S: f64 = 1e9;
const GIB: f64 = 1073741824.0;
/// What one more resident costs each.
const COMPANY: f64 = 0.3;

/// A policy, and the truth about it.
#[derive(Clone)]
pub struct PolicyTruth {
    pub policy: &'static str,
    pub estimate: &'static str,
    pub sharing: &'static str,
    pub slots: usize,
    /// Multiplies every execution.
    pub pace: f64,
    /// Attempts that run out of memory, by order; the last goes on for the others.
    pub out_of_memory: Vec<usize>,
    pub validity: Validity,
    /// The task that fails for good.
    pub fails: Option<u32>,
}

/// A trace under several policies.
#[derive(Clone)]
pub struct TraceTruth {
    pub name: &'static str,
    pub orders: Vec<u64>,
    pub repetitions: u32,
    pub cards: u32,
    pub scale: u32,
    /// Workload, seconds of an epoch alone, epochs, and how many such tasks.
    pub tasks: Vec<(&'static str, f64, u32, usize)>,
    pub gap_s: f64,
    pub policies: Vec<PolicyTruth>,
    /// Of executions, common to a run: it differs between repeats.
    pub noise: f64,
    /// Of a policy's executions in an order, common to its repeats.
    pub spread: f64,
    /// Whether cards are sets of two cores.
    pub on_cores: bool,
    /// Cards without an energy counter.
    pub uncounted: Vec<u32>,
    /// Whether its workloads say when an epoch begins and ends.
    pub tells_epochs: bool,
    /// Multiplies every execution but those of `exclusive`: another night.
    pub night: f64,
}

impl PolicyTruth {
    pub fn of(policy: &'static str, estimate: &'static str, sharing: &'static str, slots: usize, pace: f64) -> Self {
        PolicyTruth { policy, estimate, sharing, slots, pace, out_of_memory: vec![0], validity: Validity::valid(), fails: None }
    }

    pub fn out_of_memory(mut self, by_order: &[usize]) -> Self {
        self.out_of_memory = by_order.to_vec();
        self
    }
}

impl TraceTruth {
    /// Tasks that all arrive at once, so that totals are proportional to paces.
    pub fn burst(orders: u64) -> Self {
        TraceTruth {
            name: "burst",
            orders: (1..=orders).collect(),
            repetitions: 1,
            cards: 2,
            scale: 1,
            tasks: vec![("tiny", 1.6, 4, 6), ("large", 4.0, 3, 4)],
            gap_s: 0.0,
            policies: vec![PolicyTruth::of("exclusive", "none", "naive", 1, 1.0)],
            noise: 0.0,
            spread: 0.0,
            on_cores: false,
            uncounted: Vec::new(),
            tells_epochs: true,
            night: 1.0,
        }
    }

    pub fn policy(mut self, policy: PolicyTruth) -> Self {
        self.policies.push(policy);
        self
    }

    fn specs(&self, order: u64) -> Vec<(MemberSpec, f64, u32)> {
        let of = |(workload, epoch_s, epochs, n): &(&str, f64, u32, usize)| vec![(spec(workload, 32), *epoch_s, *epochs); *n];
        let mut tasks: Vec<_> = self.tasks.iter().flat_map(of).collect();
        let mut random = Random::seeded(order);
        for i in (1..tasks.len()).rev() {
            tasks.swap(i, (random.uniform() * (i + 1) as f64) as usize);
        }
        tasks
    }

    /// Its cells: every order under every policy.
    pub fn cells(&self) -> Vec<CellRecord> {
        let each = self.orders.iter().flat_map(|order| self.policies.iter().map(move |p| (*order, p)));
        each.map(|(order, policy)| self.cell(order, policy)).collect()
    }

    fn cell(&self, order: u64, policy: &PolicyTruth) -> CellRecord {
        let members: Vec<MemberSpec> = self.specs(order).into_iter().map(|task| task.0).collect();
        let mut against: Vec<String> = members.iter().map(|m| m.solo.clone()).collect();
        against.sort();
        against.dedup();
        let estimate = if policy.estimate == "none" { String::new() } else { format!(" {}", policy.estimate) };
        let cell = format!("{}/{order} {}{estimate} {} ×{}", self.name, policy.policy, policy.sharing, self.cards);
        let slug = cell.to_lowercase().replace(' ', "_").replace('×', "x").replace(['/', ':', '=', '%', ','], ".");
        CellRecord {
            slug: format!("{slug}~0000"),
            sharing: policy.sharing.into(),
            mode: Sharing::of_label(policy.sharing),
            degree: members.len() as u32,
            baseline: false,
            against,
            repetitions: self.repetitions,
            after_measured: AfterMeasured::Exit,
            slots: None,
            alone_on_slice: Vec::new(),
            expect: None,
            observe: None,
            trace: Some(TraceCell {
                trace: self.name.into(),
                order,
                policy: policy.policy.into(),
                estimate: policy.estimate.into(),
                scale: self.scale,
                cards: self.cards,
                tasks: members.len() as u32,
            }),
            members,
            cell,
        }
    }

    fn cards(&self) -> Vec<TraceCard> {
        let card = |i: u32| match self.on_cores {
            true => TraceCard {
                scope: format!("cores:{}-{}", 2 * i, 2 * i + 1),
                name: format!("cores {}-{}", 2 * i, 2 * i + 1),
                cores: vec![2 * i, 2 * i + 1],
                capacity_bytes: 8 << 30,
            },
            false => {
                TraceCard { scope: format!("gpu:GPU-{i}"), name: format!("GPU {i}"), cores: Vec::new(), capacity_bytes: 40 << 30 }
            }
        };
        (0..self.cards).map(card).collect()
    }

    /// Write one run; returns when it ended.
    pub fn write_run(
        &self,
        campaign: &CampaignFolder,
        folder: &str,
        (planned, cell): (&PlannedRun, &CellRecord),
        device: &DeviceRecord,
        launched_ns: u64,
    ) -> u64 {
        let of = cell.trace.clone().expect("a cell of a trace");
        let policy = self
            .policies
            .iter()
            .find(|p| p.policy == of.policy && p.estimate == of.estimate && p.sharing == cell.sharing)
            .expect("a policy of the truth");
        let named: u64 = policy.policy.bytes().chain(policy.sharing.bytes()).map(u64::from).sum();
        let mut common = Random::seeded(of.order * 7919 + named);
        let mut own = Random::seeded(of.order * 104_729 + u64::from(planned.repetition) * 13 + cell.slug.len() as u64);
        let exact = policy.policy == "exclusive";
        let others = if exact { 1.0 } else { self.night * common.log_normal(self.spread) };
        let pace = policy.pace * others * own.log_normal(self.noise);
        let began_ns = launched_ns + (2.0 * S) as u64;
        let played = self.play(policy, pace, of.order, began_ns);
        let ended_ns = played.attempts.iter().map(|a| a.ended_ns).max().expect("an attempt");
        let draft = campaign.begin(folder).expect("a draft");
        let mut samples = draft.samples().expect("a sample writer");
        samples.write(&self.samples(&played, began_ns, ended_ns)).expect("samples");
        samples.finish().expect("samples");
        write_trace(draft.path(), &played.tasks, &played.attempts, &played.decisions).expect("tables");
        let member = |a: &AttemptRecord| MemberRecord {
            spec: cell.members[a.task as usize].clone(),
            command: Vec::new(),
            pid: Some(4000 + a.attempt),
            slice: None,
            barrier: true,
            hello: None,
            synthetic: Some(true),
            limit_batches: None,
            serving: None,
            features: None,
            ready_ns: a.settled_ns,
            training_start_ns: a.settled_ns,
            training_end_ns: Some(a.ended_ns),
            exit: Some("exited with 0".into()),
            cpu_time_s: Some(1.0),
            peak_rss_bytes: None,
            allocated_bytes: None,
            reserved_bytes: None,
            warm_up_allocated_bytes: None,
            warm_up_reserved_bytes: None,
            orphans: Vec::new(),
            log_tail: Vec::new(),
            proposed_epochs: None,
        };
        let check = Check {
            what: "placed".into(),
            member: Some(0),
            asked: "its cards".into(),
            found: Some("its cards".into()),
            holds: true,
        };
        let record = RunRecord {
            schema: SCHEMA,
            experiment: campaign.manifest().experiment.clone(),
            campaign: campaign.manifest().id.clone(),
            cell: cell.clone(),
            repetition: planned.repetition,
            block: planned.block,
            device: device.clone(),
            started_utc: "2026-11-20T18:42:10Z".into(),
            timeline: Timeline { launched_ns, ready_ns: None, go_ns: Some(began_ns), done_ns: Some(ended_ns), ended_ns },
            outcome: Outcome::Completed,
            validity: policy.validity.clone(),
            attestation: Attestation::from_checks(vec![check]),
            members: played.attempts.iter().map(member).collect(),
            sampling: Vec::new(),
            ingredients: BTreeMap::new(),
            failed_attempts: Vec::new(),
            process: None,
            cooling: None,
            throttling: None,
            observer: None,
            trace: Some(TraceRecord {
                rules: serde_json::json!({ "policy": of.policy }),
                cards: self.cards(),
                began_ns,
                remarks: policy.validity.reasons.clone(),
            }),
            files: BTreeMap::new(),
        };
        let epoch = |a: &AttemptRecord| EpochRecord {
            member: a.attempt,
            index: 0,
            measured: true,
            items: Some(1024),
            start_ns: a.launched_ns,
            end_ns: a.ended_ns,
            loss: None,
        };
        let epochs: Vec<EpochRecord> = played.attempts.iter().filter(|_| self.tells_epochs).map(epoch).collect();
        draft.commit(record, &epochs, &[]).expect("a run in place");
        ended_ns
    }

    fn play(&self, policy: &PolicyTruth, pace: f64, order: u64, began_ns: u64) -> Played {
        let place = self.orders.iter().position(|o| *o == order).unwrap_or(0);
        let ran_out = policy.out_of_memory[place.min(policy.out_of_memory.len() - 1)];
        let at = |s: f64| began_ns + (s * S) as u64;
        let mut busy: Vec<Vec<f64>> = vec![Vec::new(); self.cards as usize];
        let mut played = Played::default();
        let mut before = 0.0f64;
        for (i, (spec, epoch_s, epochs)) in self.specs(order).into_iter().enumerate() {
            let (task, arrives_s) = (i as u32, i as f64 * self.gap_s);
            let free_at = |ends: &Vec<f64>, from: f64| {
                let mut open: Vec<f64> = ends.iter().copied().filter(|e| *e > from).collect();
                open.sort_by(f64::total_cmp);
                if open.len() < policy.slots { from } else { open[open.len() - policy.slots] }
            };
            let from = arrives_s.max(before);
            let (card, start) = busy
                .iter()
                .enumerate()
                .map(|(card, ends)| (card, free_at(ends, from)))
                .min_by(|a, b| {
                    let company = |(card, at): &(usize, f64)| busy[*card].iter().filter(|e| **e > *at).count();
                    a.1.total_cmp(&b.1).then(company(a).cmp(&company(b)))
                })
                .expect("a card");
            before = start;
            let company = busy[card].iter().filter(|e| **e > start).count();
            let mut launch = start;
            let attempt = |launched: f64, ended: f64, outcome: Outcome, played: &mut Played| {
                let number = played.attempts.len() as u32;
                played.attempts.push(AttemptRecord {
                    attempt: number,
                    task,
                    cards: vec![card as u32],
                    launched_ns: at(launched),
                    settled_ns: (outcome == Outcome::Completed).then(|| at(launched + 0.05)),
                    ended_ns: at(ended),
                    outcome,
                    newcomer: (company > 0).then_some(true),
                    alone: company == 0,
                    attested: AttestationVerdict::Attested,
                });
                let seen = |card_number: u32| SeenCard {
                    card: card_number,
                    chosen: card_number == card as u32,
                    candidate: true,
                    why_not: None,
                    free_bytes: Some(20 << 30),
                    promised_bytes: 0,
                    residents: company as u32,
                    sm_permille: Some(400),
                    occupancy_permille: None,
                    dram_permille: None,
                    read_ns: Some(at(launched).saturating_sub(120_000_000)),
                };
                played.decisions.extend((0..self.cards).map(|card| DecisionRecord {
                    at_ns: at(launched),
                    task,
                    attempt: Some(number),
                    decided: "placed".into(),
                    why: "it fits".into(),
                    card: Some(seen(card)),
                }));
            };
            if i % 2 == 1 && i / 2 < ran_out {
                let message = "CUDA out of memory".to_string();
                attempt(
                    launch,
                    launch + 1.0,
                    Outcome::OutOfMemory { member: played.attempts.len() as u32, message },
                    &mut played,
                );
                launch += 3.0;
            }
            let seconds = epoch_s * f64::from(epochs) * pace * (1.0 + COMPANY * company as f64);
            let fails = policy.fails == Some(task);
            let crash = || Outcome::Crashed {
                member: played.attempts.len() as u32,
                status: "exited with 1".into(),
                message: "in epoch 1".into(),
                place_alone: true,
            };
            let outcome = if fails { crash() } else { Outcome::Completed };
            attempt(launch, launch + seconds, outcome, &mut played);
            busy[card].push(launch + seconds);
            played.tasks.push(TaskRecord {
                task,
                solo: spec.solo,
                epochs,
                cards: 1,
                arrives_ns: (arrives_s * S) as u64,
                arrived_ns: Some(at(arrives_s) + 2_000_000),
                estimate_bytes: (policy.estimate != "none").then_some(4 << 30),
                end: if fails { TaskEnd::Failed } else { TaskEnd::Done },
                blocked_ns: 0,
            });
        }
        played
    }

    fn samples(&self, played: &Played, began_ns: u64, ended_ns: u64) -> Vec<Sample> {
        let period = ((ended_ns - began_ns) / 120).max(1_000_000);
        let mut out = Vec::new();
        for (i, card) in self.cards().iter().enumerate() {
            let scope: Arc<str> = card.scope.as_str().into();
            let mut joules = 1e6;
            let mut at_ns = began_ns;
            while at_ns <= ended_ns {
                let on_it = |a: &&AttemptRecord| a.cards[0] as usize == i && a.launched_ns < at_ns && a.ended_ns >= at_ns;
                let residents = played.attempts.iter().filter(on_it).count() as f64;
                let active = (0.42 * residents).min(0.95);
                let mut put = |window_ns, metric, value| {
                    out.push(Sample { at_ns, window_ns, source: "nvml", scope: scope.clone(), metric, value: Some(value) });
                };
                if self.on_cores {
                    put(period, "cpu_ratio", 2.0 * active);
                } else {
                    put(period, "sm_active_ratio", active);
                    if !self.uncounted.contains(&(i as u32)) {
                        put(0, "energy_j", joules);
                    }
                }
                put(0, "memory_used_bytes", (0.5 + 6.0 * residents) * GIB);
                joules += (60.0 + 220.0 * active) * period as f64 * 1e-9;
                at_ns += period;
            }
        }
        out
    }
}

#[derive(Default)]
struct Played {
    tasks: Vec<TaskRecord>,
    attempts: Vec<AttemptRecord>,
    decisions: Vec<DecisionRecord>,
}
