//! The memory of a training at a batch size. In: a description, coefficients. Out: bytes, by what they are for.
//!
//! ```text
//! footprint(b) = context + per_reserved_byte · R(b) + per_workspace_byte · X(b)
//! ```
//! R is what PyTorch's allocator holds of the device, replayed. X is the input and output of the largest convolution in the
//! backward pass: cuDNN's workspace and copies in another layout grow with it. The context is what a process holds outside its allocator.

use collo_text::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::allocator::{CachingAllocator, Exhausted, Held};
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
    /// What tensors need, and exactly that: on a CPU there is no allocator that keeps what was freed.
    Uncached,
}

impl Basis {
    /// R, in bytes.
    pub fn held_bytes(self, replay: &Replay) -> u64 {
        match self {
            Basis::Reserved => replay.warm_up.reserved_bytes,
            Basis::CacheEmptied => replay.warm_up.reserved_bytes.max(replay.training.reserved_bytes),
            Basis::Allocated | Basis::Uncached => replay.warm_up.allocated_bytes,
        }
    }

    /// The same without the warm-up, as it is read of a process that trains.
    pub fn trained_bytes(self, replay: &Replay) -> u64 {
        // A cache that is kept is still there.
        if self == Basis::Reserved { replay.warm_up.reserved_bytes } else { self.of(replay.training) }
    }

    fn of(self, peaks: Peaks) -> u64 {
        match self {
            Basis::Reserved | Basis::CacheEmptied => peaks.reserved_bytes,
            Basis::Allocated | Basis::Uncached => peaks.allocated_bytes,
        }
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

/// Why there is no replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReplayed {
    /// A batch of nothing.
    NoItems,
    DoesNotFit(DoesNotFit),
}

/// The step asks for more than the device has, when all that can be given back was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoesNotFit {
    pub batch: u64,
    /// Asked for at last, and not to be had.
    pub asked_bytes: u64,
    /// Held of the device by what was in use.
    pub reserved_bytes: u64,
    /// Absent: the device is any.
    pub limit_bytes: Option<u64>,
}

impl From<NotReplayed> for Diagnostic {
    fn from(why: NotReplayed) -> Diagnostic {
        match why {
            NotReplayed::NoItems => Diagnostic::new("a batch of 0 items needs no prediction").hint("the batch size is 1 or more"),
            NotReplayed::DoesNotFit(DoesNotFit { batch, limit_bytes: None, .. }) => {
                Diagnostic::new(format!("at batch size {batch} the step needs more memory than any GPU has"))
                    .hint("choose a smaller batch size")
            }
            NotReplayed::DoesNotFit(DoesNotFit { batch, asked_bytes, reserved_bytes, limit_bytes: Some(limit_bytes) }) => {
                let gb = |bytes: u64| bytes as f64 / 1e9;
                Diagnostic::new(format!(
                    "at batch size {batch} the step does not fit: beside {:.2} GB that are in use it asks for {:.2} GB, and there \
                     are {:.2} GB for tensors",
                    gb(reserved_bytes),
                    gb(asked_bytes),
                    gb(limit_bytes)
                ))
                .hint("choose a smaller batch size")
            }
        }
    }
}

/// Replays the events of a description at a batch size, on a device that is never full.
pub fn replay(description: &Description, batch: u64) -> Result<Replay, Diagnostic> {
    Ok(replay_within(description, batch, None)?)
}

