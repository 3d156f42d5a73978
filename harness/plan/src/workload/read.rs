//! Reading a `workload.toml`: one workload, and one more for each of its presets.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use collo_text::{Diagnostic, Diagnostics, Source, fields, nearest, quoted, written};
use fs_err as fs;
use regex::Regex;
use serde_json::Value as Json;

use super::keys::WorkloadPreset;
use super::{EpochsAdapter, Workload, WorkloadPython, adapters, command, recipes};
use collo_text::fields::{Fields, Located, Value};

/// Read `FOLDER/workload.toml`: the workload, whose name is the folder's, then its presets.
pub fn read(folder: &Path) -> Result<Vec<Workload>, Diagnostics> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let path = folder.join("workload.toml");
    if !path.is_file() {
        return Err(without_file(&name, folder).into());
    }
    let text = collo_text::read_small_text(&path, fields::LARGEST)
        .map_err(|e| Diagnostic::new(format!("workload `{name}` cannot be read")).caused_by(e.to_string()))?;
    parse(&name, folder, &Source::file(collo_text::shown(&path), text))
}

/// Parse a workload, then its presets.
pub fn parse(name: &str, folder: &Path, source: &Arc<Source>) -> Result<Vec<Workload>, Diagnostics> {
    let (fields, mut mistakes) = fields::read(source, Workload::KEYS);
    if !is_name(name) {
        mistakes.push(Diagnostic::new(format!("invalid workload name {}", quoted(name))).hint(NAME_RULE));
    }
    for key in ["command", "prepare"] {
        if let Some(found) = fields.list(key).and_then(|words| words.first()).filter(|word| word.text() == Some("")) {
            let what = Diagnostic::new(format!("`{key}` begins with an empty word, not a program"));
            mistakes.push(what.at(source, found.span.clone()).note("as in `[\"python\", \"train.py\"]`"));
        }
    }
    let mut workload = Workload { name: name.to_string(), folder: folder.to_path_buf(), ..Workload::from_fields(&fields) };
    if workload.command.is_empty() && mistakes.is_empty() {
        let missing = Diagnostic::new(format!("`command` is missing in {}", source.name()));
        mistakes.push(missing.hint("the only required line: `command = [\"python\", \"train.py\"]`"));
    }
    check_placeholders(source, &fields, &workload.settings, &mut mistakes);
    check_settings(source, &fields, &mut mistakes);
    workload.environment = environment(source, &fields, folder, &mut mistakes);
    workload.packages = packages(source, &fields, folder, &mut mistakes);
    workload.prepare = fields.get::<Option<Vec<String>>>("prepare").filter(|words| !words.is_empty());
    workload.outputs = outputs(source, &fields, &mut mistakes);
    check_variables(source, &fields, &mut mistakes);
    workload.epochs = fields.table("epochs").and_then(|table| adapter(source, table, &mut mistakes));
    recipes::read(&mut workload, source, &fields, &mut mistakes);
    let presets = fields.table("presets").map(Fields::in_order).unwrap_or_default();
    let presets: Vec<Workload> = presets
        .into_iter()
        .filter_map(|(name, span, found)| match &found.value {
            Value::Table(table) => Some(preset(&workload, name, span, table, source, &mut mistakes)),
            _ => None,
        })
        .collect();
    mistakes.into_result([workload].into_iter().chain(presets).collect())
}

const NAME_RULE: &str = "a name is a letter, then letters, digits and `-`, at most 40, not ending in `x` and digits";

/// A letter, then letters, digits and `-`; not ending in `x` and digits, which would read as a count.
pub fn is_name(name: &str) -> bool {
    let counts = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && name.len() <= 40
        && !(counts.len() < name.len() && counts.ends_with('x'))
}

fn preset(
    base: &Workload,
    name: &str,
    span: &Range<usize>,
    table: &Fields,
    source: &Arc<Source>,
    mistakes: &mut Diagnostics,
) -> Workload {
    if !is_name(name) {
        let what = Diagnostic::new(format!("invalid workload name {}", quoted(name)));
        mistakes.push(what.at(source, span.clone()).note(NAME_RULE));
    }
    let WorkloadPreset { description, requires, forecast } = WorkloadPreset::from_fields(table);
    let mut workload = Workload {
        name: name.to_string(),
        preset_of: Some(base.name.clone()),
        forecast,
        requires: requires.or(base.requires),
        ..base.clone()
    };
    let own = given(base, table.table("settings"), source, mistakes);
    workload.cook(own);
    let differs = workload.settings.iter().filter(|(name, value)| base.settings.get(*name) != Some(*value));
    let words: Vec<String> = differs.map(|(name, value)| format!("{name}={}", command::plain(value))).collect();
    workload.description = description.or_else(|| Some(format!("{} with {}", base.name, words.join(" "))));
    workload
}

