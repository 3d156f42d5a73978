//! A predictor of utilisation made of measurements. In: measured rows of one who measured. Out: the predictor, and its fit.

use collo_predict::Mark;
use collo_predict::utilisation::{UtilisationFit, UtilisationPredictor, fit_utilisation};
use collo_text::{Diagnostic, Diagnostics};

use super::profiled;
use crate::caller::{Caller, Request};

/// The predictor of this name.
pub fn fit(
    caller: &dyn Caller,
    asked: &Request<'_>,
    name: String,
) -> Result<(UtilisationPredictor, UtilisationFit), Diagnostics> {
    let all = profiled(caller, asked)?;
    let [of_one] = &all[..] else {
        let list = all.iter().map(|one| format!("`{}`", one.who.name)).collect::<Vec<_>>().join(", ");
        let wrong = Diagnostic::new(format!("the rows are measured by {list}: a fit mixes no sources"));
        return Err(wrong.hint(format!("one predictor for each: `--measured-by \"{}\"` chooses one", all[0].who.name)).into());
    };
    let unfit = |why| Diagnostic::new("no predictor can be fitted on these rows").caused_by(why);
    let fitted = fit_utilisation(&of_one.rows).map_err(unfit)?;
    let mark = if of_one.who.simulated { Mark::Simulated } else { Mark::Own };
    let predictor = UtilisationPredictor::of(&fitted, name, of_one.conditions(), of_one.source(), mark);
    Ok((predictor, fitted))
}
