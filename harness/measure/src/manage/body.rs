//! One loop receives everything that happens to a site and orders it; the ledger decides.

mod attesting;
mod breaking;
mod ending;
mod hearing;
mod launching;
mod looking;
mod recording;
mod telling;

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use collo_schedule::{Act as Asked, Happened, Ledger, Task, TaskId};
use collo_store::{HAPPENED, RunDraft, Sample, monotonic_ns};
use tokio::sync::mpsc;

use super::attempt::LiveAttempt;
use super::evidence::{Evidence, Gathering};
use super::readings::CardReadings;
use super::{CutShort, ManageSpec, Played};
use crate::error::RunError;
use crate::observe::inbox::{Inbox, Received};
use crate::observe::{Transcript, failure_log};
use collo_launch::{Group, Signal};
use collo_sample::{Sampling, Sites};

/// Capacity for members' messages: a hundred tasks may come and go at once. While it is full, members wait.
const WAITING: usize = 64;

/// What only this loop waits for.
enum Own {
    Evidence(Evidence),
    /// The next task arrives.
    Arrival,
    /// The ledger asked to be called now.
    LookAt,
    Sampled(Vec<Sample>),
}

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
    /// By card, why it is lost.
    lost: Vec<Option<String>>,
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

/// Play the tasks to their ends.
pub async fn play(spec: ManageSpec<'_, '_>, draft: &mut RunDraft) -> Result<Played, RunError> {
    let (signals, heard) = mpsc::channel(WAITING);
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
    let sites = Sites { boards: &boards, one_process: false, core_sets: &core_sets, tap: Some(tap) };
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
        readings: (0..cards).map(|card| telling::readings_of(&spec, card)).collect(),
        told_ns: vec![0; cards],
        rss_bytes: Vec::new(),
        lost: vec![None; cards],
        broken: vec![false; cards],
        transcript: Transcript::of(0),
        happened: std::fs::File::create(draft.inside().join(HAPPENED)).map_err(collo_store::Error::from)?,
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
    let mut inbox = Inbox::open(heard, body.spec.stop.clone(), body.began_ns);
    let mut next = 0;
    if body.cut_short.is_none() {
        body.begin();
    }
    while !body.is_over() {
        let due_ns = body.spec.tasks.get(next).filter(|_| body.cut_short.is_none()).map(|task| body.began_ns + task.arrives_ns);
        let look_at_ns = body.look_at_ns;
        let own = async {
            tokio::select! {
                biased;
                Some(evidence) = findings.recv() => Own::Evidence(evidence),
                () = until(due_ns) => Own::Arrival,
                () = until(look_at_ns) => Own::LookAt,
                Some(batch) = samples.recv() => Own::Sampled(batch),
            }
        };
        match inbox.next(std::future::pending(), own).await {
            Received::Stop(asked) => body.stopped(asked),
            Received::Look { now_ns, suspended } => body.look(now_ns, suspended),
            Received::Signal(member, signal) => {
                if let Some(line) = body.transcript.line(member, &signal, monotonic_ns())
                    && let Err(e) = draft.event(&line)
                {
                    body.disk_full(&e.to_string());
                }
                body.hear(member, signal);
            }
            Received::Own(Own::Evidence(Evidence::Found(found))) => body.found(found),
            Received::Own(Own::Evidence(Evidence::Again(card))) => body.gather_again(card),
            Received::Own(Own::Arrival) => {
                // While nobody waited nothing was told: what they are placed by is of now.
                (0..body.readings.len()).for_each(|card| body.tell_reading(card));
                // Those of one moment are told together, in the order of the trace.
                while let Some(task) = body.spec.tasks.get(next).filter(|task| body.began_ns + task.arrives_ns <= monotonic_ns())
                {
                    let (cards, arrives_ns) = (task.cards, task.arrives_ns);
                    body.arrived(next, cards, arrives_ns);
                    next += 1;
                }
            }
            Received::Own(Own::LookAt) => {
                body.look_at_ns = None;
                body.queue.push_back(Happened::Look);
            }
            Received::Own(Own::Sampled(batch)) => body.sampled(&batch),
        }
        body.settle_what_happened();
    }
    if body.cut_short.is_some() {
        body.queue.push_back(Happened::Stopped);
        body.settle_what_happened();
    }
    body.finish(launched_ns)
}

/// Wait until then; for ever without a time.
async fn until(at_ns: Option<u64>) {
    match at_ns {
        Some(ns) => tokio::time::sleep(Duration::from_nanos(ns.saturating_sub(monotonic_ns()))).await,
        None => std::future::pending().await,
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
            // Written at once: a line is then whole or absent, and costs one call.
            let line = format!("{}\n", serde_json::json!({"at_ns": now_ns, "happened": what}));
            if let Err(e) = self.happened.write_all(line.as_bytes()) {
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
}
