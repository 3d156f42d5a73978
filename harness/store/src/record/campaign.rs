//! `campaign.json`: the experiment as read, the plan with its seed, the machine, the ingredients.

use std::collections::BTreeMap;

use collo_text::commands::{self, COLLO};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{
    DeviceRecord, Expectation, Machine, Origin, Predicted, Reference, Shard, Sharing, Surroundings, TraceCell, WantedWidth,
};

/// The variable with the GPU model that is simulated, which a campaign records with its surroundings.
pub const SIMULATED_MODEL: &str = "COLLO_SIM";

/// What a user types for `collo` to work with campaigns of such a device: of a simulated one, the recorded model, else that of its name.
pub fn command(simulated: bool, device: &str, surroundings: Option<&Surroundings>) -> String {
    let is_plain = |model: &&str| !model.is_empty() && model.chars().all(|c| c.is_ascii_alphanumeric() || "._-=@,".contains(c));
    let recorded = surroundings.and_then(|s| s.variables.get(SIMULATED_MODEL)).map(String::as_str).filter(is_plain);
    let model = recorded.or_else(|| Some(collo_gpus::of_product(device)?.name.as_str()));
    model.filter(|_| simulated).map_or_else(|| COLLO.into(), |model| commands::simulating(COLLO, model))
}

/// One execution of an experiment on one machine: what a report is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    pub schema: u32,
    /// `20261120-1842-7f3a`: UTC and four random hexadecimal digits.
    pub id: String,
    /// The experiment's name.
    pub experiment: String,
    pub description: Option<String>,
    pub tags: Vec<String>,
    /// `2026-11-20T18:42:09Z`.
    pub created_utc: String,
    /// The experiment file, word for word.
    pub source_toml: String,
    pub thresholds: Thresholds,
    /// Values that it is compared with; none in campaigns of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Reference>,
    /// How narrow its intervals should be; absent if each cell has its planned repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<WantedWidth>,
    pub plan: PlanRecord,
    /// What was predicted of its members; absent if nothing was, and in campaigns of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Predicted>,
    pub device: DeviceRecord,
    pub machine: Machine,
    /// What the numbers depend on, each with its digest: workloads, protocol library, pins, experiment.
    pub ingredients: BTreeMap<String, Ingredient>,
    /// Why every number of this campaign is indicative at best: `ingredients changed, --force` …
    pub indicative: Vec<String>,
    /// The part of the experiment that it is; absent for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The campaigns that it was merged from; empty for one that was measured as such.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<Origin>,
    /// How it was started, and in what surroundings; absent in campaigns of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// What the store itself records about it.
    #[serde(default)]
    pub filing: Filing,
}

impl Campaign {
    /// The last part of the id, also accepted in place of it: `7f3a`.
    pub fn short_id(&self) -> &str {
        crate::names::last_part(&self.id)
    }

    /// Index of the origin of a block's runs; 0 for a campaign that was measured as one.
    pub fn origin_of(&self, block: u32) -> usize {
        self.origins.iter().position(|o| (o.first_block..=o.last_block).contains(&block)).unwrap_or(0)
    }

    /// The machine that a block was measured on.
    pub fn machine_of(&self, block: u32) -> &Machine {
        self.origins.get(self.origin_of(block)).map_or(&self.machine, |origin| &origin.machine)
    }

    /// True if it is one execution of the whole experiment: no shard of one, and no merge of several executions, but a merge of
    /// shards.
    pub fn is_one_execution(&self) -> bool {
        self.shard.is_none() && (!self.is_merged() || self.origins.iter().any(|o| o.shard.is_some()))
    }

    /// What a user types for `collo` to work with such a campaign: of a simulated GPU, it simulates that again.
    pub fn command(&self) -> String {
        command(self.device.simulated, &self.device.name, self.surroundings.as_ref())
    }

    /// True if it consists of campaigns from several GPUs or machines.
    pub fn is_merged(&self) -> bool {
        !self.origins.is_empty()
    }
}

