//! What a training step allocates and computes, as traced without a GPU.
//!
//! In: the JSON that `collo_describe.py` writes. Out: a `Description` whose numbers are bounded and whose events are in order, or
//! the reason why not.
//!
//! To add a field: here, and in `workloads/collo_description.py`.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_text::{Diagnostic, Source};
use serde::Deserialize;

use crate::DESCRIPTION_SCHEMA;
use crate::json::{self, JsonKind, amount, amount_of, whole, whole_of};

/// A traced training step: set-up, then two steps, because the gradients and moments of the first are alive in the second.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Description {
    /// The version of torch that traced it.
    pub torch: String,
    /// The batch size of the trace: what is divisible by it, and no parameter's size, grows with the batch.
    #[serde(deserialize_with = "whole")]
    pub traced_batch: u64,
    /// `fp32`, `bf16`.
    pub precision: String,
    pub optimizer: String,
    /// Why the trace is not exact, in words. Empty: it is.
    pub approximate: Vec<String>,
    #[serde(deserialize_with = "whole")]
    pub parameters: u64,
    #[serde(deserialize_with = "whole")]
    pub parameter_bytes: u64,
    #[serde(deserialize_with = "whole")]
    pub trainable_parameter_bytes: u64,
    #[serde(deserialize_with = "whole")]
    pub buffer_bytes: u64,
    #[serde(deserialize_with = "whole")]
    pub largest_layer_parameters: u64,
    /// What an allocation is for: `weights`, `saved`.
    pub kinds: Vec<String>,
    pub allocations: Vec<Allocation>,
    /// In order: `k` makes allocation `k`, counted from 1, and `-k` frees it.
    pub events: Vec<i64>,
    /// The events before the first are set-up; the first step ends before the second, the second before the third.
    pub steps: [usize; 3],
    pub workspace: Workspace,
    /// One training step, by kind of operation: `convolution`, `matmul`.
    pub operations: BTreeMap<String, OperationCost>,
    #[serde(deserialize_with = "whole")]
    pub kernels_per_step: u64,
    #[serde(deserialize_with = "amount")]
    pub forward_flops_per_item: f64,
    pub features: ModelFeatures,
    /// In the order of the forward pass.
    pub layers: Vec<Layer>,
    /// Values put out per item by the layers that Horus counts.
    #[serde(deserialize_with = "amount")]
    pub horus_activations: f64,
    /// Lines in the batch size; their maximum is the peak of live storages of a forward and a backward pass.
    pub fake_tensor: Vec<FakeTensorLine>,
    /// Of a network drawn at random.
    pub generated: Option<Generated>,
}

/// What a network drawn at random is; its further sizes are not read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Generated {
    /// `mlp`, `cnn`, `transformer`.
    pub kind: String,
    /// `pyramid`, `uniform`.
    pub shape: String,
}

/// A piece of memory that the step asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "(f64, u8, u16)")]
pub struct Allocation {
    /// Per item where it grows with the batch, else of all.
    pub bytes: u64,
    pub grows: bool,
    /// An index of the description's kinds.
    pub kind: u16,
}

impl TryFrom<(f64, u8, u16)> for Allocation {
    type Error = String;

    fn try_from((bytes, grows, kind): (f64, u8, u16)) -> Result<Allocation, String> {
        let grows = match grows {
            0 => false,
            1 => true,
            other => return Err(format!("an allocation grows with the batch, 1, or does not, 0; not {other}")),
        };
        Ok(Allocation { bytes: whole_of(bytes)?, grows, kind })
    }
}

impl Allocation {
    /// Bytes at a batch size. Both factors are bounded, and beyond 2^64 it is as good as infinite.
    pub fn bytes_at(&self, batch: u64) -> u64 {
        if self.grows { self.bytes.saturating_mul(batch) } else { self.bytes }
    }
}

/// Input and output of the largest ungrouped convolution with a kernel above 1 whose input needs a gradient: what cuDNN's workspace
/// grows with. The first convolution of a network is not among them: it runs while little else is alive.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Workspace {
    #[serde(deserialize_with = "whole")]
    pub item_bytes: u64,
    #[serde(deserialize_with = "whole")]
    pub fixed_bytes: u64,
}

impl Workspace {
    pub fn bytes_at(&self, batch: u64) -> u64 {
        self.item_bytes.saturating_mul(batch).saturating_add(self.fixed_bytes)
    }
}

