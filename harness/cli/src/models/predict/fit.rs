//! A predictor made of measurements. In: measured rows of one device. Out: a file.

use std::path::Path;

use collo_store::replace_file;
use collo_text::Diagnostic;
use serde_json::{Value as Json, json};

use super::shown::in_full;
use crate::args::Evaluate;
use crate::context::{Context, Ended};
use crate::{exit, output};

pub fn fit(context: &Context<'_>, asked: &Evaluate, to: &Path) -> Ended {
    let wrong = || Diagnostic::new(format!("`--to {}` is not a file NAME.json", to.display()));
    let name = to.file_stem().and_then(|stem| stem.to_str()).filter(|_| to.extension().is_some_and(|e| e == "json"));
    let name = name.ok_or_else(wrong)?.to_string();
    let quantity = super::quantity(context, asked)?;
    let (predictor, unfitted) = collo_laboratory::fit(context, quantity, &asked.request(), name)?;
    let path = context.folder()?.join(to);
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder)?;
    }
    replace_file(&path, predictor.to_text().as_bytes())?;
    if context.arguments.json {
        let value: Json = serde_json::to_value(&predictor).unwrap_or_default();
        output::json(&json!({"schema": 1, "file": path, "predictor": value, "not_fitted": unfitted}));
    } else {
        output::result(in_full(&predictor));
        unfitted.iter().for_each(|what| output::note(format!("not fitted: {what}")));
        output::note(format!("written: {}; next: collo predict show {}", path.display(), to.display()));
    }
    Ok(exit::DONE)
}
