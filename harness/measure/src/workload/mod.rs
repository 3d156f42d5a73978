//! What can be trained: the folders of `workloads/`, each with its `workload.toml`.
//!
//! In: a folder. Out: workloads with their command, settings and forecast, and the mistakes in their files. It starts nothing.

mod command;
pub mod keys;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_store::MemberSpec;
use fs_err as fs;
use regex::Regex;
use serde_json::Value as Json;

use crate::fields::{self, Fields, Found, Value};
use crate::mistake::{Mistake, Mistakes, Source, quoted};
use crate::nearest::nearest;
pub use command::plain;

/// One workload: a training script with its settings.
#[derive(Debug, Clone)]
pub struct Workload {
    pub name: String,
    pub folder: PathBuf,
    pub description: Option<String>,
    /// Words with placeholders; see [`Workload::command_for`].
    pub command: Vec<String>,
    pub environment: Environment,
    pub prepare: Option<Vec<String>>,
    /// Defaults by name, `batch_size` among them.
    pub settings: BTreeMap<String, Json>,
    pub forecast: Forecast,
    pub epochs: Option<EpochsAdapter>,
}

/// Which Python runs a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// The one that collo provides, with torch.
    Torch,
    /// The system's `python3`.
    System,
}

/// What one member alone needs on one core, at the default settings; each is absent where nobody measured it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Forecast {
    pub set_up_s: Option<f64>,
    pub epoch_s: Option<f64>,
    pub memory_bytes: Option<u64>,
}

/// How to read the epochs of a foreign script from its output.
#[derive(Debug, Clone)]
pub struct EpochsAdapter {
    /// With the named groups `epoch` and `seconds`.
    pub pattern: Regex,
    pub items: Option<u64>,
}

impl Workload {
    /// Read `FOLDER/workload.toml`; the workload's name is the folder's.
    pub fn read(folder: &Path) -> Result<Workload, Mistakes> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = folder.join("workload.toml");
        if !path.is_file() {
            return Err(without_file(&name, folder).into());
        }
        let text = fs::read_to_string(&path)
            .map_err(|e| Mistake::new(format!("workload `{name}` cannot be read")).caused_by(e.to_string()))?;
        Workload::parse(&name, folder, &Source::file(crate::project::shown(&path), text))
    }

    fn parse(name: &str, folder: &Path, source: &Arc<Source>) -> Result<Workload, Mistakes> {
        let (fields, mut mistakes) = fields::read(source, &keys::WORKLOAD);
        if !is_name(name) {
            let hint = "a name is a letter, then letters, digits and `-`, at most 40, not ending in `x` and digits";
            mistakes.push(Mistake::new(format!("{} is not a name for a workload", quoted(name))).hint(hint));
        }
        let command = fields.texts("command").unwrap_or_default();
        if command.is_empty() && mistakes.is_empty() {
            let missing = Mistake::new(format!("`command` is missing in {}", source.name()));
            mistakes.push(missing.hint("it is the one line that is needed: `command = [\"python\", \"train.py\"]`"));
        }
        let settings: BTreeMap<String, Json> = fields.table("settings").map(settings).unwrap_or_default();
        check_placeholders(source, &fields, &settings, &mut mistakes);
        check_settings(source, &fields, &mut mistakes);
        let cpu = fields.table("forecast").and_then(|f| f.table("cpu"));
        let workload = Workload {
            name: name.to_string(),
            folder: folder.to_path_buf(),
            description: fields.text("description").map(str::to_string),
            command,
            environment: if fields.text("environment") == Some("system") { Environment::System } else { Environment::Torch },
            prepare: fields.texts("prepare").filter(|words| !words.is_empty()),
            settings,
            forecast: Forecast {
                set_up_s: cpu.and_then(|c| c.number("set_up_s")),
                epoch_s: cpu.and_then(|c| c.number("epoch_s")),
                memory_bytes: cpu.and_then(|c| c.whole("memory_bytes")),
            },
            epochs: fields.table("epochs").and_then(|table| adapter(source, table, &mut mistakes)),
        };
        mistakes.into_result(workload)
    }

    /// The batch size, where the workload has one.
    pub fn default_batch_size(&self) -> Option<u32> {
        self.settings.get("batch_size").and_then(Json::as_u64).and_then(|n| u32::try_from(n).ok())
    }

    /// The words to run for a member, placeholders filled in.
    pub fn command_for(&self, member: &MemberSpec) -> Result<Vec<String>, Mistake> {
        let mut values = self.settings.clone();
        values.extend(member.settings.clone());
        values.extend(member.batch_size.map(|b| ("batch_size".to_string(), b.into())));
        if let Some(unknown) = values.keys().find(|name| !self.settings.contains_key(*name)) {
            return Err(self.unknown_setting(unknown));
        }
        self.command
            .iter()
            .map(|word| {
                command::fill(word, &values)
                    .map_err(|name| Mistake::new(format!("`{{{name}}}` in the command of `{}` has no value", self.name)))
            })
            .collect()
    }

    /// A setting that this workload does not have.
    pub fn unknown_setting(&self, setting: &str) -> Mistake {
        let mistake = Mistake::new(format!("workload `{}` has no setting {}", self.name, quoted(setting)));
        let known: Vec<&str> = self.settings.keys().map(String::as_str).collect();
        match nearest(setting, known.iter().copied()) {
            Some(near) => mistake.note(format!("did you mean `{near}`?")),
            None if known.is_empty() => mistake.note("it has none"),
            None => mistake.note(format!("it has {}", fields::listed(&known).replace(" or ", " and "))),
        }
    }

    /// What is wrong with a value of a setting: it must be of its default's type.
    pub fn wrong_value(&self, setting: &str, value: &Json) -> Option<Mistake> {
        let Some(default) = self.settings.get(setting) else { return Some(self.unknown_setting(setting)) };
        if type_word(default) == type_word(value) || (default.is_f64() && value.is_number()) {
            return None;
        }
        let what = format!("`{setting}` of `{}` is {}, not {}", self.name, type_word(default), type_word(value));
        Some(Mistake::new(what).note(format!("its default is `{}`", plain(default))))
    }
}

