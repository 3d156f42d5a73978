//! Classifies files beside a training script: written by a person, or anything else.
//!
//! To add a library's folder of outputs or a kind of source: `OUTPUTS`, `PROGRAMS` or `SETTINGS`.

use std::path::Path;

/// How the numbers of a campaign depend on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngredientKind {
    /// Code, or whatever git tracks: a new one counts, too.
    Program,
    /// A configuration. Only a person should change it, though scripts write such files as well.
    Settings,
    /// Weights, tables, logs: changes during a run are output of the run.
    Other,
}

const PROGRAMS: &[&str] = &[
    "py", "pyi", "pyx", "pxd", "ipynb", "sh", "bash", "zsh", "pl", "rb", "lua", "jl", "r", "js", "mjs", "ts", "c", "cc", "cpp",
    "cxx", "h", "hh", "hpp", "cu", "cuh", "cl", "rs", "go", "java", "kt", "scala", "swift", "f", "f90", "zig", "mojo",
];

const SETTINGS: &[&str] = &["toml", "yaml", "yml", "json", "json5", "ini", "cfg", "conf", "xml", "gin", "jsonnet", "env"];

/// Default output folders of well-known libraries: Lightning's CSV and TensorBoard loggers, Weights & Biases, MLflow, Hydra,
/// TensorBoard's `SummaryWriter`, the `Trainer` of Transformers.
const OUTPUTS: &[&str] = &["lightning_logs", "wandb", "mlruns", "outputs", "multirun", "runs", "trainer_output"];

/// The kind of a file by its name; an executable without an extension is a program.
pub fn kind(path: &Path, is_executable: bool) -> IngredientKind {
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    match ending.as_deref() {
        Some(e) if PROGRAMS.contains(&e) => IngredientKind::Program,
        Some(e) if SETTINGS.contains(&e) => IngredientKind::Settings,
        None if is_executable => IngredientKind::Program,
        _ => IngredientKind::Other,
    }
}

/// Whether a folder is one that libraries write into.
pub fn is_output_folder(name: &str) -> bool {
    OUTPUTS.contains(&name)
}

/// Files left by Python, editors and hidden tools do not count.
pub fn is_left_behind(name: &str) -> bool {
    name.starts_with('.') || name == "__pycache__" || name.ends_with('~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_configurations_and_the_rest_are_told_apart_by_their_names() {
        let of = |name: &str| kind(Path::new(name), false);
        assert_eq!(["train.py", "a.CU", "b/run.sh"].map(of), [IngredientKind::Program; 3]);
        assert_eq!(["workload.toml", "conf/base.yaml"].map(of), [IngredientKind::Settings; 2]);
        assert_eq!(["checkpoint.pt", "train", "log.csv", "requirements.txt"].map(of), [IngredientKind::Other; 4]);
        assert_eq!(kind(Path::new("train"), true), IngredientKind::Program);
    }
}
