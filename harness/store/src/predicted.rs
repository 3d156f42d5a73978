//! What was predicted of the members of a campaign before it ran: claims with a date, never made again.

use serde::{Deserialize, Serialize};

use crate::Sharing;

/// The predictions of a campaign, and who made them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// `2026-11-20T18:42:09Z`.
    pub made_utc: String,
    pub predictor: PredictorRecord,
    /// One for each distinct member in each way of having a context.
    pub members: Vec<PredictedMember>,
}

/// The predictor, as it was then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictorRecord {
    pub name: String,
    /// Of its file.
    pub sha256: String,
    /// Whose measurements it was fitted on: `published`, `own`, `simulated`.
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
    /// The numbers of its computation graph; absent if it could not be described.
    pub graph: Option<GraphNumbers>,
    /// Why something is absent.
    pub reason: Option<String>,
}

/// The memory of a member on the device, in bytes: its largest footprint at any time, warm-up included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Of a member in a mode, by the label of its solo cell.
    pub fn of(&self, solo: &str, mode: &Sharing) -> Option<&PredictedMember> {
        self.of_member(solo, mode.mps)
    }

    fn of_member(&self, solo: &str, mps: bool) -> Option<&PredictedMember> {
        self.members.iter().find(|member| member.solo == solo && member.mps == mps)
    }

    /// Adds what is predicted of members that are not in it; a claim that was made stays.
    pub fn join(claims: &mut Option<Predicted>, more: Option<&Predicted>) {
        let Some(more) = more else { return };
        let Some(known) = claims else {
            *claims = Some(more.clone());
            return;
        };
        let is_known = |member: &PredictedMember| known.of_member(&member.solo, member.mps).is_some();
        let new: Vec<PredictedMember> = more.members.iter().filter(|member| !is_known(member)).cloned().collect();
        known.members.extend(new);
    }

    /// The same without some members; none if nothing is left.
    pub fn without(&self, is_out: impl Fn(&PredictedMember) -> bool) -> Option<Predicted> {
        let members: Vec<PredictedMember> = self.members.iter().filter(|member| !is_out(member)).cloned().collect();
        (!members.is_empty()).then(|| Predicted { members, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        PredictedMember { solo: solo.into(), mps, memory: None, graph: Some(graph), reason: None }
    }

    fn predicted(members: Vec<PredictedMember>) -> Predicted {
        let predictor = PredictorRecord {
            name: "mine".into(),
            sha256: String::new(),
            fitted_on: "own".into(),
            device: None,
            widened: 1.0,
            families: 20,
        };
        Predicted { made_utc: "2026-11-20T18:42:09Z".into(), predictor, members }
    }

    #[test]
    fn a_claim_that_was_made_stays_when_a_campaign_grows() {
        let more = predicted(vec![member("tiny solo", false, 2), member("tiny solo", true, 3), member("small solo", false, 4)]);
        let mut claims = None;
        Predicted::join(&mut claims, Some(&predicted(vec![member("tiny solo", false, 1)])));
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
        assert_eq!(more.without(|member| !member.mps).map(|left| left.members.len()), Some(1));
        assert_eq!(more.without(|_| true), None);
    }
}
