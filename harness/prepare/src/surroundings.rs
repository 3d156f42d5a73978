//! How a campaign is started: its command line, the variables that can influence it, the packages of its Python. Read once, stored
//! with the campaign, never interpreted here.
//!
//! To add a variable that is kept: `FAMILIES`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use collo_store::{Scheduling, Surroundings};

use crate::interpreters::Interpreters;
use collo_launch::Errand;
use collo_plan::project::Project;
use collo_plan::workload::Workload;

/// Families of variables that can influence a measurement. Nothing else of the environment is stored.
const FAMILIES: [&str; 11] = ["COLLO_", "CUDA_", "NCCL", "NVIDIA_", "OMP", "MKL", "PYTORCH", "TORCH", "HF_", "LD_", "SLURM_"];
/// Parts of names whose values may be secrets: `HF_TOKEN`, `SLURM_JWT`.
const SECRET: [&str; 7] = ["TOKEN", "SECRET", "PASSW", "KEY", "CREDENTIAL", "AUTH", "JWT"];
/// What stands in place of such a value.
const LEFT_OUT: &str = "(set)";
/// The list is read from folders that may lie on a slow disk.
const PACKAGES_LIMIT: Duration = Duration::from_secs(30);

/// Name and version of every installed package, as a JSON object. `distributions()` follows `sys.path`, of which an import takes the
/// first that has it; names are the same where PEP 503 makes them so.
const PACKAGES: &str = r#"import importlib.metadata, json, re
found = {}
for d in importlib.metadata.distributions():
    name = d.metadata["Name"]
    if name and d.version:
        found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), (name, d.version))
print(json.dumps(dict(found.values())))"#;

/// Describe them as they are now; packages that cannot be listed are absent.
pub fn describe<'a>(
    project: &Project,
    interpreters: &Interpreters,
    workloads: impl Iterator<Item = &'a Workload>,
) -> Surroundings {
    let all = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    // Those of members: each interpreter alone, or with the packages of a workload laid over it.
    let mut pythons: BTreeMap<String, (&Path, String)> = BTreeMap::new();
    for workload in workloads {
        let Some(path) = interpreters.path(workload) else { continue };
        let over = interpreters.overlay(workload).map(|overlay| format!(" with {}", overlay.display()));
        let name = format!("{}{}", path.display(), over.unwrap_or_default());
        pythons.entry(name).or_insert_with(|| (path, interpreters.search_path(project, workload)));
    }
    let packages = pythons.into_iter().filter_map(|(name, (path, search))| Some((name, packages(path, &search)?)));
    Surroundings {
        command: command(),
        variables: variables(all),
        scheduling: Some(scheduling(Path::new("/proc"))),
        packages: packages.collect(),
    }
}

/// How this kernel shares the CPU among sessions, and where collo is in it. What cannot be read is absent.
fn scheduling(proc: &Path) -> Scheduling {
    let read = |name: &str| fs_err::read_to_string(proc.join(name)).ok();
    let autogroup = read("sys/kernel/sched_autogroup_enabled").and_then(|text| text.trim().parse::<u32>().ok());
    // Field 19 of `stat`, the seventeenth after the name, which stands in parentheses and may contain anything.
    let nice = read("self/stat").and_then(|text| text.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok());
    // A line for each hierarchy; that of version 2 begins with `0::`.
    let cgroup = read("self/cgroup").and_then(|text| {
        let of = |prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix).map(String::from));
        of("0::").or_else(|| text.lines().next().map(String::from))
    });
    Scheduling { autogroup: autogroup.map(|enabled| enabled > 0), nice, cgroup: cgroup.filter(|path| !path.is_empty()) }
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

/// What a member with this search path could import. `-c` puts the working folder first, where nothing may be.
fn packages(interpreter: &Path, search_path: &str) -> Option<BTreeMap<String, String>> {
    let errand = Errand::to(interpreter, PACKAGES_LIMIT).args(["-c", PACKAGES]).folder(Path::new("/"));
    let as_a_member = errand.env("PYTHONPATH", Some(search_path)).env("PYTHONNOUSERSITE", Some("1"));
    let answer = as_a_member.run().ok().filter(|answer| answer.success())?;
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
    fn scheduling_is_read_as_the_kernel_gives_it_and_is_otherwise_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(scheduling(folder.path()), Scheduling::default());
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs_err::create_dir_all(path.parent().expect("below")).expect("made");
            fs_err::write(path, text).expect("written");
        };
        write("sys/kernel/sched_autogroup_enabled", "1\n");
        write("self/stat", "42 (a) b) S 1 42 42 0 -1 4194304 100 0 0 0 70 30 5 6 25 5 3 0 1000 1000000 250\n");
        write("self/cgroup", "1:name=systemd:/x\n0::/user.slice/session-3.scope\n");
        let expected = Scheduling { autogroup: Some(true), nice: Some(5), cgroup: Some("/user.slice/session-3.scope".into()) };
        assert_eq!(scheduling(folder.path()), expected);
        let own = scheduling(Path::new("/proc"));
        assert!(own.nice.is_some_and(|nice| (-20..=19).contains(&nice)), "{own:?}");
    }

    #[test]
    fn the_packages_of_a_python_that_does_not_answer_are_absent() {
        assert_eq!(packages(Path::new("/bin/false"), ""), None);
    }

    #[test]
    fn of_a_package_that_is_there_twice_the_one_that_an_import_finds_is_stored() {
        let folder = tempfile::tempdir().expect("a folder");
        for (place, name, version) in [("first", "Some_Package", "2.0"), ("second", "some-package", "1.0")] {
            let at = folder.path().join(format!("{place}/some_package-{version}.dist-info"));
            fs_err::create_dir_all(&at).expect("made");
            fs_err::write(at.join("METADATA"), format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"))
                .expect("written");
        }
        let search_path = ["first", "second"].map(|place| folder.path().join(place).display().to_string()).join(":");
        let found = packages(&crate::python::find_system().expect("this machine has one").path, &search_path).expect("listed");
        assert_eq!(found.get("Some_Package").map(String::as_str), Some("2.0"), "{found:?}");
        assert!(!found.contains_key("some-package"));
    }
}
