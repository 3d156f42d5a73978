//! A training step in the numbers that utilisation depends on. In: a description, a batch size, a card. Out: bytes, FLOPs, kernels, and
//! what shares of a card they could keep busy.

use collo_gpus::Peaks;

use crate::description::Description;

use super::peaks::peak;

// How long a step takes and in how much of it SMs compute is modelled by five constants, which did best on 33 published profiles of named
// networks, 150 random MLPs and 90 random CNNs together, with whole kinds of networks left out. Neighbours of each do nearly as well.

/// An operation takes so long besides what it computes: it is launched, its first blocks start and its last ones end alone.
const OPERATION_S: f64 = 120e-6;
/// An item takes the host so long: it is read, collated, copied.
const ITEM_S: f64 = 150e-6;
/// The share of the published arithmetic that an operation reaches.
const REACHED_FLOPS: f64 = 0.3;
/// Bytes are counted for each operation, and caches keep many of them: several times the bandwidth of the memory is reached.
const REACHED_BANDWIDTH: f64 = 3.0;
/// What an operation reads again of what the one before has written comes from the L2 cache, if it is still there: of a mean operation
/// that moves this share of the cache, half.
const CACHED_SHARE: f64 = 0.1;

/// Which peak an operation has on a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    Convolution,
    Matmul,
    Other,
}

/// In which numbers products are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    Fp32,
    /// TF32 in convolutions, fp32 elsewhere.
    TorchDefault,
    Tf32,
    /// bf16 or fp16.
    Half,
}

impl Arithmetic {
    /// Of a setting `precision`.
    pub fn of(precision: &str) -> Arithmetic {
        match precision {
            "bf16" | "fp16" => Arithmetic::Half,
            "tf32" => Arithmetic::Tf32,
            "torch" => Arithmetic::TorchDefault,
            _ => Arithmetic::Fp32,
        }
    }
}

/// What the operations of one kind do in a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkOfKind {
    pub kind: OperationKind,
    pub flops: f64,
    /// Read and written, of tensors that grow with the batch.
    pub growing_bytes: f64,
    /// Of weights, gradients, moments.
    pub fixed_bytes: f64,
}

/// A training step at a batch size.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    pub batch: u64,
    pub arithmetic: Arithmetic,
    pub kernels: f64,
    pub kinds: Vec<WorkOfKind>,
}

impl Work {
    pub fn of(description: &Description, batch: u64) -> Work {
        let items = batch as f64;
        let kinds = description.operations.iter().map(|(name, cost)| WorkOfKind {
            kind: match name.as_str() {
                "convolution" => OperationKind::Convolution,
                "matmul" => OperationKind::Matmul,
                _ => OperationKind::Other,
            },
            flops: cost.flops_per_item * items,
            growing_bytes: cost.bytes_per_item * items,
            fixed_bytes: cost.fixed_bytes,
        });
        Work {
            batch,
            arithmetic: Arithmetic::of(&description.precision),
            kernels: description.kernels_per_step as f64,
            kinds: kinds.collect(),
        }
    }

    pub fn growing_bytes(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.growing_bytes).sum()
    }

    pub fn fixed_bytes(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.fixed_bytes).sum()
    }

    pub fn bytes(&self) -> f64 {
        self.growing_bytes() + self.fixed_bytes()
    }

    /// Seconds of the card at given shares of its peaks, if each kind is limited by arithmetic or by memory (Williams and others 2009,
    /// doi 10.1145/1498765.1498785), without launches.
    pub fn roofline_s(&self, peaks: &Peaks, flops_share: f64, bandwidth_share: f64) -> f64 {
        let of = |kind: &WorkOfKind| {
            let arithmetic = kind.flops / (peak(peaks, self.arithmetic, kind.kind) * flops_share);
            arithmetic.max((kind.growing_bytes + kind.fixed_bytes) / (peaks.bandwidth() * bandwidth_share))
        };
        self.kinds.iter().map(of).sum()
    }

    /// Of tensors that grow with the batch, by a mean operation.
    fn bytes_per_kernel(&self) -> f64 {
        self.growing_bytes() / self.kernels.max(1.0)
    }

    /// The share of a step in which SMs compute, from 0 to 1: of all bytes, those of weights, gradients and optimiser states too, because a
    /// wide layer at a small batch has its work in them.
    pub fn active(&self, peaks: &Peaks) -> f64 {
        self.active_s(peaks) / self.step_s(peaks)
    }

    /// The share of its bandwidth that a step would need of the card's memory, without what the L2 cache keeps; may exceed 1.
    pub fn traffic(&self, peaks: &Peaks) -> f64 {
        let moved = self.bytes_per_kernel();
        let uncached = moved / (moved + CACHED_SHARE * peaks.l2_bytes());
        (self.fixed_bytes() + self.growing_bytes() * uncached) / (peaks.bandwidth() * self.step_s(peaks))
    }

    /// The seconds of a step in which SMs compute.
    pub fn active_s(&self, peaks: &Peaks) -> f64 {
        self.roofline_s(peaks, REACHED_FLOPS, REACHED_BANDWIDTH)
    }

    /// Rough, and above 0: shares of it are wanted, and a description without kernels computes nothing.
    fn step_s(&self, peaks: &Peaks) -> f64 {
        self.active_s(peaks) + self.kernels.max(1.0) * OPERATION_S + self.batch as f64 * ITEM_S
    }
}