/// The settings of a preset or a recipe, each of its default's type.
pub fn given(
    base: &Workload,
    table: Option<&Fields>,
    source: &Arc<Source>,
    mistakes: &mut Diagnostics,
) -> BTreeMap<String, Json> {
    let mut given = BTreeMap::new();
    for (setting, span, found) in table.map(Fields::in_order).unwrap_or_default() {
        let Value::Setting(value) = &found.value else { continue };
        match base.wrong_value(setting, value) {
            Some(wrong) => {
                let place = if base.settings.contains_key(setting) { found.span.clone() } else { span.clone() };
                mistakes.push(wrong.at(source, place));
            }
            None => {
                check_batch_size(source, setting, found, mistakes);
                given.insert(setting.to_string(), base.as_default(setting, value.clone()));
            }
        }
    }
    given
}

fn environment(source: &Arc<Source>, fields: &Fields, folder: &Path, mistakes: &mut Diagnostics) -> WorkloadPython {
    let Some(found) = fields.found("environment") else { return WorkloadPython::Torch };
    match found.text().unwrap_or("torch") {
        "torch" => WorkloadPython::Torch,
        "system" => WorkloadPython::System,
        path if path.contains('/') => WorkloadPython::Own(written(folder, path)),
        other => {
            let note = match nearest(other, ["torch", "system"]) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`torch`, `system`, or a path with a `/`".into(),
            };
            let what = Diagnostic::new(format!("unknown environment {}", quoted(other)));
            mistakes.push(what.at(source, found.span.clone()).note(note));
            WorkloadPython::Torch
        }
    }
}

fn packages(source: &Arc<Source>, fields: &Fields, folder: &Path, mistakes: &mut Diagnostics) -> Option<PathBuf> {
    let file = fields.found("packages")?;
    if fields.text("environment").is_some_and(|e| e != "torch") {
        let what = Diagnostic::new("`packages` extend the environment that collo provides").at(source, file.span.clone());
        mistakes.push(what.note("leave out `environment`, or install them in your own"));
    }
    file.text().map(|file| written(folder, file))
}

fn outputs(source: &Arc<Source>, fields: &Fields, mistakes: &mut Diagnostics) -> Vec<String> {
    let mut outputs = Vec::new();
    for found in fields.list("outputs").unwrap_or_default() {
        let name = found.text().unwrap_or_default();
        if !Path::new(name).components().all(|c| matches!(c, Component::Normal(_))) || name.is_empty() {
            let what = Diagnostic::new(format!("{} is not a name in the workload's folder", quoted(name)));
            mistakes.push(what.at(source, found.span.clone()).note("as in `outputs = [\"results.json\", \"logs\"]`"));
            continue;
        }
        outputs.push(name.trim_end_matches('/').to_string());
    }
    outputs
}

/// Variables by which the harness itself passes device and training parameters to a member.
fn is_ours(variable: &str) -> bool {
    const OURS: [&str; 3] = ["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PYTHONPATH"];
    OURS.contains(&variable) || ["COLLO_", "CUDA_MPS_"].iter().any(|p| variable.starts_with(p))
}

fn check_variables(source: &Arc<Source>, fields: &Fields, mistakes: &mut Diagnostics) {
    for (name, span, _) in fields.table("variables").map(Fields::in_order).unwrap_or_default() {
        if name.is_empty() || name.contains('=') {
            let what = Diagnostic::new(format!("invalid variable name {}", quoted(name))).at(source, span.clone());
            mistakes.push(what.note("as in `OMP_PROC_BIND = \"close\"`"));
        }
        if is_ours(name) {
            let what = Diagnostic::new(format!("the variable `{name}` is collo's own")).at(source, span.clone());
            mistakes.push(what.note("it selects a member's device"));
        }
    }
}

/// Every placeholder is a setting, and every setting has its placeholder: otherwise it would have no effect.
fn check_placeholders(source: &Arc<Source>, fields: &Fields, settings: &BTreeMap<String, Json>, mistakes: &mut Diagnostics) {
    let mut placed = Vec::new();
    let list = |key: &str| fields.list(key).unwrap_or_default().iter().collect::<Vec<_>>();
    let variables = fields.table("variables").map(Fields::in_order).unwrap_or_default();
    let variables = variables.into_iter().map(|(_, _, found)| found);
    for found in list("command").into_iter().chain(list("prepare")).chain(variables) {
        let word = found.text().unwrap_or_default();
        if word == command::ALL_OTHERS {
            placed.extend(settings.keys().map(String::as_str));
            continue;
        }
        for piece in command::pieces(word) {
            let command::Piece::Setting(name) = piece else { continue };
            placed.push(name);
            if !settings.contains_key(name) {
                let note = match nearest(name, settings.keys().map(String::as_str)) {
                    Some(near) => format!("did you mean `{{{near}}}`?"),
                    None => format!("add `{name} = …` to `[settings]`"),
                };
                mistakes
                    .push(Diagnostic::new(format!("`{{{name}}}` is not a setting")).at(source, found.span.clone()).note(note));
            }
        }
    }
    if fields.list("command").is_none() {
        return;
    }
    for (name, span, _) in fields.table("settings").map(Fields::in_order).unwrap_or_default() {
        if !placed.contains(&name) {
            let what = format!("setting `{name}` is not in `command`, so it would have no effect");
            mistakes.push(Diagnostic::new(what).at(source, span.clone()).note(format!("add `{{{name}}}` to `command`")));
        }
    }
}

