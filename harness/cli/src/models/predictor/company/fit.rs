//! A predictor of company made of measured groups. In: groups of one device. Out: a file.

use std::path::Path;

use collo_laboratory::company;
use collo_predict::Fitted;
use serde_json::json;

use crate::args::Evaluate;
use crate::context::{Context, Ended};
use crate::{exit, output};

pub fn fit(context: &Context<'_>, asked: &Evaluate, to: &Path) -> Ended {
    let name = super::super::name_of(to)?;
    let groups = company::read(context, &asked.rows)?;
    super::say(&groups);
    let predictor = company::fit(context, &groups, asked.measured_by.as_deref(), name)?;
    let path = super::super::fit::write(context, to, &predictor.to_text())?;
    if context.arguments.json {
        output::json(&json!({"schema": 1, "file": path, "predictor": serde_json::to_value(&predictor).unwrap_or_default()}));
    } else {
        output::result(super::in_full(&predictor));
        output::note(format!("written: {}; next: collo predictor show {}", path.display(), to.display()));
    }
    Ok(exit::DONE)
}
