//! The path of an experiment: `NAME` is `experiments/NAME.toml`; with a `/` or a final `.toml` it is a path.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use collo_text::quoting::line;
use collo_text::{Diagnostic, Diagnostics, Source, fields, nearest, quoted, shown};
use fs_err as fs;

use super::Experiment;
use super::layers::{Overrides, includes_of};
use crate::project::Project;
use crate::workload::Workloads;

/// Endings of scripts, and the programs that run them.
const SCRIPTS: [(&str, &str); 2] = [(".py", "python"), (".sh", "sh")];

/// Whether a word names a script, which is no experiment.
pub fn is_script(typed: &str) -> bool {
    SCRIPTS.iter().any(|(ending, _)| typed.ends_with(ending))
}

/// The name in a folder of experiments that is nearest to a mistyped one.
fn near(folder: &Path, typed: &str) -> Option<String> {
    let stems: Vec<String> =
        files(folder).ok()?.iter().filter_map(|f| Some(f.file_stem()?.to_string_lossy().into_owned())).collect();
    nearest(typed, stems.iter().map(String::as_str)).map(String::from)
}

fn hint(near: Option<String>) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`? All: `collo list experiments`"),
        None => "all: `collo list experiments`".into(),
    }
}

/// The file of an experiment, as a person names it.
pub fn locate(project: &Project, typed: &str) -> Result<PathBuf, Diagnostics> {
    if let Some((_, program)) = SCRIPTS.iter().find(|(ending, _)| typed.ends_with(ending)) {
        return Err(Diagnostic::new(format!("{} is a script, not an experiment", quoted(typed)))
            .hint(format!("`collo try '{program} {}'` measures it; all experiments: `collo list experiments`", line(typed)))
            .into());
    }
    if typed.contains('/') || typed.ends_with(".toml") {
        let path = PathBuf::from(typed);
        return if path.is_file() {
            Ok(path)
        } else {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let meant = near(&project.experiments(), stem);
            let mistake = Diagnostic::new(format!("no experiment at {}", quoted(typed)));
            Err(mistake.hint(hint(meant)).into())
        };
    }
    let folder = project.experiments();
    let files = files(&folder)?;
    let claims: Vec<(&PathBuf, String)> = files.iter().filter_map(|file| Some((file, claim(file, typed)?))).collect();
    if let [(first, a), (second, b), ..] = &claims[..] {
        let at_home = folder.join(format!("{typed}.toml"));
        let other = if **first == at_home { second } else { first };
        return Err(Diagnostic::new(format!("two experiments are called `{typed}`: {a}, {b}"))
            .hint(format!("rename one, or give the path: `collo run {}`", shown(other)))
            .into());
    }
    let path = folder.join(format!("{typed}.toml"));
    if path.is_file() {
        return Ok(path);
    }
    if let [(only, _)] = &claims[..] {
        return Ok((*only).clone());
    }
    let mistake = Diagnostic::new(format!("unknown experiment {}", quoted(typed)));
    Err(mistake.hint(hint(near(&folder, typed))).into())
}

/// The file of an experiment, and its contents.
pub type ExperimentFile = (PathBuf, Result<Experiment, Diagnostics>);

/// Every experiment of a project, or the errors of its file. A file that others include is none if it cannot be one by itself.
pub fn all(project: &Project, workloads: &Workloads, overrides: &Overrides) -> Result<Vec<ExperimentFile>, Diagnostics> {
    let files = files(&project.experiments())?;
    let includes = |file: &PathBuf| {
        let text = collo_text::read_small_text(file, fields::LARGEST).unwrap_or_default();
        includes_of(file, &Source::file(shown(file), text))
    };
    let included: BTreeSet<PathBuf> = files.iter().flat_map(includes).collect();
    let is_part = |file: &PathBuf| file.canonicalize().is_ok_and(|file| included.contains(&file));
    let mut all: Vec<ExperimentFile> =
        files.into_iter().map(|path| (path.clone(), Experiment::read(&path, workloads, overrides))).collect();
    all.retain(|(path, experiment)| experiment.is_ok() || !is_part(path));
    Ok(all)
}

/// The `.toml` files of a folder and of the folders in it, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Diagnostics> {
    let unreadable = |e: std::io::Error| Diagnostic::new("the experiments cannot be read").caused_by(e.to_string());
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|e| e == "toml") {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The tags in a file, however wrong the rest of it is; `None` if it is not even TOML.
pub fn tags_of(file: &Path) -> Option<Vec<String>> {
    let text = collo_text::read_small_text(file, fields::LARGEST).ok()?;
    toml::from_str::<toml::Table>(&text).ok()?;
    let (fields, _) = fields::read(&Source::file(shown(file), text), Experiment::KEYS);
    Some(fields.get("tags"))
}

/// `experiments/old/n2.toml:2`, if a file declares this experiment name.
fn claim(file: &Path, name: &str) -> Option<String> {
    let text = collo_text::read_small_text(file, fields::LARGEST).ok()?;
    let source = Source::file(shown(file), text);
    let (fields, _) = fields::read(&source, Experiment::KEYS);
    if fields.text("name") == Some(name) {
        return Some(source.line_of(fields.key_span("name")?.start));
    }
    let by_file = fields.text("name").is_none() && file.file_stem().is_some_and(|stem| stem == name);
    by_file.then(|| source.name().to_string())
}
