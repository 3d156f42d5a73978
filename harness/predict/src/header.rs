//! What the file of every predictor begins with: what it predicts, under which conditions and by whom it was fitted.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a predictor predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// The bytes of a member.
    Memory,
    /// How busy a member alone keeps its device, and how long its step takes.
    Utilisation,
    /// What members that share a device cost one another.
    Company,
}

impl Quantity {
    pub const ALL: [Quantity; 3] = [Quantity::Memory, Quantity::Utilisation, Quantity::Company];

    /// As in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Quantity::Memory => "memory",
            Quantity::Utilisation => "utilisation",
            Quantity::Company => "company",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A fitted predictor of whatever quantity: what choosing, listing and showing it takes.
pub trait Fitted {
    fn quantity(&self) -> Quantity;
    fn name(&self) -> &str;
    fn conditions(&self) -> &Conditions;
    fn mark(&self) -> Mark;
    /// How many families its intervals are of.
    fn families(&self) -> usize;
    /// How many rows its left-out scores are of.
    fn rows(&self) -> usize;
    /// How many times as wide its intervals become, as logarithms, with each step away from what it was fitted on.
    fn widening(&self) -> f64;
    /// As it stands in its file.
    fn to_text(&self) -> String;
}

/// Whose measurements it was fitted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// The simulated GPU's: it serves simulated GPUs only.
    Simulated,
    /// Others', as published.
    Published,
    /// The user's own campaigns on real GPUs.
    Own,
}

impl Mark {
    pub fn as_str(self) -> &'static str {
        match self {
            Mark::Simulated => "simulated",
            Mark::Published => "published",
            Mark::Own => "own",
        }
    }
}

/// Whose memory is predicted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetDevice {
    /// What a process holds of a GPU.
    #[default]
    Gpu,
    /// The resident memory of a process that trains on a CPU.
    Cpu,
}

impl TargetDevice {
    fn is_gpu(&self) -> bool {
        *self == TargetDevice::Gpu
    }
}

/// Under which conditions the rows were measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    #[serde(default, skip_serializing_if = "TargetDevice::is_gpu")]
    pub device: TargetDevice,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator: Option<String>,
}

/// The way out where a predictor file is not as it should be.
pub const WAY_OUT: &str = "fit it again, or restore the file";
/// With a larger one the first step back would leave nothing said.
pub const MOST_WIDENING: f64 = 10.0;

/// Whether a predictor of any quantity may widen its intervals so many times; the error says why not.
pub fn check_widening(widening: f64) -> Result<(), String> {
    match (1.0..=MOST_WIDENING).contains(&widening) {
        true => Ok(()),
        false => Err(format!("`widening` is {widening}, not from 1 to {MOST_WIDENING}")),
    }
}