/// What the operations of one kind compute and move in a training step.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct OperationCost {
    #[serde(deserialize_with = "whole")]
    pub count: u64,
    #[serde(deserialize_with = "amount")]
    pub flops_per_item: f64,
    #[serde(deserialize_with = "amount")]
    pub bytes_per_item: f64,
    #[serde(deserialize_with = "amount")]
    pub fixed_bytes: f64,
}

/// The features of HotCloud'20 that are the model's own.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct ModelFeatures {
    #[serde(deserialize_with = "whole")]
    pub convolutions: u64,
    #[serde(deserialize_with = "whole")]
    pub linear: u64,
    #[serde(deserialize_with = "whole")]
    pub activations: u64,
    #[serde(deserialize_with = "whole")]
    pub other: u64,
    #[serde(deserialize_with = "amount")]
    pub model_mb: f64,
}

/// A layer: its type, the values that it puts out per item, its parameters.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "(String, f64, f64)")]
pub struct Layer {
    pub kind: String,
    pub activations_per_item: f64,
    pub parameters: u64,
}

impl TryFrom<(String, f64, f64)> for Layer {
    type Error = String;

    fn try_from((kind, activations, parameters): (String, f64, f64)) -> Result<Layer, String> {
        Ok(Layer { kind, activations_per_item: amount_of(activations)?, parameters: whole_of(parameters)? })
    }
}

/// Live storages at one moment, in bytes: `fixed_bytes + item_bytes · batch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "(f64, f64)")]
pub struct FakeTensorLine {
    pub fixed_bytes: u64,
    pub item_bytes: u64,
}

impl TryFrom<(f64, f64)> for FakeTensorLine {
    type Error = String;

    fn try_from((fixed, item): (f64, f64)) -> Result<FakeTensorLine, String> {
        Ok(FakeTensorLine { fixed_bytes: whole_of(fixed)?, item_bytes: whole_of(item)? })
    }
}

const KIND: JsonKind =
    JsonKind { name: "a description", way_out: "describe the workload again, with `--fresh`", newest_schema: DESCRIPTION_SCHEMA };
/// The largest model described so far has a hundredth of this.
const MOST_EVENTS: usize = 4_000_000;
const MOST_KINDS: usize = 64;

impl Description {
    /// Reads and checks it.
    pub fn read(source: &Arc<Source>) -> Result<Description, Diagnostic> {
        json::check_schema(source, &KIND)?;
        let read: Description = json::read(source, &KIND)?;
        let wrong =
            |reason: String| Diagnostic::new(format!("{} is not a description: {reason}", source.name())).hint(KIND.way_out);
        read.check().map_err(wrong)?;
        Ok(read)
    }

    fn check(&self) -> Result<(), String> {
        if self.traced_batch == 0 {
            return Err("`traced_batch` is 0".into());
        }
        if self.events.len() > MOST_EVENTS || self.kinds.len() > MOST_KINDS {
            let (events, kinds) = (self.events.len(), self.kinds.len());
            return Err(format!("{events} events of {kinds} kinds are more than {MOST_EVENTS} of {MOST_KINDS}"));
        }
        if let Some((i, one)) = self.allocations.iter().enumerate().find(|(_, one)| usize::from(one.kind) >= self.kinds.len()) {
            return Err(format!("allocation {} is of kind {}, but there are {} kinds", i + 1, one.kind, self.kinds.len()));
        }
        let [set_up, first, second] = self.steps;
        if !(set_up < first && first < second && second <= self.events.len()) {
            let all = self.events.len();
            return Err(format!("`steps` {:?} are not the ends of a set-up and two steps in {all} events", self.steps));
        }
        let mut alive = vec![false; self.allocations.len()];
        for (i, &event) in self.events.iter().enumerate() {
            let place = usize::try_from(event.unsigned_abs()).ok().and_then(|k| k.checked_sub(1));
            let Some(alive) = place.and_then(|k| alive.get_mut(k)) else {
                return Err(format!("event {i} is {event}, but there are {} allocations", self.allocations.len()));
            };
            if *alive == (event > 0) {
                let state = if *alive { "already made" } else { "not made" };
                return Err(format!("event {i} is {event}, but that allocation is {state} at that moment"));
            }
            *alive = event > 0;
        }
        Ok(())
    }
}

#[cfg(test)]
pub mod tests;
