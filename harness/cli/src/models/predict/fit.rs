//! A predictor made of measurements. In: measured rows of one device. Out: a file.

use std::path::Path;

use collo_laboratory::predictor_text;
use collo_predict::AnyLaw;
use collo_store::replace_file;
use collo_text::Diagnostic;
use serde_json::json;

use crate::answer::{Answer, Answered};
use crate::args::Evaluate;
use crate::context::Context;

pub fn fit(context: &Context<'_>, asked: &Evaluate, to: &Path) -> Answered {
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
    let mut answer = Answer::of(json!({"file": path, "predictor": predictor, "not_fitted": unfitted}));
    answer.lines(predictor_text(&predictor));
    unfitted.iter().for_each(|what| answer.note(format!("not fitted: {what}")));
    let next = match predictor.law {
        AnyLaw::Memory(_) => format!("collo predict WORKLOAD --predictor {}", to.display()),
        _ => format!("collo predict show {}", to.display()),
    };
    answer.note(format!("written: {}; next: {next}", path.display()));
    Ok(answer)
}