/// The same on a device with so many bytes for tensors: it reserves less than it would like to, or does not fit.
///
/// What the allocator keeps without need it gives back before it fails, so the peak is up to the limit: a full device is no
/// sign that the step needs all of it. Only the first failure *after* that is out of memory. As such it is a bound from below.
pub fn replay_within(description: &Description, batch: u64, limit_bytes: Option<u64>) -> Result<Replay, NotReplayed> {
    if batch == 0 {
        return Err(NotReplayed::NoItems);
    }
    let does_not_fit = |Exhausted { bytes, reserved_bytes }| {
        NotReplayed::DoesNotFit(DoesNotFit { batch, asked_bytes: bytes, reserved_bytes, limit_bytes })
    };
    let [_, first, second] = description.steps;
    let mut kept = Run::of(description, batch, limit_bytes);
    kept.play(second).map_err(does_not_fit)?;
    let mut emptied = Run::of(description, batch, limit_bytes);
    emptied.play(first).map_err(does_not_fit)?;
    emptied.allocator.empty_cache();
    emptied.allocator.reset_peaks();
    emptied.play(second).map_err(does_not_fit)?;
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
    fn of(description: &'a Description, batch: u64, limit_bytes: Option<u64>) -> Run<'a> {
        Run {
            description,
            batch,
            at: 0,
            allocator: limit_bytes.map_or_else(CachingAllocator::new, CachingAllocator::with_limit),
            held: description.allocations.iter().map(|_| None).collect(),
            by_kind: vec![0; description.kinds.len()],
            at_peak: vec![0; description.kinds.len()],
        }
    }

    /// Up to an event, which is not played.
    fn play(&mut self, end: usize) -> Result<(), Exhausted> {
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
            self.held[place] = Some(self.allocator.allocate(bytes)?);
            self.by_kind[kind] += bytes;
            if self.allocator.allocated_peak_bytes() > peak {
                self.at_peak.copy_from_slice(&self.by_kind);
            }
        }
        Ok(())
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
    /// While it trains, as `Basis::trained_bytes` has it: after the cache of the warm-up was given back, if it is.
    pub training_bytes: f64,
    /// The allocator's own peaks, of the warm-up.
    pub replayed: Peaks,
    /// They add up to `bytes`: the description's kinds, then `rounding` (what the allocator holds and no tensor needs),
    /// `workspace`, `context`.
    pub parts: Vec<Part>,
    /// Its tensors need as much at one time, however it is allocated. Of an approximate description only the weights and buffers are
    /// certain: a compiled step keeps less than the traced one.
    pub least_tensor_bytes: f64,
    /// Why it is no exact replay, in words.
    pub approximate: Vec<String>,
}

impl Coefficients {
    /// R and X of a replay, as bytes of the device.
    pub fn bytes(&self, held_bytes: u64, workspace_bytes: u64) -> f64 {
        self.context_bytes + self.per_reserved_byte * held_bytes as f64 + self.per_workspace_byte * workspace_bytes as f64
    }

    pub fn footprint(&self, description: &Description, batch: u64, basis: Basis) -> Result<Footprint, Diagnostic> {
        Ok(self.footprint_of(replay(description, batch)?, description, batch, basis))
    }

    /// What a device of so many bytes would show: never more than it has, see `replay_within`. cuDNN takes what is left for its
    /// workspace (ATen/native/cudnn/Conv_v7.cpp, `try_all`: an algorithm that runs out of memory is passed over).
    pub fn footprint_within(
        &self,
        description: &Description,
        batch: u64,
        basis: Basis,
        device_bytes: u64,
    ) -> Result<Footprint, NotReplayed> {
        let room = (device_bytes as f64 - self.context_bytes).max(0.0) / self.per_reserved_byte;
        let replay = replay_within(description, batch, Some(room as u64))?;
        let mut footprint = self.footprint_of(replay, description, batch, basis);
        let over = (footprint.bytes - device_bytes as f64).max(0.0);
        if let Some(workspace) = footprint.parts.iter_mut().find(|part| part.kind == "workspace") {
            workspace.bytes -= over;
        }
        for bytes in [&mut footprint.bytes, &mut footprint.warm_up_bytes, &mut footprint.training_bytes] {
            *bytes = bytes.min(device_bytes as f64);
        }
        Ok(footprint)
    }

    fn footprint_of(&self, replay: Replay, description: &Description, batch: u64, basis: Basis) -> Footprint {
        let workspace_bytes = description.workspace.bytes_at(batch);
        let held_bytes = basis.held_bytes(&replay);
        let of = |held_bytes: u64| self.bytes(held_bytes, workspace_bytes);
        let (warm_up_bytes, training_bytes) = (of(basis.of(replay.warm_up)), of(basis.trained_bytes(&replay)));
        let replayed = replay.warm_up;
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
        let least_tensor_bytes = match approximate.is_empty() {
            true => asked,
            false => asked.min((description.parameter_bytes + description.buffer_bytes) as f64),
        };
        let bytes = of(held_bytes);
        Footprint { batch, bytes, warm_up_bytes, training_bytes, replayed, parts, least_tensor_bytes, approximate }
    }
}

#[cfg(test)]
mod tests;
