//! The state of one member of a group: values that the state machine fills in.

use collo_store::{Features, MemberRecord, MemberSpec, RequestRecord, Serving};
use serde_json::Value;

use super::ServingStats;
use collo_launch::Ended;
use collo_launch::protocol::{AllocatorPeaks, Epoch, Hello, Requests, Shortfall, Told, Whose};

/// Maximum number of requests that one member may report in a run: an hour at more than a thousand a second, in 240 MB.
const MOST_REQUESTS: usize = 5_000_000;
/// The display's latency covers this many requests.
const NEWEST: usize = 1000;

/// The phase of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Start,
    SetUp,
    WarmUp,
    Ready,
    Measure,
    Tail,
    Ended,
}

impl Phase {
    /// Its name in the progress display and in `timed out`.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Start => "start",
            Phase::SetUp => "set-up",
            Phase::WarmUp => "warm-up",
            Phase::Ready => "ready",
            Phase::Measure => "measure",
            Phase::Tail => "tail",
            Phase::Ended => "done",
        }
    }
}

/// The state of one member so far.
#[derive(Debug, Clone)]
pub struct MemberState {
    pub barrier: bool,
    pub phase: Phase,
    pub pid: Option<u32>,
    pub hello: Option<Hello>,
    pub hello_raw: Option<Value>,
    pub ready_ns: Option<u64>,
    pub training_start_ns: Option<u64>,
    pub training_end_ns: Option<u64>,
    pub epochs: Vec<Epoch>,
    pub ended: Option<Ended>,
    pub features: Option<Features>,
    /// Peaks of the GPU allocator; `None` if it reported none.
    pub peaks: Option<AllocatorPeaks>,
    /// Of a serving member: requests per second that it answers alone at most.
    pub capacity_per_s: Option<f64>,
    pub requests: Vec<RequestRecord>,
    answered: usize,
    pub log_tail: Vec<String>,
    pub(super) done: bool,
    pub(super) told_error: Option<Told>,
    /// Of a foreign script: what its output lacks so far.
    pub shortfall: Option<Shortfall>,
    pub(super) last_progress_ns: Option<u64>,
    pub(super) stopped_by_us: bool,
}

/// Evidence about a member that ended: from the log and the kernel.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    pub log_tail: Vec<String>,
    /// The final error of the log if it is certainly one of exhausted memory, and whose it was.
    pub out_of_memory: Option<(Whose, String)>,
    /// The same if it may be one.
    pub symptom: Option<String>,
    /// The kernel's OOM killer was active since the launch.
    pub kernel_oom_kill: bool,
}

impl MemberState {
    /// Nothing is known yet; `barrier` says whether the member speaks the protocol.
    pub fn empty(barrier: bool) -> Self {
        MemberState {
            barrier,
            phase: Phase::Start,
            pid: None,
            hello: None,
            hello_raw: None,
            ready_ns: None,
            training_start_ns: None,
            training_end_ns: None,
            epochs: Vec::new(),
            ended: None,
            features: None,
            peaks: None,
            capacity_per_s: None,
            requests: Vec::new(),
            answered: 0,
            log_tail: Vec::new(),
            done: false,
            told_error: None,
            shortfall: None,
            last_progress_ns: None,
            stopped_by_us: false,
        }
    }

    /// Whether `go` need not wait for it. `waits_for_scripts`: a member without a barrier is waited for until its first epoch.
    pub(super) fn is_ready(&self, waits_for_scripts: bool) -> bool {
        match (self.barrier, waits_for_scripts) {
            (true, _) => self.ready_ns.is_some(),
            (false, true) => !self.epochs.is_empty(),
            (false, false) => self.pid.is_some(),
        }
    }

    /// The stored record; with the end of its log only if the run is not complete.
    pub fn record(&self, spec: &MemberSpec, peak_rss_bytes: Option<u64>, is_complete: bool) -> MemberRecord {
        MemberRecord {
            spec: spec.clone(),
            command: Vec::new(),
            pid: self.pid,
            slice: None,
            barrier: self.barrier,
            hello: self.hello_raw.clone(),
            synthetic: self.hello.as_ref().and_then(|h| h.dataset.as_ref()).map(|d| d.synthetic),
            limit_batches: self.hello.as_ref().and_then(|h| h.limit_batches),
            serving: self.serving(),
            features: self.features.clone(),
            ready_ns: self.ready_ns,
            training_start_ns: self.training_start_ns,
            training_end_ns: self.training_end_ns,
            exit: self.ended.as_ref().map(|e| e.live.to_string()),
            cpu_time_s: self.ended.as_ref().and_then(|e| e.cpu_time_s),
            peak_rss_bytes,
            allocated_bytes: self.peaks.and_then(|p| p.allocated_bytes),
            reserved_bytes: self.peaks.and_then(|p| p.reserved_bytes),
            warm_up_allocated_bytes: self.peaks.and_then(|p| p.warm_up_allocated_bytes),
            warm_up_reserved_bytes: self.peaks.and_then(|p| p.warm_up_reserved_bytes),
            orphans: self.ended.iter().flat_map(|e| e.orphans.iter().map(|(pid, _)| *pid)).collect(),
            log_tail: if is_complete { Vec::new() } else { self.log_tail.clone() },
            proposed_epochs: self.shortfall.as_ref().and_then(|shortfall| shortfall.proposal.clone()),
        }
    }