/// How a campaign was stored; unknown for campaigns of earlier versions of collo.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filing {
    /// True if the journal has the digest of this file and of every run from the start: a file without one was not written by
    /// collo.
    #[serde(default)]
    pub digests: bool,
    /// The campaign that was the newest here when this one began, as `EXPERIMENT/ID`.
    #[serde(default)]
    pub after: Option<String>,
}

/// Something that the numbers depend on, by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ingredient {
    pub sha256: String,
    /// A readable version, if there is one: `git 4e1a9c2`, `2.14.1`.
    pub version: Option<String>,
}

/// Thresholds of relevance; an experiment may change each, and absent ones have their defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Thresholds {
    /// A relative difference worth acting on.
    pub relevant_ratio: f64,
    /// Slowest member's slowdown that is still acceptable.
    pub slowdown: f64,
    /// An epoch counts as collocated when all members trained during this share of it.
    pub overlap_ratio: f64,
    /// Spread of the members' starts above which a run is indicative.
    pub start_skew_s: f64,
    /// Drift of a block's baselines from which on it is reported.
    pub baseline_drift_ratio: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { relevant_ratio: 0.05, slowdown: 1.10, overlap_ratio: 0.95, start_skew_s: 0.1, baseline_drift_ratio: 0.10 }
    }
}

/// The cells that fit, their order, and the refusals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The seed that shuffled the order.
    pub seed: u64,
    /// Epochs per member; with two or more, the first is warm-up.
    pub epochs: u32,
    /// Whole epochs were measured until at least so long; absent for the number of epochs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure_for_s: Option<f64>,
    pub cells: Vec<CellRecord>,
    /// Every repetition in the order of execution.
    pub order: Vec<PlannedRun>,
    pub refusals: Vec<RefusalRecord>,
}

/// One point of the matrix.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct CellRecord {
    /// `tiny×2 naive b32`: the name that people read and type.
    pub cell: String,
    /// `tinyx2_naive_b32~b04e`: the folder's name without the repetition.
    pub slug: String,
    /// The sharing mode's label; `solo` for one member on the whole device.
    pub sharing: String,
    /// The meaning of that label. Records of earlier versions have only the label, from which it is derived.
    #[serde(default)]
    pub mode: Sharing,
    pub degree: u32,
    pub members: Vec<MemberSpec>,
    /// True for a solo cell that others are compared with.
    pub baseline: bool,
    /// Labels of the solo cells that this one is compared with, one per distinct member; empty for a baseline itself.
    pub against: Vec<String>,
    pub repetitions: u32,
    pub after_measured: AfterMeasured,
    /// What the members get of the device: `whole GPU, shared`, `3×2g.10gb`; absent where it was not planned for one.
    #[serde(default)]
    pub slots: Option<String>,
    /// By member: the label of the cell in which it is alone on a slice of the same size; empty without partitioning.
    #[serde(default)]
    pub alone_on_slice: Vec<String>,
    /// The failure that is expected of it; absent if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expectation>,
    /// Of a cell that is a trace: its members are the tasks then. Absent for a group that starts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceCell>,
    /// Who watches its members: `none`, `collo`, `top:10Hz`. Absent where the experiment does not say; then collo samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observe: Option<String>,
}

impl Serialize for CellRecord {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        CellRecord::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for CellRecord {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<CellRecord, D::Error> {
        let mut cell = CellRecord::deserialize(from)?;
        if cell.mode == Sharing::default() {
            cell.mode = Sharing::of_label(&cell.sharing);
        }
        Ok(cell)
    }
}

impl CellRecord {
    /// Whether runs of both are runs of one cell, as far as it was planned on which part of the device.
    pub fn is_same(&self, other: &CellRecord) -> bool {
        (&self.sharing, self.after_measured, &self.trace, &self.observe)
            == (&other.sharing, other.after_measured, &other.trace, &other.observe)
            // The hash in its name has what the record of a trace has not: its tasks, and the rules of its manager.
            && (self.trace.is_none() || self.slug == other.slug)
            && self.slots.as_ref().zip(other.slots.as_ref()).is_none_or(|(own, others)| own == others)
            && self.members.len() == other.members.len()
            && self.members.iter().zip(&other.members).all(|(own, others)| own.is_same(others))
    }

