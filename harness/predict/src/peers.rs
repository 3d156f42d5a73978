//! The estimators of the literature on the same description, for comparison only. In: a description, a batch size. Out: bytes.
//!
//! To add an estimator: a variant of [`Peer`], with a test on its published figures.

use std::fmt;

use crate::description::Description;

/// An estimator of others, as they evaluated it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// Horus (Yeung et al., TPDS 2021) as the collocation study's authors ran it: `4 · (B·A + P + B·P) + 800 MiB`. It multiplies the
    /// gradients of the weights by the batch size.
    Horus,
    /// As its text prints it, `(B·A + P) + B·G + d`, with the gradients that an item has: one per activation.
    HorusAsPrinted,
    /// The peak of live storages of a forward and a backward pass: no optimiser, loss, context, workspace, rounding.
    FakeTensor,
    DeepSpeed(DeepSpeed),
}

/// The estimators of DeepSpeed's ZeRO, for one GPU, in mixed precision with Adam. Activations are in none
/// (`deepspeed/runtime/zero/stage_1_and_2.py`: `estimate_zero2_model_states_mem_needs`; `stage3.py`:
/// `estimate_zero3_model_states_mem_needs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeepSpeed {
    Zero2,
    /// The optimiser's state is in the memory of the host.
    Zero2Offloaded,
    Zero3,
}

const VALUE_BYTES: f64 = 4.0;
/// What the authors' script adds for the context.
const HORUS_OVERHEAD_BYTES: f64 = 800.0 * 1_048_576.0;

impl Peer {
    pub const ALL: [Peer; 6] = [
        Peer::Horus,
        Peer::HorusAsPrinted,
        Peer::FakeTensor,
        Peer::DeepSpeed(DeepSpeed::Zero2),
        Peer::DeepSpeed(DeepSpeed::Zero2Offloaded),
        Peer::DeepSpeed(DeepSpeed::Zero3),
    ];

    /// Bytes of the device. None: the description lacks what it counts.
    pub fn estimate_bytes(self, description: &Description, batch: u64) -> Option<f64> {
        let (items, parameters) = (batch as f64, description.parameters as f64);
        let activations = items * description.horus_activations;
        match self {
            Peer::Horus => Some(VALUE_BYTES * (activations + parameters + items * parameters) + HORUS_OVERHEAD_BYTES),
            Peer::HorusAsPrinted => Some(VALUE_BYTES * (2.0 * activations + parameters) + HORUS_OVERHEAD_BYTES),
            Peer::FakeTensor => {
                let lines = description.fake_tensor.iter();
                lines.map(|line| line.fixed_bytes as f64 + line.item_bytes as f64 * items).reduce(f64::max)
            }
            Peer::DeepSpeed(DeepSpeed::Zero2) => Some(20.0 * parameters),
            Peer::DeepSpeed(DeepSpeed::Zero2Offloaded) => Some(2.0 * parameters),
            Peer::DeepSpeed(DeepSpeed::Zero3) => Some(4.0 * description.largest_layer_parameters as f64 + 18.0 * parameters),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Peer::Horus => "Horus",
            Peer::HorusAsPrinted => "Horus as printed",
            Peer::FakeTensor => "FakeTensor",
            Peer::DeepSpeed(DeepSpeed::Zero2) => "DeepSpeed ZeRO-2",
            Peer::DeepSpeed(DeepSpeed::Zero2Offloaded) => "DeepSpeed ZeRO-2, offloaded",
            Peer::DeepSpeed(DeepSpeed::Zero3) => "DeepSpeed ZeRO-3",
        })
    }
}

#[cfg(test)]
mod tests;
