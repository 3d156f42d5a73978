//! A session's predictions: made before it is measured, and planned with.

use std::sync::Arc;

use collo_text::{Diagnostic, Diagnostics};

use super::Session;
use crate::events::{Event, Watcher};
use collo_plan::earlier::Measured;
use collo_plan::predictors::{readable, target};
use collo_plan::workload::Workload;
use collo_prepare::consent::DescribeConsent;
use collo_prepare::describe::Describer;
use collo_prepare::interpreters::Interpreters;
use collo_prepare::prediction::{ChosenPredictors, predict};

/// The Python that describes the workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PythonToPredict {
    /// As it is: nothing is set up for a prediction.
    Existing,
    /// Set up if it does not exist.
    Provided,
}

/// Why nothing is predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPredicted {
    /// It was asked not to be.
    NotAsked,
    /// No predictor serves the device.
    NoPredictor,
    /// The Python of the workloads is not set up.
    NoPython,
    /// That starts the workloads' scripts, and there is no consent to it.
    NotDescribed,
}

impl Session {
    /// Plan with what reports say was measured on this device.
    pub fn with_measured(&mut self, measured: Measured) -> Result<(), Diagnostics> {
        self.prior.measured = measured;
        self.plan = self.planned_on(&self.facts)?;
        Ok(())
    }

    /// Predict what the members of the plan need and what its groups give, and plan again with that. Of the predictor files that cannot be read the reasons are told.
    pub fn predict(
        &mut self,
        python: PythonToPredict,
        watcher: Watcher<'_>,
    ) -> Result<(Option<NotPredicted>, Vec<Diagnostic>), Diagnostics> {
        self.prior.is_to_predict = false;
        let answer = self.predict_members(python, watcher)?;
        if self.prior.predicted.is_none() && self.plan.cells.iter().any(|planned| planned.cell.trace().is_some()) {
            // A trace may have been planned with predicted estimates.
            self.plan = self.planned_on(&self.facts)?;
        }
        Ok(answer)
    }

    fn predict_members(
        &mut self,
        python: PythonToPredict,
        watcher: Watcher<'_>,
    ) -> Result<(Option<NotPredicted>, Vec<Diagnostic>), Diagnostics> {
        if !self.request.predict {
            return Ok((Some(NotPredicted::NotAsked), Vec::new()));
        }
        let (predictors, unreadable) = readable(&self.project)?;
        let mut chosen = ChosenPredictors::of(&predictors, &target(&self.facts, None));
        if chosen.is_empty() {
            return Ok((Some(NotPredicted::NoPredictor), unreadable));
        }
        let workloads = self.workloads();
        // For the version of torch alone nothing is set up.
        let python = if chosen.describe() { python } else { PythonToPredict::Existing };
        let describer = match self.request.describe {
            Some(consent) => self.describer(&workloads, python, consent, watcher)?,
            None => None,
        };
        if let Some(describer) = &describer {
            chosen = ChosenPredictors::of(&predictors, &target(&self.facts, describer.version_of("torch")));
        }
        let lacks = if self.request.describe.is_some() { NotPredicted::NoPython } else { NotPredicted::NotDescribed };
        let undescribed = (chosen.describe() && describer.is_none()).then_some(lacks);
        if undescribed.is_some() && chosen.company.is_none() {
            return Ok((undescribed, unreadable));
        }
        let mut tell = |count: usize| watcher(Event::Describes { count });
        let describing = describer.as_ref().filter(|_| chosen.describe());
        let predicted = predict(&self.project, &self.plan, &self.facts, &chosen, describing, &self.prior.measured, &mut tell)?;
        drop(describer);
        self.prior.predicted = Some(predicted);
        // What a campaign has begun with it ends with.
        let continued = self.request.continued(&self.project).ok().flatten();
        let labels = continued.iter().flat_map(|campaign| &campaign.manifest().plan.cells).map(|cell| cell.cell.clone());
        self.prior.begun = labels.collect();
        self.plan = self.planned_on(&self.facts)?;
        Ok((undescribed, unreadable))
    }

    /// With the interpreters that members are started with, if these are there already.
    fn describer(
        &self,
        workloads: &[Arc<Workload>],
        python: PythonToPredict,
        consent: DescribeConsent,
        watcher: Watcher<'_>,
    ) -> Result<Option<Describer<'_>>, Diagnostic> {
        if let Some(provided) = &self.provided {
            return Ok(Some(Describer::with(&self.project, provided.interpreters.clone(), provided.versions.clone(), consent)));
        }
        let own = self.request.python.as_deref();
        let target = Interpreters::target_without_gpu(&self.project)?;
        if python == PythonToPredict::Existing && !Interpreters::exist(&self.project, workloads, own, target)? {
            return Ok(None);
        }
        let mut tell = |progress| watcher(Event::Python(progress));
        let (interpreters, versions) = Interpreters::provide(&self.project, workloads, own, target, &mut tell)?;
        Ok(Some(Describer::with(&self.project, interpreters, versions, consent)))
    }
}
