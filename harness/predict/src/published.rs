//! What others measured and estimated: `reports/published/estimators.json`, embedded. Figures only; none was measured by collo.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value as Json;

/// Bytes of a MiB, in which the literature counts.
pub const MIB: f64 = 1_048_576.0;

/// The published jobs, with their measurements and the estimates of others.
#[derive(Debug, Default, Deserialize)]
pub struct PublishedEstimators {
    pub device: String,
    pub conditions: String,
    /// Full citations, by their short names.
    pub sources: BTreeMap<String, String>,
    /// What was measured, by a short name.
    pub measured: BTreeMap<String, PublishedSeries>,
    /// Whose estimates, by a short name.
    pub estimators: BTreeMap<String, PublishedSeries>,
    pub jobs: Vec<PublishedJob>,
    /// Of the same sources, but no networks that are known by a name alone.
    pub tasks: Vec<PublishedTask>,
}

/// A series of figures.
#[derive(Debug, Deserialize)]
pub struct PublishedSeries {
    /// For people: `GPUMemNet`.
    pub name: String,
    /// A short name of the sources.
    pub source: String,
    pub what: String,
    pub note: Option<String>,
}

/// A training on one GPU.
#[derive(Debug, Deserialize)]
pub struct PublishedJob {
    pub id: String,
    /// By its name in a library: `timm:resnet18`, `torchvision:vgg16`.
    pub model: String,
    pub family: String,
    /// The shape of an item.
    pub input: Vec<u32>,
    pub classes: u32,
    pub optimizer: String,
    pub batch_size: u32,
    pub workload: PublishedWorkload,
    pub measured_mib: BTreeMap<String, f64>,
    /// Null where the source has none.
    pub estimated_mib: BTreeMap<String, Option<f64>>,
}

/// A training that no predictor is fitted to: on several GPUs, or of a network with no name in a library.
#[derive(Debug, Deserialize)]
pub struct PublishedTask {
    pub id: String,
    /// On each card.
    pub batch_size: u32,
    pub cards: u32,
    pub workload: PublishedWorkload,
    /// Of each card.
    pub measured_mib: BTreeMap<String, f64>,
    pub estimated_mib: BTreeMap<String, Option<f64>>,
}

/// What it is called here: a folder of `workloads/`, and the settings that make it this training.
#[derive(Debug, Deserialize)]
pub struct PublishedWorkload {
    pub folder: String,
    pub settings: BTreeMap<String, Json>,
}

impl PublishedJob {
    /// What an estimator of the literature said, in bytes.
    pub fn estimated_bytes(&self, estimator: &str) -> Option<f64> {
        self.estimated_mib.get(estimator).copied().flatten().map(|mib| mib * MIB)
    }
}

