//! One loop receives everything that happens to a site and orders it; the ledger decides.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use collo_schedule::{Act as Asked, CardId, Happened, Ledger, State, Task, TaskId};
use collo_store::{AttemptRecord, AttestationVerdict, Check, Outcome, RunDraft, Sample, monotonic_ns};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use super::attempt::{EndedAttempt, LiveAttempt, how_ended, of_member};
use super::evidence::{self, Evidence, Found, Gathering};
use super::readings::CardReadings;
use super::{CutShort, ManageError, ManageSpec, Played, happened_file};
use crate::cell::Settle;
use crate::interrupt::Stop;
use crate::launch::protocol::{Command, MemberEvent};
use crate::launch::{Group, Signal};
use crate::observe::{Act, ManagedView, ObserveError, Traces, Transcript, View, Watch, failure_log};
use crate::sampler::gpu::{gpu_scope, mig_scope};
use crate::sampler::{Sampling, Sites, core_scope, member_scope, peak_rss_bytes};
use crate::sharing::words;

/// How often time limits and the display are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// A tick this late means that collo itself was suspended.
const LATE: Duration = Duration::from_secs(1);
/// Capacity for members' messages.
const WAITING: usize = 64;
/// How long the first readings may take.
const FIRST_READINGS: Duration = Duration::from_secs(20);
/// The most seldom that a reading is told while somebody waits.
const TELL_AT_LEAST_NS: u64 = 1_000_000_000;
/// The most often.
const TELL_AT_MOST_NS: u64 = 20_000_000;

struct Body<'a, 'l> {
    spec: ManageSpec<'a, 'l>,
    ledger: Ledger,
    group: Group,
    supervisors: Vec<u32>,
    sampling: Sampling,
    signals: mpsc::Sender<(usize, Signal)>,
    attempts: Vec<LiveAttempt>,
    /// By card, the attempts that live on it.
    on_card: Vec<Vec<usize>>,
    /// By card, how often somebody came or went.
    company: Vec<u64>,
    gathering: Vec<Gathering>,
    found: mpsc::UnboundedSender<Evidence>,
    readings: Vec<CardReadings>,
    /// By card, when its reading was last told.
    told_ns: Vec<u64>,
    /// By attempt, its resident memory.
    rss_bytes: Vec<u64>,
    lost: Vec<bool>,
    /// By card: its MPS daemon no longer works and has not been replaced.
    broken: Vec<bool>,
    transcript: Transcript,
    happened: std::fs::File,
    queue: VecDeque<Happened>,
    arrived_ns: Vec<Option<u64>>,
    look_at_ns: Option<u64>,
    began_ns: u64,
    over: bool,
    remarks: Vec<String>,
    cut_short: Option<CutShort>,
    oom_kills: Option<u64>,
}

