//! A predictor made of measurements. In: what is measured, and by whom. Out: the predictor.

use collo_predict::{AnyLaw, AnyPredictor, Quantity};
use collo_text::Diagnostics;

use crate::caller::{Caller, Request};
use crate::{company, memory, utilisation};

/// The predictor of this name, and what could not be fitted of what was measured.
pub fn fit(
    caller: &dyn Caller,
    quantity: Quantity,
    asked: &Request<'_>,
    name: String,
) -> Result<(AnyPredictor, Vec<String>), Diagnostics> {
    match quantity {
        Quantity::Memory => Ok((memory::fit(caller, asked, name)?.map(AnyLaw::Memory), Vec::new())),
        Quantity::Utilisation => {
            let (predictor, without) = utilisation::fit(caller, asked, name)?;
            Ok((predictor.map(AnyLaw::Utilisation), without))
        }
        Quantity::Company => {
            let groups = company::read(caller, asked.rows)?;
            let predictor = company::fit(caller, asked, &groups, name)?;
            Ok((predictor.map(|modes| AnyLaw::Company(Box::new(modes))), Vec::new()))
        }
    }
}
