//! Watches a group from launch to its last process: one loop receives everything and orders it.
//!
//! In: the members to launch, the rules, a draft to write to. Out: an [`Observation`]. The loop is async because members, timers
//! and signals are; the decisions are in `state`, which is not.

#[cfg(test)]
mod any_story_tests;
mod daemons;
mod ending;
mod epochs;
pub mod failure_log;
pub mod inbox;
mod last_words;
mod limits;
mod memory;
mod overlapping;
mod seat;
mod state;
#[cfg(test)]
mod state_tests;
mod transcript;
mod turns;
mod view;
pub mod watching;
mod written;

use crate::stage;
use std::sync::Arc;
use std::time::Duration;

use collo_device::control_groups::ControlGroups;
use collo_store::{
    AfterMeasured, Attestation, CpuThrottling, EpochRecord, MemberRecord, ObserverRecord, Outcome, PROCESS_SCOPE, ProcessRecord,
    RequestRecord, RunDraft, SamplingQuality, Timeline, member_scope, monotonic_ns,
};
use tokio::sync::{mpsc, oneshot, watch};

use inbox::{Inbox, Received};
pub use limits::{GRACE, Rules};
pub use seat::{MemberState, Phase, Traces};
pub use state::{Act, Watch};
pub use transcript::Transcript;
pub use view::{ManagedView, MemberView, ServingStats, View};
use watching::Watching;

use crate::error::RunError;
use crate::stage::{InForce, StagedCard};
use collo_launch::interrupt::Stop;
use collo_launch::protocol::MemberEvent;
use collo_launch::{Group, HostLaunch, MemberLaunch, Signal, memory_policy, tree};
use collo_plan::sharing::Hosting;
use collo_sample::gpu::gpu_scope;
use collo_sample::{Board, Rates, Sampling, Sites};

/// What was observed while a cell ran, in memory.
pub struct Observation {
    pub outcome: Outcome,
    pub timeline: Timeline,
    pub seats: Vec<MemberState>,
    pub peak_rss_bytes: Vec<Option<u64>>,
    /// The process of all members, if they are threads of one.
    pub process: Option<ProcessRecord>,
    pub epochs: Vec<EpochRecord>,
    /// Of serving members, in the order in which they were reported.
    pub requests: Vec<RequestRecord>,
    pub attestation: Option<Attestation>,
    pub sampling: Vec<SamplingQuality>,
    pub skew_ns: Option<u64>,
    /// How often the CPU quota was used up since `go`; absent if never.
    pub throttling: Option<CpuThrottling>,
    /// Of a cell that says who watches.
    pub observer: Option<ObserverRecord>,
    /// True if it was killed: the draft is to be discarded.
    pub killed: bool,
}

/// The inputs for watching a group.
pub struct ObserveSpec<'a> {
    pub members: &'a [MemberLaunch],
    /// The process that hosts them all; `None` where each has its own.
    pub host: Option<&'a HostLaunch>,
    pub threads: u32,
    /// The cores that a member without pinning may use.
    pub all_cores: Vec<u32>,
    pub rules: Rules,
    /// `None` to record no time series.
    pub rates: Option<Rates>,
    /// The GPUs to sample; empty on a CPU.
    pub boards: Vec<Board>,
    /// The GPU that the members are on, as it was staged; `None` on a CPU.
    pub card: Option<Arc<StagedCard>>,
    /// How the members are threads of one process, if they are.
    pub hosting: Option<Hosting>,
    /// Who watches, of a cell that says so.
    pub watching: Option<Watching>,
    pub stop: watch::Receiver<Stop>,
    /// Receives the status of the group, at most a few times a second.
    pub show: &'a mut dyn FnMut(View),
}

/// How long the end of a run may wait for proportional memory; a member of 16 GiB takes about 0.3 s.
const PSS_TIMEOUT: Duration = Duration::from_secs(2);

/// Time limit for evidence. Each query has its own, but a driver that hangs has none, and the run must end.
const EVIDENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// Capacity for members' messages, a line of a mebibyte each at worst. A member with more to say blocks in its `write`.
const WAITING: usize = 8;

