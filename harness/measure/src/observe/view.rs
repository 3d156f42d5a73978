//! How a group or a trace stands, for displays.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{MemberState, Phase};
use collo_launch::protocol::Shortfall;
use collo_sample::LatestValues;
use collo_store::member_scope;

/// The status of a group, for displays.
#[derive(Debug, Clone)]
pub struct View {
    pub members: Vec<MemberView>,
    /// From launch until the last member was ready; `None` before.
    pub ready_after_s: Option<f64>,
    /// Spread of the starts; `None` until every member has finished its first epoch, and where one has no barrier.
    pub skew_ns: Option<u64>,
    /// Whether the mode is attested; `None` before the evidence was gathered.
    pub attested: Option<bool>,
    /// The latest values of the GPU; `None` on a CPU.
    pub card: Option<LatestValues>,
    /// Of a trace: its tasks and cards instead of members.
    pub managed: Option<ManagedView>,
}

/// The status of a trace, for displays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ManagedView {
    pub tasks: usize,
    pub arrived: usize,
    pub waiting: usize,
    pub running: usize,
    pub done: usize,
    /// Failed, or too large for every card.
    pub failed: usize,
    /// Since the first moment of the trace.
    pub elapsed_s: f64,
    /// By card: residents, SM activity (on a CPU, busy cores), free memory.
    pub cards: Vec<(usize, Option<f64>, Option<u64>)>,
}

impl View {
    /// Of a trace.
    pub fn of_trace(managed: ManagedView) -> View {
        View { members: Vec::new(), ready_after_s: None, skew_ns: None, attested: None, card: None, managed: Some(managed) }
    }
}

/// The status of one member.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberView {
    pub phase: Phase,
    /// Measured epochs that have ended.
    pub measured: u32,
    /// From the start of the first of them to the end of the last.
    pub measured_s: f64,
    pub last_epoch_s: Option<f64>,
    pub loss: Option<f64>,
    /// Its requests, if it serves.
    pub served: Option<ServingStats>,
    /// Of a foreign script whose output matches no pattern so far.
    pub shortfall: Option<Shortfall>,
    pub watched: LatestValues,
}

/// Request statistics of a serving member.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServingStats {
    /// Requests answered so far.
    pub answered: usize,
    /// The 99th percentile of the latencies of the newest of them; `None` before any was answered.
    pub p99_s: Option<f64>,
}

impl MemberView {
    /// Of the member at `index`, with its newest samples.
    pub(super) fn of(index: usize, seat: &MemberState, latest: &BTreeMap<Arc<str>, LatestValues>) -> MemberView {
        let last = seat.epochs.last();
        MemberView {
            phase: seat.phase,
            measured: seat.epochs.iter().filter(|e| e.measured).count() as u32,
            measured_s: {
                let mut measured = seat.epochs.iter().filter(|e| e.measured);
                let first = measured.next();
                let last = measured.next_back().or(first);
                first.zip(last).map_or(0.0, |(a, b)| b.end_ns.saturating_sub(a.start_ns) as f64 / 1e9)
            },
            last_epoch_s: last.map(|e| (e.end_ns - e.start_ns) as f64 / 1e9),
            loss: last.and_then(|e| e.loss),
            served: seat.served(),
            shortfall: seat.shortfall.clone(),
            watched: latest.get(&member_scope(index)).copied().unwrap_or_default(),
        }
    }
}