    /// Keep the largest of the values reported so far.
    pub(super) fn keep(&mut self, told: AllocatorPeaks) {
        let known = self.peaks.unwrap_or(told);
        self.peaks = Some(AllocatorPeaks {
            allocated_bytes: known.allocated_bytes.max(told.allocated_bytes),
            reserved_bytes: known.reserved_bytes.max(told.reserved_bytes),
            warm_up_allocated_bytes: known.warm_up_allocated_bytes.max(told.warm_up_allocated_bytes),
            warm_up_reserved_bytes: known.warm_up_reserved_bytes.max(told.warm_up_reserved_bytes),
        });
    }

    /// What the output of a foreign script lacks, behind another sentence.
    pub(super) fn lacks(&self) -> String {
        self.shortfall.as_ref().map(|shortfall| format!(": {}", shortfall.message)).unwrap_or_default()
    }

    /// Its load and capacity; `None` if it trains.
    pub fn serving(&self) -> Option<Serving> {
        let asked = self.hello.as_ref()?.serving.clone()?;
        Some(Serving { capacity_per_s: self.capacity_per_s, ..asked })
    }

    /// Its request statistics; `None` if it trains.
    pub fn served(&self) -> Option<ServingStats> {
        self.hello.as_ref()?.serving.as_ref()?;
        // A look at all of them, four times a second, would be work that grows with the run.
        let newest = &self.requests[self.requests.len().saturating_sub(NEWEST)..];
        let mut latencies_ns: Vec<u64> = newest.iter().filter_map(|r| Some(r.end_ns? - r.arrival_ns)).collect();
        latencies_ns.sort_unstable();
        let rank = (0.99 * latencies_ns.len() as f64).ceil() as usize;
        let p99_s = rank.checked_sub(1).map(|at| latencies_ns[at] as f64 / 1e9);
        Some(ServingStats { answered: self.answered, p99_s })
    }

    /// Store the capacity of member `member`; the error says why it is impossible.
    pub(super) fn keep_capacity(&mut self, member: usize, requests_per_s: f64) -> Result<(), String> {
        self.must_serve(member, "sends a capacity")?;
        self.capacity_per_s = Some(requests_per_s);
        Ok(())
    }

    /// Store requests of member `member`, and return whether any was answered; the error says what is impossible.
    pub(super) fn keep_requests(
        &mut self,
        member: usize,
        said: &Requests,
        go_ns: Option<u64>,
        now_ns: u64,
    ) -> Result<bool, String> {
        self.must_serve(member, "sends latencies")?;
        let first = said.arrival_ns.iter().min();
        if let Some(&first) = first
            && go_ns.is_none_or(|go| first < go)
        {
            return Err(format!("member {member} sends latencies of requests that arrived before `go`"));
        }
        if said.latest_ns().is_some_and(|last| last > now_ns) {
            return Err(format!("member {member} sends latencies from the future: its clock is not CLOCK_MONOTONIC"));
        }
        if self.requests.len() + said.arrival_ns.len() > MOST_REQUESTS {
            return Err(format!("member {member} sends latencies of more than {MOST_REQUESTS} requests: lower its rate"));
        }
        let record = |(arrival_ns, start_ns, end_ns)| RequestRecord { member: member as u32, arrival_ns, start_ns, end_ns };
        self.requests.extend(said.iter().map(record));
        let answered = said.end_ns.iter().flatten().count();
        self.answered += answered;
        Ok(answered > 0)
    }

    fn must_serve(&self, member: usize, what: &str) -> Result<(), String> {
        match self.hello.as_ref().and_then(|h| h.serving.as_ref()) {
            Some(_) => Ok(()),
            None => Err(format!("member {member} {what}, but its hello has no `serving`")),
        }
    }
}