fn type_word(value: &Json) -> &'static str {
    match value {
        Json::Bool(_) => "`true` or `false`",
        Json::Number(n) if n.is_f64() => "a fraction",
        Json::Number(_) => "a whole number",
        _ => "text",
    }
}

/// A letter, then letters, digits and `-`; not ending in `x` and digits, which would read as a count.
fn is_name(name: &str) -> bool {
    let counts = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && name.len() <= 40
        && !(counts.len() < name.len() && counts.ends_with('x'))
}

fn settings(table: &Fields) -> BTreeMap<String, Json> {
    let plain = |found: &Found| match &found.value {
        Value::Setting(value) => Some(value.clone()),
        _ => None,
    };
    table.in_order().into_iter().filter_map(|(name, _, found)| Some((name.to_string(), plain(found)?))).collect()
}

/// Every placeholder is a setting, and every setting has its placeholder: else it would change nothing.
fn check_placeholders(source: &Arc<Source>, fields: &Fields, settings: &BTreeMap<String, Json>, mistakes: &mut Mistakes) {
    let mut placed = Vec::new();
    for word in fields.list("command").unwrap_or_default() {
        for piece in command::pieces(word.text().unwrap_or_default()) {
            let command::Piece::Setting(name) = piece else { continue };
            placed.push(name.to_string());
            if !settings.contains_key(name) {
                let note = match nearest(name, settings.keys().map(String::as_str)) {
                    Some(near) => format!("did you mean `{{{near}}}`?"),
                    None => format!("add `{name} = …` to `[settings]`"),
                };
                mistakes.push(Mistake::new(format!("`{{{name}}}` is no setting")).at(source, word.span.clone()).note(note));
            }
        }
    }
    if fields.list("command").is_none() {
        return;
    }
    for (name, span, _) in fields.table("settings").map(Fields::in_order).unwrap_or_default() {
        if !placed.iter().any(|p| p == name) {
            let what = format!("setting `{name}` is not in `command`, so it would change nothing");
            mistakes.push(Mistake::new(what).at(source, span.clone()).note(format!("add `{{{name}}}` to `command`")));
        }
    }
}

