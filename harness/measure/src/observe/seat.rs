//! What is known of one member of a group, and where it stands: values that the state machine fills in.

use collo_store::Features;
use serde_json::Value;

use crate::launch::Ended;
use crate::launch::protocol::{Epoch, Hello, Peaks, Told, Whose};

/// Where a member stands.
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
    /// The word of the progress display and of `timed out`.
    pub fn word(self) -> &'static str {
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

/// What is known of one member so far.
#[derive(Debug, Clone)]
pub struct Seat {
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
    /// Peaks of the GPU allocator; none where it told none.
    pub peaks: Option<Peaks>,
    pub log_tail: Vec<String>,
    pub(super) done: bool,
    pub(super) told_error: Option<Told>,
    pub(super) last_progress_ns: Option<u64>,
    pub(super) stopped_by_us: bool,
}

/// What the shell found out about a member that ended: what the log and the kernel say.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    pub log_tail: Vec<String>,
    /// A line of the log that speaks of exhausted memory, and whose it was.
    pub out_of_memory: Option<(Whose, String)>,
    /// A line of the log that may speak of it.
    pub symptom: Option<String>,
    /// The kernel's OOM killer was at work since the launch.
    pub kernel_oom_kill: bool,
}

impl Seat {
    /// Nothing is known yet; `barrier` says whether the member speaks the protocol.
    pub fn empty(barrier: bool) -> Self {
        Seat {
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
            log_tail: Vec::new(),
            done: false,
            told_error: None,
            last_progress_ns: None,
            stopped_by_us: false,
        }
    }
    /// Keep the largest of what was told so far.
    pub(super) fn keep(&mut self, told: Peaks) {
        let known = self.peaks.unwrap_or(told);
        self.peaks = Some(Peaks {
            allocated_bytes: known.allocated_bytes.max(told.allocated_bytes),
            reserved_bytes: known.reserved_bytes.max(told.reserved_bytes),
            warm_up_allocated_bytes: known.warm_up_allocated_bytes.max(told.warm_up_allocated_bytes),
            warm_up_reserved_bytes: known.warm_up_reserved_bytes.max(told.warm_up_reserved_bytes),
        });
    }
}
