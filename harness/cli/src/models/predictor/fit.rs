//! A predictor made of measurements. In: measured rows of one device. Out: a file.

use std::path::{Path, PathBuf};

use collo_predict::{FEWEST_TO_FIT, Factors, Fitted, TargetDevice};
use collo_store::replace_file;
use collo_text::Diagnostics;
use serde_json::json;

use crate::args::Evaluate;
use crate::context::{Context, Ended};
use crate::{exit, output};

pub fn fit(context: &Context<'_>, asked: &Evaluate, to: &Path) -> Ended {
    let name = super::name_of(to)?;
    let predictor = collo_laboratory::memory::fit(context, &asked.request(), name)?;
    let path = write(context, to, &predictor.to_text())?;
    if context.arguments.json {
        output::json(&json!({"schema": 1, "file": path, "predictor": serde_json::to_value(&predictor).unwrap_or_default()}));
    } else {
        output::result(super::in_full(&predictor));
        if predictor.factors != Factors::Fitted && predictor.conditions.device != TargetDevice::Cpu {
            let found = predictor.width.families;
            output::note(format!(
                "only the context is fitted: {found} architectures are too few for the factors, which take {FEWEST_TO_FIT}"
            ));
        }
        output::note(format!("written: {}; next: collo predict WORKLOAD --predictor {}", path.display(), to.display()));
    }
    Ok(exit::DONE)
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
