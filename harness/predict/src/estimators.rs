//! Every estimator of memory on the same measured trainings. In: what each trained, and needed; the shipped predictor. Out: of each
//! estimator an estimate for each training; where these are fitted, each is predicted by a fit that has not seen its architecture.

use crate::conformal::Bounds;
use crate::description::Description;
use crate::evaluate::{MeasuredRow, MemoryFit, Scored, fit_memory_of, refit_context};
use crate::file::TargetDevice;
use crate::fit::Unfit;
use crate::memory_law::{Factors, MemoryPredictor};
use crate::peers::Peer;
use crate::published::{PublishedJob, estimators};

/// A training that was measured.
#[derive(Debug, Clone)]
pub struct MemoryCase<'a> {
    pub label: String,
    pub family: &'a str,
    pub batch: u64,
    pub measured_bytes: f64,
    /// Absent if it cannot be described.
    pub description: Option<&'a Description>,
    /// R and X of the formula, of a training that is described.
    pub inputs: Option<(u64, u64)>,
    /// The same training among the published jobs.
    pub published: Option<&'static PublishedJob>,
}

/// Trainings of one device, measured by one source.
#[derive(Debug, Clone)]
pub struct MemoryCases<'a> {
    pub all: Vec<MemoryCase<'a>>,
    pub device: TargetDevice,
    pub simulated: bool,
    /// They are the published jobs.
    pub is_published: bool,
}

/// What an estimator is called, with its estimates of all cases.
pub type NamedEstimates = (String, Vec<Scored>);

impl MemoryCases<'_> {
    /// Those that are described, as a fit takes them.
    pub fn rows(&self) -> Vec<MeasuredRow> {
        let row = |case: &MemoryCase<'_>| {
            let (held_bytes, workspace_bytes) = case.inputs?;
            let (label, family, measured_bytes) = (case.label.clone(), case.family.into(), case.measured_bytes);
            Some(MeasuredRow { label, family, measured_bytes, held_bytes, workspace_bytes })
        };
        self.all.iter().filter_map(row).collect()
    }

    pub fn fit(&self, shipped: &MemoryPredictor) -> Result<MemoryFit, Unfit> {
        fit_memory_of(&self.rows(), self.device, self.simulated, shipped.law.coefficients)
    }

    pub fn estimates(&self, fitted: Option<&MemoryFit>, shipped: &MemoryPredictor) -> Vec<NamedEstimates> {
        let mut all: Vec<NamedEstimates> = Vec::new();
        if let Some(MemoryFit { law, left_out }) = fitted {
            let name = match law.factors {
                Factors::Fitted => "collo, architecture left out",
                Factors::Published | Factors::One => "collo, context alone fitted, architecture left out",
            };
            all.push((name.into(), left_out.clone()));
        }
        // What was fitted on real GPUs is neither for CPUs nor for simulated devices.
        if self.device == TargetDevice::Cpu {
            return all;
        }
        // On the rows that it was fitted on it would be judged by its own lesson.
        if !self.is_published && !self.simulated {
            let law = &shipped.law;
            let as_shipped = self.scored(|case| case.inputs.map(|(held, workspace)| law.coefficients.bytes(held, workspace)));
            let bounded =
                |scored: Scored| Scored { bounds: scored.estimate_bytes.map(|bytes| Bounds::around(bytes, law.width)), ..scored };
            all.push((format!("collo, {}", shipped.name), as_shipped.into_iter().map(bounded).collect()));
            // On another machine only the context is another, unless the rest was learnt from too few.
            if let Ok(scored) = refit_context(&self.rows(), law.coefficients, law.width) {
                all.push((format!("collo, {}, context refitted", shipped.name), scored));
            }
        }
        for peer in Peer::ALL {
            all.push((peer.to_string(), self.scored(|case| peer.estimate_bytes(case.description?, case.batch))));
        }
        if self.is_published {
            for (name, series) in &estimators().estimators {
                all.push((format!("{}, as published", series.name), self.scored(|case| case.published?.estimated_bytes(name))));
            }
        }
        all
    }

    fn scored(&self, estimate: impl Fn(&MemoryCase<'_>) -> Option<f64>) -> Vec<Scored> {
        let scored = |case: &MemoryCase<'_>| {
            let (label, measured_bytes) = (case.label.clone(), case.measured_bytes);
            Scored { label, measured_bytes, estimate_bytes: estimate(case), bounds: None }
        };
        self.all.iter().map(scored).collect()
    }
}
