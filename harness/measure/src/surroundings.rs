//! How a campaign is started: its command line, the variables that can influence it, the packages of its Python. Read once, stored
//! with the campaign, never interpreted here.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use collo_store::Surroundings;

use crate::interpreters::Interpreters;
use crate::launch::Errand;

/// Families of variables that can influence a measurement. Nothing else of the environment is stored.
const FAMILIES: [&str; 11] = ["COLLO_", "CUDA_", "NCCL", "NVIDIA_", "OMP", "MKL", "PYTORCH", "TORCH", "HF_", "LD_", "SLURM_"];
/// Parts of names whose values may be secrets: `HF_TOKEN`, `SLURM_JWT`.
const SECRET: [&str; 7] = ["TOKEN", "SECRET", "PASSW", "KEY", "CREDENTIAL", "AUTH", "JWT"];
/// What stands in place of such a value.
const LEFT_OUT: &str = "(set)";
/// The list is read from folders that may lie on a slow disk.
const PACKAGES_LIMIT: Duration = Duration::from_secs(30);

/// Name and version of every installed package, as a JSON object.
const PACKAGES: &str = r#"import importlib.metadata, json
found = ((d.metadata["Name"], d.version) for d in importlib.metadata.distributions())
print(json.dumps({name: version for name, version in found if name and version}))"#;

/// Describe them as they are now; packages that cannot be listed are absent.
pub fn describe(interpreters: &Interpreters) -> Surroundings {
    let all = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let packages = interpreters.paths().filter_map(|path| Some((path.display().to_string(), packages(path)?)));
    Surroundings { command: command(), variables: variables(all), packages: packages.collect() }
}

fn command() -> Vec<String> {
    let mut words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = words.first_mut() {
        *program = Path::new(program).file_name().map_or_else(|| program.clone(), |name| name.to_string_lossy().into_owned());
    }
    words
}

fn variables(all: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let wanted = |name: &str| FAMILIES.iter().any(|family| name.starts_with(family));
    let is_secret = |name: &str| SECRET.iter().any(|part| name.to_uppercase().contains(part));
    all.filter(|(name, _)| wanted(name))
        .map(|(name, value)| {
            let value = if is_secret(&name) { LEFT_OUT.into() } else { value };
            (name, value)
        })
        .collect()
}

fn packages(interpreter: &Path) -> Option<BTreeMap<String, String>> {
    let answer = Errand::to(interpreter, PACKAGES_LIMIT).args(["-c", PACKAGES]).run().ok().filter(|answer| answer.success())?;
    serde_json::from_slice(&answer.out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_environment_only_what_can_influence_is_kept_and_never_a_secret() {
        let set = [
            ("CUDA_VISIBLE_DEVICES", "1"),
            ("OMP_NUM_THREADS", "4"),
            ("HF_TOKEN", "hf_abc"),
            ("SLURM_JWT", "ey"),
            ("HF_HOME", "/data/hf"),
            ("AWS_SECRET_ACCESS_KEY", "abc"),
            ("PATH", "/bin"),
        ];
        let kept = variables(set.into_iter().map(|(name, value)| (name.to_string(), value.to_string())));
        let kept: Vec<String> = kept.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            kept,
            ["CUDA_VISIBLE_DEVICES=1", "HF_HOME=/data/hf", "HF_TOKEN=(set)", "OMP_NUM_THREADS=4", "SLURM_JWT=(set)"]
        );
    }

    #[test]
    fn the_packages_of_a_python_that_does_not_answer_are_absent() {
        assert_eq!(packages(Path::new("/bin/false")), None);
    }
}
