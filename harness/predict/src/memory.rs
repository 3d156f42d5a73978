//! The memory of a training at a batch size. In: a description, coefficients. Out: bytes, by what they are for.
//!
//! ```text
//! footprint(b) = context + per_reserved_byte · R(b) + per_workspace_byte · X(b)
//! ```
//! R is what PyTorch's allocator holds of the device, replayed. X is the input and output of the largest convolution in the
//! backward pass: cuDNN's workspace and copies in another layout grow with it. The context is what a process holds outside its allocator.

use collo_store::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::allocator::{CachingAllocator, Held};
use crate::description::Description;
use crate::json::amount;

/// The coefficients of the formula.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficients {
    #[serde(deserialize_with = "amount")]
    pub context_bytes: f64,
    #[serde(deserialize_with = "amount")]
    pub per_reserved_byte: f64,
    #[serde(deserialize_with = "amount")]
    pub per_workspace_byte: f64,
}

/// Which peak of the replay the formula takes for R.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// What the caching allocator reserves, for a script that keeps its cache, as most do.
    Reserved,
    /// The same for one that gives its cache back after the warm-up, as members of collo do unless told otherwise.
    CacheEmptied,
    /// What tensors need, for a step that is compiled, replayed as a CUDA graph, or has `cudaMallocAsync` as its allocator: how
    /// these reserve is not replayed, so the estimate is approximate.
    Allocated,
}

impl Basis {
    /// R, in bytes.
    pub fn held_bytes(self, replay: &Replay) -> u64 {
        match self {
            Basis::Reserved => replay.warm_up.reserved_bytes,
            Basis::CacheEmptied => replay.warm_up.reserved_bytes.max(replay.training.reserved_bytes),
            Basis::Allocated => replay.warm_up.allocated_bytes,
        }
    }

    fn of(self, peaks: Peaks) -> u64 {
        if self == Basis::Allocated { peaks.allocated_bytes } else { peaks.reserved_bytes }
    }
}

/// The allocator's peaks in one span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peaks {
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
}

/// Bytes of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub kind: String,
    pub bytes: f64,
}

/// What the allocator held while two steps were replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// Of the set-up and both steps, as a warm-up of a few batches has them. It is that of the training too where the cache is kept.
    /// cuDNN's search, which may briefly need many times as much, is in no trace.
    pub warm_up: Peaks,
    /// Of the second step, after the cache of the warm-up was given back.
    pub training: Peaks,
    /// What tensors needed at the peak of allocated bytes, by kind in the description's order; the allocator's rounding is in none.
    pub at_peak: Vec<Part>,
}

/// Replays the events of a description at a batch size.
pub fn replay(description: &Description, batch: u64) -> Result<Replay, Diagnostic> {
    let too_large = || {
        Diagnostic::new(format!("at batch size {batch} the step needs more memory than any GPU has"))
            .hint("choose a smaller batch size")
    };
    if batch == 0 {
        return Err(Diagnostic::new("a batch of 0 items needs no prediction").hint("the batch size is 1 or more"));
    }
    let [_, first, second] = description.steps;
    let mut kept = Run::of(description, batch);
    kept.play(second).ok_or_else(too_large)?;
    let mut emptied = Run::of(description, batch);
    emptied.play(first).ok_or_else(too_large)?;
    emptied.allocator.empty_cache();
    emptied.allocator.reset_peaks();
    emptied.play(second).ok_or_else(too_large)?;
    let parts = description.kinds.iter().zip(&kept.at_peak);
    let at_peak = parts.map(|(kind, &bytes)| Part { kind: kind.clone(), bytes: bytes as f64 }).collect();
    Ok(Replay { warm_up: kept.peaks(), training: emptied.peaks(), at_peak })
}

/// A replay on its way through the events.
struct Run<'a> {
    description: &'a Description,
    batch: u64,
    at: usize,
    allocator: CachingAllocator,
    held: Vec<Option<Held>>,
    /// Asked for and not freed, by kind; and the same at the peak.
    by_kind: Vec<u64>,
    at_peak: Vec<u64>,
}

