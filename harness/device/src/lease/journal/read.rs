//! Reads journals: written by this user, complete, in the current version, and with valid contents only.
//!
//! In: the state folder. Out: journals, and those that cannot be trusted with the reason. None is ever ignored: the original
//! state of a GPU is recorded nowhere else.

use std::path::{Path, PathBuf};

use collo_text::{Diagnostic, quoting, trust};
use serde_json::Value;

use super::{Journal, SCHEMA, journal_file};

use crate::{mps, services, state_folder};
use collo_gpus::partition::Partition;

/// A journal has some hundred bytes; anything longer is not one.
const LONGEST: u64 = 1 << 20;
/// Compute modes, by NVML's names.
const MODES: [&str; 4] = ["Default", "ExclusiveThread", "Prohibited", "ExclusiveProcess"];
const LONGEST_NAME: usize = 4096;
/// No GPU has more instances or compute instances.
const MOST: usize = 64;

/// A journal that cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Unread {
    #[serde(rename = "journal")]
    pub path: PathBuf,
    pub why: String,
}

impl From<Unread> for Diagnostic {
    fn from(unread: Unread) -> Diagnostic {
        let path = unread.path.display();
        Diagnostic::new(format!("the journal {path} cannot be read, so the original state of that GPU is unknown"))
            .caused_by(&unread.why)
            .hint(format!(
                "a newer collo may have written it: run its `collo restore`. Otherwise `rm {path}`; the GPU's current state then \
                counts as found: `collo mig export` shows it, `collo mig apply LAYOUT` changes it"
            ))
            .of_machine()
    }
}

/// All journals, valid or not.
#[derive(Debug, Clone, Default)]
pub struct Written {
    pub journals: Vec<Journal>,
    pub unread: Vec<Unread>,
}

/// All journals; an error if the folder itself cannot be trusted.
pub fn written() -> Result<Written, Diagnostic> {
    let mut all = Written::default();
    let Some(folder) = state_folder::look()? else { return Ok(all) };
    let unseen = |e: std::io::Error| state_folder::FOLDER.unwritten(&e);
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(unseen)? {
        paths.push(entry.map_err(unseen)?.path());
    }
    paths.retain(|p| {
        p.extension().is_some_and(|e| e == "json") && p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("GPU-"))
    });
    paths.sort();
    for path in paths {
        match read(&path) {
            Ok(journal) => all.journals.push(journal),
            Err(why) => all.unread.push(Unread { path, why }),
        }
    }
    all.journals.sort_by(|a, b| a.label.cmp(&b.label));
    Ok(all)
}

/// GPUs that are not as found, with their journals.
pub fn pending_restores() -> Vec<Journal> {
    written().map(|all| all.journals).unwrap_or_default()
}

/// Whether this GPU has a journal, readable or not.
pub fn is_there(uuid: &str) -> Result<bool, Diagnostic> {
    let folder = state_folder::look()?;
    // A link that leads nowhere is something, too.
    Ok(folder.is_some_and(|folder| journal_file(&folder, uuid).symlink_metadata().is_ok()))
}

/// The journal of this GPU, if there is one.
pub(crate) fn of(uuid: &str) -> Result<Option<Journal>, Diagnostic> {
    let Some(folder) = state_folder::look()? else { return Ok(None) };
    let path = journal_file(&folder, uuid);
    if path.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Ok(None);
    }
    read(&path).map(Some).map_err(|why| Unread { path, why }.into())
}

/// Read one journal; the error says why it is not valid.
fn read(path: &Path) -> Result<Journal, String> {
    let text = trust::read_own(path, LONGEST).map_err(|e| e.to_string())?;
    let journal = parse(&text)?;
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    match journal.uuid == name {
        true => Ok(journal),
        false => Err(format!("it belongs to {}, unlike its name", shown(&journal.uuid))),
    }
}

fn parse(text: &str) -> Result<Journal, String> {
    if text.trim().is_empty() {
        return Err("it is empty".into());
    }
    let value: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
    let schema = value.get("schema").and_then(Value::as_u64);
    if schema != Some(u64::from(SCHEMA)) {
        let has = schema.map_or("none".into(), |schema| schema.to_string());
        return Err(format!("its schema is {has}, and this collo reads {SCHEMA}"));
    }
    let journal: Journal = serde_json::from_value(value.clone()).map_err(|e| e.to_string())?;
    // What is read must be what would be written: nothing that is not understood, nothing that is missing.
    let again = serde_json::to_value(&journal).map_err(|e| e.to_string())?;
    if let Some(field) = differs(&value, &again) {
        return Err(format!("`{field}` is missing or unknown"));
    }
    sane(&journal)?;
    Ok(journal)
}

/// The first field that differs between two values.
fn differs(a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let inside = |name: &String| match (a.get(name), b.get(name)) {
                (Some(a), Some(b)) => {
                    differs(a, b).map(|rest| if rest.is_empty() { name.clone() } else { format!("{name}.{rest}") })
                }
                _ => Some(name.clone()),
            };
            a.keys().chain(b.keys()).find_map(inside).map(|field| shown(&field))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a.iter().zip(b).find_map(|(a, b)| differs(a, b)),
        _ => (a != b).then(String::new),
    }
}

