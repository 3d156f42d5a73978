//! A predictor made of measurements. In: measured rows of one device. Out: a file.

use std::path::{Path, PathBuf};

use collo_plan::predictors;
use collo_predict::{FEWEST_TO_FIT, Factors, Predictor};
use collo_predict::{Fitted, Mark};
use collo_store::replace_file;
use collo_text::{Diagnostic, Diagnostics};
use serde_json::json;

use super::described::Described;
use super::measurements::Measurer;
use crate::args::Evaluate;
use crate::verb::{Context, Ended};
use crate::{exit, output};

pub fn fit(context: &Context<'_>, asked: &Evaluate, to: &Path) -> Ended {
    let name = name_of(to)?;
    let described = Described::of(context, asked)?;
    let (by, who) = one_of(&described)?;
    let rows: Vec<_> = described.rows(by).into_iter().filter(|row| described.descriptions[row.subject].is_some()).collect();
    let shipped = predictors::find_of_memory(&context.project()?, &context.folder()?, predictors::SHIPPED)?;
    let unfit = |why| Diagnostic::new("no predictor can be fitted on these rows").caused_by(why);
    let (fitted, factors) = described.fitted(&rows, who, &shipped).map_err(unfit)?;
    described.doubt(&fitted.left_out);
    let left_out = fitted.score().ok_or_else(|| Diagnostic::new("no row can be predicted"))?;
    let predictor = Predictor {
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
    };
    let path = write(context, to, &predictor.to_text())?;
    if context.arguments.json {
        output::json(&json!({"schema": 1, "file": path, "predictor": serde_json::to_value(&predictor).unwrap_or_default()}));
    } else {
        output::result(super::in_full(&predictor));
        if factors != Factors::Fitted && !who.is_cpu() {
            let found = predictor.width.families;
            output::note(format!(
                "only the context is fitted: {found} architectures are too few for the factors, which take {FEWEST_TO_FIT}"
            ));
        }
        output::note(format!("written: {}; next: collo predict WORKLOAD --predictor {}", path.display(), to.display()));
    }
    Ok(exit::DONE)
}

/// The name of a predictor, by the file that it is written to.
pub fn name_of(to: &Path) -> Result<String, Diagnostic> {
    let name = to.file_stem().and_then(|stem| stem.to_str()).filter(|_| to.extension().is_some_and(|e| e == "json"));
    name.map(String::from).ok_or_else(|| Diagnostic::new(format!("`--to {}` is not a file NAME.json", to.display())))
}

/// Writes a predictor, and says where.
pub fn write(context: &Context<'_>, to: &Path, text: &str) -> Result<PathBuf, Diagnostics> {
    let path = context.folder()?.join(to);
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder)?;
    }
    replace_file(&path, text.as_bytes())?;
    Ok(path)
}

/// Who measured. One source of measurements for one fit: two that differ by what else was on the device are no scatter. Of those whose
/// members needed less than alone no predictor is wanted while there are others.
fn one_of(described: &Described) -> Result<(usize, &Measurer), Diagnostic> {
    let all = described.all.measurers();
    let alone: Vec<(usize, &Measurer)> = all.iter().copied().filter(|(_, who)| !who.shares).collect();
    match (&all[..], &alone[..]) {
        ([one], _) => Ok(*one),
        (_, [one]) => {
            for (by, who) in all.iter().filter(|(_, who)| who.shares) {
                let rows = described.rows(*by).len();
                output::note(format!("{rows} rows are not fitted: they are {}, who need less than alone", who.name));
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
