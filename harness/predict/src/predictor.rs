//! A predictor: a formula with its coefficients, a file of a few lines. In: `predictors/NAME.json`. Out: predictions, with the
//! name of who made them; or the reason why the file cannot serve.
//!
//! To add another formula: a new `Predictor::FORMULA`, so that old files are refused.

use std::sync::Arc;

use collo_text::{Diagnostic, Source};
use serde::{Deserialize, Serialize};

use crate::PREDICTOR_SCHEMA;
use crate::conformal::{Bounds, Width};
use crate::covariance::Covariance;
use crate::description::Description;
use crate::header::{Conditions, Fitted, Mark, Quantity, TargetDevice, WAY_OUT, check_widening};
use crate::json::{self, Kind};
use crate::memory::{Basis, Coefficients, Footprint};

/// As in the file; what is absent was not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predictor {
    pub schema: u32,
    pub name: String,
    pub quantity: String,
    /// The formula and its version: what the coefficients mean.
    pub formula: String,
    pub coefficients: Coefficients,
    #[serde(default, skip_serializing_if = "Factors::are_fitted")]
    pub factors: Factors,
    /// Of the coefficients; absent if not all were fitted, and in files of the first schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covariance: Option<Covariance>,
    pub width: Width,
    /// How many times as wide the intervals become, as logarithms, with each step from the device and torch that it was fitted on:
    /// another torch, another device of the architecture, one of another. Chosen, not measured.
    #[serde(default = "widening", deserialize_with = "json::amount")]
    pub widening: f64,
    pub conditions: Conditions,
    /// What it was fitted on: campaigns, or a publication.
    pub source: String,
    pub mark: Mark,
    pub left_out: LeftOut,
}

/// Where the factors of reserved bytes and of the workspace come from; the context is always fitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Factors {
    #[default]
    Fitted,
    /// The published ones: there were too few architectures for others.
    Published,
    /// A byte for each byte, and no workspace: on a CPU, and of a simulated GPU with few architectures.
    One,
}

impl Factors {
    fn are_fitted(&self) -> bool {
        *self == Factors::Fitted
    }
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

const KIND: Kind = Kind { name: "a predictor", way_out: WAY_OUT, newest_schema: PREDICTOR_SCHEMA };
/// Beyond this a coefficient is no multiple of bytes that a step needs.
const LARGEST_FACTOR: f64 = 100.0;
/// A context of more than 64 GiB is none.
const LARGEST_CONTEXT_BYTES: f64 = 68_719_476_736.0;
/// The largest batch size that is searched for.
const LARGEST_BATCH: u64 = 1 << 24;

impl Predictor {
    pub const QUANTITY: &str = "memory";
    /// `context + per_reserved_byte · R + per_workspace_byte · X`, R by the replay of this package.
    pub const FORMULA: &str = "replay-1";

    /// Of files that say no other.
    pub const WIDENING: f64 = 1.5;

    /// Reads and checks it.
    pub fn read(source: &Arc<Source>) -> Result<Predictor, Diagnostic> {
        json::check_schema(source, &KIND)?;
        #[derive(Deserialize)]
        struct Purpose {
            quantity: String,
            formula: String,
        }
        let name = source.name();
        let Purpose { quantity, formula } = json::read(source, &KIND)?;
        if quantity != Predictor::QUANTITY {
            let what = format!("{name} predicts `{quantity}`, but `{}` is wanted", Predictor::QUANTITY);
            return Err(Diagnostic::new(what).hint("`collo predictor list` shows what each predicts"));
        }
        if formula != Predictor::FORMULA {
            let what = format!("{name} is for the formula `{formula}`, which this collo does not have");
            return Err(Diagnostic::new(what).hint(format!("fit it again; this one has `{}`", Predictor::FORMULA)));
        }
        let read: Predictor = json::read(source, &KIND)?;
        let wrong = |reason: String| Diagnostic::new(format!("{name} is not a usable predictor: {reason}")).hint(KIND.way_out);
        read.check().map_err(wrong)?;
        Ok(read)
    }

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
        check_widening(self.widening)?;
        self.covariance.as_ref().map_or(Ok(()), Covariance::check)?;
        if self.name.is_empty() {
            return Err("`name` is empty".into());
        }
        Ok(())
    }

    /// Whether it may predict for a GPU: what was fitted on simulated runs says nothing about a real one, and the reverse.
    pub fn may_serve(&self, simulated: bool) -> Result<(), Diagnostic> {
        let name = &self.name;
        if self.conditions.device == TargetDevice::Cpu {
            let wrong = Diagnostic::new(format!("predictor `{name}` is of the memory of processes on a CPU, but this is a GPU"));
            return Err(wrong.hint("choose one fitted on GPUs; `collo predictor show NAME` says which is"));
        }
        match (self.mark == Mark::Simulated, simulated) {
            (true, false) => {
                Err(Diagnostic::new(format!("predictor `{name}` was fitted on simulated runs, but this GPU is real"))
                    .hint("choose one fitted on real runs; `collo predictor list` marks them"))
            }
            (false, true) => {
                Err(Diagnostic::new(format!("predictor `{name}` was fitted on real runs, but this GPU is simulated"))
                    .hint("choose one fitted on simulated runs; `collo predictor list` marks them"))
            }
            _ => Ok(()),
        }
    }

    pub fn predict(&self, description: &Description, batch: u64, basis: Basis) -> Result<Prediction, Diagnostic> {
        let footprint = self.coefficients.footprint(description, batch, basis)?;
        let Bounds { low_bytes, high_bytes, upper_bytes } = Bounds::around(footprint.bytes, self.width);
        let least = self.coefficients.context_bytes + footprint.least_tensor_bytes;
        let least_bytes = Bounds::around(least, self.width).low_bytes;
        Ok(Prediction { predictor: self.name.clone(), footprint, low_bytes, high_bytes, upper_bytes, least_bytes })
    }

    /// The same with another width, as a choice widens it, and with the context that stored runs have shown, if any has.
    pub fn adapted(&self, width: Width, context_bytes: Option<f64>) -> Predictor {
        let context_bytes = context_bytes.unwrap_or(self.coefficients.context_bytes);
        Predictor { width, coefficients: Coefficients { context_bytes, ..self.coefficients }, ..self.clone() }
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

impl Fitted for Predictor {
    fn quantity(&self) -> Quantity {
        Quantity::Memory
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    fn mark(&self) -> Mark {
        self.mark
    }

    fn families(&self) -> usize {
        self.width.families
    }

    fn rows(&self) -> usize {
        self.left_out.rows
    }

    fn widening(&self) -> f64 {
        self.widening
    }

    fn to_text(&self) -> String {
        json::to_text(self)
    }
}

fn widening() -> f64 {
    Predictor::WIDENING
}

#[cfg(test)]
pub mod tests;
