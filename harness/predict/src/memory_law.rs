//! The law of memory: a formula with its coefficients. In: a description, a batch size. Out: predictions with bounds, and the name of the
//! predictor.

use collo_text::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::conformal::{Bounds, Width};
use crate::covariance::Covariance;
use crate::description::Description;
use crate::file::{PredictorFile, PredictorLaw, Quantity};
use crate::json;
use crate::memory::{Basis, Coefficients, Footprint};

/// As in its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryLaw {
    pub coefficients: Coefficients,
    pub factors: Factors,
    /// Of the coefficients; absent if not all were fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covariance: Option<Covariance>,
    pub width: Width,
    pub left_out: LeftOut,
}

pub type MemoryPredictor = PredictorFile<MemoryLaw>;

/// Where the factors of reserved bytes and of the workspace come from; the context is always fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Factors {
    Fitted,
    /// The published ones: there were too few architectures for others.
    Published,
    /// A byte for each byte, and no workspace: on a CPU, and of a simulated GPU with few architectures.
    One,
}

/// How well the formula did on families that its fit had not seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    pub rows: usize,
    pub families: usize,
    #[serde(deserialize_with = "json::amount")]
    pub median_error_bytes: f64,
    /// Of the measured value, as the next.
    #[serde(deserialize_with = "json::amount")]
    pub median_relative_error: f64,
    #[serde(deserialize_with = "json::amount")]
    pub worst_relative_error: f64,
    /// Rows predicted too low.
    pub under: usize,
    /// Rows above the upper bound.
    pub exceeded: usize,
}

/// A claim about memory: by which predictor, how much, between which bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    pub predictor: String,
    pub footprint: Footprint,
    /// 95 % of measurements are between `low_bytes` and `high_bytes`, if the predictor's width is of enough families.
    pub low_bytes: f64,
    pub high_bytes: f64,
    /// 95 % of measurements are below, under the same condition.
    pub upper_bytes: f64,
    /// It cannot run in less: the context and what its tensors need at one time, less the interval's width. No caches and no
    /// workspaces: before PyTorch's allocator gives up it releases its cached blocks and asks again
    /// (`c10/cuda/CUDACachingAllocator.cpp`: `malloc`, `release_cached_blocks`), and a convolution that finds no memory for its
    /// workspace takes the next algorithm (`aten/src/ATen/native/cudnn/Conv_v7.cpp`: `AlgoIterator::try_all`).
    pub least_bytes: f64,
}

/// Beyond this a coefficient is no multiple of bytes that a step needs.
const LARGEST_FACTOR: f64 = 100.0;
/// A context of more than 64 GiB is none.
const LARGEST_CONTEXT_BYTES: f64 = 68_719_476_736.0;
/// The largest batch size that is searched for.
const LARGEST_BATCH: u64 = 1 << 24;

impl PredictorLaw for MemoryLaw {
    const QUANTITY: Quantity = Quantity::Memory;
    /// `context + per_reserved_byte · R + per_workspace_byte · X`, R by the replay of this package.
    const FORMULA: &'static str = "replay-1";

    fn check(&self) -> Result<(), String> {
        let Coefficients { context_bytes, per_reserved_byte, per_workspace_byte } = self.coefficients;
        for (what, value, most) in [
            ("context_bytes", context_bytes, LARGEST_CONTEXT_BYTES),
            ("per_reserved_byte", per_reserved_byte, LARGEST_FACTOR),
            ("per_workspace_byte", per_workspace_byte, LARGEST_FACTOR),
        ] {
            if !(0.0..=most).contains(&value) {
                return Err(format!("`{what}` is {value}, not from 0 to {most}"));
            }
        }
        if per_reserved_byte == 0.0 {
            return Err("`per_reserved_byte` is 0, so it would be the same for every workload".into());
        }
        self.width.check()?;
        self.covariance.as_ref().map_or(Ok(()), Covariance::check)
    }

    fn families(&self) -> usize {
        self.width.families
    }

    fn rows(&self) -> usize {
        self.left_out.rows
    }
}

impl MemoryPredictor {
    pub fn predict(&self, description: &Description, batch: u64, basis: Basis) -> Result<Prediction, Diagnostic> {
        let MemoryLaw { coefficients, width, .. } = self.law;
        let footprint = coefficients.footprint(description, batch, basis)?;
        let Bounds { low_bytes, high_bytes, upper_bytes } = Bounds::around(footprint.bytes, width);
        let least_bytes = Bounds::around(coefficients.context_bytes + footprint.least_tensor_bytes, width).low_bytes;
        Ok(Prediction { predictor: self.name.clone(), footprint, low_bytes, high_bytes, upper_bytes, least_bytes })
    }

    /// The same with another width, as a choice widens it, and with the context that stored runs have shown, if any has.
    pub fn adapted(&self, width: Width, context_bytes: Option<f64>) -> MemoryPredictor {
        let mut law = MemoryLaw { width, ..self.law.clone() };
        law.coefficients.context_bytes = context_bytes.unwrap_or(law.coefficients.context_bytes);
        MemoryPredictor { law, ..self.clone() }
    }

    /// The largest batch size whose upper bound is within these bytes. None: not even a batch of 1 is.
    pub fn largest_batch(&self, description: &Description, basis: Basis, bytes: f64) -> Option<u64> {
        let fits = |batch: u64| self.predict(description, batch, basis).is_ok_and(|found| found.upper_bytes <= bytes);
        let mut low = Some(1).filter(|&one| fits(one))?;
        let mut high = 2;
        while high < LARGEST_BATCH && fits(high) {
            (low, high) = (high, high * 2);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { low = middle } else { high = middle }
        }
        Some(low)
    }
}

#[cfg(test)]
pub mod tests;
