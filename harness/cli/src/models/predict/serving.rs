//! Which predictor answers for a workload.
//!
//! In: a name, or the GPU to predict for; then the torch that the workload trains with. Out: the predictor, its intervals as wide as
//! they are there, and why.

use std::path::{Path, PathBuf};

use collo_plan::predictors;
use collo_plan::project::Project;
use collo_predict::{Because, MemoryPredictor, Target, choose};
use collo_text::Diagnostics;

use crate::output;

/// All that may answer, before it is known with which torch the workload trains.
pub struct Candidates<'a> {
    project: &'a Project,
    /// That a path begins at.
    folder: PathBuf,
    named: Option<&'a str>,
    all: Vec<MemoryPredictor>,
    /// Absent without a GPU, and where one is named: it answers as it is.
    target: Option<Target>,
}

/// The one that answers.
pub struct Serving {
    pub predictor: MemoryPredictor,
    /// Its intervals are so many times as wide as in its file, as logarithms.
    pub widened: f64,
    /// Absent where it answers as it is: by its name, or without a GPU.
    pub because: Option<Because>,
}

impl<'a> Candidates<'a> {
    /// Files that cannot be read are told of.
    pub fn of(
        project: &'a Project,
        folder: &Path,
        named: Option<&'a str>,
        target: Option<Target>,
    ) -> Result<Candidates<'a>, Diagnostics> {
        let mut all = Vec::new();
        if named.is_none() {
            let (readable, unreadable) = predictors::readable(project)?;
            unreadable.into_iter().for_each(|wrong| output::failure(&wrong.into()));
            all = readable.memory;
        }
        Ok(Candidates { project, folder: folder.into(), named, all, target: target.filter(|_| named.is_none()) })
    }

    /// The one that was fitted nearest to a GPU, its intervals the wider the farther that was; the shipped one as it is without a
    /// GPU, and where none serves, which the caller refuses.
    pub fn with_torch(&self, torch: Option<String>) -> Result<Serving, Diagnostics> {
        let target = self.target.clone().map(|target| Target { torch, ..target });
        if let Some(chosen) = target.and_then(|target| choose(self.all.iter(), &target)) {
            let predictor = chosen.predictor.adapted(chosen.width(), None);
            return Ok(Serving { predictor, widened: chosen.widened, because: Some(chosen.because) });
        }
        let name = self.named.unwrap_or(predictors::SHIPPED);
        let predictor = predictors::find_of(self.project, &self.folder, name)?;
        Ok(Serving { predictor, widened: 1.0, because: None })
    }
}
