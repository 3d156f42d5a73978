//! What it costs to be watched. In: cells that say who watches, and their runs. Out: for each group its observers beside nobody, with the
//! ratio of epoch times within blocks, and what each observer took for itself.
//!
//! Runs of such cells leave the others: nobody compares a group that a profiler slows down with another group.

use std::collections::{BTreeMap, BTreeSet};

use collo_quantity::Key;
use collo_quantity::stats::orders::{self, Values};
use collo_quantity::stats::{self, Pool, Quantity, RatioTest, RatioVerdict};
use collo_store::{NOBODY_WATCHES, ObserverOutcome, ObserverRecord, PROFILER};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cell::Cell;
use crate::reading::repetition::{MeasuredBlock, Repetition};

/// Where runs may be compared: the merged campaign, and the block with its sitting.
type At = (usize, MeasuredBlock);

/// Cells that say who watches, and what that costs.
#[derive(Debug, Default)]
pub struct Watching {
    /// In the order of the plan, with their own numbers.
    pub cells: Vec<Cell>,
    /// One for each group of members under a mode.
    pub groups: Vec<WatchedGroup>,
}

/// The same members under the same mode, under the eyes of several. Their runs are no groups, and a report's `cells` has none of them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct WatchedGroup {
    /// The label of its cells without the observer: `tiny×2 naive b32`.
    #[serde(rename = "group")]
    pub name: String,
    /// In the order of the plan, nobody first.
    #[serde(rename = "observers")]
    pub rows: Vec<WatchedCost>,
    /// How the intervals were made; null for one block.
    pub method: Option<String>,
}

/// What one observer of a group costs; null where it was not or cannot be read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct WatchedCost {
    /// `none`, `collo:100Hz`, `top`.
    pub observer: String,
    /// `beside`, `around`, `inside`; null for `none` and `collo`.
    pub place: Option<String>,
    /// True for one that instruments, stops or runs the members; null for `none`, and in runs before it was recorded.
    pub profiles: Option<bool>,
    /// Whom else it disturbs, in the words of its file.
    pub disturbs: Option<String>,
    /// The label of its cell.
    #[serde(rename = "cell")]
    pub label: String,
    /// The same as an index into [`Watching::cells`].
    #[serde(skip)]
    pub cell: usize,
    /// Runs that its numbers come from.
    #[serde(rename = "repetitions")]
    pub runs: usize,
    pub epoch_time_s: Option<Quantity>,
    /// Epoch time ÷ that under `none` within the same block.
    #[serde(rename = "epoch_time_of_none")]
    pub ratio: Option<Quantity>,
    /// Compared with 1, corrected for all observers of all groups.
    #[serde(flatten, serialize_with = "judged", deserialize_with = "tested")]
    #[schemars(with = "Judged")]
    pub test: Option<RatioTest>,
    /// CPU time of the members over the whole run ÷ that under `none` within the same block: the only place where the CPU time of an
    /// observer around or inside the members shows.
    #[serde(rename = "members_cpu_of_none")]
    pub members_cpu_ratio: Option<Quantity>,
    /// Cores that it keeps busy itself; of collo its sampling threads.
    #[serde(rename = "cpu_ratio")]
    pub cpu_cores: Option<f64>,
    /// Cores that services keep busy that work for it, all together.
    #[serde(rename = "services_cpu_ratio")]
    pub daemons_cpu_cores: Option<f64>,
    /// Names of these.
    #[serde(rename = "services")]
    pub daemons: Vec<String>,
    /// Cores that collo's own process keeps busy meanwhile.
    #[serde(rename = "collo_cpu_ratio")]
    pub collo_cpu_cores: Option<f64>,
    pub memory_bytes: Option<f64>,
    /// Written in a run, of those in which it ended by itself.
    #[serde(rename = "written_bytes")]
    pub bytes: Option<f64>,
    /// By the time in which it recorded: beside the members while it watched, inside them in measured epochs, else the whole run.
    #[serde(rename = "written_bytes_per_hour")]
    pub bytes_per_hour: Option<f64>,
    /// Runs that were not watched to their end, and the first reason.
    pub lost: usize,
    pub why_lost: Option<String>,
    /// Runs in which it did not end in time and was killed; what it wrote there is in no number.
    pub killed: usize,
}

/// A test as `report.json` has it beside what was tested.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Judged {
    /// That the two are alike, corrected for all observers.
    p_adjusted: Option<f64>,
    /// `slower` or `faster` than under `none`, `same`, `cannot_tell`.
    verdict: Option<String>,
}

/// A ratio of epoch times, that under an observer to that under `none`, in a word: above 1 is slower.
fn word(verdict: RatioVerdict) -> &'static str {
    match verdict {
        RatioVerdict::Better => "slower",
        RatioVerdict::Worse => "faster",
        other => other.as_str(),
    }
}

