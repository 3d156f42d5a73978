//! What a row of a table was trained with. In: its fields. Out: a member of a workload, or a model by name, and its family.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_plan::cell::Member;
use collo_plan::workload::{Workload, Workloads};
use collo_prepare::describe::NamedModel;
use collo_text::{Diagnostic, nearest, quoted};
use serde_json::Value as Json;

use crate::lines::Row;
use crate::measurements::{Subject, Trained};

/// The subject of a row, and the batch size that it has by default.
pub fn find(row: &Row<'_>, workloads: &Workloads) -> Result<(Subject, Option<u32>), Diagnostic> {
    let (workload, model) = (row.get("workload"), row.get("model"));
    match (workload.is_empty(), model.is_empty()) {
        (false, true) => member(row, workload, workloads),
        (true, false) => Ok((named(row, model)?, None)),
        (true, true) => Err(row.wrong("workload", "the row names neither a `workload` nor a `model`")),
        (false, false) => Err(row.wrong("model", "the row names both a `workload` and a `model`")),
    }
}

fn member(row: &Row<'_>, name: &str, workloads: &Workloads) -> Result<(Subject, Option<u32>), Diagnostic> {
    let workload = match workloads.get(name) {
        Some(workload) => workload,
        None => {
            let known: Vec<&str> = workloads.iter().map(|w| w.name.as_str()).collect();
            let wrong = row.wrong("workload", format!("no workload is called {}", quoted(name)));
            return Err(match nearest(name, known) {
                Some(near) => wrong.note(format!("did you mean `{near}`?")),
                None => wrong.hint("`collo workload list`"),
            });
        }
    };
    let mut given = Vec::new();
    if row.get("settings").starts_with('{') {
        let wrong = |e: serde_json::Error| row.wrong("settings", "`settings` is no JSON object").caused_by(e);
        let settings: BTreeMap<String, Json> = serde_json::from_str(row.get("settings")).map_err(wrong)?;
        return finished(row, workload, settings.into_iter().collect());
    }
    for text in row.get("settings").split(';').map(str::trim).filter(|text| !text.is_empty()) {
        let Some((setting, value)) = text.split_once('=') else {
            return Err(row
                .wrong("settings", format!("{} is not NAME=VALUE", quoted(text)))
                .hint("several are separated by `;`"));
        };
        given.push((setting.trim().to_string(), value_of(workload, setting.trim(), value.trim())));
    }
    finished(row, workload, given)
}

/// The member with these settings.
fn finished(row: &Row<'_>, workload: &Arc<Workload>, given: Vec<(String, Json)>) -> Result<(Subject, Option<u32>), Diagnostic> {
    let wrong = |e: Diagnostic| row.wrong("settings", e.what().to_string());
    let member =
        Arc::new(Member::new(workload, given.iter().map(|(setting, value)| (setting.as_str(), value.clone()))).map_err(wrong)?);
    let model = member.settings().get("model").and_then(Json::as_str).unwrap_or(&workload.name);
    let (family, family_is_given) = family_of(row, model);
    let batch = member.batch_size();
    Ok((Subject { what: Trained::Member(member), family, family_is_given }, batch))
}

/// A value of the type that a workload expects.
pub fn value_of(workload: &Workload, setting: &str, text: &str) -> Json {
    match workload.settings.get(setting) {
        Some(default) if !default.is_string() => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        _ => text.into(),
    }
}

fn named(row: &Row<'_>, model: &str) -> Result<Subject, Diagnostic> {
    let known =
        model.split_once(':').is_some_and(|(library, name)| ["timm", "torchvision"].contains(&library) && !name.is_empty());
    if !known {
        let what = format!("{} is not a model by name", quoted(model));
        return Err(row.wrong("model", what).hint("as in `timm:resnet50` or `torchvision:vgg16`"));
    }
    let text = row.get("input");
    let input: Option<Vec<u32>> = text.split('x').map(|n| n.parse().ok().filter(|n| *n > 0)).collect();
    if input.is_none() && !text.is_empty() {
        let wrong = row.wrong("input", format!("`input` is {}, not the shape of an item", quoted(text)));
        return Err(wrong.hint("as in `3x224x224`; without one, the library's own for the model"));
    }
    let or = |column: &str, known: &[&str], default: &str| match row.get(column) {
        "" => Ok(default.to_string()),
        word if known.contains(&word) => Ok(word.to_string()),
        other => {
            let wrong = row.wrong(column, format!("`{column}` is {}", quoted(other)));
            Err(wrong.hint(format!("one of {}", known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "))))
        }
    };
    let model = NamedModel {
        model: model.into(),
        input,
        classes: row.number("classes")?.unwrap_or(1000),
        optimizer: or("optimizer", &NamedModel::OPTIMIZERS, "adam")?,
        precision: or("precision", &NamedModel::PRECISIONS, "torch")?,
    };
    let (family, family_is_given) = family_of(row, &model.model);
    Ok(Subject { what: Trained::Model(model), family, family_is_given })
}

/// As written, and that it is; else the letters that a model's name begins with: `resnet` of `timm:resnet50`.
pub fn family_of(row: &Row<'_>, model: &str) -> (String, bool) {
    let name = model.rsplit(':').next().unwrap_or(model);
    let letters: String = name.chars().take_while(char::is_ascii_alphabetic).collect();
    let written = row.get("family");
    if !written.is_empty() {
        (written.into(), true)
    } else if letters.is_empty() {
        (name.into(), false)
    } else {
        (letters.to_lowercase(), false)
    }
}
