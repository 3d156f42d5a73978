//! Predictors of several quantities. In: a predictor file. Out: the predictor of the quantity that it names.
//!
//! To add a quantity with predictor files of its own: a variant of `Quantity` (`header.rs`) and of [`AnyPredictor`]; the compiler
//! shows the rest.

use std::sync::Arc;

use collo_text::quoted;
use collo_text::{Diagnostic, Source};
use serde::Deserialize;

use crate::PREDICTOR_SCHEMA;
use crate::company::CompanyPredictor;
use crate::header::{Fitted, Quantity, WAY_OUT};
use crate::json::{self, Kind};
use crate::predictor::Predictor;
use crate::utilisation::UtilisationPredictor;

/// A predictor file.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyPredictor {
    Memory(Predictor),
    Utilisation(UtilisationPredictor),
    Company(Box<CompanyPredictor>),
}

const KIND: Kind = Kind { name: "a predictor", way_out: WAY_OUT, newest_schema: PREDICTOR_SCHEMA };

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
