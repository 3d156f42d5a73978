//! Predictor files of any quantity. In: a predictor file. Out: the predictor of the quantity that it names.

use std::sync::Arc;

use collo_text::{Diagnostic, Source, quoted};
use serde::Serialize;

use crate::company::CompanyModes;
use crate::file::{PredictorFile, PredictorLaw, Purpose, Quantity};
use crate::memory_law::MemoryLaw;
use crate::utilisation::UtilisationLaw;

/// The law of a predictor file of any quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AnyLaw {
    Memory(MemoryLaw),
    Utilisation(UtilisationLaw),
    Company(Box<CompanyModes>),
}

pub type AnyPredictor = PredictorFile<AnyLaw>;

impl AnyPredictor {
    /// Reads and checks it, as its quantity requires.
    pub fn read_any(source: &Arc<Source>) -> Result<AnyPredictor, Diagnostic> {
        let Purpose { quantity, .. } = Purpose::read(source)?;
        match Quantity::ALL.into_iter().find(|known| known.as_str() == quantity) {
            Some(Quantity::Memory) => PredictorFile::read(source).map(|file| file.map(AnyLaw::Memory)),
            Some(Quantity::Utilisation) => PredictorFile::read(source).map(|file| file.map(AnyLaw::Utilisation)),
            Some(Quantity::Company) => PredictorFile::read(source).map(|file| file.map(|modes| AnyLaw::Company(Box::new(modes)))),
            None => {
                let what = format!("{} predicts {}, which this collo does not", source.name(), quoted(&quantity));
                let known = Quantity::ALL.map(Quantity::as_str).join(", ");
                Err(Diagnostic::new(what).hint(format!("what can be predicted: {known}")))
            }
        }
    }
}

impl AnyLaw {
    pub fn rows(&self) -> usize {
        match self {
            AnyLaw::Memory(law) => law.rows(),
            AnyLaw::Utilisation(law) => law.rows(),
            AnyLaw::Company(modes) => modes.rows(),
        }
    }
}
