//! What the literature says of a training's memory before it runs, for schedulers that are compared under the estimates of others.
//!
//! In: a training by its folder, settings and batch size. Out: bytes of the card that the published figure of exactly this training names;
//! the whole card where it is published that an estimator did not know; none where nothing was published. The figures are those of
//! `reports/published/estimators.json`.
//!
//! To add a published job: a line of `jobs` there, then `collo predict fit`; one that no predictor is fitted to, a line of
//! `tasks`.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value as Json;

use crate::published::{MIB, estimators};

/// What the study's scheduler was given where an estimator did not know, or estimated more: as much as its cards have, so that such a task shares
/// none that is not empty. A task without any figure would be let onto every card.
const UNKNOWN_MIB: f64 = 40_000.0;

/// Whose word is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EstimateSource {
    /// The authors of the study, who measured it beforehand: thesis table 6.2, the whole card.
    Measured,
    Horus,
    FakeTensor,
    GpuMemNet,
}

impl EstimateSource {
    pub const ALL: [EstimateSource; 4] =
        [EstimateSource::Measured, EstimateSource::Horus, EstimateSource::FakeTensor, EstimateSource::GpuMemNet];

    /// The source of that word, as `Display` writes it.
    pub fn parse(word: &str) -> Option<EstimateSource> {
        EstimateSource::ALL.into_iter().find(|source| source.to_string() == word)
    }

    /// What it said of a training, in bytes of one card. A setting that the published training does not name may have any value.
    pub fn published_bytes(self, folder: &str, settings: &BTreeMap<String, Json>, batch_size: u32) -> Option<u64> {
        let file = estimators();
        let jobs = file.jobs.iter().map(|job| (job.batch_size, &job.workload, &job.measured_mib, &job.estimated_mib));
        let tasks = file.tasks.iter().map(|task| (task.batch_size, &task.workload, &task.measured_mib, &task.estimated_mib));
        let (.., measured, estimated) = jobs.chain(tasks).find(|(batch, workload, ..)| {
            *batch == batch_size
                && workload.folder == folder
                && workload.settings.iter().all(|(name, value)| settings.get(name) == Some(value))
        })?;
        let estimate = |name: &str| estimated.get(name).map(|mib| mib.unwrap_or(UNKNOWN_MIB));
        let mib = match self {
            EstimateSource::Measured => measured.get("thesis").copied(),
            EstimateSource::Horus => estimate("horus"),
            EstimateSource::FakeTensor => estimate("fake-tensor"),
            EstimateSource::GpuMemNet => estimate("gpumemnet"),
        };
        mib.map(|mib| (mib * MIB).round() as u64)
    }
}

impl fmt::Display for EstimateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EstimateSource::Measured => "measured",
            EstimateSource::Horus => "horus",
            EstimateSource::FakeTensor => "faketensor",
            EstimateSource::GpuMemNet => "gpumemnet",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn said(folder: &str, settings: &[(&str, &str)], batch_size: u32) -> [Option<u64>; 4] {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), Json::from(*value))).collect();
        EstimateSource::ALL.map(|source| source.published_bytes(folder, &settings, batch_size))
    }

    #[test]
    fn each_source_has_its_own_word_on_a_published_training() {
        let vgg = [("model", "vgg16"), ("dataset", "imagenet"), ("recipe", "carma"), ("precision", "torch"), ("seed", "1")];
        let [measured, horus, faketensor, gpumemnet] = said("vision", &vgg, 32);
        assert_eq!((measured, gpumemnet), (Some(8222 * MIB), Some(16000 * MIB)));
        assert_eq!((horus, faketensor), (Some(22_571_464_733), Some(3_272_967_035)));
        assert_eq!(said("vision", &vgg, 64)[1], Some(40_000 * MIB), "Horus said no more than the scheduler's cap");
    }

    #[test]
    fn tasks_of_two_cards_have_the_memory_of_each() {
        let gpt2 = [("model", "gpt2-large"), ("recipe", "carma"), ("precision", "torch")];
        let whole = Some(40_000 * MIB);
        assert_eq!(said("language", &gpt2, 4), [Some(27902 * MIB), whole, whole, whole], "nobody knew, so it shares no card");
        assert_eq!(said("mnist", &[], 32)[0], Some(1776 * MIB));
    }

    #[test]
    fn of_another_training_nothing_was_published() {
        let other = [("model", "vgg16"), ("dataset", "imagenet"), ("recipe", "carma"), ("precision", "bf16")];
        assert_eq!(said("vision", &other, 32), [None; 4]);
        assert_eq!(said("mnist", &[], 64), [None; 4]);
        assert_eq!(said("mine", &[], 32), [None; 4]);
    }

    #[test]
    fn the_words_of_the_sources_read_back() {
        for source in EstimateSource::ALL {
            assert_eq!(EstimateSource::parse(&source.to_string()), Some(source));
        }
        assert_eq!(EstimateSource::parse("oracle"), None);
    }
}