fn check_settings(source: &Arc<Source>, fields: &Fields, mistakes: &mut Mistakes) {
    let Some(table) = fields.table("settings") else { return };
    for (name, span, found) in table.in_order() {
        if !is_setting_name(name) {
            let taken = "that is already an axis or a key of every experiment";
            let note = if TAKEN.contains(&name) { taken } else { "letters, digits and `_`, beginning with a letter" };
            mistakes
                .push(Mistake::new(format!("{} is not a name for a setting", quoted(name))).at(source, span.clone()).note(note));
        }
        // `b32` in a label is a batch size, so no other setting may look like one; and a batch is at least one item.
        let batch = matches!(&found.value, Value::Setting(v) if v.as_u64().is_some_and(|n| (1..=1_000_000).contains(&n)));
        if name == "batch_size" && !batch {
            let what = "`batch_size` is a whole number between 1 and 1000000";
            mistakes.push(Mistake::new(what).at(source, found.span.clone()));
        }
    }
}

/// Names that an axis of the matrix already has; a setting called so could never be swept.
const TAKEN: [&str; 9] = ["workload", "sharing", "degree", "cell", "count", "tail", "baseline", "members", "where"];

fn is_setting_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !TAKEN.contains(&name)
}

fn adapter(source: &Arc<Source>, table: &Fields, mistakes: &mut Mistakes) -> Option<EpochsAdapter> {
    let Some(found) = table.found("pattern") else {
        if table.key_span("pattern").is_none() {
            mistakes.push(
                Mistake::new("`pattern` is missing in `[epochs]`")
                    .at(source, header(table))
                    .note("a regular expression over output lines"),
            );
        }
        return None;
    };
    let at = |mistake: Mistake| mistake.at(source, found.span.clone());
    let pattern = match Regex::new(found.text()?) {
        Ok(pattern) => pattern,
        Err(wrong) => {
            let reason = wrong.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
            mistakes.push(at(Mistake::new(format!("`pattern` is not a regular expression: {reason}"))));
            return None;
        }
    };
    for group in ["epoch", "seconds"] {
        if !pattern.capture_names().flatten().any(|name| name == group) {
            mistakes.push(at(Mistake::new(format!("`pattern` has no group `{group}`")).note(format!("as in `(?P<{group}>…)`"))));
        }
    }
    Some(EpochsAdapter { pattern, items: table.whole("items") })
}

/// The name in a table's header, so that carets do not underline the whole table.
fn header(table: &Fields) -> Range<usize> {
    table.span.start..table.span.start + 1
}

fn without_file(name: &str, folder: &Path) -> Mistake {
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
    Mistake::new(format!("workload `{name}` has no `workload.toml`, {only}"))
        .hint(format!("it needs one line to begin: `command = [\"python\", \"{script}\"]`"))
}

/// All workloads of a project.
#[derive(Debug, Clone, Default)]
pub struct Workloads {
    folder: PathBuf,
    all: BTreeMap<String, Arc<Workload>>,
    broken: BTreeMap<String, Mistakes>,
}

impl Workloads {
    /// Read every folder that has a `workload.toml`. A broken one is kept with its mistakes: it matters to who asks for it.
    pub fn load(folder: &Path) -> Result<Workloads, Mistakes> {
        let unreadable = |e: std::io::Error| Mistake::new("the workloads cannot be read").caused_by(e.to_string());
        let mut workloads = Workloads { folder: folder.to_path_buf(), ..Workloads::default() };
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !path.join("workload.toml").is_file() {
                continue;
            }
            match Workload::read(&path) {
                Ok(workload) => drop(workloads.all.insert(name, Arc::new(workload))),
                Err(mistakes) => drop(workloads.broken.insert(name, mistakes)),
            }
        }
        Ok(workloads)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Workload>> {
        self.all.values()
    }

    /// Folders whose `workload.toml` is wrong, with what is wrong.
    pub fn broken(&self) -> &BTreeMap<String, Mistakes> {
        &self.broken
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Workload>> {
        self.all.get(name)
    }

    /// The workload of this name, or what is wrong: unknown, broken, or without its file.
    pub fn find(&self, name: &str) -> Result<&Arc<Workload>, Mistakes> {
        if let Some(workload) = self.all.get(name) {
            return Ok(workload);
        }
        if let Some(mistakes) = self.broken.get(name) {
            return Err(mistakes.clone());
        }
        let folder = self.folder.join(name);
        if is_name(name) && folder.is_dir() {
            return Err(without_file(name, &folder).into());
        }
        let all = "all: `collo list workloads`";
        let note = match nearest(name, self.all.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`? All: `collo list workloads`"),
            None => all.into(),
        };
        Err(Mistake::new(format!("unknown workload {}", quoted(name))).note(note).into())
    }
}

#[cfg(test)]
mod tests;
