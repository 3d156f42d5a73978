//! The body of the manager: tasks that arrive are started on cards as a policy decides, and watched to their ends.
//!
//! In: the tasks, a staged site, the rules. Out: [`Played`], and readings and messages in a draft. It decides nothing: whatever happens is
//! told to the ledger of package `schedule`, and what the ledger asks for is done. Everything that it was told is written down, so that
//! `collo verify` can ask a fresh ledger the same.

mod attempt;
mod body;
mod evidence;
mod readings;

pub use body::play;

use std::time::Duration;

use collo_schedule::{Decided, Rules, TaskAccount};
use collo_store::{AttemptRecord, Check, EpochRecord, MemberRecord, RequestRecord, SamplingQuality};
use collo_text::Diagnostic;
use tokio::sync::watch;

use crate::observe::{self, View};
use crate::stage::StagedSite;
use collo_device::lease::LeasedGpu;
use collo_launch::MemberLaunch;
use collo_launch::interrupt::Stop;
use collo_plan::cell::{CellTask, Settle};
use collo_prepare::slot::Slot;
use collo_sample::Rates;

/// What is played, and on what.
pub struct ManageSpec<'a, 'l> {
    pub tasks: &'a [CellTask],
    /// By task: what it is believed to need of each of its cards.
    pub estimates: &'a [Option<u64>],
    pub rules: &'a Rules,
    pub settle: Settle,
    pub site: &'a mut StagedSite,
    /// The GPUs of the site.
    pub leases: &'a mut [LeasedGpu<'l>],
    /// How an attempt is started: its number, its task, its place.
    pub launch: &'a dyn Fn(usize, usize, &Slot) -> Result<MemberLaunch, Diagnostic>,
    /// By task, the rules of its attempts.
    pub of_task: &'a dyn Fn(usize) -> observe::Rules,
    pub threads: u32,
    pub all_cores: Vec<u32>,
    pub rates: Option<Rates>,
    /// Readings that stop for so long end the run.
    pub stall_timeout: Duration,
    pub stop: watch::Receiver<Stop>,
    pub show: &'a mut dyn FnMut(View),
}

/// What came of it.
pub struct Played {
    /// Arrivals are counted from here.
    pub began_ns: u64,
    pub launched_ns: u64,
    pub ended_ns: u64,
    /// The books of every task that arrived.
    pub accounts: Vec<TaskAccount>,
    pub decided: Vec<Decided>,
    /// By number.
    pub attempts: Vec<AttemptRecord>,
    pub members: Vec<MemberRecord>,
    /// The checks of every attempt's evidence, those that fail first.
    pub checks: Vec<Check>,
    pub epochs: Vec<EpochRecord>,
    pub requests: Vec<RequestRecord>,
    pub sampling: Vec<SamplingQuality>,
    /// What makes the run indicative at best.
    pub remarks: Vec<String>,
    /// Why it ended before its tasks did, if so.
    pub cut_short: Option<CutShort>,
}

/// Why a trace was not played to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutShort {
    /// Asked for; `true`: and everything was killed.
    Interrupted(bool),
    /// The mode was not in force for an attempt.
    ModeLost(String),
    /// Readings stopped, or no card is left.
    DeviceLost(String),
    /// What the policy needs cannot be read here.
    NotStaged(String),
    /// Nothing can be written any more.
    DiskFull(String),
}
