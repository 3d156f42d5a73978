//! GPUMemNet rebuilt, trained and judged on measured rows by `workloads/collo_memnet`, an errand. In: rows. Out: how often each of its
//! ensembles finds the bin of memory.

use std::path::Path;
use std::time::Duration;

use collo_predict::Description;
use collo_text::{Diagnostic, read_small_text};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::data::with_words_of;
use crate::interpreters::Interpreters;
use crate::python::Progress;
use collo_launch::{Errand, Unanswered};
use collo_plan::project::Project;

/// 3,000 rows take ten minutes of two cores; whoever has more rows has more time.
const LEAST: Duration = Duration::from_secs(1800);
const EACH: Duration = Duration::from_secs(2);
const MOST_BYTES: u64 = 16 << 20;

/// A measured training, as it sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemnetRow {
    /// Left out together under `by_shape`.
    pub family: String,
    pub batch_size: u64,
    pub parameters: u64,
    /// Type, values put out per item, parameters; in the order of the forward pass.
    pub layers: Vec<(String, f64, u64)>,
    pub memory_mib: f64,
}

/// How it is trained and split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemnetOptions {
    /// Features in deviations from their mean, else raw, as published.
    pub scaled: bool,
    /// Families are left out, else rows at random.
    pub by_shape: bool,
    /// None: as published, 1000 MiB for MLPs and 8000 for the others.
    pub bin_mib: Option<u32>,
}

/// Its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemnetAnswer {
    pub results: Vec<MemnetResult>,
    /// Kinds that could not be split, in words.
    pub left_out: Vec<String>,
}

/// One ensemble on networks of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemnetResult {
    /// `mlp`, `cnn`, `transformer`: of the networks.
    pub kind: String,
    pub bin_mib: u32,
    /// `mlp`, `transformer`: what classifies them.
    pub ensemble: String,
    /// `once`: 70 % of the rows; `honest`: trained anew for each fold; `original`: trained on from fold to fold.
    pub folds: String,
    pub scaled: bool,
    /// Predicted.
    pub rows: u64,
    pub accuracy: f64,
    /// Of whoever always names the commonest bin of the training rows.
    pub majority: f64,
    /// Put into a lower bin than their own.
    pub below: f64,
    pub bins: Vec<MemnetBin>,
    pub splits: Vec<MemnetSplit>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemnetBin {
    pub from_mib: u64,
    pub rows: u64,
    pub recall: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemnetSplit {
    pub split: String,
    pub rows: u64,
    pub accuracy: f64,
    pub epochs: u32,
}

impl MemnetRow {
    pub fn of(family: &str, description: &Description, batch_size: u64, memory_bytes: f64) -> MemnetRow {
        let layers = description.layers.iter();
        MemnetRow {
            family: family.into(),
            batch_size,
            parameters: description.parameters,
            layers: layers.map(|layer| (layer.kind.clone(), layer.activations_per_item, layer.parameters)).collect(),
            memory_mib: memory_bytes / collo_predict::published::MIB,
        }
    }
}

/// Train it on these rows, in the provided Python or this one.
pub fn memnet(
    project: &Project,
    own: Option<&Path>,
    rows: &[MemnetRow],
    options: MemnetOptions,
    tell: &mut dyn FnMut(Progress),
) -> Result<MemnetAnswer, Diagnostic> {
    let what = || Diagnostic::new("GPUMemNet cannot be trained");
    let python = Interpreters::torch(project, own, tell)?;
    let scratch = tempfile::tempdir().map_err(|e| what().of_machine().caused_by(e))?;
    let (rows_file, answer_file) = (scratch.path().join("rows.json"), scratch.path().join("answer.json"));
    fs_err::write(&rows_file, json!({"rows": rows}).to_string()).map_err(|e| what().of_machine().caused_by(e))?;
    let limit = LEAST.max(EACH * u32::try_from(rows.len()).unwrap_or(u32::MAX));
    let mut errand = Errand::to(&python.interpreter, limit).args(["-m", "collo_memnet"]).arg(&rows_file);
    errand = errand.args(["--split", if options.by_shape { "shape" } else { "random" }]).arg("--to").arg(&answer_file);
    if options.scaled {
        errand = errand.arg("--scaled");
    }
    if let Some(width) = options.bin_mib {
        errand = errand.args(["--bin-mib".to_string(), width.to_string()]);
    }
    let errand = errand
        .folder(scratch.path())
        .env("PYTHONPATH", Some(project.workloads()))
        .env("PYTHONNOUSERSITE", Some("1"))
        .env("OMP_NUM_THREADS", Some("1"))
        .env("CUDA_VISIBLE_DEVICES", Some(""));
    let ended = errand.run().map_err(|why| match why {
        Unanswered::Stopped(stopped) => stopped.error("stopped while GPUMemNet was trained"),
        other => what().of_machine().caused_by(other),
    })?;
    if !ended.success() {
        return Err(with_words_of(&ended.err(), what()).of_machine());
    }
    let text = read_small_text(&answer_file, MOST_BYTES).map_err(|e| what().of_machine().caused_by(e))?;
    serde_json::from_str(&text).map_err(|e| what().of_machine().caused_by(e))
}