/// The published jobs; a test compares the file with its reader.
pub fn estimators() -> &'static PublishedEstimators {
    static READ: OnceLock<PublishedEstimators> = OnceLock::new();
    READ.get_or_init(|| {
        let text = include_str!("../../../reports/published/estimators.json");
        serde_json::from_str(text).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use collo_text::Source;

    use super::*;
    use crate::{MeasuredRow, MemoryPredictor, fit_memory};

    #[test]
    fn every_published_job_has_both_measurements_its_conditions_and_a_source() {
        let all = estimators();
        assert_eq!(all.jobs.len(), 30);
        assert!(!all.device.is_empty() && !all.conditions.is_empty());
        for series in all.measured.values().chain(all.estimators.values()) {
            assert!(all.sources.contains_key(&series.source), "{}", series.what);
        }
        let ids: BTreeSet<&str> = all.jobs.iter().map(|job| job.id.as_str()).collect();
        assert_eq!(ids.len(), 30, "each once");
        for job in &all.jobs {
            assert!(job.measured_mib.keys().eq(all.measured.keys()), "{}", job.id);
            assert!(job.estimated_mib.keys().eq(all.estimators.keys()), "{}", job.id);
            assert!(job.input.len() == 3 && job.classes > 1 && job.batch_size > 0, "{}", job.id);
            // The later measurement is without the other processes of the first.
            assert!(job.measured_mib["carma"] < job.measured_mib["thesis"], "{}", job.id);
        }
    }

    #[test]
    fn every_published_task_has_the_thesis_figures_and_one_or_two_cards() {
        let all = estimators();
        assert_eq!(all.tasks.len(), 6);
        for task in &all.tasks {
            assert!(
                task.measured_mib.keys().eq(["thesis"]) && task.estimated_mib.keys().eq(all.estimators.keys()),
                "{}",
                task.id
            );
            assert!(task.measured_mib["thesis"] > 1000.0 && (1..=2).contains(&task.cards), "{}", task.id);
        }
    }

    /// The literature's own comparison, from its figures alone.
    #[test]
    fn the_published_estimators_are_as_wrong_as_published() {
        let jobs = &estimators().jobs;
        let score = |estimator: &str, truth: &str| {
            let pairs: Vec<(f64, f64)> =
                jobs.iter().filter_map(|job| Some((job.estimated_bytes(estimator)? / MIB, job.measured_mib[truth]))).collect();
            let mut errors: Vec<f64> = pairs.iter().map(|(said, is)| (said - is).abs()).collect();
            errors.sort_by(f64::total_cmp);
            let middle = (errors[(errors.len() - 1) / 2] + errors[errors.len() / 2]) / 2.0;
            (middle.round(), pairs.iter().filter(|(said, is)| said < is).count())
        };
        assert_eq!(score("gpumemnet", "carma"), (7138.0, 1));
        assert_eq!(score("gpumemnet", "thesis"), (5970.0, 2));
        assert_eq!(score("fake-tensor", "carma"), (1212.0, 30));
        assert_eq!(score("fake-tensor", "thesis"), (2384.0, 30));
        assert_eq!(score("horus", "carma").1, 0);
        assert_eq!(score("horus", "thesis").1, 10);
    }

    /// The jobs with what the formula takes of each: `collo predict evaluate published:estimators --json` prints it.
    fn replayed(truth: &str) -> Vec<MeasuredRow> {
        let text = include_str!("../tests/published-replayed.csv");
        let row = |(line, job): (&str, &PublishedJob)| {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(fields[0], job.id);
            let bytes = |text: &str| text.parse().expect("a number of bytes");
            MeasuredRow {
                label: job.id.clone(),
                family: job.family.clone(),
                measured_bytes: job.measured_mib[truth] * MIB,
                held_bytes: bytes(fields[1]),
                workspace_bytes: bytes(fields[2]),
            }
        };
        text.lines().skip(1).zip(&estimators().jobs).map(row).collect()
    }

    #[test]
    fn the_shipped_predictor_is_the_fit_of_the_published_jobs() {
        let text = include_str!("../../../predictors/published-a100.json");
        let shipped = MemoryPredictor::read(&Source::file("published-a100.json", text)).expect("right").law;
        let fitted = fit_memory(&replayed("carma")).expect("enough").law;
        let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-6 * b.abs(), "{a}, not {b}");
        near(shipped.coefficients.context_bytes, fitted.coefficients.context_bytes);
        near(shipped.coefficients.per_reserved_byte, fitted.coefficients.per_reserved_byte);
        near(shipped.coefficients.per_workspace_byte, fitted.coefficients.per_workspace_byte);
        let (is, found) = (shipped.covariance.expect("fitted"), fitted.covariance.expect("fitted"));
        is.0.iter().flatten().zip(found.0.iter().flatten()).for_each(|(a, b)| near(*a, *b));
        assert_eq!(shipped.width, fitted.width);
        let score = fitted.left_out;
        near(shipped.left_out.median_error_bytes, score.median_error_bytes);
        assert_eq!((shipped.left_out.rows, shipped.left_out.exceeded), (30, score.exceeded));
    }

    #[test]
    fn architectures_never_seen_are_predicted_within_a_few_percent_by_both_measurements() {
        for truth in ["carma", "thesis"] {
            let score = fit_memory(&replayed(truth)).expect("enough").law.left_out;
            assert!(score.median_relative_error < 0.025, "{truth}: {score:?}");
            assert!(score.worst_relative_error < 0.15, "{truth}: {score:?}");
            assert!(score.exceeded <= 3, "{truth}: {score:?}");
        }
    }
}