impl<'a> Run<'a> {
    fn of(description: &'a Description, batch: u64) -> Run<'a> {
        Run {
            description,
            batch,
            at: 0,
            allocator: CachingAllocator::new(),
            held: description.allocations.iter().map(|_| None).collect(),
            by_kind: vec![0; description.kinds.len()],
            at_peak: vec![0; description.kinds.len()],
        }
    }

    /// Up to an event, which is not played. None: no device is as large.
    fn play(&mut self, end: usize) -> Option<()> {
        let events = &self.description.events[self.at..end];
        self.at = end;
        for &event in events {
            let place = event.unsigned_abs() as usize - 1;
            let allocation = &self.description.allocations[place];
            let (bytes, kind) = (allocation.bytes_at(self.batch), usize::from(allocation.kind));
            if event < 0 {
                self.by_kind[kind] -= bytes;
                if let Some(held) = self.held[place].take() {
                    self.allocator.free(held);
                }
                continue;
            }
            let peak = self.allocator.allocated_peak_bytes();
            self.held[place] = Some(self.allocator.allocate(bytes).ok()?);
            self.by_kind[kind] += bytes;
            if self.allocator.allocated_peak_bytes() > peak {
                self.at_peak.copy_from_slice(&self.by_kind);
            }
        }
        Some(())
    }

    fn peaks(&self) -> Peaks {
        let allocator = &self.allocator;
        Peaks { allocated_bytes: allocator.allocated_peak_bytes(), reserved_bytes: allocator.reserved_peak_bytes() }
    }
}

/// The memory of one member, in bytes of the device.
#[derive(Debug, Clone, PartialEq)]
pub struct Footprint {
    pub batch: u64,
    /// The largest at any time.
    pub bytes: f64,
    /// Of the warm-up, without cuDNN's search.
    pub warm_up_bytes: f64,
    /// After the cache of the warm-up was given back.
    pub training_bytes: f64,
    /// They add up to `bytes`: the description's kinds, then `rounding` (what the allocator holds and no tensor needs),
    /// `workspace`, `context`.
    pub parts: Vec<Part>,
    /// Why it is no exact replay, in words.
    pub approximate: Vec<String>,
}

impl Coefficients {
    /// R and X of a replay, as bytes of the device.
    pub fn bytes(&self, held_bytes: u64, workspace_bytes: u64) -> f64 {
        self.context_bytes + self.per_reserved_byte * held_bytes as f64 + self.per_workspace_byte * workspace_bytes as f64
    }

    pub fn footprint(&self, description: &Description, batch: u64, basis: Basis) -> Result<Footprint, Diagnostic> {
        let replay = replay(description, batch)?;
        let workspace_bytes = description.workspace.bytes_at(batch);
        let held_bytes = basis.held_bytes(&replay);
        let of = |peaks: Peaks| self.bytes(basis.of(peaks), workspace_bytes);
        let (warm_up_bytes, training_bytes) = (of(replay.warm_up), of(replay.training));
        let asked: f64 = replay.at_peak.iter().map(|part| part.bytes).sum();
        let mut parts = replay.at_peak;
        let further = [
            ("rounding", self.per_reserved_byte * held_bytes as f64 - asked),
            ("workspace", self.per_workspace_byte * workspace_bytes as f64),
            ("context", self.context_bytes),
        ];
        parts.extend(further.map(|(kind, bytes)| Part { kind: kind.into(), bytes }));
        let mut approximate = description.approximate.clone();
        if basis == Basis::Allocated {
            approximate.push("how the memory of its tensors is reserved is not replayed".into());
        }
        Ok(Footprint { batch, bytes: self.bytes(held_bytes, workspace_bytes), warm_up_bytes, training_bytes, parts, approximate })
    }
}

#[cfg(test)]
mod tests;
