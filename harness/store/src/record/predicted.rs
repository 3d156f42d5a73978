//! What was predicted of the members of a campaign before it ran, and which cells its plan marked: claims with a date, never made
//! again.
//!
//! To add a predicted quantity: its field here (of a member alone in `alone.rs`, of a group in `cell.rs`), made in
//! `prepare/src/prediction`; its row in `PREDICTABLE` of `analysis/src/campaign/predicted.rs`, which scores it; its column in
//! `report/src/export/dataset.rs`; its line in `cli/src/models/predict`.

mod alone;
mod cell;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use alone::{PredictedAlone, PredictedValue};
pub use cell::{AloneFrom, PredictedCell, PredictedCompany};

use crate::{CellRecord, PlanRecord, Sharing};

/// The predictions of a campaign, and who made them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// `2026-11-20T18:42:09Z`.
    pub made_utc: String,
    /// That of memory; absent if none serves the device.
    pub predictor: Option<PredictorRecord>,
    /// That of what members do alone; absent if none serves the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation_predictor: Option<PredictorRecord>,
    /// That of what company costs; absent if none serves the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company_predictor: Option<PredictorRecord>,
    /// One for each distinct member in each way of having a context.
    pub members: Vec<PredictedMember>,
    /// Groups; empty without a predictor of company.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<PredictedCell>,
    /// The cells that may run out of memory, as the plan said.
    #[serde(default)]
    pub marked: Vec<MarkedCell>,
}

/// A cell that may run out of memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MarkedCell {
    /// Its label.
    pub cell: String,
    /// That it does, by the predictions of its members; absent where the largest readings of its members alone were more than there is.
    pub probability: Option<f64>,
}

/// The predictor, as it was then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct PredictorRecord {
    pub name: String,
    /// Of its file.
    pub sha256: String,
    /// Whose measurements it was fitted on: `published`, `own`, `table`, `simulated`.
    pub fitted_on: String,
    /// The device whose measurements these are; absent if unknown.
    pub device: Option<String>,
    /// Its intervals are this many times as wide, as logarithms, because it was fitted under other conditions.
    pub widened: f64,
    /// Of how many architectures the width of its intervals is.
    pub families: usize,
}

/// What was predicted of a member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictedMember {
    /// Label of its solo cell, which names it within a campaign.
    pub solo: String,
    /// A client of MPS: its context is another than that of a process which has its own.
    pub mps: bool,
    /// Absent if it could not be predicted.
    pub memory: Option<PredictedMemory>,
    /// What it does alone on the whole device; absent if it could not be predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<PredictedAlone>,
    /// The numbers of its computation graph; absent if it could not be described.
    pub graph: Option<GraphNumbers>,
    /// Why something is absent.
    pub reason: Option<String>,
}

/// The memory of a member on the device, in bytes: its largest footprint at any time, warm-up included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct PredictedMemory {
    pub estimate_bytes: u64,
    /// While it trains, once the cache of the warm-up was given back: what readings are compared with. Its bounds are in the same
    /// proportion as those of `estimate_bytes`.
    pub training_bytes: u64,
    /// 95 % of measurements are meant to be between `low_bytes` and `high_bytes`.
    pub low_bytes: u64,
    pub high_bytes: u64,
    /// 95 % are meant to be below.
    pub upper_bytes: u64,
    /// It cannot run in less: what its tensors need at one time, without caches and workspaces, less the interval's width.
    pub least_bytes: u64,
    /// Of `estimate_bytes`: what the process holds outside its allocator.
    pub context_bytes: u64,
    /// How many stored runs on this device the context is from; 0: it is the predictor's.
    pub context_runs: usize,
    /// Why it is no exact replay, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approximate: Vec<String>,
}

