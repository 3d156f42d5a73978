//! A predictor of utilisation made of measurements. In: measured rows of one who measured. Out: a file.

use std::path::Path;

use collo_predict::Fitted;
use collo_store::replace_file;
use serde_json::{Value as Json, json};

use super::in_full;
use crate::args::Evaluate;
use crate::context::{Context, Ended};
use crate::{exit, output};

pub fn fit(context: &Context<'_>, asked: &Evaluate, to: &Path) -> Ended {
    let name = super::super::name_of(to)?;
    let (predictor, fitted) = collo_laboratory::utilisation::fit(context, &asked.request(), name)?;
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