fn judged<S: Serializer>(test: &Option<RatioTest>, to: S) -> Result<S::Ok, S::Error> {
    let test = test.as_ref();
    Judged { p_adjusted: test.map(|t| t.p_adjusted), verdict: test.map(|t| word(t.verdict).into()) }.serialize(to)
}

/// The p-value before its correction is not in a report.
fn tested<'de, D: Deserializer<'de>>(from: D) -> Result<Option<RatioTest>, D::Error> {
    let Judged { p_adjusted, verdict } = Judged::deserialize(from)?;
    let of = |word: &str| match word {
        "slower" => Some(RatioVerdict::Better),
        "faster" => Some(RatioVerdict::Worse),
        other => RatioVerdict::find(other, ""),
    };
    let test = |(p_adjusted, verdict): (f64, String)| Some(RatioTest { p: f64::NAN, p_adjusted, verdict: of(&verdict)? });
    Ok(p_adjusted.zip(verdict).and_then(test))
}

impl WatchedCost {
    pub fn is_nobody(&self) -> bool {
        self.observer == NOBODY_WATCHES
    }

    /// How its time was judged, as `report.json` and the exports have it.
    pub fn verdict(&self) -> Option<&'static str> {
        self.test.as_ref().map(|test| word(test.verdict))
    }
}

impl Watching {
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.cells.is_empty()
    }

    /// A cell by its label.
    pub fn cell(&self, label: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.name() == label)
    }

    pub fn of(cells: Vec<Cell>, threshold: f64) -> Watching {
        let mut groups: Vec<WatchedGroup> = Vec::new();
        for (place, cell) in cells.iter().enumerate() {
            let Some(observer) = &cell.record.observe else { continue };
            let name = cell.name().strip_suffix(observer.as_str()).unwrap_or(cell.name()).trim_end().to_string();
            let row = cost(place, cell, observer);
            match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => group.rows.push(row),
                None => groups.push(WatchedGroup { name, rows: vec![row], method: None }),
            }
        }
        for group in &mut groups {
            group.rows.sort_by_key(|row| !row.is_nobody());
            group.compare(&cells);
        }
        judge(&mut groups, &cells, threshold);
        Watching { cells, groups }
    }
}

impl WatchedGroup {
    /// The ratios to nobody. Repeats in one block are averaged first: a block is the unit.
    fn compare(&mut self, cells: &[Cell]) {
        let ratios = |of: fn(&Repetition) -> Option<f64>| -> (Vec<Option<Quantity>>, Option<&'static str>) {
            let values: Vec<Values<At>> = self.rows.iter().map(|row| by_block(&cells[row.cell], of)).collect();
            let Some(nobody) = self.rows.iter().position(WatchedCost::is_nobody) else {
                return (vec![None; self.rows.len()], None);
            };
            let pool = orders::pool(&values.iter().collect::<Vec<_>>(), nobody);
            let ratio = |(at, own)| if at == nobody { None } else { orders::ratio(own, &values[nobody], pool.as_ref()) };
            (values.iter().enumerate().map(ratio).collect(), pool.as_ref().map(Pool::name))
        };
        let (of_epochs, method) = ratios(epoch_s);
        let (of_cpu, _) = ratios(members_cpu_s);
        for ((row, ratio), cpu) in self.rows.iter_mut().zip(of_epochs).zip(of_cpu) {
            (row.ratio, row.members_cpu_ratio) = (ratio, cpu);
        }
        self.method = method.map(String::from);
    }
}

/// Each ratio of two valid cells compared with 1, corrected for all of them.
fn judge(groups: &mut [WatchedGroup], cells: &[Cell], threshold: f64) {
    let is_valid = |row: &WatchedCost| cells[row.cell].is_valid();
    let of = |group: &WatchedGroup| -> Vec<Option<Quantity>> {
        let nobody = group.rows.iter().find(|row| row.is_nobody()).is_some_and(is_valid);
        group.rows.iter().map(|row| row.ratio.clone().filter(|_| nobody && is_valid(row))).collect()
    };
    let ratios: Vec<Option<Quantity>> = groups.iter().flat_map(of).collect();
    let rows = groups.iter_mut().flat_map(|group| &mut group.rows);
    for (row, test) in rows.zip(stats::compare(&ratios, threshold)) {
        row.test = test;
    }
}