pub async fn play(spec: ManageSpec<'_, '_>, draft: &mut RunDraft) -> Result<Played, ManageError> {
    let (signals, mut heard) = mpsc::channel(WAITING);
    let (tap, mut samples) = mpsc::unbounded_channel();
    let (found, mut findings) = mpsc::unbounded_channel();
    let ledger = Ledger::open(spec.rules)?;
    let cards = spec.site.cards();
    let boards = spec.site.boards();
    let core_sets: Vec<Vec<u32>> = match boards.is_empty() {
        true => (0..cards).filter_map(|card| spec.site.cores_of(card).map(<[u32]>::to_vec)).collect(),
        false => Vec::new(),
    };
    let launched_ns = monotonic_ns();
    let sites = Sites { boards: &boards, core_sets: &core_sets, tap: Some(tap) };
    let sampling = Sampling::start(&[], spec.rates, draft.samples()?, sites)?;
    let mut body = Body {
        ledger,
        group: Group::empty(),
        supervisors: Vec::new(),
        sampling,
        signals,
        attempts: Vec::new(),
        on_card: vec![Vec::new(); cards],
        company: vec![0; cards],
        gathering: vec![Gathering::default(); cards],
        found,
        readings: (0..cards).map(|card| readings_of(&spec, card)).collect(),
        told_ns: vec![0; cards],
        rss_bytes: Vec::new(),
        lost: vec![false; cards],
        broken: vec![false; cards],
        transcript: Transcript::of(0),
        happened: happened_file(draft.path()).map_err(collo_store::Error::from)?,
        queue: VecDeque::new(),
        arrived_ns: vec![None; spec.tasks.len()],
        look_at_ns: None,
        began_ns: launched_ns,
        over: false,
        remarks: Vec::new(),
        cut_short: None,
        oom_kills: failure_log::kernel_oom_kills(),
        spec,
    };
    body.first_readings(&mut samples).await;
    body.began_ns = monotonic_ns();
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looked_ns = body.began_ns;
    let mut next = 0;
    let mut stop_open = true;
    if body.cut_short.is_none() {
        body.begin();
    }
    while !body.is_over() {
        let due_ns = body.spec.tasks.get(next).filter(|_| body.cut_short.is_none()).map(|task| body.began_ns + task.arrives_ns);
        let deadline = |ns: Option<u64>| async move {
            match ns {
                Some(ns) => tokio::time::sleep(Duration::from_nanos(ns.saturating_sub(monotonic_ns()))).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = changed(&mut body.spec.stop), if stop_open => match changed {
                None => stop_open = false,
                Some(asked) => body.stopped(asked),
            },
            _ = look.tick() => {
                let now_ns = monotonic_ns();
                let since = Duration::from_nanos(now_ns.saturating_sub(std::mem::replace(&mut looked_ns, now_ns)));
                body.look(if since > LATE { Some(since - LOOK) } else { None });
            }
            Some((member, signal)) = heard.recv() => {
                if let Some(line) = body.transcript.line(member, &signal, monotonic_ns())
                    && let Err(e) = draft.event(&line)
                {
                    body.disk_full(&e.to_string());
                }
                body.hear(member, signal);
            }
            Some(evidence) = findings.recv() => match evidence {
                Evidence::Found(found) => body.found(found),
                Evidence::Again(card) => body.gather_again(card),
            },
            () = deadline(due_ns) => {
                // Those of one moment are told together, in the order of the trace.
                while let Some(task) = body.spec.tasks.get(next).filter(|task| body.began_ns + task.arrives_ns <= monotonic_ns()) {
                    let (cards, arrives_ns) = (task.cards, task.arrives_ns);
                    body.arrived(next, cards, arrives_ns);
                    next += 1;
                }
            }
            () = deadline(body.look_at_ns) => {
                body.look_at_ns = None;
                body.queue.push_back(Happened::Look);
            }
            Some(batch) = samples.recv() => body.sampled(&batch),
        }
        body.settle_what_happened();
    }
    if body.cut_short.is_some() {
        body.queue.push_back(Happened::Stopped);
        body.settle_what_happened();
    }
    body.finish(launched_ns)
}

/// The next order to stop; `None` if there will be none.
async fn changed(stop: &mut watch::Receiver<Stop>) -> Option<Stop> {
    stop.changed().await.ok()?;
    Some(*stop.borrow())
}

fn readings_of(spec: &ManageSpec<'_, '_>, card: usize) -> CardReadings {
    let (capacity_bytes, window_ns) = (spec.rules.cards[card].capacity_bytes, spec.rules.window_ns);
    match (spec.site.visible(card), spec.site.cores_of(card)) {
        (Some(device), _) => {
            let scope = if device.gpu_instance.is_some() { mig_scope(&device.uuid) } else { gpu_scope(&device.uuid) };
            CardReadings::of_gpu(scope, capacity_bytes, window_ns)
        }
        (None, cores) => {
            let cores = cores.unwrap_or_default();
            CardReadings::of_cores(core_scope(cores), cores.len(), capacity_bytes, window_ns)
        }
    }
}

impl Body<'_, '_> {
    fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.began_ns)
    }

    fn is_over(&self) -> bool {
        let nobody = self.attempts.iter().all(|attempt| !attempt.lives());
        nobody && (self.over || self.cut_short.is_some())
    }

    /// Nothing is placed by guess: wait until every card was read, and that of it which the policy needs.
    async fn first_readings(&mut self, samples: &mut mpsc::UnboundedReceiver<Vec<Sample>>) {
        let needs = match collo_schedule::policy::parse(&self.spec.rules.policy) {
            Ok(policy) => policy.needs(),
            Err(_) => return,
        };
        let lacks = |card: &CardReadings| {
            let missing = [
                (card.memory_read_ns().is_none(), "memory"),
                (needs.sm && !card.has_sm(), "SM activity"),
                (needs.occupancy && !card.has_occupancy(), "SM occupancy"),
                (needs.dram && !card.has_dram(), "DRAM activity"),
            ];
            missing.into_iter().find(|(is, _)| *is).map(|(_, what)| what)
        };
        let until = tokio::time::Instant::now() + FIRST_READINGS;
        while let Some(missing) = self.readings.iter().find_map(lacks) {
            match tokio::time::timeout_at(until, samples.recv()).await {
                Ok(Some(batch)) => self.take(&batch),
                _ => {
                    let policy = &self.spec.rules.policy;
                    let why =
                        format!("`{policy}` decides by {missing}, and no source tells it within {} s", FIRST_READINGS.as_secs());
                    self.cut_short = Some(CutShort::NotStaged(why));
                    return;
                }
            }
            if *self.spec.stop.borrow() != Stop::No {
                return;
            }
        }
    }

    fn begin(&mut self) {
        for card in 0..self.readings.len() {
            self.tell_reading(card);
        }
        self.settle_what_happened();
    }

    fn arrived(&mut self, task: usize, cards: u32, arrives_ns: u64) {
        self.arrived_ns[task] = Some(monotonic_ns());
        let task = Task {
            id: TaskId(task as u32),
            arrives_ns,
            cards,
            estimate_bytes: self.spec.estimates.get(task).copied().flatten(),
            believed_permille: None,
        };
        self.queue.push_back(Happened::Arrived(task));
    }

    /// Tell the ledger everything that waits to be told, and do what it asks for, until there is nothing left of either.
    fn settle_what_happened(&mut self) {
        let mut asked = Vec::new();
        while let Some(what) = self.queue.pop_front() {
            let now_ns = self.now_ns();
            let line = serde_json::json!({"at_ns": now_ns, "happened": what});
            if let Err(e) = writeln!(self.happened, "{line}") {
                self.disk_full(&e.to_string());
            }
            self.ledger.on(what, now_ns, &mut asked);
            for act in asked.drain(..) {
                match act {
                    Asked::Start(attempt) => self.start(attempt),
                    Asked::Stop(attempt, _) => self.end(attempt.0 as usize, None),
                    Asked::LookAt(at_ns) => {
                        let at_ns = self.began_ns + at_ns;
                        self.look_at_ns = Some(self.look_at_ns.map_or(at_ns, |known| known.min(at_ns)));
                    }
                    Asked::Over => self.over = true,
                    // No policy of traces watches in isolation.
                    Asked::Profile(..) => {}
                }
            }
        }
    }

    /// Book an attempt, and launch it unless the daemon of its card is just being replaced.
    fn start(&mut self, attempt: collo_schedule::Attempt) {
        let index = self.group.reserve();
        let now_ns = monotonic_ns();
        let task = attempt.task.0 as usize;
        let cards: Vec<usize> = attempt.cards.iter().map(|card| card.0 as usize).collect();
        self.transcript.add();
        self.supervisors.push(0);
        self.rss_bytes.push(0);
        let barrier = self.spec.tasks[task].member.workload().epochs.is_none();
        self.attempts.push(LiveAttempt {
            watch: Watch::begin((self.spec.of_task)(task), &[barrier], now_ns),
            attempt,
            launch: None,
            launched_ns: now_ns,
            ready_ns: None,
            settled_ns: None,
            go: None,
            attested: None,
            checks: Vec::new(),
            ended: None,
            peak_rss_bytes: None,
            blamed: None,
        });
        for card in &cards {
            self.on_card[*card].push(index);
            self.company[*card] += 1;
        }
        if !self.broken[cards[0]] {
            self.launch(index);
        }
    }

    fn launch(&mut self, index: usize) {
        let task = self.attempts[index].attempt.task.0 as usize;
        let slot = self.spec.site.slot(&self.attempts[index].cards());
        let launched = (self.spec.launch)(index, task, &slot).and_then(|launch| {
            let supervisor = self.group.start(index, &launch, &self.signals)?;
            Ok((launch, supervisor))
        });
        self.queue.push_back(Happened::Started(self.attempts[index].attempt.id));
        match launched {
            Ok((launch, supervisor)) => {
                self.attempts[index].launch = Some(launch);
                self.supervisors[index] = supervisor;
                self.sampling.add(index, supervisor);
            }
            Err(why) => {
                let (status, message) = ("not started".to_string(), why.to_string());
                let outcome = Outcome::Crashed { member: index as u32, status, message, place_alone: false };
                self.attempts[index].blamed = Some(outcome);
                self.ended(index);
            }
        }
    }

    /// End an attempt by force; what it ends as, if that is known better.
    fn end(&mut self, index: usize, blamed: Option<Outcome>) {
        let attempt = &mut self.attempts[index];
        if !attempt.lives() {
            return;
        }
        attempt.blamed = attempt.blamed.take().or(blamed);
        if attempt.launch.is_none() {
            attempt.blamed.get_or_insert(Outcome::Interrupted);
            self.ended(index);
            return;
        }
        let acts = attempt.watch.kill(monotonic_ns());
        self.act(index, acts);
    }

    fn hear(&mut self, index: usize, signal: Signal) {
        let now_ns = monotonic_ns();
        let main = self.attempts[index].main_card();
        let mut misplaced = None;
        match &signal {
            Signal::Said { event: MemberEvent::Hello(hello), .. } => {
                misplaced = self.spec.site.misplaced(main, index, hello);
            }
            Signal::Said { event: MemberEvent::Done, .. } => self.read_peak(index),
            _ => {}
        }
        let is_started = matches!(signal, Signal::Started { .. });
        let traces = match &signal {
            Signal::Ended(_) => {
                let log = self.attempts[index].launch.as_ref().map(|launch| launch.log.clone()).unwrap_or_default();
                failure_log::find(&log, self.oom_kills)
            }
            _ => Traces::default(),
        };
        let attempt = &mut self.attempts[index];
        let mut acts = attempt.watch.on(0, signal, now_ns, traces);
        if let Some(check) = misplaced {
            let reason = words(&check);
            attempt.checks.push(check);
            attempt.attested = Some(AttestationVerdict::Absent);
            acts.retain(|act| !matches!(act, Act::Send(..)));
            acts.extend(attempt.watch.refuse(reason.clone(), now_ns));
            self.act(index, acts);
            self.void(reason);
            return;
        }
        let is_ready = self.attempts[index].watch.seats[0].ready_ns.is_some();
        if is_ready && self.attempts[index].ready_ns.is_none() {
            self.attempts[index].ready_ns = Some(now_ns);
        }
        let foreign = !self.attempts[index].watch.seats[0].barrier;
        self.act(index, acts);
        if is_started && foreign {
            self.attempts[index].ready_ns = Some(now_ns);
            self.gather(main);
        }
    }

    fn act(&mut self, index: usize, acts: Vec<Act>) {
        for act in acts {
            match act {
                // It trains once there is evidence for it.
                Act::Send(_, command @ Command::Go { .. }) => {
                    self.attempts[index].go = Some(command);
                    self.gather(self.attempts[index].main_card());
                }
                Act::Send(_, command) => self.group.send(index, command),
                Act::Kill(_) => self.group.kill(index),
                Act::FirstDone => {
                    self.gather(self.attempts[index].main_card());
                    let acts = self.attempts[index].watch.evidence_is_in(monotonic_ns());
                    self.act(index, acts);
                }
                Act::AllDone => {
                    let acts = self.attempts[index].watch.stop(monotonic_ns());
                    self.act(index, acts);
                }
                Act::Opened => {}
            }
        }
        if self.attempts[index].watch.over() {
            self.ended(index);
        }
    }

    /// Nothing is left of an attempt.
    fn ended(&mut self, index: usize) {
        if !self.attempts[index].lives() {
            return;
        }
        let at_ns = monotonic_ns();
        self.sampling.remove(index);
        self.group.forget(index);
        self.rss_bytes[index] = 0;
        let cards = self.attempts[index].cards();
        let own = self.attempts[index].watch.outcome();
        let mut outcome = self.attempts[index].blamed.clone().unwrap_or_else(|| of_member(own, index as u32));
        let mut broken = None;
        if outcome.is_failure() && self.attempts[index].blamed.is_none() {
            // Members fail when their server does; it is not they who are to blame.
            broken = self.spec.site.trouble(cards[0]);
            if let Some(reason) = &broken {
                outcome = Outcome::ModeLost { reason: reason.clone() };
            }
        }
        let attempt = &mut self.attempts[index];
        let id = attempt.attempt.id;
        let how = how_ended(&outcome);
        attempt.ended = Some(EndedAttempt { at_ns, outcome });
        for card in &cards {
            self.on_card[*card].retain(|other| *other != index);
            self.company[*card] += 1;
            if !self.on_card[*card].is_empty() {
                self.gather(*card);
            }
        }
        self.queue.push_back(Happened::Ended(id, how));
        if let Some(reason) = broken {
            self.daemon_broke(cards[0], reason);
        } else if self.broken[cards[0]] {
            self.renew_if_empty(cards[0]);
        }
    }

    /// The MPS daemon of a card no longer works: everybody whom it serves is ended, and then it is started anew.
    fn daemon_broke(&mut self, card: usize, reason: String) {
        let served = self.spec.site.served_with(card);
        let members: Vec<usize> = served.iter().flat_map(|card| self.on_card[*card].clone()).collect();
        self.remarks.push(format!("{} lost its mode: {reason}", self.name(card)));
        for card in served {
            self.broken[card] = true;
        }
        for member in members {
            self.end(member, Some(Outcome::ModeLost { reason: reason.clone() }));
        }
        self.renew_if_empty(card);
    }

    /// Once no process of those whom it served is left, the daemon is replaced, and whoever waited for that is launched.
    fn renew_if_empty(&mut self, card: usize) {
        let served = self.spec.site.served_with(card);
        let on_them: Vec<usize> = served.iter().flat_map(|card| self.on_card[*card].clone()).collect();
        if on_them.iter().any(|index| self.attempts[*index].launch.is_some()) || !self.broken[card] {
            return;
        }
        let limits = self.spec.limits;
        let renewed = self.spec.site.renew(card, self.spec.leases, &limits);
        for card in &served {
            self.broken[*card] = false;
        }
        match renewed {
            Ok(()) => on_them.into_iter().for_each(|index| self.launch(index)),
            Err(why) => served.into_iter().for_each(|card| self.card_lost(card, why.reason.clone())),
        }
    }

    fn name(&self, card: usize) -> String {
        format!("card {card} ({})", self.readings[card].scope())
    }

    fn card_lost(&mut self, card: usize, reason: String) {
        if std::mem::replace(&mut self.lost[card], true) {
            return;
        }
        self.remarks.push(format!("{} was lost: {reason}", self.name(card)));
        for member in self.on_card[card].clone() {
            self.end(member, Some(Outcome::DeviceLost { reason: reason.clone() }));
        }
        self.queue.push_back(Happened::CardLost(CardId(card as u32)));
        if self.lost.iter().all(|lost| *lost) {
            self.cut(CutShort::DeviceLost(reason));
        }
    }

    fn read_peak(&mut self, index: usize) {
        if let Some(pid) = self.attempts[index].watch.seats[0].pid {
            let known = self.attempts[index].peak_rss_bytes;
            self.attempts[index].peak_rss_bytes = known.max(peak_rss_bytes(pid));
        }
    }

    /// Gather the evidence of a card, or once more if it is being gathered.
    fn gather(&mut self, card: usize) {
        if self.gathering[card].runs {
            self.gathering[card].again = true;
            return;
        }
        let runs = |index: &usize| self.attempts[*index].lives() && self.attempts[*index].launch.is_some();
        let there: Vec<usize> = self.on_card[card].iter().copied().filter(runs).collect();
        let is_own = |index: &usize| self.attempts[*index].main_card() == card && self.attempts[*index].is_there();
        let (own, besides): (Vec<usize>, Vec<usize>) = there.into_iter().partition(is_own);
        if own.is_empty() {
            return;
        }
        let in_force = |list: &[usize]| {
            let of = |(number, index): (usize, &usize)| {
                self.attempts[*index].in_force(number, self.supervisors[*index], self.spec.threads, &self.spec.all_cores)
            };
            list.iter().enumerate().map(of).collect::<Vec<_>>()
        };
        evidence::gather(card, self.spec.site.asking(card), in_force(&own), in_force(&besides), &self.found);
        let tries = self.gathering[card].tries;
        self.gathering[card] = Gathering { own, besides, runs: true, company: self.company[card], again: false, tries };
    }

    fn gather_again(&mut self, card: usize) {
        self.gathering[card].runs = false;
        self.gather(card);
    }

    fn found(&mut self, Found { card, attestation, besides }: Found) {
        let gathered = std::mem::take(&mut self.gathering[card]);
        let changed = self.company[card] != gathered.company;
        let holds = evidence::holds(&attestation);
        // A process that ended in between is no longer listed; what holds although others came or went, holds.
        if !holds && evidence::may_try_again(gathered.tries, changed) {
            self.gathering[card] = Gathering { runs: true, tries: gathered.tries + 1, ..Gathering::default() };
            evidence::again(card, &self.found);
            return;
        }
        for (place, index) in gathered.own.iter().enumerate() {
            let attempt = &mut self.attempts[*index];
            let of_it = |check: &&Check| check.member.is_none_or(|member| member as usize == place);
            let renamed = attestation.checks.iter().filter(of_it).map(|check| {
                let member = check.member.map(|_| *index as u32);
                Check { member, ..check.clone() }
            });
            attempt.checks = renamed.collect();
            // The worst of what was found of it counts.
            attempt.attested = Some(attempt.attested.map_or(attestation.verdict, |known| worse(known, attestation.verdict)));
        }
        for (index, computes) in gathered.besides.iter().zip(besides) {
            let is_there = self.attempts[*index].is_there() && self.attempts[*index].main_card() != card;
            if is_there && computes == Some(false) {
                let asked = self.attempts[*index].attempt.cards.len();
                let said = format!("attempt {index} asked for {asked} cards and does not compute on {}", self.name(card));
                if !self.remarks.contains(&said) {
                    self.remarks.push(said);
                }
            }
        }
        if !holds {
            let failed = attestation.checks.iter().find(|check| !check.holds);
            self.void(failed.map_or("no evidence that the mode was in force".into(), words));
            return;
        }
        for index in gathered.own {
            if let Some(go) = self.attempts[index].go.take() {
                self.group.send(index, go);
            }
        }
        if gathered.again {
            self.gather(card);
        }
    }

    /// Without evidence no number of the run may be used: it need not go on.
    fn void(&mut self, reason: String) {
        self.cut(CutShort::ModeLost(reason));
    }

    fn disk_full(&mut self, why: &str) {
        if self.cut_short.is_none() {
            self.queue.push_back(Happened::Full);
            // What runs goes on; nothing else comes.
            self.cut_short = Some(CutShort::DiskFull(why.to_string()));
        }
    }

    fn cut(&mut self, why: CutShort) {
        if self.cut_short.is_none() {
            self.cut_short = Some(why);
        }
        // Nothing further is placed, and whoever is left is asked to leave.
        self.queue.push_back(Happened::Full);
        for index in 0..self.attempts.len() {
            match (self.attempts[index].lives(), self.attempts[index].launch.is_some()) {
                (false, _) => {}
                (true, false) => self.end(index, Some(Outcome::Interrupted)),
                (true, true) => {
                    let acts = self.attempts[index].watch.interrupt(monotonic_ns());
                    self.act(index, acts);
                }
            }
        }
    }

    fn stopped(&mut self, asked: Stop) {
        match asked {
            Stop::No => {}
            Stop::Gently => self.cut(CutShort::Interrupted(false)),
            Stop::Now => {
                self.cut_short = Some(CutShort::Interrupted(true));
                self.queue.push_back(Happened::Full);
                for index in 0..self.attempts.len() {
                    self.end(index, Some(Outcome::Interrupted));
                }
            }
        }
    }

    /// Time limits, lost cards, the display.
    fn look(&mut self, suspended: Option<Duration>) {
        let now_ns = monotonic_ns();
        for index in 0..self.attempts.len() {
            if !self.attempts[index].lives() {
                continue;
            }
            if let Some(stood_still) = suspended {
                self.attempts[index].watch.excuse(stood_still);
            }
            if self.attempts[index].launch.is_some() {
                let acts = self.attempts[index].watch.tick(now_ns);
                self.act(index, acts);
            }
        }
        for (uuid, reason) in self.sampling.lost_boards() {
            for card in 0..self.readings.len() {
                if self.spec.site.board_of(card) == Some(&uuid) {
                    self.card_lost(card, reason.clone());
                }
            }
        }
        for card in 0..self.readings.len() {
            self.settle(card);
            let silent_ns = self.readings[card].memory_read_ns().map_or(0, |ns| now_ns.saturating_sub(ns));
            if !self.lost[card] && suspended.is_none() && silent_ns > self.spec.stall_timeout.as_nanos() as u64 {
                let why = format!("{} gave no reading for {} s", self.name(card), silent_ns / 1_000_000_000);
                self.cut(CutShort::DeviceLost(why));
            }
        }
        self.show();
    }

    fn take(&mut self, batch: &[Sample]) {
        for sample in batch {
            if sample.metric == "rss_bytes"
                && let Some(index) = sample.scope.strip_prefix("member:").and_then(|n| n.parse::<usize>().ok())
            {
                let lives = self.attempts.get(index).is_some_and(LiveAttempt::lives);
                if let (true, Some(bytes)) = (lives, sample.value) {
                    self.rss_bytes[index] = bytes as u64;
                }
            }
            for card in 0..self.readings.len() {
                self.readings[card].take(sample);
                if sample.metric == "cpu_ratio" && sample.scope == *self.readings[card].scope() {
                    let held = self.on_card[card].iter().map(|index| self.rss_bytes[*index]).sum();
                    self.readings[card].held(sample.at_ns, held);
                }
            }
        }
    }

    fn sampled(&mut self, batch: &[Sample]) {
        self.take(batch);
        let now_ns = monotonic_ns();
        let every_ns = (self.spec.rules.window_ns / 16).clamp(TELL_AT_MOST_NS, TELL_AT_LEAST_NS);
        let waits = self.ledger.count(State::Waiting) + self.ledger.count(State::Recovering) > 0;
        for card in 0..self.readings.len() {
            self.settle(card);
            if waits && now_ns.saturating_sub(self.told_ns[card]) >= every_ns {
                self.tell_reading(card);
            }
        }
    }

    fn tell_reading(&mut self, card: usize) {
        if let Some(reading) = self.readings[card].reading(self.began_ns).filter(|_| !self.lost[card]) {
            self.told_ns[card] = monotonic_ns();
            self.queue.push_back(Happened::Read(CardId(card as u32), reading));
        }
    }

    /// Tell who has settled on a card: whoever was ready before its memory was last read, on all of its cards.
    fn settle(&mut self, card: usize) {
        for index in self.on_card[card].clone() {
            let attempt = &self.attempts[index];
            if attempt.settled_ns.is_some() || !attempt.lives() {
                continue;
            }
            let since_ns = match self.spec.settle {
                Settle::Ready => attempt.ready_ns,
                Settle::After(ns) => Some(attempt.launched_ns + ns).filter(|at| *at <= monotonic_ns()),
            };
            let Some(since_ns) = since_ns else { continue };
            let cards = attempt.cards();
            let is_read = |card: &usize| self.readings[*card].memory_read_ns().is_some_and(|ns| ns >= since_ns);
            if !cards.iter().all(is_read) {
                continue;
            }
            let id = attempt.attempt.id;
            self.attempts[index].settled_ns = Some(monotonic_ns());
            for card in cards {
                self.tell_reading(card);
            }
            self.queue.push_back(Happened::Settled(id, None));
        }
    }

    fn show(&mut self) {
        let latest = self.sampling.latest();
        for (index, attempt) in self.attempts.iter_mut().enumerate().filter(|(_, attempt)| attempt.lives()) {
            let sampled = latest.get(&member_scope(index)).and_then(|w| w.peak_rss_bytes).map(|bytes| bytes as u64);
            attempt.peak_rss_bytes = attempt.peak_rss_bytes.max(sampled);
        }
        let count = |states: &[State]| states.iter().map(|state| self.ledger.count(*state)).sum::<usize>();
        let card = |(number, readings): (usize, &CardReadings)| {
            let reading = readings.reading(self.began_ns);
            let residents = self.on_card[number].len();
            (residents, reading.and_then(|r| r.sm_permille).map(|sm| f64::from(sm) / 1000.0), reading.and_then(|r| r.free_bytes))
        };
        let managed = ManagedView {
            tasks: self.spec.tasks.len(),
            arrived: self.ledger.arrived_tasks(),
            waiting: count(&[State::Waiting, State::Recovering]),
            running: count(&[State::Starting, State::Settling, State::Running]),
            done: count(&[State::Done]),
            failed: count(&[State::Failed, State::Never]),
            elapsed_s: self.now_ns() as f64 / 1e9,
            cards: self.readings.iter().enumerate().map(card).collect(),
        };
        (self.spec.show)(View::of_trace(managed));
    }

    fn finish(self, launched_ns: u64) -> Result<Played, ManageError> {
        let Body { group, sampling, mut ledger, attempts, .. } = self;
        let sampled = sampling.stop().map_err(ObserveError::from)?;
        group.sweep();
        let ended_ns = monotonic_ns();
        let accounts: Vec<_> = ledger.accounts().cloned().collect();
        let books = |index: usize| {
            accounts.iter().flat_map(|account| &account.attempts).find(|own| own.attempt.id.0 as usize == index)?.ended
        };
        let mut played = Played {
            began_ns: self.began_ns,
            launched_ns,
            ended_ns,
            decided: ledger.take_decided(),
            attempts: Vec::new(),
            members: Vec::new(),
            checks: Vec::new(),
            epochs: Vec::new(),
            requests: Vec::new(),
            sampling: sampled,
            remarks: self.remarks,
            cut_short: self.cut_short,
            accounts: Vec::new(),
        };
        for (index, mut live) in attempts.into_iter().enumerate() {
            let ended = live.ended.clone().unwrap_or(EndedAttempt { at_ns: ended_ns, outcome: Outcome::Interrupted });
            let known = books(index);
            let cards: Vec<u32> = live.attempt.cards.iter().map(|card| card.0).collect();
            played.attempts.push(AttemptRecord {
                attempt: index as u32,
                task: live.attempt.task.0,
                cards,
                launched_ns: live.launched_ns,
                settled_ns: live.settled_ns,
                ended_ns: ended.at_ns,
                newcomer: known.map(|ended| ended.newcomer),
                alone: known.is_some_and(|ended| ended.alone),
                attested: live.attested.unwrap_or(AttestationVerdict::Absent),
                outcome: ended.outcome.clone(),
            });
            let spec = self.spec.tasks[live.attempt.task.0 as usize].member.spec();
            let is_complete = ended.outcome == Outcome::Completed;
            let mut member = live.watch.seats[0].record(&spec, live.peak_rss_bytes, is_complete);
            member.command = live.launch.as_ref().map(|launch| launch.command.clone()).unwrap_or_default();
            played.members.push(member);
            played
                .epochs
                .extend(live.watch.epochs().into_iter().map(|epoch| collo_store::EpochRecord { member: index as u32, ..epoch }));
            played.requests.extend(std::mem::take(&mut live.watch.seats[0].requests));
            played.checks.append(&mut live.checks);
        }
        played.checks.sort_by_key(|check| check.holds);
        played.accounts = accounts;
        Ok(played)
    }
}

/// The lesser of two verdicts.
fn worse(a: AttestationVerdict, b: AttestationVerdict) -> AttestationVerdict {
    use AttestationVerdict::{Absent, Attested, CountsOnly};
    match (a, b) {
        (Absent, _) | (_, Absent) => Absent,
        (CountsOnly, _) | (_, CountsOnly) => CountsOnly,
        (Attested, Attested) => Attested,
    }
}
