//! A campaign as a whole. In: its folder, and one that lends it baselines. Out: an [`Analysis`]: its cells, what they were measured on, what
//! keeps them from being more certain.

mod build;
pub mod devices;
pub mod environment;
pub mod launches;
mod lender;
pub mod limitation;
pub mod predicted;
pub mod reference;
pub mod reported;
pub mod width;

use std::collections::{BTreeMap, HashMap};

use collo_quantity::Key;
use collo_store::{Campaign, CellRecord, Comment, Devices};

use crate::campaign::devices::DeviceDifference;
use crate::campaign::reference::ReferenceCheck;
use crate::campaign::reported::FromReport;
use crate::cell::Cell;
use crate::reading::check::Drift;
use crate::reading::data::Shortened;
use crate::reading::repetition::Repetition;
use crate::timeline::Timeline;
use crate::trace::Traces;
use crate::watching::Watching;

pub use build::analyse;

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
    /// A difference between these could be told from the noise of their blocks; `None` in a report, which does not have it.
    pub devices_can_be_told: Option<bool>,
    /// How these differ by more than the noise.
    pub differences: Vec<DeviceDifference>,
    /// Mean share of the cores that other processes used, of a merged campaign where it was largest; `None` on a GPU, or if unread.
    pub others_ratio: Option<f64>,
    /// How the intervals were made: `pooled t` or `moderated t`; absent if no cell has two repetitions.
    pub method: Option<String>,
    /// Time from the first launch to the last end.
    pub measured_for_s: Option<f64>,
    /// Names of the data sets that were stand-ins.
    pub synthetic: Vec<String>,
    /// Workloads whose epochs were cut short.
    pub shortened: Vec<Shortened>,
    /// Idle board power of the GPU, by its state: `whole`, `cut` into instances.
    pub idle_w: BTreeMap<&'static str, f64>,
    /// Unreadable entries of the campaign's folder.
    pub problems: Vec<String>,
    pub timelines: Vec<Timeline>,
    /// Values that the experiment expects on this device, compared with what was measured.
    pub references: Vec<ReferenceCheck>,
    /// What is known from a report alone; absent where the runs are here.
    pub report: Option<FromReport>,
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

impl Analysis {
    /// A cell by its label, slug or the folder of a repetition, or by a unique prefix of label or slug.
    pub fn cell(&self, asked: &str) -> Option<&Cell> {
        match self.cells_named(asked)[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The cell with this label, slug or folder, or with this number in the plan; else all whose label or slug begins so. Typed text may
    /// have `x` for `×`, and spaces as it likes.
    pub fn cells_named(&self, asked: &str) -> Vec<&Cell> {
        let plain = |text: &str| text.to_lowercase().replace('×', "x").replace(' ', "_").replace([':', ','], ".");
        let asked = plain(asked);
        let of_run = asked.rsplit_once('-').map(|(slug, _)| slug);
        let is = |c: &&Cell| plain(c.name()) == asked || c.record.slug == asked || of_run == Some(c.record.slug.as_str());
        let begins = |c: &&Cell| !asked.is_empty() && (plain(c.name()).starts_with(&asked) || c.record.slug.starts_with(&asked));
        let numbered = || self.campaign.plan.numbered(asked.parse().ok()?);
        let of = |record: &CellRecord| self.all_cells().find(|c| c.name() == record.cell);
        let squeezed = |text: &str| plain(text).replace('_', "");
        let begins_squeezed = |c: &&Cell| !asked.is_empty() && squeezed(c.name()).starts_with(&squeezed(&asked));
        match self.all_cells().find(is).or_else(|| numbered().and_then(of)) {
            Some(exact) => vec![exact],
            None if self.all_cells().any(|c| begins(&c)) => self.all_cells().filter(begins).collect(),
            None => self.all_cells().filter(begins_squeezed).collect(),
        }
    }

    /// Those of traces too, last: for lists of what was planned and how it ended.
    pub fn all_cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().chain(&self.watching.cells).chain(&self.traces.cells)
    }

    /// The block whose baseline changed its pace most; it is large if any is.
    pub fn worst_drift(&self) -> Option<&Drift> {
        self.drifts.iter().max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()))
    }

    /// The solo cell of a workload, where that has no usable run the one of another campaign that stands in.
    pub fn solo(&self, label: &str) -> Option<&Cell> {
        let own = self.index.solos.get(label).and_then(|at| self.cells.get(*at));
        let borrowed = || self.borrowed.iter().find(|c| c.name() == label);
        own.filter(|c| c.counts()).or_else(borrowed).or(own)
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
