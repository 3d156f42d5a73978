//! Predictors of several quantities. In: a predictor file. Out: the predictor of the quantity that it names.

use std::fmt;
use std::sync::Arc;

use collo_text::quoted;
use collo_text::{Diagnostic, Source};
use serde::Deserialize;

use crate::PREDICTOR_SCHEMA;
use crate::company::CompanyPredictor;
use crate::json::{self, Kind};
use crate::predictor::{Conditions, Mark, Predictor};
use crate::utilisation::UtilisationPredictor;

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

/// A predictor file.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyPredictor {
    Memory(Predictor),
    Utilisation(UtilisationPredictor),
    Company(Box<CompanyPredictor>),
}

const KIND: Kind = Kind { name: "a predictor", way_out: "fit it again, or restore the file", newest_schema: PREDICTOR_SCHEMA };

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

impl AnyPredictor {
    /// Reads and checks it.
    pub fn read(source: &Arc<Source>) -> Result<AnyPredictor, Diagnostic> {
        json::check_schema(source, &KIND)?;
        #[derive(Deserialize)]
        struct Purpose {
            quantity: String,
        }
        let Purpose { quantity } = json::read(source, &KIND)?;
        match Quantity::ALL.into_iter().find(|known| known.as_str() == quantity) {
            Some(Quantity::Memory) => Ok(AnyPredictor::Memory(Predictor::read(source)?)),
            Some(Quantity::Utilisation) => Ok(AnyPredictor::Utilisation(UtilisationPredictor::read(source)?)),
            Some(Quantity::Company) => Ok(AnyPredictor::Company(Box::new(CompanyPredictor::read(source)?))),
            _ => {
                let what = format!("{} predicts {}, which this collo does not", source.name(), quoted(&quantity));
                let known = Quantity::ALL.map(Quantity::as_str).join(", ");
                Err(Diagnostic::new(what).hint(format!("what can be predicted: {known}")))
            }
        }
    }

    /// The same under the name that it is found by.
    pub fn named(mut self, name: String) -> AnyPredictor {
        match &mut self {
            AnyPredictor::Memory(predictor) => predictor.name = name,
            AnyPredictor::Utilisation(predictor) => predictor.name = name,
            AnyPredictor::Company(predictor) => predictor.name = name,
        }
        self
    }

    pub fn fitted(&self) -> &dyn Fitted {
        match self {
            AnyPredictor::Memory(predictor) => predictor,
            AnyPredictor::Utilisation(predictor) => predictor,
            AnyPredictor::Company(predictor) => predictor.as_ref(),
        }
    }
}
