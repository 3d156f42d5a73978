//! One cell over its repetitions, with its numbers.

pub mod absent;
pub mod lent;
pub mod pace;
pub mod pools;
pub mod quantities;
pub mod reported;
pub mod second_look;
pub mod server;
pub mod steady;
pub mod suspect;
pub mod verdict;

use std::collections::BTreeMap;

use collo_quantity::Key;
use collo_quantity::definition::Subject;
use collo_quantity::stats::seats::Seats;
use collo_quantity::stats::{Quantity, RatioTest};
use collo_store::{CellRecord, Features, MemberSpec, Serving, Validity, Verdict};
use serde_json::{Map, Value};

use crate::cell::lent::Lender;
use crate::cell::reported::ReportedRuns;
use crate::cell::second_look::SecondLook;
use crate::reading::repetition::Repetition;
use crate::reading::usage::MemoryKind;

/// A regime by the names of its conditions, as in a hello under `regime`.
pub type Regime = Map<String, Value>;

/// One cell over its repetitions.
#[derive(Debug)]
pub struct Cell {
    pub record: CellRecord,
    /// Outcomes of its runs, by keyword; planned runs that were not made are `missing`.
    pub outcomes: BTreeMap<&'static str, usize>,
    pub validity: Validity,
    /// Unusual but not left out: repetitions far from the others, temperature or clocks that drifted.
    pub suspicious: Vec<String>,
    /// Its main quantities without the runs far from the others; `None` if it has none.
    pub second_look: Option<SecondLook>,
    /// All stored runs of the cell; none of one that was read from a report.
    pub repetitions: Vec<Repetition>,
    /// Of these, the ones its numbers come from.
    pub(crate) counted: Vec<usize>,
    /// What a report has of its runs, where these are not here.
    pub reported: Option<ReportedRuns>,
    pub quantities: BTreeMap<Key, Quantity>,
    /// The values of its quantities in each counted run, in their order; none of a cell that was read from a report.
    pub(crate) by_run: BTreeMap<Key, Vec<f64>>,
    /// Means of metrics that are not a member's, by metric.
    pub metrics: BTreeMap<String, Quantity>,
    pub members: Vec<Member>,
    /// Why a quantity is absent.
    pub absent: BTreeMap<Key, String>,
    pub memory_kind: Option<MemoryKind>,
    /// The throughput gain compared with 1, corrected for the number of groups.
    pub gain_verdict: Option<RatioTest>,
    /// The campaign whose baselines it is compared with, if they are not of its own.
    pub lender: Option<Lender>,
    /// Why it has nothing to be compared with, although it ran.
    pub no_baseline: Option<String>,
}

/// One member of a cell over its repetitions.
#[derive(Debug)]
pub struct Member {
    pub spec: MemberSpec,
    /// Its load, if it serves instead of training.
    pub serving: Option<Serving>,
    pub quantities: BTreeMap<Key, Quantity>,
    /// Why a quantity is absent: of its requests, if it serves; of what its process used, if it shares that.
    pub absent: BTreeMap<Key, String>,
    /// Mean over repetitions of the last measured epoch's loss.
    pub loss: Option<f64>,
    /// Its computation graph, as reported in a run.
    pub features: Option<Features>,
}

impl Member {
    pub fn get(&self, key: Key) -> Option<&Quantity> {
        self.quantities.get(&key)
    }
}

impl Cell {
    pub fn get(&self, key: Key) -> Option<&Quantity> {
        self.quantities.get(&key)
    }

    /// A metric of the device that has a definition.
    pub fn metric(&self, key: Key) -> Option<&Quantity> {
        self.metrics.get(key.name)
    }

    /// A quantity of the cell, or of the GPU while it ran. A metric of the host can have the name of a members' quantity, as
    /// `cpu_ratio` has, and never stands in for it.
    pub fn reading(&self, key: Key) -> Option<&Quantity> {
        self.get(key).or_else(|| self.metric(key).filter(|_| key.subject == Subject::Card))
    }

    /// What [`Cell::reading`] is the mean of: the value in each counted run that has one, in the order of the runs.
    pub fn readings(&self, key: Key) -> Vec<f64> {
        if let Some(values) = self.by_run.get(&key).filter(|_| self.get(key).is_some()) {
            return values.clone();
        }
        match self.reading(key) {
            Some(_) => self.counted().filter_map(|r| r.metrics.get(key.name).copied()).collect(),
            None => Vec::new(),
        }
    }

    /// Its label.
    pub fn name(&self) -> &str {
        &self.record.cell
    }

    /// True for a workload alone on the whole device, which others are compared with.
    pub fn is_solo(&self) -> bool {
        self.record.is_solo()
    }

    /// Completed only if every planned run of it was; else the most frequent other outcome.
    pub fn outcome(&self) -> &'static str {
        if let Some(reported) = &self.reported {
            return reported.outcome;
        }
        let others = self.outcomes.iter().filter(|(word, n)| **word != "completed" && **n > 0);
        others.max_by_key(|(_, n)| **n).map_or("completed", |(word, _)| word)
    }

    /// Its mode without its settings, except where a limit makes it another mode: `mps:50%` is not `mps`.
    pub fn family(&self) -> &str {
        if self.is_separated() { &self.record.mode.family } else { &self.record.sharing }
    }

    /// True if every member has a GPU instance to itself: MPS inside instances, and compute instances of one GPU instance, share
    /// memory.
    pub fn is_separated(&self) -> bool {
        self.record.mode.isolated
    }

    /// True if its numbers may support a guideline.
    pub fn is_valid(&self) -> bool {
        self.validity.verdict == Verdict::Valid
    }

    /// True if one of its members serves: then it has no epoch time, and nothing derived from it.
    pub fn serves(&self) -> bool {
        self.members.iter().any(|m| m.serving.is_some())
    }

    /// Its training members, if others serve.
    pub fn trainers(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|m| m.serving.is_none())
    }

    /// The regime that a member reported, in any run.
    pub fn regime(&self, member: usize) -> Option<&Regime> {
        if let Some(reported) = &self.reported {
            return reported.regimes.get(member)?.as_ref();
        }
        let hellos = self.repetitions.iter().filter_map(|r| r.record().members.get(member)?.hello.as_ref());
        hellos.filter_map(|hello| hello.get("regime")?.as_object()).next()
    }

    /// Runs that its numbers come from, as far as they are here.
    pub fn counted(&self) -> impl Iterator<Item = &Repetition> {
        self.counted.iter().map(|&i| &self.repetitions[i])
    }

    /// The progress of each member in each counted run, if all trained measured epochs: equal members are compared by it.
    pub fn seats(&self) -> Option<Seats> {
        let progress = |r: &Repetition| r.members.iter().map(|m| Some(1.0 / m.epoch_s?)).collect::<Option<Vec<f64>>>();
        Seats::of(&self.counted().map(progress).collect::<Option<Vec<_>>>()?)
    }

    /// SM activity of a member's own instance: the mean over its runs, and their number.
    pub fn on_instance(&self, member: usize) -> Option<(f64, usize)> {
        let read = self.counted().filter_map(|r| r.members.get(member)?.instance_sm_active_ratio);
        let (sum, n) = read.fold((0.0, 0), |(sum, n), x| (sum + x, n + 1));
        (n > 0).then(|| (sum / n as f64, n))
    }

    /// The workload with its settings, named as its solo cell; `None` for a mixed group.
    pub fn workload(&self) -> Option<&str> {
        self.record.is_uniform().then(|| self.record.members.first().map(|m| m.solo.as_str()))?
    }
}