    /// True when all members are the same workload with the same settings.
    pub fn is_uniform(&self) -> bool {
        self.members.windows(2).all(|w| w[0] == w[1])
    }

    /// The axes by name, as `--where` sees them.
    pub fn axis(&self, name: &str) -> Option<Value> {
        match name {
            "cell" => Some(self.cell.as_str().into()),
            "sharing" => Some(self.sharing.as_str().into()),
            "degree" => Some(self.degree.into()),
            "baseline" => Some(self.baseline.into()),
            "after_measured" => Some(self.after_measured.as_str().into()),
            "observe" => self.observe.as_deref().map(Value::from),
            _ if TraceCell::AXES.contains(&name) => self.trace.as_ref()?.axis(name),
            "workload" => {
                let mut names: Vec<&str> = self.members.iter().map(|m| m.workload.as_str()).collect();
                names.dedup();
                Some(names.join("+").into())
            }
            _ => {
                let first = self.members.first()?.setting(name)?;
                self.members.iter().all(|m| m.setting(name).as_ref() == Some(&first)).then_some(first)
            }
        }
    }
}

collo_text::words! {
    /// What a member does after its measured epochs, while others still measure.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum AfterMeasured {
        /// It trains on, unmeasured, so that the load in every measured epoch does not change.
        #[default]
        KeepRunning = "keep-running",
        /// It exits, and the makespan is the result.
        Exit = "exit",
    }
}

impl AfterMeasured {
    /// Its word in digests by which stored things are found again: folders of cells, cells of kept nights.
    pub fn digest_word(self) -> &'static str {
        match self {
            AfterMeasured::KeepRunning => "hold",
            AfterMeasured::Exit => "release",
        }
    }
}

/// A cell's label without its mode, the second word: `tiny×2 b32`; for a solo cell the workload with its settings, `tiny b32`.
pub fn without_mode(label: &str) -> String {
    let others = label.split(' ').enumerate().filter(|(place, _)| *place != 1);
    others.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}

/// One member of a cell: a workload with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberSpec {
    pub workload: String,
    /// Absent if the workload has no batch size.
    pub batch_size: Option<u32>,
    /// The other settings, defaults included.
    pub settings: BTreeMap<String, Value>,
    /// Label of the member's own solo cell; for a solo cell its own label.
    pub solo: String,
}

impl MemberSpec {
    /// The same training: its label has what differs from the defaults that were in force, and is no part of it.
    pub fn is_same(&self, other: &MemberSpec) -> bool {
        self.batch_size == other.batch_size && self.is_same_but_for_batch(other)
    }

    /// The same training with any batch size.
    pub fn is_same_but_for_batch(&self, other: &MemberSpec) -> bool {
        self.workload == other.workload && self.settings == other.settings
    }

    /// A setting by name, including `batch_size`.
    pub fn setting(&self, name: &str) -> Option<Value> {
        if name == "batch_size" { self.batch_size.map(Value::from) } else { self.settings.get(name).cloned() }
    }
}

/// A repetition of a cell at its place in the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// From 1.
    pub block: u32,
    /// Index into `cells`.
    pub cell: usize,
    /// From 1, counted per cell.
    pub repetition: u32,
    /// Whether it is the block's opening or closing baseline.
    pub edge: Option<BlockEdge>,
    /// The GPU that its block is measured on, an index into those of the machine; absent in a campaign on one device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<u32>,
}

/// The two ends of a block, where whole-GPU baselines detect drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockEdge {
    Opens,
    Closes,
}

/// A cell that cannot run here, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct RefusalRecord {
    pub cell: String,
    pub sharing: String,
    pub reason: String,
    pub hint: Option<String>,
}

/// The number by which people name a cell, from its place among the cells of its plan.
pub const fn cell_number(place: usize) -> usize {
    place + 1
}

impl PlanRecord {
    /// The cell that `collo plan` gives this number.
    pub fn numbered(&self, number: usize) -> Option<&CellRecord> {
        self.cells.iter().enumerate().find(|(place, _)| cell_number(*place) == number).map(|(_, cell)| cell)
    }