/// Launch a group and watch it to its end.
pub async fn observe(mut setting: ObserveSpec<'_>, draft: &mut RunDraft) -> Result<Observation, RunError> {
    let mut watching = setting.watching.take();
    watching.iter_mut().for_each(Watching::make_room);
    let (sender, signals) = mpsc::channel(WAITING);
    let oom_kills = failure_log::kernel_oom_kills();
    let barrier: Vec<bool> = setting.members.iter().map(|m| m.adapter.is_none()).collect();
    let launched_ns = monotonic_ns();
    let group = match setting.host {
        Some(host) => Group::host(host, &sender)?,
        None => Group::launch(setting.members, &sender)?,
    };
    let sampling = {
        let one_process = setting.host.is_some();
        let sites = Sites { boards: &setting.boards, one_process, ..Sites::default() };
        Sampling::start(&group.supervisors(), setting.rates, draft.samples()?, sites)?
    };
    let mut scene = Scene {
        watch: Watch::begin(setting.rules.clone(), &barrier, launched_ns),
        group,
        sampling,
        cpu_at_go: Vec::new(),
        throttling_at_go: None,
        peaks: vec![None; barrier.len()],
        peak_of_process: None,
        attestation: None,
        evidence: None,
        watching,
        setting,
        oom_kills,
    };
    let mut transcript = Transcript::of(barrier.len());
    let mut inbox = Inbox::open(signals, scene.setting.stop.clone(), launched_ns);
    let mut killed = false;
    while !scene.watch.over() {
        let acts = match inbox.next(gathered(&mut scene.evidence), std::future::pending()).await {
            Received::Stop(asked) => {
                killed |= asked == Stop::Now;
                scene.look();
                match asked {
                    Stop::No => Vec::new(),
                    Stop::Gently => scene.watch.interrupt(monotonic_ns()),
                    Stop::Now => scene.watch.kill(monotonic_ns()),
                }
            }
            Received::Look { now_ns, suspended } => {
                if let Some(stood_still) = suspended {
                    // Nobody was heard meanwhile, so it is held against nobody.
                    scene.watch.excuse(stood_still);
                }
                scene.look();
                match (scene.sampling.lost(), scene.unwatched()) {
                    (Some(reason), _) => scene.watch.device_lost(reason, monotonic_ns()),
                    (None, Some(reason)) => scene.watch.observer_lost(reason, monotonic_ns()),
                    (None, None) => scene.watch.tick(now_ns),
                }
            }
            Received::Own(found) => scene.attested(found),
            Received::Signal(member, signal) => {
                if let Some(line) = transcript.line(member, &signal, monotonic_ns()) {
                    draft.event(&line)?;
                }
                scene.hear(member, signal)
            }
        };
        scene.act(acts);
    }
    // Whoever leaves when it is done may be gone before everything about it was asked.
    if scene.evidence.is_some() && scene.watch.outcome() == Outcome::Completed {
        scene.attestation = Some(gathered(&mut scene.evidence).await);
    }
    scene.look();
    let throttling = scene.throttling_at_go.zip(ControlGroups::own().throttling()).and_then(|(then, now)| now.since(then));
    // First: which epochs are measured decides until when they had to be watched.
    let epochs = scene.watch.epochs();
    let observer = scene.end_watching(killed);
    let process = scene.process();
    let Scene { mut watch, group, sampling, peaks, mut attestation, .. } = scene;
    let timeline = watch.timeline(monotonic_ns());
    if let (Some(found), Some(go_ns)) = (&mut attestation, timeline.go_ns) {
        let strangers = sampling.strangers(go_ns, timeline.done_ns.unwrap_or(timeline.ended_ns));
        stage::add_strangers(found, &strangers);
    }
    // First: its own programs are children of ours, and would be swept away as what a member left behind.
    let sampled = sampling.stop();
    group.sweep();
    let ended_ns = monotonic_ns();
    Ok(Observation {
        outcome: watch.outcome(),
        timeline: watch.timeline(ended_ns),
        epochs,
        requests: watch.seats.iter_mut().flat_map(|seat| std::mem::take(&mut seat.requests)).collect(),
        skew_ns: watch.skew_ns(),
        throttling,
        seats: watch.seats,
        peak_rss_bytes: peaks,
        process,
        attestation,
        sampling: sampled?,
        observer,
        killed,
    })
}

/// The evidence, or why it is missing. Never resolves if none was requested.
async fn gathered(evidence: &mut Option<(oneshot::Receiver<Attestation>, tokio::time::Instant)>) -> Attestation {
    let Some((receiver, until)) = evidence else { return std::future::pending().await };
    match tokio::time::timeout_at(*until, receiver).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => Attestation::absent("the thread that gathers evidence ended without a message"),
        Err(_) => Attestation::absent(format!("the evidence did not arrive within {} s", EVIDENCE_TIMEOUT.as_secs())),
    }
}

