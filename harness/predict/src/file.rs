//! A predictor file: a header that is the same for every quantity, and a law with its coefficients. In: `predictors/NAME.json`. Out: the
//! predictor; or the reason why the file cannot serve.
//!
//! To add a quantity: a variant of [`Quantity`] and of `AnyLaw` (`any.rs`), and a type that is a [`PredictorLaw`]. To change what
//! coefficients mean: a new `PredictorLaw::FORMULA`, so that files of the old one are refused.

use std::fmt;
use std::sync::Arc;

use collo_text::{Diagnostic, Source};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::PREDICTOR_SCHEMA;
use crate::json::{self, JsonKind};

/// What a predictor predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// A table that collo did not measure.
    Table,
}

impl Mark {
    pub fn as_str(self) -> &'static str {
        match self {
            Mark::Simulated => "simulated",
            Mark::Published => "published",
            Mark::Own => "own",
            Mark::Table => "table",
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

/// Under which conditions the rows were measured; what is absent was not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    pub device: TargetDevice,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocator: Option<String>,
}

impl Conditions {
    /// Only what both have in common.
    pub fn join(&mut self, other: &Conditions) {
        let agree = |mine: &mut Option<String>, its: &Option<String>| {
            if mine != its {
                *mine = None;
            }
        };
        agree(&mut self.gpu, &other.gpu);
        agree(&mut self.architecture, &other.architecture);
        agree(&mut self.driver, &other.driver);
        agree(&mut self.torch, &other.torch);
        agree(&mut self.sharing, &other.sharing);
        agree(&mut self.precision, &other.precision);
        agree(&mut self.allocator, &other.allocator);
    }
}

/// What a predictor predicts by: coefficients, widths of intervals, and how well they did on what their fit had not seen.
pub trait PredictorLaw: Serialize + DeserializeOwned {
    const QUANTITY: Quantity;
    /// The formula and its version: what the coefficients mean.
    const FORMULA: &'static str;

    /// Why it cannot serve.
    fn check(&self) -> Result<(), String>;
    /// How many families its intervals are of.
    fn families(&self) -> usize;
    /// How many rows its left-out scores are of.
    fn rows(&self) -> usize;
}

/// A predictor, as in its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictorFile<L> {
    pub schema: u32,
    pub name: String,
    pub quantity: Quantity,
    /// That of the law.
    pub formula: String,
    /// How many times as wide the intervals become, as logarithms, with each step from what it was fitted on: another torch, another device
    /// of the architecture, one of another; of groups also another sharing mode, more members. Chosen, not measured.
    #[serde(deserialize_with = "json::amount")]
    pub widening: f64,
    pub conditions: Conditions,
    /// What it was fitted on: campaigns, tables, or a publication.
    pub source: String,
    pub mark: Mark,
    pub law: L,
}

const KIND: JsonKind =
    JsonKind { name: "a predictor", way_out: "fit it again, or restore the file", newest_schema: PREDICTOR_SCHEMA };
/// Of a new file.
const WIDENING: f64 = 1.5;
/// With a larger one nothing would be left of an interval after one step.
const MOST_WIDENING: f64 = 10.0;

/// What a file is for, before anything else of it is read.
#[derive(Deserialize)]
pub struct Purpose {
    pub quantity: String,
    formula: String,
}

impl Purpose {
    pub fn read(source: &Arc<Source>) -> Result<Purpose, Diagnostic> {
        json::check_schema(source, &KIND)?;
        json::read(source, &KIND)
    }
}

impl<L: PredictorLaw> PredictorFile<L> {
    /// Of a law that was fitted.
    pub fn new(law: L, name: String, conditions: Conditions, source: String, mark: Mark) -> PredictorFile<L> {
        let (schema, quantity, formula) = (PREDICTOR_SCHEMA, L::QUANTITY, L::FORMULA.into());
        PredictorFile { schema, name, quantity, formula, widening: WIDENING, conditions, source, mark, law }
    }

    /// Reads and checks it.
    pub fn read(source: &Arc<Source>) -> Result<PredictorFile<L>, Diagnostic> {
        let (name, wanted) = (source.name(), L::QUANTITY);
        let Purpose { quantity, formula } = Purpose::read(source)?;
        if quantity != wanted.as_str() {
            let what = format!("{name} predicts `{quantity}`, but `{wanted}` is wanted");
            return Err(Diagnostic::new(what).hint("`collo predict list` shows what each predicts"));
        }
        if formula != L::FORMULA {
            let what = format!("{name} is for the formula `{formula}`, which this collo does not have");
            return Err(Diagnostic::new(what).hint(format!("fit it again; this one has `{}`", L::FORMULA)));
        }
        let read: PredictorFile<L> = json::read(source, &KIND)?;
        let wrong = |reason: String| Diagnostic::new(format!("{name} is not a usable predictor: {reason}")).hint(KIND.way_out);
        read.check().map_err(wrong)?;
        Ok(read)
    }

    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("`name` is empty".into());
        }
        if !(1.0..=MOST_WIDENING).contains(&self.widening) {
            return Err(format!("`widening` is {}, not from 1 to {MOST_WIDENING}", self.widening));
        }
        self.law.check()
    }
}

impl<L> PredictorFile<L> {
    /// The same header with another law.
    pub fn with<M>(self, law: M) -> PredictorFile<M> {
        self.map(|_| law)
    }

    /// The same header with what becomes of the law.
    pub fn map<M>(self, of: impl FnOnce(L) -> M) -> PredictorFile<M> {
        let PredictorFile { schema, name, quantity, formula, widening, conditions, source, mark, law } = self;
        PredictorFile { schema, name, quantity, formula, widening, conditions, source, mark, law: of(law) }
    }

    /// Whether it may predict for a device: what was fitted on simulated runs says nothing about a real one, and the reverse.
    pub fn serves(&self, device: TargetDevice, simulated: bool) -> bool {
        self.conditions.device == device && (self.mark == Mark::Simulated) == simulated
    }

    /// Why it may not predict for a GPU.
    pub fn may_serve_gpu(&self, simulated: bool) -> Result<(), Diagnostic> {
        let refused = |was: &str, is: &str, choose: &str| {
            Err(Diagnostic::new(format!("predictor `{}` {was}, but this {is}", self.name)).hint(format!("choose one {choose}")))
        };
        let (marks, shows) = ("`collo predict list` marks them", "`collo predict show NAME` says which is");
        match self.conditions.device {
            _ if self.serves(TargetDevice::Gpu, simulated) => Ok(()),
            TargetDevice::Cpu => {
                refused("is of the memory of processes on a CPU", "is a GPU", &format!("fitted on GPUs; {shows}"))
            }
            TargetDevice::Gpu if simulated => {
                refused("was fitted on real runs", "GPU is simulated", &format!("fitted on simulated runs; {marks}"))
            }
            TargetDevice::Gpu => refused("was fitted on simulated runs", "GPU is real", &format!("fitted on real runs; {marks}")),
        }
    }
}

impl<L: Serialize> PredictorFile<L> {
    /// As it stands in its file.
    pub fn to_text(&self) -> String {
        json::to_text(self)
    }
}
