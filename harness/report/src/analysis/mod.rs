//! From a campaign's stored runs to numbers with intervals. In: a campaign folder. Out: an [`Analysis`]. It renders nothing, and
//! treats modes, workloads and metrics as text.

mod absent;
mod build;
mod cell_verdict;
pub mod check;
mod data;
mod devices;
pub mod environment;
mod headroom;
mod idle;
mod latency;
mod launches;
mod lender;
pub mod limitation;
mod pace;
mod pools;
mod predicted;
mod quantities;
mod reference;
mod repetition;
mod samples;
mod second_look;
mod server;
mod steady;
pub mod suspect;
mod timeline;
pub mod trace;
mod trust;
mod usage;
pub mod watching;
mod width;

use std::collections::{BTreeMap, HashMap};

use collo_store::{Campaign, CellRecord, Comment, Devices, Features, MemberSpec, Serving, Validity, Verdict};
use serde_json::{Map, Value};

use collo_quantity::Key;
use collo_quantity::stats::seats::Seats;
use collo_quantity::stats::{Quantity, RatioTest};

pub use absent::NOBODY_SERVES;
pub use build::analyse;
pub use cell_verdict::CellVerdict;
pub use check::Drift;
pub use devices::DeviceDifference;
pub use latency::Latency;
pub use launches::LaunchPoint;
pub use lender::Lender;
pub use predicted::{Claim, MemoryWarnings, PredictedPoint, PredictedQuantity, PredictionScore, Uncompared};
pub use quantities::{GainBy, capped};
pub use reference::{ReferenceCheck, ReferenceVerdict};
pub use repetition::{MemberNumbers, Repetition};
pub use second_look::{FarRun, SecondLook};
pub use server::Server;
pub use timeline::Timeline;
pub use trace::Traces;
pub use usage::MemoryKind;
pub use watching::Watching;
pub use width::WidthVerdict;

/// The contents of a report, before wording.
#[derive(Debug)]
pub struct Analysis {
    pub campaign: Campaign,
    /// What people wrote about it.
    pub comments: Vec<Comment>,
    /// Runs of the plan.
    pub planned: usize,
    /// Runs by outcome, including `missing`; they sum to `planned`.
    pub accounted: Vec<(&'static str, usize)>,
    /// In the order of the plan, without those of traces, and those that say who watches.
    pub cells: Vec<Cell>,
    /// Cells of traces, and what their runs say of policies; empty if the campaign has none.
    pub traces: Traces,
    /// Cells that say who watches them, and what that costs; empty if the campaign has none.
    pub watching: Watching,
    /// Solo cells of another campaign on the same GPU, with which those are compared whose own is missing; they are none of the plan.
    pub borrowed: Vec<Cell>,
    pub drifts: Vec<Drift>,
    /// What it was measured on.
    pub devices: Devices,
    /// A difference between these could be told from the noise of their blocks.
    pub devices_can_be_told: bool,
    /// How these differ by more than the noise.
    pub differences: Vec<DeviceDifference>,
    /// Mean share of the cores that other processes used, of a merged campaign where it was largest; `None` on a GPU, or if unread.
    pub others_ratio: Option<f64>,
    /// How the intervals were made: `pooled t` or `moderated t`; absent if no cell has two repetitions.
    pub method: Option<&'static str>,
    /// Time from the first launch to the last end.
    pub measured_for_s: Option<f64>,
    /// Names of the data sets that were stand-ins.
    pub synthetic: Vec<String>,
    /// Workloads whose epochs were cut short, with the remaining batches.
    pub shortened: Vec<(String, u64)>,
    /// Idle board power of the GPU, by its state: `whole`, `cut` into instances.
    pub idle_w: BTreeMap<&'static str, f64>,
    /// Unreadable entries of the campaign's folder.
    pub problems: Vec<String>,
    pub timelines: Vec<Timeline>,
    index: Index,
}

/// An index of cells: campaigns may have very many.
#[derive(Debug, Default)]
struct Index {
    /// Each solo cell, by its label.
    solos: HashMap<String, usize>,
    /// Workloads in the order of the plan.
    workloads: Vec<String>,
    /// Uniform cells of a workload.
    of_workload: HashMap<String, Vec<usize>>,
    /// Points of a sweep over launches, by threads and blocks.
    swept: Vec<usize>,
    /// On several devices each baseline with the runs of one, by device and label.
    baselines_by_device: HashMap<(usize, String), Cell>,
    /// By device: others of the same GPU, whose baselines stand in.
    stand_ins: BTreeMap<usize, Vec<usize>>,
}

impl Index {
    fn of(cells: &[Cell], baselines_by_device: Vec<Cell>, stand_ins: BTreeMap<usize, Vec<usize>>) -> Self {
        let by_device = |c: Cell| Some(((c.repetitions.first()?.device, c.name().to_string()), c));
        let baselines_by_device = baselines_by_device.into_iter().filter_map(by_device).collect();
        let mut index = Index { baselines_by_device, stand_ins, swept: launches::swept(cells), ..Index::default() };
        for (i, cell) in cells.iter().enumerate() {
            if cell.is_solo() {
                index.solos.entry(cell.name().to_string()).or_insert(i);
            }
            if let Some(workload) = cell.workload() {
                let places = index.of_workload.entry(workload.to_string()).or_insert_with(|| {
                    index.workloads.push(workload.to_string());
                    Vec::new()
                });
                places.push(i);
            }
        }
        index
    }
}

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
    /// All stored runs of the cell.
    pub repetitions: Vec<Repetition>,
    /// Of these, the ones its numbers come from.
    pub counted: Vec<usize>,
    pub quantities: BTreeMap<Key, Quantity>,
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
        let hellos = self.repetitions.iter().filter_map(|r| r.record().members.get(member)?.hello.as_ref());
        hellos.filter_map(|hello| hello.get("regime")?.as_object()).next()
    }

    /// Runs that its numbers come from.
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