/// Mean epoch of the members of a run.
fn epoch_s(r: &Repetition) -> Option<f64> {
    let all: Vec<f64> = r.members.iter().map(|m| m.epoch_s).collect::<Option<_>>()?;
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// CPU time of all members of a run.
fn members_cpu_s(r: &Repetition) -> Option<f64> {
    r.record().members.iter().map(|m| m.cpu_time_s).sum::<Option<f64>>().filter(|s| *s > 0.0)
}

/// Geometric means of the runs of each block.
fn by_block(cell: &Cell, of: fn(&Repetition) -> Option<f64>) -> Values<At> {
    let mut found: BTreeMap<At, Vec<f64>> = BTreeMap::new();
    for r in cell.counted() {
        found.entry((r.device, r.block())).or_default().extend(of(r).filter(|x| *x > 0.0));
    }
    let mean = |values: Vec<f64>| stats::log_moments(&values).map(|(log, _)| log.exp());
    found.into_iter().filter_map(|(at, values)| Some((at, mean(values)?))).collect()
}

fn cost(place: usize, cell: &Cell, observer: &str) -> WatchedCost {
    let records = || cell.counted().filter_map(|r| Some((r, r.record().observer.as_ref()?)));
    let mean = |of: &dyn Fn(&Repetition, &ObserverRecord) -> Option<f64>| {
        let (sum, n) = records().filter_map(|(r, o)| of(r, o)).fold((0.0, 0usize), |(sum, n), x| (sum + x, n + 1));
        (n > 0).then(|| sum / n as f64)
    };
    let lost: Vec<String> = cell
        .repetitions
        .iter()
        .filter_map(|r| r.record().observer.as_ref())
        .filter(|o| !o.outcome.is_whole() && o.outcome != ObserverOutcome::NotTold)
        .map(|o| o.outcome.text())
        .collect();
    let whole_s = |r: &Repetition| {
        let t = &r.record().timeline;
        Some(t.ended_ns.checked_sub(t.launched_ns)? as f64 / 1e9).filter(|s| *s > 0.0)
    };
    let ended_by_itself = |o: &ObserverRecord| o.outcome != ObserverOutcome::Killed;
    let daemons: BTreeSet<String> = records().flat_map(|(_, o)| o.daemons.iter().map(|d| d.name.clone())).collect();
    WatchedCost {
        observer: observer.to_string(),
        place: records().find_map(|(_, o)| o.place.clone()),
        // A run that does not count has it too: what an observer is does not depend on how long it watched.
        profiles: cell.repetitions.iter().find_map(|r| Some(r.record().observer.as_ref()?.kind.as_deref()? == PROFILER)),
        disturbs: records().find_map(|(_, o)| o.disturbs.clone()),
        label: cell.name().to_string(),
        cell: place,
        runs: cell.counted.len(),
        epoch_time_s: cell.get(Key::EpochTime).cloned(),
        ratio: None,
        test: None,
        members_cpu_ratio: None,
        cpu_cores: mean(&|r, o| match &o.place {
            None => sampling_cores(r),
            Some(_) => Some(o.cpu_time_s? / o.lived_s().filter(|s| *s > 0.0)?),
        }),
        daemons_cpu_cores: mean(&|_, o| {
            let sum = o.daemons.iter().map(|d| d.cpu_time_s).sum::<Option<f64>>().filter(|_| !o.daemons.is_empty())?;
            Some(sum / o.watched_s().filter(|s| *s > 0.0)?)
        }),
        daemons: daemons.into_iter().collect(),
        collo_cpu_cores: mean(&|r, o| Some(o.collo_cpu_time_s? / whole_s(r)?)),
        memory_bytes: mean(&|_, o| Some(o.peak_rss_bytes? as f64)),
        bytes: mean(&|_, o| Some(o.bytes_written.filter(|_| ended_by_itself(o))? as f64)),
        bytes_per_hour: mean(&|r, o| {
            let bytes = o.bytes_written.filter(|_| ended_by_itself(o))? as f64;
            let recorded_s = match o.place.as_deref() {
                Some("beside") => o.watched_s(),
                Some("inside") => measured_s(r),
                // Around the members, and of collo's samples: from the launch.
                _ => whole_s(r),
            };
            Some(bytes / recorded_s.filter(|s| *s > 0.0)? * 3600.0)
        }),
        killed: records().filter(|(_, o)| !ended_by_itself(o)).count(),
        lost: lost.len(),
        why_lost: lost.into_iter().next(),
    }
}

/// From the start of the first measured epoch to the end of the last, seconds.
fn measured_s(r: &Repetition) -> Option<f64> {
    let measured = || r.epochs.iter().filter(|epoch| epoch.measured);
    let (from, to) = (measured().map(|epoch| epoch.start_ns).min()?, measured().map(|epoch| epoch.end_ns).max()?);
    Some(to.checked_sub(from)? as f64 / 1e9)
}

/// Cores that collo's sampling threads keep busy; `None` where it did not sample.
fn sampling_cores(r: &Repetition) -> Option<f64> {
    let ratios: Vec<f64> = r.record().sampling.iter().filter_map(|quality| quality.cpu_ratio).collect();
    (!ratios.is_empty()).then(|| ratios.iter().sum())
}