/// Check that it only asks for what collo does, and contains nothing that affects a terminal.
fn sane(journal: &Journal) -> Result<(), String> {
    let texts = [&journal.uuid, &journal.label, &journal.name, &journal.experiment, &journal.campaign, &journal.since_utc];
    if let Some(name) = texts.into_iter().find(|name| name.len() > LONGEST_NAME || name.chars().any(quoting::is_unseen)) {
        return Err(format!("invalid name {}", shown(name)));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if !journal.uuid.strip_prefix("GPU-").is_some_and(|rest| !rest.is_empty() && rest.chars().all(plain)) {
        return Err(format!("invalid GPU UUID {}", shown(&journal.uuid)));
    }
    if let Some(pipe) = journal.daemons.iter().find(|pipe| !mps::folder::is_named_so(pipe)) {
        return Err(format!("{} is not the folder of an MPS daemon of collo", shown(&pipe.display().to_string())));
    }
    if let Some(unit) = journal.services.iter().find(|unit| !services::is_unit(unit)) {
        return Err(format!("{} is not a service that collo stops", shown(unit)));
    }
    if let Some(mode) = journal.found_compute_mode.as_ref().filter(|mode| !MODES.contains(&mode.as_str())) {
        return Err(format!("invalid compute mode {}", shown(mode)));
    }
    if !is_cut(&journal.found) {
        return Err("its instances are impossible".into());
    }
    Ok(())
}

fn is_cut(found: &Partition) -> bool {
    let is_one = |s: &collo_gpus::partition::Slice| {
        let named = !s.profile.is_empty() && s.profile.len() < LONGEST_NAME && !s.profile.chars().any(quoting::is_unseen);
        named
            && s.start.is_none_or(|start| (start as usize) < MOST)
            && s.compute.len() <= MOST
            && s.compute.iter().all(|c| (*c as usize) < MOST)
    };
    found.instances.len() <= MOST && (found.mig || found.instances.is_empty()) && found.instances.iter().all(is_one)
}

/// Safe to print on a terminal.
fn shown(told: &str) -> String {
    quoting::line(told).chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ChangedSettings;

    fn journal() -> Journal {
        Journal {
            schema: SCHEMA,
            uuid: "GPU-1".into(),
            label: "GPU 0".into(),
            found: Partition::off(),
            found_compute_mode: Some("Default".into()),
            found_settings: Some(ChangedSettings::default()),
            daemons: vec![mps::folder::free()],
            services: vec!["nvsm".into()],
            ..Journal::default()
        }
    }

    fn text(change: impl FnOnce(&mut Value)) -> String {
        let mut value = serde_json::to_value(journal()).expect("JSON");
        change(&mut value);
        value.to_string()
    }

    #[test]
    fn a_journal_is_read_as_it_was_written() {
        let journal = journal();
        assert_eq!(parse(&serde_json::to_string_pretty(&journal).expect("JSON")), Ok(journal));
    }

    #[test]
    fn what_is_not_whole_or_not_understood_is_no_journal() {
        let why = |text: &str| parse(text).expect_err("refused");
        assert_eq!(why(""), "it is empty");
        assert!(why(&text(|_| {})[..60]).starts_with("it is not JSON"));
        assert_eq!(why(&text(|v| v["schema"] = 999.into())), "its schema is 999, and this collo reads 1");
        assert_eq!(
            why(&text(|v| drop(v.as_object_mut().map(|o| o.remove("schema"))))),
            "its schema is none, and this collo reads 1"
        );
        assert_eq!(why(&text(|v| v["clocks"] = 1.into())), "`clocks` is missing or unknown");
        assert_eq!(why(&text(|v| v["found"]["vgpu"] = true.into())), "`found.vgpu` is missing or unknown");
        for name in journal_fields() {
            let without = why(&text(|v| drop(v.as_object_mut().map(|o| o.remove(&name)))));
            assert!(without.contains(&name), "without `{name}`: {without}");
        }
    }

    fn journal_fields() -> Vec<String> {
        serde_json::to_value(journal()).expect("JSON").as_object().expect("fields").keys().cloned().collect()
    }

    #[test]
    fn a_journal_asks_for_nothing_that_collo_does_not_do() {
        let why = |change: &dyn Fn(&mut Value)| parse(&text(change)).expect_err("refused");
        assert_eq!(why(&|v| v["daemons"] = serde_json::json!(["/root"])), "/root is not the folder of an MPS daemon of collo");
        assert_eq!(why(&|v| v["services"] = serde_json::json!(["sshd"])), "sshd is not a service that collo stops");
        assert_eq!(why(&|v| v["found_compute_mode"] = "Any".into()), "invalid compute mode Any");
        assert_eq!(why(&|v| v["uuid"] = "../GPU".into()), "invalid GPU UUID ../GPU");
        assert_eq!(why(&|v| v["experiment"] = "x\u{1b}[2J".into()), "invalid name x\\x1b[2J");
        let slice = serde_json::json!({"profile": "1g.5gb", "start": 99, "compute": [1]});
        assert_eq!(why(&|v| v["found"] = serde_json::json!({"mig": true, "instances": [slice]})), "its instances are impossible");
    }
}