/// A training step in numbers, at the member's batch size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphNumbers {
    pub parameters: u64,
    pub parameter_bytes: u64,
    /// Peak of what its tensors need.
    pub allocated_bytes: u64,
    /// Peak of what PyTorch's caching allocator reserves for them.
    pub reserved_bytes: u64,
    /// Input and output of the largest convolution: what cuDNN's workspace grows with.
    pub workspace_bytes: u64,
    pub kernels_per_step: u64,
    /// Of the forward pass.
    pub flops_per_item: f64,
    /// Read and written by all operations of a step, by item.
    pub bytes_per_item: f64,
    pub precision: String,
    pub optimizer: String,
    /// Which torch traced it.
    pub torch: String,
}

impl Predicted {
    /// Of a member in a mode, by the label of its solo cell. What is claimed is claimed of processes: of a member that is a thread of one
    /// there is nothing, since it shares its context and its allocator.
    pub fn of(&self, solo: &str, mode: &Sharing) -> Option<&PredictedMember> {
        self.of_member(solo, mode.mps).filter(|_| !mode.one_process)
    }

    /// The numbers of a member's computation graph, which is the same in every mode.
    pub fn graph_of(&self, solo: &str) -> Option<&GraphNumbers> {
        self.members.iter().filter(|member| member.solo == solo).find_map(|member| member.graph.as_ref())
    }

    fn of_member(&self, solo: &str, mps: bool) -> Option<&PredictedMember> {
        self.members.iter().find(|member| member.solo == solo && member.mps == mps)
    }

    /// Of a group, by its label.
    pub fn of_cell(&self, label: &str) -> Option<&PredictedCell> {
        self.cells.iter().find(|cell| cell.cell == label)
    }

    /// The predictors that made the claims.
    pub fn predictors(&self) -> impl Iterator<Item = &PredictorRecord> {
        [&self.predictor, &self.utilisation_predictor, &self.company_predictor].into_iter().flatten()
    }

    fn is_marked(&self, cell: &str) -> bool {
        self.marked.iter().any(|marked| marked.cell == cell)
    }

    /// Whether the plan said of a cell that it may run out of memory. None: it could not say, as of a member nothing was predicted.
    pub fn may_run_out(&self, cell: &CellRecord) -> Option<bool> {
        if self.is_marked(&cell.cell) {
            return Some(true);
        }
        let is_claimed = |solo: &str| self.of(solo, &cell.mode).is_some_and(|member| member.memory.is_some());
        cell.members.iter().all(|member| is_claimed(&member.solo)).then_some(false)
    }

    /// Adds what is predicted of members, and the marks of cells, that are not in it; a claim that was made stays.
    pub fn join(claims: &mut Option<Predicted>, more: Option<&Predicted>) {
        let Some(more) = more else { return };
        let Some(known) = claims else {
            *claims = Some(more.clone());
            return;
        };
        let is_known = |member: &PredictedMember| known.of_member(&member.solo, member.mps).is_some();
        let new: Vec<PredictedMember> = more.members.iter().filter(|member| !is_known(member)).cloned().collect();
        known.members.extend(new);
        let new: Vec<MarkedCell> = more.marked.iter().filter(|marked| !known.is_marked(&marked.cell)).cloned().collect();
        known.marked.extend(new);
        let new: Vec<PredictedCell> = more.cells.iter().filter(|cell| known.of_cell(&cell.cell).is_none()).cloned().collect();
        known.cells.extend(new);
        // A predictor that made no claim before is the one of the new ones.
        for (mine, its) in [
            (&mut known.predictor, &more.predictor),
            (&mut known.utilisation_predictor, &more.utilisation_predictor),
            (&mut known.company_predictor, &more.company_predictor),
        ] {
            *mine = mine.take().or_else(|| its.clone());
        }
    }