fn check_settings(source: &Arc<Source>, fields: &Fields, mistakes: &mut Diagnostics) {
    let Some(table) = fields.table("settings") else { return };
    for (name, span, found) in table.in_order() {
        if !is_setting_name(name) {
            let taken = "that is already an axis or a key of every experiment";
            let note = if TAKEN.contains(&name) { taken } else { "letters, digits and `_`, beginning with a letter" };
            mistakes.push(Diagnostic::new(format!("invalid setting name {}", quoted(name))).at(source, span.clone()).note(note));
        }
        check_batch_size(source, name, found, mistakes);
    }
}

/// `b32` in a label is a batch size, so no other setting may look like one; and a batch is at least one item.
fn check_batch_size(source: &Arc<Source>, name: &str, found: &Located, mistakes: &mut Diagnostics) {
    let batch = matches!(&found.value, Value::Setting(v) if v.as_u64().is_some_and(|n| (1..=1_000_000).contains(&n)));
    if name == "batch_size" && !batch {
        let what = "`batch_size` is a whole number between 1 and 1000000";
        mistakes.push(Diagnostic::new(what).at(source, found.span.clone()));
    }
}

/// Names that an axis of the matrix already has; a setting called so could never be swept.
const TAKEN: [&str; 11] =
    ["workload", "sharing", "degree", "cell", "count", "after_measured", "observe", "baseline", "members", "where", "settings"];

/// A letter, then letters, digits and `_`; not the name of an axis or a key.
pub fn is_setting_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !TAKEN.contains(&name)
}

fn adapter(source: &Arc<Source>, table: &Fields, mistakes: &mut Diagnostics) -> Option<EpochsAdapter> {
    let items: Option<u64> = table.get("items");
    if let Some(preset) = table.found("preset") {
        if let Some(span) = table.key_span("pattern") {
            let both = Diagnostic::new("both `pattern` and `preset` are given").at(source, span);
            mistakes.push(both.note("a preset is a pattern: leave one out"));
        }
        let known = preset.text().and_then(adapters::preset)?;
        return Some(EpochsAdapter { pattern: Regex::new(known.pattern).ok()?, preset: Some(known), items });
    }
    let Some(found) = table.found("pattern") else {
        // A value that was wrong is no longer there, and was said.
        if mistakes.is_empty() {
            mistakes.push(
                Diagnostic::new("`pattern` is missing in `[epochs]`")
                    .at(source, header(table))
                    .note("a regular expression over output lines, or a `preset`"),
            );
        }
        return None;
    };
    let at = |mistake: Diagnostic| mistake.at(source, found.span.clone());
    let pattern = match Regex::new(found.text()?) {
        Ok(pattern) => pattern,
        Err(wrong) => {
            let reason = wrong.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
            mistakes.push(at(Diagnostic::new(format!("`pattern` is not a regular expression: {reason}"))));
            return None;
        }
    };
    let groups: Vec<&str> = pattern.capture_names().flatten().collect();
    // Groups of other names are the user's own, unless they are misspelt.
    for group in groups.iter().filter(|group| !adapters::GROUPS.contains(group)) {
        if let Some(near) = nearest(group, adapters::GROUPS) {
            let what = Diagnostic::new(format!("the group {} of `pattern` means nothing", quoted(group)));
            mistakes.push(at(what.note(format!("did you mean `{near}`?"))));
        }
    }
    if groups.contains(&"epoch") && groups.contains(&"step") {
        let both = Diagnostic::new("`pattern` has both a group `epoch` and a group `step`");
        mistakes.push(at(both.note("the one that is the unit of a line: leave out the other")));
    }
    Some(EpochsAdapter { pattern, preset: None, items })
}

/// The name in a table's header, so that carets do not underline the whole table.
fn header(table: &Fields) -> Range<usize> {
    table.span.start..table.span.start + 1
}

pub fn without_file(name: &str, folder: &Path) -> Diagnostic {
    let mut files: Vec<String> = fs::read_dir(folder)
        .map(|entries| {
            entries.flatten().filter(|e| e.path().is_file()).map(|e| e.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    files.sort_by_key(|f| (f != "train.py", f.clone()));
    let script = files.iter().find(|f| f.ends_with(".py")).map_or("train.py", |f| f).to_string();
    files.truncate(5);
    let only = match files.split_last() {
        None => "it is empty".to_string(),
        Some((last, [])) => format!("only {last}"),
        Some((last, before)) => format!("only {} and {last}", before.join(", ")),
    };
    Diagnostic::new(format!("workload `{name}` has no `workload.toml`, {only}"))
        .hint(format!("it needs one line to start: `command = [\"python\", \"{script}\"]`"))
}
