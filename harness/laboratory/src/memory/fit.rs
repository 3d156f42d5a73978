//! A predictor of memory made of measurements. In: measured rows of one device. Out: the predictor.

use collo_plan::predictors;
use collo_predict::{Mark, Predictor};
use collo_text::{Diagnostic, Diagnostics, Remark};

use super::described::Described;
use crate::caller::{Caller, Request};
use crate::measurements::Measurer;

/// The predictor of this name.
pub fn fit(caller: &dyn Caller, asked: &Request<'_>, name: String) -> Result<Predictor, Diagnostics> {
    let described = Described::of(caller, asked)?;
    let (by, who) = one_of(caller, &described)?;
    let rows: Vec<_> = described.rows(by).into_iter().filter(|row| described.descriptions[row.subject].is_some()).collect();
    let shipped = predictors::find_of_memory(&caller.project()?, &caller.folder()?, predictors::SHIPPED)?;
    let unfit = |why| Diagnostic::new("no predictor can be fitted on these rows").caused_by(why);
    let (fitted, factors) = described.fitted(&rows, who, &shipped).map_err(unfit)?;
    described.doubt(caller, &fitted.left_out);
    let left_out = fitted.score().ok_or_else(|| Diagnostic::new("no row can be predicted"))?;
    Ok(Predictor {
        schema: collo_predict::PREDICTOR_SCHEMA,
        name,
        quantity: Predictor::QUANTITY.into(),
        formula: Predictor::FORMULA.into(),
        coefficients: fitted.coefficients,
        factors,
        covariance: fitted.covariance,
        width: fitted.width,
        widening: Predictor::WIDENING,
        conditions: described.conditions(&rows, who),
        source: described.source(&rows, who),
        mark: match described.is_published {
            true => Mark::Published,
            false if who.simulated => Mark::Simulated,
            false => Mark::Own,
        },
        left_out,
    })
}

/// Who measured. One source of measurements for one fit: two that differ by what else was on the device are no scatter. Of those whose
/// members needed less than alone no predictor is wanted while there are others.
fn one_of<'d>(caller: &dyn Caller, described: &'d Described) -> Result<(usize, &'d Measurer), Diagnostic> {
    let all = described.all.measurers();
    let alone: Vec<(usize, &Measurer)> = all.iter().copied().filter(|(_, who)| !who.shares).collect();
    match (&all[..], &alone[..]) {
        ([one], _) => Ok(*one),
        (_, [one]) => {
            for (by, who) in all.iter().filter(|(_, who)| who.shares) {
                let rows = described.rows(*by).len();
                caller
                    .remark(Remark::Note(format!("{rows} rows are not fitted: they are {}, who need less than alone", who.name)));
            }
            Ok(*one)
        }
        _ => {
            let list = all.iter().map(|(_, who)| format!("`{}`", who.name)).collect::<Vec<_>>().join(", ");
            let wrong = Diagnostic::new(format!("the rows are measured by {list}: a fit mixes no sources"));
            let first = all.first().map_or("", |(_, who)| who.name.as_str());
            Err(wrong.hint(format!("one predictor for each: `--measured-by \"{first}\"` chooses one")))
        }
    }
}