    /// Append another plan's repetitions: its blocks follow the last one here, each cell's repetition numbers continue, and new
    /// cells are added.
    pub fn extend(&mut self, more: &PlanRecord) {
        let last_block = self.order.iter().map(|run| run.block).max().unwrap_or(0);
        for run in &more.order {
            let added = &more.cells[run.cell];
            let cell = self.cells.iter().position(|c| c.slug == added.slug).unwrap_or_else(|| {
                self.cells.push(CellRecord { repetitions: 0, ..added.clone() });
                self.cells.len() - 1
            });
            self.cells[cell].repetitions += 1;
            let repetition = self.cells[cell].repetitions;
            self.order.push(PlannedRun { block: last_block + run.block, cell, repetition, ..run.clone() });
        }
    }

    /// The folder of a planned run: `tinyx2_naive_b32~b04e-2`.
    pub fn folder(&self, run: &PlannedRun) -> String {
        format!("{}-{}", self.cells[run.cell].slug, run.repetition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(slug: &str, repetitions: u32) -> CellRecord {
        CellRecord {
            cell: slug.into(),
            slug: slug.into(),
            sharing: "naive".into(),
            mode: Sharing::of_label("naive"),
            degree: 1,
            members: Vec::new(),
            baseline: false,
            against: Vec::new(),
            repetitions,
            after_measured: AfterMeasured::KeepRunning,
            slots: None,
            alone_on_slice: Vec::new(),
            expect: None,
            trace: None,
            observe: None,
        }
    }

    #[test]
    fn a_trace_with_other_tasks_or_under_other_rules_is_another_cell() {
        let trace = |slug: &str| {
            let (trace, policy, estimate) = ("tiny-12".to_string(), "rr".to_string(), "none".to_string());
            CellRecord {
                trace: Some(TraceCell { trace, order: 1, policy, estimate, scale: 1, cards: 2, tasks: 12 }),
                ..cell(slug, 1)
            }
        };
        assert!(trace("rr~1a2b").is_same(&trace("rr~1a2b")) && !trace("rr~1a2b").is_same(&trace("rr~3c4d")));
        assert!(cell("tiny~1a2b", 1).is_same(&cell("tiny~3c4d", 1)), "a group is its members and its mode");
    }

    #[test]
    fn a_label_without_its_mode_names_who_trains() {
        for (label, who) in [
            ("tiny×2 naive b32", "tiny×2 b32"),
            ("tiny solo b32 lr=0.1", "tiny b32 lr=0.1"),
            ("mig:b8+mps mig+mps", "mig:b8+mps"),
            ("tiny", "tiny"),
        ] {
            assert_eq!(without_mode(label), who);
        }
    }

    #[test]
    fn what_finished_members_do_is_stored_in_the_words_of_experiments() {
        for after in [AfterMeasured::KeepRunning, AfterMeasured::Exit] {
            assert_eq!(serde_json::to_value(after).unwrap(), after.as_str());
            assert_eq!(AfterMeasured::parse(after.as_str()), Some(after));
        }
    }

    fn plan(cells: Vec<CellRecord>, order: &[(u32, usize, u32)]) -> PlanRecord {
        let run = |&(block, cell, repetition)| PlannedRun { block, cell, repetition, edge: None, card: None };
        PlanRecord {
            seed: 1,
            epochs: 2,
            measure_for_s: None,
            cells,
            order: order.iter().map(run).collect(),
            refusals: Vec::new(),
        }
    }

    #[test]
    fn more_repetitions_are_counted_on_in_further_blocks() {
        let mut have = plan(vec![cell("a", 2), cell("b", 1)], &[(1, 0, 1), (1, 1, 1), (1, 0, 2)]);
        have.extend(&plan(vec![cell("b", 1), cell("c", 1)], &[(1, 1, 1), (1, 0, 1)]));
        let folders: Vec<_> = have.order.iter().map(|run| format!("{}:{}", run.block, have.folder(run))).collect();
        assert_eq!(folders, ["1:a-1", "1:b-1", "1:a-2", "2:c-1", "2:b-2"]);
        assert_eq!(have.cells.iter().map(|c| c.repetitions).collect::<Vec<_>>(), [2, 2, 1]);
    }
}