struct Scene<'a> {
    watch: Watch,
    group: Group,
    sampling: Sampling,
    cpu_at_go: Vec<Option<u64>>,
    throttling_at_go: Option<CpuThrottling>,
    peaks: Vec<Option<u64>>,
    /// Of the one process of all members.
    peak_of_process: Option<u64>,
    attestation: Option<Attestation>,
    /// Evidence being gathered, and its deadline.
    evidence: Option<(oneshot::Receiver<Attestation>, tokio::time::Instant)>,
    /// Who watches, of a cell that says so.
    watching: Option<Watching>,
    setting: ObserveSpec<'a>,
    oom_kills: Option<u64>,
}

impl Scene<'_> {
    fn hear(&mut self, member: usize, signal: Signal) -> Vec<Act> {
        let misplaced = match &signal {
            Signal::Said { event: MemberEvent::Hello(hello), .. } => {
                stage::misplaced(self.setting.card.as_deref(), member, hello)
            }
            _ => None,
        };
        let traces = match &signal {
            Signal::Ended(_) => {
                let thread = self.setting.host.map(|_| member);
                failure_log::find(&self.setting.members[member].log, thread, self.oom_kills)
            }
            Signal::Said { event: MemberEvent::Done, .. } => {
                self.read_peak(member);
                Traces::default()
            }
            _ => Traces::default(),
        };
        let is_epoch = matches!(&signal, Signal::Said { event: MemberEvent::Epoch(_), .. });
        let trained = |(other, seat): (usize, &MemberState)| seat.epochs.is_empty() == (other == member);
        if is_epoch && self.leaves_early() && self.watch.seats.iter().enumerate().all(trained) {
            // The last has ended its first epoch: all train. Who has only a few of them may be gone, and then no PSS is used.
            self.sampling.ask_for_pss();
        }
        let mut acts = self.watch.on(member, signal, monotonic_ns(), traces);
        if let Some(check) = misplaced {
            let reason = stage::words(&check);
            self.attestation.get_or_insert_with(|| Attestation::from_checks(vec![check]));
            // What it was about to be told is not told any more: it is ended.
            acts.retain(|act| !matches!(act, Act::Send(..)));
            acts.extend(self.watch.refuse(reason, monotonic_ns()));
        }
        // They wait for `go`, which is sent once they are watched.
        if acts.contains(&Act::Opened)
            && let Some(reason) = self.begin_watching()
        {
            acts.retain(|act| !matches!(act, Act::Send(..)));
            acts.extend(self.watch.observer_lost(reason, monotonic_ns()));
        }
        acts
    }

    /// Members may leave when they have shown enough, and there is an epoch before the last: all train together before one leaves.
    fn leaves_early(&self) -> bool {
        self.watch.may_leave() && self.setting.rules.goal.epochs > 1
    }

    /// Evidence has arrived, or is given up.
    fn attested(&mut self, found: Attestation) -> Vec<Act> {
        self.evidence = None;
        self.attestation = Some(found);
        self.watch.evidence_is_in(monotonic_ns())
    }

    /// Gather the mode's evidence, once, inside the window: processes are listed now, the rest is done on a thread, because it queries
    /// programs and a driver that take their time, and no message is delayed meanwhile.
    fn gather(&mut self) {
        let (sender, receiver) = oneshot::channel();
        let (found, card, hosting) = (self.in_force(), self.setting.card.clone(), self.setting.hosting);
        let evidence = move || sender.send(stage::attest(card.as_deref(), hosting, &found));
        let begun = std::thread::Builder::new().name("evidence".into()).spawn(evidence);
        // Without a thread the sender is dropped, and that is heard of.
        drop(begun);
        self.evidence = Some((receiver, tokio::time::Instant::now() + EVIDENCE_TIMEOUT));
    }

    fn act(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Send(member, command) => self.group.send(member, command),
                Act::Kill(member) => self.group.kill(member),
                Act::Opened => {
                    self.throttling_at_go = ControlGroups::own().throttling();
                    // Who is done leaves, so with one epoch there is no later moment with everybody there.
                    if self.setting.rules.after_measured == AfterMeasured::Exit && !self.leaves_early() {
                        self.sampling.ask_for_pss();
                    }
                    let members = self.pids().into_iter().enumerate();
                    self.cpu_at_go = members.map(|(member, pids)| self.cpu_time_ns(member, &pids)).collect();
                }
                Act::FirstDone => self.gather(),
                Act::AllDone => {
                    if let Some(watching) = &mut self.watching {
                        watching.ask_to_end();
                    }
                    self.sampling.read_pss(PSS_TIMEOUT);
                    let acts = self.watch.stop(monotonic_ns());
                    self.act(acts);
                }
            }
        }
    }

    fn pids(&self) -> Vec<Vec<u32>> {
        self.group.supervisors().iter().map(|&s| tree::descendants(s)).collect()
    }

    /// CPU time of a member so far: of its processes, or of its own thread in the process that it shares.
    fn cpu_time_ns(&self, member: usize, pids: &[u32]) -> Option<u64> {
        match self.setting.host {
            None => tree::cpu_time_ns(pids),
            Some(_) => {
                let seat = &self.watch.seats[member];
                tree::thread_cpu_time_ns(seat.pid?, seat.hello.as_ref()?.thread?.id)
            }
        }
    }

    fn in_force(&self) -> Vec<InForce> {
        let member = |(member, pids): (usize, Vec<u32>)| InForce {
            member,
            hello: self.watch.seats[member].hello.clone(),
            process: self.setting.host.and(self.watch.seats[member].pid),
            cpu_ns_before: self.cpu_at_go.get(member).copied().flatten(),
            cpu_ns_now: self.cpu_time_ns(member, &pids),
            cores: tree::affinity(&pids),
            asked_cores: self.setting.members[member].cores.clone().unwrap_or_else(|| self.setting.all_cores.clone()),
            memory_policy: self.setting.members[member].memory_nodes.as_ref().and_then(|_| memory_policy::of(&pids)),
            asked_memory_nodes: self.setting.members[member].memory_nodes.clone(),
            pids,
            asked_threads: self.setting.threads,
        };
        self.pids().into_iter().enumerate().map(member).collect()
    }

    fn read_peak(&mut self, member: usize) {
        if let Some(pid) = self.watch.seats[member].pid {
            let read = collo_sample::peak_rss_bytes(pid);
            let known = if self.setting.host.is_some() { &mut self.peak_of_process } else { &mut self.peaks[member] };
            *known = (*known).max(read);
        }
    }

    /// What is known of the process that all members shared.
    fn process(&self) -> Option<ProcessRecord> {
        let host = self.setting.host?;
        let ended = self.group.process_ended();
        Some(ProcessRecord {
            command: host.process.command.clone(),
            pid: self.watch.seats.iter().find_map(|seat| seat.pid),
            exit: ended.as_ref().map(|ended| ended.live.to_string()),
            cpu_time_s: ended.as_ref().and_then(|ended| ended.cpu_time_s),
            peak_rss_bytes: self.peak_of_process,
            orphans: ended.iter().flat_map(|ended| ended.orphans.iter().map(|(pid, _)| *pid)).collect(),
        })
    }

    /// Update the display.
    fn look(&mut self) {
        let latest = self.sampling.latest();
        for (member, peak) in self.peaks.iter_mut().enumerate() {
            let sampled = latest.get(&member_scope(member)).and_then(|w| w.peak_rss_bytes).map(|b| b as u64);
            *peak = (*peak).max(sampled);
        }
        if let Some(sampled) = latest.get(PROCESS_SCOPE).and_then(|w| w.peak_rss_bytes) {
            self.peak_of_process = self.peak_of_process.max(Some(sampled as u64));
        }
        let view = View {
            members: self.watch.seats.iter().enumerate().map(|(i, seat)| MemberView::of(i, seat, &latest)).collect(),
            ready_after_s: self.watch.ready_after_s(),
            skew_ns: self.watch.skew_ns(),
            attested: self.attestation.as_ref().map(|a| a.verdict == collo_store::AttestationVerdict::Attested),
            card: self.setting.boards.first().and_then(|b| latest.get(&gpu_scope(&b.uuid))).copied(),
            managed: None,
        };
        (self.setting.show)(view);
    }
}

impl Observation {
    /// The stored records of the members.
    pub fn members(&self, specs: &[collo_store::MemberSpec]) -> Vec<MemberRecord> {
        let is_complete = self.outcome == Outcome::Completed;
        let all = self.seats.iter().zip(specs).zip(&self.peak_rss_bytes);
        all.map(|((seat, spec), peak)| seat.record(spec, *peak, is_complete)).collect()
    }
}
