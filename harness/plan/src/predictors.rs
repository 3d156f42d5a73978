//! Predictors by name or path: those of the project's `predictors/`, and the one that collo brings.
//!
//! In: a project. Out: predictors, or what is wrong with a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use collo_predict::{
    AnyLaw, AnyPredictor, CompanyPredictor, MemoryPredictor, PredictorFile, PredictorLaw, Target, TargetDevice,
    UtilisationPredictor,
};
use collo_text::{Diagnostic, Diagnostics, Source, nearest, quoted, shown};

use crate::facts::{DeviceFacts, DeviceKind};
use crate::project::Project;

/// A file of a predictor is small.
const LARGEST: u64 = 1 << 20;
/// The predictor that every collo brings, fitted on published figures.
pub const SHIPPED: &str = "published-a100";
/// That of utilisation, fitted on published profiles.
pub const SHIPPED_UTILISATION: &str = "published-a100-utilisation";
/// Those that every collo brings, by name and text.
const BROUGHT: [(&str, &str); 3] = [
    (SHIPPED, include_str!("../../../predictors/published-a100.json")),
    (SHIPPED_UTILISATION, include_str!("../../../predictors/published-a100-utilisation.json")),
    ("published-a100-company", include_str!("../../../predictors/published-a100-company.json")),
];

/// The text of every predictor by its name, or why it cannot be read. One of the project takes the place of a shipped one.
fn sources(project: &Project) -> Result<BTreeMap<String, Result<Arc<Source>, Diagnostic>>, Diagnostics> {
    let brought = |(name, text): (&str, &str)| (name.to_string(), Ok(Source::file(format!("predictors/{name}.json"), text)));
    let mut found: BTreeMap<String, Result<Arc<Source>, Diagnostic>> = BROUGHT.into_iter().map(brought).collect();
    let folder = project.predictors();
    if !folder.is_dir() {
        return Ok(found);
    }
    for entry in fs_err::read_dir(&folder)?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "json")
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
        {
            found.insert(name.to_string(), source(&path));
        }
    }
    Ok(found)
}

/// Every predictor by its name, or what is wrong with its file.
pub fn all(project: &Project) -> Result<BTreeMap<String, Result<AnyPredictor, Diagnostic>>, Diagnostics> {
    let read = |source: Result<Arc<Source>, Diagnostic>| AnyPredictor::read_any(&source?);
    Ok(sources(project)?.into_iter().map(|(name, source)| (name, read(source))).collect())
}

/// Those that can be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Predictors {
    pub memory: Vec<MemoryPredictor>,
    pub utilisation: Vec<UtilisationPredictor>,
    pub company: Vec<CompanyPredictor>,
}

/// Those that can be read, by the names that they are found by; and what is wrong with the others.
pub fn readable(project: &Project) -> Result<(Predictors, Vec<Diagnostic>), Diagnostics> {
    let (mut right, mut wrong) = (Predictors::default(), Vec::new());
    for (name, predictor) in all(project)? {
        match predictor.map(|predictor| AnyPredictor { name, ..predictor }) {
            Ok(predictor) => match predictor.law.clone() {
                AnyLaw::Memory(law) => right.memory.push(predictor.with(law)),
                AnyLaw::Utilisation(law) => right.utilisation.push(predictor.with(law)),
                AnyLaw::Company(modes) => right.company.push(predictor.with(*modes)),
            },
            Err(why) => wrong.push(why),
        }
    }
    Ok((right, wrong))
}

/// What a predictor is chosen for on a device; without a torch it is asked whether there is any.
pub fn target(facts: &DeviceFacts, torch: Option<String>) -> Target {
    let gpu = facts.gpu().filter(|_| facts.kind == DeviceKind::Gpu);
    Target {
        device: match facts.kind {
            DeviceKind::Cpu => TargetDevice::Cpu,
            DeviceKind::Gpu => TargetDevice::Gpu,
        },
        gpu: gpu.map(|gpu| gpu.name.clone()),
        architecture: gpu.and_then(|gpu| gpu.architecture.clone()),
        torch,
        simulated: gpu.is_some_and(|gpu| gpu.simulated),
    }
}

/// The predictor of a name, or of a path.
pub fn find(project: &Project, folder: &Path, asked: &str) -> Result<AnyPredictor, Diagnostics> {
    Ok(AnyPredictor::read_any(&find_source(project, folder, asked)?)?)
}

/// The predictor of a name, or of a path, whose law is wanted.
pub fn find_of<L: PredictorLaw>(project: &Project, folder: &Path, asked: &str) -> Result<PredictorFile<L>, Diagnostics> {
    Ok(PredictorFile::read(&find_source(project, folder, asked)?)?)
}

fn find_source(project: &Project, folder: &Path, asked: &str) -> Result<Arc<Source>, Diagnostics> {
    if asked.contains('/') || asked.ends_with(".json") {
        return Ok(source(&folder.join(asked))?);
    }
    let mut all = sources(project)?;
    if let Some(found) = all.remove(asked) {
        return Ok(found?);
    }
    let wrong = Diagnostic::new(format!("no predictor is called {}", quoted(asked)));
    Err(match nearest(asked, all.keys().map(String::as_str)) {
        Some(near) => wrong.note(format!("did you mean `{near}`?")),
        None => wrong.hint("`collo predict list`; a file is named by its path"),
    }
    .into())
}

fn source(path: &Path) -> Result<Arc<Source>, Diagnostic> {
    let name = shown(path);
    let text = collo_text::read_small_text(path, LARGEST)
        .map_err(|e| Diagnostic::new(format!("{} cannot be read", quoted(&name))).caused_by(e))?;
    Ok(Source::file(name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_predictor_can_be_read_and_says_that_it_is_published() {
        let folder = tempfile::tempdir().expect("a folder");
        let all = all(&Project::at(folder.path())).expect("one");
        let shipped = all[SHIPPED].as_ref().expect("right");
        assert_eq!((shipped.name.as_str(), shipped.mark), (SHIPPED, collo_predict::Mark::Published));
    }

    #[test]
    fn a_predictor_is_found_by_name_or_path_and_a_wrong_name_has_a_way_out() {
        let folder = tempfile::tempdir().expect("a folder");
        fs_err::create_dir(folder.path().join("predictors")).expect("made");
        fs_err::write(folder.path().join("predictors/mine.json"), BROUGHT[0].1).expect("written");
        let project = Project::at(folder.path());
        let found = |asked: &str| find(&project, folder.path(), asked).map(|p| p.name).map_err(|e| e.titles());
        assert_eq!(found("mine").as_deref(), Ok(SHIPPED));
        assert_eq!(found("predictors/mine.json").as_deref(), Ok(SHIPPED));
        assert!(found("published-a10").expect_err("none").contains("no predictor is called"));
        assert!(found("./none.json").expect_err("none").contains("cannot be read"));
    }
}
