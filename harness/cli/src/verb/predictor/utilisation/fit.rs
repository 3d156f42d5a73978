//! A predictor of utilisation made of measurements. In: measured rows of one who measured. Out: a file.

use std::path::Path;

use collo_predict::utilisation::{UtilisationPredictor, fit_utilisation};
use collo_predict::{Fitted, Mark};
use collo_store::replace_file;
use collo_text::Diagnostic;
use serde_json::{Value as Json, json};

use super::{in_full, profiled};
use crate::args::Evaluate;
use crate::verb::{Context, Ended};
use crate::{exit, output};

pub fn fit(context: &Context<'_>, asked: &Evaluate, to: &Path) -> Ended {
    let name = super::super::name_of(to)?;
    let all = profiled(context, asked)?;
    let [of_one] = &all[..] else {
        let list = all.iter().map(|one| format!("`{}`", one.who.name)).collect::<Vec<_>>().join(", ");
        let wrong = Diagnostic::new(format!("the rows are measured by {list}: a fit mixes no sources"));
        return Err(wrong.hint(format!("one predictor for each: `--measured-by \"{}\"` chooses one", all[0].who.name)).into());
    };
    let unfit = |why| Diagnostic::new("no predictor can be fitted on these rows").caused_by(why);
    let fitted = fit_utilisation(&of_one.rows).map_err(unfit)?;
    let mark = if of_one.who.simulated { Mark::Simulated } else { Mark::Own };
    let predictor = UtilisationPredictor::of(&fitted, name, of_one.conditions(), of_one.source(), mark);
    let path = context.folder()?.join(to);
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder)?;
    }
    replace_file(&path, predictor.to_text().as_bytes())?;
    if context.arguments.json {
        let value: Json = serde_json::to_value(&predictor).unwrap_or_default();
        output::json(&json!({"schema": 1, "file": path, "predictor": value, "not_fitted": fitted.without}));
    } else {
        output::result(in_full(&predictor));
        fitted.without.iter().for_each(|what| output::note(format!("not fitted: {what}")));
        output::note(format!("written: {}", path.display()));
    }
    Ok(exit::DONE)
}