impl Analysis {
    /// A cell by its label, slug or the folder of a repetition, or by a unique prefix of label or slug.
    pub fn cell(&self, asked: &str) -> Option<&Cell> {
        match self.cells_named(asked)[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The cell with this label, slug or folder; else all whose label or slug begins so. Typed text may have `x` for `×`.
    pub fn cells_named(&self, asked: &str) -> Vec<&Cell> {
        let plain = |text: &str| text.to_lowercase().replace('×', "x").replace(' ', "_").replace([':', ','], ".");
        let asked = plain(asked);
        let of_run = asked.rsplit_once('-').map(|(slug, _)| slug);
        let is = |c: &&Cell| plain(c.name()) == asked || c.record.slug == asked || of_run == Some(c.record.slug.as_str());
        let begins = |c: &&Cell| !asked.is_empty() && (plain(c.name()).starts_with(&asked) || c.record.slug.starts_with(&asked));
        match self.all_cells().find(is) {
            Some(exact) => vec![exact],
            None => self.all_cells().filter(begins).collect(),
        }
    }

    /// Those of traces too, last: for lists of what was planned and how it ended.
    pub fn all_cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().chain(&self.watching.cells).chain(&self.traces.cells)
    }

    /// The solo cell of a workload, where that has no usable run the one of another campaign that stands in.
    pub fn solo(&self, label: &str) -> Option<&Cell> {
        let own = self.index.solos.get(label).and_then(|at| self.cells.get(*at));
        let borrowed = || self.borrowed.iter().find(|c| c.name() == label);
        own.filter(|c| !c.counted.is_empty()).or_else(borrowed).or(own)
    }

    /// The solo cell of a workload where these runs were measured, to compare its own values with theirs. On several devices
    /// it has the runs of one; there is none for runs of several.
    pub fn solo_beside<'a>(&self, mut runs: impl Iterator<Item = &'a Repetition>, label: &str) -> Option<&Cell> {
        if !self.devices.are_several() {
            return self.solo(label);
        }
        let device = runs.next()?.device;
        let one = runs.all(|r| r.device == device);
        let stand_ins = self.index.stand_ins.get(&device).into_iter().flatten();
        let of = |device: &usize| self.index.baselines_by_device.get(&(*device, label.to_string()));
        let places = || std::iter::once(&device).chain(stand_ins.clone());
        places().filter_map(of).find(|c| !c.counted.is_empty()).or_else(|| of(&device)).filter(|_| one)
    }

    /// The largest ratio of one baseline's epoch times on different devices; `None` if none was measured in two.
    pub fn spread_of_baselines(&self) -> Option<f64> {
        let mut times = HashMap::<&str, Vec<f64>>::new();
        for ((device, label), baseline) in &self.index.baselines_by_device {
            if *device >= self.devices.all().len() {
                continue;
            }
            times.entry(label).or_default().extend(baseline.get(Key::EpochTime).map(|q| q.estimate));
        }
        let ratio = |times: &Vec<f64>| {
            let (low, high) = (times.iter().copied().reduce(f64::min)?, times.iter().copied().reduce(f64::max)?);
            (times.len() > 1).then_some(high / low)
        };
        times.values().filter_map(ratio).reduce(f64::max)
    }

    /// Groups: every cell that is not a baseline compared with itself.
    pub fn groups(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|c| !c.is_solo())
    }

    /// Workloads in the order of the plan, by the label of their solo cell.
    pub fn workloads(&self) -> Vec<&str> {
        self.index.workloads.iter().map(String::as_str).collect()
    }

    /// Uniform cells of one workload, including its solo cell.
    pub fn of_workload<'a>(&'a self, workload: &'a str) -> impl Iterator<Item = &'a Cell> {
        self.index.of_workload.get(workload).into_iter().flatten().filter_map(|at| self.cells.get(*at))
    }

    /// Runs with this outcome.
    pub fn count(&self, outcome: &str) -> usize {
        self.accounted.iter().find(|(word, _)| *word == outcome).map_or(0, |(_, n)| *n)
    }
}