    /// What it says of members, in their way of having a context, and of cells that a plan lacks; none if it has them all.
    pub fn beyond(&self, plan: &PlanRecord) -> Option<Predicted> {
        let has_member = |of: &PredictedMember| {
            let cells = plan.cells.iter().filter(|cell| cell.mode.mps == of.mps);
            cells.flat_map(|cell| &cell.members).any(|member| member.solo == of.solo)
        };
        let has_cell = |label: &str| plan.cells.iter().any(|cell| cell.cell == label);
        let members: Vec<PredictedMember> = self.members.iter().filter(|member| !has_member(member)).cloned().collect();
        let marked: Vec<MarkedCell> = self.marked.iter().filter(|marked| !has_cell(&marked.cell)).cloned().collect();
        let cells: Vec<PredictedCell> = self.cells.iter().filter(|cell| !has_cell(&cell.cell)).cloned().collect();
        let has_more = !members.is_empty() || !marked.is_empty() || !cells.is_empty();
        has_more.then(|| Predicted { members, marked, cells, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{AfterMeasured, MemberSpec};

    fn member(solo: &str, mps: bool, parameters: u64) -> PredictedMember {
        let graph = GraphNumbers {
            parameters,
            parameter_bytes: 4 * parameters,
            allocated_bytes: 0,
            reserved_bytes: 0,
            workspace_bytes: 0,
            kernels_per_step: 1,
            flops_per_item: 1.0,
            bytes_per_item: 1.0,
            precision: "fp32".into(),
            optimizer: "Adam".into(),
            torch: "2.14.1".into(),
        };
        PredictedMember { solo: solo.into(), mps, memory: None, alone: None, graph: Some(graph), reason: None }
    }

    fn predicted(members: Vec<PredictedMember>, marked: &[&str]) -> Predicted {
        let predictor = Some(PredictorRecord {
            name: "mine".into(),
            sha256: String::new(),
            fitted_on: "own".into(),
            device: None,
            widened: 1.0,
            families: 20,
        });
        let mark = |cell: &&str| MarkedCell { cell: cell.to_string(), probability: Some(0.5) };
        let marked = marked.iter().map(mark).collect();
        Predicted {
            made_utc: "2026-11-20T18:42:09Z".into(),
            predictor,
            utilisation_predictor: None,
            company_predictor: None,
            members,
            cells: Vec::new(),
            marked,
        }
    }

    /// With members of which these are the solo cells.
    fn cell(label: &str, solos: &[&str]) -> CellRecord {
        let member = |solo: &&str| {
            let workload = solo.split(' ').next().unwrap_or_default().to_string();
            MemberSpec { workload, batch_size: None, settings: BTreeMap::new(), solo: solo.to_string() }
        };
        let sharing = label.split(' ').nth(1).unwrap_or_default();
        CellRecord {
            cell: label.into(),
            slug: label.into(),
            sharing: sharing.into(),
            mode: Sharing::of_label(sharing),
            degree: solos.len() as u32,
            members: solos.iter().map(member).collect(),
            baseline: false,
            against: Vec::new(),
            repetitions: 1,
            after_measured: AfterMeasured::KeepRunning,
            slots: None,
            alone_on_slice: Vec::new(),
            expect: None,
            trace: None,
            observe: None,
        }
    }

    fn plan(cells: Vec<CellRecord>) -> PlanRecord {
        PlanRecord { seed: 1, epochs: 2, measure_for_s: None, cells, order: Vec::new(), refusals: Vec::new() }
    }

    fn labels(claims: &Predicted) -> Vec<&str> {
        claims.marked.iter().map(|marked| marked.cell.as_str()).collect()
    }

    #[test]
    fn a_claim_that_was_made_stays_when_a_campaign_grows() {
        let more = vec![member("tiny solo", false, 2), member("tiny solo", true, 3), member("small solo", false, 4)];
        let mut more = predicted(more, &["tiny×9 naive", "tiny×8 naive"]);
        more.marked[0].probability = None;
        let mut claims = None;
        Predicted::join(&mut claims, Some(&predicted(vec![member("tiny solo", false, 1)], &["tiny×9 naive"])));
        Predicted::join(&mut claims, Some(&more));
        Predicted::join(&mut claims, None);
        let first = claims.expect("the first");
        let found = |solo: &str, label: &str| {
            let found = first.of(solo, &Sharing::of_label(label));
            found.and_then(|member| member.graph.as_ref()).map(|graph| graph.parameters)
        };
        assert_eq!(
            [found("tiny solo", "naive"), found("tiny solo", "mps"), found("small solo", "mig")],
            [Some(1), Some(3), Some(4)]
        );
        assert_eq!(found("small solo", "mps"), None);
        assert_eq!(found("tiny solo", "threads"), None, "a thread is no process");
        assert_eq!(first.graph_of("tiny solo").map(|graph| graph.parameters), Some(1));
        assert_eq!((labels(&first), first.marked[0].probability), (vec!["tiny×9 naive", "tiny×8 naive"], Some(0.5)));
    }

    #[test]
    fn nothing_is_claimed_of_what_a_campaign_has_already() {
        let members = vec![member("tiny solo", false, 1), member("tiny solo", true, 2), member("small solo", false, 3)];
        let claims = predicted(members, &["tiny×8 naive", "tiny×9 naive"]);
        let has = |cells: Vec<CellRecord>| {
            let left = claims.beyond(&plan(cells))?;
            let members: Vec<String> = left.members.iter().map(|m| format!("{} {}", m.solo, m.mps)).collect();
            Some((members.join(", "), labels(&left).join(", ")))
        };
        let said = |members: &str, marked: &str| Some((members.to_string(), marked.to_string()));
        let tiny = |label: &str| cell(label, &["tiny solo"]);
        let all = "tiny solo false, tiny solo true, small solo false";
        assert_eq!(has(Vec::new()), said(all, "tiny×8 naive, tiny×9 naive"));
        assert_eq!(has(vec![tiny("tiny×8 naive")]), said("tiny solo true, small solo false", "tiny×9 naive"));
        // A further cell of members that were measured in others.
        let both = vec![tiny("tiny×8 naive"), tiny("tiny×2 mps"), cell("small solo", &["small solo"])];
        assert_eq!(has(both.clone()), said("", "tiny×9 naive"));
        assert_eq!(has([both, vec![tiny("tiny×9 naive")]].concat()), None);
    }

    #[test]
    fn a_cell_may_run_out_if_it_is_marked_and_not_if_all_its_members_were_claimed_to_fit() {
        let memory = PredictedMemory {
            estimate_bytes: 1,
            training_bytes: 1,
            low_bytes: 1,
            high_bytes: 1,
            upper_bytes: 1,
            least_bytes: 1,
            context_bytes: 0,
            context_runs: 0,
            approximate: Vec::new(),
        };
        let known = PredictedMember { memory: Some(memory), ..member("tiny solo", false, 1) };
        let claims = predicted(vec![known, member("foreign solo", false, 1)], &["foreign×2 naive"]);
        let said = |label: &str, solos: &[&str]| claims.may_run_out(&cell(label, solos));
        let marked = said("foreign×2 naive", &["foreign solo", "foreign solo"]);
        assert_eq!(marked, Some(true), "by its readings, whatever could be predicted of it");
        assert_eq!(said("tiny×2 naive", &["tiny solo", "tiny solo"]), Some(false));
        assert_eq!(said("tiny+foreign naive", &["tiny solo", "foreign solo"]), None, "what the other needs is unknown");
        assert_eq!(said("tiny×2 mps", &["tiny solo", "tiny solo"]), None, "a client has another context");
    }

    #[test]
    fn claims_of_before_marks_were_kept_have_none() {
        let mut file = serde_json::to_value(predicted(vec![member("tiny solo", false, 1)], &["tiny×9 naive"])).expect("JSON");
        file.as_object_mut().expect("an object").remove("marked");
        let read: Predicted = serde_json::from_value(file).expect("read");
        assert_eq!((read.members.len(), read.marked), (1, Vec::new()));
    }
}
