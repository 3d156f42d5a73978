//! What is known of one member of a group, and where it stands: values that the state machine fills in.

use collo_store::Features;
use serde_json::Value;

use crate::launch::Ended;
use crate::launch::protocol::{Epoch, Hello};

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
    pub allocated_bytes: Option<u64>,
    pub reserved_bytes: Option<u64>,
    pub log_tail: Vec<String>,
    pub(super) done: bool,
    pub(super) told_error: Option<(String, String)>,
    pub(super) last_progress_ns: Option<u64>,
    pub(super) stopped_by_us: bool,
}

/// What the shell found out about a member that ended: what the log and the kernel say.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    pub log_tail: Vec<String>,
    /// A line of the log that speaks of exhausted memory.
    pub out_of_memory_line: Option<String>,
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
            allocated_bytes: None,
            reserved_bytes: None,
            log_tail: Vec::new(),
            done: false,
            told_error: None,
            last_progress_ns: None,
            stopped_by_us: false,
        }
    }
}
